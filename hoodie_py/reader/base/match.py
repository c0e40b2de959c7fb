"""Finds the log record that each base row matches, by key or by position in the base file.

Base rows are matched batch by batch where possible, so memory depends on the log alone. A log that was folded in memory
is one part: its keys are hashed, and base keys are looked up in them. A log in many parts lies on disk: base keys are
split into the same parts on disk first, and each part is matched with its own base keys.

By key a log record matches only the first base row of its key, as in Hudi's KeyBasedFileGroupRecordBuffer. By position
it matches the row that it was written for, as in PositionBasedFileGroupRecordBuffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import index_in, join_batches, to_numbers
from hoodie_py.errors import CorruptFileError
from hoodie_py.reader.buffer.folded_log import FoldedLog
from hoodie_py.reader.buffer.spilled_log import split_by_part
from hoodie_py.reader.memory.spill import Spill, group_to_size

Pairs = tuple[np.ndarray, np.ndarray]
_NONE = np.empty(0, np.int64)


class Matcher(Protocol):
    """Matches the rows of a base file with log records, batch by batch in file order."""

    def match(self, batch: pa.RecordBatch) -> Pairs:
        """Return which of the next rows match, counted from the batch's start, and the log record of each."""


class ListedMatcher:
    """Matches rows that are known for the whole file: ascending row numbers, and the log record of each."""

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
    """Matches by an array over the whole file: for each row the number of its log record, -1 for none."""

    def __init__(self, at: np.ndarray) -> None:
        self._at = at
        self._done = 0

    def match(self, batch: pa.RecordBatch) -> Pairs:
        at = self._at[self._done : self._done + batch.num_rows]
        self._done += batch.num_rows
        rows = np.flatnonzero(at >= 0)
        return rows, np.asarray(at[rows])


class KeyMatcher:
    """Matches by looking up each batch's keys in the distinct keys of the log."""

    def __init__(self, log_keys: pa.Array, keys_of: Callable[[pa.RecordBatch], pa.Array]) -> None:
        self._log_keys = log_keys
        self._keys_of = keys_of
        self._is_matched = np.zeros(len(log_keys), bool)
        self._last_row = np.empty(len(log_keys), np.int64)  # of the latest batch, per log key

    def match(self, batch: pa.RecordBatch) -> Pairs:
        found = index_in(self._keys_of(batch), self._log_keys)
        if found.null_count == len(found):
            return _NONE, _NONE
        at = to_numbers(found, -1)
        rows = np.flatnonzero(at >= 0)
        records = at[rows]
        is_first = ~self._is_matched[records]
        self._is_matched[records] = True
        # Where a key repeats in the batch, the assignment keeps its last row, so an earlier row reads back another one.
        self._last_row[records] = rows
        if (self._last_row[records] != rows).any():
            is_repeated = np.ones(len(records), bool)
            is_repeated[np.unique(records, return_index=True)[1]] = False
            is_first &= ~is_repeated
        return (rows, records) if is_first.all() else (rows[is_first], records[is_first])


NO_MATCHES = ListedMatcher(_NONE, _NONE)


def make_position_matcher(positions: np.ndarray, base_rows: int) -> ListedMatcher:
    """Match each log record with the row that it was written for; ``positions`` are ascending row numbers.

    Raises:
        CorruptFileError: a position lies beyond the file's end.
    """
    _check_positions(positions, base_rows)
    return ListedMatcher(positions, np.arange(len(positions)))


def match_base(base_keys: pa.ChunkedArray, log_keys: pa.Array, matched: np.ndarray | None) -> np.ndarray:
    """Find for each of the next base rows the log key that it matches, -1 for none.

    ``matched``: for each of the distinct log keys, whether an earlier row matched it; it is updated, so that only the
    first row of a repeated base key matches. With None every row of a key matches.
    """
    found = index_in(base_keys, log_keys)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    at = to_numbers(found, -1).astype(np.int64)
    if matched is None:
        return at
    hits = np.flatnonzero(at >= 0)
    # np.unique gives the first of these rows for each key.
    codes, first = np.unique(at[hits], return_index=True)
    stays = np.zeros(len(hits), bool)
    stays[first[~matched[codes]]] = True
    matched[codes] = True
    if not stays.all():
        at[hits[~stays]] = -1
    return at


