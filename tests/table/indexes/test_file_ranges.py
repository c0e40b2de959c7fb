"""Joined ranges bound every value of a slice's files, and are unknown where one file's are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.formats.indexes.ranges import TrustedRanges
from hoodie_py.table.filter.bounds import UNKNOWN
from hoodie_py.table.indexes.file_ranges import join_ranges, list_files, read_ranges

TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), st.integers(-5, 5)),
    "text": (pa.string(), st.text("ab", max_size=2)),
    "decimal": (pa.decimal128(6, 2), st.decimals(-3, 3, places=2)),
    "flag": (pa.bool_(), st.booleans()),
}


@st.composite
def file_values(draw: st.DrawFn) -> tuple[pa.DataType, list[tuple[int, list[Any], bool]], int]:
    """Files in order of their slices: slice, values, whether the statistics tell the bounds."""
    type_, values = TYPES[draw(st.sampled_from(sorted(TYPES)))]
    count = draw(st.integers(1, 4))
    files = draw(
        st.lists(st.tuples(st.integers(0, count - 1), st.lists(st.none() | values, max_size=3), st.booleans()))
    )
    return type_, sorted(files, key=lambda each: each[0]), count


@given(file_values())
def test_a_joined_range_holds_for_all_files(given_: tuple[pa.DataType, list[tuple[int, list[Any], bool]], int]) -> None:
    type_, files, count = given_
    plain = [[value for value in values if value is not None] for _, values, _ in files]
    ranges = TrustedRanges(
        pa.array([min(v) if v and told else None for v, (_, _, told) in zip(plain, files, strict=True)], type_),
        pa.array([max(v) if v and told else None for v, (_, _, told) in zip(plain, files, strict=True)], type_),
        np.array([None not in values for _, values, _ in files], bool),
        np.array([all(value is None for value in values) for _, values, _ in files], bool),
        np.array([not values for _, values, _ in files], bool),
    )
    bounds = join_ranges(ranges, np.array([each for each, _, _ in files], np.int64), count)
    assert bounds.low is not None
    assert bounds.high is not None
    assert bounds.nulls is not None
    assert bounds.rows is not None
    for number in range(count):
        mine = [(values, told) for each, values, told in files if each == number]
        held = [value for values, _ in mine for value in values if value is not None]
        nulls = any(None in values for values, _ in mine)
        told = all(told for values, told in mine if any(value is not None for value in values))
        low, high = bounds.low[number].as_py(), bounds.high[number].as_py()
        assert (low, high) == ((min(held), max(held)) if held and told else (None, None))
        if not mine:
            assert bounds.nulls[number] == UNKNOWN
        elif not nulls:
            assert bounds.nulls[number] == 0
        else:
            assert bounds.nulls[number] != 0
        all_null = bool(bounds.nulls[number] >= 0 and 0 <= bounds.rows[number] <= bounds.nulls[number])
        assert all_null is (bool(mine) and not held)


def make_statistics(member: str, wrapped: pa.Array, **changes: int) -> pa.Array:
    """Statistics of version 1, of base files."""
    count = len(wrapped)
    members = ["member0", "member1", "member2", "member3", "member4", "member5", "member6", "member7", "member8"]
    types: dict[str, pa.DataType] = dict.fromkeys(members, pa.int64())
    types |= {member: wrapped.type}
    union = pa.StructArray.from_arrays(
        [
            pa.StructArray.from_arrays([wrapped], ["value"])
            if name == member
            else pa.StructArray.from_arrays([pa.nulls(count, types[name])], ["value"], mask=pa.array([True] * count))
            for name in members
        ],
        members,
    )
    values = {"valueCount": 5, "nullCount": 0, "totalUncompressedSize": 9000} | changes
    fields = {
        "fileName": pa.array(["a.parquet"] * count),
        "minValue": union,
        "maxValue": union,
        "isDeleted": pa.array([False] * count),
        **{name: pa.array([value] * count, pa.int64()) for name, value in values.items()},
        "valueType": pa.nulls(count, pa.struct([("typeOrdinal", pa.int32()), ("additionalInfo", pa.string())])),
    }
    return pa.StructArray.from_arrays(list(fields.values()), list(fields))


@pytest.mark.parametrize(
    ("number", "is_known"), [(1_700_000_000_000_000, True), (1_700_000_000_000, False), (253_402_214_400_000, False)]
)
def test_a_long_is_a_time_only_where_it_cannot_be_in_milliseconds(number: int, is_known: bool) -> None:
    """The last number is the end of the year 9999 in milliseconds, and a day of 1978 in microseconds."""
    found = read_ranges(make_statistics("member2", pa.array([number])), pa.timestamp("us", "UTC"))
    assert found.least.is_valid().to_pylist() == [is_known]
    assert found.no_nulls.tolist() == [True]


def test_dates_that_may_be_stored_ten_days_late_are_unknown() -> None:
    """The days of 1582-10-14 and 1582-10-24 are both stored as the latter, which is the last but two here."""
    days = pa.array([-150_000, -141_428, -141_427, -141_418, -141_417, 10], pa.int32())
    found = read_ranges(make_statistics("member7", days), pa.date32())
    assert found.least.is_valid().to_pylist() == [False, False, False, False, True, True]
    assert found.greatest.is_valid().to_pylist() == [False, False, False, False, True, True]


def test_files_of_no_slices_have_no_bounds() -> None:
    assert list(list_files([]).names) == []
