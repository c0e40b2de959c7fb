"""MergeReader: reads a file group for a writer or a table service, as records with operations in a defined order.

Queries take rows in any order. A writer that rewrites a file group needs records in the base file's order or by key,
sometimes with deletes, merged with log files or with the rows of a write. This is Hudi's HoodieFileGroupReader with its
sorted, streaming and reusable record buffers:

* merged: base rows in file order, merged with their log records, then the records that only the log has;
* sorted: the same, but the base file is sorted by key, and each record that only the log has comes in key order (by
  UTF-16 units, as Java compares strings);
* unmerged: base rows, then every log row in log order, all without operations.

``IncomingReader`` merges a writer's rows into a file group instead of log files. It is Hudi's
StreamingFileGroupRecordBufferLoader. The writer may pass operations with the rows, so the operation column is not read.
A row is a delete if the flag column or the table's delete marker says so; the operation -U stays -U.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidQueryError
from hoodie_py.options.read import MERGE_USE_POSITIONS
from hoodie_py.reader.base.base_merge import MergedRecords, Piece
from hoodie_py.reader.base.bootstrap import open_base_file
from hoodie_py.reader.base.file_formats import OpenBaseFile
from hoodie_py.reader.buffer.folded_log import FoldedLog
from hoodie_py.reader.buffer.log_buffer import LogBuffer
from hoodie_py.reader.file_group import FileGroupReader, iterate_records, make_plain_records, needs_merge
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import Readable, ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.record.arrow_context import ArrowRecordContext, Row
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.ordering import OrderingColumn
from hoodie_py.reader.record.record import UPDATE_BEFORE, BufferedRecord, is_delete_code
from hoodie_py.reader.schema_evolution.by_name import conform_batch


@dataclass(frozen=True, slots=True)
class IncomingRows:
    """Rows to write; meta columns may be missing."""

    rows: pa.RecordBatch
    operations: Sequence[int] | np.ndarray | None = None  # code of each row, -1 for none; None if no row has one


@dataclass(frozen=True, slots=True)
class IncomingDeletes:
    """Records to delete, by key.

    ``ordering``: one value per key (of the field's type, a tuple for several fields, or DEFAULT_ORDERING), or a column
    of such values; empty if no key has one.
    """

    keys: pa.Array
    ordering: OrderingColumn | Sequence[Any]


class IncomingReader(LogReader):
    """Folds the rows and deletes of a write, older ones first, as if they were the log of the file slice."""

    writing = True

    def __init__(
        self,
        incoming: Sequence[IncomingRows | IncomingDeletes],
        file_slice: FileSlice,
        info: ReadInfo,
        read: Sequence[str],
        merger: Merger | None,
        options: ReadOptions,
        stats: ReadStats,
    ) -> None:
        super().__init__(file_slice, info, read, merger, options, stats)
        self._incoming = incoming

    def _fold(self) -> FoldedLog | None:
        buffer = LogBuffer(self.strategy, self.spill)
        for part in self._incoming:
            buffer.add(self._make_entries(part), "")
        self._stats.log_records = buffer.total_log_records
        return buffer.fold()

    def _make_entries(self, part: IncomingRows | IncomingDeletes) -> BufferedBatch:
        if isinstance(part, IncomingDeletes):
            return BufferedBatch.of_deletes(self.context, part.keys, self._get_delete_ordering(part))
        rows = conform_batch(part.rows, self.schema, {**self.info.defaults, **self.info.fallbacks})
        return BufferedBatch.of_rows(self.context, self.store.add(rows), rows, self._find_operations(part, rows))

    def _get_delete_ordering(self, part: IncomingDeletes) -> OrderingColumn | Sequence[Any]:
        if not self.context.ordering_fields:  # of this write, which may differ from the table's
            return ()
        if len(part.ordering) or not len(part.keys):
            return part.ordering
        none = [pa.nulls(len(part.keys), each) for each in self.context.ordering_types]
        return OrderingColumn.of_deletes(none, len(part.keys))

    def _find_operations(self, part: IncomingRows, rows: pa.RecordBatch) -> np.ndarray:
        marked = replace(self.deletes, operation=False).read_operations(rows)
        if part.operations is None:
            return marked
        said = np.asarray(part.operations, np.int8)
        keeps = ~is_delete_code(marked) | (said == UPDATE_BEFORE)
        return np.where(keeps, said, marked).astype(np.int8)


Records = Iterator[BufferedRecord[Row]]


class BufferKind(StrEnum):
    """How log rows find base rows, and in which order the result comes."""

    KEY = "key"
    POSITION = "position"
    SORTED = "sorted"
    UNMERGED = "unmerged"


def choose_buffer_kind(
    options: Mapping[str, str],
    *,
    streaming: bool = False,
    sort_output: bool = False,
    use_positions: bool = False,
    has_base_file: bool = False,
) -> BufferKind:
    """Return how log rows find base rows.

    ``streaming`` rows come from a writer, not from log files; they have no positions and always merge.

    Raises:
        InvalidQueryError: an unknown merge type.
    """
    if not streaming and not needs_merge(options):
        return BufferKind.UNMERGED
    if sort_output:
        return BufferKind.SORTED
    if use_positions and has_base_file and not streaming:
        return BufferKind.POSITION
    return BufferKind.KEY


class MergeReader(FileGroupReader):
    """Reads one file slice as records; the log is read once, and kept until ``close``.

    ``incoming``: rows and deletes of a write, which replace the slice's log files. ``sort_output``: return records in
    key order; the base file must be sorted by key.

    Raises:
        InvalidQueryError: an unknown merge type.
    """

    def __init__(
        self,
        file_slice: FileSlice,
        table: Readable | ReadInfo,
        *,
        merger: Merger | None = None,
        options: ReadOptions | None = None,
        incoming: Sequence[IncomingRows | IncomingDeletes] | None = None,
        sort_output: bool = False,
    ) -> None:
        super().__init__(file_slice, table, None, merger, options)
        self._incoming = incoming
        self.kind = choose_buffer_kind(
            self.options.options,
            streaming=incoming is not None,
            sort_output=sort_output,
            use_positions=MERGE_USE_POSITIONS.read(self.options.options),
            has_base_file=file_slice.base_file is not None,
        )

    @property
    def context(self) -> ArrowRecordContext:
        """The context of the records; a record is valid until the next one is read."""
        return self.load().loaded.context

    @property
    def by_position(self) -> bool:
        """Whether log records match base rows by position; one log block without positions makes all match by key."""
        folded = self._fold(self.load().loaded)
        return self.kind is BufferKind.POSITION and (folded is None or folded.positions is not None)

    def buffered_records(self, *, emit_deletes: bool = False) -> Records:
        """Yield the records of the result with the log's operation on each; base rows without log records have none.

        With ``emit_deletes`` deleted records (operation D or -U) are included, with data where they have any.
        """
        if self.kind is BufferKind.UNMERGED:
            return self._read_unmerged_records()
        return self._read_merged_records(emit_deletes, None)

    def look_up(self, keys: Sequence[str], *, emit_deletes: bool = False) -> Records:
        """Yield all base rows, and of the records only in the log those of some keys. Many calls read the log once.

        Every base row matches the log record of its key, even if the base file has a key more than once.

        Raises:
            InvalidQueryError: no keys are given.
        """
        if not keys:
            raise InvalidQueryError("A look-up needs record keys.")
        return self._read_merged_records(emit_deletes, frozenset(keys))

    def _read_batches(self) -> Iterator[pa.RecordBatch]:
        if self._incoming is None:
            yield from super()._read_batches()
            return
        log = self._open_log(self.schema.names)
        for piece in self._merge_pieces(log, log.schema):
            if piece.untouched is not None:
                yield self._output.make(piece.untouched)
            if piece.merged is not None:
                yield self._output.make(log.store.take(self._find_changed_rows(piece.merged), self.schema.names))

    def _open_log(self, read: Sequence[str]) -> LogReader:
        if self._incoming is None or self._loaded is not None:
            return super()._open_log(read)
        return IncomingReader(self._incoming, self.file_slice, self.info, read, self._merger, self.options, self.stats)

    def _fold(self, log: LogReader) -> FoldedLog | None:
        return None if self.kind is BufferKind.UNMERGED else log.fold()

    def _read_merged_records(self, emit_deletes: bool, wanted: frozenset[str] | None) -> Records:
        log = self.load().loaded
        folded = self._fold(log)
        base_file = self.file_slice.base_file
        base = None if base_file is None else open_base_file(self.info, base_file, self.options)
        at = np.empty(0, np.int64) if base is None else self._match_rows(base, log, folded, again=wanted is not None)
        log_only = self._read_log_only(log, folded, at, wanted, emit_deletes)
        rest = _LogOnlyRecords(list(log_only) if self.kind is BufferKind.SORTED else [])
        if base is not None:
            for record in self._read_base_records(base, log, folded, at, emit_deletes):
                yield from rest.take_before(record.record_key)
                yield record
        yield from rest.take_all()
        for records in log_only:
            yield from iterate_records(records, emit_deletes=True)

    def _match_rows(self, base: OpenBaseFile, log: LogReader, folded: FoldedLog | None, *, again: bool) -> np.ndarray:
        """Find for each base row the log record that it matches, -1 for none; ``again`` lets one match many rows."""
        if folded is None:
            return np.broadcast_to(np.int64(-1), base.num_rows)
        return self._base.match_rows(base, log, folded, again=again)

    def _read_base_records(
        self, base: OpenBaseFile, log: LogReader, folded: FoldedLog | None, at: np.ndarray, emit_deletes: bool
    ) -> Records:
        done = 0
        for whole in base.read_batches(log.schema, self.options.batch_rows):
            self.stats.base_rows += whole.num_rows
            for batch in log.cut_into_portions(self._base.fill_fallbacks(whole, base)):
                here = at[done : done + batch.num_rows]
                done += batch.num_rows
                for piece in self._merge_batch(batch, here, folded, log):
                    yield from _iterate_in_file_order(piece.untouched, piece.merged, here, log, emit_deletes)

    def _merge_batch(
        self, batch: pa.RecordBatch, at: np.ndarray, folded: FoldedLog | None, log: LogReader
    ) -> Iterator[Piece]:
        hits = np.flatnonzero(at >= 0)
        if folded is None or not len(hits):
            yield Piece(batch, None)
        else:
            mark = len(log.store)
            yield self._base.merge_rows(batch, hits, folded.take(at[hits]), log)
            log.store.release(mark)

    def _read_log_only(
        self,
        log: LogReader,
        folded: FoldedLog | None,
        at: np.ndarray,
        wanted: frozenset[str] | None,
        emit_deletes: bool,
    ) -> Iterator[BufferedBatch]:
        """Yield the log records that match no base row, of all keys or of the wanted ones."""
        if folded is None:
            return
        passed = log.spill.make_array(len(folded), bool, False)
        passed[at[at >= 0]] = True
        if wanted is not None:
            keys = pa.array(wanted, pa.string())
            for start, part in zip(folded.starts.tolist(), folded.parts, strict=False):
                passed[start : start + len(part)] |= ~np.asarray(pc.is_in(part.keys, value_set=keys))
        for newer in log.iterate_unmatched(folded, passed):
            merged = self._base.merge_log_only(newer, log).merged
            if merged is not None:
                result = merged.result
                yield result if emit_deletes else result.take(np.flatnonzero(~result.deletes))

    def _read_unmerged_records(self) -> Records:
        log = self.load().loaded
        base_file = self.file_slice.base_file
        if base_file is not None:
            base = open_base_file(self.info, base_file, self.options)
            for batch in base.read_batches(log.schema, self.options.batch_rows):
                self.stats.base_rows += batch.num_rows
                yield from make_plain_records(log, self._base.fill_fallbacks(batch, base))
        for batch in log.read_rows():
            yield from make_plain_records(log, batch)


class _LogOnlyRecords:
    """The records that only the log has, in key order."""

    def __init__(self, records: Sequence[BufferedBatch]) -> None:
        self._records = BufferedBatch.concat(records) if records else None
        keys = [] if self._records is None else [_make_sort_key(key) for key in self._records.keys.to_pylist()]
        self._order = sorted(range(len(keys)), key=keys.__getitem__)
        self._keys = [keys[i] for i in self._order]
        self._next = 0

    def take_before(self, key: str) -> Records:
        """Yield the next records whose keys come before a base row's key."""
        first = self._next
        if first == len(self._keys):
            return iter(())
        bound = _make_sort_key(key)
        while self._next < len(self._keys) and self._keys[self._next] < bound:
            self._next += 1
        return self._take(first, self._next)

    def take_all(self) -> Records:
        """Yield the remaining records."""
        first, self._next = self._next, len(self._order)
        return self._take(first, self._next)

    def _take(self, start: int, stop: int) -> Records:
        if self._records is not None and start < stop:
            chosen = self._records.take(np.asarray(self._order[start:stop], np.int64))
            yield from iterate_records(chosen, emit_deletes=True)


def _iterate_in_file_order(
    untouched: pa.RecordBatch | None, merged: MergedRecords | None, at: np.ndarray, log: LogReader, emit_deletes: bool
) -> Records:
    """Yield the records of one base batch in file order.

    ``at``: for each row of the batch the log record that it matches, -1 for none. Some rows in ``merged`` are
    unchanged, too.
    """
    stays = np.ones(len(at), bool)
    touched: BufferedBatch | None = None
    if merged is not None and merged.older is not None:
        changes = merged.changes
        stays[np.flatnonzero(at >= 0)[changes]] = False
        touched = merged.result.take(np.flatnonzero(changes))
    mark = len(log.store)
    parts = [] if untouched is None else [BufferedBatch.of_rows(log.context, log.store.add(untouched), untouched, None)]
    both = BufferedBatch.concat([*parts, *([] if touched is None else [touched])])
    places = np.empty(len(at), np.int64)  # where in ``both`` the record of each row of the batch is
    places[np.concatenate([np.flatnonzero(stays), np.flatnonzero(~stays)])] = np.arange(len(at))
    ordered = both.take(places)
    yield from iterate_records(ordered, emit_deletes=emit_deletes)
    log.store.release(mark)


def _make_sort_key(key: str) -> bytes:
    """Return bytes that sort by UTF-16 units, as Java's String.compareTo does."""
    return key.encode("utf-16-be", "surrogatepass")
