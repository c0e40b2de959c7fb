"""The look after a completed file: did this writer still have the right to commit?

A process may sleep between its last look and its completed file, for longer than its lock and its heartbeat last. Other
writers then judge it dead and roll it back, or commit what the last look did not show. So a writer that has completed
an instant looks once more before it reports success:

* It held the lock and the heartbeat all the time, nobody has undone the instant, and no other commit overlaps: success.
* Another writer has undone the instant, or has begun to. Then this writer removes its completed file, so that all
  readers, Java's too, see what the rollback says. That is a ``ConflictError``. A commit that overlaps is handled alike.
* The lock or the heartbeat was lost, but no other writer has acted. The commit stays, as every later look finds it
  complete. It is not reported as success, but as a ``CommitStateUnknownError``.

A writer that dies before this look leaves an instant that is both completed and rolled back. ``remove_undone`` removes
its completed file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hoodie_py.errors import CommitStateUnknownError, ConflictError, FileMissingError, HoodieError
from hoodie_py.files import TableFiles, ask_all
from hoodie_py.formats.timeline.instants import REQUESTED, Instant, parse_instant_file
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.indexes.undo import undo_metadata_commit
from hoodie_py.writer.lock.heartbeat import Heartbeat
from hoodie_py.writer.lock.lock import HeldLock
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.pending import list_rollbacks_of

Check = Callable[[Snapshot], object]


@dataclass(frozen=True, slots=True)
class LastLook:
    """What the look after a completed file found.

    Attributes:
        doubt: what is wrong; None if nothing is.
        markers: paths of the files in the instant's folder of markers; None if they could not be listed.
    """

    doubt: HoodieError | None
    markers: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class CompletedInstant:
    """An instant whose completed file has just been created.

    Attributes:
        session: the session of the call.
        before: the table at the last look before the completed file.
        metadata: the metadata table; it contains the instant's entries.
        inflight: the inflight instant.
        instant: the completed instant.
        known_rollbacks: request times of rollbacks of earlier attempts.
        check: raises a HoodieError if a commit since the last look conflicts with the instant.
    """

    session: WriteSession
    before: Snapshot
    metadata: MetadataTable
    inflight: Instant
    instant: Instant
    known_rollbacks: frozenset[str]
    check: Check

    def look_again(self, holding: HeldLock, alive: Heartbeat) -> LastLook:
        """Look again, and list the instant's markers. The caller holds the lock."""
        files = self.session.files
        list_markers = partial(_list_markers, files, self.instant.request_time)
        try:
            calls: list[Callable[[], Any]] = [self.session.look, partial(_find_loss, alive, holding), list_markers]
            now, lost, markers = ask_all(files, calls)
            self.session.looks.after_commit = now
            return LastLook(self._find_undo(now) or self._find_overlap(now) or lost, markers)
        except HoodieError as error:  # a StorageError too: the completed file exists, so the write has not failed
            return LastLook(error)

    def settle(self, doubt: HoodieError) -> HoodieError:
        """Withdraw an instant in doubt if another writer undid or overlaps it, and return the error to raise.

        The caller must not hold the lock: this method takes it.
        """
        try:
            with self.session.hold_lock() as holding:
                now = self.session.look()
                # A commit that began after this one may contain its rows: withdrawing would leave that one wrong.
                problem = self._find_undo(now) or (None if self._is_built_upon(now) else self._find_overlap(now))
                if problem is not None:
                    holding.ensure_held()
                    self._withdraw_own(now)
                    return problem
        except HoodieError as error:
            doubt.add_note(f"The look after that failed, too: {error}")
        unknown = CommitStateUnknownError(
            f"The {self.instant.action} is complete, but while it was being completed another writer may have judged "
            "this one dead.",
            hint="Look whether the instant is in the table before you write again.",
            instant=self.instant.request_time,
        )
        unknown.__cause__ = doubt
        return unknown

    def _find_undo(self, now: Snapshot) -> ConflictError | None:
        """Return an error if another writer has undone the instant, or has begun to."""
        time = self.instant.request_time
        rollbacks = [each.request_time for each in list_rollbacks_of(now, time)]
        later = min(set(rollbacks) - self.known_rollbacks, default=None)
        names = now.timeline.names
        writer = self.session.open_timeline(now)
        own = {writer.locate(each).rpartition("/")[2] for each in (self.inflight, self.instant)}
        if later is None and own <= names and not self._was_run_again(names):
            return None
        return ConflictError(
            f"Another writer judged this {self.instant.action} dead and rolled it back while it was being completed.",
            hint="Nothing of it is in the table. Try again.",
            instant=time,
            rollback=later,
        )

    def _was_run_again(self, names: frozenset[str]) -> bool:
        """Whether another run has completed the instant, too. From layout 2 on each run names its file differently."""
        found = (parse_instant_file(name, 2) for name in names if name.startswith(self.instant.request_time))
        done = [each.instant for each in found if each is not None and each.instant.is_completed]
        same = [each for each in done if each.request_time == self.instant.request_time]
        return sum(each.action == self.instant.action for each in same) > 1

    def _find_overlap(self, now: Snapshot) -> HoodieError | None:
        """Return an error if a commit since the last look conflicts with this one; its writer used another lock."""
        known = {each.request_time for each in self.before.timeline.list_completed_writes()} | {
            self.instant.request_time
        }
        if all(each.request_time in known for each in now.timeline.list_completed_writes()):
            return None
        try:
            self.check(now)
        except HoodieError as error:
            return error
        return None

    def _is_built_upon(self, now: Snapshot) -> bool:
        """Whether another commit may rest on this one: its instant was requested after the completed file was created.

        Compares times of the store's clock. The instant's completion time is of no use: it was taken before a possible
        sleep.
        """
        timeline = self.session.open_timeline(now)
        since = self._read_time_made(timeline.locate(self.instant))
        known = {each.request_time for each in self.before.timeline.list_completed_writes()} | {
            self.instant.request_time
        }
        others = [each for each in now.timeline.list_completed_writes() if each.request_time not in known]
        return any(self._read_time_made(timeline.locate(replace(each, state=REQUESTED))) > since for each in others)

    def _read_time_made(self, path: str) -> int:
        try:
            return self.session.files.stat(path).modified or 0
        except FileMissingError:
            return 0

    def _withdraw_own(self, now: Snapshot) -> None:
        """Remove this run's entries in the metadata table, and the completed file."""
        try:
            if self._was_run_again(now.timeline.names):
                self.metadata.forget_own()
            else:
                undo_metadata_commit(self.session.files, self.instant.request_time)
        finally:  # in any case: while the completed file is there, readers see what another writer has undone
            self.session.open_timeline(now).remove(self.instant)


def _list_markers(files: TableFiles, instant: str) -> Sequence[str] | None:
    try:
        return Markers(files, instant).list_files()
    except HoodieError:  # the commit stands; the removal of the markers lists them again, and warns
        return None


def _find_loss(alive: Heartbeat, holding: HeldLock) -> HoodieError | None:
    """Return an error if this run has lost its lock or its heartbeat, or the store does not say."""
    try:
        alive.ensure_own(holding)
    except HoodieError as error:
        return error
    return None


def remove_undone(session: WriteSession, snapshot: Snapshot) -> bool:
    """Remove the completed files of writes that a rollback has undone, and return whether there were any.

    Raises:
        ConflictError: another writer holds the lock.
        StorageError: the store refused.
    """
    if not snapshot.timeline.undone:
        return False
    with session.hold_lock() as holding:
        now = session.look()
        holding.ensure_held()
        for instant in now.timeline.undone:
            if now.timeline.find(instant.request_time, instant.action) is None:
                undo_metadata_commit(session.files, instant.request_time)
            session.open_timeline(now).remove(instant)
    return True
