"""Merge strategies: one class for each merge mode.

``delta_merge`` merges log versions, ``final_merge`` a log version with its base row. Both take aligned batches (record
i of both has the same key) and return as many records. They agree with Hudi's BufferedRecordMergerFactory:

* Commit time: the newer version wins. Ordering values are not read.
* Event time: the newer version wins if either version is a delete that commit time orders. Otherwise the greater
  ordering value wins, and the newer version on a tie. Two more rules hold for an entry of a delete block: it is dropped
  if the older version is a delete that commit time orders, and it wins if its ordering value has another class.
* With a partial update mode: the same winner. A live winner takes values from a live loser.
* After a partial log block: the same winner. It takes the columns that it lacks from the loser.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from hoodie_py.errors import MergeError
from hoodie_py.reader.merge.partial_update import PartialUpdateHandler, combine_columns, fill_values
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.ordering import classes_differ, compare, make_sort_codes
from hoodie_py.reader.record.row_store import NO_ROW


class MergeStrategy(ABC):
    """Decides between aligned older and newer versions."""

    bytes_a_pair: ClassVar[int] = 128  # about what the merge of a pair takes, without the pair's rows

    @abstractmethod
    def delta_merge(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        """Merge log entries (newer) with the result of the earlier log entries (older)."""

    @abstractmethod
    def final_merge(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        """Merge the result of the log (newer) with base rows (older)."""

    @abstractmethod
    def switch_to_partial(self) -> MergeStrategy:
        """Return the strategy that applies from the first partial log block of a file group on."""

    def convert_inserts(self, entries: BufferedBatch) -> BufferedBatch:
        """Return the final records of log records whose key has no base row."""
        return entries

    def find_winners(self, entries: BufferedBatch, codes: np.ndarray, count: int) -> np.ndarray | None:
        """Return the entry of each key that repeated ``delta_merge`` would return; None if only merging can decide.

        ``codes``: the key number, below ``count``, of each entry in log order.
        """
        return None


class OrderedStrategy(MergeStrategy):
    """A built-in merge mode: one of the two versions wins unchanged."""

    @abstractmethod
    def newer_wins_delta(self, older: BufferedBatch, newer: BufferedBatch) -> np.ndarray:
        """Return for each pair of log versions whether the newer one wins."""

    @abstractmethod
    def newer_wins_final(self, older: BufferedBatch, newer: BufferedBatch) -> np.ndarray:
        """Return for each pair of base row and log version whether the log version wins."""

    def delta_merge(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return _select_winners(self.newer_wins_delta(older, newer), older, newer)

    def final_merge(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return _select_winners(self.newer_wins_final(older, newer), older, newer)

    def switch_to_partial(self) -> MergeStrategy:
        return KeepValuesStrategy(self)


def _select_winners(newer_wins: np.ndarray, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
    return newer if newer_wins.all() else newer.where(newer_wins, older)


class CommitTimeStrategy(OrderedStrategy):
    """The last version wins."""

    def newer_wins_delta(self, older: BufferedBatch, newer: BufferedBatch) -> np.ndarray:
        return np.full(len(newer), True)

    def newer_wins_final(self, older: BufferedBatch, newer: BufferedBatch) -> np.ndarray:
        return np.full(len(newer), True)

    def find_winners(self, entries: BufferedBatch, codes: np.ndarray, count: int) -> np.ndarray | None:
        last = np.empty(count, np.int64)
        last[codes] = np.arange(len(codes))  # NumPy assigns in order, so the last entry of a key stays
        return last


class EventTimeStrategy(OrderedStrategy):
    """The greatest ordering value wins, with Hudi's rules for deletes."""

    def newer_wins_delta(self, older: BufferedBatch, newer: BufferedBatch) -> np.ndarray:
        sign, mixed = compare(older.order, newer.order)
        from_delete_block = (newer.rows == NO_ROW) & newer.deletes
        older_unordered, newer_unordered = older.commit_time_deletes, newer.commit_time_deletes
        block_wins = ~older_unordered & (newer_unordered | classes_differ(older.order, newer.order) | (sign <= 0))
        row_wins = newer_unordered | older_unordered | (sign <= 0)
        _refuse_incomparable(older, newer, mixed & ~from_delete_block & ~newer_unordered & ~older_unordered)
        return np.asarray(np.where(from_delete_block, block_wins, row_wins))

    def newer_wins_final(self, older: BufferedBatch, newer: BufferedBatch) -> np.ndarray:
        sign, mixed = compare(older.order, newer.order)
        unordered = newer.commit_time_deletes | older.commit_time_deletes
        _refuse_incomparable(older, newer, mixed & ~unordered)
        return np.asarray(unordered | (sign <= 0))

    def find_winners(self, entries: BufferedBatch, codes: np.ndarray, count: int) -> np.ndarray | None:
        """Find each key's winner: the greatest ordering value, the latest on a tie, among the entries that count.

        A delete that commit time orders beats all entries before it. After it, rows count, and entries of delete blocks
        count from the first such row on.
        """
        unordered = entries.commit_time_deletes
        at = np.flatnonzero(~unordered) if unordered.any() else np.arange(len(codes))
        values = make_sort_codes(entries.order.take(at) if len(at) < len(codes) else entries.order)
        if values is None:
            return None
        last = np.full(count, -1, np.int64)
        if len(at) < len(codes):
            cuts = np.flatnonzero(unordered)
            last[codes[cuts]] = cuts
            counts = _find_counting(entries, codes, at, last)
            at, values = at[counts], values[counts]
            alone = np.ones(count, bool)
            alone[codes[at]] = False
            if (alone & (np.bincount(codes[cuts], minlength=count) > 1)).any():
                return None  # which of several such deletes wins depends on whether they are rows or block entries
        keys = codes[at]
        best = np.full(count, np.iinfo(np.int64).min)
        np.maximum.at(best, keys, values)
        at_best = values == best[keys]
        last[keys[at_best]] = at[at_best]  # ``at`` rises, so the last entry of equal values stays
        return last


