"""FileGroupReader: reads one file slice, merged, as Arrow batches (Hudi's HoodieFileGroupReader).

Without log files base rows stream through. With log files the log is read and folded first; then base rows stream by:
rows that match a log record are merged with it, the others pass without a copy. Log records without a base row come
last.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from functools import partial
from typing import Self

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.fields import check_columns, make_nullable
from hoodie_py.errors import CorruptFileError, FileMissingError, HoodieError, InvalidQueryError, MergeError
from hoodie_py.files import TableFiles
from hoodie_py.options.read import MERGE_TYPE, SKIP_MERGE
from hoodie_py.reader.base.base_file import Decoder
from hoodie_py.reader.base.base_merge import BaseMerge, MergedRecords, MergeResult, Piece
from hoodie_py.reader.base.bootstrap import open_base_file
from hoodie_py.reader.base.file_formats import OpenBaseFile
from hoodie_py.reader.base.filtered import FilteredRows, Output, RowFilter
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import Readable, ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.record.arrow_context import ArrowRecordContext, Row
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.record import BufferedRecord
from hoodie_py.runtime.fold_gate import FoldGate

_MASK_AT_ONCE = 1 << 20
_LEAST_SHARE = 4  # a portion ends early, with a stored batch, only if it has a quarter of the rows that it may have
_LISTED_HINT = (
    "If a clean removed it since the table was opened, open the table again. If the metadata table lists it wrongly, "
    "read with hoodie.metadata.enable=false, or build the metadata table again."
)


class FileGroupReader:
    """Reads one file slice.

    Args:
        file_slice: what to read.
        table: the table, or the facts of it that a read needs.
        columns: names of the columns wanted, in order; None for all.
        merger: replaces the table's merge mode.
        options: settings of the read.
        row_filter: the rows wanted of a slice without log files; None for all.
        gate: shared by slices that are read at the same time, so that they do not fold their logs at once.

    Raises:
        InvalidQueryError: an unknown or repeated column.

    Examples:
        >>> reader = FileGroupReader(trips.file_slices(filter="city = 'sf'")[0], trips, columns=["id", "price"])
        >>> [batch.to_pylist() for batch in reader.to_batches()]
        [[{'id': 'b', 'price': 20.0}], [{'id': 'a', 'price': 12.0}]]
        >>> reader.stats.updates
        1
    """

    def __init__(
        self,
        file_slice: FileSlice,
        table: Readable | ReadInfo,
        columns: Sequence[str] | None = None,
        merger: Merger | None = None,
        options: ReadOptions | None = None,
        row_filter: RowFilter | None = None,
        gate: FoldGate | None = None,
    ) -> None:
        self.file_slice = file_slice
        self.info = table if isinstance(table, ReadInfo) else table.read_info(file_slice)
        self.options = options or ReadOptions()
        self.stats = ReadStats()
        self._merger = merger
        self._row_filter = row_filter
        self._gate = FoldGate() if gate is None else gate
        self._context: ArrowRecordContext | None = None
        self._loaded: LogReader | None = None
        self._decoder = Decoder()
        self._base = BaseMerge(file_slice, self.info, self.options, self.stats)
        names = self.info.schema.names if columns is None else list(columns)
        check_columns(names, self.info.schema)
        self.schema = make_nullable(self.info.schema.field(name) for name in names)
        self._output = Output(self.schema, self.info.constants, self._decoder)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows in batches of at most ``batch_rows`` rows, with the wanted columns."""
        with self._locate_errors():
            for batch in self._read_batches():
                for start in range(0, batch.num_rows, self.options.batch_rows):
                    yield batch.slice(start, self.options.batch_rows)
                del batch  # frees its memory before the next one is read

    def buffered_records(self, *, emit_deletes: bool = False) -> Iterator[BufferedRecord[Row]]:
        """Yield the records of the result with the log's operation on each; base rows without log records have none.

        With ``emit_deletes`` deleted records (operation D or -U) are included, with data where they have any.
        """
        log = self._open_log(self.info.schema.names)
        for piece in self._merge_pieces(log, log.schema):
            if piece.untouched is not None:
                yield from make_plain_records(log, piece.untouched)
            if piece.merged is not None:
                touched = piece.merged.result.take(np.flatnonzero(piece.merged.changes))
                yield from iterate_records(touched, emit_deletes=emit_deletes)

    @property
    def context(self) -> ArrowRecordContext:
        """The context of the records that ``buffered_records``, ``read_merges`` or ``log_records`` yields.

        A record is valid until the next one is read.

        Raises:
            InvalidQueryError: none of these methods was called yet.
        """
        if self._context is None:
            raise InvalidQueryError("The reader has no records yet.", hint="Ask it for buffered_records() first.")
        return self._context

    def read_merges(self) -> Iterator[MergedRecords]:
        """Yield the records that the log touched as (older, newer, result), for change feeds."""
        log = self._open_log(self.info.schema.names)
        for piece in self._merge_pieces(log, log.schema):
            if piece.merged is not None:
                yield piece.merged

    def keys(self) -> Iterator[str]:
        """Yield the record keys of the result."""
        for record in self.buffered_records():
            yield record.record_key

    def log_records(self) -> Iterator[BufferedRecord[Row]]:
        """Yield the log's folded record of each key, deletes included, without reading the base file."""
        with self._locate_errors(), self._close_after(self._open_log(self.info.schema.names)) as log:
            folded = log.fold()
            for part in () if folded is None else folded.parts:
                yield from part.to_records()

    def load(self) -> Self:
        """Read and fold the log once for all later calls, until ``close``.

        All columns are read. The log stays in memory or in spill files.
        """
        if self._loaded is None:
            self._loaded = self._open_log(self.info.schema.names)
        return self

    @property
    def loaded(self) -> LogReader:
        """The log that ``load`` read; InvalidQueryError before."""
        if self._loaded is None:
            raise InvalidQueryError("The reader has no log loaded.", hint="Call load() first.")
        return self._loaded

    def close(self) -> None:
        """Free the log that ``load`` read."""
        log, self._loaded = self._loaded, None
        if log is not None:
            log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_batches(self) -> Iterator[pa.RecordBatch]:
        if self.options.integrity == "strict":
            check_sizes(self.info.files, self.file_slice, self.info.expected_sizes)
        if not self.file_slice.log_files:
            yield from self._read_base_only()
            return
        read = self._output.stored.names
        if not needs_merge(self.options.options):
            yield from self._read_unmerged(read)
            return
        with self._close_after(self._open_log(read)) as log:
            yield from self._read_merged(log, read)

    def _read_merged(self, log: LogReader, read: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows: first the rows that need the log, then the unchanged base rows.

        The log's memory is freed before the unchanged base rows are read.
        """
        staying = yield from self._read_pieces(log, read)
        if log is not self._loaded:
            log.forget()  # nothing else refers to log records, as the generator above has ended
        yield from map(self._output.make, staying)

    def _read_pieces(
        self, log: LogReader, read: list[str]
    ) -> Generator[pa.RecordBatch, None, Iterator[pa.RecordBatch]]:
        """Yield the rows that need the log; return the base rows that stay, to be read later."""
        count = 0
        with ExitStack() as gate:
            if self.info.files.is_local:
                gate.enter_context(self._gate.enter())
            with self._base.open_ahead():
                folded = log.fold()
            if folded is None or folded.positions is None:
                gate.close()  # reading all base keys takes few large steps: other slices may fold in that time
            held = len(log.store)
            wanted = log.spill.make_array(held, bool, False)
            merging = self._base.merge(log, folded, log.make_base_schema(read), read)
            if merging.ahead:
                count = self._mark_decided_rows(merging, wanted)
        for piece in merging.pieces:
            if piece.untouched is not None and piece.untouched.num_rows:
                yield self._output.make(piece.untouched)
            if piece.merged is not None:
                live = self._find_changed_rows(piece.merged)
                made = live[live >= held]  # rows that the merge made; the store drops them with the piece
                if len(made):
                    yield self._output.make(log.store.take(made, read))
                    live = live[live < held]
                wanted[live] = True
                count += len(live)
            del piece  # with its base rows, before the next ones are read
        # Log rows are taken in log order, so that each stored batch is gathered from once.
        at_once = min(self.options.batch_rows, log.rows_at_once)
        for rows in split_into_portions(wanted, at_once, log.store.starts):
            count -= len(rows)
            yield self._output.make(log.store.take(rows, read))
        if count:
            raise MergeError("A merger gave several records the same row.", hint="Make rows with context.replace.")
        return merging.staying

    def _mark_decided_rows(self, merging: MergeResult, wanted: np.ndarray) -> int:
        """Mark the log rows that stay, and count them."""
        count = 0
        for piece in merging.pieces:
            # Like a fold this takes many small steps, which a scan that was given up should not wait for.
            self._gate.check_wanted()
            if piece.merged is not None:
                live = self._find_changed_rows(piece.merged)
                wanted[live] = True
                count += len(live)
        return count

    def _read_unmerged(self, read: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield base rows, then every log row; nothing is merged and nothing is deleted."""
        yield from self._read_base_only()
        with self._close_after(self._open_log(read)) as log:
            for batch in log.read_rows():
                yield self._output.make(batch)

    @staticmethod
    def _find_changed_rows(merged: MergedRecords) -> np.ndarray:
        """Return the handles of rows that are neither deleted nor an unchanged base row."""
        return np.asarray(merged.result.rows[merged.changes & ~merged.result.deletes])

    def _read_base_only(self) -> Iterator[pa.RecordBatch]:
        if self.file_slice.base_file is None:
            return
        base = open_base_file(self.info, self.file_slice.base_file, self.options)
        if self._row_filter is None:
            for batch in self._read_columns(base, self._output.stored):
                self.stats.base_rows += batch.num_rows
                yield self._output.make(batch)
            return
        rows = FilteredRows(
            base,
            self._row_filter,
            partial(self._read_columns, base),
            self._output,
            partial(Output, constants=self.info.constants, decoder=self._decoder),
            at_once=base.footer is None or not self.info.files.is_local,
        )
        yield from rows.read_batches(self.stats)

    def _read_columns(
        self, base: OpenBaseFile, schema: pa.Schema, row_groups: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of the base file with some columns as ``Output`` takes them."""
        rows, threads = self.options.batch_rows, self.options.column_threads
        batches = base.read_batches(schema, rows, row_groups, coded=schema.names, column_threads=threads)
        return map(partial(self._base.fill_fallbacks, base=base), batches)

    def _open_log(self, read: Sequence[str]) -> LogReader:
        if self._loaded is not None:
            self._context = self._loaded.context
            return self._loaded
        log = LogReader(self.file_slice, self.info, read, self._merger, self.options, self.stats, self._gate)
        self._context = log.context
        return log

    def _close_after(self, log: LogReader) -> AbstractContextManager[LogReader]:
        """Close the log at the end of a read, unless ``load`` keeps it."""
        return nullcontext(log) if log is self._loaded else closing(log)

    def _merge_pieces(self, log: LogReader, base_schema: pa.Schema) -> Iterator[Piece]:
        """Yield the result piece by piece: base rows, merged where they match, then the records only in the log."""
        with self._locate_errors(), self._close_after(log):
            yield from self._base.merge(log, log.fold(), base_schema).pieces

    @contextmanager
    def _locate_errors(self) -> Iterator[None]:
        """Add the file group to errors."""
        try:
            yield
        except HoodieError as error:
            if isinstance(error, FileMissingError) and self.info.config.metadata_partitions and error.hint is None:
                error.hint = _LISTED_HINT
            error.locate(file_group=self.file_slice.file_id, partition=self.file_slice.partition_path or None)
            raise


def make_plain_records(log: LogReader, batch: pa.RecordBatch) -> Iterator[BufferedRecord[Row]]:
    """Yield rows as records without an operation."""
    first = log.store.add(batch)
    yield from iterate_records(BufferedBatch.of_rows(log.context, first, batch, None), emit_deletes=True)
    log.store.release(first)


def iterate_records(batch: BufferedBatch, *, emit_deletes: bool) -> Iterator[BufferedRecord[Row]]:
    """Yield records. The context gathers their values at once and drops earlier ones, as the store reuses handles."""
    batch.context.focus(batch.rows)
    yield from (batch if emit_deletes else batch.take(np.flatnonzero(~batch.deletes))).to_records()


def needs_merge(options: Mapping[str, str]) -> bool:
    """Say whether log rows merge with base rows of their key (the default) or are appended to the base rows.

    Raises:
        InvalidQueryError: an unknown merge type.
    """
    return MERGE_TYPE.read(options) != SKIP_MERGE


def split_into_portions(mask: np.ndarray, at_once: int, starts: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield the row numbers where a mask is set, in rising order, at most ``at_once`` at a time.

    ``starts``: where stored batches begin. A portion rarely spans two of them, as joining them costs one more copy.
    """
    for start in range(0, len(mask), _MASK_AT_ONCE):
        found = start + np.flatnonzero(mask[start : start + _MASK_AT_ONCE])
        cuts = np.searchsorted(found, starts)
        first = 0
        while first < len(found):
            last = first + at_once
            fitting = cuts[np.searchsorted(cuts, last, "right") - 1]
            # End where a stored batch ends, unless the portion gets too small: joining two batches costs one more copy.
            if fitting - first >= max(1, at_once // _LEAST_SHARE):
                last = int(fitting)
            yield found[first:last]
            first = last


def check_sizes(files: TableFiles, file_slice: FileSlice, expected: Mapping[str, int]) -> None:
    """Compare each file's size with the commits' write statistics, where they name it (``integrity="strict"``).

    Raises:
        CorruptFileError: a file is shorter or longer than its commit says.
    """
    base = () if file_slice.base_file is None else (file_slice.base_file,)
    for file in (*base, *file_slice.log_files):
        want = expected.get(file.path)
        if want is None:
            continue
        have = files.stat(file.path).size
        if have != want:
            raise CorruptFileError(
                f"The file has {have} bytes, its commit's statistics say {want}.",
                path=file.path,
                hint="Restore the file, or read without integrity='strict'.",
            )
