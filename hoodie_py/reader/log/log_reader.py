"""LogReader: scans the log files of one file slice, decodes their blocks, and folds them to one record per key.

It is Hudi's HoodieMergedLogRecordReader with its file group record buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.fields import find_top_level_name
from hoodie_py.errors import HoodieError
from hoodie_py.formats.log.blocks import decode_block_positions, decode_delete_block
from hoodie_py.formats.log.framing import BlockType
from hoodie_py.options.read import MERGE_USE_POSITIONS
from hoodie_py.reader.buffer.folded_log import FoldedLog
from hoodie_py.reader.buffer.log_buffer import LogBuffer
from hoodie_py.reader.file_slice import FileSlice, PartialRowsError
from hoodie_py.reader.log.block_decoder import BlockDecoder, SmallDataBlocks, SmallDeleteBlocks
from hoodie_py.reader.log.log_files import ScannedBlock
from hoodie_py.reader.log.scan import scan_log_files
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.merge.custom import list_identity_fields
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.merge.strategies import OrderedStrategy
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.delete_rules import DeleteRules, make_delete_ordering_column
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import RowStore
from hoodie_py.reader.schema_evolution.by_name import Conformer, conform_batch
from hoodie_py.reader.selection import MergeNeeds, make_merge_schema, select_strategy
from hoodie_py.runtime.fold_gate import FoldGate

HFILE_KEY = "key"  # the column that HFile blocks leave out, as it equals the entry's key


@dataclass(frozen=True, slots=True)
class BlockEntries:
    """The records or deletes of one log block, or of a part of it."""

    scanned: ScannedBlock
    entries: BufferedBatch
    positions: np.ndarray | None  # int64 base row of each entry; None where entries match by key
    partial: bool  # the block's rows lack columns


class LogReader:
    """Reads the log of one file slice, and merges its records with base rows.

    ``read``: the columns that the caller wants; columns that the merge needs are added. ``gate``: entered while blocks
    are decoded and folded.

    Raises:
        MergeError: the table needs a merger that is not supplied.
        InvalidTableError: an unknown partial update mode.
    """

    writing: ClassVar[bool] = False  # whether the merge is a write's, not a read's

    def __init__(
        self,
        file_slice: FileSlice,
        info: ReadInfo,
        read: Sequence[str],
        merger: Merger | None,
        options: ReadOptions,
        stats: ReadStats,
        gate: FoldGate | None = None,
    ) -> None:
        self.file_slice = file_slice
        self.info = info
        self.options = options
        self._stats = stats
        self._gate = FoldGate() if gate is None else gate
        config = info.config
        selected = select_strategy(config, options.options, merger, writing=self.writing)
        custom, ordering = selected.merger, selected.ordering_fields
        self.strategy = selected.strategy
        self.keys = RecordKeys.of(config.populate_meta_fields, config.record_key_fields)
        self.deletes = DeleteRules.of(info.schema, config.merge_properties, options.options)
        given = None if custom is None else (custom, config, selected.props)
        self.schema = make_merge_schema(info.schema, read, MergeNeeds(self.keys, ordering, self.deletes, given))
        self.spill = Spill(MemoryBudget.from_options(options), stats)
        self.store = RowStore(self.schema, self.spill)
        self.context = ArrowRecordContext(
            self.store,
            info.schema,
            self.keys,
            ordering,
            self.deletes,
            info.defaults,
            list_identity_fields(config),
            info.times,
        )
        decides = {find_top_level_name(self.schema, name) for name in ordering}
        self.deciding = pa.schema([field for field in self.schema if field.name in decides])
        self._custom = custom is not None
        self._conform = Conformer(self.schema, {**info.defaults, **info.fallbacks})
        self._use_positions = MERGE_USE_POSITIONS.read(options.options)
        self._buffer = LogBuffer(self.strategy, self.spill)
        self._folded: FoldedLog | None = None
        self._is_folded = False

    def make_base_schema(self, read: Sequence[str]) -> pa.Schema:
        """Return the columns to read of base rows.

        They are all columns of the merge for a custom merger, else ``read`` and the ordering fields.
        """
        if self._custom:
            return self.schema
        wanted = {*read, *self.deciding.names}
        return pa.schema([field for field in self.schema if field.name in wanted])

    @property
    def whole_rows(self) -> bool:
        """Whether a merge keeps one of two versions unchanged, and so reads only ordering values.

        Valid after ``fold``.
        """
        return isinstance(self._buffer.final_strategy, OrderedStrategy)

    def fold(self) -> FoldedLog | None:
        """Scan, decode and fold the log on the first call; None if it holds no record."""
        if not self._is_folded:
            self._folded = self._fold()
            self._is_folded = True
        return self._folded

    def _fold(self) -> FoldedLog | None:
        if self.info.files.is_local:
            with self._gate.enter():
                return self._fold_blocks(self._scan())
        scanned = self._scan()  # waits for bytes, which other slices can do at the same time
        with self._gate.enter():
            return self._fold_blocks(scanned)

    def _fold_blocks(self, scanned: list[ScannedBlock]) -> FoldedLog | None:
        if self.info.instants is not None and any(each.block.is_partial for each in scanned):
            raise PartialRowsError("Partial updates of a range need the rows that they update.")
        for block in self._read_entries(scanned):
            self._gate.check_wanted()
            self._buffer.add(block.entries, block.scanned.instant, block.positions, partial=block.partial)
        self._stats.log_records = self._buffer.total_log_records
        self.spill.release_free_memory()
        folded = self._buffer.fold()
        self.spill.release_free_memory()
        return folded

    def read_blocks(self) -> Iterator[BlockEntries]:
        """Yield the entries of every block that counts, in merge order; their rows go into the store.

        A large block comes in parts.

        Raises:
            CorruptFileError: a block's content is damaged.
            UnsupportedFeatureError: a block's type is not supported.
            StorageError: rows could not be spilled.
        """
        return self._read_entries(self._scan())

    def _read_entries(self, blocks: list[ScannedBlock]) -> Iterator[BlockEntries]:
        decoder = self._make_decoder(blocks)
        together = SmallDataBlocks(self.context, self.deletes, self._conform, decoder)
        deletes = SmallDeleteBlocks(self.context, blocks, self.spill.budget.portion)
        for index in range(len(blocks)):
            # Without its content: otherwise this frame would keep the file's bytes while the block is decoded.
            scanned = blocks[index].drop_content()
            with _locate_errors(scanned):
                if scanned.block.type is BlockType.DELETE:
                    yield self._read_deletes(blocks[index], deletes.take_entries(index))
                else:
                    yield from self._read_rows(scanned, decoder, together, index)

    def read_rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of every data block in block order, unmerged; delete blocks are skipped."""
        blocks = self._scan()
        decoder = self._make_decoder(blocks)
        for index, scanned in enumerate(blocks):
            if scanned.block.type is not BlockType.DELETE:
                with _locate_errors(scanned):
                    for decoded in decoder.read_records(index):
                        rows, _ = self._conform_rows(decoded, partial=scanned.block.is_partial)
                        self._stats.inserts += rows.num_rows
                        yield rows

    @property
    def rows_at_once(self) -> int:
        """Most log rows that may be gathered at a time within the memory budget."""
        return self.spill.budget.count_rows_at_once(2 * self.store.row_bytes)

    def cut_into_portions(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Cut a batch of base rows into pieces that merge within the memory budget."""
        pairs = 2 * (batch.nbytes // max(1, batch.num_rows) + self.store.row_bytes) + self.strategy.bytes_a_pair
        at_once = self.spill.budget.count_rows_at_once(pairs)
        for start in range(0, batch.num_rows, at_once):
            yield batch.slice(start, at_once)

    def iterate_unmatched(self, folded: FoldedLog, matched: np.ndarray) -> Iterator[BufferedBatch]:
        """Yield the records that no base row matched, in portions of the memory budget."""
        at_once = self.spill.budget.count_rows_at_once(2 * self.store.row_bytes + self.strategy.bytes_a_pair)
        yield from folded.iterate_chosen(matched, at_once, value=False)

    def forget(self) -> None:
        """Free all records; ``fold`` would read them again."""
        self._folded, self._is_folded = None, False
        self._buffer = LogBuffer(self.strategy, self.spill)
        self.store.release(0)

    def close(self) -> None:
        """Remove the spill files; arrays that were read from them become invalid."""
        self.spill.close()

    def _make_decoder(self, blocks: list[ScannedBlock]) -> BlockDecoder:
        times, mappings = self.info.file_times, self.info.mappings
        mapper = None
        if mappings is not None:
            from hoodie_py.reader.schema_evolution.by_id import BlockMapper  # few tables need it

            mapper = BlockMapper(mappings, self.schema, times)
        keyed = self.info.config.is_keyed_by(HFILE_KEY)
        return BlockDecoder(
            blocks, self.schema.names, self.spill.budget.portion, times, mapper, keyed=keyed, wanted=self.info.keys
        )

    def _scan(self) -> list[ScannedBlock]:
        info, logs, strict = self.info, self.file_slice.log_files, self.options.integrity == "strict"
        return scan_log_files(
            info.files, logs, info.rules, self._stats, self.spill, strict=strict, committed=info.committed
        )

    def merge_with_base(self, base: BufferedBatch, newer: BufferedBatch) -> BufferedBatch:
        """Merge base rows with the log records that they match.

        Raises:
            MergeError: with the instants of the key's versions in the log.
        """
        try:
            return self._buffer.final_strategy.final_merge(base, newer)
        except HoodieError as error:
            error.locate(instants=self._buffer.find_instants(error.where.get("key")))
            raise

    def merge_inserted(self, entries: BufferedBatch) -> BufferedBatch:
        """Merge log records that match no base row."""
        return self._buffer.final_strategy.convert_inserts(entries)

    def _read_deletes(self, scanned: ScannedBlock, entries: BufferedBatch | None) -> BlockEntries:
        """Return the entries of a delete block; ``entries`` if they are made already."""
        if entries is None:
            deleted = decode_delete_block(scanned.load())
            ordering = make_delete_ordering_column(deleted, self.context.declared_ordering_types)
            entries = BufferedBatch.of_deletes(self.context, deleted.keys, ordering)
        count = len(entries)
        return BlockEntries(scanned, entries, self._read_positions(scanned, lambda: count), scanned.block.is_partial)

    def _read_rows(
        self, scanned: ScannedBlock, decoder: BlockDecoder, together: SmallDataBlocks, index: int
    ) -> Iterator[BlockEntries]:
        ready = together.take_entries(index)
        if ready is not None:
            yield BlockEntries(
                scanned, ready, self._read_positions(scanned, lambda: len(ready)), scanned.block.is_partial
            )
            return
        positions: np.ndarray | None = None
        done = 0
        for decoded in decoder.read_records(index):
            rows, absent = self._conform_rows(decoded, partial=scanned.block.is_partial)
            if not done:
                positions = self._read_positions(scanned, partial(decoder.count_records, index, decoded))
            first = self.store.add(rows, absent)
            entries = BufferedBatch.of_rows(self.context, first, rows, self.deletes.read_operations(rows))
            some = None if positions is None else positions[done : done + len(entries)]
            yield BlockEntries(scanned, entries, some, scanned.block.is_partial)
            done += len(entries)

    def _conform_rows(self, decoded: pa.RecordBatch, *, partial: bool) -> tuple[pa.RecordBatch, dict[str, np.ndarray]]:
        """Convert a block's rows to the columns of the merge.

        Also return masks for the columns that a partial block lacks.
        """
        if not partial:
            return self._conform(decoded), {}
        lacks = np.broadcast_to(np.True_, decoded.num_rows)
        absent = {name: lacks for name in self.schema.names if name not in decoded.schema.names}
        return conform_batch(decoded, self.schema), absent

    def _read_positions(self, scanned: ScannedBlock, count_of: Callable[[], int]) -> np.ndarray | None:
        """Return the base row of each entry; None unless the block has positions in this slice's base file."""
        base = self.file_slice.base_file
        if not self._use_positions or base is None or not self._buffer.by_position:
            return None
        if scanned.block.base_instant_of_positions != base.instant:
            return None
        if scanned.block.type is BlockType.HFILE_DATA:  # its rows are in key order, not in that of positions
            return None
        count = count_of()
        positions = decode_block_positions(scanned.load(), count)
        return positions if positions is not None and (len(positions) or not count) else None


@contextmanager
def _locate_errors(scanned: ScannedBlock) -> Iterator[None]:
    """Add the block to errors."""
    try:
        yield
    except HoodieError as error:
        error.locate(path=scanned.path, offset=scanned.block.offset, instant=scanned.instant)
        raise
