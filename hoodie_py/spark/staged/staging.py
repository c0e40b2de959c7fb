"""Stages rows in files, on their way from Spark's tasks to the process that commits them.

A writer of a Python data source cannot request a shuffle, and only the committing process sees all rows. So each task
writes its rows to a file below ``.hoodie/.temp``, which readers ignore, and reports the file's name. The committing
process reads the reported files in the order of the tasks, and removes the folder. It never reads files of other
attempts at a task. If Spark is killed, the folder stays, and a later write removes it when it is a week old.
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

from hoodie_py.errors import CorruptFileError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import PROPERTIES_FILE
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.writer.handles.data_file import OutputFile
from hoodie_py.writer.handles.markers import TEMP_FOLDER
from hoodie_py.writer.timeline.folder_tree import remove_tree

_PREFIX = "hoodie_py-rows-"
_NAME = re.compile(_PREFIX + r"(\d{1,15})-[\w-]+")
_SECONDS_KEPT = 7 * 24 * 3600


@dataclass(frozen=True, slots=True)
class StagedRows(WriterCommitMessage):
    """The report of one task.

    ``path``: None if the task had no rows. ``query``: id of the streaming query; None for a batch write.
    """

    path: str | None
    rows: int = 0
    size: int = 0
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Staging:
    """The folder for the staged rows of one write."""

    files: TableFiles
    folder: str

    @classmethod
    def choose(cls, files: TableFiles) -> Staging:
        """Choose a new folder; writes nothing."""
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
        codec = "zstd" if self.files.local_path(path) is None else None  # uncompressed local files can be mapped
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
        """Run the block with the rows of all tasks, in the given order; None if there are none.

        Raises:
            CorruptFileError: a file has fewer or more rows than reported.
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
        """Remove the folder and old folders of killed writes; without a table also the empty folders above."""
        remove_tree(self.files, self.folder)
        for name in self._list_old_folders():
            remove_tree(self.files, f"{TEMP_FOLDER}/{name}")
        if not self.files.exists(f"{METADATA_FOLDER}/{PROPERTIES_FILE}"):
            for folder in (TEMP_FOLDER, METADATA_FOLDER):  # removed only if empty
                self.files.remove_folder(folder)

    def _list_old_folders(self) -> list[str]:
        found = [info.name for info in self.files.list_or_empty(TEMP_FOLDER) if info.is_dir]
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
    """A writable file for pyarrow, which calls more methods than the output has."""

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
        raise CorruptFileError("A file of staged rows is not whole.", path=staged.path)
