"""Tables without a schema, which nobody has written to: every query gives no rows and no columns, as in Java Hudi."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, InvalidQueryError
from hoodie_py.table.query import make_query

RANGE = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}


@pytest.fixture(params=[(kind, version) for kind in ("MERGE_ON_READ", "COPY_ON_WRITE") for version in (6, 8, 9)])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HoodieTable:
    return make_table(tmp_path / "t", *request.param)


def make_table(folder: Path, table_type: str = "MERGE_ON_READ", version: int = 9) -> HoodieTable:
    """A table as Java and Flink create it: without a create schema."""
    schema = pa.schema({"id": pa.int64(), "part": pa.string()})
    HoodieTable.create(
        folder, schema, record_key="id", partition_by="part", table_type=table_type, table_version=version,
        properties={"hoodie.table.cdc.enabled": "true"},
    )  # fmt: skip
    properties = folder / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines(keepends=True)
    properties.write_text("".join(line for line in lines if not line.startswith("hoodie.table.create.schema")))
    return HoodieTable.open(folder)


def test_there_are_no_rows_and_no_columns(table: HoodieTable) -> None:
    assert table.schema == pa.schema([])
    assert table.file_slices() == []
    for scan in (
        table.scan(),
        table.scan(query_type="read_optimized"),
        table.scan(filter="1 = 1", limit=3),
        table.scan(as_of="2026-01-01"),
        table.scan(integrity="strict"),
        table.incremental(),
        make_query(table._snapshot, options=RANGE),
    ):
        assert scan.to_arrow() == pa.table({})
        assert scan.count() == 0
        assert scan.tasks() == []
    assert list(table.follow(poll=None)) == []


def test_changes_have_their_four_columns(table: HoodieTable) -> None:
    for as_structs in (False, True):
        found = table.changes(as_structs=as_structs).to_arrow()
        assert found.column_names == ["op", "ts_ms", "before", "after"]
        assert found.num_rows == 0


def test_columns_are_unknown(table: HoodieTable) -> None:
    with pytest.raises(InvalidQueryError, match="'id'"):
        table.scan(filter="id = 1")
    with pytest.raises(InvalidQueryError, match="'id'"):
        table.scan(columns=["id"])


def test_the_first_write_brings_the_columns(table: HoodieTable) -> None:
    table.upsert([{"id": 1, "part": "a", "new": "n"}])
    assert table.scan(columns=["id", "part", "new"]).to_arrow().to_pylist() == [{"id": 1, "part": "a", "new": "n"}]
