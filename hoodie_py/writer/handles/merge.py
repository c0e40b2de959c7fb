"""Merge a base file with a write's records into a new base file (Hudi ``FileGroupReaderBasedMergeHandle``).

The records take the place of log files in ``MergeReader``, so the table's merge mode or merger decides as it does for
readers. Unchanged base rows keep their meta columns except the file name. Changed rows get the meta columns of the
commit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, join_chunks, repeat_value, to_booleans
from hoodie_py.errors import HoodieError
from hoodie_py.formats.names import FILE_NAME_FIELD, MarkerType, make_base_file_name
from hoodie_py.formats.parquet.carried_bloom import carry_filter
from hoodie_py.formats.timeline.commit_metadata import NO_COMMIT, WriteStat
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.reader.record.ordering import OrderingColumn
from hoodie_py.reader.record.record import DELETE, NO_OPERATION
from hoodie_py.reader.record_reader import IncomingDeletes, IncomingRows, MergeReader
from hoodie_py.reader.selection import select_strategy
from hoodie_py.writer.handles.change_file import ChangeFile
from hoodie_py.writer.handles.data_file import CommitFacts, DataFile, MeasuringWriter, TaskResult
from hoodie_py.writer.handles.markers import Marker
from hoodie_py.writer.handles.meta_columns import RowStamp, find_missing_columns, make_file_batches, set_meta_columns
from hoodie_py.writer.records import WriteRecords

if TYPE_CHECKING:
    from hoodie_py.writer.handles.spliced_file import SplicedFile

Incoming = Sequence[IncomingRows | IncomingDeletes]


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Write one new base file of a file group.

    ``file_slice`` contains the base file to merge with. Without one, the records alone make a new group. ``info`` reads
    the slice in the types of files.
    """

    facts: CommitFacts
    index: int
    file_slice: FileSlice
    info: ReadInfo
    merger: Merger | None = None
    options: ReadOptions = field(default_factory=ReadOptions)

    @property
    def group(self) -> tuple[str, str]:
        """Partition path and file id."""
        return self.file_slice.partition_path, self.file_slice.file_id

    def run(self, records: WriteRecords) -> TaskResult:
        """Write the new base file. The records are in the order of their versions.

        Raises:
            HoodieError: files are missing or corrupt, versions do not merge, or the store refuses. Readers do not see
                what was written.
        """
        began = time.monotonic()
        partition, base = self.file_slice.partition_path, self.file_slice.base_file
        name = make_base_file_name(self.file_slice.file_id, self.facts.make_token(self.index), self.facts.instant)
        marker = Marker(partition, name, MarkerType.CREATE if base is None else MarkerType.MERGE)
        stamp = RowStamp(self.facts.instant, self.index, partition, name)
        incoming = list(self._make_incoming(records, stamp))
        try:
            with (
                ChangeFile(self.facts, None if base is None else marker) as changes,
                _MergedRowReader(self, incoming, stamp, changes) as reader,
                DataFile(self.facts, marker) as file,
            ):
                writer = reader.open_writer(file.sink, join_chunks(records.keys))
                for batch in reader.to_batches():
                    writer.write(batch)
                rows = writer.close().rows
                captured = changes.publish()
                size = file.publish()
        except HoodieError as error:
            raise error.locate(file_group=self.file_slice.file_id, partition=partition or None) from error.__cause__
        stat = WriteStat(
            file_id=self.file_slice.file_id,
            path=marker.path,
            prev_commit=NO_COMMIT if base is None else base.instant,
            num_writes=rows,
            num_deletes=reader.stats.deletes,
            num_update_writes=reader.stats.updates,
            num_inserts=reader.stats.inserts,
            total_write_bytes=size,
            partition_path=partition,
            file_size_in_bytes=size,
            cdc_stats=captured,
            prev_base_file=None if base is None else base.name,
        )
        return TaskResult(stat, 0 if base is None else base.whole_size, time.monotonic() - began, writer.ranges)

    def _make_incoming(self, records: WriteRecords, stamp: RowStamp) -> Iterator[IncomingRows | IncomingDeletes]:
        """Yield the records in the form that a merge takes: rows, then deletes, as in a log file."""
        deletes = records.delete_mask
        by_key = deletes.copy()
        custom = select_strategy(self.info.config, self.options.options, self.merger, writing=True).merger
        if custom is not None and not find_missing_columns(records, self.facts.schema.arrow):
            # A custom merger may look at a delete's row, so deletes keep their rows. Only a delete that lacks its
            # ordering value goes by key: commit time orders it, whatever its row contains.
            by_key &= _find_unordered(records.ordering, len(records))
        rows = records if not by_key.any() else records.take(from_numpy(np.flatnonzero(~by_key)))
        codes = np.where(deletes[~by_key], np.int8(DELETE), np.int8(NO_OPERATION))
        done = 0
        for batch in make_file_batches(rows, self.facts.schema.arrow, stamp) if len(rows) else ():
            yield IncomingRows(batch, codes[done : done + batch.num_rows])
            done += batch.num_rows
        if by_key.any():
            gone = records.take(from_numpy(np.flatnonzero(by_key)))
            columns = [join_chunks(each) for each in gone.ordering]
            yield IncomingDeletes(
                join_chunks(gone.keys), OrderingColumn.of_deletes(columns, len(gone)) if columns else ()
            )


