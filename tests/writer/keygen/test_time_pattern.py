"""Tests of date-time patterns: printed, read, and both in turn."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.writer.keygen.timestamp import TimePattern

_AT = dt.datetime(2026, 3, 4, 5, 6, 7, 89_000, dt.UTC)


def _times(*times: dt.datetime | None, zone: str = "UTC") -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(times, pa.timestamp("ms", zone))])


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy/MM/dd", "2026/03/04"),
        ("yyyyMMdd HH:mm:ss.SSS", "20260304 05:06:07.089"),
        ("yy-M-d H", "26-3-4 5"),
        ("'dt='yyyy''MM", "dt=2026'03"),
        ("S SS SSSSS", "0 08 08900"),
        ("YYYY", "2026"),
    ],
)
def test_times_are_printed(pattern: str, text: str) -> None:
    assert TimePattern.parse(pattern).format(_times(_AT, None)).to_pylist() == [text, None]


def test_times_are_printed_in_their_zone() -> None:
    assert TimePattern.parse("dd HH").format(_times(_AT, zone="-06:00")).to_pylist() == ["03 23"]


def _read(pattern: str, *texts: str | None, zone: str = "UTC") -> list[dt.datetime | None]:
    return list(TimePattern.parse(pattern).read(pa.chunked_array([pa.array(texts, pa.string())]), zone).to_pylist())


def test_times_are_read() -> None:
    day = dt.datetime(2026, 3, 4, tzinfo=dt.UTC)
    assert _read("yyyy-MM-dd", "2026-03-04", "2026-3-4", "2026/03/04", "2026-03-04 ", None) == [
        day, day, None, None, None,
    ]  # fmt: skip
    assert _read("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2026-03-04T06:06:07.089+01:00", "2026-03-04T05:06:07.089Z") == [_AT] * 2
    assert _read("yyyy-MM-dd HH", "2026-03-04 01", zone="Europe/Berlin") == [day]


@pytest.mark.parametrize("text", ["2026-02-30 00:00", "2026-13-01 00:00", "2026-01-01 24:00", "2026-01-01 00:60"])
def test_what_no_calendar_or_clock_has_is_not_read(text: str) -> None:
    assert _read("yyyy-MM-dd HH:mm", text) == [None]


@given(st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)))
def test_what_is_printed_reads_back(time: dt.datetime) -> None:
    pattern = TimePattern.parse("yyyy-MM-dd'T'HH:mm:ss.SSS")
    given_times = pa.chunked_array(
        [pa.array([time], pa.timestamp("us", "UTC")).cast(pa.timestamp("ms", "UTC"), safe=False)]
    )
    assert pattern.read(pattern.format(given_times), "UTC").cast(pa.int64()) == given_times.cast(pa.int64())


@pytest.mark.parametrize("pattern", ["EEE", "yyyy MMM", "hh a", "w", "ZZZ", "'open"])
def test_other_letters_are_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="date format"):
        TimePattern.parse(pattern)


def test_zones_are_printed_as_they_are_ahead() -> None:
    pattern = TimePattern.parse("HHZ ZZ")
    assert pattern.format(_times(_AT, None)).to_pylist() == ["05+0000 +00:00", None]
    assert pattern.format(_times(_AT, zone="-05:30")).to_pylist() == ["23-0530 -05:30"]


def test_two_digits_of_a_year_are_printed_only() -> None:
    with pytest.raises(UnsupportedFeatureError):
        _read("yy", "26")
