"""Which rows meet: log entries by key (or position) and rank, base rows by key or position.

The n-th version of a key in log order has rank n.  A fold over ranks merges each key's versions in log order and all
keys
at once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import CorruptFileError


def number_keys(keys: pa.Array) -> tuple[np.ndarray, int]:
    """Number the distinct keys in order of first appearance.

    Returns:
        (codes, count): int64 number of each entry's key, and how many keys there are.
    """
    encoded = keys.dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


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

    A key that the base file holds more than once meets its log entry on the first row only, as in Hudi's key-based
    buffer.

    Args:
        base_keys: the record keys of the whole base file in row order.
        log_keys: the distinct keys of the log.
    """
    found = pc.index_in(base_keys, value_set=log_keys)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    at: np.ndarray = found.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    hits = np.flatnonzero(at >= 0)
    _, first = np.unique(at[hits], return_index=True)
    if len(first) < len(hits):
        again = np.ones(len(hits), bool)
        again[first] = False
        at[hits[again]] = -1
    return at


def match_positions(positions: np.ndarray, base_rows: int) -> np.ndarray:
    """Find for each base row the log record that was written for its position, -1 for none.

    Args:
        positions: distinct row numbers of the base file, one a log record.
        base_rows: rows of the base file.

    Raises:
        CorruptFileError: a position lies beyond the file's end.
    """
    if len(positions) and int(positions.max()) >= base_rows:
        raise CorruptFileError(
            f"Log blocks name row {int(positions.max())} of a base file that has {base_rows} rows.",
            hint="Read with hoodie.merge.use.record.positions=false to pair rows by key.",
        )
    at = np.full(base_rows, -1, np.int64)
    at[positions] = np.arange(len(positions))
    return at
