"""Instants in every spelling that Java Hudi 1.2.0 takes, and those that it refuses (formatQueryInstant was asked)."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.timeline.time_travel import parse_instant

# What Java makes of them in UTC.
JAVA_TAKES = {
    "20261122023126905": "20261122023126905",
    "20261122023126": "20261122023126",
    "2026-11-22": "20261122000000000",
    "2026-11-22 02:31:26": "20261122023126999",
    "2026-11-22T02:31:26": "20261122023126999",
    "2026-11-22 02:31:26.905": "20261122023126905",
    "2026-11-22T02:31:26.905": "20261122023126905",
    "1795314686": "20261122023126000",
    "1795314686905": "20261122023126905",
    "0000000000": "19700101000000000",
    "0000000000000": "19700101000000000",
    "9999999999": "22861120174639000",
    "00000000000000": "00000000000000",
    "00000000000001": "00000000000001",
    "00000000000002": "00000000000002",
}
JAVA_REFUSES = [
    "2026112202312690", "202611220231", "20261122", "2026-11-22 02:31:26.9", "2026-11-22 02:31:26.90",
    "2026-11-22 02:31:26.905123", "2026-11-22 02:31", "2026-11-22T02:31", "2026-11-22 02", "2026-11", "2026",
    "1795314686905123", "1795314686.905", "0", "-1", "00000000000000000", "20261332023126", "20261322023126905",
    "2026-13-22 02:31:26", "2026/11/22", "2026-11-22 25:61:61", "2026-11-22 02:31:60", "2026-11-22 24:00:00",
    "99999999999999", "99999999999999999", "now", "", "   ", "2026-W47-7", "20261122T023126", " 20261122023126905",
    "2026-11-22 ", "２０２６１１２２０２３１２６", "2026-11-22 02:31:26,905", "2026-11-22t02:31:26", "2026-1-2",
    "2026-1-2 3:4:5", "abcdefghij", "-795314686", "+795314686", "2026-11-22T02:31Z", "2026-11-22T02:31:26+02",
]  # fmt: skip
# Java takes dates that no calendar has, and days of the Middle Ages: it shifts them.
SHIFTED = ["2026-13-22", "2026-02-30", "2026-02-30 01:02:03", "22-11-2026"]
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(("text", "instant"), JAVA_TAKES.items())
def test_what_java_takes_means_the_same(text: str, instant: str) -> None:
    assert parse_instant(text, UTC) == instant


@pytest.mark.parametrize("text", JAVA_REFUSES + SHIFTED)
def test_what_java_refuses_is_refused(text: str) -> None:
    with pytest.raises(InvalidQueryError, match="is not an instant"):
        parse_instant(text, UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-22 02:31:26", "2026-11-22T02:31:26Z", "2026-11-22 02:31:26+00:00", "2026-11-22T04:31:26+02:00",
        datetime(2026, 11, 22, 2, 31, 26), datetime(2026, 11, 22, 2, 31, 26, tzinfo=UTC),
        datetime(2026, 11, 21, 21, 31, 26, tzinfo=timezone(timedelta(hours=-5))),
    ],
)  # fmt: skip
def test_a_second_is_the_same_in_every_spelling(value: Any) -> None:
    assert parse_instant(value, UTC) == "20261122023126999"


def test_milliseconds_and_dates() -> None:
    exact = "20261122023126905"
    moment = datetime(2026, 11, 22, 2, 31, 26, 905_123)
    assert {parse_instant(each, UTC) for each in (moment, moment.replace(tzinfo=UTC), 1795314686905)} == {exact}
    assert parse_instant("2026-11-22T03:31:26.905+01:00", UTC) == exact
    assert parse_instant(date(2026, 11, 22), UTC) == parse_instant("2026-11-22", UTC) == "20261122000000000"
    assert parse_instant(1795314686, UTC) == "20261122023126000"


def test_the_zone_of_the_table() -> None:
    for value in ("2026-11-22T02:31:26Z", datetime(2026, 11, 22, 2, 31, 26, tzinfo=UTC), "2026-11-22 03:31:26"):
        assert parse_instant(value, BERLIN) == "20261122033126999"
    assert parse_instant(1795314686, BERLIN) == "20261122033126000"
    assert parse_instant("1795314686905", BERLIN) == "20261122033126905"
    assert parse_instant("20261122023126", BERLIN) == "20261122023126"
    assert parse_instant("2026-11-22", BERLIN) == "20261122000000000"


@pytest.mark.parametrize("value", [True, 1.5, None, b"20261122023126", [1]])
def test_other_things_are_refused(value: Any) -> None:
    with pytest.raises(InvalidQueryError, match="is not an instant"):
        parse_instant(value, UTC)
