"""Plans the reads for the changes of a range: steps for each file group that its commits touched.

The rules (Hudi ``HoodieCDCExtractor``; F4.15):

* Only commits that change data count. Compactions, log compactions and clusterings only move rows.
* The write statistics of a commit say what it did to a file group: it wrote a change log, a new base file, or log
  files. A replace commit deletes the rows of the groups that it replaced.
* Commits are in the order in which the range compares them: by completion times, up to table version 6 by request
  times.
* Folders are listed only if rows before a commit are needed; ``_GroupStates`` finds the slices with these rows.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.timeline.commit_metadata import NO_COMMIT, CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import CLEAN, INFLIGHT, REQUESTED
from hoodie_py.formats.timeline.plans import CleanPlan
from hoodie_py.options.write import AUTOMATIC_ARCHIVE, KEEP_MAX_COMMITS
from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.table.changes.steps import ChangeLog, ComparedSlices, MergedLog, State, Step, WholeSlice
from hoodie_py.table.incremental.commit_range import CommitRange, describe_available, get_time, read_range_metadata
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.cleans import describe_retention, find_kept_since, read_cleans
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.view.file_groups import FileGroup
from hoodie_py.table.view.file_system_view import FileSystemView
from hoodie_py.table.view.slicing import make_all_slices

_CHANGES_NO_ROWS = frozenset({"BUCKET_RESCALE", "INDEX", "ALTER_SCHEMA"})
_MANY_STEPS = 16
_MOST_BYTES = 40 << 10  # of the pickled steps of a task

GroupKey = tuple[str, str]
_CleanedFile = tuple[str, str]  # name and instant


@dataclass(frozen=True, slots=True)
class Touch:
    """What one commit did to one file group."""

    instant: str
    position: str
    stats: list[WriteStat] = field(default_factory=list)
    is_replaced: bool = False


class ChangesPlan:
    """The steps for a range of commits of a snapshot. ``options``: of the read.

    Raises:
        InvalidQueryError: a commit of the range is archived, or its files are gone.
        InvalidTableError, CorruptFileError: the timeline is broken.
        StorageError: the store refused.
    """

    def __init__(self, snapshot: Snapshot, commit_range: CommitRange, options: ReadOptions | None = None) -> None:
        self._snapshot = snapshot
        self._options = options
        self._range = commit_range
        self._mode = snapshot.config.cdc_mode
        self._check_active()

    def make_steps(self) -> Iterator[tuple[GroupKey, tuple[Step, ...]]]:
        """Yield the steps of each file group, sorted by partition and file id; a large number of steps is split."""
        touches = self._find_touches()
        states = self._list_states(touches)
        for key in sorted(touches):
            steps = list(self._plan_group(key, touches[key], states.get(key)))
            for part in _split(steps):
                yield key, part

    @cached_property
    def available(self) -> str:
        """Which changes are available, as a hint if files are gone."""
        timeline, by_request_time = self._snapshot.timeline, self._range.by_request_time
        since = find_kept_since(timeline)
        if since is None:
            return describe_available(timeline, by_request_time)
        writes = timeline.list_completed_writes()
        older = [get_time(each, by_request_time) for each in writes if each.request_time < since]
        start = max(older) if older else since
        kept = f"Cleans keep the files of commits from {since} on: changes can be had with start={start!r} or later."
        return f"{kept} {describe_retention(timeline)}"

    def _check_active(self) -> None:
        """Check that no commit of the range is archived, as files of archived commits are cleaned."""
        span, timeline = self._range, self._snapshot.timeline
        archived = [each.request_time for each in span.commits if each.is_archived]
        first = timeline.first_active_time
        if span.by_request_time and span.starts_archived and first is not None:
            times = timeline.read_archive().completion_times
            last = min(first, span.end) if span.end is not None else first
            archived = [time for time in times if span.start < time <= last and time < first]
        if archived:
            raise InvalidQueryError(
                f"The range {span} has commits that are archived, up to {max(archived)}; their changes are gone.",
                hint=f"{describe_available(timeline, span.by_request_time)} Writes archive when more than "
                f"{KEEP_MAX_COMMITS} commits are active, unless {AUTOMATIC_ARCHIVE}=false.",
            )

    def _find_touches(self) -> dict[GroupKey, list[Touch]]:
        """Return what the commits of the range did to each file group, in the order of the commits."""
        span = self._range
        commits = zip(span.commits, read_range_metadata(self._snapshot.timeline, span), strict=True)
        ordered = sorted(
            (
                (get_time(each.instant, span.by_request_time), each.request_time, metadata)
                for each, metadata in commits
                if self._changes_data(each.instant.action, metadata)
                and (span.hole is None or each.request_time < span.hole)
            ),
            key=lambda each: each[:2],
        )
        touches: dict[GroupKey, list[Touch]] = {}
        for position, instant, metadata in ordered:
            for partition, stats in metadata.write_stats.items():
                by_group: dict[str, Touch] = {}
                for stat in stats:
                    if stat.path is not None and stat.file_id:
                        by_group.setdefault(stat.file_id, Touch(instant, position)).stats.append(stat)
                for file_id, touch in by_group.items():
                    touches.setdefault((partition, file_id), []).append(touch)
            for partition, file_ids in metadata.replaced_file_ids.items():
                for file_id in file_ids:
                    touches.setdefault((partition, file_id), []).append(Touch(instant, position, is_replaced=True))
        return touches

    def _changes_data(self, action: str, metadata: CommitMetadata) -> bool:
        """Say whether a commit changes rows. On merge-on-read tables only compactions have the action ``commit``."""
        if metadata.operation_type == "UNKNOWN" and action == "commit" and self._snapshot.config.is_merge_on_read:
            return False
        return not metadata.moves_rows and metadata.operation_type not in _CHANGES_NO_ROWS

    def _list_states(self, touches: Mapping[GroupKey, Sequence[Touch]]) -> dict[GroupKey, _GroupStates]:
        """List the partitions of the groups whose earlier states are needed."""
        needed = [key for key, found in touches.items() if any(map(self._needs_states, found))]
        view = self._snapshot.choose_view(self._options)
        groups = {group.key: group for group in view.list_file_groups({partition for partition, _ in needed})}
        return {
            key: _GroupStates(
                self._without_logs(groups.get(key) or FileGroup(*key, (), ())),
                view,
                self._snapshot.timeline,
                by_request_time=self._range.by_request_time,
            )
            for key in needed
        }

    def _without_logs(self, group: FileGroup) -> FileGroup:
        if self._snapshot.config.is_merge_on_read:
            return group
        return FileGroup(group.partition_path, group.file_id, group.base_files, ())

    def _needs_states(self, touch: Touch) -> bool:
        if touch.is_replaced:
            return True
        return any(
            not _is_base_file(stat)
            or (not _is_first(stat) and not (stat.cdc_stats and self._mode == "DATA_BEFORE_AFTER"))
            for stat in touch.stats
        )

    def _plan_group(self, key: GroupKey, touches: Iterable[Touch], states: _GroupStates | None) -> Iterator[Step]:
        log = _OpenLog()
        for touch in touches:
            logs = [stat for stat in touch.stats if not _is_base_file(stat)]
            if not logs:
                yield from log.close()
            if touch.is_replaced and states is not None:
                before = states.find_before(touch.instant, touch.position)
                if before is None or _lacks(before, states, self._cleaned.get(key, ())):
                    raise self._make_gone_error(touch, f"{key[0]}/{key[1]}" if key[0] else key[1])
                yield WholeSlice(touch.instant, before, is_insert=False)
            for stat in touch.stats:
                if _is_base_file(stat):
                    yield from self._plan_base_file(key, touch, stat, states)
            if logs and states is not None:
                yield from self._add_log(key, log, touch, logs, states)
        yield from log.close()

    def _add_log(
        self, key: GroupKey, log: _OpenLog, touch: Touch, stats: Sequence[WriteStat], states: _GroupStates
    ) -> Iterator[Step]:
        paths = [stat.path for stat in stats if stat.path is not None]
        named = {name for stat in stats for name in (stat.base_file or "", *stat.log_files) if _is_row_file(name)}
        missing = sorted(named - states.names)
        below = states.find_log_state(paths, touch.position)
        if below is None or missing or _lacks(below[1], states, self._cleaning.get(key, ())):
            raise self._make_gone_error(touch, missing[0] if missing else paths[0])
        if log.key is not None and log.key != below[0]:
            yield from log.close()
        log.add(below[0], touch.instant, below[1])

    def _plan_base_file(
        self, key: GroupKey, touch: Touch, stat: WriteStat, states: _GroupStates | None
    ) -> Iterator[Step]:
        after = self._make_base_state(key, touch.instant, stat)
        before: State | None = None
        if states is not None and not _is_first(stat):
            before = states.find_before(touch.instant, touch.position)
            if before is None or before.file_slice.base_instant != stat.prev_commit:
                raise self._make_gone_error(touch, stat.prev_base_file or f"base file of {stat.prev_commit}")
        if stat.cdc_stats:
            files = tuple(_make_change_file(path, size) for path, size in stat.cdc_stats.items())
            needs_both = self._mode != "DATA_BEFORE_AFTER"
            yield ChangeLog(touch.instant, files, before if needs_both else None, after if needs_both else None)
        elif before is None:
            yield WholeSlice(touch.instant, after, is_insert=True)
        elif not stat.num_writes:
            yield WholeSlice(touch.instant, before, is_insert=False)
        else:
            yield ComparedSlices(touch.instant, before, after)

    def _make_base_state(self, key: GroupKey, instant: str, stat: WriteStat) -> State:
        assert stat.path is not None
        base = BaseFile(stat.path, stat.file_size_in_bytes, instant, key[1])
        return State(self._snapshot.view.make_readable(FileSlice(*key, instant, base, ())))

    @cached_property
    def _cleaning(self) -> Mapping[GroupKey, Sequence[_CleanedFile]]:
        """The files of each group that unfinished cleans remove."""
        timeline = self._snapshot.timeline
        begun = [each for each in timeline.select_actions(CLEAN) if each.state == INFLIGHT]
        plans = (timeline.read_instant_file(replace(each, state=REQUESTED), CleanPlan.from_bytes) for each in begun)
        return _list_cleaned_files(plan.files for plan in plans)

    @cached_property
    def _cleaned(self) -> Mapping[GroupKey, Sequence[_CleanedFile]]:
        """The files of each group that cleans have removed, or are removing, since the start of the range.

        A replaced group may still have an older slice that a savepoint kept.
        """
        cleans = read_cleans(self._snapshot.timeline, self._range.commits[0].request_time)
        return _list_cleaned_files(each.files for each in cleans)

    def _make_gone_error(self, touch: Touch, path: str) -> InvalidQueryError:
        return InvalidQueryError(
            f"Files of the range {self._range} are gone: the changes of commit {touch.instant} cannot be told.",
            hint=self.available,
            path=path,
        )


@dataclass(slots=True)
class _OpenLog:
    """The commits so far that wrote to the log of one slice."""

    key: str | None = None
    instants: list[str] = field(default_factory=list)
    state: State | None = None

    def add(self, key: str, instant: str, state: State) -> None:
        self.key, self.state = key, state
        self.instants.append(instant)

    def close(self) -> Iterator[Step]:
        if self.state is not None:
            yield MergedLog(tuple(self.instants), self.state)
        self.key, self.instants, self.state = None, [], None


def _list_cleaned_files(cleans: Iterable[Mapping[str, Sequence[str]]]) -> dict[GroupKey, list[_CleanedFile]]:
    found: dict[GroupKey, list[_CleanedFile]] = {}
    for files in cleans:
        for partition, names in files.items():
            for name in filter(_is_row_file, names):
                parsed = parse_log_file_name(name) or parse_base_file_name(name)
                if parsed is not None:
                    found.setdefault((partition, parsed.file_id), []).append((name, parsed.instant))
    return found


def _lacks(state: State, states: _GroupStates, cleaned: Iterable[_CleanedFile]) -> bool:
    """Say whether missing cleaned files belong to a slice, or to a later one."""
    base = state.file_slice.base_file
    gone = (instant for name, instant in cleaned if name not in states.names)
    return any(base is None or instant >= base.instant for instant in gone)


def _is_base_file(stat: WriteStat) -> bool:
    return stat.file_name is not None and parse_base_file_name(stat.file_name) is not None


def _is_row_file(name: str) -> bool:
    """Say whether a file in a log's statistics belongs to a slice: they list change logs, too."""
    parsed = parse_log_file_name(name) if name else None
    return bool(name) and (parsed is None or not parsed.is_cdc)


