"""Partition paths made of times, and the date-time patterns of their formats."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.writer.keygen.timestamp import PartitionTime, TimePattern


def _texts(values: pa.Array, **settings: str) -> list[Any]:
    given = {
        "output.dateformat": "yyyy/MM/dd HH:mm:ss.SSS",
        **{key.replace("__", "."): v for key, v in settings.items()},
    }
    return list(PartitionTime.from_settings(given).format_texts(pa.chunked_array([values]), "t").to_pylist())


_AT = "2023/11/14 22:13:20"


@pytest.mark.parametrize(
    ("values", "settings", "wanted"),
    [
        (
            pa.array([1_700_000_000, None]),
            {"timestamp__type": "UNIX_TIMESTAMP"},
            [f"{_AT}.000", "1970/01/01 00:00:01.000"],
        ),
        (pa.array([1_700_000_000_123]), {"timestamp__type": "EPOCHMILLISECONDS"}, [f"{_AT}.123"]),
        (pa.array([1_700_000_000_123_999]), {"timestamp__type": "EPOCHMICROSECONDS"}, [f"{_AT}.123"]),
        (pa.array([1_700_000_000.9]), {"timestamp__type": "UNIX_TIMESTAMP"}, [f"{_AT}.000"]),
        (pa.array([-1]), {"timestamp__type": "EPOCHMICROSECONDS"}, ["1970/01/01 00:00:00.000"]),
        (
            pa.array([19_675]),
            {"timestamp__type": "SCALAR", "timestamp__scalar__time__unit": "days"},
            ["2023/11/14 00:00:00.000"],
        ),
        (pa.array([1]), {"timestamp__type": "SCALAR"}, ["1970/01/01 00:00:01.000"]),
        (
            pa.array([dt.date(2023, 11, 14)]),
            {"timestamp__type": "SCALAR", "timestamp__scalar__time__unit": "DAYS"},
            ["2023/11/14 00:00:00.000"],
        ),
        (
            pa.array([1_700_000_000_123_999], pa.timestamp("us", "UTC")),
            {"timestamp__type": "EPOCHMICROSECONDS"},
            [f"{_AT}.123"],
        ),
        (
            pa.array([1_700_000_000_123], pa.timestamp("ms", "UTC")),
            {"timestamp__type": "EPOCHMILLISECONDS"},
            [f"{_AT}.123"],
        ),
        (
            pa.array([Decimal("0.9"), None]),
            {"timestamp__type": "UNIX_TIMESTAMP"},
            ["1970/01/01 00:00:00.000", "1970/01/01 00:00:01.000"],
        ),
        (
            pa.array([1_700_000_000_000]),
            {"timestamp__type": "EPOCHMILLISECONDS", "output__timezone": "GMT+8:00"},
            ["2023/11/15 06:13:20.000"],
        ),
        (
            pa.array([1_700_000_000_000]),
            {"timestamp__type": "EPOCHMILLISECONDS", "timezone": "Asia/Tokyo"},
            ["2023/11/15 07:13:20.000"],
        ),
        (
            pa.array(["2023-11-14 22:13", "14.11.2023", None]),
            {"timestamp__type": "DATE_STRING", "input__dateformat": "yyyy-MM-dd HH:mm,dd.MM.yyyy"},
            ["2023/11/14 22:13:00.000", "2023/11/14 00:00:00.000", "1970/01/01 00:00:00.000"],
        ),
        (
            pa.array(["2023-11-14"]).dictionary_encode(),
            {"timestamp__type": "DATE_STRING", "input__dateformat": "yyyy-MM-dd", "input__timezone": "Europe/Berlin"},
            ["2023/11/13 23:00:00.000"],
        ),
    ],
)
def test_values_become_times(values: pa.Array, settings: dict[str, str], wanted: list[str]) -> None:
    assert _texts(values, **settings) == wanted


def test_texts_that_no_format_fits_are_named() -> None:
    with pytest.raises(InvalidQueryError, match="no time of the form yyyy-MM-dd") as raised:
        _texts(pa.array(["2023-11-14", "yesterday"]), timestamp__type="DATE_STRING", input__dateformat="yyyy-MM-dd")
    assert (raised.value.where["rows"], raised.value.where["values"]) == ([1], ["'yesterday'"])


@pytest.mark.parametrize("value", [2**62, -(2**62)])
def test_times_beyond_the_calendar_are_named(value: int) -> None:
    for kind in ("UNIX_TIMESTAMP", "EPOCHMILLISECONDS", "EPOCHMICROSECONDS"):
        with pytest.raises(InvalidQueryError, match="outside the years"):
            _texts(pa.array([0, value]), timestamp__type=kind)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"timestamp__type": "MONTHS"},
        {"timestamp__type": "SCALAR", "timestamp__scalar__time__unit": "WEEKS"},
        {"timestamp__type": "DATE_STRING"},
        {"timestamp__type": "EPOCHMILLISECONDS", "timezone": "Mars/Olympus"},
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidTableError):
        _texts(pa.array([1]), **settings)


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        (pa.array([1]), {"timestamp__type": "DATE_STRING", "input__dateformat": "yyyy"}),
        (pa.array(["2023"]), {"timestamp__type": "EPOCHMILLISECONDS"}),
        (pa.array([b"x"]), {"timestamp__type": "EPOCHMILLISECONDS"}),
        (pa.array([1]), {"timestamp__type": "EPOCHMILLISECONDS", "datetime__parser__class": "org.acme.Parser"}),
    ],
)
def test_what_is_not_handled_is_refused(values: pa.Array, settings: dict[str, str]) -> None:
    with pytest.raises(UnsupportedFeatureError):
        _texts(values, **settings)


_TIME = dt.datetime(2026, 3, 4, 5, 6, 7, 89_000, dt.UTC)


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
    assert TimePattern.parse(pattern).format(_times(_TIME, None)).to_pylist() == [text, None]


def test_times_are_printed_in_their_zone() -> None:
    assert TimePattern.parse("dd HH").format(_times(_TIME, zone="-06:00")).to_pylist() == ["03 23"]


def _read(pattern: str, *texts: str | None, zone: str = "UTC") -> list[dt.datetime | None]:
    return list(TimePattern.parse(pattern).read(pa.chunked_array([pa.array(texts, pa.string())]), zone).to_pylist())


def test_times_are_read() -> None:
    day = dt.datetime(2026, 3, 4, tzinfo=dt.UTC)
    assert _read("yyyy-MM-dd", "2026-03-04", "2026-3-4", "2026/03/04", "2026-03-04 ", None) == [
        day, day, None, None, None,
    ]  # fmt: skip
    assert (
        _read("yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2026-03-04T06:06:07.089+01:00", "2026-03-04T05:06:07.089Z") == [_TIME] * 2
    )
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
    assert pattern.format(_times(_TIME, None)).to_pylist() == ["05+0000 +00:00", None]
    assert pattern.format(_times(_TIME, zone="-05:30")).to_pylist() == ["23-0530 -05:30"]


def test_two_digits_of_a_year_are_printed_only() -> None:
    with pytest.raises(UnsupportedFeatureError):
        _read("yy", "26")
