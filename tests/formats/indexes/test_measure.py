"""Ranges from footers, also where Parquet and Java leave them out."""

from __future__ import annotations

import io
import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py.formats.indexes.bounds import V1, V2, ValueKind, ValueType
from hoodie_py.formats.indexes.measure import read_footer_ranges
from hoodie_py.formats.indexes.ranges import ColumnRange, FileRanges

T = ValueType


def measure(values: pa.Array, version: int = V2, *, rows: int = 1000, **how: Any) -> FileRanges | None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": values}), sink, row_group_size=rows, store_schema=False)
    names = how.pop("names", ("c",))
    return read_footer_ranges(pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata, names, version, **how)


def only(found: FileRanges | None) -> ColumnRange:
    assert found is not None
    [each] = found.ranges
    return each


def test_row_groups_are_merged() -> None:
    found = only(measure(pa.array([5, None, -3, 9], pa.int32()), rows=2))
    assert (found.kind, found.least, found.greatest, found.nulls, found.values) == (ValueKind(T.INT), -3, 9, 1, 4)
    assert found.size > 0
    assert found.uncompressed > 0


def test_kinds_follow_logical_types() -> None:
    def kind(type_: pa.DataType, version: int = V2) -> ValueKind | None:
        found = measure(pa.nulls(2, type_), version)
        return None if found is None else only(found).kind

    assert kind(pa.string()) == ValueKind(T.STRING)
    assert kind(pa.binary()) == ValueKind(T.BYTES)
    assert kind(pa.date32()) == ValueKind(T.DATE)
    assert kind(pa.decimal128(9, 2)) == ValueKind(T.DECIMAL, 9, 2)
    assert kind(pa.timestamp("us", "UTC")) == ValueKind(T.TIMESTAMP_MICROS)
    assert kind(pa.timestamp("ms")) == ValueKind(T.LOCAL_TIMESTAMP_MILLIS)
    assert kind(pa.time64("us")) == ValueKind(T.TIME_MICROS)
    assert kind(pa.binary(3)) == ValueKind(T.FIXED)
    assert kind(pa.binary(3), V1) is None  # Java fails
    assert kind(pa.uint8()) is None  # as Java of an annotation that it does not know
    assert kind(pa.uint8(), V1) == ValueKind(T.INT)


def test_decimals_are_unscaled_integers() -> None:
    values = pa.array([1, None, -200], pa.decimal128(9, 2))
    assert (only(measure(values)).least, only(measure(values)).greatest) == (-20000, 100)


def test_zeros_hold_for_both_zeros() -> None:
    found = only(measure(pa.array([0.0, 0.0])))
    assert [math.copysign(1, each) for each in (found.least, found.greatest)] == [-1, 1]  # type: ignore[arg-type]


def test_what_is_all_null_has_javas_zeros() -> None:
    found = only(measure(pa.nulls(3, pa.int64())))
    assert (found.least, found.greatest, found.nulls, found.values) == (0, 0, 3, 3)
    assert only(measure(pa.nulls(3, pa.string()))).least is None


def test_texts_that_are_too_long_are_incomplete() -> None:
    values = pa.array(["x" * 5000, None, "a"])
    found = measure(values)
    assert found is not None
    assert found.incomplete == ("c",)
    java = measure(values, as_java=True)
    assert java is not None
    assert java.incomplete == ()


def test_columns_are_found_by_paths() -> None:
    structs = pa.array([{"a": 1, "b": [2, 3]}])
    found = measure(structs, names=("c.a", "c.b.list.element", "c.x"))
    assert found is not None
    assert [each.column for each in found.ranges] == ["c.a", "c.b.list.element"]


def test_a_file_without_rows_has_empty_ranges() -> None:
    found = measure(pa.array([], pa.int32()))
    assert found is not None
    assert all(each.values == 0 for each in found.ranges)
