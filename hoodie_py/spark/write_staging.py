"""Rows on their way from Spark's tasks to the process that commits them.

A writer of a Python data source cannot ask for a shuffle, and only the process that commits sees all rows. So each task
puts its rows into a file below ``.hoodie/.temp``, where no reader looks, and tells its name; the committing process
reads the files that were told of, in the order of the tasks, and removes the folder. What other attempts at a task
wrote is never read. The folder goes in every ending that Spark lives to see; what a killed Spark left is removed by a
later write, a week on.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import IO, Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from hoodie_py.errors import CorruptFileError, FileMissingError
from hoodie_py.files import TableFiles
from hoodie_py.formats.table_config import PROPERTIES_FILE
from hoodie_py.table.timeline_loader import METADATA_FOLDER
from hoodie_py.writer.folder_tree import remove_tree
from hoodie_py.writer.markers import TEMP_FOLDER
from hoodie_py.writer.output_file import OutputFile

_PREFIX = "hoodie_py-rows-"
_NAME = re.compile(_PREFIX + r"(\d{1,15})-[\w-]+")
_SECONDS_KEPT = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class StagedRows(WriterCommitMessage):
    """What one task wrote: nothing, or a file of so many rows.

    Attributes:
        path: of the file, relative to the table's base path; None for no rows.
        rows, size: how many, in how many bytes.
        query: id of the streaming query, if the task is part of one.
    """

    path: str | None
    rows: int = 0
    size: int = 0
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Staging:
    """The folder of one write.

    Attributes:
        files: of the table.
        folder: relative to the base path.
    """

    files: TableFiles
    folder: str

    @classmethod
    def choose(cls, files: TableFiles) -> Staging:
        """Choose a folder that nobody else has; nothing is written yet."""
        return cls(files, f"{TEMP_FOLDER}/{_PREFIX}{int(time.time())}-{uuid4().hex}")

    def write(self, batches: Iterator[pa.RecordBatch], query: str | None = None) -> StagedRows:
        """Write the rows of one attempt at a task.

        Raises:
            StorageError: the store refused.
        """
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return StagedRows(None, query=query)
        path, rows = f"{self.folder}/{uuid4().hex}.arrow", 0
        codec = "zstd" if self.files.local_path(path) is None else None  # plain ones are mapped, not read
        with OutputFile(self.files, path) as output:
            options = pa.ipc.IpcWriteOptions(compression=codec)
            with pa.ipc.new_stream(_Sink(output.sink), first.schema, options=options) as to:
                to.write_batch(first)
                rows += first.num_rows
                for batch in batches:
                    to.write_batch(batch)
                    rows += batch.num_rows
            size = output.publish()
        return StagedRows(path, rows, size, query)

    @contextmanager
    def open_rows(self, staged: Sequence[StagedRows]) -> Iterator[pa.RecordBatchReader | None]:
        """Give the rows of all tasks, in the order given; None if there are none.

        Raises:
            CorruptFileError: a file is not whole.
            StorageError: a file cannot be read.
        """
        written = [each for each in staged if each.path is not None]
        with ExitStack() as stack:
            readers = [stack.enter_context(self._open(each)) for each in written]
            if not readers:
                yield None
                return
            batches = (
                batch for each, reader in zip(written, readers, strict=True) for batch in _read_all(each, reader)
            )
            yield pa.RecordBatchReader.from_batches(readers[0].schema, batches)

    def remove(self) -> None:
        """Remove the folder, and folders of long ago; also those above it where there is no table."""
        remove_tree(self.files, self.folder)
        for name in self._list_old_folders():
            remove_tree(self.files, f"{TEMP_FOLDER}/{name}")
        if not self.files.exists(f"{METADATA_FOLDER}/{PROPERTIES_FILE}"):
            for folder in (TEMP_FOLDER, METADATA_FOLDER):  # goes only if it is empty
                self.files.remove_folder(folder)

    def _list_old_folders(self) -> list[str]:
        try:
            found = [info.name for info in self.files.list(TEMP_FOLDER) if info.is_dir]
        except FileMissingError:
            return []
        matches = ((name, _NAME.fullmatch(name)) for name in found)
        return [name for name, match in matches if match and int(match.group(1)) < time.time() - _SECONDS_KEPT]

    @contextmanager
    def _open(self, staged: StagedRows) -> Iterator[pa.RecordBatchReader]:
        assert staged.path is not None
        local = self.files.local_path(staged.path)
        source = self.files.open_file(staged.path, staged.size) if local is None else pa.memory_map(local)
        with source, pa.ipc.open_stream(source) as reader:
            yield reader


class _Sink(io.RawIOBase):
    """A place to write to as pyarrow wants it."""

    def __init__(self, to: IO[bytes]) -> None:
        self._to = to

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._to.write(memoryview(data))


def _read_all(staged: StagedRows, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in reader:
        rows += batch.num_rows
        yield batch
    if rows != staged.rows:
        raise CorruptFileError("a file of rows on their way is not whole", path=staged.path)
