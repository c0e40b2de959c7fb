"""Rows that pass a filter, read in two looks: the same rows as a plain read that is filtered afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError
from hoodie_py.files import TableFiles
from hoodie_py.reader.base import filtered
from hoodie_py.reader.base.base_file import BaseFileReader, Decoder
from hoodie_py.reader.base.filtered import FilteredRows, Output, RowFilter
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.reader.read_info import ReadStats
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.row_groups import choose_row_groups
from hoodie_py.table.filter.sql_parser import parse_sql

STORED = pa.schema(
    [
        pa.field("i", pa.int32()),
        pa.field("f", pa.float64()),
        pa.field("d", pa.decimal128(9, 2)),
        pa.field("s", pa.string()),
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("n", pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.string())])),
        pa.field("l", pa.list_(pa.field("element", pa.string()))),
    ]
)
# ``i`` was an int when the file was written, ``new`` was added later, ``p`` is in the partition path.
TABLE = pa.schema(
    [pa.field("i", pa.int64()), *list(STORED)[1:], pa.field("new", pa.string()), pa.field("p", pa.string())]
)
CONSTANTS = {"p": "north"}
FILTERS = (
    "true", "i > 3", "i is null", "i = 2 and s = 'b'", "f > 1", "f = cast('NaN' as double)", "not f < 2",
    "d >= 1.50 or s is null",
    "s in ('a', 'c')", "n.a = 1", "n.b is null", "new is null and i = 1", "new = 'x'", "p = 'north' and i < 2",
    "p = 'south'", "t > timestamp '1970-01-01 00:00:02'", "i <> 0 and 10 / i > 2", "s like 'b%' and f <=> null",
)  # fmt: skip
_SMALL = st.none() | st.integers(0, 5)
ROWS = st.fixed_dictionaries(
    {
        "i": _SMALL,
        "f": st.sampled_from([None, 0.0, -0.0, 1.5, math.nan, math.inf]),
        "d": st.sampled_from([None, Decimal("1.50"), Decimal("-3.25")]),
        "s": st.sampled_from([None, "a", "b", "bb" * 30]),
        "t": st.none() | st.integers(0, 5_000_000),
        "n": st.none() | st.fixed_dictionaries({"a": _SMALL, "b": st.sampled_from([None, "x"])}),
        "l": st.none() | st.lists(st.sampled_from([None, "x", "y"]), max_size=2),
    }
)
COLUMNS = st.lists(st.sampled_from(TABLE.names), unique=True, max_size=4)


def open_file(folder: Path) -> BaseFileReader:
    return BaseFileReader(TableFiles.open(folder), BaseFile("f.parquet", 0, "001", "f"))


def read_from(base: BaseFileReader, batch_rows: int) -> Callable[..., Iterator[pa.RecordBatch]]:
    return lambda schema, groups: base.read_batches(schema, batch_rows, groups, coded=schema.names)


def read_filtered(
    base: BaseFileReader, text: str, columns: Sequence[str], batch_rows: int, *, at_once: bool = False
) -> pa.Table:
    predicate = parse_sql(text, TABLE)
    wanted = [TABLE.field(name) for name in dict.fromkeys((*columns, *sorted(predicate.columns)))]
    make = partial(Output, constants=CONSTANTS, decoder=Decoder())

    def choose(base: Any) -> list[int]:
        return choose_row_groups(base, predicate, TABLE, set(TABLE.names) - {"p"}, {"p"}, batch_rows)

    rows = FilteredRows(
        base,
        RowFilter(predicate.columns, choose, partial(evaluate, predicate)),
        read_from(base, batch_rows),
        make(wanted),
        make,
        at_once=at_once,
    )
    return pa.Table.from_batches(rows.read_batches(ReadStats()), pa.schema(wanted)).select(columns)


def read_plainly(base: BaseFileReader, text: str, columns: Sequence[str]) -> pa.Table:
    output = Output(TABLE, CONSTANTS, Decoder())
    batches = [output.make(batch) for batch in base.read_batches(output.stored, 1000, None)]
    predicate = parse_sql(text, TABLE)
    return pa.Table.from_batches([each.filter(evaluate(predicate, each)) for each in batches], TABLE).select(columns)


def as_rows(table: pa.Table) -> list[str]:
    return [repr(row) for row in table.to_pylist()]  # the text of NaN equals itself


@given(
    st.lists(ROWS, max_size=40),
    st.sampled_from(FILTERS),
    COLUMNS,
    st.integers(1, 12),
    st.integers(1, 15),
    st.sampled_from([16, 1 << 20]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 200, 1 << 20]),
)
def test_two_looks_return_the_rows_of_a_plain_read(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    text: str,
    columns: list[str],
    group: int,
    batch_rows: int,
    page_bytes: int,
    dictionaries: bool,
    statistics: bool,
    at_once: bool,
    held: int,
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    pq.write_table(
        pa.Table.from_pylist(rows, STORED),
        folder / "f.parquet",
        row_group_size=group,
        data_page_size=page_bytes,
        write_batch_size=3,
        use_dictionary=dictionaries,
        write_statistics=statistics,
        write_page_index=statistics,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filtered, "_MOST_HELD", held)
        found = read_filtered(open_file(folder), text, columns, batch_rows, at_once=at_once)
    expected = read_plainly(open_file(folder), text, columns)
    assert found.schema == expected.schema
    assert found.num_rows == expected.num_rows
    assert as_rows(found) == as_rows(expected)


@pytest.fixture
def base(tmp_path: Path) -> BaseFileReader:
    rows = [{"i": at % 5, "s": f"text {at}"} for at in range(100)]
    pq.write_table(pa.Table.from_pylist(rows, STORED), tmp_path / "f.parquet", row_group_size=10)
    return open_file(tmp_path)


def watch(base: BaseFileReader, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], list[int]]]:
    """Return a list that gets the columns and row groups of each read."""
    asked: list[tuple[list[str], list[int]]] = []
    read = base.read_batches

    def note(schema: pa.Schema, rows: int, groups: list[int], **named: Any) -> Iterator[pa.RecordBatch]:
        asked.append((schema.names, list(groups)))
        return read(schema, rows, groups, **named)

    monkeypatch.setattr(base, "read_batches", note)
    return asked


def test_other_columns_are_read_of_row_groups_with_a_passing_row_only(
    base: BaseFileReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = watch(base, monkeypatch)
    assert read_filtered(base, "s like '% 37'", ["i", "s"], 5).to_pylist() == [{"i": 2, "s": "text 37"}]
    assert [groups for names, groups in asked if names == ["s"]] == [[group] for group in range(10)]
    assert [groups for names, groups in asked if names == ["i"]] == [[3]]


def test_reading_stops_after_the_last_passing_row_of_a_group(
    base: BaseFileReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    plain = base.read_batches

    def count(schema: pa.Schema, rows: int, groups: list[int], **named: Any) -> Iterator[pa.RecordBatch]:
        for batch in plain(schema, rows, groups, **named):
            read.append(batch.num_rows if schema.names == ["i"] else 0)
            yield batch

    monkeypatch.setattr(base, "read_batches", count)
    assert read_filtered(base, "s like '% 31'", ["i"], 2).num_rows == 1
    assert sum(read) == 2


@pytest.mark.parametrize("short", ["i", "s"])
def test_columns_that_differ_in_length_are_refused(
    base: BaseFileReader, monkeypatch: pytest.MonkeyPatch, short: str
) -> None:
    plain = base.read_batches

    def cut(schema: pa.Schema, rows: int, groups: list[int], **named: Any) -> Iterator[pa.RecordBatch]:
        for batch in plain(schema, rows, groups, **named):
            yield batch.slice(0, 9) if schema.names == [short] else batch

    monkeypatch.setattr(base, "read_batches", cut)
    with pytest.raises(CorruptFileError, match="differ in length"):
        read_filtered(base, "s like '% 39'", ["i", "s"], 10)
