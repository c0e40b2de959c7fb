"""Meta columns say when, where and which; data columns stay as they were."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given as given_values
from hypothesis import strategies as st

from hoodie_py.arrow.arrays import join_chunks
from hoodie_py.errors import InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.handles.meta_columns import RowStamp, find_missing_columns, make_file_batches
from hoodie_py.writer.records import WriteRecords
from tests.writer.written_tables import Kind, records, row, schema_of

STAMP = RowStamp("20260101000000001", 3, "p0", "file")


@pytest.fixture
def schema(tmp_path: Path) -> pa.Schema:
    return schema_of(open_snapshot(TableFiles.open(Kind(9, True).create(tmp_path)))).arrow


def test_batches_together_are_the_rows(schema: pa.Schema) -> None:
    given = records([row(i) for i in range(7)])
    three_rows = 3 * (given.rows.nbytes // 7 + 1)
    batches = list(make_file_batches(given, schema, STAMP, first=10, most_bytes=three_rows))
    assert [each.num_rows for each in batches] == [3, 3, 1]
    table = pa.Table.from_batches(batches)
    assert table.column_names == schema.names
    assert table.select(given.rows.column_names).to_pylist() == given.rows.to_pylist()
    assert table["_hoodie_commit_seqno"].to_pylist() == [f"20260101000000001_3_{i}" for i in range(10, 17)]
    assert table["_hoodie_record_key"].to_pylist() == given.keys.to_pylist()
    for name, value in (("_hoodie_partition_path", "p0"), ("_hoodie_file_name", "file")):
        assert set(table[name].to_pylist()) == {value}


@given_values(
    st.one_of(st.integers(0, 3000), st.integers(9, 13).map(lambda each: 10**each - 1500)), st.integers(0, 3000)
)
def test_sequence_numbers_count_the_rows(first: int, count: int) -> None:
    made = STAMP.make_sequence_numbers(first, count)
    made.validate(full=True)
    assert made.to_pylist() == [f"20260101000000001_3_{each}" for each in range(first, first + count)]


def test_wide_rows_come_a_few_at_a_time(schema: pa.Schema) -> None:
    given = records([row(i, name="x" * 1000) for i in range(8)])
    assert [each.num_rows for each in make_file_batches(given, schema, STAMP, most_bytes=2200)] == [2, 2, 2, 2]


def test_columns_that_are_not_there(schema: pa.Schema) -> None:
    given = records([row(1)])
    short = WriteRecords(given.rows.drop_columns(["ts", "name"]), given.keys, given.partition_paths)
    assert find_missing_columns(given, schema) == []
    assert find_missing_columns(short, schema) == ["ts", "name"]
    with pytest.raises(InvalidTableError, match="lack a column"):
        list(make_file_batches(short, schema, STAMP))


def test_whole_columns() -> None:
    assert join_chunks(pa.chunked_array([[1], [], [2]])).to_pylist() == [1, 2]
    assert join_chunks(pa.chunked_array([], pa.string())).to_pylist() == []
