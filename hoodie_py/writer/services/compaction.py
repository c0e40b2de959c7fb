"""Run a planned compaction (Hudi ``RunCompactionActionExecutor``, ``BaseHoodieTableServiceClient.completeCompaction``).

The steps are those of ``commit_protocol``. A compaction begins by a check of its plan, and by removing what an earlier
attempt left. The work is one task for each file group. On failure the compaction goes back to requested.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock as ThreadLock

from hoodie_py.errors import ConflictError, UnsupportedFeatureError
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import REQUESTED, Instant
from hoodie_py.formats.timeline.plans import CompactionPlan
from hoodie_py.formats.timeline.writers import write_commit_metadata
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.selection import select_strategy
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.base_codec import choose_codec
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.lock.heartbeat import Heartbeat
from hoodie_py.writer.output_schema import load_output_schema
from hoodie_py.writer.precombine.merge_options import check_merger, keep_if_own
from hoodie_py.writer.refusals import check_compactable, check_pending_writes
from hoodie_py.writer.rollback.attempt import undo_attempt
from hoodie_py.writer.rollback.recovery import finish_rollbacks
from hoodie_py.writer.services.compaction_plan import find_planned_slices
from hoodie_py.writer.services.compaction_report import CompactionResult, OnProgress, Progress
from hoodie_py.writer.services.compaction_task import CompactionTask
from hoodie_py.writer.services.planned_run import (
    LocalRunner,
    Runner,
    begin_planned,
    check_no_rollback,
    check_still_planned,
    choose_planned,
    list_known_rollbacks,
    make_read_options,
    make_run_facts,
    put_back,
    settle_results,
    with_schema_of,
)
from hoodie_py.writer.timeline.session import RUN_ID, WriteSession
from hoodie_py.writer.transaction.commit_protocol import (
    collect_sizes,
    collect_stats,
    complete_instant,
    remove_leftovers,
    take_back_on_failure,
    turn_missing_into_conflict,
)
from hoodie_py.writer.transaction.run_guard import guard_run

_OPERATION = "COMPACT"
_WHAT = "compaction"


@dataclass(frozen=True, slots=True)
class _OpenCompaction:
    """A compaction that has begun: the table then, its plan, its tasks, and the rollbacks of earlier attempts."""

    snapshot: Snapshot
    instant: Instant
    plan: CompactionPlan
    tasks: tuple[CompactionTask, ...]
    known_rollbacks: frozenset[str]
    schema_texts: Mapping[str, str]
    avro_schema: str
    run_id: int

    @property
    def groups(self) -> list[GroupKey]:
        """The file groups of the tasks."""
        return [task.group for task in self.tasks]


@watch_calls("compaction")
def run(
    session: WriteSession,
    instant: str | None = None,
    *,
    runner: Runner | None = None,
    merger: Merger | None = None,
    override_merger: bool = False,
    on_progress: OnProgress | None = None,
) -> CompactionResult:
    """Run a pending compaction. ``instant`` is its request time, None for the oldest pending one; ``runner`` None means
    threads of this process.

    Raises:
        ConflictError: another writer runs the compaction, rolled it back, or changed its file groups.
        InvalidQueryError: no compaction is pending at that time, or the merger is not the table's.
        InvalidTableError: the plan does not fit the table.
        UnsupportedFeatureError: the table has a feature that is not handled.
        MergeError: the table needs a merger that was not supplied, or versions do not merge.
        CommitStateUnknownError: the store did not say whether a file was written; nothing was taken back.
        StorageError: the store refused; the compaction is back to requested.
    """
    began = time.monotonic()
    if runner is not None and not isinstance(runner, Runner):
        raise UnsupportedFeatureError(
            f"Compaction by an engine of type {type(runner).__name__}.", hint="Leave it out, or give one with run()."
        )
    snapshot = _recover(session, instant)
    check_merger(snapshot.config, merger, override=override_merger)
    pending = snapshot.timeline.select_pending_compactions().instants
    chosen = choose_planned(snapshot, pending, instant, _WHAT)
    if chosen is None:
        return CompactionResult()
    MetadataTable.check(snapshot, session.settings.metadata_mode)  # before a heartbeat leaves its folder
    with turn_missing_into_conflict(session, snapshot), guard_run(session, chosen.request_time) as alive:
        begun = _begin(session, chosen.request_time, merger, alive)
        undo = partial(put_back, session, begun.instant, begun.run_id, begun.groups, alive, _WHAT)
        with take_back_on_failure(undo):
            results = _run_tasks(begun, runner or LocalRunner(), on_progress, began)
            alive.ensure_alive()
            done = complete_instant(session, alive, _CompactionCompletion(session, begun, results))
        remove_leftovers(session.files, done.request_time, results, "The compaction is complete", begun.run_id)
    completion_time = done.completion_time or ""
    return CompactionResult.of(chosen.request_time, completion_time, results, time.monotonic() - began)


def _recover(session: WriteSession, instant: str | None) -> Snapshot:
    """Finish pending rollbacks, that of the compaction too, and return the table after that."""
    snapshot = session.look()
    first = snapshot.timeline.select_pending_compactions().instants[:1]
    chosen = instant or (first[0].request_time if first else None)
    if chosen is None and not snapshot.config.is_merge_on_read:
        return snapshot  # such a table never has a plan
    check_compactable(snapshot)
    return session.look() if finish_rollbacks(session, snapshot, chosen) else snapshot


def _begin(session: WriteSession, instant: str, merger: Merger | None, alive: Heartbeat) -> _OpenCompaction:
    with session.hold_lock() as holding:
        snapshot = session.look()
        pending = snapshot.timeline.select_pending_compactions().find(instant)
        if pending is None:
            raise ConflictError("Another writer finished the compaction, or took it back.", instant=instant)
        plan = snapshot.timeline.read_compaction_plan(pending)
        _check(snapshot, instant)
        MetadataTable.check(snapshot, session.settings.metadata_mode)
        select_strategy(snapshot.config, session.settings.options, merger, writing=False)
        slices = find_planned_slices(snapshot, plan, instant)
        begun = _plan_tasks(session, snapshot, pending, plan, slices, merger)
        undo = partial(undo_attempt, session, snapshot, pending, begun.groups)
        begin_planned(session, snapshot, begun.instant, {path for path, _ in begun.groups}, undo, alive, holding)
    return begun


def _check(snapshot: Snapshot, instant: str) -> None:
    check_compactable(snapshot)
    check_pending_writes(snapshot, instant)
    check_no_rollback(snapshot, instant, _WHAT)


def _plan_tasks(
    session: WriteSession,
    snapshot: Snapshot,
    pending: Instant,
    plan: CompactionPlan,
    slices: Sequence[FileSlice],
    merger: Merger | None,
) -> _OpenCompaction:
    snapshot = with_schema_of(snapshot, pending.request_time)
    schema = load_output_schema(snapshot)
    facts = make_run_facts(session, snapshot, pending, schema, choose_codec(session.settings.file, snapshot, slices))
    options = make_read_options(session)
    tasks = tuple(
        CompactionTask(
            file_slice=each,
            info=snapshot.read_info(each).as_stored(schema.arrow, schema.defaults),
            facts=facts,
            index=index,
            merger=merger,
            options=options,
        )
        for index, each in enumerate(slices)
    )
    known = list_known_rollbacks(snapshot, pending.request_time)
    requested = replace(pending, state=REQUESTED)
    return _OpenCompaction(snapshot, requested, plan, tasks, known, schema.commit_texts, schema.avro, facts.run_id)


class _ProgressMeter:
    """Adds up the results of tasks and reports the progress."""

    def __init__(self, begun: _OpenCompaction, on_progress: OnProgress | None, began: float) -> None:
        self._sizes = {task.group: task.size for task in begun.tasks}
        self._instant = begun.instant.request_time
        self._tell = on_progress
        self._began = began
        self._guard = ThreadLock()
        self._rows = 0
        self._done: dict[GroupKey, TaskResult] = {}

    def on_rows(self, rows: int) -> None:
        """Count rows that a task wrote."""
        with self._guard:
            self._rows += rows
            self._report()

    def on_result(self, result: TaskResult) -> None:
        """Count a finished task. Of several attempts at one task the first counts."""
        with self._guard:
            self._done.setdefault(result.group, result)
            self._rows = max(self._rows, sum(each.stat.num_writes for each in self._done.values()))
            self._report()

    @property
    def results(self) -> list[TaskResult]:
        """One result for each finished file group."""
        return list(self._done.values())

    def _report(self) -> None:
        if self._tell is not None:
            self._tell(
                Progress(
                    instant=self._instant,
                    file_groups=len(self._sizes),
                    file_groups_done=len(self._done),
                    bytes_total=sum(self._sizes.values()),
                    bytes_done=sum(self._sizes[group] for group in self._done),
                    rows=self._rows,
                    seconds=time.monotonic() - self._began,
                )
            )


def _run_tasks(
    begun: _OpenCompaction, runner: Runner, on_progress: OnProgress | None, began: float
) -> list[TaskResult]:
    """Run all tasks, the largest first."""
    meter = _ProgressMeter(begun, on_progress, began)
    tasks = sorted(begun.tasks, key=lambda task: task.size, reverse=True)
    for result in runner.run(tasks, meter.on_rows):
        meter.on_result(result)
    groups = {task.group for task in begun.tasks}
    if {result.group for result in meter.results} != groups:
        raise ConflictError("The engine did not run every task.", instant=begun.instant.request_time)
    return meter.results


@dataclass(frozen=True, slots=True)
class _CompactionCompletion:
    """How a compaction completes."""

    session: WriteSession
    begun: _OpenCompaction
    results: Sequence[TaskResult]
    adds_files: bool = True
    can_run_again: bool = True

    @property
    def known_rollbacks(self) -> frozenset[str]:
        """Rollbacks of earlier attempts."""
        return self.begun.known_rollbacks

    def describe(self) -> MetadataCommit:
        """Return the new base files, and the log files that are in them."""
        return MetadataCommit(
            self.session,
            self.begun.snapshot,
            self.begun.instant.request_time,
            "compaction",
            _OPERATION,
            added=collect_sizes(self.results),
            stats=collect_stats(self.results),
            compacted={
                task.group: frozenset(log.path for log in task.file_slice.log_files) for task in self.begun.tasks
            },
            results=self.results,
            schema=self.begun.avro_schema,
            merger=keep_if_own(self.begun.snapshot.config, next((task.merger for task in self.begun.tasks), None)),
        )

    def check_still_ours(self, now: Snapshot) -> Instant:
        """Check that no other writer changed the compaction, its plan or its file groups."""
        begun = self.begun
        read, known = now.timeline.read_compaction_plan, begun.known_rollbacks
        found = check_still_planned(now, begun.instant, begun.plan, read, known, _WHAT)
        _check(now, found.request_time)
        _find_slices(now, begun)
        return found

    def settle_files(self, now: Snapshot, ensure_own: Callable[[], None]) -> None:
        """Check the files of the results and remove those of other attempts."""
        instant = self.begun.instant.request_time
        settle_results(self.session.files, instant, self.begun.groups, self.results, ensure_own, _WHAT)

    def make_content(self, now: Snapshot) -> bytes:
        """Return the commit metadata."""
        extra = {**self.begun.plan.extra_metadata, RUN_ID: str(self.begun.run_id), **self.begun.schema_texts}
        stats = collect_stats(self.results)
        metadata = CommitMetadata(operation_type=_OPERATION, extra_metadata=extra, compacted=True, write_stats=stats)
        return write_commit_metadata(metadata, now.config.timeline_layout)

    def check_overlap(self, before: Snapshot, after: Snapshot) -> None:
        """Check the plan's file groups again."""
        _find_slices(after, self.begun)


def _find_slices(now: Snapshot, begun: _OpenCompaction) -> list[FileSlice]:
    return find_planned_slices(now, begun.plan, begun.instant.request_time)
