"""Write one data file of a commit: announce it with a marker, write it elsewhere, put it into the table whole.

Engines repeat a task, or run it twice at once. So every attempt writes a file with its own name; the driver commits one
attempt's file and removes the others'.

An attempt that outlives its commit must leave no file, because nothing would remove it. The rule has two parts:

* The file appears only while its marker exists. Undoing a write deletes the files that markers name.
* The file is put into the table only if the instant is still inflight after the marker was written, else the marker
  goes. Undoing a write looks for markers once more after it has deleted the inflight file, and never later.

A new file is written to memory, or to a local scratch file once it is large. The table gets it whole and by
create-if-absent: no file is overwritten, and no part of a file appears. The ranges of columns, for the table's column
statistics, are measured meanwhile.
"""

from __future__ import annotations

import io
import secrets
import sys
from dataclasses import dataclass, field
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import IO, Any, Self, cast

import pyarrow as pa

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles, ask_together
from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.config.properties import format_properties
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes.definitions import IndexedColumns
from hoodie_py.formats.indexes.measure import RecordRanges, find_kinds, read_footer_ranges
from hoodie_py.formats.indexes.ranges import FileRanges
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.parquet import DEFAULT_CODEC
from hoodie_py.formats.parquet.base_writer import ROW_GROUP_ROWS, BaseFileWriter, WrittenFile, make_facts_file
from hoodie_py.formats.parquet.bloom import BloomFilter
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.formats.timeline.instants import INFLIGHT, Instant
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.writer.handles.markers import Marker, Markers
from hoodie_py.writer.output_schema import OutputSchema
from hoodie_py.writer.settings import FileSettings
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter

_TOKEN_BITS = 31
IN_MEMORY = 8 * 1024 * 1024
PARTITION_METAFILE = ".hoodie_partition_metadata"


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What all data files of one commit have in common; small and picklable.

    ``run_id`` is random, and part of the files' names. Tasks measure the ranges of the ``indexed`` columns; None: the
    table has no statistics.
    """

    files: TableFiles
    config: TableConfig
    instant: str
    action: str
    run_id: int
    schema: OutputSchema
    file: FileSettings = field(default_factory=FileSettings)
    indexed: IndexedColumns | None = None

    @property
    def inflight(self) -> Instant:
        """The commit's instant while its tasks run."""
        return Instant(self.instant, None, self.action, INFLIGHT)

    def make_token(self, index: int) -> str:
        """Make a write token for an attempt at task number ``index``."""
        return f"{index}-{self.run_id}-{secrets.randbits(_TOKEN_BITS)}"

    def make_partition(self, partition_path: str) -> None:
        """Turn a folder without a metafile into a partition, in the format that the table asks for; errors as
        ``make_partition``.
        """
        in_base_format = self.config.partition_metafile_base_format
        make_partition(self.files, partition_path, self.instant, in_base_format=in_base_format)

    def open_base_writer(
        self, sink: IO[bytes], bloom: BloomFilter | None = None, *, part_rows: int | None = None
    ) -> MeasuringWriter:
        """Open a writer of one of the commit's base files.

        ``bloom`` has the keys of all rows, if it is known. ``part_rows``: write a part of a file, which is not measured
        and has no filter, in row groups of so many rows.
        """
        whole = part_rows is None
        return MeasuringWriter(
            sink,
            self.schema.arrow,
            self.schema.avro,
            indexed=self.indexed if whole else None,
            empty=self.schema.empty,
            codec=self.file.codec or DEFAULT_CODEC,
            level=self.file.level,
            row_group_bytes=self.file.row_group_bytes if whole else sys.maxsize,
            row_group_rows=ROW_GROUP_ROWS if part_rows is None else part_rows,
            page_bytes=self.file.page_bytes,
            dictionary=self.file.dictionary,
            bloom=bloom or self.file.bloom if whole else None,
        )


def make_run_id() -> int:
    """Make a random number that identifies this run."""
    return secrets.randbits(_TOKEN_BITS)


def parse_run_id(name: str) -> int | None:
    """Return the run id in the name of a base file or a change-data file; None if the name has none."""
    parsed = parse_log_file_name(name) if name.startswith(".") else parse_base_file_name(name)
    parts = [] if parsed is None else (parsed.write_token or "").split("-")
    return int(parts[1]) if len(parts) == 3 and parts[1].isascii() and parts[1].isdigit() else None


