"""Builds the file slices that a range of commits wrote (Hudi ``MergeOnReadIncrementalRelationV2``).

The rules (F4.13, F4.14a):

* Slices have only files that the write statistics of the range's commits name. So log files merge with a base file only
  if the range wrote both.
* File groups that were replaced up to the last commit of the range, by request time, are left out.
* A commit that completed after a compaction was planned wrote to the slice of that compaction, which may be later than
  all commits of the range. That slice is read, too. (Hudi 1.2.0 leaves it out, and with it the rows of the commit.)
* No folder is listed. Files that cleans may have removed are looked up once; up to table version 6 all files are, as
  log files grow there. The others have the size in the statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from hoodie_py.files import FileInfo, TableFiles, find_named_files
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.incremental.commit_range import CommitRange
from hoodie_py.table.timeline.cleans import find_kept_since
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.view.file_groups import FileGroup, group_files
from hoodie_py.table.view.slicing import make_slice
from hoodie_py.table.view.visibility import Visibility

FilesByPartition = Mapping[str, Sequence[FileInfo]]


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
