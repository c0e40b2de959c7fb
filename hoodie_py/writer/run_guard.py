"""One run of a write or table service at a time: nobody may take an attempt away that is still at work.

Every run keeps a heartbeat, begun under the table's lock, whatever the lock: another writer may share the table without
sharing it. A run that ends while its instant is pending leaves the heartbeat. Beside declared writers it grows old
there: that is how they know that it failed, and until then an answer that is late may yet come. Where none are declared
it says that its writer has ended, so that the next write need not wait.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer import heartbeat, markers
from hoodie_py.writer.heartbeat import Heartbeat
from hoodie_py.writer.lock import HeldLock
from hoodie_py.writer.session import WriteSession


@dataclass(frozen=True, slots=True)
class GuardedRun:
    """A run that is at work."""

    heartbeat: Heartbeat

    def ensure_alive(self) -> None:
        """Check that nobody may have taken this run for dead.

        Raises:
            ConflictError: its heartbeat stopped.
        """
        self.heartbeat.ensure_alive()

    def ensure_own(self, holding: HeldLock) -> None:
        """Check that this run has the lock still, and that nobody may have taken it for dead.

        Both, as a lock may be one that the other side does not see, and ask again after each look at the store that
        decides what to delete: a process may sleep in between, and another may do the same instant anew meanwhile.

        Raises:
            ConflictError: the lock is lost, or the heartbeat stopped.
            StorageError: the store did not say.
        """
        holding.ensure_held()
        self.ensure_alive()

    def set_pending(self, is_pending: bool) -> None:
        """Say whether the instant would be left pending if the run ended now."""
        self.heartbeat.stays = is_pending


@contextmanager
def guard_run(session: WriteSession, instant: str, *, lock_held: bool = False) -> Iterator[GuardedRun]:
    """Keep others from running or undoing an instant while the block runs.

    Args:
        session: of the writing call.
        instant: request time.
        lock_held: whether the caller holds the table's lock while the block is entered.

    Raises:
        ConflictError: another run is at work on it.
    """
    beats = Heartbeat(session.files, instant, session.settings.options)
    beats.ends_at_once = not session.multi_writer
    with nullcontext() if lock_held else session.hold_lock():
        beats.__enter__()
    try:
        yield GuardedRun(beats)
    finally:
        _stop(beats)


def forget_finished(session: WriteSession, now: Snapshot) -> None:
    """Remove markers and heartbeats of runs that have ended: their process did before it could. Call it under the lock.

    Args:
        session: of the writing call.
        now: the table as it is.
    """
    timeline = now.timeline.timeline
    markers.remove_finished(session.files, timeline)
    heartbeat.remove_finished(session.files, timeline, session.settings.options)


def _stop(beats: Heartbeat) -> None:
    try:
        beats.__exit__(None, None, None)
    except HoodieError as error:
        # What the run did is done; to raise here would hide how it ended.
        warnings.warn(f"A heartbeat was not removed: {error}", HoodieWarning, stacklevel=4)
