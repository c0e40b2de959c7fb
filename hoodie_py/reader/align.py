"""Which rows meet: log entries by key and rank, base rows by key.

The n-th version of a key in log order has rank n.  A fold over ranks merges each key's versions in log order and all keys
at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class KeyTable:
    """The distinct keys of a run of entries.

    Attributes:
        keys: distinct keys in order of first appearance.
        codes: int64 per entry: the index of its key.
    """

    keys: pa.Array
    codes: np.ndarray

    @classmethod
    def of(cls, keys: pa.Array) -> KeyTable:
        """Number the keys of all entries."""
        encoded = keys.dictionary_encode()
        return cls(encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))

    def __len__(self) -> int:
        return len(self.keys)


def rounds(codes: np.ndarray, count: int) -> list[np.ndarray]:
    """Split entries into rounds: round r holds the index of every key's version of rank r.

    Args:
        codes: key number per entry, in log order.
        count: how many keys there are.
    """
    if not len(codes):
        return []
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes, minlength=count)
    starts = np.cumsum(sizes) - sizes
    ranks = np.arange(len(codes)) - np.repeat(starts, sizes)
    by_rank = np.argsort(ranks, kind="stable")
    bounds = np.searchsorted(ranks[by_rank], np.arange(ranks.max() + 2))
    return [order[by_rank[bounds[r] : bounds[r + 1]]] for r in range(len(bounds) - 1)]


def match_base(base_keys: pa.ChunkedArray, log_keys: pa.Array) -> np.ndarray:
    """Find for each base row the log key it meets, -1 for none.

    A key that the base file holds more than once meets its log entry on the first row only, as in Hudi's key-based buffer.

    Args:
        base_keys: the record keys of the whole base file in row order.
        log_keys: the distinct keys of the log.
    """
    found = pc.index_in(base_keys, value_set=log_keys)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    at = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    hits = np.flatnonzero(at >= 0)
    _, first = np.unique(at[hits], return_index=True)
    if len(first) < len(hits):
        again = np.ones(len(hits), bool)
        again[first] = False
        at[hits[again]] = -1
    return at
