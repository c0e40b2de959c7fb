"""BaseMerge: merges the rows of a base file with the log records that they match.

There are two ways, which give the same rows. Where every merge takes one of two versions unchanged and the matching
rows are known (``match``), the ordering values of the whole base file are compared first, in a few large steps; then
the base rows that stay are read. Elsewhere base rows are merged batch by batch. Hudi's file group record buffers merge
row by row.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import filter_rows, from_numpy, repeat_value, take
from hoodie_py.arrow.fields import find_top_level_name
from hoodie_py.reader.base.bootstrap import open_base_file
from hoodie_py.reader.base.file_formats import OpenBaseFile
from hoodie_py.reader.base.match import (
    NO_MATCHES,
    KeyMatcher,
    Matcher,
    RowMatcher,
    make_position_matcher,
    match_base_rows,
)
from hoodie_py.reader.buffer.folded_log import FoldedLog
from hoodie_py.reader.file_slice import BaseFile, FileSlice
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.record import INSERT, NO_OPERATION, UPDATE
from hoodie_py.reader.schema_evolution.by_name import NullColumns, conform_batch
from hoodie_py.runtime.telemetry import carry_span

if TYPE_CHECKING:
    from concurrent.futures import Future

_KEY_BATCH_ROWS = 65_536
_MOST_KEYS_BY_BATCH = 1 << 17  # for more log keys, hashing them per batch costs more than reading base keys ahead
_FEWEST_KEYED_ROWS = 4  # a batch matched by key has at least one base row per four log keys
_FEW_BYTES = 1 << 20  # log rows of fewer bytes may stay in memory while a small base file is read
_LEAST_BASE_ROWS = 32  # fewest base rows to read at once, however small ``batch_rows`` is
_MASK_ROWS = 1 << 18  # one mask serves many batches: each NumPy call may lose Python's lock to another thread


@dataclass(frozen=True, slots=True)
class MergedRecords:
    """Records that the log touched.

    Attributes:
        older: the base rows; None for log records that match no base row.
        newer: the log's records, one for each of ``older``.
        result: the merged records, deletes included. Operations are I for rows that only the log has, U for changed
            base rows, none for unchanged base rows, and D or -U for deletes.
    """

    older: BufferedBatch | None
    newer: BufferedBatch
    result: BufferedBatch

    @property
    def changes(self) -> np.ndarray:
        """A bool per record: whether it differs from the base row."""
        if self.older is None:
            return np.ones(len(self.result), bool)
        return np.asarray((self.result.rows != self.older.rows) | self.result.deletes)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the result: base rows without log records, and records that the log touched."""

    untouched: pa.RecordBatch | None
    merged: MergedRecords | None


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The result of a merge, as iterators.

    Attributes:
        pieces: parts of the result, to be read first.
        ahead: whether the base rows are read later, so that pieces hold only log records.
        staying: unchanged base rows that are in no piece; the log's memory may be freed before they are read.
    """

    pieces: Iterator[Piece]
    ahead: bool = False
    staying: Iterator[pa.RecordBatch] = field(default_factory=lambda: iter(()))


class BaseMerge:
    """Merges the base file of one file slice with its folded log."""

    def __init__(self, file_slice: FileSlice, info: ReadInfo, options: ReadOptions, stats: ReadStats) -> None:
        self._file_slice = file_slice
        self._info = info
        self._options = options
        self._stats = stats
        self._nulls = NullColumns()
        self._coming: Future[OpenBaseFile] | None = None
        self._opened: OpenBaseFile | None = None

    def open_first(self) -> OpenBaseFile | None:
        """Open the base file before ``merge``, which then uses it; None if there is none. Errors as ``merge``."""
        if self._file_slice.base_file is not None:
            self._opened = self._open_base_file(self._file_slice.base_file)
        return self._opened

    def read_from(self, base: OpenBaseFile) -> None:
        """Have ``merge`` read the rows of a file that is open."""
        self._opened = base

    @contextmanager
    def open_ahead(self) -> Iterator[None]:
        """Open a remote base file on another thread while the log is read."""
        base_file = self._file_slice.base_file
        if base_file is None or self._info.files.is_local:
            yield
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1, thread_name_prefix="hoodie-open") as pool:
            info = self._info
            self._coming = pool.submit(carry_span(open_base_file), info, base_file, self._options, info.instants)
            yield

    def _open_base_file(self, base_file: BaseFile) -> OpenBaseFile:
        coming, self._coming = self._coming, None
        if coming is not None:
            return coming.result()
        opened, self._opened = self._opened, None
        if opened is not None:
            return opened
        return open_base_file(self._info, base_file, self._options, self._info.instants)

    def merge(
        self, log: LogReader, folded: FoldedLog | None, base_schema: pa.Schema, columns: list[str] | None = None
    ) -> MergeResult:
        """Merge the base file, read with the columns of ``base_schema``, with the log.

        With ``columns`` unchanged base rows have only these columns, and a built-in merge gathers only the ordering
        values of matching base rows. Without ``columns`` every row comes in a piece, with all columns.
        """
        matched = log.spill.make_array(0 if folded is None else len(folded), bool, False)
        if self._file_slice.base_file is None:
            return MergeResult(self._merge_unmatched(folded, matched, log))
        base = self._open_base_file(self._file_slice.base_file)
        matcher = self._make_matcher(base, log, folded)
        if folded is None or columns is None or not self._is_decided_ahead(base, matcher, log):
            pieces = self._merge_by_batch(base, matcher, folded, log, matched, base_schema, columns)
            return MergeResult(chain(pieces, self._merge_unmatched(folded, matched, log)))
        dropped = DroppedRows(log.spill.make_array(len(folded), np.int64, 0))
        pieces = self._decide_ahead(base, matcher, folded, log, matched, dropped)
        schema = pa.schema([field for field in base_schema if field.name in columns])
        staying = self._read_kept_rows(base, dropped, schema, self._choose_coded_columns(schema, log, columns))
        # The order matters: ``matched`` and ``dropped`` are complete only when all pieces of the base file were read.
        return MergeResult(chain(pieces, self._merge_unmatched(folded, matched, log)), True, staying)

    def _merge_unmatched(self, folded: FoldedLog | None, matched: np.ndarray, log: LogReader) -> Iterator[Piece]:
        """Merge the log records that no base row matched; to be read after all base rows."""
        if folded is not None:
            for newer in log.iterate_unmatched(folded, matched):
                yield self.merge_log_only(newer, log)

    def _merge_by_batch(
        self,
        base: OpenBaseFile,
        matcher: Matcher,
        folded: FoldedLog | None,
        log: LogReader,
        matched: np.ndarray,
        base_schema: pa.Schema,
        columns: list[str] | None,
    ) -> Iterator[Piece]:
        """Merge base rows batch by batch."""
        schema, rows = base_schema, self._base_rows
        if isinstance(matcher, KeyMatcher):
            schema = self._add_key_columns(base_schema, log)
            rows = max(rows, len(matched) // _FEWEST_KEYED_ROWS)
        coded, threads = self._choose_coded_columns(schema, log, columns), self._options.column_threads
        batches = base.read_batches(schema, rows, coded=coded, column_threads=threads)
        portions: Iterator[pa.RecordBatch] = map(partial(self.fill_fallbacks, base=base), batches)
        if columns is None or not log.whole_rows:  # whole base rows are gathered, which must fit the memory budget
            portions = chain.from_iterable(map(log.cut_into_portions, portions))
        mark = len(log.store)

        def merge_portion(batch: pa.RecordBatch) -> Piece:
            log.store.release(mark)  # the caller has used the rows of the piece before
            self._stats.base_rows += batch.num_rows
            hits, records = matcher.match(batch)
            if folded is None or not len(hits):
                return Piece(batch, None)
            matched[records] = True
            return self.merge_rows(batch, hits, folded.take(records), log, columns)

        # Iterators like map hold no batch. A loop would hold one in its variable while the caller uses what is left of
        # it, and while the next one is read.
        yield from map(merge_portion, portions)
        log.store.release(mark)

    def _is_decided_ahead(self, base: OpenBaseFile, matcher: Matcher, log: LogReader) -> bool:
        """Say whether to compare the ordering values of the whole base file before reading its rows.

        That takes a few large steps instead of several per batch, and log rows leave memory before base rows come. It
        requires that the matching rows are known and that reading the ordering columns twice costs no request.
        """
        near = self._info.files.is_local or not log.deciding.names
        by_key = isinstance(matcher, KeyMatcher)
        pays = base.num_rows > self._base_rows or log.store.nbytes > _FEW_BYTES
        return near and not by_key and log.whole_rows and pays

    def _decide_ahead(
        self,
        base: OpenBaseFile,
        matcher: Matcher,
        folded: FoldedLog,
        log: LogReader,
        matched: np.ndarray,
        dropped: DroppedRows,
    ) -> Iterator[Piece]:
        """Merge by ordering values alone the base rows that match log records; note the base rows that are dropped."""
        done, mark = 0, len(log.store)
        rows = min(_KEY_BATCH_ROWS, log.spill.budget.count_rows_at_once(log.strategy.bytes_a_pair))
        for batch in base.read_batches(log.deciding, rows, column_threads=self._options.column_threads):
            hits, records = matcher.match(batch)
            if len(hits):
                matched[records] = True
                merged, unchanged = self._pick_winners(
                    self.fill_fallbacks(batch, base), hits, folded.take(records), log
                )
                dropped.note(done + hits[~unchanged])
                yield Piece(None, merged)
                log.store.release(mark)
            done += batch.num_rows
            del batch  # before the next one is read

    def _read_kept_rows(
        self, base: OpenBaseFile, dropped: DroppedRows, schema: pa.Schema, coded: set[str]
    ) -> Iterator[pa.RecordBatch]:
        """Return an iterator of the base rows that stay."""

        def drop_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
            self._stats.base_rows += batch.num_rows
            mask = dropped.make_mask(batch.num_rows)
            filled = self.fill_fallbacks(batch, base)
            return filled if mask is None else filter_rows(filled, mask)

        threads = self._options.column_threads
        return map(drop_rows, base.read_batches(schema, self._base_rows, coded=coded, column_threads=threads))

    @property
    def _base_rows(self) -> int:
        return max(self._options.batch_rows, _LEAST_BASE_ROWS)

    @staticmethod
    def _choose_coded_columns(schema: pa.Schema, log: LogReader, columns: list[str] | None) -> set[str]:
        """Return the columns that base rows may have as dictionaries: all but the keys, if no base row is gathered."""
        if columns is None or not log.whole_rows:  # portions are cut by a batch's bytes, which dictionaries hide
            return set()
        return set(columns) - {find_top_level_name(schema, name) for name in log.keys.columns}

    def _make_matcher(self, base: OpenBaseFile, log: LogReader, folded: FoldedLog | None) -> Matcher:
        if folded is None:
            return NO_MATCHES
        if len(folded.parts) == 1 and folded.positions is not None:
            return make_position_matcher(folded.positions[0], base.num_rows)
        if len(folded.parts) == 1 and len(folded) <= _MOST_KEYS_BY_BATCH:
            return KeyMatcher(folded.parts[0].keys, log.keys.read_keys)
        return RowMatcher(self.match_rows(base, log, folded))

    def match_rows(self, base: OpenBaseFile, log: LogReader, folded: FoldedLog, *, again: bool = False) -> np.ndarray:
        """Find for each base row the log record that it matches, -1 for none; ``again`` as for ``match_base_rows``."""
        batches = base.read_batches(self._add_key_columns(pa.schema([]), log), _KEY_BATCH_ROWS)
        keys = (log.keys.read_keys(self.fill_fallbacks(batch, base)) for batch in batches)
        at = match_base_rows(folded, keys, base.num_rows, log.spill, again=again)
        log.spill.release_free_memory()
        return at

    def _add_key_columns(self, schema: pa.Schema, log: LogReader) -> pa.Schema:
        """Add the columns that record keys are made of."""
        columns = dict.fromkeys(find_top_level_name(self._info.schema, name) for name in log.keys.columns)
        return pa.schema([*schema, *(self._info.schema.field(name) for name in columns if name not in schema.names)])

    def merge_rows(
        self,
        batch: pa.RecordBatch,
        hits: np.ndarray,
        newer: BufferedBatch,
        log: LogReader,
        columns: list[str] | None = None,
    ) -> Piece:
        """Merge the rows ``hits`` of a base batch with the log records that they match; ``columns`` as for ``merge``.

        Gathered rows are added to the store.
        """
        if columns is not None and log.whole_rows:
            merged, unchanged = self._pick_winners(batch, hits, newer, log)
        else:
            rows = conform_batch(take(batch, from_numpy(hits)), log.schema, absent=self._nulls)
            merged, unchanged = self._merge_versions(log.store.add(rows), rows, newer, log)
        keep = np.ones(batch.num_rows, bool)
        keep[hits] = unchanged
        kept = batch if columns is None else batch.select(columns)
        return Piece(filter_rows(kept, from_numpy(keep)), merged)

    def _pick_winners(
        self, batch: pa.RecordBatch, hits: np.ndarray, newer: BufferedBatch, log: LogReader
    ) -> tuple[MergedRecords, np.ndarray]:
        """Merge where one version wins unchanged: only the ordering values of base rows are gathered."""
        rows = conform_batch(take(batch.select(log.deciding.names), from_numpy(hits)), log.deciding)
        return self._merge_versions(log.store.reserve(len(hits)), rows, newer, log)

    def _merge_versions(
        self, first: int, rows: pa.RecordBatch, newer: BufferedBatch, log: LogReader
    ) -> tuple[MergedRecords, np.ndarray]:
        """Merge base rows, whose handles begin at ``first``, with log records; say which base rows stay unchanged."""
        older = BufferedBatch.of_rows(log.context, first, rows, None, newer.late_keys)
        result = log.merge_with_base(older, newer)
        deletes = result.deletes
        # A result that has the base row's own handle is that row, unchanged.
        unchanged = (result.rows == older.rows) & ~deletes
        deleted = int(np.count_nonzero(deletes))
        self._stats.deletes += deleted
        self._stats.updates += len(older) - deleted - int(np.count_nonzero(unchanged))
        result = result.with_operations(np.where(unchanged, np.int8(NO_OPERATION), np.int8(UPDATE)))
        return MergedRecords(older, newer, result), unchanged

    def merge_log_only(self, newer: BufferedBatch, log: LogReader) -> Piece:
        """Merge records that only the log has."""
        result = log.merge_inserted(newer)
        inserts = int((~result.deletes).sum())
        self._stats.deletes += len(result) - inserts
        self._stats.inserts += inserts
        return Piece(None, MergedRecords(None, newer, result.with_operations(np.full(len(result), INSERT, np.int8))))

    def fill_fallbacks(self, batch: pa.RecordBatch, base: OpenBaseFile) -> pa.RecordBatch:
        """Fill columns that the file lacks with the values of the partition path."""
        filled = batch
        for name, value in self._info.fallbacks.items():
            at = batch.schema.get_field_index(name)
            if at >= 0 and name not in base.columns:
                field = batch.schema.field(at)
                filled = filled.set_column(at, field, repeat_value(value, field.type, batch.num_rows))
        return filled


class DroppedRows:
    """The rows of a base file that the log replaces or deletes, known before the rows are read.

    Row numbers are noted first, in rising order; then masks are made for the file's rows, batch by batch. ``room`` is
    an int64 array, long enough for all rows that may be dropped; it belongs to this object.
    """

    def __init__(self, room: np.ndarray) -> None:
        self._rows = room
        self._count = 0
        self._asked = 0
        self._passed = 0
        self._mask = from_numpy(np.ones(0, bool))
        self._masked_from = 0

    def note(self, rows: np.ndarray) -> None:
        """Drop rows. They are int64, rising and greater than all earlier ones. Not after the first ``make_mask``."""
        self._rows[self._count : self._count + len(rows)] = rows
        self._count += len(rows)

    def make_mask(self, count: int) -> pa.Array | None:
        """Return a mask of the next ``count`` rows, true for rows that stay; None if all stay."""
        first, start = self._passed, self._asked
        self._asked += count
        self._passed = bisect_left(self._rows, self._asked, first, self._count)
        if first == self._passed:
            return None
        if self._asked > self._masked_from + len(self._mask):
            self._mask, self._masked_from = self._make_mask(first, start, max(count, _MASK_ROWS)), start
        return self._mask.slice(start - self._masked_from, count)

    def _make_mask(self, first: int, start: int, count: int) -> pa.Array:
        """Return a mask of the ``count`` rows from ``start`` on, true for rows that stay."""
        mask = np.ones(count, bool)
        mask[self._rows[first : bisect_left(self._rows, start + count, first, self._count)] - start] = False
        return from_numpy(mask)
