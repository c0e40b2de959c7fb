"""Show a merge record by record: the base file's row, the log entries, and the merged row.

All rows are held in memory, so this is for small tables only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.table import Table
from rich.text import Text

from hoodie_py.cli.console import Column, build_table
from hoodie_py.cli.values import to_text
from hoodie_py.formats.log.blocks import decode_delete_block, decode_records
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.table.bounded import read_bounded

if TYPE_CHECKING:
    from hoodie_py.hoodie_table import HoodieTable

STYLES = {"updated": "yellow", "deleted": "red", "inserted": "green", "unchanged": "dim"}

Row = dict[str, Any]


@dataclass(slots=True)
class KeyMerge:
    """The merge of one record: its row in the base file, its log entries (oldest first) and its merged row."""

    key: str
    base: Row | None = None
    log: list[str] = field(default_factory=list)
    merged: Row | None = None

    @property
    def outcome(self) -> str:
        """The effect of the merge on the base file's row."""
        if self.merged is None:
            return "deleted"
        if self.base is None:
            return "inserted"
        return "unchanged" if self.base == self.merged else "updated"


def collect_key_merges(table: HoodieTable, columns: Sequence[str]) -> list[KeyMerge]:
    """Return the merge of each record that is in a base or log file, sorted by key."""
    merges: dict[str, KeyMerge] = {}
    for key, row in _iterate_rows(table, columns, "read_optimized"):
        merges.setdefault(key, KeyMerge(key)).base = row
    for key, said in _iterate_log_entries(table):
        merges.setdefault(key, KeyMerge(key)).log.append(said)
    for key, row in _iterate_rows(table, columns, "snapshot"):
        merges.setdefault(key, KeyMerge(key)).merged = row
    return [merges[key] for key in sorted(merges)]


def _iterate_rows(table: HoodieTable, columns: Sequence[str], query_type: str) -> Iterator[tuple[str, Row]]:
    for row in table.scan([RECORD_KEY_FIELD, *columns], query_type=query_type).to_arrow().to_pylist():
        yield row[RECORD_KEY_FIELD], {name: row[name] for name in columns}


def _iterate_log_entries(table: HoodieTable) -> Iterator[tuple[str, str]]:
    ordering = table.config.merge_ordering_fields
    for file_slice in table.file_slices():
        times = table.read_info(file_slice).times
        for log in file_slice.log_files:
            for block in iterate_blocks(read_bounded(table.files, log.path, "log_bytes")):
                if isinstance(block, LogBlock):
                    yield from _iterate_entries(block, ordering, times)


def _iterate_entries(block: LogBlock, ordering: Sequence[str], times: pa.Schema | None) -> Iterator[tuple[str, str]]:
    if block.type is BlockType.DELETE:
        deletes = decode_delete_block(block)
        for key, value in zip(deletes.keys.to_pylist(), deletes.values, strict=True):
            yield key, "delete" if value is None else f"delete {_format_ordering(ordering, [value])}"
    elif block.is_data:
        for row in decode_records(block, (RECORD_KEY_FIELD, *ordering), times).to_pylist():
            yield row[RECORD_KEY_FIELD], _format_ordering(ordering, [row[name] for name in ordering]) or "write"


def _format_ordering(names: Sequence[str], values: Sequence[Any]) -> str:
    return ", ".join(f"{name} {to_text(value)}" for name, value in zip(names, values, strict=True))


def build_merge_table(stories: Sequence[KeyMerge], columns: Sequence[str]) -> Table:
    """Return a table of records with base row, log entries, merged row and outcome."""
    widths = [
        max(len(_format_cell(row, name)) for story in stories for row in (story.base, story.merged)) for name in columns
    ]
    header = [
        Column("key", keep=True),
        Column("base file"),
        Column("log files, oldest first"),
        Column("merged"),
        Column("", keep=True),
    ]
    rows: list[list[str | Text]] = []
    for story in stories:
        style = STYLES[story.outcome]
        rows.append(
            [
                story.key,
                Text(_format_line(story.base, columns, widths), style="strike" if story.merged is None else ""),
                ", ".join(story.log),
                Text(_format_line(story.merged, columns, widths), style=style),
                Text(story.outcome, style=style),
            ]
        )
    return build_table(header, rows)


def _format_line(row: Row | None, columns: Sequence[str], widths: Sequence[int]) -> str:
    if row is None:
        return ""
    return "  ".join(_format_cell(row, name).ljust(width) for name, width in zip(columns, widths, strict=True))


def _format_cell(row: Row | None, name: str) -> str:
    return "" if row is None else to_text(row[name]) or "null"
