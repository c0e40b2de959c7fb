"""The log side of one file group: every entry in log order, folded to one version a key.

Hudi's KeyBasedFileGroupRecordBuffer keeps a map and merges record by record; here the fold runs over ranks, so that
each
step merges the n-th versions of all keys at once.  The order in which one key's versions meet is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.errors import MergeError
from hoodie_py.reader.align import number_keys, rounds
from hoodie_py.reader.batch import BufferedBatch
from hoodie_py.reader.strategies import MergeStrategy


@dataclass(frozen=True, slots=True)
class FoldedLog:
    """What the log says in the end.

    Attributes:
        records: one record a key, or one a base row where rows pair by position.
        positions: int64 row of the base file each record belongs to; None where records pair by key.
    """

    records: BufferedBatch
    positions: np.ndarray | None


class LogBuffer:
    """Collects log entries and folds them.

    Entries pair by their positions in the base file if every block has usable ones, else by key (Hudi's
    PositionBasedFileGroupRecordBuffer switches to keys at the first block without).

    Args:
        strategy: decides between two versions.
    """

    def __init__(self, strategy: MergeStrategy) -> None:
        self._strategy = strategy
        self._entries: list[BufferedBatch] = []
        self._instants: list[str] = []
        self._positions: list[np.ndarray] | None = []
        self._first_partial: int | None = None
        self.total_log_records = 0

    @property
    def by_position(self) -> bool:
        """Whether entries pair by position so far."""
        return self._positions is not None

    @property
    def final_strategy(self) -> MergeStrategy:
        """What decides between base rows and the fold's result."""
        return self._strategy if self._first_partial is None else self._strategy.after_partial_block()

    def add(
        self, entries: BufferedBatch, instant: str, positions: np.ndarray | None = None, *, partial: bool = False
    ) -> None:
        """Append the entries of one block in log order.

        Args:
            entries: the block's records or deletes.
            instant: the instant that wrote the block.
            positions: the base row of each entry; None makes the whole buffer pair by key.
            partial: whether the block's rows lack columns; from the first such block on every merge completes rows.
        """
        if partial and self._first_partial is None:
            self._first_partial = self.total_log_records
        if positions is None:
            self._positions = None
        elif self._positions is not None:
            self._positions.append(positions)
        self._entries.append(entries)
        self._instants.append(instant)
        self.total_log_records += len(entries)

    def fold(self) -> FoldedLog | None:
        """Return what the log says in the end; None without entries.

        Raises:
            MergeError: with the key and the instants of its versions, where known.
        """
        if not self.total_log_records:
            return None
        entries = BufferedBatch.concat(self._entries)
        if self._positions is None:
            places, (codes, count) = None, number_keys(entries.keys)
        else:
            places, codes = np.unique(np.concatenate(self._positions), return_inverse=True)
            count = len(places)
        try:
            return FoldedLog(fold_by_rounds(self._strategy, entries, codes, count, self._first_partial), places)
        except MergeError as error:
            error.located(instants=self.instants_of(error.where.get("key")))
            raise

    def instants_of(self, key: str | None) -> str | None:
        """Return the instants that wrote versions of a key, for messages."""
        if key is None:
            return None
        wrote = (
            instant
            for entries, instant in zip(self._entries, self._instants, strict=True)
            if entries.keys.index(pa.scalar(key, pa.string())).as_py() >= 0
        )
        return " ".join(dict.fromkeys(wrote)) or None


def fold_by_rounds(
    strategy: MergeStrategy, entries: BufferedBatch, codes: np.ndarray, count: int, first_partial: int | None = None
) -> BufferedBatch:
    """Fold entries to one record a number, in the order of the numbers.

    Args:
        strategy: its ``delta`` is applied to equal numbers in log order.
        entries: all entries in log order.
        codes: int64 per entry: the number of its key or position, from 0 to ``count`` - 1.
        count: how many numbers there are.
        first_partial: index of the first entry of a partial block; from there on rows are completed.
    """
    if first_partial is None:
        winners = strategy.winners(entries, codes, count)
        if winners is not None:
            return entries.take(winners)
    fold = _Fold(strategy, entries, len(entries) if first_partial is None else first_partial)
    return fold.run(codes, rounds(codes, count))


class _Fold:
    """Keeps the keys that still have versions to come in one batch; parks each key when its last version is merged."""

    def __init__(self, strategy: MergeStrategy, entries: BufferedBatch, first_partial: int) -> None:
        self._strategy = strategy
        self._completing = strategy.after_partial_block() if first_partial < len(entries) else strategy
        self._entries = entries
        self._first_partial = first_partial

    def run(self, numbers: np.ndarray, steps: Sequence[np.ndarray]) -> BufferedBatch:
        running = self._entries.take(steps[0])
        codes = numbers[steps[0]]
        parked: list[BufferedBatch] = []
        parked_codes: list[np.ndarray] = []
        for step in steps[1:]:
            later = numbers[step]
            sorter = np.argsort(codes, kind="stable")
            at = sorter[np.searchsorted(codes, later, sorter=sorter)]
            if len(at) < len(codes):
                done = np.ones(len(codes), bool)
                done[at] = False
                parked.append(running.take(np.flatnonzero(done)))
                parked_codes.append(codes[done])
            running = self._round(running.take(at), step)
            codes = later
        parked.append(running)
        parked_codes.append(codes)
        everyone = np.concatenate(parked_codes)
        where = np.empty(len(everyone), np.int64)
        where[everyone] = np.arange(len(everyone))
        return BufferedBatch.concat(parked).take(where)

    def _round(self, older: BufferedBatch, step: np.ndarray) -> BufferedBatch:
        """Merge one version of each key, split where the first partial block begins."""
        newer = self._entries.take(step)
        completes = step >= self._first_partial
        if not completes.any():
            return self._strategy.delta(older, newer)
        if completes.all():
            return self._completing.delta(older, newer)
        plain, late = np.flatnonzero(~completes), np.flatnonzero(completes)
        halves = [
            self._strategy.delta(older.take(plain), newer.take(plain)),
            self._completing.delta(older.take(late), newer.take(late)),
        ]
        back = np.empty(len(step), np.int64)
        back[np.concatenate([plain, late])] = np.arange(len(step))
        return BufferedBatch.concat(halves).take(back)
