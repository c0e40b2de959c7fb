"""Which rows of the row store come out together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

_MASK_AT_ONCE = 1 << 20
_LEAST_SHARE = 4  # a portion that ends with a batch has at least one in so many of the rows it might have


def split_into_portions(mask: np.ndarray, at_once: int, starts: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield where a mask is set, in rising order, so many places at a time at most.

    Args:
        mask: for each row whether it is wanted.
        at_once: most places together.
        starts: where batches of rows start; few places are taken from two, as that copies the rows once more.
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
