"""Ordering columns compare as Java compares: typed, default apart, NaN above all, -0.0 below 0.0."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.reader.record.ordering import ForeignValue, OrderingColumn, classes_differ, compare, make_sort_codes
from hoodie_py.reader.record.record import DEFAULT_ORDERING

INF = float("inf")
NAN = float("nan")


def column(values: list[Any], *types: pa.DataType) -> OrderingColumn:
    return OrderingColumn.from_values(values, types)


@pytest.mark.parametrize(
    ("type_", "ascending"),
    [
        (pa.int32(), [-(2**31), -1, 0, 1, 2**31 - 1]),
        (pa.int64(), [-(2**63), -1, 0, 1, 2**63 - 1]),
        (pa.float64(), [-INF, -1.5, -0.0, 0.0, 5e-324, 1.5, INF, NAN]),
        (pa.float32(), [-INF, -1.5, -0.0, 0.0, 1.5, INF, NAN]),
        (pa.string(), ["", "10", "9", "Z", "a", "é", "\uffff", "\U0001f600"]),
        (pa.date32(), [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(1970, 1, 1)]),
        (pa.decimal128(20, 2), [Decimal("-10.00"), Decimal("-9.99"), Decimal("0.00"), Decimal("10.00")]),
        (pa.bool_(), [False, True]),
    ],
)
def test_order_within_a_type(type_: pa.DataType, ascending: list[Any]) -> None:
    left = [a for a in ascending for _ in ascending]
    right = [b for _ in ascending for b in ascending]
    expected = [(i > j) - (i < j) for i in range(len(ascending)) for j in range(len(ascending))]
    sign, mixed = compare(column(left, type_), column(right, type_))
    assert np.sign(sign).tolist() == expected
    assert not mixed.any()
    codes = make_sort_codes(column(ascending, type_))
    assert codes is not None
    assert (np.diff(codes) > 0).all()


def test_null_is_the_int_0_in_an_int_column_and_a_class_of_its_own_elsewhere() -> None:
    sign, mixed = compare(column([None, 5], pa.int32()), column([0, None], pa.int32()))
    assert sign.tolist() == [0, 1]
    assert not mixed.any()
    sign, mixed = compare(column([None, None, 5], pa.int64()), column([None, 0, None], pa.int64()))
    assert mixed.tolist() == [False, True, True]
    assert sign[0] == 0


def test_the_default_is_the_int_0_only() -> None:
    assert column([0, 1, None], pa.int32()).default.tolist() == [True, False, True]
    assert column([0, None], pa.int64()).default.tolist() == [False, True]
    assert column(["", "0"], pa.string()).default.tolist() == [False, False]
    assert column([(0, 0), DEFAULT_ORDERING], pa.int32(), pa.int64()).default.tolist() == [False, True]


def test_foreign_values_compare_within_their_class_only() -> None:
    older = column([ForeignValue("int", 3), ForeignValue("int", 3), 7, ForeignValue("long", 3)], pa.int64())
    newer = column([ForeignValue("int", 4), 3, ForeignValue("int", 3), ForeignValue("int", 3)], pa.int64())
    sign, mixed = compare(older, newer)
    assert mixed.tolist() == [False, True, True, True]
    assert sign[0] < 0
    assert older.get_value(0) == ForeignValue("int", 3)


@pytest.mark.parametrize("value", [3, None, ForeignValue("long", 3)], ids=str)
def test_a_foreign_value_compares_with_no_other_on_either_side(value: Any) -> None:
    foreign, other = column([ForeignValue("int", 3)], pa.int64()), column([value], pa.int64())
    for older, newer in ((foreign, other), (other, foreign)):
        assert compare(older, newer)[1].tolist() == [True]
        assert classes_differ(older, newer).tolist() == [True]
    assert classes_differ(foreign, foreign).tolist() == [False]


def test_foreign_values_move_with_their_entries() -> None:
    foreign, plain = column([ForeignValue("int", 3), 7], pa.int64()), column([8], pa.int64())
    for columns in ([foreign, plain], [plain, foreign], [foreign, foreign], [plain, plain]):
        values = [value for each in columns for value in each.to_pylist()]
        joined = OrderingColumn.concat(columns)
        assert joined.to_pylist() == values
        assert joined.take(np.array([1, 0])).to_pylist() == [values[1], values[0]]


def test_classes_differ_between_the_default_and_a_value_whichever_is_older() -> None:
    for types, values, differ in (
        ((pa.int64(),), (None, 5), True),
        ((pa.string(),), (None, "a"), True),
        ((pa.int32(),), (0, 5), False),
        ((pa.int32(),), (None, 5), False),
        ((pa.int64(), pa.int64()), ((1, None), (1, 5)), True),
        ((pa.int64(), pa.int32()), ((1, None), (1, 5)), False),
        ((pa.int64(), pa.int64()), (DEFAULT_ORDERING, (1, 5)), True),
        ((pa.int32(), pa.int32()), (DEFAULT_ORDERING, (1, 5)), True),
    ):
        one, other = (column([value], *types) for value in values)
        assert classes_differ(one, other).tolist() == classes_differ(other, one).tolist() == [differ]
        assert classes_differ(one, one).tolist() == classes_differ(other, other).tolist() == [False]


def test_a_whole_default_compares_with_itself_alone() -> None:
    types = (pa.int32(), pa.int32())
    none, some = column([DEFAULT_ORDERING], *types), column([(0, 0)], *types)
    for older, newer, is_mixed in ((none, some, True), (some, none, True), (none, none, False), (some, some, False)):
        sign, mixed = compare(older, newer)
        assert mixed.tolist() == [is_mixed]
        assert is_mixed or sign.tolist() == [0]


def test_a_delete_without_any_value_has_the_default() -> None:
    parts = [pa.array([1, None, None]), pa.array(["a", "b", None])]
    assert OrderingColumn.of_deletes(parts, 3).to_pylist() == [(1, "a"), (DEFAULT_ORDERING, "b"), DEFAULT_ORDERING]
    assert OrderingColumn.from_columns(parts, 3).default.tolist() == [False, False, False]
    assert OrderingColumn.of_deletes(parts[:1], 3).to_pylist() == [1, DEFAULT_ORDERING, DEFAULT_ORDERING]
    assert OrderingColumn.of_deletes([], 3).to_pylist() == [DEFAULT_ORDERING] * 3


def test_several_fields_compare_field_by_field() -> None:
    types = (pa.int64(), pa.string())
    sign, mixed = compare(
        column([(1, "b"), (2, "a"), (1, "a")], *types), column([(1, "a"), (1, "z"), (1, "a")], *types)
    )
    assert np.sign(sign).tolist() == [1, 1, 0]
    assert not mixed.any()


@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from(["", "a", "b"])), min_size=1, max_size=30))
def test_sort_codes_of_several_fields_order_as_tuples(rows: list[tuple[int, str]]) -> None:
    codes = make_sort_codes(column(list(rows), pa.int64(), pa.string()))
    assert codes is not None
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            assert np.sign(codes[i] - codes[j]) == (a > b) - (a < b)


@given(st.lists(st.one_of(st.none(), st.integers(-5, 5)), min_size=1, max_size=20), st.data())
def test_take_where_and_concat_move_values_unchanged(values: list[int | None], data: st.DataObject) -> None:
    left = column(list(values), pa.int64())
    other = column([9] * len(values), pa.int64())
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))), bool)
    want = [(DEFAULT_ORDERING if v is None else v) if m else 9 for v, m in zip(values, mask, strict=True)]
    assert left.where(mask, other).to_pylist() == want
    assert OrderingColumn.concat([left, other]).take(np.arange(len(values))).to_pylist() == left.to_pylist()


def test_several_fields_compare_up_to_the_first_that_differs() -> None:
    types = (pa.int64(), pa.int64())
    older, newer = column([(1, None), (1, None), (1, 2)], *types), column([(2, 5), (1, 5), (1, 2)], *types)
    sign, mixed = compare(older, newer)
    assert mixed.tolist() == [False, True, False]
    assert sign[0] < 0
    assert classes_differ(older, newer).tolist() == [True, True, False]
