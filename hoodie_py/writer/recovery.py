"""Undo writes that failed before the next one begins (Hudi ``rollbackFailedWrites``).

Only a write whose heartbeat stopped has failed; one without heartbeat may just have begun, but not if that is long ago.
No lock says more: the other writer may not see it. A write that may be at work is passed over where other writers are
declared, and else keeps this one out. Compactions and clusterings stay: they are run again.

A rollback that was begun is finished first, whoever began it: Java does so before each write, and cannot once something
later has completed.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from hoodie_py.errors import ConflictError, InvalidQueryError, InvalidTableError
from hoodie_py.formats.instants import COMMIT, COMPACTION, DELTA_COMMIT, REPLACE_COMMIT, Instant
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.heartbeat import WriterLife, read_life
from hoodie_py.writer.refusals import check_writable, is_clustering, list_pending_writes
from hoodie_py.writer.rollback import rollback
from hoodie_py.writer.rollback_facts import PendingRollback, list_pending_rollbacks, list_rollbacks_of
from hoodie_py.writer.second_look import remove_undone
from hoodie_py.writer.session import WriteSession

_MOST_FAILED = 200  # each takes a listing of the table, and the clock's time to let others see it


def undo_failed_writes(session: WriteSession) -> Snapshot:
    """Roll back what failed writers left and return the table as it is then.

    Raises:
        ConflictError: a pending write is at work, or may be.
        UnsupportedFeatureError: the table is one that is not written, or only Java Hudi can roll a write back.
        StorageError: the store refused.
    """
    snapshot = session.look()
    check_writable(snapshot)
    if remove_undone(session, snapshot) | finish_rollbacks(session, snapshot):
        snapshot = session.look()
    pending = list_pending_writes(snapshot)
    _check_number(pending)
    failed = [each for each in pending if _has_failed(session, snapshot, each)]
    for instant in failed:
        with suppress(InvalidQueryError):  # it was completed or undone since the look
            rollback(session, instant.request_time)
    return session.look() if pending else snapshot


def finish_rollbacks(session: WriteSession, snapshot: Snapshot, compaction: str | None = None) -> bool:
    """Finish rollbacks that were begun; beside other writers, those that began long ago. Say whether there were any.

    Args:
        session: of the writing call.
        snapshot: the table as it is now.
        compaction: request time of a compaction that is about to run, whose own rollback is finished too.

    Raises:
        ConflictError: a writer is at work on what is rolled back.
        UnsupportedFeatureError: one that cannot be finished here.
        StorageError: the store refused.
    """
    begun = list_rollbacks_to_finish(snapshot, compaction)
    if session.multi_writer:
        begun = [each for each in begun if _is_old(session, snapshot, each.instant)]
    for each in begun:
        with suppress(InvalidQueryError):  # it was finished since the look
            rollback(session, each.instant.request_time if not each.target else each.target)
    return bool(begun)


def list_rollbacks_to_finish(snapshot: Snapshot, compaction: str | None = None) -> list[PendingRollback]:
    """Return rollbacks that must be finished before something else completes, those of the newest instants first.

    The rollback of a pending compaction or clustering need not be, save for the compaction that is named: whoever runs
    that instant finishes it.
    """
    begun = [each for each in list_pending_rollbacks(snapshot) if not _can_wait(snapshot, each, compaction)]
    return sorted(begun, key=lambda each: each.target, reverse=True)


def _can_wait(snapshot: Snapshot, begun: PendingRollback, compaction: str | None) -> bool:
    found = snapshot.timeline.timeline.find(begun.target, COMMIT, DELTA_COMMIT, REPLACE_COMMIT)
    if found is None:
        return False
    if begun.action == COMPACTION:
        return found.is_completed or begun.target != compaction
    return not found.is_completed and is_clustering(snapshot, found)


def _is_old(session: WriteSession, snapshot: Snapshot, rollback: Instant) -> bool:
    path = session.open_timeline(snapshot).locate(rollback)
    return read_life(session.files, rollback.request_time, path, session.settings.options).is_over


def _check_number(failed: list[Instant]) -> None:
    if len(failed) > _MOST_FAILED:
        raise InvalidTableError(
            f"{len(failed)} writes are pending, more than the {_MOST_FAILED} that one write rolls back",
            hint="If they are real, roll them back one by one, or let Java Hudi do it.",
            instant=failed[0].request_time,
        )


def _has_failed(session: WriteSession, snapshot: Snapshot, instant: Instant) -> bool:
    """Whether a pending write has failed; it raises where one that has not keeps this writer out."""
    begun = session.open_timeline(snapshot).locate(instant)
    life = read_life(session.files, instant.request_time, begun, session.settings.options)
    if life.is_over or any(each.is_completed for each in list_rollbacks_of(snapshot, instant.request_time)):
        return True  # after a completed rollback only the instant's own files were left to remove
    if session.multi_writer or _has_ended(session, instant):
        return False
    raise _make_kept_out_error(instant, life)


def _has_ended(session: WriteSession, instant: Instant) -> bool:
    """Whether a write is pending no longer: it went on between the look at the timeline and that for its life."""
    now = session.look().timeline.timeline.find(instant.request_time, instant.action)
    return now is None or now.is_completed


def _make_kept_out_error(instant: Instant, life: WriterLife) -> ConflictError:
    until = datetime.fromtimestamp(life.until, UTC)
    if life.is_alive:
        return ConflictError(
            "A writer keeps the instant alive.",
            hint="Write once it has finished. If it was killed on another machine, it is taken for dead after "
            f"{until:%H:%M:%S} UTC.",
            action=instant.action,
            instant=instant.request_time,
        )
    return ConflictError(
        "A pending write began so short a time ago that its writer may be at work, although it shows no sign of life.",
        hint=f"Write after {until:%H:%M:%S} UTC; or, if its writer certainly is no more, roll the instant back.",
        action=instant.action,
        instant=instant.request_time,
    )
