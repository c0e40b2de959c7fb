"""Matching: only the first of equal base keys matches the log, batch by batch as in the whole file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError
from hoodie_py.reader.base.match import (
    NO_MATCHES,
    KeyMatcher,
    Matcher,
    RowMatcher,
    make_position_matcher,
    match_base,
    match_base_rows,
)
from hoodie_py.reader.buffer.folded_log import FoldedLog
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.read_info import ReadStats
from hoodie_py.reader.record.row_store import RowStore
from tests.reader.histories import SCHEMA, Version, context, entries


def match_whole(base: pa.ChunkedArray, log_keys: pa.Array) -> np.ndarray:
    return match_base(base, log_keys, np.zeros(len(log_keys), bool))


def match_positions(positions: np.ndarray, base_rows: int) -> np.ndarray:
    records = entries(context(RowStore(SCHEMA)), [Version("k", "block", 0, 0)] * len(positions))
    assert records is not None
    spill = Spill(MemoryBudget(1 << 20), ReadStats())
    return match_base_rows(FoldedLog([records], [positions]), (), base_rows, spill)


def test_a_repeated_base_key_meets_the_log_once() -> None:
    base = pa.chunked_array([["a", "b"], ["b", "c", "a"]])
    assert match_whole(base, pa.array(["b", "a", "x"])).tolist() == [1, 0, -1, -1, -1]


def test_no_log_keys_match_nothing() -> None:
    assert match_whole(pa.chunked_array([["a"]]), pa.array([], pa.string())).tolist() == [-1]
    assert match_whole(pa.chunked_array([], pa.string()), pa.array(["a"])).dtype == np.int64


def test_positions_name_base_rows_and_must_lie_within_the_file() -> None:
    assert match_positions(np.array([0, 3]), 5).tolist() == [0, -1, -1, 1, -1]
    with pytest.raises(CorruptFileError, match="row 5 of a base file that has 5 rows"):
        match_positions(np.array([5]), 5)


def met(matcher: Matcher, sizes: list[int], keys: list[str]) -> list[tuple[int, int]]:
    """Ask batch by batch and give (row of the file, record)."""
    found, done = [], 0
    for size in sizes:
        batch = pa.record_batch({"k": pa.array(keys[done : done + size], pa.string())})
        rows, records = matcher.match(batch)
        found += [(done + row, record) for row, record in zip(rows.tolist(), records.tolist(), strict=True)]
        done += size
    return found


@given(
    st.lists(st.sampled_from("abcdef"), max_size=30),
    st.lists(st.sampled_from("abcdxyz"), unique=True),
    st.integers(1, 7),
)
def test_meetings_batch_by_batch_are_those_of_the_whole_file(base: list[str], log: list[str], size: int) -> None:
    log_keys = pa.array(log, pa.string())
    at = match_whole(pa.chunked_array([base], pa.string()), log_keys)
    want = [(row, record) for row, record in enumerate(at.tolist()) if record >= 0]
    sizes = [size] * (len(base) // size) + [len(base) % size]
    assert met(KeyMatcher(log_keys, lambda batch: batch.column("k")), sizes, base) == want
    assert met(RowMatcher(at), sizes, base) == want


@given(st.sets(st.integers(0, 29)), st.integers(1, 7))
def test_meetings_by_position(positions: set[int], size: int) -> None:
    places = np.array(sorted(positions), np.int64)
    sizes = [size] * (30 // size) + [30 % size]
    assert met(make_position_matcher(places, 30), sizes, ["a"] * 30) == list(
        zip(sorted(positions), range(30), strict=False)
    )


def test_positions_beyond_the_file_and_no_log() -> None:
    with pytest.raises(CorruptFileError):
        make_position_matcher(np.array([30]), 30)
    assert met(NO_MATCHES, [3], ["a", "b", "c"]) == []
