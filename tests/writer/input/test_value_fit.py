"""Tests of values brought to the types of a table."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidQueryError
from hoodie_py.writer.input.value_fit import check_cast, fit_column

_INTS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def _fit(values: pa.Array | pa.ChunkedArray, type_: pa.DataType, **options: Any) -> pa.ChunkedArray:
    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    return fit_column(chunked, pa.field("c", type_), **options)


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (pa.array([1, None], pa.int8()), pa.int32()),
        (pa.array([1, None], pa.uint32()), pa.int64()),
        (pa.array([2**53, -3]), pa.float64()),
        (pa.array(["x", None], pa.large_string()), pa.string()),
        (pa.array(["x", None], pa.string_view()), pa.string()),
        (pa.array(["x", None, "x"]).dictionary_encode(), pa.string()),
        (pa.array([b"ab"], pa.binary(2)), pa.binary()),
        (pa.array([Decimal("1.5")], pa.decimal128(3, 1)), pa.decimal128(9, 3)),
        (pa.array([Decimal("1.5")], pa.decimal256(3, 1)), pa.decimal128(3, 1)),
        (pa.array([7], pa.int16()), pa.decimal128(5, 0)),
        (pa.array([dt.date(2026, 1, 1)], pa.date64()), pa.date32()),
        (pa.array([1], pa.timestamp("s", "Asia/Tokyo")), pa.timestamp("us", "UTC")),
        (pa.array([1000], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.nulls(2), pa.struct([("a", pa.int32())])),
        (pa.array([[1], None, []], pa.large_list(pa.int16())), pa.list_(pa.field("element", pa.int32()))),
        (pa.array([[1, 2], None], pa.list_(pa.int16(), 2)), pa.list_(pa.field("element", pa.int32()))),
        (pa.array([[("k", 1)], None, []], pa.map_(pa.large_string(), pa.int8())), pa.map_(pa.string(), pa.int64())),
        (
            pa.array([{"b": "x", "a": 1}, None]),
            pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())]),
        ),
        (pa.array([True]), pa.bool_()),
    ],
)
def test_what_widens_is_widened(values: pa.Array, type_: pa.DataType) -> None:
    fitted = _fit(values, type_)
    fitted.validate(full=True)
    assert fitted.type.equals(type_)
    if not pa.types.is_struct(values.type):
        assert fitted.to_pylist() == values.to_pylist() or fitted.cast(values.type).equals(pa.chunked_array([values]))
    else:
        assert fitted.to_pylist() == [
            None if row is None else {"a": row["a"], "b": row["b"]} for row in values.to_pylist()
        ]


def test_slices_of_nested_columns_keep_their_rows() -> None:
    rows = [[{"a": each}] * (each % 3) if each % 4 else None for each in range(20)]
    values = pa.array(rows, pa.large_list(pa.struct([("a", pa.int16())])))
    target = pa.list_(pa.field("element", pa.struct([("a", pa.int64())])))
    assert _fit(pa.chunked_array([values[3:9], values[11:18]]), target).to_pylist() == rows[3:9] + rows[11:18]


def test_singles_become_doubles_by_their_text() -> None:
    assert _fit(pa.array([1.1, None], pa.float32()), pa.float64()).to_pylist() == [1.1, None]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (pa.int64(), pa.int32()),
        (pa.uint32(), pa.int32()),
        (pa.uint64(), pa.int64()),
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.int64()),
        (pa.string(), pa.int32()),
        (pa.bool_(), pa.int32()),
        (pa.decimal128(9, 2), pa.decimal128(8, 2)),
        (pa.decimal128(9, 2), pa.decimal128(9, 3)),
        (pa.decimal128(9, 2), pa.float64()),
        (pa.int32(), pa.decimal128(9, 0)),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.timestamp("us"), pa.date32()),
        (pa.date32(), pa.timestamp("us")),
        (pa.struct([("a", pa.int64())]), pa.int64()),
    ],
)
def test_other_types_are_refused_naming_both(source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(InvalidQueryError, match="in the rows and") as raised:
        _fit(pa.array([], source), target)
    assert str(source) in str(raised.value)
    assert str(target) in str(raised.value)


def test_a_nested_type_is_named_by_its_place() -> None:
    source = pa.array([], pa.struct([("a", pa.list_(pa.string()))]))
    with pytest.raises(InvalidQueryError, match=r"'c\.a\.element'"):
        _fit(source, pa.struct([("a", pa.list_(pa.field("element", pa.int32())))]))


@pytest.mark.parametrize(
    ("values", "type_", "rows"),
    [
        (pa.array([2**53, 2**53 + 1, None, 2**53 + 3]), pa.float64(), [1, 3]),
        (pa.array([1000, 1001], pa.timestamp("ns")), pa.timestamp("us"), [1]),
        (pa.array([0, 1], pa.date64()), pa.date32(), [1]),
        (pa.array([2**62], pa.timestamp("s")), pa.timestamp("us"), [0]),
        (pa.array([{"a": 1}, {"a": None}]), pa.struct([pa.field("a", pa.int64(), nullable=False)]), [1]),
        (pa.array([[1], [None]]), pa.list_(pa.field("element", pa.int64(), nullable=False)), [1]),
    ],
)
def test_values_that_do_not_fit_are_named(values: pa.Array, type_: pa.DataType, rows: list[int]) -> None:
    half = len(values) // 2
    with pytest.raises(InvalidQueryError, match="do not fit") as raised:
        _fit(pa.chunked_array([values[:half], values[half:]]), type_)
    assert raised.value.where["rows"] == rows


def test_only_the_first_misfits_are_named() -> None:
    with pytest.raises(InvalidQueryError) as raised:
        _fit(pa.array(range(2**53 + 1, 2**53 + 2001, 2)), pa.float64())
    assert raised.value.where["rows"] == [0, 1, 2, 3, 4]


def test_nulls_in_a_required_column_are_named() -> None:
    with pytest.raises(InvalidQueryError, match="requires") as raised:
        fit_column(pa.chunked_array([["a", None], [None]]), pa.field("c", pa.string(), nullable=False))
    assert (raised.value.where["rows"], raised.value.where["bad_rows"]) == ([1, 2], 2)


def test_fields_that_structs_lack_are_filled_only_when_asked() -> None:
    target = pa.struct([("a", pa.int64()), ("b", pa.string())])
    with pytest.raises(InvalidQueryError, match="lack the field 'b'"):
        _fit(pa.array([{"a": 1}]), target)
    assert _fit(pa.array([{"a": 1}, None]), target, fill_missing=True).to_pylist() == [{"a": 1, "b": None}, None]


def test_extension_types_count_as_what_they_hold() -> None:
    values = pa.array([b"0123456789abcdef"], pa.binary(16)).cast(pa.uuid())
    assert _fit(values, pa.binary()).to_pylist() == [b"0123456789abcdef"]


def test_values_that_a_file_cannot_hold_are_named() -> None:
    values = pa.chunked_array([pa.array([1000, 1001], pa.timestamp("us", "UTC"))])
    with pytest.raises(InvalidQueryError) as raised:
        check_cast(values, pa.field("c", pa.timestamp("ms", "UTC")))
    assert raised.value.where["rows"] == [1]


@given(st.sampled_from(_INTS), st.sampled_from(_INTS[2:4]), st.data())
def test_integers_never_change(source: pa.DataType, target: pa.DataType, data: st.DataObject) -> None:
    unsigned = pa.types.is_unsigned_integer(source)
    high = 2 ** (source.bit_width - (not unsigned)) - 1
    low = 0 if unsigned else -high - 1
    values = data.draw(st.lists(st.one_of(st.none(), st.integers(low, high))))
    most = 2 ** (target.bit_width - 1) - 1
    if high > most:
        with pytest.raises(InvalidQueryError):
            _fit(pa.array(values, source), target)
    else:
        assert _fit(pa.array(values, source), target).to_pylist() == values


@pytest.mark.parametrize(
    ("values", "target", "wanted"),
    [
        (pa.array([1, None], pa.int32()), pa.string(), ["1", None]),
        (pa.array([1.0, 1e10]), pa.string(), ["1.0", "1.0E10"]),
        (pa.array([Decimal("1.50")]), pa.string(), ["1.50"]),
        (pa.array([dt.date(2020, 1, 2)]), pa.string(), ["2020-01-02"]),
        (pa.array([b"a"]), pa.string(), ["a"]),
        (pa.array(["a"]), pa.binary(), [b"a"]),
        (pa.array(["2020-01-02"]), pa.date32(), [dt.date(2020, 1, 2)]),
        (pa.array(["1.505"]).dictionary_encode(), pa.decimal128(9, 2), [Decimal("1.51")]),
        (pa.array([1.1], pa.float32()), pa.decimal128(9, 2), [Decimal("1.10")]),
    ],
)
def test_values_become_others_as_in_java(values: pa.Array, target: pa.DataType, wanted: list[object]) -> None:
    assert fit_column(pa.chunked_array([values]), pa.field("c", target), exact=False).to_pylist() == wanted


@pytest.mark.parametrize(("text", "target"), [("x", pa.date32()), ("x", pa.decimal128(9, 2))], ids=str)
def test_texts_that_show_no_value_are_named(text: str, target: pa.DataType) -> None:
    with pytest.raises(InvalidQueryError) as raised:
        fit_column(pa.chunked_array([[None, text]]), pa.field("c", target))
    assert raised.value.where["rows"] == [1]
