"""Limits of a reader: the largest sizes, counts and depths that a file may promise.

A table may come from a stranger, and a few bytes can promise billions of rows. Every parser checks a promise against
the file itself where it can: a length must fit into the bytes that are left. Otherwise it checks against these limits,
which are far above what Hudi writes. A file beyond a limit is refused with an error that names the limit.

The limits hold for the whole process, because they protect it: a table's properties are read before any scan could
carry options. The environment variable ``HOODIE_PY_LIMITS`` sets them, as ``name=number`` with blanks or commas
between, and K, M or G (powers of 1024) behind a number: ``HOODIE_PY_LIMITS="log_blocks=1M metadata_bytes=1G"``. For
Spark's workers set ``spark.executorEnv.HOODIE_PY_LIMITS``.
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
    """The limits, each with its default; docs/limits.md has a line for each.

    Attributes:
        archive_bytes: a file of the archived timeline.
        block_bytes: content of one log block.
        block_records: records, deletes or positions of one log block.
        columns: leaf columns of a Parquet file.
        decoded_bytes: a Parquet log block, file of the archived timeline or batch of a base file when decoded, as far
            as the footer tells.
        decoded_ratio: how many times its own size a Parquet log block may have when decoded, if that is over 128 MB.
        file_rows: rows of a Parquet file, which may take no bytes in it.
        history_rows: rows of a Parquet file of the archived timeline.
        linked_folders: folders that symbolic links lead to, each counted as often as a way leads there.
        log_blocks: blocks of one log file, with those that were not written whole.
        log_bytes: a log file, or a base file of the metadata table.
        log_headers: headers of one log block.
        metadata_bytes: a file of the timeline, or one record of it when decompressed.
        metadata_items: items of arrays and maps in a file of the timeline (in JSON: lists and objects).
        metadata_ratio: how many times its own size a record of the timeline, or a block of an HFile, may have when
            decompressed, if that is over 16 MB.
        name_chars: a file's name.
        properties_bytes: hoodie.properties and the like.
        schema_chars: an Avro schema as JSON.
        schema_depth: records, arrays and maps inside each other in an Avro schema.
        schema_types: types that an Avro schema is made of, each reference to a named type written out.
    """

    archive_bytes: int = 2 << 30
    block_bytes: int = (1 << 31) - 1
    block_records: int = 1 << 26
    columns: int = 100_000
    decoded_bytes: int = 4 << 30
    decoded_ratio: int = 1000
    file_rows: int = 1 << 28
    history_rows: int = 10_000_000
    linked_folders: int = 100_000
    log_blocks: int = 100_000
    log_bytes: int = 4 << 30
    log_headers: int = 64
    metadata_bytes: int = 256 << 20
    metadata_items: int = 2_000_000
    metadata_ratio: int = 100
    name_chars: int = 4096
    properties_bytes: int = 16 << 20
    schema_chars: int = 8 << 20
    schema_depth: int = 64
    schema_types: int = 50_000

    @classmethod
    def from_text(cls, text: str) -> Limits:
        """Parse ``name=number`` entries; other limits keep their defaults.

        Raises:
            InvalidQueryError: an entry of another form, an unknown name, or zero.
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
    """Return the limits of this process.

    Raises:
        InvalidQueryError: ``HOODIE_PY_LIMITS`` cannot be understood.
    """
    return _limits(environment.get(VARIABLE, ""))


_limits = lru_cache(maxsize=8)(Limits.from_text)


def raise_limit_error(error: type[HoodieError], what: str, name: str, **where: Any) -> NoReturn:
    """Raise the error for a value beyond a limit.

    Args:
        error: class of the error.
        what: what the file says or holds: the beginning of a sentence.
        name: name of the limit, an attribute of ``Limits``.
        where: the place, as far as it is known.
    """
    most = getattr(get_limits(), name)
    hint = f"If the table is to be trusted, set {VARIABLE}='{name}=...' in the environment."
    raise error(f"{what}, more than a reader takes ({name}={most}).", hint=hint, **where)
