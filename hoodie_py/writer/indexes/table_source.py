"""The table as the source of an index build: its files, and the records of its newest slices (Hudi
``HoodieBackedTableMetadataWriter.initializeFromFilesystem``, ``DirectoryInfo``).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import pyarrow as pa

from hoodie_py.formats.indexes.definitions import IndexDefinition
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.timeline.instants import CLUSTERING, INDEXING, SAVEPOINT
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.scan.threads import count_threads, read_in_threads
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes.slice_rows import SliceRows

Sizes = Mapping[str, Mapping[str, int]]

_WITHOUT_FILES = (INDEXING, SAVEPOINT)  # a savepoint has the time of a commit, whose files count


class FilePlace(NamedTuple):
    """Partition path and name of a data file."""

    partition_path: str
    name: str

    @property
    def path(self) -> str:
        """Path relative to the table."""
        return f"{self.partition_path}/{self.name}" if self.partition_path else self.name


@dataclass(frozen=True)
class IndexSource:
    """A table, and one index to build over it. The table does not change: the caller holds its lock.

    ``merger`` is the table's own, if the caller gave it. ``left_out``: paths of files that do not belong to the table,
    although their names do not show that.
    """

    snapshot: Snapshot
    definition: IndexDefinition | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    merger: Merger | None = None
    left_out: frozenset[str] = frozenset()

    @cached_property
    def files(self) -> Sizes:
        """Sizes in bytes of the table's data files, by partition path and name. Partitions without files are included.

        As in Java, files of pending instants and of instants after the last completed one are left out. Files that a
        rollback has left are left out, too; Java includes them. Up to table version 6 a log file is named after a base
        instant, possibly a pending compaction's: it is included. In all versions a log file named after a
        pending clustering is included: a write that goes to old and new buckets wrote it.
        """
        timeline, newest = self.snapshot.timeline, self.last_instant
        unfinished = (each for each in timeline.select_pending() if each.action not in _WITHOUT_FILES)
        pending = {each.request_time: each.action for each in unfinished}
        named_by_base = not self.snapshot.config.has_logs_named_by_commit
        found: dict[str, dict[str, int]] = {}
        for listing in self.snapshot.view.list_partitions() if newest else ():
            sizes = found.setdefault(listing.partition.path, {})
            for info in listing.files:
                if info.path in self.left_out:
                    continue
                instant = find_file_instant(info.name)
                if instant is None or instant > newest:
                    continue
                action = pending.get(instant)
                stays = info.name.startswith(".") and (named_by_base or action == CLUSTERING)
                if stays or (action is None and timeline.is_committed(instant)):
                    sizes[info.name] = info.size
        return found

    @cached_property
    def empty_partitions(self) -> Sequence[str]:
        """The paths of the partitions without files, such as a failed write leaves of a new partition."""
        return [path for path, files in self.files.items() if not files]

    def list_places(self) -> Iterator[FilePlace]:
        """Yield all data files of the table."""
        for path in sorted(self.files):
            yield from (FilePlace(path, name) for name in sorted(self.files[path]))

    @property
    def last_instant(self) -> str:
        """The request time of the last completed instant; "" if there is none."""
        last = self.snapshot.timeline.select_completed().last
        return "" if last is None else last.request_time

    @cached_property
    def slices(self) -> Sequence[FileSlice]:
        """The newest file slices. A slice that a pending compaction began is merged with the one before it."""
        return self.snapshot.view.list_slices(None, sorted(self.files))

    @cached_property
    def visible_files(self) -> Mapping[str, Sequence[str]]:
        """Paths of the files that readers see, by partition path."""
        found: dict[str, list[str]] = {}
        for each in self.slices:
            base = [] if each.base_file is None else [each.base_file.path]
            found.setdefault(each.partition_path, []).extend([*base, *(log.path for log in each.log_files)])
        return found

    def read_records(self, column: str | None = None) -> Iterator[tuple[FileSlice, pa.RecordBatch]]:
        """Yield the records of all slices, each batch with its slice.

        A batch contains the column ``key``, and ``value`` if a column is wanted.

        Raises:
            HoodieError: as a read of the table.
        """
        rows = SliceRows(self.snapshot, self.options, column, merger=self.merger)
        threads = max(1, min(len(self.slices), count_threads(self.options)))
        jobs = [partial(_read_slice, rows, each) for each in self.slices]
        with closing(read_in_threads(jobs, threads)) as batches:
            for number, batch in batches:
                yield self.slices[number], batch


def find_file_instant(name: str) -> str | None:
    """Return the instant in the name of a base or log file; None for other files."""
    parsed = parse_log_file_name(name) if name.startswith(".") else parse_base_file_name(name)
    return None if parsed is None else parsed.instant


def _read_slice(rows: SliceRows, file_slice: FileSlice) -> Generator[pa.RecordBatch, None, None]:
    yield from rows.read(file_slice)