def is_named_after(name: str, instant: str) -> bool:
    """Whether a data file's name contains an instant. From version 8 on a log file's name contains its write's."""
    parsed = parse_log_file_name(name) if name.startswith(".") else parse_base_file_name(name)
    return parsed is not None and parsed.instant == instant


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What one attempt wrote.

    Attributes:
        stat: the write statistics of the data file.
        bytes_read: bytes read from the slice's files.
        seconds: wall-clock time.
        ranges: column ranges of the data file; None if not requested or not available for its types.
    """

    stat: WriteStat
    bytes_read: int
    seconds: float
    ranges: FileRanges | None = None

    @property
    def path(self) -> str:
        """Path of the new data file, relative to the table."""
        return self.stat.path or ""

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes in bytes of all files that the attempt wrote, by path: the data file, and its change-data file."""
        return {self.path: self.stat.file_size_in_bytes, **self.stat.cdc_stats}

    @property
    def group(self) -> tuple[str, str]:
        """Partition path and file id."""
        return self.stat.partition_path, self.stat.file_id or ""


class DataFile:
    """Write a new data file. Entering the block announces it, and ``publish`` puts it into the table.

    No other attempt uses the marker's file name.
    """

    def __init__(self, facts: CommitFacts, marker: Marker) -> None:
        self._facts = facts
        self._marker = marker
        self._markers = Markers(facts.files, facts.instant)
        self._output = OutputFile(facts.files, marker.path)

    @property
    def sink(self) -> IO[bytes]:
        """The stream to write the content to."""
        return self._output.sink

    def publish(self) -> int:
        """Put the file into the table and return its size in bytes.

        Raises:
            ConflictError: the commit was completed or rolled back while the task ran; the file does not exist then.
            CommitStateUnknownError: the store did not say whether the file was written.
            StorageError: the store refused.
        """
        files = self._facts.files
        # A rollback deletes the inflight file, then looks for markers a last time. Without its marker nothing would
        # remove the file.
        if not all(ask_together(files, self._is_announced, self._has_inflight_file)):
            self._markers.remove(self._marker)
            raise self._make_outlived_error()
        size = self._output.publish()
        # Again after the file: a rollback that listed the markers before it would otherwise miss the file.
        if not all(ask_together(files, self._is_announced, self._is_under_way)):
            files.delete_with_checksum(self._marker.path)
            self._markers.remove(self._marker)
            raise self._make_outlived_error()
        return size

    def __enter__(self) -> Self:
        self._markers.announce(self._marker)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._output.close()

    def _is_announced(self) -> bool:
        return self._markers.is_announced(self._marker)

    def _has_inflight_file(self) -> bool:
        inflight = TimelineWriter(self._facts.files, self._facts.config).locate(self._facts.inflight)
        return self._facts.files.has_file(inflight)

    def _is_under_way(self) -> bool:
        """Whether the commit is still inflight: neither completed nor rolled back."""
        facts = self._facts
        # A completed instant keeps its inflight file, so a look at that file alone proves nothing.
        names = facts.files.list_names(facts.config.find_timeline_folder())
        of_instant = [name for name in names if name.startswith(facts.instant)]
        timeline = Timeline.from_file_names(of_instant, facts.config.timeline_layout)
        return timeline.find(facts.instant, facts.inflight.comparable_action) == facts.inflight

    def _make_outlived_error(self) -> ConflictError:
        return ConflictError(
            "The commit was finished or taken back while one of its tasks ran.", instant=self._facts.instant
        )


