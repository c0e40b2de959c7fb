"""Folding by rounds gives what folding record by record gives, for every history."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import MergeError
from hoodie_py.reader.buffer.log_buffer import LogBuffer, number_keys, number_positions, split_into_rounds
from hoodie_py.reader.merge.custom import CustomStrategy
from hoodie_py.reader.merge.strategies import CommitTimeStrategy, EventTimeStrategy, MergeStrategy
from hoodie_py.reader.record.record import DEFAULT_ORDERING
from hoodie_py.reader.record.row_store import RowStore
from tests.reader.histories import (
    SCHEMA,
    Tangled,
    Version,
    context,
    entries,
    event_time,
    expected,
    outcome,
    sequential,
    tangled,
    versions,
)


class Folded(EventTimeStrategy):
    """Event time without the closed form."""

    def find_winners(self, *args: object) -> None:
        return None


def fold(strategy: MergeStrategy, history: list[Version]) -> dict[str, object]:
    buffer = LogBuffer(strategy)
    batch = entries(context(RowStore(SCHEMA)), history)
    if batch is not None:
        buffer.add(batch, "001")
    result = buffer.fold()
    return {} if result is None else outcome(result.take(np.arange(len(result))))


@given(versions(foreign=True))
def test_event_time_by_rounds_equals_a_sequential_fold(history: list[Version]) -> None:
    if any(type(v.ordering).__name__ == "ForeignValue" for v in history) and any(v.kind != "block" for v in history):
        history = [v for v in history if v.kind == "block"]  # rows on a foreign delete do not compare: see below
    assert fold(EventTimeStrategy(), history) == expected(sequential(history, event_time))


@given(versions())
def test_event_time_with_rows_and_deletes(history: list[Version]) -> None:
    want = expected(sequential(history, event_time))
    assert fold(EventTimeStrategy(), history) == want
    assert fold(Folded(), history) == want


@given(versions())
def test_commit_time_keeps_the_last_version(history: list[Version]) -> None:
    assert fold(CommitTimeStrategy(), history) == expected(sequential(history, lambda a, b: b))


@given(versions())
def test_a_merger_that_is_not_associative(history: list[Version]) -> None:
    assert fold(CustomStrategy(Tangled(), {}), history) == expected(sequential(history, tangled))


def test_thousands_of_versions_of_one_key() -> None:
    history = [Version("a", "row", i % 7, i % 100) for i in range(3000)] + [Version("b", "row", 1, 1)]
    assert fold(CustomStrategy(Tangled(), {}), history) == expected(sequential(history, tangled))


def test_an_unordered_delete_is_forgotten_once_a_later_row_replaces_it() -> None:
    history = [Version("a", "row", 5, 1), Version("a", "block", DEFAULT_ORDERING, 0), Version("a", "row", 1, 2)]
    assert fold(EventTimeStrategy(), history) == {"a": (False, 1, 2)}


def test_live_rows_without_order_name_key_and_instants() -> None:
    buffer = LogBuffer(EventTimeStrategy())
    ctx = context(RowStore(SCHEMA))
    for instant, ordering in (("001", None), ("002", 7)):
        batch = entries(ctx, [Version("a", "row", ordering, 1)])
        assert batch is not None
        buffer.add(batch, instant)
    with pytest.raises(MergeError, match=r"DEFAULT_ORDERING and 7\. .*key=a.*instants=001 002"):
        buffer.fold()


def test_no_entries_fold_to_nothing() -> None:
    assert LogBuffer(CommitTimeStrategy()).fold() is None


@given(st.lists(st.integers(0, 6), max_size=60))
def test_rounds_hold_each_entry_once_in_log_order(keys: list[int]) -> None:
    codes, count = number_keys(pa.array([str(key) for key in keys], pa.string()))
    steps = split_into_rounds(codes, count)
    seen: dict[int, list[int]] = {}
    for step in steps:
        assert len(set(codes[step])) == len(step)
        for entry in step.tolist():
            seen.setdefault(keys[entry], []).append(entry)
    assert seen == {key: [i for i, k in enumerate(keys) if k == key] for key in set(keys)}


@given(st.lists(st.integers(0, 20) | st.integers(0, 1 << 62), max_size=40))
def test_positions_are_numbered_in_rising_order(positions: list[int]) -> None:
    places, codes = number_positions(np.array(positions, np.int64))
    assert places.tolist() == sorted(set(positions))
    assert [places[code] for code in codes] == positions
