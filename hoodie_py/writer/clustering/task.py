"""Write the rows of one group of file slices into new base files (Hudi ``SparkSortAndSizeExecutionStrategy``).

A task is small and picklable, so that any engine can run it. It may run more than once, also twice at the same time:
each attempt writes files of new file groups, and announces them by markers first. The driver commits the files of one
attempt and removes the others.

Rows come from ``FileGroupReader``, so that log files are merged with the table's merger. Meta columns stay as they are,
except the file name, unless the plan says that the rows get new ones. Files end at the size that the plan asks for, or
the plan names the file groups that rows go to by their keys (``BucketTargets``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import TracebackType
from typing import Self
from uuid import uuid4

import pyarrow as pa

from hoodie_py.arrow.arrays import repeat_value
from hoodie_py.arrow.fields import find_top_level_name
from hoodie_py.errors import HoodieError
from hoodie_py.formats import names as file_names
from hoodie_py.formats.names import MarkerType
from hoodie_py.formats.timeline.commit_metadata import NO_COMMIT, WriteStat
from hoodie_py.reader.file_group import FileGroupReader
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.grouped import GroupedRows
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.writer.clustering.bucket_plan import BucketTargets
from hoodie_py.writer.clustering.row_keys import RowKeys
from hoodie_py.writer.clustering.settings import LINEAR, Layout
from hoodie_py.writer.handles.data_file import CommitFacts, DataFile, TaskResult
from hoodie_py.writer.handles.markers import Marker
from hoodie_py.writer.handles.meta_columns import RowStamp

OnRows = Callable[[int], None]
_PIECES_OF_FILE = 16  # a file may be larger by one piece than it should be


@dataclass(frozen=True, slots=True)
class ClusteringTask:
    """One group of a clustering plan: slices with what reads each of them, in the types of files. New files end at
    ``file_bytes``, unless ``targets`` names the file groups.
    """

    slices: tuple[FileSlice, ...]
    infos: tuple[ReadInfo, ...]
    facts: CommitFacts
    index: int
    layout: Layout
    file_bytes: int
    keeps_meta: bool = True
    merger: Merger | None = None
    options: ReadOptions = field(default_factory=ReadOptions)
    targets: BucketTargets | None = None

    @property
    def key(self) -> int:
        """The task's number, which no other task of the run has."""
        return self.index

    @property
    def size(self) -> int:
        """Bytes of the slices' files, a measure of the work."""
        return sum(each.base_file.whole_size for each in self.slices if each.base_file is not None) + self._all_logs

    @property
    def log_bytes(self) -> int:
        """Bytes of the log files that are held in memory at the same time: those of one slice."""
        return max((sum(log.size for log in each.log_files) for each in self.slices), default=0)

    @property
    def info(self) -> ReadInfo:
        """Facts of the table."""
        return self.infos[0]

    def with_merger(self, merger: Merger | None) -> Self:
        """Return the task with another merger."""
        return replace(self, merger=merger)

    @watch_calls("cluster_slices", attrgetter("info.files"))
    def run(self, on_rows: OnRows | None = None) -> tuple[int, tuple[TaskResult, ...]]:
        """Write the new base files; none if no row is left. ``on_rows`` gets the number of rows of each written batch.

        Returns:
            The task's number, and one result for each file.

        Raises:
            HoodieError: a file is missing, corrupt or not supported, versions do not merge, or the store refuses.
                Readers do not see what was written.
        """
        partition = self.slices[0].partition_path
        try:
            with closing(self._arrange()) as batches:
                write = self._write if self.targets is None else self._write_buckets
                return self.index, tuple(write(batches, on_rows))
        except HoodieError as error:
            raise error.locate(partition=partition or None) from error.__cause__

    @property
    def _all_logs(self) -> int:
        return sum(log.size for each in self.slices for log in each.log_files)

    def _arrange(self) -> Generator[pa.RecordBatch, None, None]:
        if not self.layout.columns:
            return self._read(None)
        return sort_rows(self._read(None), self._make_keys(), MemoryBudget.from_options(self.options))

    def _make_keys(self) -> RowKeys:
        if self.layout.curve == LINEAR or not self.layout.sampled:
            return RowKeys(self.layout)
        names = (find_top_level_name(self.facts.schema.arrow, name) for name in self.layout.columns)
        return RowKeys.from_sample(self.layout, self._read(list(dict.fromkeys(names))))

    def _read(self, columns: list[str] | None) -> Generator[pa.RecordBatch, None, None]:
        for each, info in zip(self.slices, self.infos, strict=True):
            yield from FileGroupReader(each, info, columns, self.merger, self.options).to_batches()

    def _write(self, batches: Iterator[pa.RecordBatch], on_rows: OnRows | None) -> Iterator[TaskResult]:
        rows = _Rows(batches)
        number = 0
        while rows.ahead is not None:
            yield self._write_file(rows, number, on_rows)
            number += 1

    def _write_file(self, rows: _Rows, number: int, on_rows: OnRows | None) -> TaskResult:
        """Write one file, as many rows as fit."""
        with _NewFile(self, f"{uuid4()}-0", self.size if number == 0 else 0) as file:
            rows.write_to(file, self.file_bytes, on_rows)
            return file.finish()

    def _write_buckets(self, batches: Iterator[pa.RecordBatch], on_rows: OnRows | None) -> Iterator[TaskResult]:
        """Write one file for each new bucket that has rows."""
        assert self.targets is not None
        files: dict[str, _NewFile] = {}
        first = 0
        with ExitStack() as stack:
            for file_id, batch in self.targets.divide(each for each in batches if each.num_rows):
                if file_id not in files:
                    files[file_id] = stack.enter_context(_NewFile(self, file_id, 0 if files else self.size))
                files[file_id].write(batch, first)
                first += batch.num_rows
                if on_rows is not None:
                    on_rows(batch.num_rows)
            for file in files.values():
                yield file.finish()


