"""Undo writes that failed before the next one begins (Hudi ``rollbackFailedWrites``).

Only a write whose heartbeat stopped has failed; one without heartbeat may just have begun, but not if that is long ago.
No lock says more: the other writer may not see it. A write that may be at work is passed over where other writers are
declared, and else keeps this one out. Compactions and clusterings stay: they are run again.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from hoodie_py.errors import ConflictError, InvalidQueryError
from hoodie_py.formats.instants import CLUSTERING, REPLACE_COMMIT, Instant
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.heartbeat import Life, life_of
from hoodie_py.writer.refusals import check_writable, unfinished_writes
from hoodie_py.writer.rollback import rollback
from hoodie_py.writer.session import WriteSession
from hoodie_py.writer.write_conflicts import requested_replace


def undo_failed_writes(session: WriteSession) -> Snapshot:
    """Roll back what failed writers left and return the table as it is then.

    Raises:
        ConflictError: a pending write is at work, or may be.
        UnsupportedFeatureError: the table is one that is not written, or only Java Hudi can roll a write back.
        StorageError: the store refused.
    """
    snapshot = session.look()
    check_writable(snapshot)
    pending = pending_writes(snapshot)
    failed = [each for each in pending if _has_failed(session, snapshot, each)]
    for instant in failed:
        with suppress(InvalidQueryError):  # it was completed or undone since the look
            rollback(session, instant.request_time)
    return session.look() if pending else snapshot


def pending_writes(snapshot: Snapshot) -> list[Instant]:
    """Return writes that have not completed, oldest first: no compactions, no clusterings."""
    return [each for each in unfinished_writes(snapshot) if not _is_clustering(snapshot, each)]


def _is_clustering(snapshot: Snapshot, instant: Instant) -> bool:
    if instant.action == REPLACE_COMMIT:
        return requested_replace(snapshot, instant).is_clustering
    return instant.action == CLUSTERING


def _has_failed(session: WriteSession, snapshot: Snapshot, instant: Instant) -> bool:
    """Whether a pending write has failed; it raises where one that has not keeps this writer out."""
    begun = session.timeline(snapshot).path(instant)
    life = life_of(session.files, instant.request_time, begun, session.settings.options)
    if life.is_over:
        return True
    if session.multi_writer or _has_ended(session, instant):
        return False
    raise _kept_out(instant, life)


def _has_ended(session: WriteSession, instant: Instant) -> bool:
    """Whether a write is pending no longer: it went on between the look at the timeline and that for its life."""
    now = session.look().timeline.timeline.find(instant.request_time, instant.action)
    return now is None or now.is_completed


def _kept_out(instant: Instant, life: Life) -> ConflictError:
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
