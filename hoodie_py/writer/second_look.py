"""The look after a completed file: was the commit still this writer's to make?

A process may sleep between its last look and its completed file, longer than its lock and its heartbeat live. Others
then take it for dead, roll it back, or commit something of their own that the last look did not show. So whoever has
completed an instant looks once more before he calls it done:

* The lock was held and the heartbeat went on all the while, nobody has undone the instant or committed beside it: done.
* Somebody has undone it, or begun to: its completed file goes again, so that all readers, Java's too, see what the
  rollback says; that is a ``ConflictError``. The same where another commit meanwhile does not go with this one.
* Lock or heartbeat were lost, and nobody has come so far: the commit stands, since who looks now finds it complete. But
  it is not called done: that is a ``CommitStateUnknownError``.

A writer that dies before this look leaves an instant that is both completed and rolled back. ``remove_undone`` removes
its completed file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hoodie_py.errors import CommitStateUnknownError, ConflictError, FileMissingError, HoodieError
from hoodie_py.formats.instants import REQUESTED, Instant, parse_instant_file
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.lock import HeldLock
from hoodie_py.writer.metadata_table import MetadataTable, undo_metadata_commit
from hoodie_py.writer.rollback_facts import list_rollbacks_of
from hoodie_py.writer.run_guard import GuardedRun
from hoodie_py.writer.session import WriteSession

Check = Callable[[Snapshot], object]


@dataclass(frozen=True, slots=True)
class CompletedInstant:
    """An instant whose completed file has just been made.

    Attributes:
        session: of the writing call.
        before: the table at the last look.
        metadata: the metadata table that was told of it.
        inflight: the instant before it completed.
        instant: the instant as it is now.
        known_rollbacks: request times of rollbacks that were about an earlier attempt.
        check: raises a HoodieError where what was committed since the last look does not go with the instant.
    """

    session: WriteSession
    before: Snapshot
    metadata: MetadataTable
    inflight: Instant
    instant: Instant
    known_rollbacks: frozenset[str] = frozenset()
    check: Check | None = None

    def find_doubt(self, holding: HeldLock, alive: GuardedRun) -> HoodieError | None:
        """Look again, while the lock still is, or should be, held; return what is wrong, None where nothing is."""
        try:
            now = self.session.look()
            problem = self._find_undo(now) or self._find_overlap(now)
            if problem is None:
                alive.ensure_own(holding)
        except HoodieError as error:  # the store's as well: the commit is there, so this is no failure of the write
            return error
        return problem

    def settle(self, doubt: HoodieError) -> HoodieError:
        """Decide what becomes of an instant that is in doubt, and return the error for the caller.

        Take no lock before: this takes the table's anew.
        """
        try:
            with self.session.hold_lock() as holding:
                now = self.session.look()
                problem = self._find_undo(now) or (None if self._is_built_upon(now) else self._find_overlap(now))
                if problem is not None:
                    holding.ensure_held()
                    self._withdraw_own(now)
                    return problem
        except HoodieError as error:
            doubt.add_note(f"The look after that failed, too: {error}")
        unknown = CommitStateUnknownError(
            f"The {self.instant.action} is complete, but while it was being completed another writer may have taken "
            "this one for dead.",
            hint="Look whether the instant is in the table before anything is written again.",
            instant=self.instant.request_time,
        )
        unknown.__cause__ = doubt
        return unknown

    def _find_undo(self, now: Snapshot) -> ConflictError | None:
        """Return an error where somebody has undone the instant, or has begun to."""
        time = self.instant.request_time
        rollbacks = [each.request_time for each in list_rollbacks_of(now, time)]
        later = min(set(rollbacks) - self.known_rollbacks, default=None)
        names = self._list_names(now)
        writer = self.session.open_timeline(now)
        own = {writer.locate(each).rpartition("/")[2] for each in (self.inflight, self.instant)}
        if later is None and own <= names and not self._was_run_again(names):
            return None
        return ConflictError(
            f"Another writer took this {self.instant.action} for dead and rolled it back while it was being completed.",
            hint="Nothing of it is in the table: try again.",
            instant=time,
            rollback=later,
        )

    def _list_names(self, now: Snapshot) -> set[str]:
        return {info.name for info in self.session.files.list(now.config.find_timeline_folder())}

    def _was_run_again(self, names: set[str]) -> bool:
        """Whether another has completed the instant, too: from layout 2 on each has a file of his own."""
        found = (parse_instant_file(name, 2) for name in names)
        done = [each.instant for each in found if each is not None and each.instant.is_completed]
        same = [each for each in done if each.request_time == self.instant.request_time]
        return sum(each.action == self.instant.action for each in same) > 1

    def _find_overlap(self, now: Snapshot) -> HoodieError | None:
        """Return an error where another commit meanwhile does not go with this one: its lock was not this writer's."""
        known = {each.request_time for each in self.before.timeline.list_completed_writes()} | {
            self.instant.request_time
        }
        if self.check is None or all(each.request_time in known for each in now.timeline.list_completed_writes()):
            return None
        try:
            self.check(now)
        except HoodieError as error:
            return error
        return None

    def _is_built_upon(self, now: Snapshot) -> bool:
        """Whether another commit may rest on this one: its instant was requested after the completed file was there.

        That one goes by the store's clock; the instant's own completion time was taken before a sleep.
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
        """Take back what the metadata table was told, and the completed file."""
        try:
            if self._was_run_again(self._list_names(now)):
                self.metadata.forget_own()
            else:
                undo_metadata_commit(self.session.files, self.instant.request_time)
        finally:
            self.session.open_timeline(now).remove(self.instant)


def remove_undone(session: WriteSession, snapshot: Snapshot) -> bool:
    """Remove the completed files of writes that a rollback has undone; say whether there were any.

    Args:
        session: of the writing call.
        snapshot: the table as it is now.

    Raises:
        ConflictError: others hold the lock.
        StorageError: the store refused.
    """
    if not snapshot.timeline.timeline.undone:
        return False
    with session.hold_lock() as holding:
        now = session.look()
        holding.ensure_held()
        for instant in now.timeline.timeline.undone:
            if now.timeline.timeline.find(instant.request_time, instant.action) is None:
                undo_metadata_commit(session.files, instant.request_time)
            session.open_timeline(now).remove(instant)
    return True
