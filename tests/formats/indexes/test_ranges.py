"""Ranges merge as Java merges them, and go into statistics and back.

What Java stores for the days that its calendar lacks; its entries: integration/java_hudi/test_ranges.py.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.indexes.bounds import NO_VALUES, V1, V2, ValueKind, ValueType
from hoodie_py.formats.indexes.ranges import (
    FIRST_CERTAIN_DAY,
    STATISTICS_TYPE,
    ColumnRange,
    FileRanges,
    make_avro_key,
    make_empty_range,
    make_java_key,
    make_statistics,
    merge_ranges,
    promote_range,
    read_statistics,
    shift_range,
    simplify_kind,
    simplify_range,
)

T = ValueType


def ranged(kind: ValueType, least: Any, greatest: Any, **counts: int) -> ColumnRange:
    return ColumnRange("c", ValueKind(kind), least, greatest, **counts)


def test_counts_and_sizes_add_up() -> None:
    one = ranged(T.INT, 1, 5, nulls=1, values=4, size=10, uncompressed=20)
    other = ranged(T.INT, -2, 3, nulls=2, values=5, size=1, uncompressed=2)
    assert merge_ranges([one, other]) == ranged(T.INT, -2, 5, nulls=3, values=9, size=11, uncompressed=22)


def test_a_range_without_values_takes_the_kind_of_others() -> None:
    assert merge_ranges([make_empty_range("c"), ranged(T.INT, 1, 1, values=1)]) == ranged(T.INT, 1, 1, values=1)
    assert merge_ranges([make_empty_range("c")]).kind == NO_VALUES


def test_ranges_of_different_kinds_do_not_merge() -> None:
    with pytest.raises(UnsupportedFeatureError, match="different value types"):
        merge_ranges([ranged(T.INT, 1, 1), ranged(T.STRING, "a", "a")])


def test_values_compare_as_javas() -> None:
    def least(kind: ValueType, *values: Any, **how: Any) -> Any:
        return merge_ranges([ranged(kind, each, each) for each in values], **how).least

    assert least(T.STRING, "\ue000", "😀") == "😀"  # UTF-16 units
    assert least(T.STRING, "\ue000", "😀", key=make_avro_key) == "\ue000"  # bytes
    assert least(T.BYTES, b"\x01", b"\xff") == b"\xff"
    assert math.copysign(1, least(T.DOUBLE, 0.0, -0.0)) == -1
    assert least(T.DOUBLE, math.nan, math.inf) == math.inf
    first, second = "80000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001"
    assert least(T.UUID, second, first) == first  # signed halves


@given(st.lists(st.floats(width=32), min_size=2))
def test_floats_have_javas_total_order(values: list[float]) -> None:
    ordered = sorted(values, key=lambda value: make_java_key(value, ValueKind(T.FLOAT)))
    for one, other in itertools.pairwise(ordered):
        assert math.isnan(other) or one < other or (one == other and math.copysign(1, one) <= math.copysign(1, other))


@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize(
    ("kind", "least", "greatest"),
    [
        (ValueKind(T.INT), -1, 5),
        (ValueKind(T.STRING), "", "é"),
        (ValueKind(T.BYTES), b"", b"\xff"),
        (ValueKind(T.DATE), -5, 7),
        (ValueKind(T.DECIMAL, 9, 2), -1050, 99),
        (ValueKind(T.TIMESTAMP_MICROS), 0, 1 << 60),
        (ValueKind(T.BOOLEAN), False, True),
        (ValueKind(T.DOUBLE), -0.0, math.inf),
        (ValueKind(T.INT), None, None),
        (NO_VALUES, None, None),
    ],
)
def test_ranges_round_trip(kind: ValueKind, least: Any, greatest: Any, version: int) -> None:
    given_ = ColumnRange("c", kind, least, greatest, 1, 9, 100, 200)
    statistics = make_statistics(["f"], [given_], version, tight=[True])
    assert statistics.type == STATISTICS_TYPE
    [found] = read_statistics(statistics, version)
    expected = simplify_range(given_, version)
    assert (found.column, found.nulls, found.values, found.size, found.uncompressed) == ("c", 1, 9, 100, 200)
    assert (found.least, found.greatest) == (expected.least, expected.greatest)
    assert found.kind == expected.kind or least is None
    row = statistics.to_pylist()[0]
    assert (row["fileName"], row["isTightBound"], row["isDeleted"]) == ("f", True, False)
    assert (row["valueType"] is None) == (version == V1)


def test_widened_columns_promote_ranges_in_order_only() -> None:
    def promoted(old: ColumnRange, kind: ValueKind) -> Any:
        found = promote_range(old, kind)
        return None if found is None else (found.kind, found.least, found.greatest)

    long, double = ValueKind(T.LONG), ValueKind(T.DOUBLE)
    assert promoted(ranged(T.INT, 1, 2), long) == (long, 1, 2)
    assert promoted(ranged(T.LONG, 1, 2), double) == (double, 1.0, 2.0)
    assert promoted(ranged(T.FLOAT, 0.1, 0.2), double) is None
    assert promoted(ranged(T.INT, 9, 10), ValueKind(T.STRING)) is None
    assert promoted(make_empty_range("c"), long) == (long, None, None)
    assert promoted(ranged(T.TIMESTAMP_MILLIS, 1, 2), ValueKind(T.TIMESTAMP_MICROS)) is not None
    wide = ValueKind(T.DECIMAL, 20, 4)
    assert promoted(ColumnRange("c", ValueKind(T.DECIMAL, 9, 2), 5, 6), wide) == (wide, 500, 600)


def test_kinds_of_version_1_are_those_of_wrappers() -> None:
    assert simplify_kind(ValueKind(T.TIMESTAMP_MICROS), V1) == ValueKind(T.LONG)
    assert simplify_kind(ValueKind(T.TIMESTAMP_MICROS), V2) == ValueKind(T.TIMESTAMP_MICROS)
    assert simplify_range(ColumnRange("c", ValueKind(T.DECIMAL, 9, 14), 1, 2), V1).greatest == 20


def test_columns_that_were_read_are_no_longer_incomplete() -> None:
    found = FileRanges((ranged(T.STRING, None, None, nulls=5, values=5, size=9),), ("c",))
    done = found.complete({"c": ranged(T.STRING, "a", "b", nulls=1, values=5)})
    assert done == FileRanges((ranged(T.STRING, "a", "b", nulls=1, values=5, size=9),))


DATE = ValueKind(ValueType.DATE)


def number(month: int, day: int) -> int:
    return (dt.date(1582, month, day) - dt.date(1970, 1, 1)).days


def test_the_first_certain_day_follows_the_last_shifted_one() -> None:
    assert number(10, 25) == FIRST_CERTAIN_DAY


@pytest.mark.parametrize(
    ("least", "greatest", "shifted"),
    [
        (number(10, 5), number(10, 14), (number(10, 15), number(10, 24))),
        (number(10, 4), number(10, 15), None),
        (number(10, 14), 0, (number(10, 24), 0)),
        (None, None, None),
    ],
)
def test_ten_days_are_stored_ten_days_late(
    least: int | None, greatest: int | None, shifted: tuple[int, int] | None
) -> None:
    data = ColumnRange("day", DATE, least, greatest, 0, 2)
    found = shift_range(data, 1)
    assert (None if found is None else (found.least, found.greatest)) == shifted
    assert shift_range(data, 2) is None


def test_other_numbers_are_not_shifted() -> None:
    assert shift_range(ColumnRange("n", ValueKind(ValueType.INT), number(10, 5), number(10, 14)), 1) is None