def _is_first(stat: WriteStat) -> bool:
    """Say whether a base file is the first one of its group."""
    return stat.prev_commit in (None, "", NO_COMMIT)


def _make_change_file(path: str, size: int) -> LogFile:
    name = parse_log_file_name(path.rpartition("/")[2])
    if name is None:
        raise InvalidQueryError("A commit names a change log that is none.", path=path)
    return LogFile(path, size, name)


def _split(steps: list[Step]) -> Iterator[tuple[Step, ...]]:
    """Split steps into parts whose pickles are small."""
    if len(steps) > _MANY_STEPS and len(pickle.dumps(steps)) > _MOST_BYTES:
        middle = len(steps) // 2
        yield from _split(steps[:middle])
        yield from _split(steps[middle:])
    elif steps:
        yield tuple(steps)


class _GroupStates:
    """The slice that the rows of one listed file group were read from, before and after each commit.

    * The files come from the listing, sliced as snapshots are (``view.slicing``). So a state is what a snapshot of the
      past would read now, after compactions that have completed since.
    * The slice of a pending compaction has no base file yet, so the slice below it belongs to it.
    * Log files count if their commit came before. Up to table version 6 a log file may have blocks of several commits;
      there the reader leaves out later blocks. A table that was upgraded since has such log files, too: they have the
      base file's instant in their names.

    Positions are completion times, or request times with ``by_request_time``.
    """

    def __init__(
        self, group: FileGroup, view: FileSystemView, timeline: TableTimeline, *, by_request_time: bool
    ) -> None:
        self._group = group
        self._view = view
        self._timeline = timeline
        self._by_request_time = by_request_time
        self._positions: dict[str, str] = {}

    @cached_property
    def _slices(self) -> list[FileSlice]:
        return make_all_slices(self._group, self._view.visibility)

    @cached_property
    def _log_paths(self) -> list[set[str]]:
        return [{log.path for log in each.log_files} for each in self._slices]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all files that exist."""
        paths = (*(each.path for each in self._group.base_files), *(each.path for each in self._group.log_files))
        return frozenset(path.rpartition("/")[2] for path in paths)

    def find_before(self, instant: str, position: str) -> State | None:
        """Return the group's state before a commit that began a new slice or ended the group."""
        older = [number for number, each in enumerate(self._slices) if each.base_instant < instant]
        if not older:
            return None
        found = self._complete(older[-1])
        return self._make_state(found, position, inclusive=False)

    def find_log_state(self, paths: Sequence[str], position: str) -> tuple[str, State] | None:
        """Return the slice that has some log files of a commit, as it was when the commit completed, after its key.

        None if one of the files is gone.
        """
        for number, file_slice in enumerate(self._slices):
            if self._log_paths[number].issuperset(paths):
                return file_slice.base_instant, self._make_state(self._complete(number), position, inclusive=True)
        return None

    def _complete(self, number: int) -> FileSlice:
        """Return a slice, joined with the slice below it if it has no base file.

        Such a slice belongs to a pending compaction.
        """
        found = self._slices[number]
        if found.base_file is not None or not number:
            return found
        below = self._complete(number - 1)
        logs = sorted((*below.log_files, *found.log_files), key=lambda log: log.name.sort_key)
        return replace(below, log_files=tuple(logs))

    def _make_state(self, file_slice: FileSlice, position: str, *, inclusive: bool) -> State:
        """Return a slice as it was when the commits up to a position had completed."""
        base = file_slice.base_file
        readable = self._view.make_readable(file_slice)
        if self._view.visibility.logs_carry_base_instant:
            return State(readable)
        logs = tuple(
            log for log in file_slice.log_files if not self._is_later(log.name.instant, position, inclusive=inclusive)
        )
        without: tuple[str, ...] = ()
        if base is not None and any(log.name.instant == base.instant for log in logs):
            writes = (each.request_time for each in self._timeline.list_completed_writes())
            later = (each for each in writes if each > base.instant)
            without = tuple(each for each in later if self._is_later(each, position, inclusive=inclusive))
        return State(replace(readable, log_files=logs), without)

    def _is_later(self, instant: str, position: str, *, inclusive: bool) -> bool:
        own = self._positions.get(instant)
        if own is None:
            completed = None if self._by_request_time else self._timeline.find_completion_time(instant)
            own = self._positions[instant] = completed or instant
        return own > position if inclusive else own >= position
