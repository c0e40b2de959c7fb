"""Decides whether the list of files, and each index, in a metadata table can be trusted.

Hudi checks them against no timeline. A reader would not notice a hole in a listing from the metadata table, so these
facts are checked first:

* It has every completed write of the table (``MetadataView.unlisted``). Otherwise it is behind: some writer did not
  maintain it.
* The base file of its last compaction exists, and so do the log files of the commits since. Log files of which nothing
  is left count as gone.

Both are checked by names that the view lists anyway. Commits of the metadata table are read only if a file seems to be
missing. An index gets files from few commits, so all commits since its base files are read before it is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.indexes.definitions import FILES_PARTITION, RECORD_INDEX
from hoodie_py.formats.indexes.own_instants import BEFORE_ALL, creates_partition
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.timeline.instants import COMMIT, DELTA_COMMIT
from hoodie_py.formats.timeline.timeline import Instant
from hoodie_py.reader.file_slice import FileSlice, LogFile
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.indexes.file_lists import read_file_lists
from hoodie_py.table.indexes.view import MetadataView

HINT = (
    "Build it again (`hoodie index`, or Java Hudi), or read with hoodie.metadata.enable=false, which lists the folders."
)


def check_file_lists(view: MetadataView) -> None:
    """Check that the list of files has all commits of the table, as far as names show.

    Raises:
        InvalidTableError: the metadata table is behind, or lacks files of its own.
        CorruptFileError: a file of it is damaged.
        StorageError: the store refused.
    """
    if view.unlisted:
        raise InvalidTableError(
            f"The metadata table does not have {len(view.unlisted)} commits of the table, the first at "
            f"{view.unlisted[0]}.",
            hint=HINT,
        )
    groups = view.list_groups(FILES_PARTITION)
    if len(groups) != 1:
        raise InvalidTableError(f"The list of files in the metadata table has {len(groups)} file groups.", hint=HINT)
    lost = next(_iterate_lost(view, groups[0]), None)
    if lost is not None:
        raise InvalidTableError("A file of the metadata table's list of files is gone.", path=lost, hint=HINT)


def check_index_files(view: MetadataView, partition: str) -> None:
    """Check that every file that commits wrote to an index since its base files exists and is whole.

    Raises:
        InvalidTableError: the index lacks files, or has none at all.
        CorruptFileError: a commit is damaged.
        StorageError: the store refused.
    """
    if partition in view.checked:
        return
    groups = view.list_groups(partition)
    if not groups:
        if not may_have_no_groups(view, partition):
            raise make_lost_groups(view, partition)
        view.checked.add(partition)
        return
    instants = [each for each in view.timeline.select_completed() if view.accepts(each.request_time)]
    times = {each.request_time: each.completion_time or each.request_time for each in instants}
    starts = {each.file_id: times.get(_find_first(each), _find_first(each)) for each in groups}
    first = min(starts.values())
    sizes = {log.path: log.size for each in groups for log in each.log_files if log.size}
    sizes |= {each.base_file.path: each.base_file.size for each in groups if each.base_file is not None}
    later = [each for each in instants if times[each.request_time] > first and each.action in (COMMIT, DELTA_COMMIT)]
    for instant, metadata in zip(later, view.timeline.read_all_metadata(later), strict=True):
        for stat in metadata.write_stats.get(partition, ()):
            start = starts.get(stat.file_id or "", first)
            if times[instant.request_time] <= start or stat.path is None:
                continue
            if sizes.get(stat.path, -1) < stat.file_size_in_bytes and not _was_built_since(view, start, instant):
                text = "A file of an index in the metadata table is gone, or cut short."
                raise InvalidTableError(text, path=stat.path, hint=HINT)
    view.checked.add(partition)


def _was_built_since(view: MetadataView, start: str, commit: Instant) -> bool:
    """Say whether a file group was made after a commit, if its first request time does not show that.

    The instant that built it may have left the active timeline; the archive is read only if a file seems lost.
    """
    if not start.startswith(BEFORE_ALL):
        return False
    built = view.timeline.find_completion_time(start)
    return built is not None and built > (commit.completion_time or commit.request_time)


def _find_first(group: FileSlice) -> str:
    """Return the instant with which a file group's newest slice begins."""
    if group.base_file is not None:
        return group.base_instant
    return min((log.name.instant for log in group.log_files), default="")


def _iterate_lost(view: MetadataView, group: FileSlice) -> Iterator[str]:
    """Yield the files of the list that should exist and do not."""
    completed = view.timeline.select_completed()
    since = group.base_instant if group.base_file is not None else ""
    compacted = completed.select_actions(COMMIT).last
    doubtful: list[Instant] = []
    if compacted is not None and compacted.request_time > since:
        doubtful.append(compacted)
    deltas = completed.select_actions(DELTA_COMMIT)
    if group.base_file is None and deltas:
        doubtful.append(next(iter(deltas)))
    there = set(_iterate_logged(view, group.log_files))
    doubtful += [
        each
        for each in deltas
        if each.request_time > since
        and each.request_time not in there
        and not creates_partition(each.request_time)
        and view.accepts(each.request_time)
    ]
    listed = {log.path for log in group.log_files if log.size}
    listed |= set() if group.base_file is None else {group.base_file.path}
    for metadata in view.timeline.read_all_metadata(list(dict.fromkeys(doubtful))):
        for stat in metadata.write_stats.get(FILES_PARTITION, ()):
            if stat.path is not None and stat.path not in listed:
                yield stat.path


def _iterate_logged(view: MetadataView, logs: Iterable[LogFile]) -> Iterator[str]:
    """Yield the instants of log files: from version 8 on by their names, earlier by their blocks."""
    for log in logs:
        if view.config.has_logs_named_by_commit:
            if log.size:
                yield log.name.instant
            continue
        for block in iterate_blocks(read_bounded(view.files, log.path, "log_bytes")):
            if isinstance(block, LogBlock) and block.instant_time:
                yield block.instant_time


def may_have_no_groups(view: MetadataView, partition: str) -> bool:
    """Say whether a partition may rightly have no file group.

    Raises:
        HoodieError: the list of files, or the file of definitions, cannot be read.
    """
    definition = view.definitions.get(RECORD_INDEX) if partition == RECORD_INDEX else None
    if definition is None or not definition.is_partitioned or not view.list_groups(FILES_PARTITION):
        return False
    _, files = read_file_lists(view, None)
    return not any(files.values())


def make_lost_groups(view: MetadataView, partition: str) -> InvalidTableError:
    """Return the error for a partition that has lost its file groups."""
    way = "everything" if partition == FILES_PARTITION else "it"
    return InvalidTableError(
        f"The partition {partition!r} of the metadata table has no files, and the table's properties name it.",
        hint=f"`hoodie index TABLE drop {partition}` drops {way}; then build it again.",
        path=f"{view.files.uri}/{partition}",
    )