def _check_positions(positions: np.ndarray, base_rows: int) -> None:
    """Raise CorruptFileError where a position lies beyond the base file's end."""
    if len(positions) and int(positions.max()) >= base_rows:
        raise CorruptFileError(
            f"Log blocks name row {int(positions.max())} of a base file that has {base_rows} rows.",
            hint="Read with hoodie.merge.use.record.positions=false to pair rows by key.",
        )


def match_base_rows(
    folded: FoldedLog, base_keys: Iterable[pa.Array], base_rows: int, spill: Spill, *, again: bool = False
) -> np.ndarray:
    """Find for each base row the number of the log record that it matches, -1 for none.

    ``base_keys``: the base file's record keys in row order; not read if rows match by position. ``again``: a log record
    matches every row of its key, not only the first.

    Raises:
        CorruptFileError: a position lies beyond the file's end.
        StorageError: the disk is full or fails.
    """
    if folded.positions is not None:
        return _match_by_position(folded.starts, folded.positions, base_rows, spill)
    if len(folded.parts) == 1:
        return _match_one_part(folded, base_keys, base_rows, spill, again=again)
    return _match_part_by_part(folded, base_keys, base_rows, spill, again=again)


def _match_by_position(starts: np.ndarray, positions: Sequence[np.ndarray], base_rows: int, spill: Spill) -> np.ndarray:
    at = spill.make_array(base_rows, np.int64, -1)
    for start, rows in zip(starts.tolist(), positions, strict=False):
        _check_positions(rows, base_rows)
        at[rows] = np.arange(start, start + len(rows))
    return at


def _match_one_part(
    folded: FoldedLog, base_keys: Iterable[pa.Array], base_rows: int, spill: Spill, *, again: bool
) -> np.ndarray:
    at = spill.make_array(base_rows, np.int64, -1)
    log_keys = folded.parts[0].keys
    matched = None if again else np.zeros(len(log_keys), bool)
    done = 0
    # Each look-up hashes all log keys, so few are better.
    for keys in map(pa.chunked_array, group_to_size(base_keys, spill.budget.portion)):
        at[done : done + len(keys)] = match_base(keys, log_keys, matched)
        done += len(keys)
    return at


def _match_part_by_part(
    folded: FoldedLog, base_keys: Iterable[pa.Array], base_rows: int, spill: Spill, *, again: bool
) -> np.ndarray:
    partition = folded.partition
    assert partition is not None
    at = spill.make_array(base_rows, np.int64, -1)
    split_keys = split_by_part(
        spill,
        _number_rows(base_keys),
        lambda batch: partition.key_hash.assign_keys(batch.column("key"), partition.count),
        partition.count,
    )
    for start, number, part in zip(folded.starts.tolist(), partition.numbers, folded.parts, strict=False):
        matched = None if again else np.zeros(len(part), bool)
        for batch in map(join_batches, group_to_size(map(spill.read_copy, split_keys[number]), spill.budget.portion)):
            keys = pa.chunked_array([batch.column("key")])
            found = match_base(keys, part.keys, matched)
            hits = np.flatnonzero(found >= 0)
            at[batch.column("row").to_numpy()[hits]] = start + found[hits]
    return at


def _number_rows(base_keys: Iterable[pa.Array]) -> Iterator[pa.RecordBatch]:
    """Add the row numbers of the base file to its keys, as splitting into parts loses the order."""
    done = 0
    for keys in base_keys:
        rows = pa.array(np.arange(done, done + len(keys)))
        yield pa.RecordBatch.from_arrays([rows, keys], names=["row", "key"])
        done += len(keys)
