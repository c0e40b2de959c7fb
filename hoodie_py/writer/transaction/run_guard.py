"""Guard a run of a write or table service: no other writer may undo an instant while its run is at work.

Every run keeps a heartbeat (Hudi ``HoodieHeartbeatClient``) that begins under the table's lock. It does so with every
kind of lock, as a writer elsewhere may not share the lock. A run that ends while its instant is pending leaves the
heartbeat file. If other writers are declared, the file grows old: so they learn that the run failed, and until then the
store may still carry out a request of the run. If none are declared, the file says that its writer has ended, so that
the next write need not wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.handles import markers
from hoodie_py.writer.lock import heartbeat
from hoodie_py.writer.lock.heartbeat import Heartbeat
from hoodie_py.writer.lock.lock import HeldLock
from hoodie_py.writer.timeline.session import WriteSession


@dataclass(frozen=True, slots=True)
class GuardedRun:
    """A run that is at work, with its heartbeat."""

    heartbeat: Heartbeat

    def ensure_alive(self) -> None:
        """Check that no other writer can have judged this run dead.

        Raises:
            ConflictError: its heartbeat stopped.
        """
        self.heartbeat.ensure_alive()

    def ensure_own(self, holding: HeldLock) -> None:
        """Check that this run still has the lock, and that no other writer can have judged it dead.

        It takes both checks, as the other writer may not use the same lock. Call it after each listing that decides
        what to delete: this process may have slept, and another one may have run the same instant again.

        Raises:
            ConflictError: the lock is lost, or the heartbeat stopped.
            StorageError: the store did not answer.
        """
        holding.ensure_held()
        self.ensure_alive()

    def set_pending(self, is_pending: bool) -> None:
        """Set whether the instant stays pending if the run ends now; the heartbeat file stays then."""
        self.heartbeat.stays = is_pending


@contextmanager
def guard_run(session: WriteSession, instant: str, *, lock_held: bool = False) -> Iterator[GuardedRun]:
    """Keep other writers from running or undoing an instant while the block runs. ``lock_held``: the caller holds the
    table's lock while the block is entered.

    Raises:
        ConflictError: another run is at work on it.
    """
    beats = Heartbeat(session.files, instant, session.settings.options)
    beats.ends_at_once = not session.multi_writer
    with ExitStack() as stack:
        with nullcontext() if lock_held else session.hold_lock():
            stack.enter_context(beats)
        yield GuardedRun(beats)


def forget_finished(session: WriteSession, now: Snapshot) -> None:
    """Remove markers and heartbeats of finished instants whose process died before it removed them.

    Call it under the lock.
    """
    timeline = now.timeline.timeline
    markers.remove_finished(session.files, timeline)
    heartbeat.remove_finished(session.files, timeline, session.settings.options)
