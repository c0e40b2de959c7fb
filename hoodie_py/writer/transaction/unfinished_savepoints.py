"""Remove savepoints whose creation was cut short.

Their inflight file never counts as a savepoint. But cleans keep the files of its commit, as another process may
complete it.
"""

from __future__ import annotations

from hoodie_py.formats.timeline.instants import SAVEPOINT, Instant
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.lock.heartbeat import read_life
from hoodie_py.writer.timeline.session import WriteSession


def remove_unfinished_savepoints(session: WriteSession, snapshot: Snapshot) -> bool:
    """Remove inflight files of savepoints that are old enough to count as dead writes; return whether there were any.

    Raises:
        ConflictError: another writer holds the lock.
        StorageError: the store refused.
    """
    if not list_unfinished_savepoints(session, snapshot):
        return False
    with session.hold_lock() as holding:
        now = session.look()
        timeline = session.open_timeline(now)
        for instant in list_unfinished_savepoints(session, now):
            holding.ensure_held()
            timeline.remove(instant)
    return True


def list_unfinished_savepoints(session: WriteSession, snapshot: Snapshot) -> list[Instant]:
    """Return the savepoints whose inflight files are old enough to count as dead writes."""
    timeline = session.open_timeline(snapshot)
    pending = snapshot.timeline.select_pending().select_actions(SAVEPOINT)
    options = session.settings.options
    return [
        each for each in pending if read_life(session.files, each.request_time, timeline.locate(each), options).is_over
    ]
