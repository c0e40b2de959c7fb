"""Remove what an unfinished attempt at a compaction or clustering left (Hudi ``HoodieTable``:
``rollbackInflightCompaction``, ``rollbackInflightClustering``).

Such an attempt leaves base files of its instant and their change-data files, markers that name them, an inflight file
and perhaps a commit in the metadata table. Readers see nothing of this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from hoodie_py.files import FileInfo, TableFiles, ask_together, list_named_folders
from hoodie_py.formats.names import BaseFileName, LogFileName, parse_base_file_name, parse_log_file_name
from hoodie_py.formats.timeline.instants import INFLIGHT, Instant
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.data_file import parse_run_id
from hoodie_py.writer.handles.markers import Marker, Markers
from hoodie_py.writer.indexes.undo import undo_metadata_commit
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.commit_protocol import FoundFiles


def list_files_of_instant(files: TableFiles, instant: str, groups: Iterable[GroupKey]) -> dict[str, int]:
    """List the base files and change-data files that an attempt left in file groups, with their sizes in bytes.

    A group without file id stands for all groups of its partition: a clustering creates new ones.
    """
    return _select_files(_list_partitions(files, groups), instant, groups)


def list_attempt(files: TableFiles, instant: str, groups: Collection[GroupKey]) -> FoundFiles:
    """List the partitions of file groups, and the markers of an instant."""
    listings, markers = ask_together(
        files, partial(_list_partitions, files, groups), Markers(files, instant).list_files
    )
    return FoundFiles(listings, markers)


def select_files(found: FoundFiles, instant: str, groups: Iterable[GroupKey]) -> dict[str, int]:
    """Return what ``list_files_of_instant`` does, of the files that were listed."""
    return _select_files(found.listings, instant, groups)


def _list_partitions(files: TableFiles, groups: Iterable[GroupKey]) -> Mapping[str, Sequence[FileInfo]]:
    partitions = sorted({partition for partition, _ in groups})
    return dict(zip(partitions, list_named_folders(files, partitions), strict=True))


def _select_files(
    listings: Mapping[str, Sequence[FileInfo]], instant: str, groups: Iterable[GroupKey]
) -> dict[str, int]:
    wanted = set(groups)
    found: dict[str, int] = {}
    for partition, listing in listings.items():
        for info in listing:
            name = None if info.is_dir else _parse_name(info.name)
            if name is None or name.instant != instant:
                continue
            if (partition, name.file_id) in wanted or (partition, "") in wanted:
                found[info.path] = info.size
    return found


def remove_files(
    files: TableFiles,
    instant: str,
    groups: Collection[GroupKey],
    keep: Collection[str] = (),
    check: Callable[[], object] | None = None,
    found: FoundFiles | None = None,
) -> int:
    """Delete the files that attempts at a compaction or clustering wrote, and return how many were deleted.

    Paths in ``keep`` stay. ``check`` is called between the listing and the deletion. It raises if the run has lost the
    lock or its heartbeat: then another process may have run the compaction again, with files of the same instant.
    ``found``: the answer of ``list_attempt``; None: the files are listed here.

    Raises:
        ConflictError: raised by ``check``.
    """
    found = list_attempt(files, instant, groups) if found is None else found
    announced = _select_announced(Markers(files, instant).parse_announced(found.markers), instant)
    listed = select_files(found, instant, groups).keys()
    doomed = (announced | listed) - set(keep)
    if check is not None and doomed:
        check()
    for path in sorted(doomed):
        files.delete_with_checksum(path)
    return len(listed - set(keep))


def list_announced_files(files: TableFiles, instant: str) -> set[str]:
    """Return the paths of the files that attempts at a compaction or clustering announced; they need not exist."""
    return _select_announced(Markers(files, instant).list_announced(), instant)


def _select_announced(announced: Iterable[Marker], instant: str) -> set[str]:
    return {marker.path for marker in announced if _is_file_of(marker.path, instant)}


def remove_files_of_run(files: TableFiles, instant: str, run_id: int) -> None:
    """Delete the files that one run announced, and no file of another run of the same instant."""
    markers = Markers(files, instant)
    for marker in markers.list_announced():
        if _is_file_of(marker.path, instant) and parse_run_id(marker.file_name) == run_id:
            files.delete_with_checksum(marker.path)
            markers.remove(marker)


def undo_attempt(
    session: WriteSession,
    snapshot: Snapshot,
    pending: Instant,
    groups: Collection[GroupKey],
    check: Callable[[], object],
) -> int:
    """Take an inflight compaction or clustering back to requested, and return how many data files were removed.

    The caller holds the table's lock, and no process runs the compaction. ``check`` is as for ``remove_files``.
    """
    files, instant = session.files, pending.request_time
    undo_metadata_commit(files, instant, check)
    found = list_attempt(files, instant, groups)
    removed = remove_files(files, instant, groups, check=check, found=found)
    Markers(files, instant).remove_all(found.markers)
    if pending.state == INFLIGHT:  # last, so that an interrupted removal can be repeated
        session.open_timeline(snapshot).remove(pending)
    return removed


def _is_file_of(path: str, instant: str) -> bool:
    name = _parse_name(path.rpartition("/")[2])
    return name is not None and name.instant == instant


def _parse_name(name: str) -> BaseFileName | LogFileName | None:
    """Parse the name of a file that a compaction may write; None for other names.

    Up to table version 6 the log files of later writes also carry the compaction's instant.
    """
    if not name.startswith("."):
        return parse_base_file_name(name)
    log = parse_log_file_name(name)
    return log if log is not None and log.is_cdc else None
