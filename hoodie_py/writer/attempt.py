"""Attempts at a compaction: what they left behind, and how to take it away (Hudi ``rollbackInflightCompaction``).

An attempt that did not complete leaves base files of the compaction's instant, markers that name them, an inflight file
and perhaps a commit on the metadata table. All of it is invisible to readers. It is removed data files first and the
inflight file last, so that a removal that is itself cut short can be taken up again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from hoodie_py.files import TableFiles
from hoodie_py.formats.instants import INFLIGHT, Instant
from hoodie_py.formats.names import parse_base_file_name
from hoodie_py.table.partitions import list_folders
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.compaction_strategy import GroupKey
from hoodie_py.writer.data_file import parse_run_id
from hoodie_py.writer.markers import Markers
from hoodie_py.writer.metadata_table import undo_metadata_commit
from hoodie_py.writer.session import WriteSession
from hoodie_py.writer.timeline_writer import delete_with_checksum


def list_files_of_instant(files: TableFiles, instant: str, groups: Iterable[GroupKey]) -> dict[str, int]:
    """List the base files that an instant left in file groups, with their sizes in bytes.

    Args:
        files: the table's files.
        instant: request time of the compaction.
        groups: partition path and file id of each group in its plan.
    """
    wanted = set(groups)
    partitions = sorted({partition for partition, _ in wanted})
    found: dict[str, int] = {}
    for partition, listing in zip(partitions, list_folders(files, partitions), strict=True):
        for info in listing:
            name = None if info.is_dir or info.name.startswith(".") else parse_base_file_name(info.name)
            if name is not None and name.instant == instant and (partition, name.file_id) in wanted:
                found[info.path] = info.size
    return found


def remove_files(
    files: TableFiles,
    instant: str,
    groups: Collection[GroupKey],
    keep: Collection[str] = (),
    check: Callable[[], object] | None = None,
) -> int:
    """Delete what attempts at a compaction wrote, save the files to keep, and return how many files that were.

    Args:
        files: the table's files.
        instant: request time of the compaction.
        groups: of its plan.
        keep: paths that stay.
        check: asks, once the files are listed, whether the run still has the table: another may have run the
            compaction again before, and its files have the same instant.

    Raises:
        ConflictError: by ``check``.
    """
    announced = {
        marker.path for marker in Markers(files, instant).list_announced() if _is_file_of(marker.path, instant)
    }
    listed = list_files_of_instant(files, instant, groups).keys()
    if check is not None:
        check()
    for path in sorted((announced | listed) - set(keep)):
        delete_with_checksum(files, path)
    return len(listed - set(keep))


def remove_files_of_run(files: TableFiles, instant: str, run_id: int) -> None:
    """Delete what one run wrote and announced, and nothing that another run of the same compaction did."""
    markers = Markers(files, instant)
    for marker in markers.list_announced():
        if _is_file_of(marker.path, instant) and parse_run_id(marker.file_name) == run_id:
            delete_with_checksum(files, marker.path)
            markers.remove(marker)


def undo_attempt(
    session: WriteSession,
    snapshot: Snapshot,
    pending: Instant,
    groups: Collection[GroupKey],
    check: Callable[[], object] | None = None,
) -> int:
    """Take a running compaction back to requested, and return how many data files were removed.

    Call it under the table's lock, when nobody runs it.

    Args:
        session: of the writing call.
        snapshot: the table as it is now.
        pending: the inflight instant.
        groups: of its plan.
        check: asks whether the run still has the table, see ``remove_files``.
    """
    undo_metadata_commit(session.files, pending.request_time, check)
    removed = remove_files(session.files, pending.request_time, groups, check=check)
    Markers(session.files, pending.request_time).remove_all()
    if pending.state == INFLIGHT:
        session.open_timeline(snapshot).remove(pending)
    return removed


def _is_file_of(path: str, instant: str) -> bool:
    name = parse_base_file_name(path.rpartition("/")[2])
    return name is not None and name.instant == instant
