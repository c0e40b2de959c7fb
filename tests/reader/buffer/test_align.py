"""Rounds hold every version once, in log order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.reader.buffer.align import number_keys, number_positions, split_into_rounds


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
