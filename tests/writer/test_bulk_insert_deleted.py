"""Rows that a bulk insert brings marked as deleted: Java's row writer stores them, and readers show them (asked of Java
Hudi 1.2.0 for versions 6 and 9, both table types). Every other operation leaves them out.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from tests.writer.compaction_tables import QUICK

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("_hoodie_is_deleted", pa.bool_())])


def _rows(ts: int, **flags: bool | None) -> pa.Table:
    rows = [{"id": id_, "part": "p", "ts": ts, "_hoodie_is_deleted": flag} for id_, flag in flags.items()]
    return pa.Table.from_pylist(rows, SCHEMA)


def _ids(table: HoodieTable) -> list[str]:
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("merge_on_read", [True, False])
@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize(
    ("operation", "options", "expected"),
    [
        ("bulk_insert", {}, "abcd"),
        ("bulk_insert", {"hoodie.datasource.write.row.writer.enable": "false"}, "acd"),
        ("insert", {}, "acd"),
        ("upsert", {}, "acd"),
        ("insert_overwrite", {}, "cd"),
        ("insert_overwrite_table", {}, "cd"),
    ],
)
def test_a_bulk_insert_stores_rows_that_are_marked_deleted(
    tmp_path: Path, version: int, merge_on_read: bool, operation: str, options: dict[str, str], expected: str
) -> None:
    kind = "MERGE_ON_READ" if merge_on_read else "COPY_ON_WRITE"
    HoodieTable.create(
        tmp_path / "t", SCHEMA, record_key="id", ordering="ts", partition_by=["part"], table_type=kind,
        table_version=version,
    )  # fmt: skip
    table = HoodieTable.open(tmp_path / "t")
    given = {**QUICK, "hoodie.parquet.small.file.limit": "0", **options}
    table.upsert(_rows(1, a=False), given)
    getattr(table, operation)(_rows(1, b=True, c=False, d=None), given)
    assert _ids(table) == list(expected)
    table.upsert(_rows(2, c=False), given)
    assert _ids(table) == list(expected)
    if merge_on_read:
        table.compact(options=given)
        assert _ids(table) == list(expected)
