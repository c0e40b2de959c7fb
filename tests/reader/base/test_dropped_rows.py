"""Rows that are dropped are left out where they are met, however many are asked for at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.reader.base.base_merge import DroppedRows


@given(
    st.lists(st.booleans(), max_size=40),
    st.lists(st.integers(0, 40)),
    st.lists(st.integers(0, 40)),
    st.integers(1, 50),
)
def test_what_was_noted_in_parts_is_left_out_in_parts(
    drop: list[bool], noted_at: list[int], asked_at: list[int], mask_rows: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hoodie_py.reader.base.base_merge._MASK_ROWS", mask_rows)
        see(drop, noted_at, asked_at)


def see(drop: list[bool], noted_at: list[int], asked_at: list[int]) -> None:
    rows, count = np.flatnonzero(drop), len(drop)
    dropped = DroppedRows(np.zeros(len(rows) + 3, np.int64))
    for first, last in pairwise(sorted({0, len(rows), *(at for at in noted_at if at < len(rows))})):
        dropped.note(rows[first:last])
    stays: list[bool] = []
    for first, last in pairwise(sorted({0, count, *(at for at in asked_at if at < count)})):
        keep = dropped.make_mask(last - first)
        assert keep is None or keep.true_count < len(keep) == last - first
        stays += [True] * (last - first) if keep is None else keep.to_pylist()
    assert stays == [not gone for gone in drop]
