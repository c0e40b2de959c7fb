"""A set of instants, and its pickled form."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.formats.timeline.instants import InstantSet

_TIMES = st.integers(0, 10**32 - 1).flatmap(
    lambda number: st.sampled_from(
        (f"{number:032d}", f"{number % 10**17:017d}", f"{number % 10**14:014d}", str(number))
    )
)


@given(st.sets(_TIMES, max_size=20))
def test_travels(times: set[str]) -> None:
    instants = InstantSet(times)
    copy = pickle.loads(pickle.dumps(instants))
    assert copy == instants == frozenset(times)
    assert type(copy) is InstantSet


def test_is_small() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    times = [begin + timedelta(milliseconds=number * 600_007 + number**2 % 7919) for number in range(10_000)]
    instants = InstantSet(f"{each:%Y%m%d%H%M%S}{each.microsecond // 1000:03d}" for each in times)
    assert len(pickle.dumps(instants)) < 48 << 10
