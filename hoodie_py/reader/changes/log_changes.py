"""LogChangeReader: what each commit of a file slice's log changed, as rows before and after it.

A snapshot folds the whole log. Here the fold stops before and after each commit in question, and both results are
merged with the base rows of the commit's keys. So a change is the difference of two snapshots: an update that loses by
its ordering value changes nothing, and neither does a delete of an absent key. (Hudi ``CDCFileGroupIterator`` merges
each log file with the slice before it, and counts every delete as a change.)

Log entries are held in memory; their rows may be spilled. If entries outgrow the memory budget, the log is read several
times, each time for a part of the keys.

Commits come in the order of their completion. If their blocks have that order in the log, each fold continues from the
result of the commit before; otherwise each fold begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, index_in, join_chunks, repeat_value, take, to_numbers
from hoodie_py.arrow.fields import find_top_level_name, make_nullable
from hoodie_py.errors import HoodieError
from hoodie_py.options.read import MERGE_USE_POSITIONS
from hoodie_py.reader.base.base_merge import BaseMerge
from hoodie_py.reader.base.bootstrap import open_base_file
from hoodie_py.reader.base.file_formats import OpenBaseFile
from hoodie_py.reader.base.match import Pairs, RowMatcher
from hoodie_py.reader.buffer.folded_log import FoldedLog, KeyHash
from hoodie_py.reader.buffer.log_buffer import LogBuffer
from hoodie_py.reader.buffer.spilled_log import count_entry_bytes
from hoodie_py.reader.changes.row_changes import RowChanges
from hoodie_py.reader.file_group import check_sizes
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.memory.spill import Spilled
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.merge.strategies import MergeStrategy
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.record import DELETE, INSERT, UPDATE
from hoodie_py.reader.record.row_store import NO_ROW
from hoodie_py.reader.schema_evolution.by_name import conform_batch
from hoodie_py.runtime.fold_gate import FoldGate

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
        self.keys: pa.Array = join_chunks(keys.unique())  # that the commits wrote
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


_MOST_PARTS = 4096
_MOST_KEYS_BY_BATCH = 1 << 17  # for more keys, hashing them for each base batch costs more than reading base keys ahead


class RepeatedKeyError(Exception):
    """A base file has several rows of a key. Not a ``HoodieError``: callers compare whole states instead."""


class LogChangeReader:
    """Reads what commits changed in the log of one file slice.

    Args:
        file_slice: the base file, and the log files of these commits and of all earlier ones.
        info: the facts of the table.
        instants: the commits, in order of completion. All other blocks of the log count as earlier.
        columns: columns of the rows.
        merger: replaces the table's merge mode.
        options: settings of the read.
        gate: shared by slices that are read at the same time.
    """

    def __init__(
        self,
        file_slice: FileSlice,
        info: ReadInfo,
        instants: Sequence[str],
        columns: Sequence[str],
        merger: Merger | None = None,
        options: ReadOptions | None = None,
        gate: FoldGate | None = None,
    ) -> None:
        self._slice = file_slice
        self._info = info
        self._instants = tuple(instants)
        self._schema = make_nullable(info.schema.field(name) for name in columns)
        self._stored = [name for name in columns if name not in info.constants]
        self._merger = merger
        given = options or ReadOptions()
        # Never by position: all entries of a key must meet, whichever base rows they were written for.
        self._options = replace(given, options={**given.options, MERGE_USE_POSITIONS: "false"})
        self._gate = FoldGate() if gate is None else gate
        self.stats = ReadStats()
        self._base = BaseMerge(file_slice, info, self._options, self.stats)

    def read(self) -> Iterator[RowChanges]:
        """Yield the changes, commit by commit.

        Raises:
            RepeatedKeyError: before the first change.
            HoodieError: files that are missing, corrupt or not supported, or versions that do not merge.
        """
        try:
            if self._options.integrity == "strict":
                check_sizes(self._info.files, self._slice, self._info.expected_sizes)
            with closing(self._open_log()) as log:
                yield from self._read(log)
        except HoodieError as error:
            error.locate(file_group=self._slice.file_id, partition=self._slice.partition_path or None)
            raise

    def _open_log(self) -> LogReader:
        return LogReader(self._slice, self._info, self._stored, self._merger, self._options, self.stats, self._gate)

    def _read(self, log: LogReader) -> Iterator[RowChanges]:
        key_hash, parts = KeyHash(), 1
        blocks = self._read_blocks(log, key_hash, parts, 0)
        while blocks is None:
            # The entries outgrew the budget: read the log again, for one of twice as many parts of the keys.
            parts = min(2 * parts, _MOST_PARTS)
            log.store.release(0)
            blocks = self._read_blocks(log, key_hash, parts, 0)
        if parts == 1:
            yield from self._compare(log, blocks)
            return
        kept: dict[str, list[Spilled]] = {instant: [] for instant in self._instants}
        writer = log.spill.open_writer()
        for part in range(parts):
            if blocks is None:
                blocks = self._read_blocks(log, key_hash, parts, part, whole=True) or []
            for changes in self._compare(log, blocks):
                kept[changes.instant].append(writer.add(changes.to_batch()))
            blocks = None
            log.store.release(0)
        writer.close()
        for instant, spilled in kept.items():
            for each in spilled:
                yield RowChanges.from_batch(instant, log.spill.read_batch(each))

    def _read_blocks(
        self, log: LogReader, key_hash: KeyHash, parts: int, part: int, *, whole: bool = False
    ) -> list[Block] | None:
        """Return the blocks with the entries of one part of the keys; None if they outgrow the budget.

        With ``whole`` they are returned however large they are.
        """
        found: list[Block] = []
        held = 0
        scanned = log.read_blocks()
        with self._gate.enter():
            for block in scanned:
                self._gate.check_wanted()
                entries = block.entries
                if parts > 1:
                    entries = entries.take(np.flatnonzero(key_hash.assign_keys(entries.keys, parts) == part))
                found.append(Block(block.scanned.instant, entries, block.partial))
                held += count_entry_bytes(entries)
                if not log.spill.budget.fits(log.store.nbytes, held):
                    # Rows go to disk first. If the entries alone are still too large, more parts are needed.
                    log.store.spill_rows()
                    if not whole and parts < _MOST_PARTS and not log.spill.budget.fits(log.store.nbytes, held):
                        return None
        return found

    def _compare(self, log: LogReader, blocks: Sequence[Block]) -> Iterator[RowChanges]:
        states = LogStates(log.strategy, blocks, self._instants)
        if not len(states.keys):
            return
        base = self._read_base(log, states.keys)
        for instant, before, after in states:
            mark = len(log.store)
            numbers = np.flatnonzero(after.at >= 0)
            at_once = log.spill.budget.count_rows_at_once(2 * log.store.row_bytes + log.strategy.bytes_a_pair)
            at_once = min(at_once, self._options.batch_rows)
            for start in range(0, len(numbers), at_once):
                some = numbers[start : start + at_once]
                try:
                    rows = [merge_with_base(base, state, some) for state in (before, after)]
                except HoodieError as error:
                    error.locate(instant=instant)
                    raise
                changes = self._compare_rows(log, instant, *rows)
                if len(changes.codes):
                    yield changes
                log.store.release(mark)

    def _compare_rows(self, log: LogReader, instant: str, old: np.ndarray, new: np.ndarray) -> RowChanges:
        """Return the rows that differ; ``old`` and ``new`` are row handles, -1 where there is no row."""
        changed = old != new
        old, new = old[changed], new[changed]
        codes = np.where(old == NO_ROW, INSERT, np.where(new == NO_ROW, DELETE, UPDATE)).astype(np.int8)
        return RowChanges(instant, codes, self._make_rows(log, old), self._make_rows(log, new))

    def _make_rows(self, log: LogReader, handles: np.ndarray) -> pa.RecordBatch:
        stored = log.store.take(handles, self._stored)
        if not self._info.constants or not self._schema.names:
            return stored
        rows = iter(stored.columns)
        constants = self._info.constants
        arrays = [
            repeat_value(constants[field.name], field.type, len(handles)) if field.name in constants else next(rows)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _read_base(self, log: LogReader, keys: pa.Array) -> BaseRows:
        """Read the base rows of some keys into the row store.

        Raises:
            RepeatedKeyError: a key has several base rows.
        """
        at = np.full(len(keys), -1, np.int64)
        if self._slice.base_file is None:
            return BaseRows(None, at)
        base = open_base_file(self._info, self._slice.base_file, self._options)
        match = self._make_matcher(base, log, keys)
        found: list[BufferedBatch] = []
        done = 0
        for batch in base.read_batches(self._make_base_schema(log), self._options.batch_rows):
            self.stats.base_rows += batch.num_rows
            self._gate.check_wanted()
            rows, numbers = match(batch)
            if len(rows):
                if (at[numbers] >= 0).any() or len(np.unique(numbers)) < len(numbers):
                    raise RepeatedKeyError
                chosen = self._base.fill_fallbacks(take(batch, from_numpy(rows.astype(np.int64))), base)
                whole = conform_batch(chosen, log.schema)
                found.append(BufferedBatch.of_rows(log.context, log.store.add(whole), whole, None))
                at[numbers] = done + np.arange(len(rows))
                done += len(rows)
        return BaseRows(BufferedBatch.concat(found) if found else None, at)

    def _make_base_schema(self, log: LogReader) -> pa.Schema:
        schema = log.make_base_schema(self._stored)
        names = dict.fromkeys(find_top_level_name(self._info.schema, name) for name in log.keys.columns)
        return pa.schema([*schema, *(self._info.schema.field(name) for name in names if name not in schema.names)])

    def _make_matcher(self, base: OpenBaseFile, log: LogReader, keys: pa.Array) -> Callable[[pa.RecordBatch], Pairs]:
        """Return a function that finds the rows of a batch with one of the keys, and the number of each row's key."""
        if len(keys) > _MOST_KEYS_BY_BATCH:
            none = BufferedBatch.of_deletes(log.context, keys, ())
            return RowMatcher(self._base.match_rows(base, log, FoldedLog([none], None), again=True)).match

        def match(batch: pa.RecordBatch) -> Pairs:
            numbers = to_numbers(index_in(log.keys.read_keys(self._base.fill_fallbacks(batch, base)), keys), -1)
            rows = np.flatnonzero(numbers >= 0)
            return rows, numbers[rows].astype(np.int64)

        return match