def _find_counting(entries: BufferedBatch, codes: np.ndarray, at: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Return which entries count after their key's last delete that commit time orders.

    ``at``: the indices of the entries, ascending.

    ``cuts``: for each key the index of that delete; -1 for none.
    """
    keys = codes[at]
    cut = cuts[keys]
    counts = at > cut
    rows = counts & ((entries.rows[at] != NO_ROW) | ~entries.deletes[at])
    first_row = np.full(len(cuts), len(codes))
    first_row[keys[rows][::-1]] = at[rows][::-1]  # assigned backwards, so the first row of a key stays
    return np.asarray(counts & ((cut < 0) | (at >= first_row[keys])))


class PartialUpdateStrategy(MergeStrategy):
    """A built-in mode on a table with a partial update mode: the winner takes values from the loser."""

    def __init__(self, mode: OrderedStrategy, handler: PartialUpdateHandler) -> None:
        self._mode = mode
        self._handler = handler

    def delta_merge(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return self._complete(older, newer, self._mode.newer_wins_delta(older, newer))

    def final_merge(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return self._complete(older, newer, self._mode.newer_wins_final(older, newer))

    def switch_to_partial(self) -> MergeStrategy:
        return KeepValuesStrategy(self._mode)

    def _complete(self, older: BufferedBatch, newer: BufferedBatch, newer_wins: np.ndarray) -> BufferedBatch:
        high, low = newer.where(newer_wins, older), older.where(newer_wins, newer)
        return fill_values(low, high, ~older.deletes & ~newer.deletes, self._handler)


class KeepValuesStrategy(MergeStrategy):
    """A built-in mode after a partial log block: the winner takes the columns that it lacks from the loser.

    A pair with an entry of a delete block follows the mode alone.
    """

    def __init__(self, mode: OrderedStrategy) -> None:
        self._mode = mode
        self._by_commit_time = isinstance(mode, CommitTimeStrategy)

    def delta_merge(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return self._combine(older, newer, self._mode.newer_wins_delta(older, newer))

    def final_merge(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return self._combine(older, newer, self._mode.newer_wins_final(older, newer))

    def switch_to_partial(self) -> MergeStrategy:
        return self

    def _combine(self, older: BufferedBatch, newer: BufferedBatch, newer_wins: np.ndarray) -> BufferedBatch:
        high, low = newer.where(newer_wins, older), older.where(newer_wins, newer)
        completes = ~newer.deletes & (older.rows != NO_ROW)
        if not self._by_commit_time:
            completes &= ~older.deletes
        return combine_columns(low, high, completes)


def _refuse_incomparable(older: BufferedBatch, newer: BufferedBatch, mixed: np.ndarray) -> None:
    """Raise MergeError where the ordering values of a pair do not compare (a null and a value, or two types)."""
    if not mixed.any():
        return
    at = int(np.flatnonzero(mixed)[0])
    fields = older.context.ordering_fields
    types = ", ".join(str(type_) for type_ in older.context.ordering_types)
    values = f"{older.order.get_value(at)} and {newer.order.get_value(at)}"
    raise MergeError(
        f"Ordering values of two versions of a record do not compare: {values}.",
        hint="A null has no order against values; write the record again with one, or use commit-time ordering.",
        key=newer.keys[at].as_py(),
        ordering_fields=",".join(fields),
        ordering_type=types,
    )
