"""Undo writes that failed before the next one begins (Hudi ``rollbackFailedWrites``).

Where one writer works at a time, whatever is pending has failed. Beside others only a write whose heartbeat stopped
has; one without heartbeat may just have begun, but not if that is long ago. Compactions and clusterings stay: they are
run again.
"""

from __future__ import annotations

from contextlib import suppress

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.instants import CLUSTERING, REPLACE_COMMIT, Instant
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.heartbeat import has_stopped
from hoodie_py.writer.refusals import check_writable, unfinished_writes
from hoodie_py.writer.rollback import rollback
from hoodie_py.writer.session import WriteSession
from hoodie_py.writer.write_conflicts import requested_replace


def undo_failed_writes(session: WriteSession) -> Snapshot:
    """Roll back what failed writers left and return the table as it is then.

    Raises:
        ConflictError: a pending write is at work.
        UnsupportedFeatureError: the table is one that is not written, or only Java Hudi can roll a write back.
        StorageError: the store refused.
    """
    snapshot = session.look()
    check_writable(snapshot)
    failed = pending_writes(snapshot)
    if session.multi_writer:
        failed = [each for each in failed if _has_stopped(session, snapshot, each)]
    for instant in failed:
        with suppress(InvalidQueryError):  # it was completed or undone since the look
            rollback(session, instant.request_time)
    return session.look() if failed else snapshot


def pending_writes(snapshot: Snapshot) -> list[Instant]:
    """Return writes that have not completed, oldest first: no compactions, no clusterings."""
    return [each for each in unfinished_writes(snapshot) if not _is_clustering(snapshot, each)]


def _is_clustering(snapshot: Snapshot, instant: Instant) -> bool:
    if instant.action == REPLACE_COMMIT:
        return requested_replace(snapshot, instant).is_clustering
    return instant.action == CLUSTERING


def _has_stopped(session: WriteSession, snapshot: Snapshot, instant: Instant) -> bool:
    begun = session.timeline(snapshot).path(instant)
    return has_stopped(session.files, instant.request_time, begun, session.settings.options)
