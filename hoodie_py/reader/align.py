"""Which rows meet: log entries by key (or position) and rank, base rows by key or position.

The n-th version of a key in log order has rank n.  A fold over ranks merges each key's versions in log order and all
keys at once.  Base rows are asked for batch by batch, so what is held depends on the log alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.arrays import join_chunks, to_numbers
from hoodie_py.formats.kernels import call, index_in

_SPARSE = 64  # numbers in so many times more places than there are numbers are sorted


def number_keys(keys: pa.Array) -> tuple[np.ndarray, int]:
    """Number the distinct keys in order of first appearance.

    Returns:
        (codes, count): int64 number of each entry's key, and how many keys there are.
    """
    encoded = call("dictionary_encode", keys)
    return to_numbers(encoded.indices).astype(np.int64), len(encoded.dictionary)


def number_positions(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct positions in rising order, and for each entry which of them is its own, both int64."""
    top = int(positions.max(initial=0)) + 1
    if top > _SPARSE * len(positions):
        return np.unique(positions, return_inverse=True)
    there = np.zeros(top, bool)
    there[positions] = True
    places = np.flatnonzero(there)
    codes = np.empty(top, np.int64)
    codes[places] = np.arange(len(places))
    return places, codes[positions]


def split_into_rounds(codes: np.ndarray, count: int) -> list[np.ndarray]:
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


def find_keys(base_keys: pa.ChunkedArray, log_keys: pa.Array) -> np.ndarray:
    """Find for each base row the log key that equals its own, -1 for none."""
    found = index_in(base_keys, log_keys)
    return to_numbers(join_chunks(found), -1).astype(np.int64)


def match_base(base_keys: pa.ChunkedArray, log_keys: pa.Array, met: np.ndarray | None = None) -> np.ndarray:
    """Find for each base row the log key it meets, -1 for none.

    A key that the base file holds more than once meets its log entry on the first row only, as in Hudi's key-based
    buffer.

    Args:
        base_keys: record keys of the base file in row order, all or the next some.
        log_keys: the distinct keys of the log.
        met: bool per log key: an earlier base row met it; those met now are marked.  None where these rows are all.
    """
    at = find_keys(base_keys, log_keys)
    hits = np.flatnonzero(at >= 0)
    codes, first = np.unique(at[hits], return_index=True)
    meets = np.zeros(len(hits), bool)
    meets[first if met is None else first[~met[codes]]] = True
    if met is not None:
        met[codes] = True
    if not meets.all():
        at[hits[~meets]] = -1
    return at


def match_positions(positions: np.ndarray, base_rows: int) -> np.ndarray:
    """Find for each base row the log record that was written for its position, -1 for none.

    Args:
        positions: distinct row numbers of the base file, one a log record.
        base_rows: rows of the base file.

    Raises:
        CorruptFileError: a position lies beyond the file's end.
    """
    check_positions(positions, base_rows)
    at = np.full(base_rows, -1, np.int64)
    at[positions] = np.arange(len(positions))
    return at


def check_positions(positions: np.ndarray, base_rows: int) -> None:
    """Raise where a position lies beyond the base file's end."""
    if len(positions) and int(positions.max()) >= base_rows:
        raise CorruptFileError(
            f"Log blocks name row {int(positions.max())} of a base file that has {base_rows} rows.",
            hint="Read with hoodie.merge.use.record.positions=false to pair rows by key.",
        )


Pairs = tuple[np.ndarray, np.ndarray]
_NONE = np.empty(0, np.int64)


class Matcher(Protocol):
    """Says which log records the rows of a base file meet."""

    def match(self, batch: pa.RecordBatch) -> Pairs:
        """Return for the next rows of the file which of them, counted from the batch's start, meet which log record."""


class ListedMatcher:
    """Which rows meet log records is known from the start.

    Args:
        rows: ascending row numbers of the base file.
        records: the log record that each meets.
    """

    def __init__(self, rows: np.ndarray, records: np.ndarray) -> None:
        self._rows = rows
        self._records = records
        self._done = 0

    def match(self, batch: pa.RecordBatch) -> Pairs:
        first, last = np.searchsorted(self._rows, [self._done, self._done + batch.num_rows])
        rows = self._rows[first:last] - self._done
        self._done += batch.num_rows
        return rows, self._records[first:last]


class RowMatcher:
    """Which rows meet log records is known row by row.

    Args:
        at: for each row of the base file the number of the log record it meets, -1 for none.
    """

    def __init__(self, at: np.ndarray) -> None:
        self._at = at
        self._done = 0

    def match(self, batch: pa.RecordBatch) -> Pairs:
        at = self._at[self._done : self._done + batch.num_rows]
        self._done += batch.num_rows
        rows = np.flatnonzero(at >= 0)
        return rows, np.asarray(at[rows])


NO_MATCHES = ListedMatcher(_NONE, _NONE)


def make_position_matcher(positions: np.ndarray, base_rows: int) -> ListedMatcher:
    """Let each log record meet the row that it was written for.

    Args:
        positions: ascending row numbers of the base file, one a log record.
        base_rows: rows of the base file.

    Raises:
        CorruptFileError: a position lies beyond the file's end.
    """
    check_positions(positions, base_rows)
    return ListedMatcher(positions, np.arange(len(positions)))


class KeyMatcher:
    """A log record meets the first row of its key, as in Hudi's key-based buffer.

    Args:
        log_keys: the distinct keys of the log.
        keys_of: gives the keys of a batch.
    """

    def __init__(self, log_keys: pa.Array, keys_of: Callable[[pa.RecordBatch], pa.Array]) -> None:
        self._log_keys = log_keys
        self._keys_of = keys_of
        self._met = np.zeros(len(log_keys), bool)
        self._row = np.empty(len(log_keys), np.int64)  # of the latest batch, to see keys that it repeats

    def match(self, batch: pa.RecordBatch) -> Pairs:
        found = index_in(self._keys_of(batch), self._log_keys)
        if found.null_count == len(found):
            return _NONE, _NONE
        at = to_numbers(found, -1)
        rows = np.flatnonzero(at >= 0)
        records = at[rows]
        fresh = ~self._met[records]
        self._met[records] = True
        self._row[records] = rows
        if (self._row[records] != rows).any():
            again = np.ones(len(records), bool)
            again[np.unique(records, return_index=True)[1]] = False
            fresh &= ~again
        return (rows, records) if fresh.all() else (rows[fresh], records[fresh])