class _MergedRowReader(MergeReader):
    """Read the rows of the new file."""

    def __init__(self, task: RewriteTask, incoming: Incoming, stamp: RowStamp, changes: ChangeFile) -> None:
        super().__init__(task.file_slice, task.info, merger=task.merger, options=task.options, incoming=incoming)
        self._facts = task.facts
        self._stamp = stamp
        self._changes = changes

    def open_writer(self, sink: IO[bytes], keys: pa.Array) -> SplicedFile | MeasuringWriter:
        """Open the writer of the new file; it copies row groups without these keys, where that pays."""
        base, facts = self._base.open_first(), self._facts
        if base is None:
            return facts.open_base_writer(sink)
        # Here, as most writes of merge-on-read tables rewrite no file, and this imports all of pyarrow's Parquet.
        from hoodie_py.writer.handles.spliced_file import open_spliced_file

        bloom = None
        if facts.file.bloom is not None:
            bloom = carry_filter(base.key_facts, base.num_rows, keys, facts.file.bloom)
        old = self.file_slice.base_file
        if old is not None and not self.info.constants and (bloom is not None or facts.file.bloom is None):
            spliced = open_spliced_file(facts, sink, base, old, keys, bloom, self._stamp.file_name)
            if spliced is not None:
                self._base.read_from(spliced.changing)
                return spliced
        return facts.open_base_writer(sink, bloom)

    def _read_batches(self) -> Iterator[pa.RecordBatch]:
        log = self._open_log(self.schema.names)
        written = 0
        for piece in self._merge_pieces(log, log.schema):
            if piece.untouched is not None and piece.untouched.num_rows:
                rows = self._output.make(piece.untouched)
                yield set_meta_columns(
                    rows, {FILE_NAME_FIELD: repeat_value(self._stamp.file_name, pa.string(), rows.num_rows)}
                )
            if piece.merged is None:
                continue
            self._changes.add(piece.merged, log.store)
            result = piece.merged.result
            live = ~result.deletes
            if piece.merged.older is not None:
                live &= result.rows != piece.merged.older.rows
            if live.any():
                changed = result.take(np.flatnonzero(live))
                rows = self._output.make(log.store.take(changed.rows, self.schema.names))
                yield set_meta_columns(rows, self._stamp.make_columns(changed.keys, written))
                written += rows.num_rows


def _find_unordered(columns: Sequence[pa.ChunkedArray], count: int) -> np.ndarray:
    """Return a mask of the records that have no ordering value although the table has ordering fields."""
    missing = np.full(count, bool(columns))
    for column in columns:
        missing &= to_booleans(join_chunks(column).is_null())
    return missing
