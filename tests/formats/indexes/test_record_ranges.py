"""Ranges that are collected from records."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.indexes.bounds import ValueKind, ValueType
from hoodie_py.formats.indexes.measure import RecordRanges, find_kinds
from hoodie_py.formats.indexes.ranges import ColumnRange, make_empty_range

T = ValueType


def measure(kind: ValueKind, *parts: pa.Array) -> ColumnRange:
    collected = RecordRanges({"c": kind})
    for each in parts:
        collected.add(pa.RecordBatch.from_arrays([each], names=["c"]))
    [found] = collected.finish()
    return found


def bounds(kind: ValueType, values: pa.Array, **more: int) -> tuple[Any, Any]:
    found = measure(ValueKind(kind, **more), values)
    return found.least, found.greatest


def test_batches_add_up() -> None:
    found = measure(ValueKind(T.INT), pa.array([3, None], pa.int32()), pa.array([-1, 7, None], pa.int32()))
    assert found == ColumnRange("c", ValueKind(T.INT), -1, 7, nulls=2, values=5)


def test_no_records_have_an_empty_range() -> None:
    assert measure(ValueKind(T.INT)) == make_empty_range("c")
    assert measure(ValueKind(T.INT), pa.array([], pa.int32())) == make_empty_range("c")


def test_values_are_in_hudis_units() -> None:
    assert bounds(T.TIMESTAMP_MILLIS, pa.array([2000, -1000], pa.timestamp("us", "UTC"))) == (-1, 2)
    assert bounds(T.LOCAL_TIMESTAMP_MICROS, pa.array([5], pa.timestamp("us"))) == (5, 5)
    assert bounds(T.DATE, pa.array([-3, 4], pa.int32()).view(pa.date32())) == (-3, 4)
    assert bounds(T.DECIMAL, pa.array([-1, 2], pa.decimal128(9, 2)), precision=9, scale=2) == (-100, 200)
    assert bounds(T.BOOLEAN, pa.array([True, None])) == (True, True)


def test_orders_are_avros() -> None:
    assert bounds(T.STRING, pa.array(["\ue000", "😀", "a"])) == ("a", "😀")
    assert bounds(T.BYTES, pa.array([b"\x01", b"\xff", b"\x7f"])) == (b"\xff", b"\x7f")
    ids = ["80000000-0000-0000-0000-000000000000", "7fffffff-0000-0000-0000-0000000000FF"]
    assert bounds(T.UUID, pa.array([*ids, None])) == (ids[0], ids[1].lower())
    with pytest.raises(UnsupportedFeatureError, match="UUIDs"):
        bounds(T.UUID, pa.array(["no uuid"]))


@given(st.lists(st.one_of(st.none(), st.floats(width=64)), min_size=1))
def test_floats_have_nan_last(values: list[float | None]) -> None:
    found = measure(ValueKind(T.DOUBLE), pa.array(values, pa.float64()))
    some = [each for each in values if each is not None]
    assert (found.nulls, found.values) == (len(values) - len(some), len(values))
    if not some:
        assert found.least is None
        return
    numbers = [each for each in some if not math.isnan(each)]
    expected = (min(numbers, default=math.nan), math.nan if len(numbers) < len(some) else max(numbers))
    for got, want in zip((found.least, found.greatest), expected, strict=True):
        assert got == want or (math.isnan(want) and math.isnan(got))  # type: ignore[arg-type]


def test_fields_are_found_by_paths_in_records() -> None:
    inner = {"type": "record", "name": "s", "fields": [{"name": "a", "type": ["null", "int"]}]}
    fields = [{"name": "st", "type": ["null", inner]}, {"name": "l", "type": {"type": "array", "items": "int"}}]
    schema = parse_record(_text({"type": "record", "name": "r", "fields": fields}))
    kinds = find_kinds(["st.a", "st.b", "l", "l.list.element", "none", "st"], schema)
    assert kinds == {"st.a": ValueKind(T.INT)}
    collected = RecordRanges(kinds)
    collected.add(pa.RecordBatch.from_pylist([{"st": {"a": 4}}, {"st": None}]))
    assert collected.finish() == (ColumnRange("st.a", ValueKind(T.INT), 4, 4, nulls=1, values=2),)


def _text(schema: Any) -> str:
    import json

    return json.dumps(schema)
