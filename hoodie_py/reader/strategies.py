"""Merge strategies: what the buffer calls, one class a merge mode.

``delta`` merges log on log, ``final`` log on base; both take aligned batches and return as many records.  Agrees with
Hudi's BufferedRecordMergerFactory:

* commit time: the newer version, always; ordering values are not read.
* event time: the newer version if it or the older one is a delete that commit time orders, else the one with the greater
  ordering value, the newer on a tie.  An entry of a delete block has two rules more: on a delete that commit time orders
  it is dropped, and one whose ordering value has another class than the older version's wins.
* custom: what the user's merger returns, compared whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from hoodie_py.errors import HoodieError, MergeError
from hoodie_py.reader.batch import BufferedBatch
from hoodie_py.reader.merger import RecordMerger
from hoodie_py.reader.ordering import compare, sort_codes
from hoodie_py.reader.row_store import NO_ROW


class MergeStrategy(ABC):
    """Decides between aligned older and newer versions."""

    @abstractmethod
    def delta(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        """Merge newer log entries on what the log gave so far."""

    @abstractmethod
    def final(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        """Merge what the log gave on base rows."""

    def winners(self, entries: BufferedBatch, codes: np.ndarray, count: int) -> np.ndarray | None:
        """Return for each key the index of the entry a fold by ``delta`` ends with, where that is known without folding.

        Args:
            entries: all log entries in log order.
            codes: the key number of each entry.
            count: how many keys there are.

        Returns:
            int64 indices, one a key; None if only folding tells.
        """
        return None


class CommitTimeStrategy(MergeStrategy):
    """The last version wins."""

    def delta(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return newer

    def final(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return newer

    def winners(self, entries: BufferedBatch, codes: np.ndarray, count: int) -> np.ndarray | None:
        last = np.empty(count, np.int64)
        last[codes] = np.arange(len(codes))
        return last


class EventTimeStrategy(MergeStrategy):
    """The greatest ordering value wins, with Hudi's rules for deletes."""

    def delta(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        sign, mixed = compare(older.order, newer.order)
        from_delete_block = (newer.rows == NO_ROW) & newer.deletes
        older_unordered, newer_unordered = older.commit_time_deletes, newer.commit_time_deletes
        block_wins = ~older_unordered & (newer_unordered | mixed | (sign <= 0))
        row_wins = newer_unordered | older_unordered | (sign <= 0)
        _refuse_mixed(older, newer, mixed & ~from_delete_block & ~newer_unordered & ~older_unordered)
        return newer.where(np.where(from_delete_block, block_wins, row_wins), older)

    def final(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        sign, mixed = compare(older.order, newer.order)
        unordered = newer.commit_time_deletes
        _refuse_mixed(older, newer, mixed & ~unordered)
        return newer.where(unordered | (sign <= 0), older)

    def winners(self, entries: BufferedBatch, codes: np.ndarray, count: int) -> np.ndarray | None:
        """Without deletes that commit time orders the fold is a maximum: greatest ordering value, then the latest."""
        if entries.commit_time_deletes.any():
            return None
        values = sort_codes(entries.order)
        if values is None:
            return None
        position = np.arange(len(codes))
        best = np.full(count, np.iinfo(np.int64).min)
        np.maximum.at(best, codes, values)
        at_best = values == best[codes]
        last = np.full(count, -1, np.int64)
        last[codes[at_best]] = position[at_best]
        return last


class CustomStrategy(MergeStrategy):
    """What a user's merger returns.

    Args:
        merger: called through its batch form.
        props: merge properties the merger may look at.
    """

    def __init__(self, merger: RecordMerger, props: Mapping[str, str]) -> None:
        self.merger = merger
        self.props = props

    def delta(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return self._merge(older, newer)

    def final(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        return self._merge(older, newer)

    def _merge(self, older: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        context = older.context
        context.focus(np.concatenate([older.rows, newer.rows]))
        name = type(self.merger).__name__
        try:
            result = self.merger.merge_batch(older, newer, context, self.props)
        except HoodieError as error:
            raise error.located(merger=name)
        except Exception as error:
            raise MergeError(f"merge_batch failed: {type(error).__name__}: {error}", merger=name) from error
        if not isinstance(result, BufferedBatch):
            raise MergeError(f"merge_batch returned {type(result).__name__}, not a BufferedBatch.", merger=name)
        if len(result) != len(newer):
            raise MergeError(f"merge_batch returned {len(result)} records for {len(newer)} pairs.", merger=name)
        if not result.keys.equals(newer.keys):
            raise MergeError("merge_batch returned records of other keys, or in another order.", merger=name)
        return result


def _refuse_mixed(older: BufferedBatch, newer: BufferedBatch, mixed: np.ndarray) -> None:
    """Raise where live versions have ordering values that do not compare (null against a value, or two types)."""
    if not mixed.any():
        return
    at = int(np.flatnonzero(mixed)[0])
    fields = older.context.ordering_fields
    types = ", ".join(str(type_) for type_ in older.context.ordering_types)
    raise MergeError(
        f"Ordering values of two versions of a record do not compare: {older.order.value(at)} and {newer.order.value(at)}.",
        hint="A null ordering value has no order against other values; write the record again with a value, or use commit-time ordering.",
        key=newer.keys[at].as_py(), ordering_fields=",".join(fields), ordering_type=types)
