"""FileGroupReader: one file slice, merged, as Arrow batches (Hudi's HoodieFileGroupReader).

Without log files base rows stream through.  With log files the log side is read and folded first; then base rows stream
by, those whose key the log has meet it, the rest passes uncopied; what the log has and no base row met comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hoodie_py.errors import HoodieError, InvalidQueryError
from hoodie_py.reader.align import match_base, match_positions
from hoodie_py.reader.arrow_context import ArrowRecordContext, Row
from hoodie_py.reader.base_file import BaseFileReader
from hoodie_py.reader.batch import BufferedBatch
from hoodie_py.reader.buffer import FoldedLog
from hoodie_py.reader.conform import conform_batch, constant
from hoodie_py.reader.fields import top_level
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.log_side import LogSide
from hoodie_py.reader.merge_kinds import merges
from hoodie_py.reader.merger import RecordMerger
from hoodie_py.reader.read_info import Readable, ReadInfo, ReadOptions
from hoodie_py.reader.read_stats import ReadStats
from hoodie_py.reader.records import INSERT, NO_OPERATION, UPDATE, BufferedRecord
from hoodie_py.reader.sizes import check_sizes

_KEY_BATCH_ROWS = 65_536
_LEAST_BASE_ROWS = 32  # rows read at once where log rows merge, however small the batches handed out are
RowGroupFilter = Callable[[pq.FileMetaData], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Merged:
    """Records that the log touched: what they were, what the log says, what became of them.

    Attributes:
        older: the base rows; None where the log's records meet none.
        newer: what the log says, one record for each of ``older``.
        result: what became of them, deletes included; operations are I for rows that only the log has, U for changed
            base rows, none for base rows that stay as they are, and D or -U for deletes.
    """

    older: BufferedBatch | None
    newer: BufferedBatch
    result: BufferedBatch


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the result: base rows that the log left as they are, and records that it touched."""

    untouched: pa.RecordBatch | None
    merged: Merged | None


