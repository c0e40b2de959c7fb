"""Finish a pending rollback of this package, or of a Java Hudi that died over it (Hudi ``BaseRollbackActionExecutor``).

Java deletes the data files, then updates its metadata table, removes the rolled-back instant, and completes the
rollback last. So any part of the instant may be left, even its completed file, if a user rolled a completed commit
back. Until the rollback is complete, Java tries to finish it before each write, and cannot do so once a later instant
has completed.

* The rest of the instant is removed. If the plan is for a compaction, the compaction goes back to requested.
* If the metadata table has a commit of the rollback, the data files were removed before.
* If the metadata table has compacted the instant's entries (Java fails there), a commit of the rollback removes the
  files from it.
* A completed commit on which later commits rest cannot be rolled back. Such a rollback has done nothing, so it is
  removed from the timeline if the caller names it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from hoodie_py.errors import FileMissingError, UnsupportedFeatureError
from hoodie_py.files import TableFiles, list_removable
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.formats.timeline.instants import (
    CLUSTERING,
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
from hoodie_py.formats.timeline.plans import (
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RolledBackInstant,
    RolledBackPartition,
)
from hoodie_py.formats.timeline.writers import write_rollback_metadata, write_rollback_plan
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.data_file import is_named_after
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.indexes.undo import (
    is_compacted_in_metadata,
    is_index_compacted_in_metadata,
    is_recorded_in_metadata,
    undo_metadata_commit,
)
from hoodie_py.writer.lock.heartbeat import HEARTBEAT_FOLDER
from hoodie_py.writer.rollback.attempt import undo_attempt
from hoodie_py.writer.rollback.written_files import find_written_files
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time
from hoodie_py.writer.transaction.hash_ranges import forget_pending
from hoodie_py.writer.transaction.pending import PendingRollback

_COMPLETED = COMMIT, DELTA_COMMIT, REPLACE_COMMIT


def finish_rollback(
    session: WriteSession,
    snapshot: Snapshot,
    begun: PendingRollback,
    check: Callable[[], object],
    *,
    named: bool = False,
) -> tuple[str, int]:
    """Finish a rollback. The caller holds the table's lock, and no process works on the rollback or on its instant.

    ``check`` is called before files of a compaction are deleted. It raises if the run has lost the lock or its
    heartbeat, as another process may run the compaction again then. ``named``: whether the caller named this rollback
    itself; then it is removed if it cannot be finished.

    Returns:
        What is left of the instant, "gone" or "requested", and how many data files were removed. "rollback" means that
            nothing was done, and that the rollback is removed.

    Raises:
        UnsupportedFeatureError: later commits rest on the completed commit, or only Java Hudi can undo the rest of the
            instant.
        CommitStateUnknownError: the store did not say whether the rollback was recorded.
        StorageError: the store refused; the next call continues the rollback.
    """
    problem = find_problem(snapshot, begun)
    if not begun.target or (problem is not None and named):
        session.open_timeline(snapshot).remove_pending(begun.instant)
        return ROLLBACK, 0
    if problem is not None:
        raise problem
    is_compacted = is_compacted_in_metadata(snapshot, begun.target)
    if is_compacted:
        MetadataTable.check(snapshot, session.settings.metadata_mode)  # refuses before anything is done
    left = _reopen_completed(session, snapshot, begun)
    if left is not None and left.action == COMPACTION:
        plan = snapshot.timeline.read_compaction_plan(left)
        groups = [(each.partition_path, each.file_id) for each in plan.operations]
        if begun.action == COMPACTION:
            removed = undo_attempt(session, snapshot, left, groups, check)
            complete_rollback(session, snapshot, _begin_if_requested(session, snapshot, begun), left, begun.files)
            return REQUESTED, removed
        check_removable(snapshot, left, groups)
    return "gone", _undo(session, begun, left or Instant(begun.target, None, begun.action, INFLIGHT), is_compacted)


def remove_instant(session: WriteSession, snapshot: Snapshot, pending: Instant) -> None:
    """Remove an instant's hash ranges, markers, heartbeat and timeline files, the requested file last."""
    forget_pending(snapshot, pending)
    Markers(session.files, pending.request_time).remove_all()
    session.files.delete_with_checksum(f"{HEARTBEAT_FOLDER}/{pending.request_time}")
    session.open_timeline(snapshot).remove_pending(pending)


