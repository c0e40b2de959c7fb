"""Guard a run of a write or a table service: no other writer may undo an instant while its run is at work.

Every run keeps a heartbeat (Hudi ``HoodieHeartbeatClient``) that begins under the table's lock, whatever the kind of
lock: a writer elsewhere may not share it. A run that ends while its instant is pending leaves the heartbeat file. If
other writers are declared, the file grows old. By its age they learn that the run failed, and until then the store may
still carry out a request of the run. If no other writers are declared, the file records that its writer has ended, so
that the next write need not wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from hoodie_py.files import FileInfo, TableFiles, ask_all
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.handles import markers
from hoodie_py.writer.lock import heartbeat
from hoodie_py.writer.lock.heartbeat import Heartbeat
from hoodie_py.writer.timeline.session import WriteSession


@contextmanager
def guard_run(session: WriteSession, instant: str, *, lock_held: bool = False) -> Iterator[Heartbeat]:
    """Keep other writers from running or undoing an instant while the block runs.

    ``lock_held``: whether the caller holds the table's lock while the block is entered.

    Raises:
        ConflictError: another run is at work on the instant.
    """
    beats = Heartbeat(session.files, instant, session.settings.options)
    beats.ends_at_once = not session.multi_writer
    with ExitStack() as stack:
        # Under the lock: of two runs that start at once, the second must find the heartbeat of the first.
        with nullcontext() if lock_held else session.hold_lock():
            stack.enter_context(beats)
        yield beats


@dataclass(frozen=True, slots=True)
class Leftovers:
    """The listings of the folder of markers and of the folder of heartbeats."""

    markers: Sequence[FileInfo]
    heartbeats: Sequence[FileInfo]

    @classmethod
    def list(cls, files: TableFiles) -> Leftovers:
        """List both folders."""
        lists = (
            partial(files.list_or_empty, markers.TEMP_FOLDER),
            partial(files.list_or_empty, heartbeat.HEARTBEAT_FOLDER),
        )
        return cls(*ask_all(files, lists))


def forget_finished(session: WriteSession, now: Snapshot, found: Leftovers | None = None) -> None:
    """Remove markers and heartbeats of finished instants whose process died before it removed them.

    The caller holds the table's lock, and listed ``found`` under it; without it the folders are listed here.
    """
    files, timeline = session.files, now.timeline
    found = Leftovers.list(files) if found is None else found
    markers.remove_finished(files, timeline, found.markers)
    heartbeat.remove_finished(files, timeline, found.heartbeats, session.settings.options)