class FileGroupReader:
    """Reads one file slice.

    Args:
        file_slice: what to read.
        table: the table, or the facts of it that reading takes.
        columns: names of the columns wanted, in order; None for all.
        merger: decides instead of the table's merge mode.
        options: settings of the read.
        row_groups: says which row groups of a slice without log files can hold wanted rows.

    Raises:
        InvalidQueryError: an unknown or repeated column.
    """

    def __init__(
        self,
        file_slice: FileSlice,
        table: Readable | ReadInfo,
        columns: Sequence[str] | None = None,
        merger: RecordMerger | type[RecordMerger] | None = None,
        options: ReadOptions | None = None,
        row_groups: RowGroupFilter | None = None,
    ) -> None:
        self.file_slice = file_slice
        self.info = table if isinstance(table, ReadInfo) else table.read_info(file_slice)
        self.options = options or ReadOptions()
        self.stats = ReadStats()
        self._merger = merger
        self._row_groups = row_groups
        self._context: ArrowRecordContext | None = None
        names = self.info.schema.names if columns is None else list(columns)
        self._check_columns(names)
        self.schema = pa.schema([self.info.schema.field(name).with_nullable(True) for name in names])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows in batches of at most ``batch_rows``, with the columns asked for."""
        with self._placed():
            for batch in self._batches():
                for start in range(0, batch.num_rows, self.options.batch_rows):
                    yield batch.slice(start, self.options.batch_rows)

    def buffered_records(self, *, emit_deletes: bool = False) -> Iterator[BufferedRecord[Row]]:
        """Yield the records of the result, with the operation that the log did to them; untouched base rows have none.

        Args:
            emit_deletes: yield deleted records too (operation D or -U), with data where there is any.
        """
        log = self._log_side(self.info.schema.names)
        for piece in self._pieces(log, log.schema):
            if piece.untouched is not None:
                first = log.store.add(piece.untouched)
                rows = BufferedBatch.of_rows(log.context, first, piece.untouched, None)
                log.context.focus(rows.rows)  # handles are used again: what is known of earlier rows goes
                yield from rows.records()
                log.store.release(first)
            if piece.merged is not None:
                touched = piece.merged.result
                if piece.merged.older is not None:
                    changed = (touched.rows != piece.merged.older.rows) | touched.deletes
                    touched = touched.take(np.flatnonzero(changed))
                log.context.focus(touched.rows)
                yield from (touched if emit_deletes else touched.take(np.flatnonzero(~touched.deletes))).records()

    @property
    def context(self) -> ArrowRecordContext:
        """The door to the data of the records that ``buffered_records``, ``merges`` or ``log_records`` is giving.

        Records are valid until the next one is asked for.

        Raises:
            InvalidQueryError: none of them was called yet.
        """
        if self._context is None:
            raise InvalidQueryError("The reader has no records yet.", hint="Ask it for buffered_records() first.")
        return self._context

    def merges(self) -> Iterator[Merged]:
        """Yield what the log touched as (older, newer, result), what change feeds and compaction statistics need."""
        log = self._log_side(self.info.schema.names)
        for piece in self._pieces(log, log.schema):
            if piece.merged is not None:
                yield piece.merged

    def keys(self) -> Iterator[str]:
        """Yield the record keys of the result."""
        for record in self.buffered_records():
            yield record.record_key

    def log_records(self) -> Iterator[BufferedRecord[Row]]:
        """Yield what the log says of each key, deletes included, without looking at the base file."""
        with self._placed():
            folded = self._log_side(self.info.schema.names).fold()
        if folded is not None:
            yield from folded.records.records()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self.options.integrity == "strict":
            check_sizes(self.info.files, self.file_slice, self.info.expected_sizes)
        if not self.file_slice.log_files:
            yield from self._base_only()
            return
        read = [name for name in self.schema.names if name not in self.info.constants]
        if not merges(self.options.options):
            yield from self._unmerged(read)
            return
        log = self._log_side(read)
        for piece in self._pieces(log, log.base_schema(read)):
            if piece.untouched is not None:
                yield self._output(piece.untouched)
            if piece.merged is not None:
                live = self._changed(piece.merged)
                if len(live):
                    yield self._output(log.store.take(live, read))

    def _unmerged(self, read: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield base rows, then every log row; nothing meets and nothing is deleted."""
        yield from self._base_only()
        for batch in self._log_side(read).rows():
            yield self._output(batch)

    @staticmethod
    def _changed(merged: Merged) -> np.ndarray:
        """Return the handles of live rows that are not the unchanged base row."""
        live = ~merged.result.deletes
        if merged.older is not None:
            live &= merged.result.rows != merged.older.rows
        return np.asarray(merged.result.rows[live])

    def _base_only(self) -> Iterator[pa.RecordBatch]:
        if self.file_slice.base_file is None:
            return
        base = BaseFileReader(self.info.files, self.file_slice.base_file)
        row_groups = None if self._row_groups is None else self._row_groups(base.metadata)
        schema = pa.schema([field for field in self.schema if field.name not in self.info.constants])
        for batch in base.batches(schema, self.options.batch_rows, row_groups):
            self.stats.base_rows += batch.num_rows
            yield self._output(self._with_fallbacks(batch, base))

    def _log_side(self, read: Sequence[str]) -> LogSide:
        log = LogSide(self.file_slice, self.info, read, self._merger, self.options, self.stats)
        self._context = log.context
        return log

    def _pieces(self, log: LogSide, base_schema: pa.Schema) -> Iterator[_Piece]:
        """Yield the result piece by piece: base rows with what they met, then what only the log has."""
        with self._placed():
            yield from self._merged_pieces(log, base_schema)

    def _merged_pieces(self, log: LogSide, base_schema: pa.Schema) -> Iterator[_Piece]:
        folded = log.fold()
        entries = None if folded is None else folded.records
        met = np.zeros(0 if entries is None else len(entries), bool)
        if self.file_slice.base_file is not None:
            base = BaseFileReader(self.info.files, self.file_slice.base_file)
            at = self._match(base, log, folded)
            done = 0
            for batch in base.batches(base_schema, max(self.options.batch_rows, _LEAST_BASE_ROWS)):
                batch = self._with_fallbacks(batch, base)
                self.stats.base_rows += batch.num_rows
                here = at[done : done + batch.num_rows]
                done += batch.num_rows
                met[here[here >= 0]] = True
                yield from self._meet(batch, here, entries, log)
        if entries is not None:
            yield self._leftovers(entries, ~met, log)

    def _match(self, base: BaseFileReader, log: LogSide, folded: FoldedLog | None) -> np.ndarray:
        """Return for each base row the log record it meets, -1 for none."""
        if folded is None:
            return np.full(base.num_rows, -1, np.int64)
        if folded.positions is not None:
            return match_positions(folded.positions, base.num_rows)
        columns = list(dict.fromkeys(top_level(self.info.schema, name) for name in log.keys.columns))
        batches = base.column(columns, self.info.schema, _KEY_BATCH_ROWS)
        keys = [log.keys.keys_of_batch(self._with_fallbacks(batch, base)) for batch in batches]
        return match_base(pa.chunked_array(keys, pa.string()), folded.records.keys)

    def _meet(
        self, batch: pa.RecordBatch, at: np.ndarray, entries: BufferedBatch | None, log: LogSide
    ) -> Iterator[_Piece]:
        """Merge one base batch with the log entries its rows meet."""
        hits = np.flatnonzero(at >= 0)
        if entries is None or not len(hits):
            yield _Piece(batch, None)
            return
        newer = entries.take(at[hits])
        mark = len(log.store)
        rows = conform_batch(batch.take(pa.array(hits)), log.schema)
        older = BufferedBatch.of_base(log.context, log.store.add(rows), rows, newer.keys)
        result = log.final(older, newer)
        unchanged = (result.rows == older.rows) & ~result.deletes
        self.stats.deletes += int(result.deletes.sum())
        self.stats.updates += int((~result.deletes & ~unchanged).sum())
        keep = np.ones(batch.num_rows, bool)
        keep[hits] = unchanged
        result = result.with_operations(np.where(unchanged, np.int8(NO_OPERATION), np.int8(UPDATE)))
        yield _Piece(batch.filter(pa.array(keep)), Merged(older, newer, result))
        log.store.release(mark)

    def _leftovers(self, entries: BufferedBatch, unmet: np.ndarray, log: LogSide) -> _Piece:
        """Return what only the log has."""
        newer = entries.take(np.flatnonzero(unmet))
        result = log.inserted(newer)
        inserts = int((~result.deletes).sum())
        self.stats.deletes += len(result) - inserts
        self.stats.inserts += inserts
        return _Piece(None, Merged(None, newer, result.with_operations(np.full(len(result), INSERT, np.int8))))

    def _with_fallbacks(self, batch: pa.RecordBatch, base: BaseFileReader) -> pa.RecordBatch:
        """Fill columns that the file lacks and the partition path gives."""
        for name, value in self.info.fallbacks.items():
            at = batch.schema.get_field_index(name)
            if at >= 0 and name not in base.columns:
                field = batch.schema.field(at)
                batch = batch.set_column(at, field, constant(value, field.type, batch.num_rows))
        return batch

    def _output(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns asked for, those that the partition path gives filled in."""
        arrays: list[Any] = []
        for field in self.schema:
            if field.name in self.info.constants:
                arrays.append(constant(self.info.constants[field.name], field.type, batch.num_rows))
            else:
                arrays.append(batch.column(field.name))
        if not arrays:
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _check_columns(self, names: Sequence[str]) -> None:
        known = self.info.schema.names
        for position, name in enumerate(names):
            if name not in known:
                raise InvalidQueryError(f"Unknown column {name!r}.", hint=f"The table has: {', '.join(known)}.")
            if name in names[:position]:
                raise InvalidQueryError(f"Column {name!r} is asked for twice.")

    @contextmanager
    def _placed(self) -> Iterator[None]:
        """Say in which file group an error was met."""
        try:
            yield
        except HoodieError as error:
            error.located(file_group=self.file_slice.file_id, partition=self.file_slice.partition_path or None)
            raise
