"""Finish a rollback that was begun: by this package, or by a Java Hudi that died over it.

Java deletes the data files, tells its metadata table, removes the rolled-back instant, and completes the rollback last;
so of the instant anything may be left: its completed file too, where a user had a completed commit rolled back. Until
the rollback is complete, Java finishes it before each write, and cannot once something later has completed.

* What is left of the instant goes as the plan says: wholly, or back to requested where the plan is of a compaction.
* Where the metadata table has the rollback's commit already, all files were dealt with before.
* Where the metadata table has compacted what it knows of the instant (Java gives up there), a commit of its own takes
  the files out.
* A completed commit that later ones rest on cannot be rolled back. Nothing was done by such a rollback, so it can be
  taken off the timeline by whoever names it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace

from hoodie_py.errors import FileMissingError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.instants import (
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    INFLIGHT,
    REPLACE_COMMIT,
    REQUESTED,
    ROLLBACK,
    SAVEPOINT,
    Instant,
)
from hoodie_py.formats.log import BlockType, LogBlock, iterate_blocks
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.attempt import undo_attempt
from hoodie_py.writer.compaction_strategy import GroupKey
from hoodie_py.writer.heartbeat import HEARTBEAT_FOLDER
from hoodie_py.writer.markers import Markers
from hoodie_py.writer.metadata_table import (
    MetadataTable,
    is_compacted_in_metadata,
    is_recorded_in_metadata,
    undo_metadata_commit,
)
from hoodie_py.writer.rollback_facts import PendingRollback
from hoodie_py.writer.rollback_record import Files, complete_rollback, delete_files
from hoodie_py.writer.session import WriteSession
from hoodie_py.writer.timeline_writer import delete_with_checksum
from hoodie_py.writer.written_files import find_written_files

_COMPLETED = COMMIT, DELTA_COMMIT, REPLACE_COMMIT


def finish_rollback(
    session: WriteSession,
    snapshot: Snapshot,
    begun: PendingRollback,
    check: Callable[[], object],
    *,
    named: bool = False,
) -> tuple[str, int]:
    """Finish a rollback. Call it under the table's lock, when nobody is at work on it or its instant.

    Args:
        session: of the writing call.
        snapshot: the table as it is now.
        begun: the rollback.
        check: asks whether the run still has the table, before files of a compaction go: another may run it again.
        named: whether the caller asked for this very rollback, so that one that cannot be carried out may be taken off
            the timeline.

    Returns:
        What is left of the instant - "gone" or "requested", or "rollback" where nothing was done and the rollback is
        gone - and how many data files were removed.

    Raises:
        UnsupportedFeatureError: the rollback is of a completed commit that others rest on, or only Java Hudi can undo
            what is left.
        CommitStateUnknownError: the store did not say whether the rollback was recorded.
        StorageError: the store refused; the next one takes the rollback up.
    """
    problem = _find_problem(snapshot, begun)
    if not begun.target or (problem is not None and named):
        _withdraw(session, snapshot, begun)
        return ROLLBACK, 0
    if problem is not None:
        raise problem
    metadata = MetadataTable(session, snapshot) if is_compacted_in_metadata(snapshot, begun.target) else None
    left = _reopen_completed(session, snapshot, begun)
    if left is not None and left.action == COMPACTION:
        plan = snapshot.timeline.read_compaction_plan(left)
        groups = [(each.partition_path, each.file_id) for each in plan.operations]
        if begun.action == COMPACTION:
            removed = undo_attempt(session, snapshot, left, groups, check)
            complete_rollback(session, snapshot, _begin_if_requested(session, snapshot, begun), left, begun.files)
            return REQUESTED, removed
        check_removable(snapshot, left, groups)
    return "gone", _undo(session, begun, left or Instant(begun.target, None, begun.action, INFLIGHT), metadata)


def remove_instant(session: WriteSession, snapshot: Snapshot, pending: Instant) -> None:
    """Remove what is left of an instant: markers, heartbeat, and its own files, the requested one last."""
    Markers(session.files, pending.request_time).remove_all()
    delete_with_checksum(session.files, f"{HEARTBEAT_FOLDER}/{pending.request_time}")
    writer = session.open_timeline(snapshot)
    for state in (INFLIGHT, REQUESTED):
        writer.remove(replace(pending, state=state))


def check_removable(snapshot: Snapshot, compaction: Instant, groups: Collection[GroupKey]) -> None:
    """Refuse to remove a compaction that log files are named after; from table version 8 on none is.

    Raises:
        UnsupportedFeatureError: names the file.
    """
    if not snapshot.view.visibility.logs_carry_base_instant:
        return
    for group in snapshot.view.list_file_groups(sorted({partition for partition, _ in groups})):
        for log in group.log_files:
            if log.name.instant == compaction.request_time:
                raise UnsupportedFeatureError(
                    f"Removing a compaction plan on table version {snapshot.config.version} once log files are "
                    "named after it.",
                    hint="Run the compaction. Where a write that failed named them, roll that back first.",
                    instant=compaction.request_time,
                    path=log.path,
                )


def _find_problem(snapshot: Snapshot, begun: PendingRollback) -> UnsupportedFeatureError | None:
    """Say why a completed commit cannot be rolled back (Hudi ``validateRollbackCommitSequence``)."""
    timeline = snapshot.timeline.timeline
    found = timeline.find(begun.target, *_COMPLETED)
    if found is None or not found.is_completed:
        return None
    later = timeline.select_writes().select_after(begun.target)
    if begun.action == COMPACTION:
        why = "it was pending when the rollback was planned"
    elif timeline.find(begun.target, SAVEPOINT) is not None:
        why = "a savepoint keeps it"
    elif len(later):
        why = f"{later.instants[0].request_time} came later"
    else:
        return None
    rollback = begun.instant.request_time
    return UnsupportedFeatureError(
        f"Finishing the rollback of a completed {found.action}: {why}, so Java Hudi cannot do it either.",
        hint=f"It has done nothing yet: roll back {rollback} itself to take it off the timeline.",
        instant=begun.target,
        rollback=rollback,
    )


def _withdraw(session: WriteSession, snapshot: Snapshot, begun: PendingRollback) -> None:
    timeline = session.open_timeline(snapshot)
    for state in (INFLIGHT, REQUESTED):
        timeline.remove(replace(begun.instant, state=state))


def _reopen_completed(session: WriteSession, snapshot: Snapshot, begun: PendingRollback) -> Instant | None:
    """Return what is pending of the instant; a completed one is taken back to pending, as in Java."""
    found = snapshot.timeline.timeline.find(begun.target, *_COMPLETED)
    if found is None or not found.is_completed:
        return found
    session.open_timeline(snapshot).remove(found)
    return session.look().timeline.timeline.find(begun.target, *_COMPLETED)


def _undo(session: WriteSession, begun: PendingRollback, target: Instant, metadata: MetadataTable | None) -> int:
    snapshot, rollback = session.look(), begun.instant.request_time
    files: Files = begun.files
    if not is_recorded_in_metadata(snapshot, rollback):
        files = _join_files(snapshot, begun)
        undo_metadata_commit(session.files, rollback)
        if metadata is None:
            undo_metadata_commit(session.files, begun.target)
        delete_files(session.files, files)
        _remove_rollback_blocks(session.files, rollback)
        if metadata is not None:
            metadata.commit(rollback, added={}, deleted=files)
    complete_rollback(session, snapshot, _begin_if_requested(session, snapshot, begun), target, files)
    remove_instant(session, snapshot, target)
    Markers(session.files, rollback).remove_all()
    return sum(map(len, files.values()))


def _begin_if_requested(session: WriteSession, snapshot: Snapshot, begun: PendingRollback) -> Instant:
    return begun.instant if begun.instant.state == INFLIGHT else session.open_timeline(snapshot).begin(begun.instant)


def _join_files(snapshot: Snapshot, begun: PendingRollback) -> Files:
    """Return the files of the instant, those that are there and those that the plan names."""
    found = {partition: set(names) for partition, names in find_written_files(snapshot, begun.target).items()}
    for partition, names in begun.files.items():
        own = {name for name in names if _is_named_after(name, begun.target)}
        if own:
            found.setdefault(partition, set()).update(own)
    return {partition: tuple(sorted(names)) for partition, names in sorted(found.items())}


def _is_named_after(name: str, instant: str) -> bool:
    parsed = parse_log_file_name(name) if name.startswith(".") else parse_base_file_name(name)
    return parsed is not None and parsed.instant == instant


def _remove_rollback_blocks(files: TableFiles, rollback: str) -> None:
    """Remove log files that Java's attempt made, up to table version 6: their blocks undo what is gone by now, and the
    metadata table does not know them.
    """
    for marker in Markers(files, rollback).list_announced():
        if parse_log_file_name(marker.file_name) is None:
            continue
        with suppress(FileMissingError):
            blocks = list(iterate_blocks(read_bounded(files, marker.path, "log_bytes")))
            if all(isinstance(each, LogBlock) and each.type is BlockType.COMMAND for each in blocks):
                delete_with_checksum(files, marker.path)
