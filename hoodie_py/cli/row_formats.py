"""What files of rows are, by name; light, as every ``hoodie --help`` loads it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path


class RowFormat(StrEnum):
    """What a file of rows is."""

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
    """Tell a file's format by its name; None where that does not tell."""
    return _SUFFIXES.get(path.suffix.lower())
