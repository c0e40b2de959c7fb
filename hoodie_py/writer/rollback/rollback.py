"""Undo a pending instant, or finish a pending rollback (Hudi ``BaseRollbackActionExecutor``).

* An inflight compaction goes back to requested: its data files, its markers and its inflight file are removed. A
  requested one is removed, unless log files already carry its instant (up to table version 6).
* For any other write, the data files are removed, then a completed rollback instant records that, then the instant's
  timeline files are removed. The instant in the file names shows which files the write made. Up to version 6 the names
  of log files do not show it, so their blocks are read; a log file with blocks of other commits is left to Java.
* The instant's entries in the metadata table go first. Readers ignore them while the instant is pending.

``finish_rollback`` continues an interrupted rollback, this package's or Java's, by its plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.timeline.instants import (
    CLUSTERING,
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    INFLIGHT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    REQUESTED,
    RESTORE,
    ROLLBACK,
    Instant,
)
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.runtime.wording import Sentence
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.undo import undo_metadata_commit
from hoodie_py.writer.rollback.attempt import undo_attempt
from hoodie_py.writer.rollback.finish import (
    begin_rollback,
    check_removable,
    complete_rollback,
    delete_files,
    finish_rollback,
    open_told_metadata,
    remove_instant,
)
from hoodie_py.writer.rollback.written_files import find_written_files
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.pending import (
    PendingRollback,
    is_clustering,
    list_pending_rollbacks,
    list_rollbacks_of,
)
from hoodie_py.writer.transaction.run_guard import guard_run

_log = logging.getLogger(__name__)
_UNDONE = (COMMIT, DELTA_COMMIT, LOG_COMPACTION, REPLACE_COMMIT, CLUSTERING)


@dataclass(frozen=True, slots=True)
class RollbackResult(Sentence):
    """What a rollback did.

    Attributes:
        instant: request time of the undone instant.
        action: its action.
        left: "requested" if it can be run again, "gone" if nothing of it is left.
        rollback: request time of the instant that records the rollback; None if none is needed.
        files_deleted: number of removed data files.

    Examples:
        >>> instant = trips.schedule_compaction()
        >>> result = trips.rollback(instant)
        >>> result.action, result.instant == instant
        ('compaction', True)
    """

    instant: str
    action: str
    left: str
    rollback: str | None = None
    files_deleted: int = 0

    def __str__(self) -> str:
        what = f"The {self.action} {self.instant}"
        if self.left == REQUESTED:
            return f"{what} is back to requested; {self.files_deleted} files were removed."
        return f"{what} is gone; {self.files_deleted} files were removed."


@watch_calls("rollback")
def rollback(
    session: WriteSession, instant: str, is_at_work: Callable[[Snapshot, Instant], bool] | None = None
) -> RollbackResult:
    """Undo a pending instant, or finish a pending rollback.

    ``is_at_work`` returns whether the writer of a pending rollback may be at work on it. Then it is left to that
    writer.

    Raises:
        InvalidQueryError: no instant is pending at that time, or another writer may be rolling it back.
        ConflictError: another process works on it, or has finished it.
        UnsupportedFeatureError: only Java Hudi can undo the action or its state.
        CommitStateUnknownError: the store did not say whether the rollback was recorded.
        StorageError: the store refused; the next rollback continues this one.
    """
    about = find_target(session.look(), instant)
    with guard_run(session, about) as alive, session.hold_lock() as holding:
        snapshot = session.look()
        if find_target(snapshot, instant) != about:
            raise ConflictError("Another writer has changed the instant.", hint="Try again.", instant=instant)
        begun = find_begun(snapshot, instant)
        if begun is not None and is_at_work is not None and is_at_work(snapshot, begun.instant):
            raise InvalidQueryError("Another writer may be rolling the instant back.", hint="Wait.", instant=instant)
        # If the rollback fails, the dead writer's heartbeat file stays. Java needs it: see `leave_heartbeats`.
        alive.stays = alive.was_there
        alive.ensure_own(holding)
        result = _undo(session, snapshot, instant, partial(alive.ensure_own, holding))
        alive.stays = False
    _log.info("%s [table=%s]", result, session.files.uri)
    return result


def _undo(session: WriteSession, snapshot: Snapshot, instant: str, check: Callable[[], object]) -> RollbackResult:
    begun = find_begun(snapshot, instant)
    if begun is not None:
        left, removed = finish_rollback(session, snapshot, begun, check, named=instant == begun.instant.request_time)
        done = begun.instant.request_time
        if not begun.target or left == ROLLBACK:
            return RollbackResult(done, ROLLBACK, "gone")
        return RollbackResult(begun.target, begun.action, left, done, removed)
    pending = find_pending(snapshot, instant)
    if pending.action == COMPACTION:
        return _undo_compaction(session, snapshot, pending, check)
    return _undo_write(session, snapshot, pending)


def find_begun(snapshot: Snapshot, instant: str) -> PendingRollback | None:
    """Return the pending rollback with this request time, or the one that undoes this instant."""
    return next(
        (each for each in list_pending_rollbacks(snapshot) if instant in (each.instant.request_time, each.target)), None
    )


def find_target(snapshot: Snapshot, instant: str) -> str:
    """Return the request time of the instant to undo. A rollback without a plan is itself that instant."""
    begun = find_begun(snapshot, instant)
    if begun is not None:
        return begun.target or instant
    return find_pending(snapshot, instant).request_time


def find_pending(snapshot: Snapshot, instant: str) -> Instant:
    """Return the pending instant with this request time; errors as for ``rollback``."""
    found = snapshot.timeline.find(instant)
    if found is None or found.is_completed:
        state = "There is no instant" if found is None else f"The {found.action} is completed"
        known = ", ".join(each.request_time for each in snapshot.timeline.select_pending()) or "none"
        raise InvalidQueryError(f"{state} at {instant[:40]!r}.", hint=f"Pending instants: {known[:1000]}.")
    if found.action not in (COMPACTION, *_UNDONE):
        raise UnsupportedFeatureError(
            f"Rolling back a pending {found.action}.",
            hint="Finish it: restore to the same savepoint." if found.action == RESTORE else "Let Java Hudi do that.",
            instant=instant,
        )
    return found


def _undo_compaction(
    session: WriteSession, snapshot: Snapshot, pending: Instant, check: Callable[[], object]
) -> RollbackResult:
    instant = pending.request_time
    plan = snapshot.timeline.read_compaction_plan(pending)
    groups = [(each.partition_path, each.file_id) for each in plan.operations]
    if pending.state == REQUESTED:
        check_removable(snapshot, pending, groups)
    removed = undo_attempt(session, snapshot, pending, groups, check)
    if pending.state == INFLIGHT:
        return RollbackResult(instant, COMPACTION, REQUESTED, None, removed)
    session.open_timeline(snapshot).remove(pending)
    return RollbackResult(instant, COMPACTION, "gone", None, removed)


def _undo_write(session: WriteSession, snapshot: Snapshot, pending: Instant) -> RollbackResult:
    instant = pending.request_time
    done = next((each for each in list_rollbacks_of(snapshot, instant) if each.is_completed), None)
    if done is not None:
        remove_instant(session, snapshot, pending)
        return RollbackResult(instant, pending.action, "gone", done.request_time)
    files = find_written_files(snapshot, instant, clustering=is_clustering(snapshot, pending))
    metadata = open_told_metadata(session, snapshot, pending, files)
    undo_metadata_commit(session.files, instant)
    # The plan is saved before any file goes: by it the next writer finishes the rollback if this process dies.
    inflight = begin_rollback(session, snapshot, pending, files)
    delete_files(session.files, files)
    if metadata is not None:
        metadata.commit(MetadataCommit(session, snapshot, inflight.request_time, "rollback", deleted=files))
    complete_rollback(session, snapshot, inflight, pending, files)
    remove_instant(session, snapshot, pending)  # last: a rollback that is complete lets the next writer repeat this
    return RollbackResult(instant, pending.action, "gone", inflight.request_time, sum(map(len, files.values())))
