"""PlannedService: a table service that saves a plan, and carries it out at once or later.

Any process may carry a saved plan out, also for a second time. So a run checks that the plan is still there and its
own, begins by removing what an earlier attempt left, and puts the instant back to requested if it fails. The steps are
those of ``commit_protocol``. They stand here once; a service says what its plans, tasks and files are.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar, final

from hoodie_py.errors import ConflictError, HoodieError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.files import ask_together
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.formats.timeline.instants import INFLIGHT, REQUESTED, Instant
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.lock.heartbeat import Heartbeat
from hoodie_py.writer.lock.lock import HeldLock
from hoodie_py.writer.precombine.merge_options import check_merger
from hoodie_py.writer.refusals import check_pending_writes
from hoodie_py.writer.rollback.attempt import (
    list_attempt,
    remove_files,
    remove_files_of_run,
    select_files,
    undo_attempt,
)
from hoodie_py.writer.rollback.recovery import finish_rollbacks
from hoodie_py.writer.rollback.rollback import rollback
from hoodie_py.writer.services.due_service import DueService
from hoodie_py.writer.services.service_run import Done, Found, Opened, Piece, Plan, Runner, Saved, Threads
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time
from hoodie_py.writer.transaction.commit_protocol import (
    FoundFiles,
    begin_instant,
    complete_instant,
    take_back_on_failure,
    turn_missing_into_conflict,
)
from hoodie_py.writer.transaction.pending import list_rollbacks_of
from hoodie_py.writer.transaction.run_guard import Leftovers, forget_finished, guard_run

Result = TypeVar("Result")


@dataclass(frozen=True)
class PlannedService(ABC, Generic[Plan, Found, Piece, Result]):
    """A kind of plan, and how it is carried out.

    Attributes:
        name: as in messages and options of the command line, such as "log compaction".
        writes_files: a service that writes files begins anew with each run, and goes back to requested if a run fails;
            another one goes on where the last run ended.
        may_run_beside_writes: the plan may be carried out beside older pending writes also up to table version 6.
    """

    name: ClassVar[str]
    writes_files: ClassVar[bool] = True
    may_run_beside_writes: ClassVar[bool] = False

    # The steps, which no service repeats or changes

    @final
    def schedule(self, session: WriteSession, *, only_if_due: bool = False) -> str | None:
        """Save a plan and return its instant; None if there is nothing to do, or ``only_if_due`` and it is not.

        Raises:
            UnsupportedFeatureError: the table has a feature that is not handled, or its timeline is ahead of the clock.
            MergeError: the table needs a merger that was not supplied.
            ConflictError: another writer holds the lock, or a pending write is in the way.
            InvalidQueryError: an option has a bad value.
            CommitStateUnknownError: the store did not say whether the plan was saved.
        """
        recovered = session.look()
        self.check_plannable(session, recovered)
        finish_rollbacks(session, recovered)
        return self.save_plan(session, only_if_due=only_if_due)

    @final
    def save_plan(self, session: WriteSession, *, only_if_due: bool = False) -> str | None:
        """Do what ``schedule`` does under the lock; rollbacks were finished before."""
        with session.hold_lock() as holding:
            snapshot, left = ask_together(session.files, session.look, partial(Leftovers.list, session.files))
            if only_if_due and not self.has_enough_commits(session, snapshot):
                return None
            if self.writes_files:
                forget_finished(session, snapshot, left)
            instant = session.clock.take(find_newest_time(snapshot.timeline))
            planned = self.make_plan(session, snapshot, instant)
            if planned is None:
                return None
            action, content = planned
            holding.ensure_held()
            session.open_timeline(snapshot).request(instant, action, content)
        return instant

    @final
    def run(
        self,
        session: WriteSession,
        instant: str | None = None,
        *,
        runner: Runner | None = None,
        merger: Merger | None = None,
        override_merger: bool = False,
    ) -> Result:
        """Carry out a pending plan. ``instant`` is its request time, None for the oldest one; ``runner`` None means
        threads of this process.

        Raises:
            ConflictError: another writer is at work on the plan, rolled it back, or changed its file groups.
            InvalidQueryError: no plan is pending at that time, or the merger is not the table's.
            InvalidTableError: the plan does not fit the table.
            UnsupportedFeatureError: the table or the plan has a feature that is not handled.
            MergeError: the table needs a merger that was not supplied, or versions do not merge.
            CommitStateUnknownError: the store did not say whether a file was written; nothing was taken back.
            StorageError: the store refused; the plan is back to requested, or the next run goes on with it.
        """

        def act(session: WriteSession) -> Result:
            began = time.monotonic()
            snapshot = self._recover(session, instant)
            check_merger(snapshot.config, merger, override=override_merger)
            chosen = self._choose(snapshot, instant)
            if chosen is None:
                return self.sum_up(None)
            return self.sum_up(self.carry_out(session, snapshot, chosen.request_time, runner, merger, began))

        self._check_runner(runner)
        return watch_calls(self.name.replace(" ", "_"))(act)(session)

    @final
    def finish(self, session: WriteSession, instant: str, *, runner: Runner | None = None) -> Result:
        """Carry out a plan that another writer left, with the session's merger if it is the table's own. Errors are
        those of ``run``; a plan that is gone is a conflict.
        """

        def act(session: WriteSession) -> Result:
            began = time.monotonic()
            snapshot = self._recover(session, instant)
            own = session.find_own_merger(snapshot.config)
            return self.sum_up(self.carry_out(session, snapshot, instant, runner, own, began))

        self._check_runner(runner)
        return watch_calls(self.name.replace(" ", "_"))(act)(session)

    @final
    def carry_out(
        self,
        session: WriteSession,
        snapshot: Snapshot,
        instant: str,
        runner: Runner | None = None,
        merger: Merger | None = None,
        began: float | None = None,
    ) -> Done[Plan, Found, Piece] | None:
        """Carry out the pending plan of a request time; ``snapshot`` is the last look. Return None if its file was
        empty: then it is gone, as Java does it. Errors are those of ``run``.
        """
        began = time.monotonic() if began is None else began
        MetadataTable.check(snapshot, session.settings.metadata_mode)  # before a heartbeat leaves its folder
        try:
            with turn_missing_into_conflict(session, snapshot), guard_run(session, instant) as alive:
                opened = self._begin(session, instant, merger, alive, began)
                if opened is None:
                    return None
                guard: AbstractContextManager[None] = nullcontext()
                if self.writes_files:
                    guard = take_back_on_failure(partial(self.put_back, opened, alive))
                with guard:
                    results = self.run_tasks(opened, runner or Threads())
                    completed = complete_instant(session, alive, _Completion(self, opened, results))
                if self.writes_files:
                    text = f"The {self.name} is complete"
                    completed.remove_leftovers(results, text, opened.facts.run_id)
                self.confirm(opened)
        except HoodieError as error:
            if self.is_hopeless(error):
                rollback(session, instant)  # no later run could carry it out
            raise
        return Done(opened, results, completed.completion_time, time.monotonic() - began)

    @final
    def put_back(self, opened: Opened[Plan, Found, Piece], alive: Heartbeat, error: BaseException) -> None:
        """Take a failed run back to requested, and note on the error what could not be removed."""
        session = opened.session
        try:
            remove_files_of_run(session.files, opened.time, opened.facts.run_id)
            with session.hold_lock() as holding:
                snapshot = session.look()
                found = snapshot.timeline.find(opened.time, opened.instant.comparable_action)
                if found is not None and found.action == opened.instant.action and found.state == INFLIGHT:
                    self.undo(session, snapshot, found, opened.places, partial(alive.ensure_own, holding))
        except HoodieError as problem:
            error.add_note(
                f"What the {self.name} wrote was not all removed: {problem} The next run of it will do that."
            )

    def _check_runner(self, runner: Runner | None) -> None:
        if runner is not None and not isinstance(runner, Runner):
            raise UnsupportedFeatureError(
                f"{self.name.capitalize()} by an engine of type {type(runner).__name__}.",
                hint="Leave it out, or give one with run().",
            )

    def _recover(self, session: WriteSession, instant: str | None) -> Snapshot:
        """Finish pending rollbacks, that of the plan too, and return the table after that."""
        snapshot = session.look()
        if instant is None and not self.may_have_plans(snapshot):
            return snapshot
        self.check_table(session, snapshot)
        if not self.writes_files:
            return snapshot
        pending = self.list_pending(snapshot) if instant is None else ()
        chosen = instant or (pending[0].request_time if pending else None)
        return session.look() if finish_rollbacks(session, snapshot, chosen) else snapshot

    def _choose(self, snapshot: Snapshot, instant: str | None) -> Instant | None:
        """Return the pending instant of a request time; without a time the oldest one, None if there is none.

        Raises:
            InvalidQueryError: nothing is pending at that time.
        """
        pending = self.list_pending(snapshot)
        if instant is None:
            return pending[0] if pending else None
        found = next((each for each in pending if each.request_time == instant), None)
        if found is None:
            other = snapshot.timeline.find(instant)
            state = (
                f"There is no {self.name}" if other is None else f"A {other.action} is {other.state}, no pending plan,"
            )
            known = ", ".join(each.request_time for each in pending) or "none"
            raise InvalidQueryError(f"{state} at {instant[:40]!r}.", hint=f"Pending {self.name}s: {known[:1000]}.")
        return found

    def _begin(
        self, session: WriteSession, instant: str, merger: Merger | None, alive: Heartbeat, began: float
    ) -> Opened[Plan, Found, Piece] | None:
        """Check the plan and make its instant inflight, under the lock."""
        with session.hold_lock() as holding:
            snapshot, left = ask_together(session.files, session.look, partial(Leftovers.list, session.files))
            pending = next((each for each in self.list_pending(snapshot) if each.request_time == instant), None)
            if pending is None:
                raise ConflictError(f"Another writer finished the {self.name}, or took it back.", instant=instant)
            plan = self.read_plan(snapshot, pending)
            if plan is None:
                holding.ensure_held()
                session.open_timeline(snapshot).remove_pending(pending)  # it has changed nothing
                return None
            self._check(session, snapshot, instant)
            MetadataTable.check(snapshot, session.settings.metadata_mode)
            saved = Saved(session, snapshot, replace(pending, state=REQUESTED), plan)
            opened = replace(self.open(saved, self.find(saved), merger), began=began)
            if self.writes_files:
                opened = replace(opened, known_rollbacks=_list_known_rollbacks(snapshot, instant))
                holding.ensure_held()
                forget_finished(session, snapshot, left)
                self._remove_attempt(opened, snapshot, pending, alive, holding)
            holding.ensure_held()
            if self.writes_files or pending.state == REQUESTED:
                begin_instant(session, snapshot, opened.instant, alive, holding)
        return opened

    def _remove_attempt(
        self,
        opened: Opened[Plan, Found, Piece],
        snapshot: Snapshot,
        pending: Instant,
        alive: Heartbeat,
        holding: HeldLock,
    ) -> None:
        """Remove what an earlier attempt left."""
        session = opened.session
        self.undo(session, snapshot, pending, opened.places, partial(alive.ensure_own, holding))
        for folder in (METADATA_FOLDER, *sorted({path for path, _ in opened.places})):
            session.files.remove_scratch(folder)  # temporary files that killed writers left on a local disk

    def _check(self, session: WriteSession, snapshot: Snapshot, instant: str) -> None:
        """Refuse to go on with a table of the wrong kind, or beside what is in the way."""
        self.check_table(session, snapshot)
        if not self.writes_files:
            return
        if not self.may_run_beside_writes:
            check_pending_writes(snapshot, instant)
        running = [each for each in list_rollbacks_of(snapshot, instant) if not each.is_completed]
        if running:
            raise ConflictError(
                f"A rollback of the {self.name} is under way.", instant=instant, rollback=running[0].request_time
            )

    # What a service may do in another way

    def check_plannable(self, session: WriteSession, snapshot: Snapshot) -> None:
        """Refuse a table or options for which no plan can be made. Errors are those of ``schedule``."""
        self.check_table(session, snapshot)

    def has_enough_commits(self, session: WriteSession, snapshot: Snapshot) -> bool:
        """Say whether enough commits came since the last run, as the options ask."""
        return True

    def with_upkeep_options(self, session: WriteSession) -> WriteSession:
        """Return the session with the options that hold where nobody asked for this service by its name."""
        return session

    def may_have_plans(self, snapshot: Snapshot) -> bool:
        """Say whether a table of this kind can have plans."""
        return True

    def run_tasks(self, opened: Opened[Plan, Found, Piece], runner: Runner) -> list[TaskResult]:
        """Run all tasks, the largest first, and return the results of their files. First attempts count."""
        done: dict[Hashable, tuple[TaskResult, ...]] = {}
        tasks = sorted(opened.tasks, key=lambda task: task.size, reverse=True)
        for key, results in map(self.split, runner.run(tasks, lambda _: None)):
            done.setdefault(key, results)
        if done.keys() != {task.key for task in tasks}:
            raise ConflictError("The engine did not run every task.", instant=opened.time)
        return [result for results in done.values() for result in results]

    def split(self, outcome: Any) -> tuple[Hashable, tuple[TaskResult, ...]]:
        """Return the key of the task that has this outcome, and the results of its files."""
        return outcome.group, (outcome,)

    def check_still_ours(self, opened: Opened[Plan, Found, Piece], now: Snapshot) -> Instant:
        """Check that no other writer finished the instant, changed its plan or its file groups, or rolled it back.
        Return the inflight instant. Raises ConflictError if one did.
        """
        begun, instant = opened.instant, opened.time
        found = now.timeline.find(instant, begun.comparable_action)
        if found is None or found.action != begun.action or found.state != INFLIGHT:
            state = "gone" if found is None else found.state
            raise ConflictError(f"Another writer changed the {self.name} while it ran: it is {state}.", instant=instant)
        if self.read_plan(now, found) != opened.plan:
            raise ConflictError(f"Another writer changed the {self.name}'s plan while it ran.", instant=instant)
        later = _list_known_rollbacks(now, instant).difference(opened.known_rollbacks)
        if later:
            raise ConflictError(f"Another writer rolled the {self.name} back.", instant=instant, rollback=min(later))
        self._check(opened.session, now, instant)
        self.find(Saved(opened.session, now, found, opened.plan), opened.found)
        return found

    def list_files(self, opened: Opened[Plan, Found, Piece]) -> FoundFiles | None:
        """Return what ``settle`` decides by; None if it lists files itself."""
        return list_attempt(opened.session.files, opened.time, opened.places)

    def settle(
        self,
        opened: Opened[Plan, Found, Piece],
        results: Sequence[TaskResult],
        found: FoundFiles | None,
        ensure_own: Callable[[], None],
    ) -> None:
        """Check the files of the results, and remove those of other attempts. Raises ConflictError."""
        files, instant = opened.session.files, opened.time
        found = list_attempt(files, instant, opened.places) if found is None else found
        listed = select_files(found, instant, opened.places)
        written = {path: size for result in results for path, size in result.sizes.items()}
        for path, size in written.items():
            if listed.get(path) != size:
                raise ConflictError(
                    f"A file of the {self.name} was removed or changed while it ran.", instant=instant, path=path
                )
        remove_files(files, instant, opened.places, keep=written, check=ensure_own, found=found)

    def undo(
        self,
        session: WriteSession,
        snapshot: Snapshot,
        pending: Instant,
        places: Sequence[GroupKey],
        check: Callable[[], object],
    ) -> None:
        """Take an attempt back to requested. ``check`` raises if the run has lost the lock or its heartbeat; call it
        between each listing and the removal.
        """
        undo_attempt(session, snapshot, pending, places, check)

    def confirm(self, opened: Opened[Plan, Found, Piece]) -> None:
        """Do what comes after the completed file; a failure is a warning."""

    def is_hopeless(self, error: HoodieError) -> bool:
        """Say whether no later run can carry the plan out, so that it is rolled back."""
        return False

    # What a service is

    @abstractmethod
    def judge(self, session: WriteSession, snapshot: Snapshot, judged: Mapping[str, DueService]) -> DueService:
        """Judge by the rule that plans it after a write, by Hudi's keys and defaults. ``judged`` has the services that
        come before it, by name. Errors are those of ``schedule``.
        """

    @abstractmethod
    def check_table(self, session: WriteSession, snapshot: Snapshot) -> None:
        """Refuse a table that the service cannot handle. Raises UnsupportedFeatureError or MergeError."""

    @abstractmethod
    def make_plan(self, session: WriteSession, snapshot: Snapshot, instant: str) -> tuple[str, bytes] | None:
        """Return the action and the content of the requested file; None: there is nothing to do. ``instant`` is later
        than every time on the timeline. Errors are those of ``schedule``.
        """

    @abstractmethod
    def list_pending(self, snapshot: Snapshot) -> Sequence[Instant]:
        """Return the instants of the pending plans, oldest first."""

    @abstractmethod
    def read_plan(self, snapshot: Snapshot, instant: Instant) -> Plan | None:
        """Return a pending plan; None if its file is empty. Raises CorruptFileError or InvalidTableError."""

    @abstractmethod
    def find(self, saved: Saved[Plan], earlier: Found | None = None) -> Found:
        """Return what the plan names, as it is in the table. ``earlier``: what was found when the run began.

        Raises:
            ConflictError: another writer changed it.
            InvalidTableError: the plan does not fit the table.
            UnsupportedFeatureError: the plan has a feature that is not handled.
        """

    @abstractmethod
    def open(self, saved: Saved[Plan], found: Found, merger: Merger | None) -> Opened[Plan, Found, Piece]:
        """Make the tasks of a run. Raises MergeError if the table needs a merger that was not supplied."""

    @abstractmethod
    def describe(self, opened: Opened[Plan, Found, Piece], results: Sequence[TaskResult]) -> MetadataCommit:
        """Return what the run does to the table, for the metadata table."""

    @abstractmethod
    def make_content(self, opened: Opened[Plan, Found, Piece], results: Sequence[TaskResult], now: Snapshot) -> bytes:
        """Return the content of the completed file."""

    @abstractmethod
    def check_overlap(self, opened: Opened[Plan, Found, Piece], before: Snapshot, after: Snapshot) -> None:
        """Raise a HoodieError if a commit between two snapshots conflicts with the run."""

    @abstractmethod
    def sum_up(self, done: Done[Plan, Found, Piece] | None) -> Result:
        """Return the result for the caller; None: there was nothing to do."""


AnyService = PlannedService[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class _Completion:
    """How a run completes."""

    service: AnyService
    opened: Opened[Any, Any, Any]
    results: Sequence[TaskResult]

    @property
    def adds_files(self) -> bool:
        """Whether Java cannot roll back an older failed write once the run has completed."""
        return self.service.writes_files

    @property
    def can_run_again(self) -> bool:
        """Whether another run tells the metadata table something else."""
        return self.service.writes_files

    @property
    def known_rollbacks(self) -> frozenset[str]:
        return self.opened.known_rollbacks

    def describe(self) -> MetadataCommit:
        return self.service.describe(self.opened, self.results)

    def check_still_ours(self, now: Snapshot) -> Instant:
        return self.service.check_still_ours(self.opened, now)

    def list_files(self) -> FoundFiles | None:
        return self.service.list_files(self.opened)

    def settle_files(self, now: Snapshot, found: FoundFiles | None, ensure_own: Callable[[], None]) -> None:
        self.service.settle(self.opened, self.results, found, ensure_own)

    def make_content(self, now: Snapshot) -> bytes:
        return self.service.make_content(self.opened, self.results, now)

    def check_overlap(self, before: Snapshot, after: Snapshot) -> None:
        self.service.check_overlap(self.opened, before, after)


def _list_known_rollbacks(snapshot: Snapshot, instant: str) -> frozenset[str]:
    return frozenset(each.request_time for each in list_rollbacks_of(snapshot, instant))
