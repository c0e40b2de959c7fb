"""Write new records as a base file: the first one of a new file group, or one below the rows of an old base file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from hoodie_py.arrow.arrays import repeat_value
from hoodie_py.errors import HoodieError
from hoodie_py.formats.names import FILE_NAME_FIELD, MarkerType, make_base_file_name
from hoodie_py.formats.timeline.commit_metadata import NO_COMMIT, WriteStat
from hoodie_py.reader.file_group import FileGroupReader
from hoodie_py.reader.file_slice import BaseFile, FileSlice
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.writer.handles.data_file import CommitFacts, DataFile, TaskResult
from hoodie_py.writer.handles.markers import Marker
from hoodie_py.writer.handles.meta_columns import RowStamp, make_file_batches, set_meta_columns
from hoodie_py.writer.records import WriteRecords


@dataclass(frozen=True, slots=True)
class InsertTask:
    """Write one new base file of a new file group (Hudi ``HoodieCreateHandle``)."""

    facts: CommitFacts
    index: int
    partition_path: str
    file_id: str

    @property
    def group(self) -> tuple[str, str]:
        """Partition path and file id."""
        return self.partition_path, self.file_id

    def run(self, parts: Iterable[WriteRecords]) -> TaskResult:
        """Write the file; the rows keep their order.

        ``parts`` contain no deletes. A part is not used any more once the next one is requested.

        Raises:
            HoodieError: a value cannot be written, or the store refuses. Readers do not see what was written.
        """
        began = time.monotonic()
        name = make_base_file_name(self.file_id, self.facts.make_token(self.index), self.facts.instant)
        marker = Marker(self.partition_path, name, MarkerType.CREATE)
        stamp = RowStamp(self.facts.instant, self.index, self.partition_path, name)
        rows = 0
        try:
            with DataFile(self.facts, marker) as file:
                writer = self.facts.open_base_writer(file.sink)
                for part in parts:
                    for batch in make_file_batches(part, self.facts.schema.arrow, stamp, rows):
                        writer.write(batch)
                        rows += batch.num_rows
                writer.close()
                size = file.publish()
        except HoodieError as error:
            raise error.locate(partition=self.partition_path or None) from error.__cause__
        stat = WriteStat(
            file_id=self.file_id,
            path=marker.path,
            prev_commit=NO_COMMIT,
            num_writes=rows,
            num_inserts=rows,
            total_write_bytes=size,
            partition_path=self.partition_path,
            file_size_in_bytes=size,
        )
        return TaskResult(stat, 0, time.monotonic() - began, writer.ranges)


@dataclass(frozen=True, slots=True)
class ExtendTask:
    """Rewrite the base file of a slice without log files with new records below its rows (Hudi ``HoodieConcatHandle``).

    Keys are not compared: old rows keep everything except their file name, and a key may occur twice.

    ``info`` reads the slice in the types of files.
    """

    facts: CommitFacts
    index: int
    file_slice: FileSlice
    info: ReadInfo
    options: ReadOptions = field(default_factory=ReadOptions)

    @property
    def group(self) -> tuple[str, str]:
        """Partition path and file id."""
        return self.file_slice.partition_path, self.file_slice.file_id

    def run(self, parts: Iterable[WriteRecords]) -> TaskResult:
        """Write the file: the old rows, then the new ones in their order.

        ``parts`` contain no deletes. A part is not used any more once the next one is requested.

        Raises:
            HoodieError: the base file is missing or corrupt, a value cannot be written, or the store refuses. Readers
                do not see what was written.
        """
        began = time.monotonic()
        partition, file_id = self.group
        base = self._base_file
        name = make_base_file_name(file_id, self.facts.make_token(self.index), self.facts.instant)
        marker = Marker(partition, name, MarkerType.MERGE)
        stamp = RowStamp(self.facts.instant, self.index, partition, name)
        new = 0
        try:
            with DataFile(self.facts, marker) as file:
                writer = self.facts.open_base_writer(file.sink)
                for batch in self._read_old_rows(name):
                    writer.write(batch)
                for part in parts:
                    for batch in make_file_batches(part, self.facts.schema.arrow, stamp, new):
                        writer.write(batch)
                        new += batch.num_rows
                rows = writer.close().rows
                size = file.publish()
        except HoodieError as error:
            raise error.locate(file_group=file_id, partition=partition or None) from error.__cause__
        stat = WriteStat(
            file_id=file_id,
            path=marker.path,
            prev_commit=base.instant,
            num_writes=rows,
            num_inserts=new,
            total_write_bytes=size,
            partition_path=partition,
            file_size_in_bytes=size,
            prev_base_file=base.name,
        )
        return TaskResult(stat, base.whole_size, time.monotonic() - began, writer.ranges)

    @property
    def _base_file(self) -> BaseFile:
        base = self.file_slice.base_file
        if base is None or self.file_slice.log_files:
            raise ValueError("Only a slice of a base file alone can be extended.")
        return base

    def _read_old_rows(self, file_name: str) -> Iterator[pa.RecordBatch]:
        for batch in FileGroupReader(self.file_slice, self.info, options=self.options).to_batches():
            yield set_meta_columns(batch, {FILE_NAME_FIELD: repeat_value(file_name, pa.string(), batch.num_rows)})
