"""Wanted rows come out in order, each once, and whole batches together where they are large enough."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.reader.file_group import split_into_portions


@given(st.lists(st.lists(st.booleans(), max_size=9), max_size=6), st.integers(1, 12))
def test_every_place_once_and_few_at_a_time(batches: list[list[bool]], at_once: int) -> None:
    mask = np.array([wanted for batch in batches for wanted in batch], bool)
    starts = list(accumulate(map(len, batches), initial=0))
    portions = list(split_into_portions(mask, at_once, starts))
    assert [place for portion in portions for place in portion] == np.flatnonzero(mask).tolist()
    assert all(0 < len(portion) <= at_once for portion in portions)


def test_a_portion_ends_with_a_batch_unless_it_were_small() -> None:
    mask = np.ones(2100, bool)
    portions = split_into_portions(mask, 1000, [0, 900, 1800, 1900, 2100])
    assert [(int(portion[0]), len(portion)) for portion in portions] == [(0, 900), (900, 1000), (1900, 200)]
    portions = split_into_portions(mask, 1000, [0, 100, 2100])
    assert [len(portion) for portion in portions] == [1000, 1000, 100]