def check_removable(snapshot: Snapshot, compaction: Instant, groups: Collection[GroupKey]) -> None:
    """Refuse to remove a compaction if log files carry its instant, which is possible up to table version 6.

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


def find_problem(snapshot: Snapshot, begun: PendingRollback) -> UnsupportedFeatureError | None:
    """Return why a completed commit cannot be rolled back, or None (Hudi ``validateRollbackCommitSequence``)."""
    timeline = snapshot.timeline
    found = find_undone(snapshot, begun)
    if found is None or not found.is_completed:
        return None
    later = timeline.select_writes().select_after(begun.target)
    if begun.action == COMPACTION:
        why = "it was pending when the rollback was planned"
    elif timeline.find(begun.target, SAVEPOINT) is not None:
        why = "a savepoint keeps it"
    elif len(later):
        why = f"{later.instants[0].request_time} came later"
    elif is_index_compacted_in_metadata(snapshot, begun.target):
        why = "the metadata table has compacted its index entries"
    else:
        return None
    rollback = begun.instant.request_time
    return UnsupportedFeatureError(
        f"Finishing the rollback of a completed {found.action}: {why}, so Java Hudi cannot do it either.",
        hint=f"It has done nothing yet: roll back {rollback} itself to take it off the timeline.",
        instant=begun.target,
        rollback=rollback,
    )


def _reopen_completed(session: WriteSession, snapshot: Snapshot, begun: PendingRollback) -> Instant | None:
    """Return the pending instant, or None if it is gone. A completed instant becomes pending first, as in Java."""
    found = find_undone(snapshot, begun)
    if found is None or not found.is_completed:
        return found
    session.open_timeline(snapshot).remove(found)
    return find_undone(session.look(), begun)


def find_undone(snapshot: Snapshot, begun: PendingRollback) -> Instant | None:
    """Return the instant that a rollback undoes, as far as the timeline still has it."""
    return snapshot.timeline.find(begun.target, *_COMPLETED)


def _undo(session: WriteSession, begun: PendingRollback, target: Instant, is_compacted: bool) -> int:
    snapshot, rollback = session.look(), begun.instant.request_time
    files: Files = begun.files
    if not is_recorded_in_metadata(snapshot, rollback):
        files = join_files(snapshot, begun)
        undo_metadata_commit(session.files, rollback)  # what an earlier attempt left; its commit is written again below
        of_others = open_told_metadata(session, snapshot, target, files)
        metadata = MetadataTable(session, snapshot) if is_compacted else of_others
        if not is_compacted:
            undo_metadata_commit(session.files, begun.target)
        delete_files(session.files, files)
        _remove_rollback_blocks(session.files, rollback)
        if metadata is not None:
            told = files if snapshot.config.has_logs_named_by_commit else _join_names(files, _find_gone(session, begun))
            metadata.commit(MetadataCommit(session, snapshot, rollback, "rollback", deleted=told))
    complete_rollback(session, snapshot, _begin_if_requested(session, snapshot, begun), target, files)
    remove_instant(session, snapshot, target)
    Markers(session.files, rollback).remove_all()
    return sum(map(len, files.values()))


def open_told_metadata(
    session: WriteSession, snapshot: Snapshot, target: Instant, files: Files
) -> MetadataTable | None:
    """Return the metadata table if other commits have added files to it that a rollback removes; else None.

    A clustering writes base files. Log files named after it belong to writes that go to old and new buckets.

    Raises:
        UnsupportedFeatureError: the metadata table cannot be kept right.
    """
    has_logs = any(name.startswith(".") for names in files.values() for name in names)
    is_told = has_logs and target.action in (CLUSTERING, REPLACE_COMMIT)
    return MetadataTable(session, snapshot) if is_told else None


def _begin_if_requested(session: WriteSession, snapshot: Snapshot, begun: PendingRollback) -> Instant:
    return begun.instant if begun.instant.state == INFLIGHT else session.open_timeline(snapshot).begin(begun.instant)


def join_files(snapshot: Snapshot, begun: PendingRollback) -> Files:
    """Return the instant's files: existing files, and files that the plan names."""
    named = {
        partition: tuple(name for name in names if is_named_after(name, begun.target))
        for partition, names in begun.files.items()
    }
    return _join_names(find_written_files(snapshot, begun.target), named)


