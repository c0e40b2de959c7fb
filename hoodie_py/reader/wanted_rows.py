"""Splits the wanted rows of the row store into portions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

_MASK_AT_ONCE = 1 << 20
_LEAST_SHARE = 4  # a portion ends early, with a stored batch, only if it has a quarter of the rows that it may have


def split_into_portions(mask: np.ndarray, at_once: int, starts: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield the numbers of the rows where a mask is set, in rising order.

    Args:
        mask: for each row whether it is wanted.
        at_once: most rows in a portion.
        starts: where stored batches start. A portion rarely takes rows of two batches, as joining them is one more
            copy.
    """
    for start in range(0, len(mask), _MASK_AT_ONCE):
        found = start + np.flatnonzero(mask[start : start + _MASK_AT_ONCE])
        cuts = np.searchsorted(found, starts)
        first = 0
        while first < len(found):
            last = first + at_once
            fitting = cuts[np.searchsorted(cuts, last, "right") - 1]
            if fitting - first >= max(1, at_once // _LEAST_SHARE):
                last = int(fitting)
            yield found[first:last]
            first = last
