"""The log side of one file group: every entry in log order, folded to one version a key.

Hudi's KeyBasedFileGroupRecordBuffer keeps a map and merges record by record; here the fold runs over ranks, so that each
step merges the n-th versions of all keys at once.  The order in which one key's versions meet is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hoodie_py.errors import MergeError
from hoodie_py.reader.align import KeyTable, rounds
from hoodie_py.reader.batch import BufferedBatch
from hoodie_py.reader.strategies import MergeStrategy


class LogBuffer:
    """Collects log entries and folds them.

    Args:
        strategy: decides between two versions.
    """

    def __init__(self, strategy: MergeStrategy) -> None:
        self._strategy = strategy
        self._entries: list[BufferedBatch] = []
        self._instants: list[str] = []
        self.total_log_records = 0

    def add(self, entries: BufferedBatch, instant: str) -> None:
        """Append the entries of one block, written by the given instant, in log order."""
        if len(entries):
            self._entries.append(entries)
            self._instants.append(instant)
            self.total_log_records += len(entries)

    def fold(self) -> BufferedBatch | None:
        """Return one record a key in order of first appearance; None without entries.

        Raises:
            MergeError: with the key and the instants of its versions, where known.
        """
        if not self._entries:
            return None
        entries = BufferedBatch.concat(self._entries)
        table = KeyTable.of(entries.keys)
        try:
            return fold_by_rounds(self._strategy, entries, table)
        except MergeError as error:
            raise error.located(instants=self._instants_of(error.where.get("key")))

    def instants_of(self, key: str | None) -> str | None:
        """Return the instants that wrote versions of a key, for messages."""
        return self._instants_of(key)

    def _instants_of(self, key: str | None) -> str | None:
        if key is None:
            return None
        wrote = (instant for entries, instant in zip(self._entries, self._instants, strict=True)
                 if entries.keys.index(pa.scalar(key, pa.string())).as_py() >= 0)
        return " ".join(dict.fromkeys(wrote)) or None


def fold_by_rounds(strategy: MergeStrategy, entries: BufferedBatch, table: KeyTable) -> BufferedBatch:
    """Fold entries to one record a key, keys in the order of the table.

    Args:
        strategy: its ``delta`` is applied key by key in log order.
        entries: all entries in log order.
        table: the keys of the entries.
    """
    if len(table) == len(entries):
        return entries
    winners = strategy.winners(entries, table.codes, len(table))
    if winners is not None:
        return entries.take(winners)
    return _fold(strategy, entries, table, rounds(table.codes, len(table)))


def _fold(strategy: MergeStrategy, entries: BufferedBatch, table: KeyTable, steps: Sequence[np.ndarray]) -> BufferedBatch:
    """Keep the keys that still have versions to come in one batch; park each key when its last version is merged."""
    running = entries.take(steps[0])
    codes = table.codes[steps[0]]
    parked: list[BufferedBatch] = []
    parked_codes: list[np.ndarray] = []
    for step in steps[1:]:
        later = table.codes[step]
        sorter = np.argsort(codes, kind="stable")
        at = sorter[np.searchsorted(codes, later, sorter=sorter)]
        if len(at) < len(codes):
            done = np.ones(len(codes), bool)
            done[at] = False
            parked.append(running.take(np.flatnonzero(done)))
            parked_codes.append(codes[done])
        running = strategy.delta(running.take(at), entries.take(step))
        codes = later
    parked.append(running)
    parked_codes.append(codes)
    where = np.empty(len(table), np.int64)
    where[np.concatenate(parked_codes)] = np.arange(len(table))
    return BufferedBatch.concat(parked).take(where)
