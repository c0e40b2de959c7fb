"""One run of a table service at a time: nobody may take an attempt away that is still at work.

Processes of this machine exclude each other by a lock that dies with its process. Beside writers elsewhere the run also
keeps a heartbeat, as Java's does, begun under the table's lock. A write that ends while its instant is pending leaves
the heartbeat to grow old: that is how others know that it failed, and until then an answer that is late may yet come.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.formats.names import marker_folder
from hoodie_py.writer.heartbeat import Heartbeat
from hoodie_py.writer.lock import held
from hoodie_py.writer.machine_lock import MachineLock
from hoodie_py.writer.session import WriteSession


@dataclass(frozen=True, slots=True)
class Alive:
    """A run that is at work."""

    heartbeat: Heartbeat | None

    def ensure_alive(self) -> None:
        """Check that nobody may have taken this run for dead.

        Raises:
            ConflictError: its heartbeat stopped.
        """
        if self.heartbeat is not None:
            self.heartbeat.ensure_alive()

    def pending(self, is_pending: bool) -> None:
        """Say whether the instant would be left pending if the run ended now."""
        if self.heartbeat is not None:
            self.heartbeat.stays = is_pending


@contextmanager
def run_guard(session: WriteSession, instant: str, *, lock_held: bool = False) -> Iterator[Alive]:
    """Keep others from running or undoing an instant while the block runs.

    Args:
        session: of the writing call.
        instant: request time.
        lock_held: whether the caller holds the table's lock while the block is entered.

    Raises:
        ConflictError: another run is at work on it.
    """
    with held(MachineLock(session.files.sub(marker_folder(instant))), timeout=0):
        if not session.multi_writer:
            yield Alive(None)
            return
        heartbeat = Heartbeat(session.files, instant, session.settings.options)
        with nullcontext() if lock_held else session.locked():
            heartbeat.__enter__()
        try:
            yield Alive(heartbeat)
        finally:
            _stop(heartbeat)


def _stop(heartbeat: Heartbeat) -> None:
    try:
        heartbeat.__exit__(None, None, None)
    except HoodieError as error:
        # What the run did is done; to raise here would hide how it ended.
        warnings.warn(f"A heartbeat was not removed: {error}", HoodieWarning, stacklevel=4)