class OutputFile:
    """Write a file that appears in the table only when it is published. Its name must be unique.

    Content of more than ``in_memory`` bytes goes to a scratch file in the temporary folder.
    """

    def __init__(self, files: TableFiles, path: str, in_memory: int = IN_MEMORY) -> None:
        self._files = files
        self._path = path
        self._most = in_memory
        self._memory = io.BytesIO()
        self._scratch: IO[bytes] | None = None
        self._size = 0

    @property
    def sink(self) -> IO[bytes]:
        """The stream to write the content to; it can only append."""
        return cast("IO[bytes]", self)

    def write(self, data: bytes) -> int:
        """Append bytes."""
        if self._scratch is None and self._size + len(data) > self._most:
            self._scratch = NamedTemporaryFile(prefix="hoodie-")  # noqa: SIM115 - closed by ``close``
            self._scratch.write(self._memory.getbuffer())
            self._memory = io.BytesIO()
        (self._memory if self._scratch is None else self._scratch).write(data)
        self._size += len(data)
        return len(data)

    def publish(self) -> int:
        """Put the file into the table and return its size in bytes.

        Raises:
            ConflictError: a file with that name exists.
            CommitStateUnknownError: the store did not say whether the file was written.
            StorageError: the store refused.
        """
        if self._scratch is None:
            self._files.put_if_absent(self._path, self._memory.getvalue(), unique=True)
        else:
            self._scratch.flush()
            self._files.create_from(self._path, self._scratch.name)
        return self._size

    def close(self) -> None:
        """Delete the scratch file."""
        if self._scratch is not None:
            self._scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def ensure_partition(files: TableFiles, partition_path: str, instant: str, *, in_base_format: bool = False) -> None:
    """Turn a folder into a partition if it is not one. Call it before the first data file is written there.

    Readers that list folders, and Java when it rebuilds the metadata table, skip folders without the metafile (Hudi
    ``HoodiePartitionMetadata``). ``in_base_format`` makes it a Parquet file without rows, with the facts in its footer.

    Raises:
        CommitStateUnknownError: the store did not say whether the file was written.
        StorageError: the store refused.
    """
    path = _locate_metafile(partition_path, in_base_format=in_base_format)
    if not files.has_file(path):
        make_partition(files, partition_path, instant, in_base_format=in_base_format)


def make_partition(files: TableFiles, partition_path: str, instant: str, *, in_base_format: bool = False) -> None:
    """Write the metafile of a partition that has none; arguments and errors as for ``ensure_partition``."""
    path = _locate_metafile(partition_path, in_base_format=in_base_format)
    depth = partition_path.count("/") + 1 if partition_path else 0
    facts = {"commitTime": instant, "partitionDepth": str(depth)}
    content = make_facts_file(facts) if in_base_format else format_properties(facts, comment="partition metadata")
    try:
        files.put_if_absent(path, content, unique=True)
    except ConflictError:
        return  # another task wrote it first; every task's file will do


def _locate_metafile(partition_path: str, *, in_base_format: bool) -> str:
    name = f"{PARTITION_METAFILE}.parquet" if in_base_format else PARTITION_METAFILE
    return f"{partition_path}/{name}" if partition_path else name


def start_measuring(indexed: IndexedColumns | None, avro_schema: str) -> RecordRanges | None:
    """Return a collector of the column ranges of a log file's records; None if there are no indexed columns."""
    return None if indexed is None else RecordRanges(find_kinds(indexed.names, parse_record(avro_schema)))


class MeasuringWriter(BaseFileWriter):
    """Writes a base file, and measures it; arguments and errors as for BaseFileWriter.

    The ranges come from the file's footer, except for floats: pyarrow leaves NaN out of their bounds, and Java counts
    it as the greatest value, so floats are measured as they are written.

    ``ranges`` is set once ``close`` has returned. It is None if no columns are ``indexed``, or a type cannot be.
    """

    def __init__(
        self, sink: IO[bytes], schema: pa.Schema, avro_schema: str, *, indexed: IndexedColumns | None, **settings: Any
    ) -> None:
        super().__init__(sink, schema, avro_schema, **settings)
        self.ranges: FileRanges | None = None
        self._indexed = indexed
        measured = start_measuring(indexed, avro_schema)
        self._floats = None if measured is None else measured.select_floats()

    def write(self, batch: pa.RecordBatch) -> None:
        super().write(batch)
        if self._floats is not None:
            self._floats.add(batch)

    def close(self) -> WrittenFile:
        written = super().close()
        if self._indexed is not None and self._floats is not None:
            found = read_footer_ranges(written.metadata, self._indexed.names, self._indexed.version)
            floats = {each.column: each for each in self._floats.finish()}
            self.ranges = None if found is None else found.complete(floats)
        return written
