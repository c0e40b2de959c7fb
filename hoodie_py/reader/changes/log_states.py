"""The states of a log: folded before and after each commit, for the keys that the commit wrote.

Commits come in the order of their completion. If their blocks have that order in the log, each fold continues from the
result of the commit before; otherwise each fold begins anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import index_in, join_chunks, to_numbers
from hoodie_py.reader.buffer.folded_log import FoldedLog
from hoodie_py.reader.buffer.log_buffer import LogBuffer
from hoodie_py.reader.merge.strategies import MergeStrategy
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.row_store import NO_ROW

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Block:
    """The entries of a log block, or of a part of it; ``codes`` are the numbers of their keys."""

    instant: str
    entries: BufferedBatch
    partial: bool
    codes: np.ndarray = field(default_factory=lambda: _NONE)

    def keep(self, chosen: np.ndarray) -> Block:
        """Return the block with some of its entries; it still counts as a partial block."""
        if chosen.all():
            return self
        return replace(self, entries=self.entries.take(np.flatnonzero(chosen)), codes=self.codes[chosen])


@dataclass(frozen=True, slots=True)
class BaseRows:
    """Base rows of some keys: ``at`` has for each key the number of its row, -1 for none."""

    rows: BufferedBatch | None
    at: np.ndarray


@dataclass(frozen=True, slots=True)
class LogState:
    """A folded log: ``at`` has for each key the number of its record, -1 for none."""

    records: FoldedLog
    at: np.ndarray
    strategy: MergeStrategy


class LogStates:
    """Folds the blocks of a log, given in merge order, before and after each of some commits."""

    def __init__(self, strategy: MergeStrategy, blocks: Sequence[Block], instants: Sequence[str]) -> None:
        self._strategy = strategy
        self._instants = instants
        wanted = [each.entries.keys for each in blocks if each.instant in instants]
        keys = pa.chunked_array(wanted or [pa.array([], pa.string())])
        self.keys: pa.Array = join_chunks(keys.unique())  # those that the commits wrote
        self._blocks = [self._number_keys(each) for each in blocks]

    def __iter__(self) -> Iterator[tuple[str, LogState | None, LogState]]:
        """Yield for each commit the states before and after it; the state before is None if the log had no record."""
        return self._go_on() if self._is_in_order() else self._begin_anew()

    def _is_in_order(self) -> bool:
        """Say whether the log has all earlier blocks first, then the commits in their order."""
        ranks = {instant: rank for rank, instant in enumerate(self._instants)}
        order = [ranks.get(block.instant, -1) for block in self._blocks]
        return order == sorted(order)

    def _number_keys(self, block: Block) -> Block:
        """Number the keys of a block's entries; drop entries of keys that no commit wrote."""
        codes = to_numbers(index_in(block.entries.keys, self.keys), -1).astype(np.int64)
        return replace(block, codes=codes).keep(codes >= 0)

    def _go_on(self) -> Iterator[tuple[str, LogState | None, LogState]]:
        earlier = [block for block in self._blocks if block.instant not in self._instants]
        partial = any(block.partial for block in earlier)
        parts: list[BufferedBatch] = []
        at = np.full(len(self.keys), -1, np.int64)
        first = self._fold(earlier)
        if first is not None:
            parts.append(first[0])
            at[first[1]] = np.arange(len(first[0]))
        for instant in self._instants:
            own = [block for block in self._blocks if block.instant == instant]
            before: LogState | None = None
            begin: list[Block] = []
            touched = np.unique(np.concatenate([_NONE, *(block.codes for block in own)]))
            known = touched[at[touched] >= 0]
            if len(known):
                folded = FoldedLog(tuple(parts), None)
                begin = [Block("", folded.take(at[known]), partial, known)]
                # A copy, because ``at`` changes below.
                before = LogState(folded, at.copy(), self._choose_strategy(partial=partial))
            own = [replace(block, partial=block.partial or partial) for block in own]
            partial = partial or any(block.partial for block in own)
            result = self._fold([*begin, *own])
            if result is None:
                continue
            records, codes = result
            at[codes] = sum(map(len, parts)) + np.arange(len(records))
            parts.append(records)
            now = np.full(len(self.keys), -1, np.int64)
            now[codes] = at[codes]
            yield instant, before, LogState(FoldedLog(tuple(parts), None), now, self._choose_strategy(partial=partial))

    def _begin_anew(self) -> Iterator[tuple[str, LogState | None, LogState]]:
        counted = {block.instant for block in self._blocks} - set(self._instants)
        for instant in self._instants:
            mask = np.zeros(len(self.keys), bool)
            for block in self._blocks:
                if block.instant == instant:
                    mask[block.codes] = True
            before = self._make_state(counted, mask)
            counted.add(instant)
            after = self._make_state(counted, mask)
            if after is not None:
                yield instant, before, after

    def _make_state(self, counted: set[str], mask: np.ndarray) -> LogState | None:
        """Fold the blocks of some commits, only for the keys where the mask is set."""
        blocks = [block.keep(mask[block.codes]) for block in self._blocks if block.instant in counted]
        folded = self._fold(blocks)
        if folded is None:
            return None
        records, codes = folded
        at = np.full(len(self.keys), -1, np.int64)
        at[codes] = np.arange(len(records))
        partial = any(block.partial for block in blocks)
        return LogState(FoldedLog([records], None), at, self._choose_strategy(partial=partial))

    def _fold(self, blocks: Sequence[Block]) -> tuple[BufferedBatch, np.ndarray] | None:
        """Fold blocks to one record per key, with the numbers of the keys; None without entries."""
        buffer = LogBuffer(self._strategy)
        for block in blocks:
            buffer.add(block.entries, block.instant, partial=block.partial)
        folded = buffer.fold()
        if folded is None:
            return None
        codes = np.concatenate([block.codes for block in blocks])
        _, first = np.unique(codes, return_index=True)
        return folded.parts[0], codes[np.sort(first)]  # records are in the order of their keys' first appearance

    def _choose_strategy(self, *, partial: bool) -> MergeStrategy:
        return self._strategy.switch_to_partial() if partial else self._strategy


def merge_with_base(base: BaseRows, state: LogState | None, keys: np.ndarray) -> np.ndarray:
    """Return the handle of each key's row in a state of the slice, -1 where there is none.

    Raises:
        MergeError: versions that do not merge.
    """
    rows = np.full(len(keys), NO_ROW, np.int64)
    below = base.at[keys]
    above = np.full(len(keys), -1, np.int64) if state is None else state.at[keys]
    alone = np.flatnonzero((below >= 0) & (above < 0))
    if base.rows is not None and len(alone):
        rows[alone] = base.rows.rows[below[alone]]
    if state is None:
        return rows
    both = np.flatnonzero((below >= 0) & (above >= 0))
    if base.rows is not None and len(both):
        merged = state.strategy.final_merge(base.rows.take(below[both]), state.records.take(above[both]))
        rows[both] = np.where(merged.deletes, NO_ROW, merged.rows)
    new = np.flatnonzero((below < 0) & (above >= 0))
    if len(new):
        merged = state.strategy.convert_inserts(state.records.take(above[new]))
        rows[new] = np.where(merged.deletes, NO_ROW, merged.rows)
    return rows
