"""What Java stores for the days that its calendar lacks; its entries: integration/java_hudi/test_ranges.py."""

from __future__ import annotations

import datetime as dt

import pytest

from hoodie_py.formats.metadata_table.column_ranges import ColumnRange
from hoodie_py.formats.metadata_table.julian_days import FIRST_CERTAIN_DAY, shift_range
from hoodie_py.formats.metadata_table.value_kinds import ValueKind, ValueType

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
