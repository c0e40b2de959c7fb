"""Read change-data files back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hoodie_py.formats.avro.data_blocks import AvroSchema, decode_avro_data
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks


@dataclass(frozen=True, slots=True)
class ChangeBlock:
    """One block of a change-data file: its headers by number, and its records."""

    headers: dict[int, str]
    records: list[dict[str, Any]]


def read_change_file(path: Path) -> list[ChangeBlock]:
    """Return the blocks of a file; they must be change data."""
    return parse_change_file(path.read_bytes())


def parse_change_file(data: bytes) -> list[ChangeBlock]:
    """Return the blocks of a file's content; they must be change data."""
    found = []
    for block in iterate_blocks(data):
        assert isinstance(block, LogBlock)
        assert block.type is BlockType.CDC_DATA
        rows = decode_avro_data(block.content, AvroSchema.parse(str(block.schema_text)))
        found.append(ChangeBlock({int(key): text for key, text in block.headers.items()}, rows.to_pylist()))
    return found


def read_records(path: Path) -> list[dict[str, Any]]:
    """Return the records of all blocks."""
    return [record for block in read_change_file(path) for record in block.records]


def list_change_files(base: Path) -> list[Path]:
    """Return all change-data files of a table, sorted by path."""
    return sorted(base.rglob(".*.cdc"))
