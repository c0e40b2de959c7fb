"""LogBuffer: collects the log entries of one file group, and folds them to one record per key.

Hudi's KeyBasedFileGroupRecordBuffer keeps a map and merges record by record. Here each round of a fold merges the n-th
versions of all keys at once. The order in which one key's versions merge is the same.

Entries that outgrow the memory budget are folded early if that leaves few of them. Otherwise they move to disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import call, to_numbers
from hoodie_py.errors import MergeError
from hoodie_py.reader.buffer.folded_log import FoldedLog
from hoodie_py.reader.buffer.spilled_log import SpilledEntries, count_entry_bytes
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.merge.strategies import MergeStrategy
from hoodie_py.reader.record.batch import BufferedBatch

_FEW = 4  # an early fold pays if at most one of four entries is left
_SPARSE = 64  # a table of all positions up to the largest one may be this many times longer than the entries


@dataclass(frozen=True, slots=True)
class _Block:
    """Entries that were added in one call, or the result of an early fold."""

    entries: BufferedBatch
    positions: np.ndarray | None  # int64 base row of each entry; None if the block has no usable ones
    number: int  # in log order
    late: bool  # from the first partial block on: merging such entries completes rows


class LogBuffer:
    """Collects log entries and folds them; without ``spill`` everything stays in memory.

    Entries are grouped by position in the base file if every block has usable positions, else by key. Hudi's
    PositionBasedFileGroupRecordBuffer also switches to keys at the first block without positions.
    """

    def __init__(self, strategy: MergeStrategy, spill: Spill | None = None) -> None:
        self._strategy = strategy
        self._spill = spill
        self._blocks: list[_Block] = []
        self._instants: list[str] = []
        self._bytes = 0
        self._spilled: SpilledEntries | None = None
        self._partial = False
        self.by_position = True
        self.total_log_records = 0

    @property
    def final_strategy(self) -> MergeStrategy:
        """The strategy that merges base rows with the fold's result."""
        return self._strategy.switch_to_partial() if self._partial else self._strategy

    def add(
        self, entries: BufferedBatch, instant: str, positions: np.ndarray | None = None, *, partial: bool = False
    ) -> None:
        """Append entries of one block in log order, all of them or the next part.

        ``positions``: the base row of each entry; None makes the whole buffer use keys. ``partial``: the block's rows
        lack columns; from the first such block on, every merge completes rows.

        Raises:
            StorageError: the memory budget is used up and the disk is full or fails.
            MergeError: as ``fold``, if the memory budget makes it fold early.
        """
        # A partial block decides for all later blocks, a block without positions for the whole buffer.
        self._partial |= partial
        self.by_position &= positions is not None
        self.total_log_records += len(entries)
        self._instants.append(instant)
        block = _Block(entries, positions, len(self._instants) - 1, self._partial)
        if self._spilled is not None:
            self._write(block, self._spilled)
            return
        self._blocks.append(block)
        if self._spill is not None:
            self._bytes += count_entry_bytes(entries)
            if not self._fits(self._spill) and not self._fold_early(self._spill):
                self._move_to_disk(self._spill)

    def fold(self) -> FoldedLog | None:
        """Fold all entries to one record per key or position; None without entries.

        Raises:
            MergeError: with the key and the instants of its versions, where known.
            StorageError: entries are on disk, and the disk is full or fails.
        """
        if not self.total_log_records:
            return None
        if self._spilled is not None:
            return self._spilled.fold(self._fold_entries, by_position=self.by_position)
        records, positions = self._fold_in_memory()
        return FoldedLog([records], None if positions is None else [positions])

    def find_instants(self, key: str | None) -> str | None:
        """Return the instants that wrote versions of a key, for messages; instants before an early fold are unknown."""
        if key is None:
            return None
        if self._spilled is not None:
            numbers = self._spilled.find_blocks(key)
        else:
            text = pa.scalar(key, pa.string())
            numbers = [block.number for block in self._blocks if block.entries.keys.index(text).as_py() >= 0]
        return " ".join(dict.fromkeys(filter(None, (self._instants[number] for number in numbers)))) or None

    def _fold_in_memory(self) -> tuple[BufferedBatch, np.ndarray | None]:
        entries = BufferedBatch.concat([block.entries for block in self._blocks])
        held = [block.positions for block in self._blocks if block.positions is not None]
        early = sum(len(block.entries) for block in self._blocks if not block.late)
        positions = np.concatenate(held) if self.by_position else None
        return self._fold_entries(entries, positions, early if early < len(entries) else None)

    def _fold_entries(
        self, entries: BufferedBatch, positions: np.ndarray | None, first_late: int | None
    ) -> tuple[BufferedBatch, np.ndarray | None]:
        """Fold entries to one record per position, or per key where positions are None."""
        if positions is None:
            places, (codes, count) = None, number_keys(entries.keys)
        else:
            places, codes = number_positions(positions)
            count = len(places)
        at_once = None if self._spill is None else self._limit_pairs(entries, self._spill)
        try:
            return fold_by_rounds(self._strategy, entries, codes, count, first_late, at_once), places
        except MergeError as error:
            error.locate(instants=self.find_instants(error.where.get("key")))
            raise

    def _limit_pairs(self, entries: BufferedBatch, spill: Spill) -> int:
        store = entries.context.store
        return spill.budget.count_rows_at_once(2 * store.row_bytes + self._strategy.bytes_a_pair)

    def _fits(self, spill: Spill) -> bool:
        return spill.budget.fits(self._blocks[-1].entries.context.store.nbytes, self._bytes)

    def _fold_early(self, spill: Spill) -> bool:
        """Fold the entries so far; say whether they now fit into memory."""
        if self.by_position:  # a later block without positions would need the keys of all entries
            return False
        context = self._blocks[0].entries.context
        keys = pa.chunked_array([block.entries.keys for block in self._blocks])
        if call("count_distinct", keys).as_py() * _FEW > len(keys):
            return False
        records, _ = self._fold_in_memory()
        rows = context.store.compact(records.rows, spill.budget.count_rows_at_once(context.store.row_bytes))
        records = BufferedBatch(context, records.keys, rows, records.order, records.codes)
        self._instants.append("")
        self._blocks = [_Block(records, None, len(self._instants) - 1, late=False)]
        self._bytes = count_entry_bytes(records)
        return self._fits(spill)

    def _move_to_disk(self, spill: Spill) -> None:
        context = self._blocks[0].entries.context
        self._spilled = SpilledEntries(context, spill)
        context.store.spill_rows()
        for block in self._blocks:
            self._write(block, self._spilled)
        self._blocks = []

    @staticmethod
    def _write(block: _Block, spilled: SpilledEntries) -> None:
        spilled.add(block.entries, block.positions, block=block.number, late=block.late)


