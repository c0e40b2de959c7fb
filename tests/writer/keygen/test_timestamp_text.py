"""Texts of timestamps in keys; the expected ones are what Java Hudi 1.2.0 wrote, in a JVM whose zone is UTC."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.writer.keygen.timestamp_text import format_java_timestamps

_TIMES = {
    dt.datetime(2020, 1, 2, 3, 4, 5, 678901): "2020-01-02 03:04:05.678",
    dt.datetime(2020, 1, 2, 3, 4, 5, 100): "2020-01-02 03:04:05.0",
    dt.datetime(2020, 1, 2, 3, 4, 5): "2020-01-02 03:04:05.0",
    dt.datetime(2020, 1, 2): "2020-01-02 00:00:00.0",
    dt.datetime(1900, 1, 2, 3, 4, 5, 500000): "1900-01-02 03:04:05.5",
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999): "1970-01-01 00:00:00.0",
    dt.datetime(1969, 12, 31, 23, 59, 59, 998500): "1969-12-31 23:59:59.999",
    dt.datetime(9999, 1, 1): "9999-01-01 00:00:00.0",
}


@pytest.mark.parametrize("unit", ["us", "ms", "s"])
def test_texts_are_javas(unit: str) -> None:
    fit = {time: text for time, text in _TIMES.items() if unit == "us" or not time.microsecond}
    values = pa.chunked_array([pa.array([*fit, None], pa.timestamp(unit, "UTC"))])
    assert format_java_timestamps(values, "at", "UTC").to_pylist() == [*fit.values(), None]


def test_a_text_is_in_the_writers_zone_whatever_the_columns() -> None:
    summer = dt.datetime(2020, 7, 2, 3, 4, 5, 10000)
    for zone in ("UTC", "Europe/Berlin", "+03:00"):
        values = pa.chunked_array([pa.array([summer], pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))])
        assert format_java_timestamps(values, "at", "America/New_York").to_pylist() == ["2020-07-01 23:04:05.01"]


@pytest.mark.parametrize("micros", [-12_219_292_800_000_001 - 1000, 253_402_300_800_000_000])
def test_times_that_java_spells_by_another_calendar_are_refused(micros: int) -> None:
    values = pa.chunked_array([pa.array([0, micros], pa.int64()).cast(pa.timestamp("us", "UTC"))])
    with pytest.raises(InvalidQueryError, match="1582 to 9999") as caught:
        format_java_timestamps(values, "at", "UTC")
    assert caught.value.where["rows"] == [1]
