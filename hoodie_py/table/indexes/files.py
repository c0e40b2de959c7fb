"""MetadataListings: partitions and files of a table, listed from its metadata table (Hudi ``BaseTableMetadata``).

The record ``__all_partitions__`` names the partitions, and the record of a partition its files with their sizes. So a
filter that names one partition of ten thousand reads two records.

* The metadata table is checked first (``soundness``). If it is behind or broken, the folders are listed instead and a
  warning says so; with ``strict`` it is an error. So no reader silently gets fewer rows.
* A partition without a record of its own is listed as a folder. A record without a partition is a contradiction.
* A file that is listed but gone is an error of the read that opens it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from hoodie_py.errors import (
    CorruptFileError,
    FileMissingError,
    HoodieError,
    HoodieWarning,
    InvalidTableError,
    MergeError,
    UnsupportedFeatureError,
)
from hoodie_py.files import FileInfo
from hoodie_py.formats.indexes.definitions import ALL_PARTITIONS, FILES_PARTITION, NO_PARTITION
from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.table.indexes.file_lists import read_file_lists
from hoodie_py.table.indexes.source import MetadataSource
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.view.partitions import FolderListings, Judge, Keep, MayLead, PartitionListing, parse_partition

if TYPE_CHECKING:
    from hoodie_py.table.indexes.view import MetadataView


_FEW_PARTITIONS = 64
_LOOKUPS_OF_A_SCAN = 8  # looking up one record takes as long as reading eight in a scan of all
_BROKEN = (CorruptFileError, FileMissingError, InvalidTableError, MergeError, UnsupportedFeatureError)
_T = TypeVar("_T")


class MetadataListings:
    """Listings of a table from its metadata table, or from its folders if that is not sound; threads may share it."""

    def __init__(
        self, source: MetadataSource, around: TableTimeline, folders: FolderListings, *, strict: bool = False
    ) -> None:
        self._source = source
        self._around = around
        self._folders = folders
        self._strict = strict
        self._is_usable = True
        self._is_checked = False
        self._lock = RLock()

    def discover(
        self, schema: pa.Schema, keep: Keep | None, judge: Judge | None, may_lead: MayLead | None
    ) -> list[PartitionListing]:
        """List the partitions of a table, sorted by path; arguments as for ``discover_partitions``."""
        found = self._discover(schema, keep)
        return self._folders.discover(schema, keep, judge, may_lead) if found is None else found

    def iterate(
        self, schema: pa.Schema, keep: Keep | None, judge: Judge | None, may_lead: MayLead | None
    ) -> Iterator[list[PartitionListing]]:
        """Yield all partitions at once, as a few calls list them; from folders as ``iterate_partitions``."""
        found = self._discover(schema, keep)
        if found is None:
            yield from self._folders.iterate(schema, keep, judge, may_lead)
        elif found:
            yield found

    def _discover(self, schema: pa.Schema, keep: Keep | None) -> list[PartitionListing] | None:
        """Return the partitions that the metadata table lists; None if it is not sound."""

        def find(view: MetadataView) -> list[PartitionListing]:
            if keep is None:
                known, found = read_file_lists(view, None)
            else:
                known, found = read_file_lists(view, [ALL_PARTITIONS])
            if known is None:
                raise InvalidTableError("The metadata table has no list of partitions.")
            partitions = [parse_partition(self._folders.config, schema, path) for path in known]
            kept = [each for each in partitions if keep is None or keep(each)]
            files = self._find_files(view, [each.path for each in kept], known, found)
            return [PartitionListing(each, tuple(listed)) for each, listed in zip(kept, files, strict=True)]

        return self._try(find, lambda: None)

    def list_files(self, paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        """List the files of partitions; a partition that the metadata table lacks is listed as a folder."""
        return self._try(lambda view: self._find_files(view, paths), lambda: self._folders.list_files(paths))

    def _try(self, read: Callable[[MetadataView], _T], otherwise: Callable[[], _T]) -> _T:
        """Read the metadata table if it is sound; otherwise call ``otherwise``."""
        with self._lock:
            if self._is_usable:
                try:
                    view = self._open()
                    if view is not None:
                        return read(view)
                except _BROKEN as error:
                    if self._strict:
                        raise
                    self._warn(error)
                self._is_usable = False
        return otherwise()

    def _open(self) -> MetadataView | None:
        view = self._source.open()
        if view is None or not view.has(FILES_PARTITION):
            return None
        if not self._is_checked:
            from hoodie_py.table.indexes.soundness import check_file_lists

            check_file_lists(view)
            self._is_checked = True
        return view

    def _warn(self, error: HoodieError) -> None:
        warnings.warn(
            f"The metadata table of table {self._folders.config.name} is not used, and folders are listed: {error}",
            HoodieWarning,
            stacklevel=2,
        )

    def _find_files(
        self,
        view: MetadataView,
        paths: Sequence[str],
        known: Sequence[str] = (),
        found: Mapping[str, Sequence[FileInfo]] | None = None,
    ) -> list[Sequence[FileInfo]]:
        """Return the files of some partitions, in their order.

        ``known``: all partitions. ``found``: the files read so far, by partition.
        """
        if not found:
            many = len(known) > _FEW_PARTITIONS and len(paths) * _LOOKUPS_OF_A_SCAN > len(known)
            _, found = read_file_lists(view, None if many else [path or NO_PARTITION for path in paths])
        if known and not found.keys() <= set(known):
            raise InvalidTableError("The metadata table has files of partitions that it does not have.")
        self._check_last_commit(found)
        missing = [path for path in paths if path not in found]
        listed = {**found, **dict(zip(missing, self._folders.list_files(missing), strict=True))}
        return [listed[path] for path in paths]

    def _check_last_commit(self, found: Mapping[str, Sequence[FileInfo]]) -> None:
        """Check that the files of the table's last write are listed."""
        writes = self._around.list_completed_writes()
        if not writes:
            return
        # A cheap check: this metadata is read anyway, for the columns.
        for partition, stats in self._around.read_metadata(writes[-1]).write_stats.items():
            if partition in found:
                there = {each.path for each in found[partition]}
                absent = (stat.path for stat in stats if stat.path is not None and stat.path not in there)
                lacking = next((path for path in absent if not self._is_rolled_back(path)), None)
                if lacking is not None:
                    raise InvalidTableError("The metadata table does not list a file of the last commit.", path=lacking)

    def _is_rolled_back(self, path: str) -> bool:
        """Whether a log file is named after an instant that is gone.

        That is a resize of buckets beside which a write took place, and which was rolled back later.
        """
        named, timeline = parse_log_file_name(path.rpartition("/")[2]), self._around
        return named is not None and timeline.find(named.instant) is None and not timeline.is_committed(named.instant)
