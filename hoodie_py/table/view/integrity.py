"""The checks of ``integrity="strict"``: every file of a snapshot must exist, and have the size it should have.

A listing does not show lost files. A lost base file silently gives the older base file's rows, or none; a lost
partition gives no rows. So file slices are built a second time by the same rules, from the files that completed commits
name instead of the listed files. Every file of these slices must exist. They include no file that may be absent: of
older slices, of replaced file groups, or of commits that were rolled back or never completed.

Archived commits count, too. Log files that a rollback wrote (up to version 6) are known from the active timeline alone.
As of an instant of the past, files that a clean removed may be absent as well. If cleans keep a number of file
versions, rather than a span of time, archived commits are not used, because archived cleans do not list their files.

Up to version 6, where each block names its commit, a missing log file may have been joined into others. Nothing is lost
if the slice's other log files hold as many bytes of each commit as the statistics say.

Sizes (Hudi ``HoodieWriteStat``): the statistic of a base file has its size in bytes. The statistic of a log file has
the bytes of one append. From table version 8 on, a log file is one append and never grows. Below version 8 the append
ends at ``logOffset`` plus the size. Later appends follow it, including those of failed commits and rollback blocks, so
only a shorter file contradicts the statistics. Files of archived commits, and log files that only rollbacks wrote, have
no statistic and no expected size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hoodie_py.errors import FileMissingError, InvalidTableError
from hoodie_py.files import FileInfo
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import REGISTERED_SUFFIX, parse_log_file_name
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import CLEAN, ROLLBACK
from hoodie_py.formats.timeline.plans import CleanMetadata, RollbackMetadata
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.timeline.loader import LATEST, TableTimeline
from hoodie_py.table.view.file_groups import FileGroup, group_files
from hoodie_py.table.view.file_system_view import FileSystemView
from hoodie_py.table.view.slicing import find_base_file, make_slice
from hoodie_py.table.view.visibility import GroupKey

_SHOWN = 5
_FIRST_VERSION_OF_WRITE_ONCE_LOGS = 8


def check_nothing_missing(
    view: FileSystemView, query_instant: str | None, wanted: Callable[[str], bool], *, base_files_only: bool = False
) -> None:
    """Check that every file of a snapshot exists.

    ``wanted``: whether the query reads a partition, by its path.

    Raises:
        FileMissingError: a file does not exist; the first ones are named.
        CorruptFileError, InvalidTableError: the timeline is damaged, or the metadata table does not list a file.
        StorageError: the store refused.
    """
    named = _CommittedFiles(view.timeline, query_instant)
    groups = [group for path in sorted(filter(wanted, named.files)) for group in named.make_groups(path)]
    logs_count = view.config.is_merge_on_read and not base_files_only
    expected = set[str]()
    for group in groups:
        if not (named.is_replaced(group, query_instant) or view.visibility.is_replaced(group.key, query_instant)):
            expected.update(
                _iterate_slice_files(group if logs_count else replace(group, log_files=()), view, query_instant)
            )
    listed = {group.key: group for group in view.list_file_groups({group.partition_path for group in groups})}
    there = {base.path for group in listed.values() for base in group.base_files}
    there |= {log.path for group in listed.values() for log in group.log_files}
    missing = sorted(expected - there)
    if view.visibility.logs_carry_base_instant:
        missing = [path for path in missing if not _is_held_by_others(view, path, listed, named)]
    unlisted = next((path for path in missing[:_SHOWN] if view.files.exists(path)), None)
    if unlisted is not None:  # a view of folders would have listed it
        raise InvalidTableError(
            "The metadata table does not list a file that a commit of the table names.",
            hint="Build the metadata table again, or read with hoodie.metadata.enable=false.",
            path=unlisted,
        )
    if missing:
        raise FileMissingError(
            f"{len(missing)} of the files that commits of the table name are gone: {', '.join(missing[:_SHOWN])}"
            + (", ..." if len(missing) > _SHOWN else ""),
            hint="Restore them, or read without integrity='strict', and without their rows.",
            path=missing[0],
        )


def _iterate_slice_files(group: FileGroup, view: FileSystemView, query_instant: str | None) -> Iterator[str]:
    if not group.log_files:
        base = find_base_file(group, view.visibility, query_instant)
        if base is not None:
            yield base.path
        return
    file_slice = make_slice(group, view.visibility, query_instant)
    if file_slice is not None:
        yield from (log.path for log in file_slice.log_files)
        if file_slice.base_file is not None:
            yield file_slice.base_file.path


def _is_held_by_others(
    view: FileSystemView, path: str, listed: Mapping[GroupKey, FileGroup], named: _CommittedFiles
) -> bool:
    """Say whether other log files of a slice hold the blocks of a missing one."""
    lost = parse_log_file_name(path.rpartition("/")[2])
    group = None if lost is None else listed.get((_split_folder(path), lost.file_id))
    if lost is None or group is None:
        return False
    there = [log for log in group.log_files if log.name.instant == lost.instant]
    of_group = (each for each in named.make_groups(group.partition_path) if each.file_id == group.file_id)
    names = [log.path for each in of_group for log in each.log_files if log.name.instant == lost.instant]
    expected: Counter[str] = Counter()
    for name in names:
        expected.update(named.wrote.get(name, {}))
    held: Counter[str] = Counter()
    for log in there:
        for block in iterate_blocks(read_bounded(view.files, log.path, "log_bytes")):
            if isinstance(block, LogBlock) and block.instant_time:
                held[block.instant_time] += block.size
    commits = named.wrote.get(path, {})
    return bool(commits) and all(held[commit] >= expected[commit] for commit in commits)


class _CommittedFiles:
    """Files that the timeline names.

    ``files``: paths of base and log files, by partition path. ``wrote``: for each path, the bytes that each commit, by
    request time, wrote there.
    """

    def __init__(self, timeline: TableTimeline, query_instant: str | None) -> None:
        self.files: dict[str, set[str]] = {}
        self.wrote: dict[str, dict[str, int]] = {}
        self._replaced: dict[GroupKey, str] = {}
        cleaned, by_time = _read_cleaned_paths(timeline) if query_instant is not None else (set[str](), True)
        writes = timeline.list_completed_writes()
        for instant, metadata in zip(writes, timeline.read_all_metadata(writes), strict=True):
            self._add_commit(instant.request_time, metadata)
        if by_time:
            for request_time, metadata in timeline.read_archive().iterate_writes_back_from(LATEST):
                self._add_commit(request_time, metadata)
                self._add_replaced_groups(request_time, metadata)
        for path in _iterate_rollback_logs(timeline):
            self._add_path(path)
        for path in cleaned:
            self.files.get(_split_folder(path), set()).discard(path)

    def make_groups(self, partition_path: str) -> list[FileGroup]:
        """Build the file groups of a partition from its named files."""
        listing = (FileInfo(path, 0, is_dir=False) for path in self.files[partition_path])
        return group_files(partition_path, listing)

    def is_replaced(self, group: FileGroup, query_instant: str | None) -> bool:
        """Say whether an archived commit replaced a file group at or before ``query_instant`` (None: now)."""
        replaced = self._replaced.get(group.key)
        return replaced is not None and (query_instant is None or replaced <= query_instant)

    def _add_commit(self, request_time: str, metadata: CommitMetadata) -> None:
        for stat in metadata.iterate_stats():
            if stat.path:
                self._add_path(stat.path)
                self.wrote.setdefault(stat.path, {})[request_time] = stat.file_size_in_bytes

    def _add_replaced_groups(self, request_time: str, metadata: CommitMetadata) -> None:
        for partition, file_ids in metadata.replaced_file_ids.items():
            for file_id in file_ids:
                key = (partition, file_id)
                self._replaced[key] = max(self._replaced.get(key, ""), request_time)

    def _add_path(self, path: str) -> None:
        if not path.endswith(REGISTERED_SUFFIX):
            self.files.setdefault(_split_folder(path), set()).add(path)


def _iterate_rollback_logs(timeline: TableTimeline) -> Iterator[str]:
    """Yield paths of log files that hold rollback blocks."""
    for instant in timeline.select_actions(ROLLBACK).select_completed():
        metadata = timeline.read_instant_file(instant, RollbackMetadata.from_bytes)
        for partition, done in metadata.partitions.items():
            yield from _join_paths(partition, done.rollback_log_files)


def _read_cleaned_paths(timeline: TableTimeline) -> tuple[set[str], bool]:
    """Return paths that completed cleans removed, and whether the last clean kept a span of time."""
    found = set[str]()
    by_time = True
    for instant in timeline.select_actions(CLEAN).select_completed():
        metadata = timeline.read_instant_file(instant, CleanMetadata.from_bytes)
        by_time = metadata.earliest_commit_to_retain is not None
        for partition, cleaned in metadata.partitions.items():
            found.update(_join_paths(partition, (*cleaned.deleted_files, *cleaned.failed_files)))
    return found, by_time


def _join_paths(partition: str, names: Iterable[str]) -> Iterator[str]:
    return (f"{partition}/{name}" if partition else name for name in names)


def _split_folder(path: str) -> str:
    return path.rpartition("/")[0]


def find_expected_sizes(timeline: TableTimeline, slices: Sequence[FileSlice]) -> dict[str, int]:
    """Return the sizes in bytes that the slices' files should have, by path.

    Below table version 8, a log file may be longer than its statistics say: then its listed size is expected.

    Raises:
        CorruptFileError: a commit's metadata is damaged.
        StorageError: the metadata cannot be read.
    """
    written = _find_written_sizes(timeline, slices)
    logs_grow = timeline.config.version < _FIRST_VERSION_OF_WRITE_ONCE_LOGS
    sizes: dict[str, int] = {}
    for each in slices:
        if each.base_file is not None and each.base_file.path in written:
            sizes[each.base_file.path] = written[each.base_file.path]
        for log in each.log_files:
            if log.path in written:
                size = written[log.path]
                sizes[log.path] = max(size, log.size) if logs_grow else size
    return sizes


def _find_written_sizes(timeline: TableTimeline, slices: Iterable[FileSlice]) -> Mapping[str, int]:
    paths = {log.path for each in slices for log in each.log_files}
    paths.update(each.base_file.path for each in slices if each.base_file is not None)
    written: dict[str, int] = {}
    for path in paths:
        for stat in timeline.stats_by_path.get(path, ()):
            is_log = stat.log_version is not None or (stat.file_name or "").startswith(".")
            end = (stat.log_offset or 0) + stat.file_size_in_bytes if is_log else stat.file_size_in_bytes
            known = written.get(path)
            if end > 0 and (known is None or end >= known):
                written[path] = end
    return written
