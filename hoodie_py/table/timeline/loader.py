"""Loads a table's properties and timeline, and reads the files of its instants.

* Writers replace ``hoodie.properties`` by copy, delete, write. So if it is missing or unreadable, its ``.backup``
  counts. If both are, a writer may be between two steps: wait and read again (Hudi ``HoodieTableConfig``).
* One listing gives the active timeline.
* Instants' files never change, so what was read is kept, in ``KnownCommits`` also for later states of the table. An
  instant that was archived since the listing is found in the archive, which is read only then (Hudi
  ``HoodieArchivedTimeline``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from hoodie_py.errors import (
    ConflictError,
    FileMissingError,
    HoodieError,
    InvalidTableError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
    locate_errors,
)
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import PROPERTIES_BACKUP_FILE, PROPERTIES_FILE, TableConfig
from hoodie_py.formats.config.whole_properties import parse_whole_table_config
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.formats.timeline import instants as kinds
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import Instant, locate_instant, locate_requested
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.timeline.listing import TimelineListing, list_timeline, make_empty_listing

if TYPE_CHECKING:
    from hoodie_py.formats.timeline.plans import CompactionPlan
    from hoodie_py.formats.timeline.replace_plan import RequestedReplace
    from hoodie_py.table.timeline.archive import ArchivedTimeline


_MOST_COMMITS = 8192
_MOST_STATS = 1 << 16  # some 1 KB each
_UNKNOWN = "UNKNOWN"  # an empty file, which may still be written


class KnownCommits:
    """Commit metadata by instant, for all states of one table that are loaded one after another; safe between threads.

    The numbers of entries and of their statistics are limited; the first added is dropped first. ``stats_of_logs``: the
    statistics by file from the one commit of a time, for log files that are named after it.
    """

    def __init__(self, most_stats: int = _MOST_STATS) -> None:
        self._most_stats = most_stats
        self.stats_of_logs: dict[str, Mapping[str, tuple[WriteStat, ...]]] = {}
        self._found: dict[Instant, CommitMetadata] = {}
        self._stats = 0
        self._lock = Lock()

    def get(self, instant: Instant) -> CommitMetadata | None:
        """Return the metadata of an instant, if it is kept."""
        return self._found.get(instant)

    def add(self, instant: Instant, metadata: CommitMetadata, config: TableConfig) -> None:
        """Keep the metadata of a completed instant, if it is final and not too large."""
        size = _count_stats(metadata)
        if size > self._most_stats or not _is_lasting(instant, metadata, config):
            return
        with self._lock:
            if instant in self._found:
                return
            self._found[instant] = metadata
            self._stats += size
            while self._stats > self._most_stats or len(self._found) > _MOST_COMMITS:
                oldest = next(iter(self._found))
                self._stats -= _count_stats(self._found.pop(oldest))
                self.stats_of_logs.pop(oldest.request_time, None)


def _count_stats(metadata: CommitMetadata) -> int:
    return sum(map(len, metadata.write_stats.values())) + sum(map(len, metadata.replaced_file_ids.values()))


def _is_lasting(instant: Instant, metadata: CommitMetadata, config: TableConfig) -> bool:
    """Say whether the instant's name is never used again, so that its metadata is final.

    Since timeline layout 2 the name has the completion time. In layout 1 a compaction, a log compaction and a
    clustering may run again at the same time after a rollback, and so may any commit of a metadata table. Other writes
    take a new time.
    """
    if instant.is_legacy:
        return False
    if config.timeline_layout > 1:
        return True
    plain = instant.action in (kinds.COMMIT, kinds.DELTA_COMMIT) and not metadata.moves_rows
    return plain and metadata.operation_type != _UNKNOWN and not config.is_metadata_table


LATEST = "9" * 32  # no instant is later

_ROUNDS = 5
_PAUSE_SECONDS = 1.0
_READ_THREADS = 16
_PLANNED_ACTIONS = {"commit": "compaction", "deltacommit": "logcompaction"}

_T = TypeVar("_T")


def load_config(files: TableFiles) -> TableConfig:
    """Read the table's properties, or their backup while a writer replaces them.

    Raises:
        TableNotFoundError: there is no table at this place.
        InvalidTableError: neither file is readable.
        UnsupportedFeatureError: a table version or table format that is not handled.
    """
    for round_number in range(_ROUNDS):
        if round_number:
            time.sleep(_PAUSE_SECONDS)
        problem: HoodieError | None = None
        for name in (PROPERTIES_FILE, PROPERTIES_BACKUP_FILE):
            path = f"{METADATA_FOLDER}/{name}"
            try:
                return parse_whole_table_config(read_bounded(files, path, "properties_bytes"))
            except FileMissingError:
                continue
            except (UnsupportedFeatureError, StorageError):
                raise
            except HoodieError as broken:
                problem = problem or broken.locate(path=path)
        if problem is None and not files.list_or_empty(METADATA_FOLDER):
            break
    if problem is not None:
        raise problem
    raise TableNotFoundError(
        "There is no Hudi table here: there is no .hoodie/hoodie.properties.",
        table=files.uri,
        hint="Give the table's base path.",
    )


_FINDINGS = (
    *vars(Timeline()),
    *(name for name, each in vars(Timeline).items() if isinstance(each, cached_property)),
)


def load_timeline(files: TableFiles, config: TableConfig) -> Timeline:
    """List the active timeline, without writes that are both completed and rolled back; errors as ``list_timeline``."""
    return list_timeline(files, config).timeline


def _share_findings(timeline: Timeline, other: Timeline) -> None:
    """Give ``other`` the instants of a timeline and what has been found among them."""
    found = vars(timeline)
    vars(other).update({name: found[name] for name in _FINDINGS if name in found})


class TableTimeline(Timeline):
    """A loaded timeline that can read its instants' files; safe to use from several threads.

    ``listing`` is what it was made from; ``known`` are commits that earlier states of the table have read. Pickled, it
    is a plain ``Timeline``.
    """

    def __init__(
        self,
        timeline: Timeline,
        files: TableFiles,
        config: TableConfig,
        listing: TimelineListing | None = None,
        known: KnownCommits | None = None,
    ) -> None:
        _share_findings(timeline, self)
        self.files = files
        self.config = config
        self.listing = listing
        self.known = KnownCommits() if known is None else known
        self._metadata: dict[Instant, CommitMetadata] = {}
        self._archive_lock = Lock()

    @classmethod
    def load(cls, files: TableFiles, config: TableConfig, earlier: TableTimeline | None = None) -> TableTimeline:
        """Load the active timeline; errors as ``list_timeline``.

        ``earlier``: an earlier state of the same table, from which known parts are taken.
        """
        if earlier is None or earlier.listing is None:
            listing = list_timeline(files, config)
            return cls(listing.timeline, files, config, listing, None if earlier is None else earlier.known)
        _share_findings(earlier, earlier.listing.timeline)  # for the timeline that the second listing extends
        listing = list_timeline(files, config, earlier.listing)
        return cls(listing.timeline, files, config, listing, earlier.known)

    @classmethod
    def of_new_table(cls, files: TableFiles, config: TableConfig) -> TableTimeline:
        """Return the empty timeline of a table that was just created."""
        listing = make_empty_listing(config)
        return cls(listing.timeline, files, config, listing)

    @property
    def names(self) -> frozenset[str]:
        """All names in the timeline's folder when it was listed; names of folders end with a slash."""
        return frozenset() if self.listing is None else self.listing.names

    def list_completed_writes(self) -> list[Instant]:
        """Return completed commits, delta commits and replace commits, oldest first."""
        return list(self.select_writes())

    def is_known(self, instant: Instant) -> bool:
        """Say whether an instant's metadata was read already."""
        return instant in self._metadata or self.known.get(instant) is not None

    def read_metadata(self, instant: Instant) -> CommitMetadata:
        """Return a completed write's commit metadata, which is read once.

        Raises:
            ConflictError: the instant is in neither timeline any more; InvalidTableError in a metadata table.
            CorruptFileError: its file is damaged.
        """
        found = self._metadata.get(instant)
        if found is None:
            found = self.known.get(instant)
            if found is None:
                found = self._load_metadata(instant)
                self.known.add(instant, found, self.config)
            self._metadata[instant] = found
        return found

    def read_all_metadata(self, instants: Sequence[Instant]) -> list[CommitMetadata]:
        """Return the metadata of many instants in their order, read in parallel."""
        missing = [instant for instant in instants if not self.is_known(instant)]
        if len(missing) > 1:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(min(_READ_THREADS, len(missing)), "hoodie-timeline") as pool:
                list(pool.map(carry_span(self.read_metadata), missing))
        return [self.read_metadata(instant) for instant in instants]

    @cached_property
    def stats_by_path(self) -> Mapping[str, tuple[WriteStat, ...]]:
        """Write statistics of every completed write of the active timeline, by the file's path, oldest first."""
        found: dict[str, tuple[WriteStat, ...]] = {}
        for metadata in self.read_all_metadata(self.list_completed_writes()):
            for stat in metadata.iterate_stats():
                if stat.path is not None:
                    found[stat.path] = (*found.get(stat.path, ()), stat)
        return found

    def read_compaction_plan(self, instant: Instant) -> CompactionPlan:
        """Return the plan of a compaction or log compaction, pending or completed.

        Raises:
            InvalidTableError: the plan's file is gone.
            CorruptFileError: the plan's file is damaged.
        """
        from hoodie_py.formats.timeline.plans import CompactionPlan

        return self._read_file(self._locate_plan(instant), instant, CompactionPlan.from_bytes)

    def read_pending_plan(self, instant: Instant) -> CompactionPlan:
        """Return the plan of a pending compaction; an empty plan if it was rolled back since the listing.

        Up to table version 6 a rolled back plan is an error: log files may have its instant in their names.

        Raises:
            InvalidTableError: the plan's file is gone.
            CorruptFileError: it is damaged.
        """
        from hoodie_py.formats.timeline.plans import CompactionPlan

        try:
            return self.read_compaction_plan(instant)
        except InvalidTableError as error:
            gone = isinstance(error.__cause__, FileMissingError) and self.is_rolled_back(instant)
            if gone and self.config.has_logs_named_by_commit:
                return CompactionPlan()
            raise

    def find_compaction_plan(self, request_time: str) -> CompactionPlan | None:
        """Return the plan requested at a time; None if the active timeline has no compaction of that time."""
        instant = self.find(request_time, "commit", "deltacommit")
        if instant is None:
            return None
        return self.read_compaction_plan(instant) if self.files.exists(self._locate_plan(instant)) else None

    def read_replace_plan(self, instant: Instant) -> RequestedReplace:
        """Return the plan of a pending replace commit or clustering; an empty plan if it was rolled back since.

        Raises:
            InvalidTableError: the plan's file is gone, but the instant is not.
            CorruptFileError: it is damaged.
        """
        from hoodie_py.formats.timeline.replace_plan import RequestedReplace

        try:
            return self._read_file(self._locate_plan(instant), instant, RequestedReplace.from_bytes)
        except InvalidTableError as error:
            if isinstance(error.__cause__, FileMissingError) and self.is_rolled_back(instant):
                return RequestedReplace()
            raise

    def is_rolled_back(self, instant: Instant) -> bool:
        """Say whether a pending instant was rolled back since the listing, by listing the timeline again."""
        return load_timeline(self.files, self.config).find(instant.request_time, instant.comparable_action) is None

    def find_completion_time(self, request_time: str) -> str | None:
        """Return when a write completed, from the active timeline or the archive; None if neither has it."""
        instant = self._writes.find(request_time)
        if instant is not None:
            return instant.completion_time
        return self.read_archive().completion_times.get(request_time)

    def find_earliest_retained(self) -> str | None:
        """Return the request time of the earliest commit whose files cleans keep; None if nothing was cleaned.

        The last completed clean decides, or a later clean that has begun, because it may have deleted files already.
        This is the rule of the next clean. For what earlier cleans removed by file versions, see
        ``cleans.find_kept_since``.
        """
        from hoodie_py.formats.timeline.plans import CleanMetadata, CleanPlan

        cleans = self.select_actions(kinds.CLEAN)
        last = cleans.select_completed().last
        found = (
            [] if last is None else [self.read_instant_file(last, CleanMetadata.from_bytes).earliest_commit_to_retain]
        )
        for each in cleans:
            if each.state == kinds.INFLIGHT:
                # It may have deleted files already. The plan is in the requested file.
                plan = self.read_instant_file(replace(each, state=kinds.REQUESTED), CleanPlan.from_bytes)
                found.append(plan.earliest_instant_to_retain)
        return max((each for each in found if each is not None), default=None)

    def read_instant_file(self, instant: Instant, parse: Callable[[bytes], _T]) -> _T:
        """Return the parsed content of an instant's file.

        Raises:
            ConflictError: the instant was completed, and is gone since the listing.
            InvalidTableError: the file is gone.
            CorruptFileError: it is damaged.
        """
        path = locate_instant(self.config, instant)
        try:
            return self._read_file(path, instant, parse)
        except InvalidTableError as error:
            if instant.is_completed and isinstance(error.__cause__, FileMissingError):
                raise self._make_gone_error(path, instant) from error.__cause__
            raise

    def read_archive(self) -> ArchivedTimeline:
        """Return the archived timeline, which is loaded once."""
        with self._archive_lock:
            return self._archive

    @cached_property
    def _archive(self) -> ArchivedTimeline:
        from hoodie_py.table.timeline.archive import load_archive

        return load_archive(self.files, self.config)

    def _load_metadata(self, instant: Instant) -> CommitMetadata:
        path = locate_instant(self.config, instant)
        try:
            data = read_bounded(self.files, path)
        except FileMissingError as fault:
            archived = self.read_archive().read_metadata(instant.request_time)
            if archived is None:
                raise self._make_gone_error(path, instant) from fault
            return archived
        with locate_errors(path=path, instant=instant.request_time):
            return CommitMetadata.from_bytes(data)

    def _make_gone_error(self, path: str, instant: Instant) -> HoodieError:
        if self.config.is_metadata_table:  # dropped or built anew: its readers list the folders then
            return InvalidTableError(
                "An instant of the metadata table is gone.", path=path, instant=instant.request_time
            )
        return ConflictError(
            "This instant is gone since the timeline was listed: a restore, a rollback or an archival took it.",
            hint="Open the table again.",
            path=path,
            instant=instant.request_time,
        )

    def _locate_plan(self, instant: Instant) -> str:
        """Return the path of the requested file, which holds the plan."""
        # A completed compaction is called a commit, but its requested file is not.
        action = _PLANNED_ACTIONS.get(instant.comparable_action, instant.action)
        return locate_requested(self.config, replace(instant, action=action))

    def _read_file(self, path: str, instant: Instant, parse: Callable[[bytes], _T]) -> _T:
        with locate_errors(path=path, instant=instant.request_time):
            try:
                return parse(read_bounded(self.files, path))
            except FileMissingError as fault:
                raise InvalidTableError("A timeline file is gone.") from fault
