"""Types convert to Spark and back without loss, and batches fit the declared schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hypothesis import given
from hypothesis import strategies as some
from pyspark.sql import types as st

from hoodie_py import InvalidQueryError, InvalidTableError
from hoodie_py.spark.types import (
    as_arrow_schema,
    as_arrow_type,
    as_spark_schema,
    as_spark_type,
    can_widen,
    fit,
    has_same_values,
)

PLAIN = [
    pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32(),
    pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.decimal128(18, 4), pa.decimal128(38, 0),
]  # fmt: skip


def nested(inner: some.SearchStrategy[pa.DataType]) -> some.SearchStrategy[pa.DataType]:
    structs = some.lists(inner, min_size=1, max_size=3).map(
        lambda kinds: pa.struct([pa.field(f"f{i}", kind) for i, kind in enumerate(kinds)])
    )
    return some.one_of(inner.map(pa.list_), inner.map(lambda kind: pa.map_(pa.string(), kind)), structs)


TYPES = some.recursive(some.sampled_from(PLAIN), nested, max_leaves=6)


@given(TYPES)
def test_a_type_survives_the_way_to_spark_and_back(kind: pa.DataType) -> None:
    back = as_arrow_type(as_spark_type(kind))
    assert has_same_values(kind, back)
    assert can_widen(kind, back)


@given(some.lists(TYPES, max_size=4))
def test_the_arrow_form_is_the_one_pyspark_compares_with(kinds: list[pa.DataType]) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    declared = as_spark_schema(pa.schema([pa.field(f"c{i}", kind) for i, kind in enumerate(kinds)]))
    try:
        wanted = to_arrow_schema(declared, timezone="UTC")
    except TypeError:  # PySpark before 4.2 needs no zone to be told
        wanted = to_arrow_schema(declared)
    assert wanted.equals(as_arrow_schema(declared))


def test_spark_columns_are_nullable_to_the_core() -> None:
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    schema = pa.schema([pa.field("a", pa.list_(pa.field("item", inner, nullable=False)), nullable=False)])
    assert as_spark_schema(schema).simpleString() == "struct<a:array<struct<x:int>>>"
    column = as_spark_schema(schema)["a"]
    assert column.nullable
    assert isinstance(column.dataType, st.ArrayType)
    assert column.dataType.containsNull
    assert isinstance(column.dataType.elementType, st.StructType)
    assert column.dataType.elementType["x"].nullable


def test_types_that_neither_side_knows_are_refused_by_name() -> None:
    with pytest.raises(InvalidTableError, match=r"duration\[s\]"):
        as_spark_type(pa.duration("s"))
    with pytest.raises(InvalidQueryError, match="interval"):
        as_arrow_type(st.DayTimeIntervalType())


@pytest.mark.parametrize(
    ("have", "want", "allowed"),
    [
        (pa.int32(), pa.int64(), True),
        (pa.int64(), pa.int32(), False),
        (pa.int32(), pa.float64(), True),
        (pa.int64(), pa.float64(), False),
        (pa.float32(), pa.float64(), True),
        (pa.decimal128(10, 2), pa.decimal128(12, 4), True),
        (pa.decimal128(10, 2), pa.decimal128(11, 4), False),
        (pa.int32(), pa.string(), False),
        (pa.timestamp("us", "UTC"), pa.timestamp("us"), False),
        (pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32()), False),
        (pa.struct([("a", pa.int32())]), pa.struct([("b", pa.int32())]), False),
        (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int32()), ("b", pa.int32())]), False),
        (pa.list_(pa.field("item", pa.int32())), pa.list_(pa.field("element", pa.int32(), nullable=False)), True),
    ],
)
def test_a_declared_type_must_hold_every_value(have: pa.DataType, want: pa.DataType, allowed: bool) -> None:
    assert can_widen(have, want) is allowed


def test_a_batch_that_fits_is_not_copied() -> None:
    batch = pa.record_batch({"a": pa.array([1, None], pa.int32())})
    assert fit(batch, pa.schema([("a", pa.int32())])) is batch


@pytest.mark.parametrize("value", [[{"x": 1}], None])
def test_a_batch_is_cast_to_exactly_the_declared_schema(value: Any) -> None:
    have = pa.list_(pa.field("array", pa.struct([pa.field("x", pa.int32(), nullable=False)])))
    want = as_arrow_schema(
        as_spark_schema(pa.schema([("a", pa.list_(pa.struct([("x", pa.int32())]))), ("n", pa.int64())]))
    )
    batch = pa.RecordBatch.from_arrays([pa.array([value], have), pa.array([7], pa.int32())], names=["a", "n"])
    fitted = fit(batch, want)
    assert fitted.schema.equals(want)
    assert fitted.to_pylist() == [{"a": value, "n": 7}]


def test_a_null_where_the_user_declared_none_is_an_error() -> None:
    declared = as_arrow_schema(st.StructType([st.StructField("a", st.IntegerType(), nullable=False)]))
    assert fit(pa.record_batch({"a": pa.array([1], pa.int32())}), declared).schema.equals(declared)
    with pytest.raises(InvalidQueryError, match="'a' holds nulls"):
        fit(pa.record_batch({"a": pa.array([None], pa.int32())}), declared)
