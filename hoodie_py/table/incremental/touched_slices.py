"""Builds the file slices that a range of commits wrote, or finds what is left of the table's slices if files are gone.

The rules (F4.13, F4.14a; Hudi ``MergeOnReadIncrementalRelationV2``):

* Slices have only files that the write statistics of the range's commits name. So log files merge with a base file only
  if the range wrote both.
* File groups that were replaced up to the last commit of the range, by request time, are left out.
* A commit that completed after a compaction was planned wrote to the slice of that compaction, which may be later than
  all commits of the range. That slice is read, too. (Hudi 1.2.0 leaves it out, and with it the rows of the commit.)
* No folder is listed. Files that cleans may have removed are looked up once; up to table version 6 all files are, as
  log files grow there. The others have the size in the statistics.
* If files of the range are gone, ``RemainingSlices`` stand in for its slices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from hoodie_py.errors import InvalidQueryError
from hoodie_py.files import FileInfo, TableFiles, find_named_files
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import REPLACE_COMMIT
from hoodie_py.options.read import RANGE_PATH_GLOB
from hoodie_py.reader.file_slice import BlockRules, FileSlice
from hoodie_py.table.incremental.commit_range import CommitRange, hide_later
from hoodie_py.table.timeline.cleans import CleanFacts, find_kept_since, read_cleans
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.view.file_groups import FileGroup, group_files
from hoodie_py.table.view.file_system_view import FileSystemView
from hoodie_py.table.view.slicing import make_all_slices, make_slice
from hoodie_py.table.view.visibility import GroupKey, Visibility

FilesByPartition = Mapping[str, Sequence[FileInfo]]

_LONGEST = 4096


def find_written_files(commits: Iterable[CommitMetadata], keep: Callable[[str], bool]) -> dict[str, dict[str, int]]:
    """Return the paths of the files that commits wrote, with their size in the statistics, by partition.

    ``keep``: whether a partition may hold wanted rows.
    """
    found: dict[str, dict[str, int]] = {}
    for metadata in commits:
        for partition, stats in metadata.write_stats.items():
            for stat in stats:
                if stat.path is not None:
                    found.setdefault(partition, {})[stat.path] = stat.file_size_in_bytes
    return {partition: files for partition, files in found.items() if keep(partition)}


def find_certain_files(
    timeline: TableTimeline, commit_range: CommitRange, commits: Iterable[CommitMetadata]
) -> frozenset[str]:
    """Return the files of a range, by its commits' metadata, that no clean has removed and whose size is known.

    A clean keeps the files of the earliest retained commit and of later ones (``CleanPlanner``). All cleans after an
    active commit are active as well (``TimelineArchiverV2``).

    Raises:
        CorruptFileError, InvalidTableError: the file of a clean is damaged or gone.
    """
    if not timeline.config.has_logs_named_by_commit:
        return frozenset()
    active = [each.request_time for each in commit_range.commits if not each.is_archived]
    since = find_kept_since(timeline, min(active)) or "" if active else ""
    return frozenset(
        stat.path
        for commit, metadata in zip(commit_range.commits, commits, strict=True)
        if not commit.is_archived and commit.request_time >= since
        for stat in metadata.iterate_stats()
        if stat.path is not None and stat.file_size_in_bytes > 0
    )


def look_up_files(
    files: TableFiles, written: Mapping[str, Mapping[str, int]], certain: Collection[str] = ()
) -> tuple[FilesByPartition, set[str]]:
    """Look up the files that commits wrote. Return all of them by partition, and the paths of the missing ones.

    Missing files, and those in ``certain``, which are not looked up, have the size in the statistics.

    Raises:
        StorageError: the store refused.
    """
    paths = [path for each in written.values() for path in each if path not in certain]
    infos = find_named_files(files, paths)
    by_partition = {
        partition: [infos.get(path) or FileInfo(path, size, is_dir=False) for path, size in each.items()]
        for partition, each in written.items()
    }
    return by_partition, set(paths) - infos.keys()


def make_touched_slices(
    listing: FilesByPartition, visibility: Visibility, last_commit: str, *, merge_on_read: bool, hole: str | None = None
) -> list[FileSlice]:
    """Return the slices of a range's files, sorted by partition and file id.

    ``last_commit``: the range's last request time. ``hole``: base files requested after it do not count. Base files of
    a metadata-only bootstrap still need their source (``FileSystemView.make_readable``).
    """
    slices: list[FileSlice] = []
    for partition in sorted(listing):
        for group in group_files(partition, listing[partition]):
            if visibility.is_replaced(group.key, last_commit):
                continue
            logs = group.log_files if merge_on_read else ()
            bases = tuple(base for base in group.base_files if hole is None or base.instant < hole)
            file_slice = make_slice(FileGroup(partition, group.file_id, bases, logs), visibility)
            if file_slice is not None:
                slices.append(file_slice)
    return slices


def compile_glob(glob: str) -> re.Pattern[str]:
    """Return the regular expression that matches a whole path.

    The glob is Hadoop's (``org.apache.hadoop.fs.GlobPattern``): ``*`` matches any text, slashes included, ``?`` one
    character, ``[a-c]`` and ``[^a]`` one of a set, ``{x,y}`` one of several texts. A backslash makes the next character
    literal.

    Raises:
        InvalidQueryError: a bracket or brace is not closed, or the glob is too long.
    """
    parts: list[str] = []
    depth, at = 0, 0
    while at < len(glob):
        char = glob[at]
        if char == "\\" and at + 1 < len(glob):
            at += 1
            parts.append(re.escape(glob[at]))
        elif char == "*":
            # Runs of stars mean the same as one, and would make the match slow.
            if not parts or parts[-1] != ".*":
                parts.append(".*")
        elif char == "?":
            parts.append(".")
        elif char == "[":
            stop = glob.find("]", at + 2)
            if stop < 0:
                raise _make_error(glob)
            inside = glob[at + 1 : stop].replace("\\", "\\\\").replace("[", "\\[")
            parts.append("[" + ("^" + inside[1:] if inside[:1] in "!^" else inside) + "]")
            at = stop
        elif char == "{":
            depth += 1
            parts.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            parts.append(")")
        elif char == "," and depth:
            parts.append("|")
        else:
            parts.append(re.escape(char))
        at += 1
    if depth or len(glob) > _LONGEST:
        raise _make_error(glob)
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error as error:
        raise _make_error(glob) from error


def _make_error(glob: str) -> InvalidQueryError:
    return InvalidQueryError(f"{RANGE_PATH_GLOB} is no glob: {glob[:100]!r}.", hint="Close every [ and {.")


class _PastVisibility(Visibility):
    """Which instants counted at the time ``end``, when later ones had not completed."""

    def __init__(self, timeline: TableTimeline, end: str, *, by_request_time: bool) -> None:
        hidden = hide_later(timeline, end, by_request_time)
        super().__init__(TableTimeline(hidden, timeline.files, timeline.config, known=timeline.known))
        self._now = timeline
        self._end = end
        self._by_request_time = by_request_time or not timeline.config.has_logs_named_by_commit

    def is_committed(self, instant: str) -> bool:
        """Say whether files written by ``instant`` counted; reads the archive if the instant is in it."""
        if instant > self._end or not super().is_committed(instant):
            return False
        if self._by_request_time or not self._now.is_archived_before(instant):
            return True
        return (self._now.find_completion_time(instant) or instant) <= self._end


class RemainingSlices:
    """What is left of a table's slices at the time ``end``, inclusive. ``view``: the current view.

    * Of each file group the slice at the range's end counts, if no clean removed files of it; else the oldest later
      slice that is whole. Everything that completed after the range is left out of it: log files, and blocks of log
      files that several commits wrote. So rows that were changed after the range are found as long as some file has
      them. (Java 1.2.0 reads the latest slices, which lack them.)
    * A clustering after the range moved rows, which keep their commit times. Either the groups that it read count, or
      the groups that it wrote. Groups that clusterings join, one after another, are judged together: the older ones
      count if all of them exist.
    * Groups that an overwrite replaced after the range count as far as they exist.

    Raises:
        CorruptFileError, InvalidTableError: the timeline is damaged.
        StorageError: the store refused.
    """

    def __init__(self, view: FileSystemView, end: str, *, by_request_time: bool) -> None:
        self._view = view
        self._now = view.visibility
        self._then = _PastVisibility(view.timeline, end, by_request_time=by_request_time)
        self._end = end
        self._removed = _collect_removed(read_cleans(view.timeline, ""))

    @property
    def rules(self) -> BlockRules | None:
        """Which log blocks counted; None if each log file has blocks of one commit only."""
        if not self._view.config.may_mix_commits_in_logs:
            return None
        return self._then.make_block_rules(self._end)

    def list_slices(self, partitions: Iterable[str]) -> list[FileSlice]:
        """Return the slices in partitions, sorted by partition and file id; errors as ``view.list_slices``."""
        groups = {each.key: self._keep_readable(each) for each in self._view.list_file_groups(partitions)}
        chosen = {key: self._choose(group) for key, group in groups.items() if not self._then.is_replaced(key, None)}
        left_out = self._find_moved(groups, chosen, {path for path, _ in groups})
        return [
            self._view.make_readable(each)
            for key, each in sorted(chosen.items())
            if each is not None
            and key not in left_out
            and (self._existed(key, groups) or not self._now.is_replaced(key, None))
        ]

    def _keep_readable(self, group: FileGroup) -> FileGroup:
        return group if self._view.config.is_merge_on_read else replace(group, log_files=())

    def _choose(self, group: FileGroup) -> FileSlice | None:
        """Return the slice at the range's end, or the oldest later slice that is whole, or the latest one."""
        found = make_slice(group, self._then)
        if found is not None and found.base_instant > self._find_gone(group.key):
            return found
        before = "" if found is None else found.base_instant
        after = max([before, *self._removed.get(group.key, ())])
        for each in make_all_slices(group, self._now):
            if each.base_file is not None and each.base_instant > after:
                return self._cut(each)
        latest = None if self._now.is_replaced(group.key, None) else make_slice(group, self._now)
        return None if latest is None else self._cut(latest)

    def _cut(self, file_slice: FileSlice) -> FileSlice | None:
        """Return a slice without the log files of commits after the range."""
        if self._now.logs_carry_base_instant:
            return file_slice
        logs = tuple(each for each in file_slice.log_files if self._then.is_committed(each.name.instant))
        return replace(file_slice, log_files=logs) if logs or file_slice.base_file is not None else None

    def _find_gone(self, key: GroupKey) -> str:
        """Return the newest time in the names of removed files that counted at the range's end; empty if none did."""
        return max(filter(self._then.is_committed, self._removed.get(key, ())), default="")

    def _existed(self, key: GroupKey, groups: Mapping[GroupKey, FileGroup]) -> bool:
        """Say whether a group had files at the range's end; yes for an unknown group, which may have had some."""
        group = groups.get(key)
        if group is not None and make_slice(group, self._then) is not None:
            return True
        return bool(self._find_gone(key)) or (group is None and key not in self._removed)

    def _find_moved(
        self, groups: Mapping[GroupKey, FileGroup], chosen: Mapping[GroupKey, FileSlice | None], paths: set[str]
    ) -> set[GroupKey]:
        """Return the groups to leave out because a clustering after the range moved their rows.

        It moved them from or to groups that count.
        """
        left_out: set[GroupKey] = set()
        for members in self._join_groups(paths):
            older = {key for key in members if self._existed(key, groups)}
            if all(chosen.get(key) is not None for key in older):
                left_out |= members - older
            else:
                left_out |= {key for key in members if self._now.is_replaced(key, None)}
        return left_out

    def _join_groups(self, paths: set[str]) -> list[set[GroupKey]]:
        """Return sets of groups that clusterings after the range read and wrote."""
        timeline = self._view.timeline
        later = [
            each
            for each in timeline.list_completed_writes()
            if each.comparable_action == REPLACE_COMMIT and not self._then.is_committed(each.request_time)
        ]
        joined: list[set[GroupKey]] = []
        for metadata in timeline.read_all_metadata(later):
            if not metadata.moves_rows:
                continue
            read = {(path, each) for path, ids in metadata.replaced_file_ids.items() if path in paths for each in ids}
            wrote = {
                (path, stat.file_id)
                for path, stats in metadata.write_stats.items()
                if path in paths
                for stat in stats
                if stat.file_id
            }
            touching = [each for each in joined if not each.isdisjoint(read)]
            joined = [each for each in joined if each.isdisjoint(read)]
            joined.append(read.union(wrote, *touching))
        return joined


def _collect_removed(cleans: Iterable[CleanFacts]) -> dict[GroupKey, set[str]]:
    """Return the times in the names of the files that cleans removed, by file group."""
    removed: dict[GroupKey, set[str]] = {}
    for clean in cleans:
        for path, names in clean.files.items():
            for name in names:
                parsed = parse_base_file_name(name) or parse_log_file_name(name)
                if parsed is not None:
                    removed.setdefault((path, parsed.file_id), set()).add(parsed.instant)
    return removed
