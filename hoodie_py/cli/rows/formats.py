"""Formats of files of rows. The module imports little, as every ``hoodie --help`` loads it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path


class RowFormat(StrEnum):
    """Format of a file of rows."""

    parquet = "parquet"
    csv = "csv"
    ndjson = "ndjson"


_SUFFIXES = {
    ".parquet": RowFormat.parquet,
    ".csv": RowFormat.csv,
    ".ndjson": RowFormat.ndjson,
    ".jsonl": RowFormat.ndjson,
    ".json": RowFormat.ndjson,
}


def find_format(path: Path) -> RowFormat | None:
    """Return the format for a file's suffix; None for an unknown suffix."""
    return _SUFFIXES.get(path.suffix.lower())
