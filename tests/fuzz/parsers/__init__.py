"""One module for each parser that reads what a table brings: ``seeds()`` and ``parse(data)``.

``parse`` returns when the parser gave an answer or a HoodieError, and lets everything else through. Where it costs
little it also asserts what must hold of an answer.
"""

from __future__ import annotations

import importlib
from typing import Protocol

NAMES = (
    "archive",
    "avro_container",
    "avro_data",
    "avro_schema",
    "bloom",
    "bootstrap_index",
    "commit_json",
    "deletes",
    "hfile",
    "hfile_records",
    "kryo",
    "lance_layout",
    "log_framing",
    "names",
    "orc_layout",
    "positions",
    "properties",
    "schema_history",
    "sql_filter",
    "variant",
    "vector",
)


class Parser(Protocol):
    """What the modules here have."""

    def parse(self, data: bytes) -> None:
        """Parse hostile bytes."""

    def seeds(self) -> list[bytes]:
        """Real input to start from."""


def load(name: str) -> Parser:
    """Import the module of a parser."""
    return importlib.import_module(f"{__name__}.{name}")
