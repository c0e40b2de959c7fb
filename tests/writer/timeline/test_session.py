from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from hoodie_py.errors import ConflictError, UnsupportedFeatureError
from hoodie_py.writer.timeline.session import InstantClock


class Hands:
    """A clock's hands: they move when somebody sleeps."""

    def __init__(self, text: str) -> None:
        self.time = datetime.fromisoformat(text).replace(tzinfo=UTC)
        self.slept: list[float] = []

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += timedelta(seconds=seconds)


def clock(hands: Hands, zone: str = "UTC") -> InstantClock:
    return InstantClock(ZoneInfo(zone), 200, hands.now, hands.sleep)


def test_gives_the_time_from_before_it_slept() -> None:
    hands = Hands("2031-01-02T03:04:05.678")
    assert clock(hands).take() == "20310102030405678"
    assert hands.slept == [0.2]


def test_times_are_in_the_table_s_zone() -> None:
    assert clock(Hands("2032-07-01T22:00:00"), "Europe/Berlin").take() == "20320702000000000"


def test_times_strictly_increase_even_if_the_hands_go_back() -> None:
    hands = Hands("2033-01-01T00:00:00")
    stopped = clock(hands)
    taken = [stopped.take()]
    hands.time -= timedelta(seconds=1)
    taken.append(stopped.take())
    assert taken == ["20330101000000000", "20330101000000001"]


def test_a_table_in_another_zone_is_another_matter() -> None:
    assert clock(Hands("2033-01-01T00:00:00"), "Asia/Tokyo").take() == "20330101090000000"
    assert clock(Hands("2033-01-01T00:00:00")).take() == "20330101000000000"


def test_waits_for_a_timeline_that_is_a_little_ahead() -> None:
    hands = Hands("2034-01-01T00:00:00")
    assert clock(hands).take("20340101000000900") == "20340101000000901"
    assert clock(Hands("2034-01-02T00:00:00")).take("20340102000000") == "20340102000000000"


@pytest.mark.parametrize("ahead", ["20350101000006000", "20350101001000000"])
def test_a_timeline_that_another_clock_put_ahead_is_a_conflict_that_passes(ahead: str) -> None:
    with pytest.raises(ConflictError, match=f"ahead of this machine's clock: {ahead}.*Try again in"):
        clock(Hands("2035-01-01T00:00:00")).take(ahead)
    assert clock(Hands("2035-01-01T00:11:00")).take(ahead) > ahead


@pytest.mark.parametrize("ahead", ["20350101001001000", "20360101000000", "99999999999999999"])
def test_refuses_a_timeline_that_is_far_ahead(ahead: str) -> None:
    hands = Hands("2035-01-01T00:00:00")
    with pytest.raises(UnsupportedFeatureError, match=f"ahead of this machine's clock: {ahead}"):
        clock(hands).take(ahead)
    assert hands.slept == []


def test_peeking_takes_nothing() -> None:
    hands = Hands("2037-01-01T00:00:00")
    assert clock(hands).peek() == clock(hands).peek() == "20370101000000000"
    assert clock(hands).take() == "20370101000000000"
