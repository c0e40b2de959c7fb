"""Finds the files that hold a table's rows (Hudi ``HoodieTableFileSystemView``, ``SparkHoodieTableFileIndex``).

The view lists partitions and evaluates file names by the timeline. It opens no data file. A view belongs to one loaded
timeline and keeps its listings, so its answers stay the same while the table changes. The rules are in ``slicing``
(which files belong together) and ``visibility`` (which instants count). Copy-on-write tables are read from base files
alone. Folders without a partition metafile are judged by the commits that name them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, FileMissingError, HoodieWarning, InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import (
    METADATA_BOOTSTRAP_INSTANT,
    REGISTERED_SUFFIX,
    check_partition,
    parse_base_file_name,
    parse_log_file_name,
)
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.reader.file_slice import BlockRules, FileSlice
from hoodie_py.table.timeline.loader import LATEST, TableTimeline
from hoodie_py.table.view.file_groups import FileGroup, group_files
from hoodie_py.table.view.partitions import FolderListings, Keep, Listings, MayLead, PartitionListing
from hoodie_py.table.view.slicing import find_base_file, make_slice
from hoodie_py.table.view.visibility import Visibility

if TYPE_CHECKING:
    from hoodie_py.table.view.bootstrap import BootstrapSources

_AT_ONCE = 16
_SHOWN = 5


class FileSystemView:
    """The file slices of a table for one loaded timeline; safe to use from several threads.

    ``listings``: where partitions and files are listed; None for folders. ``visibility``: of the timeline, if the
    caller has it.
    """

    def __init__(
        self,
        files: TableFiles,
        config: TableConfig,
        timeline: TableTimeline,
        listings: Listings | None = None,
        visibility: Visibility | None = None,
    ) -> None:
        self.files = files
        self.config = config
        self.timeline = timeline
        self._visibility = visibility
        self._listings = listings if listings is not None else FolderListings(files, config)
        self._groups: dict[str, list[FileGroup]] = {}
        self._paths: tuple[str, ...] | None = None
        self._lock = Lock()

    @cached_property
    def visibility(self) -> Visibility:
        """Which instants count."""
        return self._visibility if self._visibility is not None else Visibility(self.timeline)

    @cached_property
    def _sources(self) -> BootstrapSources:
        from hoodie_py.table.view.bootstrap import BootstrapSources  # few tables need it and the format of its index

        return BootstrapSources(self.files, self.config.bootstrap_base_path)

    @property
    def last_instant(self) -> str | None:
        """Request time of the last completed write or pending compaction, which means "now"; None without one."""
        return self.visibility.last_instant

    def list_partitions(
        self, schema: pa.Schema | None = None, keep: Keep | None = None, may_lead: MayLead | None = None
    ) -> list[PartitionListing]:
        """Discover the table's partitions (see ``discover_partitions``); their listings serve the view from here on.

        Folders without a metafile count if the timeline names them (``_find_named_partitions``). Without a schema
        partitions have no values.
        """
        known = schema if schema is not None else pa.schema([])
        listings = self._listings.discover(known, keep, partial(_find_named_partitions, self.timeline), may_lead)
        return self._keep_listings(listings)

    def iterate_partitions(
        self, schema: pa.Schema, keep: Keep | None = None, may_lead: MayLead | None = None
    ) -> Iterator[list[PartitionListing]]:
        """Yield the partitions of ``list_partitions`` in parts; folders are listed as the iterator advances."""
        judge = partial(_find_named_partitions, self.timeline)
        yield from map(self._keep_listings, self._listings.iterate(schema, keep, judge, may_lead))

    def list_paths(self) -> tuple[str, ...]:
        """Return the paths of all partitions, found once; errors as for ``list_partitions``."""
        if self._paths is None:
            self._paths = tuple(listing.partition.path for listing in self.list_partitions())
        return self._paths

    def list_data_folders(self) -> list[PartitionListing]:
        """List partitions and all other folders with data files, where unfinished writes may have written."""
        return FolderListings(self.files, self.config).discover(pa.schema([]), None, lambda doubtful: doubtful, None)

    def list_slices(self, query_instant: str | None = None, partitions: Iterable[str] | None = None) -> list[FileSlice]:
        """Return the slices that a snapshot query reads, sorted by partition and file id.

        A partition path without a folder has no slices.

        Raises:
            UnsupportedFeatureError: a base file has a format that is not handled.
            InvalidTableError: table metadata contradicts itself, or names a path outside the table.
            FileMissingError: the index of a metadata-only bootstrap is gone, and base files need it.
            CorruptFileError: a timeline file is damaged.
            StorageError: a listing or reading failed.
        """
        return [self.make_readable(each) for each in self.list_named_slices(query_instant, partitions)]

    def list_named_slices(
        self, query_instant: str | None = None, partitions: Iterable[str] | None = None
    ) -> list[FileSlice]:
        """Return the slices of ``list_slices`` by file names alone, without bootstrap sources of base files."""
        groups = self._list_visible_groups(query_instant, partitions)
        slices = (make_slice(group, self.visibility, query_instant) for group in groups)
        return [each for each in slices if each is not None]

    def list_base_files(
        self, query_instant: str | None = None, partitions: Iterable[str] | None = None
    ) -> list[FileSlice]:
        """Return the newest committed base files, which a read-optimised query reads, as slices without log files.

        File groups with only log files have none. Arguments and errors as for ``list_slices``.
        """
        visible = []
        for group in self._list_visible_groups(query_instant, partitions):
            base = find_base_file(group, self.visibility, query_instant)
            if base is not None:
                alone = FileSlice(group.partition_path, group.file_id, base.instant, base, ())
                visible.append(self.make_readable(alone))
        return visible

    def make_readable(self, file_slice: FileSlice) -> FileSlice:
        """Return a slice whose base file has its bootstrap source, if it needs one; errors as ``list_slices``."""
        base = file_slice.base_file
        if base is None or base.instant != METADATA_BOOTSTRAP_INSTANT:
            return file_slice
        whole = self._sources.add_source(base, file_slice.partition_path)
        return file_slice if whole is base else replace(file_slice, base_file=whole)

    def add_known_sources(self, slices: Iterable[FileSlice]) -> list[FileSlice]:
        """Add bootstrap sources to base files if the index has them; a reader refuses base files without."""
        found: list[FileSlice] = []
        readable = True
        for each in slices:
            try:
                found.append(self.make_readable(each) if readable else each)
            except InvalidTableError:  # of this file alone
                found.append(each)
            except (CorruptFileError, FileMissingError):  # of the index
                readable = False
                found.append(each)
        return found

    def make_block_rules(self, query_instant: str | None = None) -> BlockRules:
        """Return the rules for which log blocks count at ``query_instant`` (None: now)."""
        return self.visibility.make_block_rules(query_instant if query_instant is not None else self.last_instant)

    def list_file_groups(self, partitions: Iterable[str] | None = None) -> list[FileGroup]:
        """Return every listed file group, visible or not."""
        if partitions is None:
            partitions = self.list_paths()
        paths = list(dict.fromkeys(check_partition(path) for path in partitions))
        with self._lock:
            missing = [path for path in paths if path not in self._groups]
        for path, listing in zip(missing, self._listings.list_files(missing), strict=True):
            self._keep_groups(path, group_files(path, listing))
        with self._lock:
            return [group for path in sorted(paths) for group in self._groups[path]]

    def _list_visible_groups(self, query_instant: str | None, partitions: Iterable[str] | None) -> Sequence[FileGroup]:
        if self.last_instant is None:
            return ()
        groups = [
            group
            for group in self.list_file_groups(partitions)
            if not self.visibility.is_replaced(group.key, query_instant)
        ]
        if self.config.is_merge_on_read:
            return groups
        return [FileGroup(group.partition_path, group.file_id, group.base_files, ()) for group in groups]

    def _keep_listings(self, listings: list[PartitionListing]) -> list[PartitionListing]:
        for listing in listings:
            self._keep_groups(listing.partition.path, group_files(listing.partition.path, listing.files))
        return listings

    def _keep_groups(self, path: str, groups: list[FileGroup]) -> None:
        with self._lock:
            self._groups.setdefault(path, groups)


def _find_named_partitions(timeline: TableTimeline, doubtful: Sequence[PartitionListing]) -> list[PartitionListing]:
    """Return which of the folders without a partition metafile are partitions, by the commits that name them.

    As in Java's metadata table, such a folder is a partition if it holds data files of completed commits, and a commit
    wrote there or replaced file groups there. Commits of the active timeline are read newest first, then archived ones,
    until every folder is found. Nothing is read if all folders have metafiles. A folder that no commit names is left
    out, as Java leaves out a copied folder, and a warning names it.

    Raises:
        CorruptFileError, InvalidTableError: the timeline is damaged.
        StorageError: the store refused.
    """
    written = {
        each.partition.path: each
        for each in doubtful
        if any(_is_committed_file(timeline, info.name) for info in each.files)
    }
    named = [written[path] for path in _iterate_named_paths(timeline, set(written))]
    if left := sorted(written.keys() - {each.partition.path for each in named}):
        warnings.warn(
            f"Folders with data files are left out, since neither a metafile nor a commit makes them partitions of "
            f"table {timeline.config.name}: {', '.join(left[:_SHOWN])}{', ...' if len(left) > _SHOWN else ''}",
            HoodieWarning,
            stacklevel=2,
        )
    return named


def _iterate_named_paths(timeline: TableTimeline, wanted: set[str]) -> Iterator[str]:
    """Yield the wanted paths that a commit names, and stop reading when all are found."""
    if not wanted:
        return
    for metadata in _iterate_commits(timeline):
        found = wanted & (metadata.write_stats.keys() | metadata.replaced_file_ids.keys())
        yield from found
        wanted -= found
        if not wanted:
            return


def _iterate_commits(timeline: TableTimeline) -> Iterator[CommitMetadata]:
    writes = timeline.list_completed_writes()[::-1]
    for start in range(0, len(writes), _AT_ONCE):
        yield from timeline.read_all_metadata(writes[start : start + _AT_ONCE])
    for _, metadata in timeline.read_archive().iterate_writes_back_from(LATEST):
        yield metadata


def _is_committed_file(timeline: TableTimeline, name: str) -> bool:
    if name.endswith(REGISTERED_SUFFIX):
        return True
    parsed = parse_log_file_name(name) if name.startswith(".") else parse_base_file_name(name)
    return parsed is not None and timeline.is_committed(parsed.instant)
