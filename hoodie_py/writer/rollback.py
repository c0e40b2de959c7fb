"""Undo an instant that has not completed, or finish a rollback that was begun (Hudi ``BaseRollbackActionExecutor``).

* A compaction under way goes back to requested: its files and markers go, and its inflight file. A requested one is
  removed, unless writers up to table version 6 have already named log files after it.
* Any other write: its data files go, then a completed rollback instant says so, then the instant's own files. What a
  write made is told by the instant in file names; up to version 6 log files carry none, so their blocks are looked at,
  and a log file that holds other commits' blocks too is left to Java.
* What the instant did to the metadata table is taken back first; readers ignore it anyway while the instant is pending.

A rollback that was cut short, this package's or Java's, is taken up again by its plan: see ``finish_rollback``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.instants import (
    CLUSTERING,
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    INFLIGHT,
    REPLACE_COMMIT,
    REQUESTED,
    ROLLBACK,
    Instant,
)
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.attempt import undo_attempt
from hoodie_py.writer.finish_rollback import check_removable, finish_rollback, remove_instant
from hoodie_py.writer.metadata_table import undo_metadata_commit
from hoodie_py.writer.rollback_facts import PendingRollback, list_pending_rollbacks, list_rollbacks_of
from hoodie_py.writer.rollback_record import begin_rollback, complete_rollback, delete_files
from hoodie_py.writer.run_guard import guard_run
from hoodie_py.writer.session import WriteSession
from hoodie_py.writer.written_files import find_written_files

_UNDONE = (COMMIT, DELTA_COMMIT, REPLACE_COMMIT, CLUSTERING)


@dataclass(frozen=True, slots=True)
class RollbackResult:
    """What a rollback did.

    Attributes:
        instant: that was undone.
        action: of it.
        left: "requested" where it can be run again, "gone" where nothing of it is left.
        rollback: the instant that records the rollback; None where none is needed.
        files_deleted: data files that were removed.
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


def rollback(session: WriteSession, instant: str) -> RollbackResult:
    """Undo a pending instant, or finish a pending rollback.

    Args:
        session: of the writing call.
        instant: its request time, or that of a rollback that is pending.

    Raises:
        InvalidQueryError: there is no pending instant at that time.
        ConflictError: somebody is at work on it, or finished it meanwhile.
        UnsupportedFeatureError: an action, or a state, that only Java Hudi can undo.
        CommitStateUnknownError: the store did not say whether the rollback was recorded.
        StorageError: the store refused; the next rollback takes this one up.
    """
    about = _find_target(session.look(), instant)
    with guard_run(session, about) as alive, session.hold_lock() as holding:
        snapshot = session.look()
        if _find_target(snapshot, instant) != about:
            raise ConflictError("Another writer changed the instant meanwhile.", hint="Try again.", instant=instant)
        alive.set_pending(alive.heartbeat.was_there)  # Java needs to find it: see failed_writes
        alive.ensure_own(holding)
        result = _undo(session, snapshot, instant, partial(alive.ensure_own, holding))
        alive.set_pending(False)
    return result


def _undo(session: WriteSession, snapshot: Snapshot, instant: str, check: Callable[[], object]) -> RollbackResult:
    begun = _find_begun(snapshot, instant)
    if begun is not None:
        left, removed = finish_rollback(session, snapshot, begun, check, named=instant == begun.instant.request_time)
        done = begun.instant.request_time
        if not begun.target or left == ROLLBACK:
            return RollbackResult(done, ROLLBACK, "gone")
        return RollbackResult(begun.target, begun.action, left, done, removed)
    pending = _find_pending(snapshot, instant)
    if pending.action == COMPACTION:
        return _undo_compaction(session, snapshot, pending, check)
    return _undo_write(session, snapshot, pending)


def _find_begun(snapshot: Snapshot, instant: str) -> PendingRollback | None:
    """Return the pending rollback that an instant is, or that is about it."""
    return next(
        (each for each in list_pending_rollbacks(snapshot) if instant in (each.instant.request_time, each.target)), None
    )


def _find_target(snapshot: Snapshot, instant: str) -> str:
    """Return request time of the instant that is undone; a rollback without plan stands for itself."""
    begun = _find_begun(snapshot, instant)
    if begun is not None:
        return begun.target or instant
    return _find_pending(snapshot, instant).request_time


def _find_pending(snapshot: Snapshot, instant: str) -> Instant:
    found = snapshot.timeline.timeline.find(instant)
    if found is None or found.is_completed:
        state = "There is no instant" if found is None else f"The {found.action} is completed"
        known = ", ".join(each.request_time for each in snapshot.timeline.timeline.select_pending()) or "none"
        raise InvalidQueryError(f"{state} at {instant[:40]!r}.", hint=f"Pending instants: {known[:1000]}.")
    if found.action not in (COMPACTION, *_UNDONE):
        raise UnsupportedFeatureError(
            f"Rolling back a pending {found.action}.", hint="Let Java Hudi do that.", instant=instant
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
    files = find_written_files(snapshot, instant)
    undo_metadata_commit(session.files, instant)
    inflight = begin_rollback(session, snapshot, pending, files)
    delete_files(session.files, files)
    complete_rollback(session, snapshot, inflight, pending, files)
    remove_instant(session, snapshot, pending)
    return RollbackResult(instant, pending.action, "gone", inflight.request_time, sum(map(len, files.values())))
