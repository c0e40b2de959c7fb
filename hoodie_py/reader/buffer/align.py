"""Numbers the keys (or positions) of log entries, and splits the entries into rounds of a fold.

The n-th version of a key in log order has rank n, and round n holds the versions of rank n. So a fold over rounds
merges the versions of each key in log order, as Hudi's KeyBasedFileGroupRecordBuffer and
PositionBasedFileGroupRecordBuffer do one by one, but it merges all keys at once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import to_numbers
from hoodie_py.arrow.compute import call

_SPARSE = 64  # a table of all positions up to the largest one may be this many times longer than the entries


def number_keys(keys: pa.Array) -> tuple[np.ndarray, int]:
    """Number the distinct keys in order of first appearance.

    Returns:
        (codes, count): int64 number of each entry's key, and how many keys there are.
    """
    encoded = call("dictionary_encode", keys)
    return to_numbers(encoded.indices).astype(np.int64), len(encoded.dictionary)


def number_positions(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct positions in rising order.

    Returns:
        (distinct, codes): the distinct positions, and for each entry the number of its position, both int64.
    """
    top = int(positions.max(initial=0)) + 1
    if top > _SPARSE * len(positions):
        return np.unique(positions, return_inverse=True)
    # Marking positions in a table gives the same answer as np.unique, without its sort.
    is_used = np.zeros(top, bool)
    is_used[positions] = True
    distinct = np.flatnonzero(is_used)
    codes = np.empty(top, np.int64)
    codes[distinct] = np.arange(len(distinct))
    return distinct, codes[positions]


def split_into_rounds(codes: np.ndarray, count: int) -> list[np.ndarray]:
    """Split entries into rounds: round r holds for each key the index of its version of rank r.

    Args:
        codes: key number per entry, in log order.
        count: how many keys there are.
    """
    if not len(codes):
        return []
    # The stable sort puts the versions of a key side by side in log order, so a rank is the distance from the first.
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes, minlength=count)
    starts = np.cumsum(sizes) - sizes
    ranks = np.arange(len(codes)) - np.repeat(starts, sizes)
    by_rank = np.argsort(ranks, kind="stable")
    bounds = np.searchsorted(ranks[by_rank], np.arange(ranks.max() + 2))
    return [order[by_rank[bounds[r] : bounds[r + 1]]] for r in range(len(bounds) - 1)]
