"""The history of one key in a table: which commits inserted, updated and deleted it, with its values and files.

* It needs no change data. It compares what a snapshot shows of the key after each commit that wrote it, from the file
  slices that still exist. Slices of replaced file groups count as long as their files exist.
* Commits are in the order of their request times, as in time travel. Unfinished commits do not count.
* If the files before the first known version were cleaned, it is unknown whether the commit that wrote it inserted or
  updated the key. Such an event is "written". Cleaned files may also have held an earlier life of the key, so after a
  clean no history is complete.
* In different partitions of a table the key may stand for different records; each has its own events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hoodie_py.formats.names import COMMIT_TIME_FIELD, META_FIELDS
from hoodie_py.formats.timeline.commit_metadata import NO_COMMIT, CommitMetadata
from hoodie_py.formats.timeline.instants import CLEAN, DELTA_COMMIT
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.history import RecordHistory, Version, trace_record_history
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.cleans import find_kept_since
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.view.file_groups import FileGroup
from hoodie_py.table.view.slicing import make_all_slices, make_slice

INSERTED, UPDATED, DELETED = "inserted", "updated", "deleted"
WRITTEN = "written"  # inserted or updated: the files that would show which are gone
MOVED = "moved"  # to another file group, with the same values
OUTDATED = "outdated"  # a version that lost against an older one

Watch = Callable[[Sequence[FileGroup]], Iterable[FileGroup]]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """What a commit did to the key in one partition.

    Attributes:
        commit: request time of the commit.
        completed: its completion time; None if the table stores none, or if it is no longer known.
        operation: its operation in capitals, such as UPSERT; None if it is no longer known.
        change: "inserted", "updated", "deleted", "written", "moved" or "outdated".
        partition_path, file_id: where the key lies, or lay.
        file: path of the file with the new version, or of the file that lacks a deleted key; None if the file group
            was replaced.
        values: the row after the commit, or the version that lost; None for a delete.
    """

    commit: str
    completed: str | None
    operation: str | None
    change: str
    partition_path: str
    file_id: str
    file: str | None
    values: Row | None


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """The events of one key, oldest first.

    Attributes:
        was_cleaned: whether files were cleaned that may have shown more events.
        kept_since: the request time since which cleans kept all files, if cleans record it.
        is_complete: whether the history surely begins with the key's first version.
    """

    key: str
    events: tuple[KeyEvent, ...]
    was_cleaned: bool
    kept_since: str | None

    @property
    def is_complete(self) -> bool:
        # Backwards, so that a partition's first event overwrites the later ones.
        first = {each.partition_path: each for each in reversed(self.events)}
        return not self.was_cleaned and all(each.change == INSERTED for each in first.values())


@dataclass(frozen=True, slots=True)
class _State:
    """What a snapshot shows of the key in a file group, with the version that the last commit wrote and its file."""

    row: Row | None
    file: str | None
    version: Version | None


@dataclass(slots=True)
class _Group:
    """A file group that has or had the key, and the times at which the key may have changed."""

    files: FileGroup
    times: set[str] = field(default_factory=set)
    replaced: str | None = None


def trace_key_history(
    snapshot: Snapshot,
    key: str,
    *,
    partition: str | None = None,
    options: ReadOptions | None = None,
    merger: Merger | None = None,
    watch: Watch = iter,
) -> KeyHistory:
    """Trace a key through all commits whose files still exist.

    Args:
        snapshot: the table, in its current state.
        key: the record key.
        partition: the path of the only partition to look into; None for all.
        options: settings of the reads.
        merger: merges in place of the table's merge mode.
        watch: passes the file groups on as they are searched, to show progress.

    Raises:
        HoodieError: reading a file fails.
    """
    tracer = _Tracer(snapshot, key, options or ReadOptions(), merger)
    groups = snapshot.choose_view(options).list_file_groups(None if partition is None else [partition])
    found: dict[str, list[_Group]] = {}
    for each in watch(groups):
        group = tracer.search(each)
        if group is not None:
            found.setdefault(each.partition_path, []).append(group)
    events = [event for inside in found.values() for event in tracer.trace(inside)]
    events.sort(key=lambda event: event.commit)
    timeline = snapshot.timeline
    return KeyHistory(key, tuple(events), _was_cleaned(timeline), find_kept_since(timeline))


def _was_cleaned(timeline: TableTimeline) -> bool:
    if any(each.action == CLEAN for each in timeline):
        return True
    return any(each.action == CLEAN for each in timeline.read_archive().instants)


class _Tracer:
    """Reads what snapshots of the past show of one key."""

    def __init__(self, snapshot: Snapshot, key: str, options: ReadOptions, merger: Merger | None) -> None:
        self._snapshot = snapshot
        self._key = key
        self._options = options
        self._merger = merger
        self._visibility = snapshot.view.visibility

    def search(self, files: FileGroup) -> _Group | None:
        """Return a file group with the relevant times; None if none of its slices has the key."""
        if not self._snapshot.config.is_merge_on_read:
            files = replace(files, log_files=())
        group, has_key = _Group(files), False
        for each in make_all_slices(files, self._visibility):
            history = self._trace(each, None)
            if each.base_file is not None:
                group.times.add(each.base_file.instant)
            if history is not None:
                has_key = True
                group.times.update(step.version.instant for step in history.steps)
        if not has_key:
            return None
        if files.key in self._log_compacted:  # its log block stands for those of earlier commits
            group.times.update(self._log_compacted[files.key])
        group.replaced = self._visibility.find_replacing_instant(files.key)
        if group.replaced is not None:
            group.times = {time for time in group.times if time < group.replaced} | {group.replaced}
        return group

    def trace(self, groups: Sequence[_Group]) -> Iterator[KeyEvent]:
        """Yield the events of one partition's file groups."""
        shown: dict[str, Row] = {}
        searched: set[str] = set()
        for time in sorted(set().union(*(group.times for group in groups))):
            states = {group.files.file_id: self._read_state(group, time) for group in groups if time in group.times}
            yield from self._compare(time, groups[0].files.partition_path, shown, states, searched)
            searched.update(states)
            for file_id, state in states.items():
                if state.row is None:
                    shown.pop(file_id, None)
                else:
                    shown[file_id] = state.row

    def _compare(
        self, time: str, partition: str, shown: Mapping[str, Row], states: Mapping[str, _State], searched: set[str]
    ) -> Iterator[KeyEvent]:
        """Yield what changed at a time; ``searched`` are the groups with a known earlier state."""
        gone = [file_id for file_id, state in states.items() if state.row is None and file_id in shown]
        for file_id, state in states.items():
            before, after = shown.get(file_id), state.row
            if after is None:
                continue
            if before is None and gone:  # the key has another file group now
                before = shown[gone.pop(0)]
                change = MOVED if _is_same(before, after) else UPDATED
                yield self._make_event(time, change, partition, file_id, state, after)
            elif before is None:
                yield self._make_first_event(time, partition, file_id, state, after, known=file_id in searched)
            elif not _is_same(before, after):
                yield self._make_event(_find_writer(before, after, time), UPDATED, partition, file_id, state, after)
            elif state.version is not None and state.version.source != "base file" and not state.version.partial:
                yield self._make_event(time, OUTDATED, partition, file_id, state, state.version.values)
        for file_id in gone:
            yield self._make_event(time, DELETED, partition, file_id, states[file_id], None)

    def _make_first_event(
        self, time: str, partition: str, file_id: str, state: _State, row: Row, *, known: bool
    ) -> KeyEvent:
        """Return the event of a key that was not there before, as far as files show."""
        written_by = row.get(COMMIT_TIME_FIELD) or time
        is_first = written_by == time and (known or self._begins_group(time, partition, file_id))
        return self._make_event(written_by, INSERTED if is_first else WRITTEN, partition, file_id, state, row)

    def _make_event(
        self, commit: str, change: str, partition: str, file_id: str, state: _State, values: Row | None
    ) -> KeyEvent:
        metadata = self._read_metadata(commit)
        operation = None if metadata is None else metadata.operation_type.upper()
        completed = self._completion_times.get(commit)
        return KeyEvent(commit, completed, operation, change, partition, file_id, state.file, values)

    def _read_state(self, group: _Group, time: str) -> _State:
        """Return what a snapshot at a time shows of the key in a group."""
        if group.replaced is not None and group.replaced <= time:
            return _State(None, None, None)
        file_slice = make_slice(group.files, self._visibility, time)
        if file_slice is None:
            return _State(None, None, None)
        history = self._trace(file_slice, time)
        base = file_slice.base_file.path if file_slice.base_file is not None else None
        if history is None:
            return _State(None, base, None)
        last = next((step.version for step in reversed(history.steps) if step.version.instant == time), None)
        return _State(history.outcome, last.path if last is not None else base, last)

    def _trace(self, file_slice: FileSlice, time: str | None) -> RecordHistory | None:
        file_slice = self._snapshot.view.make_readable(file_slice)
        info = self._snapshot.read_info(file_slice)
        if time is not None:
            info = replace(info, rules=self._snapshot.view.make_block_rules(time))
        return trace_record_history(file_slice, info, self._key, self._options, self._merger)

    def _begins_group(self, time: str, partition: str, file_id: str) -> bool:
        """Say whether a commit created a file group with new rows, so that the group held no earlier version."""
        metadata = self._read_metadata(time)
        if metadata is None or metadata.moves_rows:
            return False
        stats = [each for each in metadata.write_stats.get(partition, ()) if each.file_id == file_id]
        return bool(stats) and all(each.prev_commit in (None, "", NO_COMMIT) for each in stats)

    @cached_property
    def _log_compacted(self) -> dict[tuple[str, str], set[str]]:
        """The delta commits that wrote to each file group that has a log compaction."""
        writes = self._snapshot.timeline.select_writes().select_actions(DELTA_COMMIT).instants
        written: dict[tuple[str, str], set[str]] = {}
        compacted: set[tuple[str, str]] = set()
        for instant, metadata in zip(writes, self._snapshot.timeline.read_all_metadata(writes), strict=True):
            keys = {(each.partition_path, each.file_id or "") for each in metadata.iterate_stats()}
            for key in keys:
                written.setdefault(key, set()).add(instant.request_time)
            if metadata.is_log_compaction:
                compacted |= keys
        return {key: written[key] for key in compacted}

    @cached_property
    def _completion_times(self) -> dict[str, str]:
        if not self._snapshot.config.has_logs_named_by_commit:
            return {}
        timeline = self._snapshot.timeline
        writes = {each.request_time: each.completion_time or "" for each in timeline.list_completed_writes()}
        return {**timeline.read_archive().completion_times, **writes}

    def _read_metadata(self, commit: str) -> CommitMetadata | None:
        timeline = self._snapshot.timeline
        instant = timeline.select_writes().find(commit)
        return timeline.read_metadata(instant) if instant is not None else timeline.read_archive().read_metadata(commit)


def _find_writer(before: Row, after: Row, time: str) -> str:
    """Return the commit that changed a row by ``time``: an earlier commit, if the file it wrote was cleaned."""
    written_by = str(after.get(COMMIT_TIME_FIELD) or time)
    return written_by if written_by < time and written_by != before.get(COMMIT_TIME_FIELD) else time


def _is_same(before: Row, after: Row) -> bool:
    """Say whether two states of a row come from the same commit and have the same values."""
    names = (before.keys() | after.keys()) - set(META_FIELDS) | {COMMIT_TIME_FIELD}
    return all(_is_equal(before.get(name), after.get(name)) for name in names)


def _is_equal(before: Any, after: Any) -> bool:
    return bool(before == after or (before != before and after != after))  # NaN is the same as NaN