def _find_gone(session: WriteSession, begun: PendingRollback) -> Files:
    """Return the files that the plan names and that are gone.

    They include log files that an earlier attempt deleted: up to table version 6 their names do not show the instant.
    """
    gone = {}
    for partition, names in begun.files.items():
        there = {each.name for each in session.files.list_or_empty(partition)}
        gone[partition] = tuple(name for name in names if name not in there)
    return gone


def _join_names(*parts: Files) -> Files:
    joined: dict[str, set[str]] = {}
    for partition, names in (each for part in parts for each in part.items()):
        if names:
            joined.setdefault(partition, set()).update(names)
    return {partition: tuple(sorted(names)) for partition, names in sorted(joined.items())}


def _remove_rollback_blocks(files: TableFiles, rollback: str) -> None:
    """Remove log files with rollback blocks that Java's attempt wrote, up to table version 6.

    The blocks that they undo are already deleted, and the metadata table has no entries for these files.
    """
    for marker in Markers(files, rollback).list_announced():
        if parse_log_file_name(marker.file_name) is None:
            continue
        with suppress(FileMissingError):
            blocks = list(iterate_blocks(read_bounded(files, marker.path, "log_bytes")))
            if all(isinstance(each, LogBlock) and each.type is BlockType.COMMAND for each in blocks):
                files.delete_with_checksum(marker.path)


Files = Mapping[str, tuple[str, ...]]
"""Names of data files, by partition path."""


def begin_rollback(session: WriteSession, snapshot: Snapshot, pending: Instant, files: Files) -> Instant:
    """Save the plan of a rollback, begin it, and return the inflight instant. The caller holds the table's lock.

    ``files``: the files that the pending instant wrote.

    Raises:
        CommitStateUnknownError: the store did not say whether a file was written.
    """
    writer = session.open_timeline(snapshot)
    plan = RollbackPlan(
        instant=RolledBackInstant(pending.request_time, pending.action),
        requests=tuple(RollbackRequest(partition, names) for partition, names in files.items()),
    )
    time = session.clock.take(find_newest_time(snapshot.timeline))
    return writer.begin(writer.request(time, ROLLBACK, write_rollback_plan(plan, session.files.java_uri)))


def delete_files(files: TableFiles, names: Files) -> None:
    """Delete data files. Missing files are no error."""
    for path in list_removable(files, list_paths(names)):
        files.delete_with_checksum(path)


def list_paths(names: Files) -> list[str]:
    """Return the paths of files."""
    return [f"{partition}/{name}" if partition else name for partition, each in names.items() for name in each]


def complete_rollback(
    session: WriteSession, snapshot: Snapshot, inflight: Instant, undone: Instant, files: Files
) -> None:
    """Complete a rollback. ``inflight`` is the rollback; other arguments and errors as for ``begin_rollback``."""
    metadata = RollbackMetadata(
        start_rollback_time=inflight.request_time,
        total_files_deleted=sum(map(len, files.values())),
        commits_rolled_back=(undone.request_time,),
        instants=(RolledBackInstant(undone.request_time, undone.action),),
        partitions={partition: RolledBackPartition(names, ()) for partition, names in files.items()},
    )
    completion_time = session.clock.take(find_newest_time(snapshot.timeline))
    content = write_rollback_metadata(metadata, session.files.java_uri)
    session.open_timeline(snapshot).complete(inflight, completion_time, content)
