"""A case's file slice on disk: a real Parquet base file, real log files."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.deletes.decoder import OrderingKind
from hoodie_py.formats.log.framing import BlockType, HeaderKey
from hoodie_py.formats.names import LogFileName
from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
from tests.formats.log_writer import block, data_block, deletes
from tests.reader.merge_cases.case import Case, column, row, typed

FILE_ID = "11111111-2222-3333-4444-555555555555-0"
BASE_INSTANT = "20260101000000000"
BASE_FILE = "base.parquet"


def write_slice(case: Case, into: Path, *, file_per_block: bool, row_group_rows: int | None = None) -> FileSlice:
    """Write a case's base file and log blocks and return the slice they make.

    Args:
        case: a buffer_sequence case.
        into: an empty folder.
        file_per_block: one log file a block; else one file holds them all.
        row_group_rows: most rows in a row group of the base file.
    """
    blocks = [_block(case, i, entry) for i, entry in enumerate(case.fields["log_blocks"]) if entry["type"] != "records"]
    contents = blocks if file_per_block else [b"".join(blocks)] if blocks else []
    base = _base_file(case, into, row_group_rows)
    instant = base.instant if base else str(case.config.get("base_instant", BASE_INSTANT))
    return FileSlice("", FILE_ID, instant, base, tuple(_log_file(into, i, data) for i, data in enumerate(contents)))


def _log_file(into: Path, version: int, data: bytes) -> LogFile:
    name = LogFileName(FILE_ID, f"2026010100000{version + 1:04}", version + 1, "0-0-0")
    (into / name.name).write_bytes(data)
    return LogFile(name.name, len(data), name)


def _base_file(case: Case, into: Path, row_group_rows: int | None) -> BaseFile | None:
    rows = case.fields["base_records"]
    if not rows:
        return None
    schema = case.schema().arrow
    columns = [column([data.get(field.name) for data in rows], field.type) for field in schema]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), into / BASE_FILE, row_group_size=row_group_rows)
    instant = str(case.config.get("base_instant", BASE_INSTANT))
    return BaseFile(BASE_FILE, (into / BASE_FILE).stat().st_size, instant, FILE_ID)


def _block(case: Case, index: int, entry: Mapping[str, Any]) -> bytes:
    """One block; each is an instant of its own unless the case names one."""
    instant = str(entry.get("instant", f"2026010200000{index:04}"))
    if entry["type"] == "delete":
        found = [(e["key"], "", _for_writer(*typed(e.get("ordering")))) for e in entry["deletes"]]
        return block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant, **_headers(entry)}, deletes(found))
    assert entry["type"] == "data", entry["type"]
    schema = entry.get("schema") or case.fields["schema"]
    parsed = AvroSchema.parse(json.dumps(schema))
    names = [field["name"] for field in schema["fields"]]
    rows = [row(data, parsed.arrow) for data in entry["records"]]
    records = [{name: data.get(name, parsed.defaults.get(name)) for name in names} for data in rows]
    return data_block(instant, json.dumps(schema), records, _headers(entry))


def _headers(entry: Mapping[str, Any]) -> dict[HeaderKey, str]:
    headers: dict[HeaderKey, str] = {}
    if entry.get("is_partial"):
        headers[HeaderKey.IS_PARTIAL] = "true"
    if entry.get("positions") is not None:
        headers[HeaderKey.RECORD_POSITIONS] = _bitmap(entry["positions"])
    if entry.get("positions_base_instant") is not None:
        headers[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] = str(entry["positions_base_instant"])
    return headers


def _bitmap(positions: Sequence[int]) -> str:
    return base64.b64encode(BitMap64(positions).serialize()).decode()


def _for_writer(kind: OrderingKind, value: Any) -> Any:
    """An ordering value as the log writer takes it: Java writes "no ordering" as the int 0."""
    if kind is OrderingKind.NONE:
        return OrderingKind.INT, 0
    if kind is OrderingKind.ARRAY:
        return kind, [_for_writer(*part) for part in value]
    return kind, value
