"""Undo failed writes before the next write begins (Hudi ``BaseHoodieTableServiceClient.rollbackFailedWrites``).

A write has failed if its heartbeat stopped, or if it has none and began long ago. A lock proves nothing, as the other
writer may use another lock. A pending write that may still be at work is skipped if other writers are declared;
otherwise this write is refused. Pending compactions and clusterings stay: they are run again. With the policy NEVER all
failed writes stay.

Pending rollbacks are finished first, whichever writer began them. Java does so before each write, and cannot do it once
a later instant has completed. If other writers are declared, a young rollback is left to the writer that began it:
Java's rollback fails if the timeline files that it removes are gone, and if it follows a commit, that commit seems to
have failed.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from hoodie_py.errors import ConflictError, InvalidQueryError, InvalidTableError
from hoodie_py.formats.timeline.instants import COMMIT, COMPACTION, DELTA_COMMIT, REPLACE_COMMIT, Instant
from hoodie_py.options.write import FAILED_WRITES_POLICY
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.lock.heartbeat import WriterLife, read_life
from hoodie_py.writer.refusals import check_writable
from hoodie_py.writer.rollback.rollback import rollback
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.pending import (
    PendingRollback,
    is_clustering,
    list_pending_rollbacks,
    list_pending_writes,
    list_rollbacks_of,
)
from hoodie_py.writer.transaction.second_look import remove_undone
from hoodie_py.writer.transaction.unfinished_savepoints import remove_unfinished_savepoints

_MOST_FAILED = 200  # each rollback lists the whole table and waits for the clock's skew


def undo_failed_writes(session: WriteSession, *, spare_others: bool = False) -> Snapshot:
    """Roll back failed writes and return the table after that.

    ``spare_others``: leave writes alone that may be at work, even if no other writers are declared.

    Raises:
        ConflictError: a pending write is at work, or may be.
        UnsupportedFeatureError: the table cannot be written here, or only Java Hudi can roll a write back.
        StorageError: the store refused.
    """
    snapshot = session.look()
    check_writable(snapshot)
    found = remove_undone(session, snapshot) | finish_rollbacks(session, snapshot)
    if found | remove_unfinished_savepoints(session, snapshot):
        snapshot = session.look()
    if FAILED_WRITES_POLICY.read(session.settings.options) == "NEVER":
        return snapshot
    pending = list_pending_writes(snapshot)
    _check_number(pending)
    failed = [each for each in pending if _has_failed(session, snapshot, each, spare=spare_others)]
    is_at_work = partial(_is_young, session) if session.multi_writer else None
    for instant in failed:
        with suppress(InvalidQueryError):  # since the look another writer completed or undid it, or began to undo it
            rollback(session, instant.request_time, is_at_work)
    return session.look() if pending else snapshot


def finish_rollbacks(session: WriteSession, snapshot: Snapshot, service: str | None = None) -> bool:
    """Finish pending rollbacks, and return whether there were any.

    If other writers are declared, only old rollbacks count. ``service`` is the request time of a compaction or
    clustering that is about to run; its rollback is finished, too.

    Raises:
        ConflictError: a writer is at work on an instant that is rolled back.
        UnsupportedFeatureError: a rollback cannot be finished here.
        StorageError: the store refused.
    """
    begun = list_rollbacks_to_finish(snapshot, service)
    if session.multi_writer:
        begun = [each for each in begun if not _is_young(session, snapshot, each.instant)]
    for each in begun:
        with suppress(InvalidQueryError):  # another writer finished it since the look
            rollback(session, each.instant.request_time if not each.target else each.target)
    return bool(begun)


def list_rollbacks_to_finish(snapshot: Snapshot, service: str | None = None) -> list[PendingRollback]:
    """Return the rollbacks to finish before another instant completes, rollbacks of the newest instants first.

    The rollback of a pending compaction or clustering can wait until the next run of that instant, which finishes it.
    So only the rollback of ``service`` counts.
    """
    begun = [each for each in list_pending_rollbacks(snapshot) if not _can_wait(snapshot, each, service)]
    return sorted(begun, key=lambda each: each.target, reverse=True)


def _can_wait(snapshot: Snapshot, begun: PendingRollback, service: str | None) -> bool:
    found = snapshot.timeline.find(begun.target, COMMIT, DELTA_COMMIT, REPLACE_COMMIT)
    if found is None:
        return False
    if begun.action == COMPACTION:
        return found.is_completed or begun.target != service
    return begun.target != service and not found.is_completed and is_clustering(snapshot, found)


def _is_young(session: WriteSession, snapshot: Snapshot, rollback: Instant) -> bool:
    path = session.open_timeline(snapshot).locate(rollback)
    return not read_life(session.files, rollback.request_time, path, session.settings.options).is_over


def _check_number(failed: list[Instant]) -> None:
    if len(failed) > _MOST_FAILED:
        raise InvalidTableError(
            f"{len(failed)} writes are pending, more than the {_MOST_FAILED} that one write rolls back.",
            hint="If they are real, roll them back one by one, or let Java Hudi do it.",
            instant=failed[0].request_time,
        )


def read_pending_life(session: WriteSession, snapshot: Snapshot, instant: Instant) -> WriterLife:
    """Return whether the writer of a pending instant may be at work. Raises StorageError if the store fails."""
    begun = session.open_timeline(snapshot).locate(instant)
    return read_life(session.files, instant.request_time, begun, session.settings.options)


def is_rolled_back(snapshot: Snapshot, instant: Instant) -> bool:
    """Whether a completed rollback has removed everything of a pending write except its timeline files."""
    return any(each.is_completed for each in list_rollbacks_of(snapshot, instant.request_time))


def _has_failed(session: WriteSession, snapshot: Snapshot, instant: Instant, *, spare: bool) -> bool:
    """Whether a pending write has failed. Raises ConflictError if it may be at work and no other writer is declared."""
    life = read_pending_life(session, snapshot, instant)
    if life.is_over or is_rolled_back(snapshot, instant):
        return True
    if spare or session.multi_writer or _has_ended(session, instant):
        return False
    raise _make_kept_out_error(instant, life)


def _has_ended(session: WriteSession, instant: Instant) -> bool:
    """Whether a write has completed or disappeared since the timeline was loaded."""
    now = session.look().timeline.find(instant.request_time, instant.action)
    return now is None or now.is_completed


def _make_kept_out_error(instant: Instant, life: WriterLife) -> ConflictError:
    until = datetime.fromtimestamp(life.until, UTC)
    if life.checkpoint is not None:
        return ConflictError(
            "A Flink job writes to the instant, or did when it was stopped.",
            hint="Declare the writers to write beside a job (hoodie.write.concurrency.mode). If the job has ended for "
            "good, roll the instant back; a job that runs would fail.",
            action=instant.action,
            instant=instant.request_time,
            path=life.checkpoint,
        )
    if life.is_alive:
        return ConflictError(
            "A writer keeps the instant alive.",
            hint="Write once it has finished. If it was killed on another machine, it counts as dead after "
            f"{until:%H:%M:%S} UTC.",
            action=instant.action,
            instant=instant.request_time,
        )
    return ConflictError(
        "A pending write began so short a time ago that its writer may be at work, although it shows no sign of life.",
        hint=f"Write after {until:%H:%M:%S} UTC. If its writer has certainly ended, roll the instant back.",
        action=instant.action,
        instant=instant.request_time,
    )
