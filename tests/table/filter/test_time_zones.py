"""Clocks of time zones: what Java's ``ZonedDateTime`` and ``LocalDate.atStartOfDay`` give."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.table.filter.time_zones import find_zone, is_fixed, start_days, to_clock, to_instants

EPOCH = datetime(1970, 1, 1)
ZONES = ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Pacific/Apia", "-03:30"]


def micros(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def show(value: int) -> str:
    return str(EPOCH + timedelta(microseconds=int(value)))


@given(st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), min_size=1, max_size=20))
@example([datetime(1979, 10, 28, 1, fold=1)])
@pytest.mark.parametrize("zone", ZONES[:-1])
def test_clocks_agree_with_python(zone: str, moments: list[datetime]) -> None:
    instants = np.array([(each - EPOCH) // timedelta(microseconds=1) for each in moments], np.int64)
    local = [each.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None) for each in moments]
    assert [show(each) for each in to_clock(instants, zone)] == [str(each) for each in local]
    # The earlier of two instants with one local time, as Spark takes it.
    first = [each.replace(tzinfo=ZoneInfo(zone), fold=0) for each in moments]
    there = [each.astimezone(UTC).replace(tzinfo=None) for each in first]
    assert [show(each) for each in to_instants(instants, zone)] == [str(each) for each in there]


@pytest.mark.parametrize(
    ("zone", "clock", "instant"),
    [
        ("America/New_York", "2024-03-10 02:30", "2024-03-10 07:30:00"),  # skipped: half past three
        ("America/New_York", "2024-11-03 01:30", "2024-11-03 05:30:00"),  # comes twice: the first
        ("Asia/Kolkata", "2024-03-10 00:00", "2024-03-09 18:30:00"),
        ("+05:30", "2024-03-10 00:00", "2024-03-09 18:30:00"),
        ("GMT-7", "2024-03-10 00:00", "2024-03-10 07:00:00"),
        ("UTC", "2024-03-10 00:00", "2024-03-10 00:00:00"),
        ("Europe/Berlin", "9000-07-01 12:00", "9000-07-01 10:00:00"),
    ],
)
def test_a_time_of_the_clock_is_an_instant(zone: str, clock: str, instant: str) -> None:
    assert show(to_instants(np.array([micros(clock)]), zone)[0]) == instant


@pytest.mark.parametrize(
    ("zone", "day", "instant"),
    [
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04 03:00:00"),  # midnight is skipped
        ("America/Toronto", "1919-03-31", "1919-03-31 04:30:00"),  # and here the half hour before it as well
        ("America/Havana", "2024-11-03", "2024-11-03 04:00:00"),  # comes twice
        ("Pacific/Apia", "2011-12-30", "2011-12-30 10:00:00"),  # the whole day is skipped
    ],
)
def test_a_day_begins_with_its_first_instant(zone: str, day: str, instant: str) -> None:
    days = np.array([micros(day) // 86_400_000_000])
    assert show(start_days(days, zone)[0]) == instant


def test_years_that_python_lacks_are_as_those_that_it_has() -> None:
    cycle = 146_097 * 86_400_000_000
    instants = np.array([micros("2024-03-10 06:59:59"), micros("2024-03-10 07:00")])
    later = instants + 300 * cycle
    assert (to_clock(later, "America/New_York") - later).tolist() == [-5 * 3600 * 10**6, -4 * 3600 * 10**6]
    early = np.array([micros("0001-01-01 00:00") - 10 * cycle])
    assert (to_clock(early, "America/New_York") - early).tolist() == [-(4 * 3600 + 56 * 60 + 2) * 10**6]


def test_the_ends_of_the_range_are_refused() -> None:
    with pytest.raises(InvalidQueryError, match="end of the range"):
        to_clock(np.array([2**63 - 1]), "Europe/Berlin")
    with pytest.raises(InvalidQueryError, match="out of the range"):
        start_days(np.array([2**31 - 1]), "Europe/Berlin")


@pytest.mark.parametrize("name", ["PST", "Mars/Olympus", "+19:00", "", "../zone"])
def test_a_zone_that_is_not_known_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="time zone"):
        find_zone(name)


def test_offsets_are_fixed() -> None:
    assert [is_fixed(each) for each in ("UTC", "Z", "+01:00", "Etc/UTC", "Europe/Berlin")] == [True] * 4 + [False]
