"""Merge one file slice into one new base file (Hudi ``HoodieCompactor.compact``, ``FileGroupReaderBasedMergeHandle``).

A task is small and picklable, so that any engine can run it. It may run more than once, also twice at the same time:
each attempt writes a file with a new write token in its name, and announces it by a marker first. The driver commits
the file of one attempt and removes the others.

Rows come from ``FileGroupReader`` with the table's merger. Unchanged base rows come first, in the base file's order, so
that the statistics of their row groups stay useful. Changed rows and rows that only the log has follow. Meta columns
are those of the winning record, except the file name.

On a table with change data capture a change-data file comes with the new base file: it has what the log changed in the
old one. Base rows are merged batch by batch then, with all their columns, as the images of changed rows need them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Self

import pyarrow as pa

from hoodie_py.arrow.arrays import from_texts
from hoodie_py.errors import HoodieError
from hoodie_py.formats.names import FILE_NAME_FIELD, MarkerType, make_base_file_name
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.reader.file_group import FileGroupReader
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.writer.handles.change_file import ChangeFile
from hoodie_py.writer.handles.data_file import CommitFacts, DataFile, TaskResult
from hoodie_py.writer.handles.markers import Marker

OnRows = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """One operation of a compaction plan. ``file_slice`` has the files that the plan names, and no others; ``info``
    reads them with columns in the types of files.
    """

    file_slice: FileSlice
    info: ReadInfo
    facts: CommitFacts
    index: int
    merger: Merger | None = None
    options: ReadOptions = field(default_factory=ReadOptions)

    @property
    def group(self) -> tuple[str, str]:
        """Partition path and file id."""
        return self.file_slice.partition_path, self.file_slice.file_id

    @property
    def key(self) -> tuple[str, str]:
        """The file group, which no other task of the run has."""
        return self.group

    @property
    def size(self) -> int:
        """Bytes of the slice's files, a measure of the work."""
        base = self.file_slice.base_file
        return (0 if base is None else base.whole_size) + self.log_bytes

    @property
    def log_bytes(self) -> int:
        """Bytes of the slice's log files, which are held in memory while they merge."""
        return sum(log.size for log in self.file_slice.log_files)

    def with_merger(self, merger: Merger | None) -> Self:
        """Return the task with another merger."""
        return replace(self, merger=merger)

    @watch_calls("compact_slice", attrgetter("info.files"))
    def run(self, on_rows: OnRows | None = None) -> TaskResult:
        """Write the new base file. ``on_rows`` gets the number of rows of each written batch.

        Raises:
            HoodieError: a file is missing, corrupt or not supported, versions do not merge, or the store refuses.
                Readers do not see what was written.
        """
        began = time.monotonic()
        name = make_base_file_name(self.file_slice.file_id, self.facts.make_token(self.index), self.facts.instant)
        marker = Marker(self.file_slice.partition_path, name, MarkerType.MERGE)
        try:
            with ChangeFile(self.facts, marker) as changes, DataFile(self.facts, marker) as file:
                reader = self._open_reader(changes)
                writer = self.facts.open_base_writer(file.sink)
                for batch in _set_file_name(reader.to_batches(), name):
                    writer.write(batch)
                    if on_rows is not None:
                        on_rows(batch.num_rows)
                rows = writer.close().rows
                captured = changes.publish()
                size = file.publish()
        except HoodieError as error:
            raise error.locate(
                file_group=self.file_slice.file_id, partition=self.file_slice.partition_path or None
            ) from error.__cause__
        stat = self._make_stat(marker, rows, size, reader.stats)
        return TaskResult(replace(stat, cdc_stats=captured), self.size, time.monotonic() - began, writer.ranges)

    def _open_reader(self, changes: ChangeFile) -> FileGroupReader:
        if not self.facts.config.cdc_enabled:
            return FileGroupReader(self.file_slice, self.info, None, self.merger, self.options)
        return _ChangeReader(self, changes)

    def _make_stat(self, marker: Marker, rows: int, size: int, stats: ReadStats) -> WriteStat:
        base = self.file_slice.base_file
        return WriteStat(
            file_id=self.file_slice.file_id,
            path=marker.path,
            prev_commit="null" if base is None else base.instant,
            num_writes=rows,
            num_deletes=stats.deletes,
            num_update_writes=stats.updates,
            num_inserts=stats.inserts,
            total_write_bytes=size,
            partition_path=self.file_slice.partition_path,
            total_log_records=stats.log_records,
            total_updated_records_compacted=stats.updates + stats.inserts + stats.deletes,
            total_log_blocks=stats.blocks,
            total_corrupt_log_block=stats.corrupt_blocks,
            total_rollback_blocks=stats.rollback_blocks,
            file_size_in_bytes=size,
            prev_base_file=None if base is None else base.name,
            total_log_files_compacted=len(self.file_slice.log_files),
            total_log_size_compacted=stats.log_bytes,
        )


class _ChangeReader(FileGroupReader):
    """Read the rows of the new file, and show the changes to its change-data file."""

    def __init__(self, task: CompactionTask, changes: ChangeFile) -> None:
        super().__init__(task.file_slice, task.info, None, task.merger, task.options)
        self._changes = changes

    def _read_merged(self, log: LogReader, read: list[str]) -> Iterator[pa.RecordBatch]:
        with self._base.open_ahead():
            folded = log.fold()
        for piece in self._base.merge(log, folded, log.schema).pieces:
            if piece.untouched is not None and piece.untouched.num_rows:
                yield self._output.make(piece.untouched)
            if piece.merged is not None:
                self._changes.add(piece.merged, log.store)
                live = self._find_changed_rows(piece.merged)
                if len(live):
                    yield self._output.make(log.store.take(live, read))


def _set_file_name(batches: Iterator[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches with the new file's name in the meta column, where rows have it."""
    names = from_texts([name], pa.string())
    for batch in batches:
        if FILE_NAME_FIELD not in batch.schema.names:
            yield batch
            continue
        if len(names) < batch.num_rows:
            names = pa.repeat(names[0], batch.num_rows)
        at = batch.schema.get_field_index(FILE_NAME_FIELD)
        yield batch.set_column(at, FILE_NAME_FIELD, names.slice(0, batch.num_rows))
