"""Rounds and matching: every version once, in log order, and only the first of equal base keys meets the log."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError
from hoodie_py.reader.align import match_base, match_positions, number_keys, rounds


@given(st.lists(st.integers(0, 6), max_size=60))
def test_rounds_hold_each_entry_once_in_log_order(keys: list[int]) -> None:
    codes, count = number_keys(pa.array([str(key) for key in keys], pa.string()))
    steps = rounds(codes, count)
    seen: dict[int, list[int]] = {}
    for step in steps:
        assert len(set(codes[step])) == len(step)
        for entry in step.tolist():
            seen.setdefault(keys[entry], []).append(entry)
    assert seen == {key: [i for i, k in enumerate(keys) if k == key] for key in set(keys)}


def test_a_repeated_base_key_meets_the_log_once() -> None:
    base = pa.chunked_array([["a", "b"], ["b", "c", "a"]])
    assert match_base(base, pa.array(["b", "a", "x"])).tolist() == [1, 0, -1, -1, -1]


def test_no_log_keys_match_nothing() -> None:
    assert match_base(pa.chunked_array([["a"]]), pa.array([], pa.string())).tolist() == [-1]
    assert match_base(pa.chunked_array([], pa.string()), pa.array(["a"])).dtype == np.int64


def test_positions_name_base_rows_and_must_lie_within_the_file() -> None:
    assert match_positions(np.array([0, 3]), 5).tolist() == [0, -1, -1, 1, -1]
    with pytest.raises(CorruptFileError, match="row 5 of a base file that has 5 rows"):
        match_positions(np.array([5]), 5)
