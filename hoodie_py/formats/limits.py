"""Limits of a reader: the largest sizes, counts and depths that a file may promise.

A table may come from a stranger, and a few bytes can promise billions of rows. Every parser checks a promise against
the file itself if possible: a length must fit into the remaining bytes. Otherwise it checks against these limits, which
are far above what Hudi writes. A file beyond a limit is refused with an error that names the limit.

The limits apply to the whole process, because they protect it: a table's properties are read before any scan could pass
options. The environment variable ``HOODIE_PY_LIMITS`` sets them as ``name=number``, separated by blanks or commas, with
K, M or G (powers of 1024) after a number: ``HOODIE_PY_LIMITS="log_blocks=1M metadata_bytes=1G"``. For Spark's workers
set ``spark.executorEnv.HOODIE_PY_LIMITS``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, NoReturn

from hoodie_py.errors import HoodieError, InvalidQueryError

VARIABLE = "HOODIE_PY_LIMITS"

_ENTRY = re.compile(r"([a-z_]+)=([0-9]{1,15})([KMG]?)")
_FACTORS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits, each with its default; docs/limits.md has a line for each."""

    archive_bytes: int = 2 << 30  # a file of the archived timeline
    block_bytes: int = (1 << 31) - 1  # content of one log block
    block_records: int = 1 << 26  # records, deletes or positions of one log block
    columns: int = 100_000  # leaf columns of a Parquet file
    decoded_bytes: int = 4 << 30  # decoded Parquet log block, history file or batch of a base file, by the footer
    decoded_ratio: int = 1000  # decoded size of a Parquet log block over its own size, if it exceeds 128 MB
    file_rows: int = 1 << 28  # rows of a Parquet file, which may take no bytes in it; entries of an HFile
    hfile_block_bytes: int = 1 << 30  # plain bytes of one block of an HFile
    history_rows: int = 10_000_000  # rows of a Parquet file of the archived timeline
    linked_folders: int = 100_000  # folders reached by symbolic links, each counted once for every path to it
    log_blocks: int = 100_000  # blocks of one log file, including corrupt ones
    log_bytes: int = 4 << 30  # a log file, or a base file of the metadata table
    log_headers: int = 64  # headers of one log block
    metadata_bytes: int = 256 << 20  # a file of the timeline, or one record of it when decompressed
    metadata_items: int = 2_000_000  # items of arrays and maps in a file of the timeline (in JSON: lists and objects)
    metadata_ratio: int = 100  # decompressed size of a record or HFile block over its own size, if it exceeds 16 MB
    name_chars: int = 4096  # a file's name
    properties_bytes: int = 16 << 20  # hoodie.properties and the like
    schema_chars: int = 8 << 20  # an Avro schema as JSON
    schema_depth: int = 64  # records, arrays and maps inside each other in an Avro schema
    schema_types: int = 50_000  # types in an Avro schema, with each reference to a named type written out

    @classmethod
    def from_text(cls, text: str) -> Limits:
        """Parse ``name=number`` entries; other limits keep their defaults.

        Raises InvalidQueryError if an entry has another form, an unknown name, or the number zero.
        """
        chosen: dict[str, int] = {}
        for entry in text.replace(",", " ").split():
            match = _ENTRY.fullmatch(entry)
            if match is None or match[1] not in _NAMES or int(match[2]) == 0:
                hint = f"{VARIABLE} takes name=number with {', '.join(sorted(_NAMES))}."
                raise InvalidQueryError(f"{entry[:100]!r} is no limit of a reader.", hint=hint)
            chosen[match[1]] = int(match[2]) * _FACTORS[match[3]]
        return cls(**chosen)


_NAMES = frozenset(each.name for each in fields(Limits))


def get_limits(environment: Mapping[str, str] = os.environ) -> Limits:
    """Return the limits of this process. Raises InvalidQueryError if ``HOODIE_PY_LIMITS`` is malformed."""
    return _limits(environment.get(VARIABLE, ""))


_limits = lru_cache(maxsize=8)(Limits.from_text)


def raise_limit_error(error: type[HoodieError], what: str, name: str, **where: Any) -> NoReturn:
    """Raise the error for a value beyond a limit.

    ``what`` is the beginning of a sentence: what the file contains. ``name`` is an attribute of ``Limits``.
    """
    most = getattr(get_limits(), name)
    hint = f"If the table is to be trusted, set {VARIABLE}='{name}=...' in the environment."
    raise error(f"{what}, more than a reader takes ({name}={most}).", hint=hint, **where)
