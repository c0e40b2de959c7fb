"""Snapshot: a table at one instant, with its properties, timeline, schema and file slices.

A snapshot reads the timeline once, and its answers stay the same while the table changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.errors import (
    ConflictError,
    CorruptFileError,
    InvalidQueryError,
    InvalidTableError,
    UnsupportedFeatureError,
)
from hoodie_py.files import TableFiles, ask_together
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes.definitions import FILES_PARTITION
from hoodie_py.options.read import METADATA_ENABLE
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.reader.schema_evolution.file_mappings import FileMappings
from hoodie_py.table.filter.listed_keys import find_listed_keys
from hoodie_py.table.indexes.files import MetadataListings
from hoodie_py.table.indexes.source import MetadataSource
from hoodie_py.table.schema.resolver import TableSchema, resolve_schema
from hoodie_py.table.timeline.loader import TableTimeline, load_config
from hoodie_py.table.timeline.time_travel import AsOf, check_travel, parse_instant, parse_zone, warn_of_empty_past
from hoodie_py.table.view.cleaned_slices import CleanedSlices
from hoodie_py.table.view.committed_logs import CommittedLogs
from hoodie_py.table.view.file_system_view import FileSystemView
from hoodie_py.table.view.partition_values import is_formatted_time, parse_partition_constants, parse_partition_values
from hoodie_py.table.view.partitions import FolderListings, Keep, MayLead, PartitionListing

if TYPE_CHECKING:
    from hoodie_py.table.filter.predicate import Predicate


def open_snapshot(
    uri: str | TableFiles,
    *,
    storage_options: Mapping[str, Any] | None = None,
    as_of: AsOf | None = None,
    timezone: str | None = None,
    earlier: Snapshot | None = None,
) -> Snapshot:
    """Open a table in its current state, or as of an instant.

    ``timezone``: zone of naive times, unless the table says UTC. ``earlier``: a snapshot of the same table, so that
    known parts of the timeline that cannot have changed are not read again.

    Raises:
        TableNotFoundError: there is no table.
        InvalidTableError: the table's metadata is broken.
        UnsupportedFeatureError: a table version or format that is not handled.
        InvalidQueryError: ``as_of`` is not an instant, or the table can no longer show it.
    """
    files = uri if isinstance(uri, TableFiles) else TableFiles.open(uri, storage_options)
    known = None if earlier is None else earlier.timeline
    if known is None or files.parallel == 1:
        config = load_config(files)
        timeline = TableTimeline.load(files, config, known)
    else:
        config, timeline = _load_together(files, known)
    if not timeline.instants:  # an upgrade or downgrade may have moved it since the properties were read
        now = load_config(files)
        if now.timeline_layout != config.timeline_layout:
            config, timeline = now, TableTimeline.load(files, now)
    return Snapshot(files, config, timeline, as_of=as_of, timezone=timezone)


def _load_together(files: TableFiles, known: TableTimeline) -> tuple[TableConfig, TableTimeline]:
    """Load properties and timeline at once. The timeline counts if the properties are still the known ones."""
    config, timeline = ask_together(
        files, partial(load_config, files), partial(TableTimeline.load, files, known.config, known)
    )
    return config, timeline if config == known.config else TableTimeline.load(files, config, known)


class Snapshot:
    """A table at one instant; its answers stay the same while the table changes.

    ``timezone``: zone of naive times. ``view``: file slices that the caller already knows; without it the table's files
    are listed. ``schema``: the schema, if known; without it the schema is read when needed.
    """

    def __init__(
        self,
        files: TableFiles,
        config: TableConfig,
        timeline: TableTimeline,
        *,
        as_of: AsOf | None = None,
        timezone: str | None = None,
        view: FileSystemView | None = None,
        schema: TableSchema | None = None,
        metadata: MetadataSource | None = None,
    ) -> None:
        self.files = files
        self.config = config
        self.timeline = timeline
        self.timezone = timezone
        self.metadata = metadata if metadata is not None else MetadataSource(timeline)
        self.view = view if view is not None else FileSystemView(files, config, timeline)
        self._lists_folders = view is not None
        self._schema = schema
        self._partition_infos: dict[tuple[str, bool], ReadInfo] = {}  # work that is the same for many slices
        self._as_of: str | None = None
        self._cleaned: CleanedSlices | None = None
        if as_of is not None:
            self._as_of = parse_instant(as_of, parse_zone(timezone, config.timezone))
            self._cleaned = CleanedSlices.of(check_travel(timeline, self._as_of), self._as_of)
            warn_of_empty_past(timeline, self._as_of)

    def travel_to(self, as_of: AsOf | None) -> Snapshot:
        """Return the same loaded table at another instant."""
        return Snapshot(
            self.files, self.config, self.timeline, as_of=as_of, timezone=self.timezone, metadata=self.metadata
        )

    def evolve(
        self,
        *,
        files: TableFiles | None = None,
        config: TableConfig | None = None,
        timeline: TableTimeline | None = None,
        view: FileSystemView | None = None,
        schema: TableSchema | None = None,
    ) -> Snapshot:
        """Return a copy with some parts replaced.

        With other files, properties or another timeline, what the old ones led to is not kept: the view, the columns,
        the metadata table.
        """
        if stays := files is None and config is None and timeline is None:
            view = self.view if view is None and self._lists_folders else view
            schema = self._known_schema if schema is None else schema
        return Snapshot(
            self.files if files is None else files,
            self.config if config is None else config,
            self.timeline if timeline is None else timeline,
            as_of=self._as_of,
            timezone=self.timezone,
            view=view,
            schema=schema,
            metadata=self.metadata if stays else None,
        )

    @property
    def _known_schema(self) -> TableSchema | None:
        return self.__dict__.get("schema", self._schema)

    def take_over(self, later: Snapshot) -> Snapshot:
        """Return this snapshot's files and columns with the properties and the timeline of a later snapshot."""
        return self.evolve(config=later.config, timeline=later.timeline, view=self.view, schema=self._known_schema)

    def forget_files(self, files: TableFiles) -> Snapshot:
        """Return the same snapshot with nothing listed yet, which reaches the table's files through ``files``."""
        return self.evolve(files=files, schema=self.schema)

    @property
    def is_time_travel(self) -> bool:
        """Whether the snapshot shows an instant of the past."""
        return self._as_of is not None

    @property
    def instant(self) -> str | None:
        """The instant the snapshot shows; None for a table without commits."""
        return self._as_of or self.view.last_instant

    @cached_property
    def schema(self) -> TableSchema:
        """Columns of the table at the instant, meta columns first."""
        return self._schema if self._schema is not None else resolve_schema(self.timeline, self._as_of)

    def find_columns(self) -> tuple[pa.Schema | None, str | None]:
        """Return the columns for inspection; None and the reason if they are unknown or not handled."""
        try:
            return self.schema.arrow, None
        except (ConflictError, CorruptFileError, InvalidTableError, UnsupportedFeatureError) as error:
            return None, str(error)

    @property
    def times(self) -> pa.Schema | None:
        """Time columns with their declared types (``list_declared_times``); None without a schema or such columns."""
        if not self.config.create_schema and not self.timeline.list_completed_writes():
            return None
        return self.schema.times

    def choose_view(self, options: ReadOptions | None = None) -> FileSystemView:
        """Return the view that a read plans from: the metadata table lists its files, if the table has one.

        Without ``options`` it is the view of a read without options. Writers use ``view``, which lists folders.
        """
        if self._lists_folders or FILES_PARTITION not in self.config.metadata_partitions:
            return self.view
        if options is None:
            return self._metadata_view
        if not METADATA_ENABLE.read(options.options):
            return self.view
        return self._strict_view if options.integrity == "strict" else self._metadata_view

    @cached_property
    def _metadata_view(self) -> FileSystemView:
        return self._make_metadata_view(strict=False)

    @cached_property
    def _strict_view(self) -> FileSystemView:
        return self._make_metadata_view(strict=True)

    def _make_metadata_view(self, *, strict: bool) -> FileSystemView:
        folders = FolderListings(self.files, self.config)
        listings = MetadataListings(self.metadata, self.timeline, folders, strict=strict)
        return FileSystemView(
            self.files, self.config, self.timeline, listings=listings, visibility=self.view.visibility
        )

    def file_slices(
        self,
        query_type: str = "snapshot",
        predicate: Predicate | None = None,
        options: ReadOptions | None = None,
    ) -> list[FileSlice]:
        """Return the slices that a query reads, without partitions that cannot hold wanted rows.

        ``query_type``: "snapshot" or "read_optimized". ``options``: as for ``choose_view``.
        """
        view = self.choose_view(options)
        found = self._list_kind(view, query_type, self._list_partitions(view, predicate))
        self._check_not_cleaned(found, self._make_path_filter(predicate))
        return found

    def iterate_file_slices(
        self, query_type: str = "snapshot", predicate: Predicate | None = None, options: ReadOptions | None = None
    ) -> Iterator[list[FileSlice]]:
        """Like ``file_slices``, but lazily: folders are listed as the iterator advances."""
        view = self.choose_view(options)
        seen: set[str] = set()
        for part in view.iterate_partitions(self.schema.arrow, *self._make_partition_filter(predicate)):
            found = self._list_kind(view, query_type, part)
            paths = {each.partition.path for each in part}
            self._check_not_cleaned(found, paths.__contains__)
            seen |= paths
            yield found
        wanted = self._make_path_filter(predicate)
        self._check_not_cleaned((), lambda path: path not in seen and wanted(path))

    def _list_kind(
        self, view: FileSystemView, query_type: str, partitions: Iterable[PartitionListing]
    ) -> list[FileSlice]:
        """Return the slices of partitions that a kind of query reads."""
        if query_type not in ("snapshot", "read_optimized"):
            raise InvalidQueryError(f"Unknown query type {query_type!r}.")
        paths = [each.partition.path for each in partitions]
        if query_type == "read_optimized":
            return view.list_base_files(self._as_of, paths)
        return view.list_slices(self._as_of, paths)

    def list_slices(self, predicate: Predicate | None = None) -> list[FileSlice]:
        """List the slices of a snapshot query for inspection, including unreadable ones.

        Without a filter this needs no columns, so it opens no data file.
        """
        view = self.choose_view()
        listings = view.list_partitions() if predicate is None else self._list_partitions(view, predicate)
        paths = [listing.partition.path for listing in listings]
        found = view.list_named_slices(self._as_of, paths)
        self._check_not_cleaned(found, self._make_path_filter(predicate))
        return view.add_known_sources(found)

    def _check_not_cleaned(self, found: Sequence[FileSlice], wanted: Callable[[str], bool]) -> None:
        """Check that cleans left the slices of an instant of the past, in the wanted partitions."""
        if self._cleaned is not None:
            self._cleaned.check(found, self.view.visibility, wanted)

    def check_complete(
        self,
        query_type: str = "snapshot",
        predicate: Predicate | None = None,
        options: ReadOptions | None = None,
    ) -> None:
        """Check that all files exist that commits name for a query; arguments as for ``file_slices``.

        The folders show which files exist. If the metadata table lists files, it must list these, too.

        Raises:
            FileMissingError: a file is missing.
            InvalidTableError: the metadata table does not list a file.
        """
        from hoodie_py.table.view.integrity import check_nothing_missing

        wanted = self._make_path_filter(predicate)
        for view in dict.fromkeys((self.view, self.choose_view(options))):
            check_nothing_missing(view, self._as_of, wanted, base_files_only=query_type == "read_optimized")

    def _list_partitions(self, view: FileSystemView, predicate: Predicate | None) -> list[PartitionListing]:
        """List the partitions that may hold rows that pass a filter."""
        return view.list_partitions(self.schema.arrow, *self._make_partition_filter(predicate))

    def _make_partition_filter(self, predicate: Predicate | None) -> tuple[Keep | None, MayLead | None]:
        """Return which partitions may hold rows that pass a filter; None for all.

        It also says which folders may lead to them.
        """
        if predicate is None:
            return None, None
        from hoodie_py.table.view.partition_filter import PartitionFilter

        wanted = PartitionFilter(predicate, self.config, self.schema.arrow)
        return lambda partition: wanted.may_match(partition.path), wanted.may_lead

    def _make_path_filter(self, predicate: Predicate | None) -> Callable[[str], bool]:
        """Return which partitions, by path, may hold rows that pass a filter."""
        if predicate is None:
            return lambda _: True
        from hoodie_py.table.view.partition_filter import PartitionFilter

        return PartitionFilter(predicate, self.config, self.schema.arrow).may_match

    def _names_partition(self, predicate: Predicate | None) -> bool:
        if predicate is None:
            return False
        from hoodie_py.table.filter.pruning import names_partition

        return names_partition(predicate, self.config.partition_fields)

    def read_info(self, file_slice: FileSlice, *, strict: bool = False, predicate: Predicate | None = None) -> ReadInfo:
        """Return the facts that reading one slice needs; small and picklable.

        ``strict``: make the reader check file sizes. ``predicate``: the query's filter.
        """
        key = (file_slice.partition_path, self._names_partition(predicate))
        info = self._partition_infos.get(key)
        if info is None:
            info = self._partition_infos[key] = self._describe_partition(*key)
        if file_slice.base_file is not None and file_slice.base_file.source is not None:
            info = replace(info, bootstrapped=True)
        if info.mappings is not None:
            info = replace(info, mappings=_cut_mappings(info.mappings, file_slice))
        keys = find_listed_keys(self.config, predicate)
        if keys is not None:
            info = replace(info, keys=keys)
        if not strict:
            return info
        from hoodie_py.table.view.integrity import find_expected_sizes

        return replace(info, expected_sizes=find_expected_sizes(self.timeline, [file_slice]))

    def _describe_partition(self, path: str, whole: bool) -> ReadInfo:
        """Return the facts that the slices of a partition share; ``whole`` as for ``parse_partition_constants``."""
        schema = self.schema.arrow
        return replace(
            self._table_info,
            constants=parse_partition_constants(self.config, schema, path, whole=whole),
            fallbacks=parse_partition_values(self.config, schema, path),
        )

    @cached_property
    def _table_info(self) -> ReadInfo:
        """The facts that all slices share."""
        schema = self.schema
        rules = self.view.make_block_rules(self._as_of)
        return ReadInfo(
            files=self.files,
            config=self.bare_config,
            schema=schema.arrow,
            defaults=schema.defaults,
            rules=rules,
            committed=CommittedLogs(self.files, self.bare_config, rules) if rules.check_commits else None,
            times=schema.times,
            mappings=schema.mappings,
            numbers=frozenset(name for name in schema.data_columns if is_formatted_time(self.config, name)),
        )

    @cached_property
    def bare_config(self) -> TableConfig:
        """The properties without their raw text and create schema, which tasks do not need."""
        return replace(self.config, properties={}, create_schema=None)


def _cut_mappings(mappings: FileMappings, file_slice: FileSlice) -> FileMappings:
    """Return the names of columns in the files of one slice; up to table version 6 log files have later blocks.

    A slice without a base instant stands for all slices of its file group.
    """
    if not file_slice.base_instant:
        return mappings
    base = [] if file_slice.base_file is None else [file_slice.base_file.instant]
    return mappings.cut([file_slice.base_instant, *base, *(log.name.instant for log in file_slice.log_files)])
