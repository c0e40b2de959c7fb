"""Tests of the ways to hand over rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError
from hoodie_py.writer.input.input_data import read_input
from tests.corpus import unpack

_ROWS = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.int32())})
_SCHEMA = _ROWS.schema


class _OldFrame(pd.DataFrame):  # type: ignore[misc]
    """A pandas frame as before version 2.2, without an Arrow stream."""

    __arrow_c_stream__ = None


class _Stream:
    """Nothing but an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return _ROWS.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [
        _ROWS,
        _ROWS.to_reader(),
        _ROWS.to_batches()[0],
        _Stream(),
        ds.dataset(_ROWS),
        ds.dataset(_ROWS).scanner(),
        _ROWS.to_pandas(),
        _OldFrame(_ROWS.to_pandas()),
        pl.from_arrow(_ROWS),
        _ROWS.to_pylist(),
        tuple(_ROWS.to_pylist()),
    ],
    ids=lambda data: type(data).__name__,
)
def test_rows_come_as_they_are(data: Any) -> None:
    read = read_input(data, _SCHEMA).read_all()
    assert read.cast(_SCHEMA).equals(_ROWS)


def test_a_scan_is_taken(tmp_path: Path) -> None:
    scan = HoodieTable.open(unpack("basic_mor_v9_part", tmp_path)).scan(["id", "ts"])
    assert read_input(scan).read_all().num_rows == scan.count()


def test_a_parquet_dataset_is_streamed(tmp_path: Path) -> None:
    pq.write_table(_ROWS, tmp_path / "rows.parquet", row_group_size=1)
    reader = read_input(ds.dataset(tmp_path, format="parquet"))
    assert sum(batch.num_rows for batch in reader) == 2


def test_missing_values_of_pandas_are_null() -> None:
    frame = pd.DataFrame({"s": ["x", None], "f": [1.5, float("nan")], "t": [pd.Timestamp("2026-01-01"), pd.NaT]})
    frame.index = pd.Index([7, 8])  # without a name it is no column
    read = read_input(frame).read_all()
    assert read.column_names == ["s", "f", "t"]
    assert [read.column(name).null_count for name in read.column_names] == [1, 1, 1]


def test_dicts_take_the_types_of_the_table() -> None:
    decimal, time = pa.decimal128(5, 2), pa.timestamp("us", "UTC")
    schema = pa.schema([("n", pa.int32()), ("d", decimal), ("day", pa.date32()), ("at", time)])
    at = dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    rows = [{"n": 1, "d": Decimal("1.5"), "day": dt.date(2026, 1, 1), "at": at}, {"extra": "x"}]
    read = read_input(rows, schema).read_all()
    assert read.schema.equals(schema.append(pa.field("extra", pa.string())))
    assert read.column("at").to_pylist() == [at, None]


def test_no_dicts_are_no_rows() -> None:
    read = read_input([], _SCHEMA).read_all()
    assert (read.num_rows, read.schema) == (0, _SCHEMA)


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        (pa.int32(), 1, 2**40),
        (pa.int32(), 1, 1.5),
        (pa.int32(), 1, "1"),
        (pa.int32(), 1, True),
        (pa.float64(), 1.5, "1.5"),
        (pa.binary(), b"x", "x"),
        (pa.string(), "x", b"x"),
        (pa.timestamp("us"), dt.datetime(2026, 1, 1), dt.date(2026, 1, 1)),
        (pa.struct([("a", pa.int32())]), {"a": 1}, {"a": 1.5}),
        (pa.list_(pa.int32()), [1], [1.5]),
        (pa.string(), "x", 1),
        (pa.bool_(), True, "true"),
        (pa.decimal128(3, 1), Decimal("1.5"), Decimal("1.55")),
        (pa.date32(), dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, 3)),
        (pa.timestamp("us", "UTC"), dt.datetime(2026, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1)),
        (pa.timestamp("us"), dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        (None, 1, "x"),
    ],
)
def test_values_that_do_not_fit_are_named(type_: pa.DataType | None, good: Any, bad: Any) -> None:
    schema = pa.schema([] if type_ is None else [("c", type_)])
    with pytest.raises(InvalidQueryError, match="cannot be stored as") as raised:
        read_input([{"c": good}, {"c": None}, {"c": good}, {"c": bad}, {"c": good}], schema)
    assert (raised.value.where["column"], raised.value.where["rows"]) == ("c", [3])


@pytest.mark.parametrize("data", ["text", b"bytes", 5, {"id": ["a"]}, None, [1, 2], [{"id": 1}, "x"], [{1: 2}]])
def test_what_is_not_rows_is_refused(data: Any) -> None:
    with pytest.raises(InvalidQueryError):
        read_input(data)


def test_whole_numbers_of_pandas_take_the_narrow_type_of_the_column() -> None:
    for values in ([1, 2], [1, None]):
        read = read_input(pd.DataFrame({"id": ["a", "b"], "n": values}), _SCHEMA).read_all()
        assert read.schema.field("n").type == pa.int32()
        assert read.column("n").to_pylist() == values
    for values, type_ in (([1, 2**40], pa.int64()), ([1.5, None], pa.float64())):
        read = read_input(pd.DataFrame({"id": ["a", "b"], "n": values}), _SCHEMA).read_all()
        assert read.schema.field("n").type == type_
    assert read_input(pd.DataFrame({"n": [1]})).read_all().schema.field("n").type == pa.int64()


def test_named_levels_of_a_pandas_index_are_columns() -> None:
    frame = _ROWS.to_pandas()
    assert read_input(frame.set_index("id")).read_all().to_pylist() == _ROWS.to_pylist()
    many = frame.assign(part="p").set_index(["part", "id"])
    assert read_input(many).read_all().column_names == ["part", "id", "n"]
    half = frame.set_index(pd.MultiIndex.from_arrays([[7, 8], ["x", "y"]], names=[None, "name"]))
    assert read_input(half).read_all().column_names == ["name", "id", "n"]
    assert read_input(frame.set_index("id", drop=False)).read_all().to_pylist() == _ROWS.to_pylist()
    assert read_input(frame.set_index(pd.Index([5, 6]))).read_all().column_names == ["id", "n"]
    assert frame.set_index("id").index.name == "id"  # the caller's frame stays


def test_an_index_that_contradicts_a_column_is_refused() -> None:
    frame = _ROWS.to_pandas()
    with pytest.raises(InvalidQueryError, match="the index and a column are named 'id'"):
        read_input(frame.set_index(pd.Index(["x", "y"], name="id")))
    with pytest.raises(InvalidQueryError, match="two levels of the index are named 'a'"):
        read_input(frame.set_index(pd.MultiIndex.from_arrays([[1, 2], [3, 4]], names=["a", "a"])))
