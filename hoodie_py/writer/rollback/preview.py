"""Show what a rollback would remove, and remove nothing: the same look at the table as ``rollback``, without the lock.

The table may change before the rollback is run; the report shows what it would do now.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace

from hoodie_py.errors import FileMissingError
from hoodie_py.files import TableFiles, find_named_files
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.formats.timeline.instants import COMPACTION, INFLIGHT, REQUESTED, ROLLBACK, Instant
from hoodie_py.runtime.wording import Sentence, format_count
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes.undo import is_compacted_in_metadata, is_recorded_in_metadata, list_metadata_files
from hoodie_py.writer.lock.heartbeat import find_checkpoint, is_alive
from hoodie_py.writer.rollback.attempt import list_announced_files, list_files_of_instant
from hoodie_py.writer.rollback.finish import check_removable, find_problem, find_undone, join_files, list_paths
from hoodie_py.writer.rollback.rollback import find_begun, find_pending
from hoodie_py.writer.rollback.written_files import find_written_files
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.pending import PendingRollback, list_rollbacks_of


@dataclass(frozen=True, slots=True)
class DoomedFile:
    """A data file that a rollback would remove: its path in the table, its size in bytes, and a log file's block types.

    A block that was not written whole is "CORRUPT".

    Examples:
        >>> from hoodie_py import DoomedFile
        >>> DoomedFile("sf/.a_2.log.1_0-0-0", 2048, ("AVRO_DATA", "DELETE")).blocks
        ('AVRO_DATA', 'DELETE')
    """

    path: str
    size: int
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RollbackReport(Sentence):
    """What a rollback would remove.

    Attributes:
        table: the table's uri.
        instant: request time of the instant that would be undone.
        action: its action.
        left: "requested" if it can be run again afterwards, "gone" if nothing of it will be left.
        files: data files that the instant wrote.
        metadata_files: files of the metadata table with the instant's entries.
        timeline_files: files of the timeline.
        rollback: request time of a rollback that has begun and would be finished; None if it would be a new one.
        at_work: whether a writer keeps the instant alive, so that a rollback is refused now.
        checkpoint: path of the file by which a Flink job shows that it writes to the instant; None without one.

    Examples:
        >>> instant = trips.schedule_compaction()
        >>> report = trips.rollback(instant, dry_run=True)
        >>> report.action, report.left, len(report.files), len(report.timeline_files)
        ('compaction', 'gone', 0, 1)
    """

    table: str
    instant: str
    action: str
    left: str
    files: tuple[DoomedFile, ...] = ()
    metadata_files: tuple[str, ...] = ()
    timeline_files: tuple[str, ...] = ()
    rollback: str | None = None
    at_work: bool = False
    checkpoint: str | None = None

    def __str__(self) -> str:
        end = "take it back to requested" if self.left == REQUESTED else "remove it from the timeline"
        size = sum(each.size for each in self.files)
        blocks = sum(len(each.blocks) for each in self.files)
        logs = f" with {format_count(blocks, 'log block')}" if blocks else ""
        text = (
            f"Rolling back the {self.action} {self.instant} would {end}, and remove "
            f"{format_count(len(self.files), 'data file')}{logs} ({format_count(size, 'byte')})"
        )
        if self.metadata_files:
            text += f" and {format_count(len(self.metadata_files), 'file')} of the metadata table"
        text += "."
        if self.rollback is not None and self.action != ROLLBACK:
            text += f" It would finish the rollback {self.rollback}."
        if self.checkpoint is not None:
            text += " A Flink job writes to it, or did when it was stopped: a job that runs would fail."
        return text + (" A writer is at work on it now, so it would be refused." if self.at_work else "")


def preview_rollback(session: WriteSession, instant: str) -> RollbackReport:
    """Return what ``rollback`` would remove. Nothing is written and no lock is taken; errors as for ``rollback``."""
    snapshot = session.look()
    begun = find_begun(snapshot, instant)
    if begun is None:
        found = _preview_pending(session, snapshot, find_pending(snapshot, instant))
    else:
        found = _preview_begun(session, snapshot, begun, named=instant == begun.instant.request_time)
    at_work = is_alive(session.files, found.instant, session.settings.options)
    return replace(found, at_work=at_work, checkpoint=find_checkpoint(session.files, found.instant))


def _preview_pending(session: WriteSession, snapshot: Snapshot, pending: Instant) -> RollbackReport:
    time = pending.request_time
    if pending.action == COMPACTION:
        return _preview_compaction(session, snapshot, pending)
    report = RollbackReport(
        session.files.uri, time, pending.action, "gone", timeline_files=_list_states(session, snapshot, pending)
    )
    if any(each.is_completed for each in list_rollbacks_of(snapshot, time)):
        return report
    return replace(
        report,
        files=_describe(session.files, list_paths(find_written_files(snapshot, time))),
        metadata_files=tuple(list_metadata_files(session.files, time)),
    )


def _preview_compaction(session: WriteSession, snapshot: Snapshot, pending: Instant) -> RollbackReport:
    time = pending.request_time
    plan = snapshot.timeline.read_compaction_plan(pending)
    groups = [(each.partition_path, each.file_id) for each in plan.operations]
    if pending.state == REQUESTED:
        check_removable(snapshot, pending, groups)
    paths = list_announced_files(session.files, time) | list_files_of_instant(session.files, time, groups).keys()
    return RollbackReport(
        session.files.uri,
        time,
        COMPACTION,
        REQUESTED if pending.state == INFLIGHT else "gone",
        _describe(session.files, paths),
        tuple(list_metadata_files(session.files, time)),
        (session.open_timeline(snapshot).locate(pending),),
    )


def _preview_begun(session: WriteSession, snapshot: Snapshot, begun: PendingRollback, *, named: bool) -> RollbackReport:
    """Return what a rollback that has begun still has to remove; see ``finish_rollback``."""
    files, rollback = session.files, begun.instant.request_time
    problem = find_problem(snapshot, begun)
    if not begun.target or (problem is not None and named):
        states = _list_states(session, snapshot, begun.instant)
        return RollbackReport(files.uri, rollback, ROLLBACK, "gone", timeline_files=states, rollback=rollback)
    if problem is not None:
        raise problem
    left = find_undone(snapshot, begun)
    if left is not None and left.action == COMPACTION:
        if begun.action == COMPACTION:
            return replace(_preview_compaction(session, snapshot, left), left=REQUESTED, rollback=rollback)
        plan = snapshot.timeline.read_compaction_plan(left)
        check_removable(snapshot, left, [(each.partition_path, each.file_id) for each in plan.operations])
    paths, metadata = list_paths(begun.files), list[str]()
    if not is_recorded_in_metadata(snapshot, rollback):
        paths = list_paths(join_files(snapshot, begun))
        metadata = list_metadata_files(files, rollback)
        if not is_compacted_in_metadata(snapshot, begun.target):
            metadata += list_metadata_files(files, begun.target)
    states = _list_states(session, snapshot, left or Instant(begun.target, None, begun.action, INFLIGHT))
    return RollbackReport(
        files.uri, begun.target, begun.action, "gone", _describe(files, paths), tuple(metadata), states, rollback
    )


def _list_states(session: WriteSession, snapshot: Snapshot, instant: Instant) -> tuple[str, ...]:
    """Return the paths of an instant's files on the timeline."""
    writer = session.open_timeline(snapshot)
    states = [instant, *(replace(instant, state=state) for state in (INFLIGHT, REQUESTED))]
    paths = dict.fromkeys(map(writer.locate, states))
    return tuple(path for path in paths if session.files.exists(path))


def _describe(files: TableFiles, paths: Collection[str]) -> tuple[DoomedFile, ...]:
    """Return the files that exist, sorted by path."""
    there = find_named_files(files, paths)
    found = []
    for path in sorted(there):
        with suppress(FileMissingError):
            found.append(DoomedFile(path, there[path].size, _list_blocks(files, path)))
    return tuple(found)


def _list_blocks(files: TableFiles, path: str) -> tuple[str, ...]:
    if parse_log_file_name(path.rpartition("/")[2]) is None:
        return ()
    blocks = iterate_blocks(read_bounded(files, path, "log_bytes"))
    return tuple(block.type.name if isinstance(block, LogBlock) else "CORRUPT" for block in blocks)
