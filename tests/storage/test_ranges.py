"""The plan covers what was asked, in few requests, none too large."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_storage.ranges import plan_ranges

SIZE = 2000
CONTENT = bytes(number * 7 % 251 for number in range(SIZE))

some_range = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(some_range, max_size=12), st.integers(0, 300), st.integers(1, 700))
def test_answers_make_up_what_was_asked(ranges: list[tuple[int, int]], gap: int, largest: int) -> None:
    plan = plan_ranges(ranges, gap, largest)
    answers = [CONTENT[start:stop] for start, stop in plan.requests]
    assert plan.cut(answers) == [CONTENT[start:stop] for start, stop in ranges]


@given(st.lists(some_range, max_size=12), st.integers(0, 300), st.integers(1, 700))
def test_requests_are_in_order_disjoint_and_not_too_large(
    ranges: list[tuple[int, int]], gap: int, largest: int
) -> None:
    requests = plan_ranges(ranges, gap, largest).requests
    assert all(0 < stop - start <= largest for start, stop in requests)
    assert all(before[1] <= after[0] for before, after in pairwise(requests))


@given(st.lists(some_range, max_size=12), st.integers(0, 300))
def test_nothing_is_fetched_for_nothing(ranges: list[tuple[int, int]], gap: int) -> None:
    """Every byte of a request was asked for, or lies in a hole smaller than the gap."""
    asked = bytearray(SIZE)
    for start, stop in ranges:
        asked[start:stop] = b"\1" * (stop - start)
    requests = plan_ranges(ranges, gap, SIZE).requests
    for start, stop in requests:
        assert asked[start]
        assert asked[stop - 1]
        assert bytes(max(gap, 1)) not in asked[start:stop]
    for before, after in pairwise(requests):
        assert after[0] - before[1] >= gap


def test_close_ranges_are_one_request() -> None:
    assert plan_ranges([(0, 10), (10 + 64 * 1024 - 1, 10 + 64 * 1024)]).requests == ((0, 10 + 64 * 1024),)
    assert len(plan_ranges([(0, 10), (10 + 64 * 1024, 11 + 64 * 1024)]).requests) == 2


def test_large_ranges_are_cut() -> None:
    sizes = [stop - start for start, stop in plan_ranges([(0, 20 * 2**20)]).requests]
    assert sizes == [8 * 2**20, 8 * 2**20, 4 * 2**20]


@pytest.mark.parametrize("wrong", [(-1, 2), (3, 2)])
def test_what_is_no_range(wrong: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no byte range"):
        plan_ranges([(0, 1), wrong])