def sort_rows(
    batches: Iterable[pa.RecordBatch], keys: RowKeys, budget: MemoryBudget
) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of batches of one schema in the order of their keys; rows with equal keys keep their order.

    Raises:
        StorageError: the disk is full or fails.
    """
    held = budget.limit // 3  # then there are also the sorted rows, and what comes out
    width = 0
    with GroupedRows[None](budget, held=held, order=keys.names) as rows:
        for batch in batches:
            width = batch.num_columns
            rows.add(None, keys.append_to(batch))
        for batch in rows.sort(None):
            yield batch.select(range(width))


class _NewFile:
    """A base file of a new file group, from its marker to its write statistics."""

    def __init__(self, task: ClusteringTask, file_id: str, bytes_read: int) -> None:
        self._began = time.monotonic()
        self._read = bytes_read
        facts, partition = task.facts, task.slices[0].partition_path
        name = file_names.make_base_file_name(file_id, facts.make_token(task.index), facts.instant)
        self._file_id, self._marker = file_id, Marker(partition, name, MarkerType.CREATE)
        row = None if task.keeps_meta else RowStamp(facts.instant, task.index, partition, name)
        self._stamp = _FileStamp(name, row)
        self._facts = facts
        self._file = DataFile(facts, self._marker)
        self._rows = 0

    def __enter__(self) -> Self:
        self._file.__enter__()
        self._writer = self._facts.open_base_writer(self._file.sink)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.__exit__(kind, error, trace)

    @property
    def size_so_far(self) -> int:
        """Bytes until now, about."""
        return self._writer.size_so_far

    def write(self, batch: pa.RecordBatch, first: int) -> None:
        """Write rows; ``first`` counts those of the task before them."""
        self._writer.write(self._stamp.put_on(batch, first))
        self._rows += batch.num_rows

    def finish(self) -> TaskResult:
        """Put the file into the table."""
        self._writer.close()
        size = self._file.publish()
        stat = WriteStat(
            file_id=self._file_id,
            path=self._marker.path,
            prev_commit=NO_COMMIT,
            num_writes=self._rows,
            num_inserts=self._rows,
            total_write_bytes=size,
            partition_path=self._marker.partition_path,
            file_size_in_bytes=size,
        )
        return TaskResult(stat, self._read, time.monotonic() - self._began, self._writer.ranges)


class _Rows:
    """Batches with the next one at hand: a file is begun only if there are rows for it."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = (batch for batch in batches if batch.num_rows)
        self.ahead: pa.RecordBatch | None = next(self._batches, None)
        self._rows = 0

    def write_to(self, file: _NewFile, most: int, on_rows: OnRows | None) -> None:
        """Write batches until a file has its size."""
        while self.ahead is not None and file.size_so_far < most:
            batch = self._take(most // _PIECES_OF_FILE)
            file.write(batch, self._rows)
            self._rows += batch.num_rows
            if on_rows is not None:
                on_rows(batch.num_rows)

    def _take(self, most: int) -> pa.RecordBatch:
        """Take the next rows, a batch or a part of about ``most`` bytes."""
        batch = self.ahead
        assert batch is not None
        count = max(1, most * batch.num_rows // max(1, batch.nbytes))
        self.ahead = batch.slice(count) if count < batch.num_rows else next(self._batches, None)
        return batch.slice(0, count)


@dataclass(frozen=True, slots=True)
class _FileStamp:
    """What meta columns say of the file that rows are in now. ``row`` None: the other meta columns stay."""

    name: str
    row: RowStamp | None

    def put_on(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Return rows with their meta columns; ``first`` counts the rows of the task before them."""
        if file_names.FILE_NAME_FIELD not in batch.schema.names:
            return batch
        count = batch.num_rows
        changed = {file_names.FILE_NAME_FIELD: repeat_value(self.name, pa.string(), count)}
        if self.row is not None:
            changed[file_names.COMMIT_TIME_FIELD] = repeat_value(self.row.instant, pa.string(), count)
            changed[file_names.COMMIT_SEQNO_FIELD] = self.row.make_sequence_numbers(first, count)
        names: Sequence[str] = batch.schema.names
        columns = [changed.get(name, column) for name, column in zip(names, batch.columns, strict=True)]
        return pa.RecordBatch.from_arrays(columns, names=list(names))