def fold_by_rounds(
    strategy: MergeStrategy,
    entries: BufferedBatch,
    codes: np.ndarray,
    count: int,
    first_partial: int | None = None,
    at_once: int | None = None,
) -> BufferedBatch:
    """Fold entries, in log order, to one record per number, in the order of the numbers.

    ``codes``: for each entry the number of its key or position, from 0 to ``count`` - 1. ``first_partial``: index of
    the first entry of a partial block; from there on rows are completed. ``at_once``: most pairs to merge in one call.
    """
    if first_partial is None:
        winners = strategy.find_winners(entries, codes, count)
        if winners is not None:
            return entries.take(winners)
    fold = _Fold(strategy, entries, len(entries) if first_partial is None else first_partial, at_once or len(entries))
    return fold.run(codes, split_into_rounds(codes, count))


class _Fold:
    """One fold: keeps the keys with further versions in one batch, and sets a key aside after its last merge."""

    def __init__(self, strategy: MergeStrategy, entries: BufferedBatch, first_partial: int, at_once: int) -> None:
        self._strategy = strategy
        self._completing = strategy.switch_to_partial() if first_partial < len(entries) else strategy
        self._entries = entries
        self._first_partial = first_partial
        self._at_once = at_once

    def run(self, numbers: np.ndarray, steps: Sequence[np.ndarray]) -> BufferedBatch:
        running = self._entries.take(steps[0])
        codes = numbers[steps[0]]
        finished: list[BufferedBatch] = []
        finished_codes: list[np.ndarray] = []
        for step in steps[1:]:
            later = numbers[step]
            # Find the running row of each key that has one more version; keys in a round are distinct, but not sorted.
            sorter = np.argsort(codes, kind="stable")
            at = sorter[np.searchsorted(codes, later, sorter=sorter)]
            if len(at) < len(codes):
                done = np.ones(len(codes), bool)
                done[at] = False
                finished.append(running.take(np.flatnonzero(done)))
                finished_codes.append(codes[done])
            running = self._merge_round(running.take(at), step)
            codes = later
        finished.append(running)
        finished_codes.append(codes)
        all_codes = np.concatenate(finished_codes)
        where = np.empty(len(all_codes), np.int64)  # the inverse permutation brings records into the order of numbers
        where[all_codes] = np.arange(len(all_codes))
        return BufferedBatch.concat(finished).take(where)

    def _merge_round(self, older: BufferedBatch, step: np.ndarray) -> BufferedBatch:
        """Merge one version of each key, some keys at a time."""
        if len(step) <= self._at_once:
            return self._merge_pairs(older, step)
        cuts = range(0, len(step), self._at_once)
        parts = [np.arange(start, min(start + self._at_once, len(step))) for start in cuts]
        return BufferedBatch.concat([self._merge_pairs(older.take(part), step[part]) for part in parts])

    def _merge_pairs(self, older: BufferedBatch, step: np.ndarray) -> BufferedBatch:
        """Merge pairs, split where the first partial block begins."""
        newer = self._entries.take(step)
        completes = step >= self._first_partial
        if not completes.any():
            return self._strategy.delta_merge(older, newer)
        if completes.all():
            return self._completing.delta_merge(older, newer)
        plain, late = np.flatnonzero(~completes), np.flatnonzero(completes)
        halves = [
            self._strategy.delta_merge(older.take(plain), newer.take(plain)),
            self._completing.delta_merge(older.take(late), newer.take(late)),
        ]
        back = np.empty(len(step), np.int64)  # the inverse permutation restores the order of the pairs
        back[np.concatenate([plain, late])] = np.arange(len(step))
        return BufferedBatch.concat(halves).take(back)


def number_keys(keys: pa.Array) -> tuple[np.ndarray, int]:
    """Return the int64 number of each entry's key, in order of first appearance, and how many keys there are."""
    encoded = call("dictionary_encode", keys)
    return to_numbers(encoded.indices).astype(np.int64), len(encoded.dictionary)


def number_positions(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct positions in rising order, and for each entry the number of its position, both int64."""
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
    """Split entries into rounds: round r has for each of ``count`` keys the index of its r-th version in log order."""
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
