"""Dates and timestamps as text: every expected value was given by Spark 4 (``try_cast``)."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.table.filter.datetime_text import format_date, format_timestamp, parse_date, parse_timestamp

EPOCH = datetime(1970, 1, 1)


@given(st.dates())
def test_dates_agree_with_python(day: date) -> None:
    """Over the years Python has, the calendar is the same one."""
    days = (day - EPOCH.date()).days
    assert format_date(days) == day.isoformat()
    assert parse_date(day.isoformat()) == days


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_date_reads_back(days: int) -> None:
    """All that fit seven digits of year, before and after Python's range."""
    assert parse_date(format_date(days)) == days


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_timestamp_reads_back(micros: int) -> None:
    """The whole range of 64 bits."""
    assert parse_timestamp(format_timestamp(micros), zoned=True) == micros


@given(st.datetimes(), st.integers(-18 * 60, 18 * 60))
def test_offsets_shift_to_utc(local: datetime, minutes: int) -> None:
    """A zoned timestamp is moved by its offset, one without zone keeps the local time."""
    sign, hours, rest = "-" if minutes < 0 else "+", abs(minutes) // 60, abs(minutes) % 60
    text = f"{local.isoformat(' ')}{sign}{hours:02d}:{rest:02d}"
    micros = (local - EPOCH) // timedelta(microseconds=1)
    assert parse_timestamp(text, zoned=False) == micros
    assert parse_timestamp(text, zoned=True) == micros - minutes * 60_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" 2020-1-1\t", "2020-01-01"),
        ("2020-01-01Tabc", "2020-01-01"),
        ("2020", "2020-01-01"),
        ("2020-5", "2020-05-01"),
        ("1234567-01-01", "+1234567-01-01"),
        ("-0001-01-01", "-0001-01-01"),
        ("02020-01-01", "2020-01-01"),
        ("0000-01-01", "0000-01-01"),
        *[
            (text, None)
            for text in [
                "202",
                "12345678-01-01",
                "2020-01-01x",
                "2020-02-30",
                "2020-01-001",
                "2020-",
                "2020T",
                "now",
                "２０２０",
            ]
        ],
        ("", None),
    ],
)
def test_spellings_of_dates(text: str, expected: str | None) -> None:
    """What Spark takes for a date, and what not."""
    days = parse_date(text)
    assert (None if days is None else format_date(days)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2020-01-01 1", "2020-01-01 01:00:00"),
        ("2020-01-01 1:2", "2020-01-01 01:02:00"),
        ("2020-01-01T01:02:03.", "2020-01-01 01:02:03"),
        ("2020-01-01 01:02:03.1234567890", "2020-01-01 01:02:03.123456"),
        ("2020-01-01 01:02:03 Z", "2020-01-01 01:02:03"),
        ("2020-01-01 01:02:03+1", "2020-01-01 00:02:03"),
        ("2020-01-01 01:02:03+0130", "2019-12-31 23:32:03"),
        ("2020-01-01 01:02:03+01:30:15", "2019-12-31 23:31:48"),
        ("2020-01-01 01:02:03 UTC+01:00", "2020-01-01 00:02:03"),
        ("2020-01-01 01:02:03GMT+1", "2020-01-01 00:02:03"),
        ("2020-03-29 02:30:00 Europe/Paris", "2020-03-29 01:30:00"),
        ("2020-10-25 02:30:00 Europe/Paris", "2020-10-25 00:30:00"),
        ("-290308-12-21 19:59:05.224192", "-290308-12-21 19:59:05.224192"),
        *[
            (text, None)
            for text in (
                "2020-01-01T",
                "2020-01-01  01:02:03",
                "2020-01-01 01:02:03+19:00",
                "2020-01-01 01:02:03+100",
                "2020-01-01Z",
                "2020-01-01 1:2Z",
                "2020-01-01 24:00:00",
                "2020-01-01 23:59:60",
                "2020-01-01 1:",
                "2020-01-01t01:02:03",
                "294247-01-10 04:00:54.775808",
                "2020-01-01 01:02:03 nope/x",
                "2020-01-01 01:02:03.5z",
                "01:02:03",
                "now",
                "2020-01-01 01:02:03 ../../etc/passwd",
            )
        ],
    ],
)
def test_spellings_of_timestamps(text: str, expected: str | None) -> None:
    """What Spark takes for a timestamp, moved to UTC, and what not."""
    micros = parse_timestamp(text, zoned=True)
    assert (None if micros is None else format_timestamp(micros)) == expected
