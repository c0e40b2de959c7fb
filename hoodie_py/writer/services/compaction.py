"""Compaction: merge the log files of file groups into new base files (Hudi ``RunCompactionActionExecutor``,
``BaseHoodieTableServiceClient.completeCompaction``).

The work is one task for each file group of the plan; ``PlannedService`` has the steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock as ThreadLock
from typing import Any, ClassVar

from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import COMPACTION, Instant
from hoodie_py.formats.timeline.plans import CompactionPlan
from hoodie_py.formats.timeline.writers import write_commit_metadata, write_compaction_plan
from hoodie_py.options.write import TRIGGERS
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.selection import select_strategy
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.precombine.merge_options import keep_if_own
from hoodie_py.writer.refusals import check_compactable
from hoodie_py.writer.services.compaction_plan import find_planned_slices, make_plan
from hoodie_py.writer.services.compaction_report import CompactionResult, OnProgress, Progress
from hoodie_py.writer.services.compaction_strategy import Trigger, judge_trigger
from hoodie_py.writer.services.compaction_task import CompactionTask
from hoodie_py.writer.services.due_service import DueService
from hoodie_py.writer.services.planned_service import PlannedService
from hoodie_py.writer.services.service_run import (
    Done,
    Opened,
    Runner,
    Saved,
    describe_files,
    make_facts,
    make_read_options,
    with_schema_of,
)
from hoodie_py.writer.timeline.session import RUN_ID, WriteSession, find_newest_time
from hoodie_py.writer.transaction.commit_protocol import collect_stats

_OPERATION = "COMPACT"

_Opened = Opened[CompactionPlan, list[FileSlice], CompactionTask]


@dataclass(frozen=True)
class Compaction(PlannedService[CompactionPlan, list[FileSlice], CompactionTask, CompactionResult]):
    """Merge the log files of file groups into new base files. ``on_progress`` is called while tasks run."""

    name: ClassVar[str] = "compaction"

    on_progress: OnProgress | None = None

    def judge(self, session: WriteSession, snapshot: Snapshot, judged: Mapping[str, DueService]) -> DueService:
        """Judge by Hudi's trigger, and by what a plan would take."""
        if not snapshot.config.is_merge_on_read:
            return DueService(self.name, "not due", "a copy-on-write table has no log files")
        check_compactable(snapshot)
        instant = session.clock.peek(find_newest_time(snapshot.timeline))
        settings = self.with_upkeep_options(session).settings.plan
        trigger = judge_trigger(snapshot.timeline, instant, settings)
        if trigger is None:
            return DueService(self.name, "not due", "nothing was written yet")
        figures: dict[str, int | float | str] = {"delta commits": trigger.commits, "seconds": trigger.seconds}
        figures |= _measure_logs(snapshot)
        planned = make_plan(snapshot, instant, settings) if trigger.is_due else None
        taken = 0 if planned is None else len(planned.plan.operations)
        if trigger.is_due and not taken:
            return DueService(self.name, "not due", f"{trigger}, but no file group can be planned", figures)
        return DueService(self.name, "due" if taken else "not due", _describe_logs(trigger, figures), figures)

    def with_upkeep_options(self, session: WriteSession) -> WriteSession:
        """Return the session with the trigger that inline compactions have."""
        settings = session.settings
        plan = replace(settings.plan, trigger=settings.plan.trigger or TRIGGERS[0])
        return replace(session, settings=replace(settings, plan=plan))

    def may_have_plans(self, snapshot: Snapshot) -> bool:
        """Say whether the table is merge-on-read, or has a plan all the same."""
        return snapshot.config.is_merge_on_read or bool(self.list_pending(snapshot))

    def check_table(self, session: WriteSession, snapshot: Snapshot) -> None:
        """Refuse a table that cannot be compacted here."""
        check_compactable(snapshot)

    def make_plan(self, session: WriteSession, snapshot: Snapshot, instant: str) -> tuple[str, bytes] | None:
        """Plan by the session's strategies; where they name a trigger, only if it is due."""
        check_compactable(snapshot)
        planned = make_plan(snapshot, instant, session.settings.plan)
        if planned is None or not planned.plan.operations:
            return None
        return COMPACTION, write_compaction_plan(planned.plan)

    def list_pending(self, snapshot: Snapshot) -> Sequence[Instant]:
        """Return the pending compactions, oldest first."""
        return snapshot.timeline.select_pending_compactions().instants

    def read_plan(self, snapshot: Snapshot, instant: Instant) -> CompactionPlan:
        """Return a pending plan."""
        return snapshot.timeline.read_compaction_plan(instant)

    def find(self, saved: Saved[CompactionPlan], earlier: list[FileSlice] | None = None) -> list[FileSlice]:
        """Return the slices with the files that the plan names."""
        return find_planned_slices(saved.snapshot, saved.plan, saved.time)

    def open(self, saved: Saved[CompactionPlan], found: list[FileSlice], merger: Merger | None) -> _Opened:
        """Make a task for each slice."""
        select_strategy(saved.snapshot.config, saved.session.settings.options, merger, writing=False)
        saved = with_schema_of(saved)
        facts, options = make_facts(saved, found), make_read_options(saved.session)
        schema = facts.schema
        tasks = tuple(
            CompactionTask(
                file_slice=each,
                info=saved.snapshot.read_info(each).as_stored(schema.arrow, schema.defaults),
                facts=facts,
                index=index,
                merger=merger,
                options=options,
            )
            for index, each in enumerate(found)
        )
        places = tuple(task.group for task in tasks)
        return Opened(saved.session, saved.snapshot, saved.instant, saved.plan, found, tasks, places, facts)

    def run_tasks(self, opened: _Opened, runner: Runner) -> list[TaskResult]:
        """Run all tasks, and report the progress."""
        return super().run_tasks(opened, _Metered(runner, opened, self.on_progress))

    def describe(self, opened: _Opened, results: Sequence[TaskResult]) -> MetadataCommit:
        """Return the new base files, and the log files that are in them."""
        taken = {task.group: frozenset(log.path for log in task.file_slice.log_files) for task in opened.tasks}
        merger = keep_if_own(opened.snapshot.config, next((task.merger for task in opened.tasks), None))
        files = describe_files(opened, results, "compaction", _OPERATION)
        return replace(files, compacted=taken, merger=merger)

    def make_content(self, opened: _Opened, results: Sequence[TaskResult], now: Snapshot) -> bytes:
        """Return the commit metadata."""
        return make_compaction_content(opened, results, now, _OPERATION)

    def check_overlap(self, opened: _Opened, before: Snapshot, after: Snapshot) -> None:
        """Check the plan's file groups again."""
        find_planned_slices(after, opened.plan, opened.time)

    def sum_up(self, done: Done[CompactionPlan, list[FileSlice], CompactionTask] | None) -> CompactionResult:
        """Return what was done."""
        if done is None:
            return CompactionResult()
        return CompactionResult.of(done.opened.time, done.completion_time, done.results, done.seconds)


class _Metered:
    """A runner that adds up the results of tasks and reports the progress."""

    def __init__(self, runner: Runner, opened: _Opened, on_progress: OnProgress | None) -> None:
        self._runner = runner
        self._sizes = {task.group: task.size for task in opened.tasks}
        self._opened = opened
        self._tell = on_progress
        self._guard = ThreadLock()
        self._rows = 0
        self._done: dict[GroupKey, TaskResult] = {}

    def run(self, tasks: Sequence[Any], on_rows: Callable[[int], None]) -> Iterator[Any]:
        """Yield the result of each task. Of several attempts at one task the first counts."""
        for result in self._runner.run(tasks, self._count):
            with self._guard:
                self._done.setdefault(result.group, result)
                self._rows = max(self._rows, sum(each.stat.num_writes for each in self._done.values()))
                self._report()
            yield result

    def _count(self, rows: int) -> None:
        """Count rows that a task wrote."""
        with self._guard:
            self._rows += rows
            self._report()

    def _report(self) -> None:
        if self._tell is not None:
            self._tell(
                Progress(
                    instant=self._opened.time,
                    file_groups=len(self._sizes),
                    file_groups_done=len(self._done),
                    bytes_total=sum(self._sizes.values()),
                    bytes_done=sum(self._sizes[group] for group in self._done),
                    rows=self._rows,
                    seconds=time.monotonic() - self._opened.began,
                )
            )


def make_compaction_content(
    opened: Opened[CompactionPlan, Any, Any], results: Sequence[TaskResult], now: Snapshot, operation: str
) -> bytes:
    """Return the commit metadata of a compaction or log compaction."""
    facts = opened.facts
    extra = {**opened.plan.extra_metadata, RUN_ID: str(facts.run_id), **facts.schema.commit_texts}
    stats = collect_stats(results)
    metadata = CommitMetadata(operation_type=operation, extra_metadata=extra, compacted=True, write_stats=stats)
    return write_commit_metadata(metadata, now.config.timeline_layout)


def _measure_logs(snapshot: Snapshot) -> dict[str, int | float | str]:
    slices = snapshot.view.list_slices()
    base = sum(each.base_file.size for each in slices if each.base_file is not None)
    logs = [log.size for each in slices for log in each.log_files]
    ratio = {"log to base": round(sum(logs) / base, 3)} if base else {}
    return {"log files": len(logs), "log bytes": sum(logs), "base bytes": base, **ratio}


def _describe_logs(trigger: Trigger, figures: Mapping[str, int | float | str]) -> str:
    ratio = f", {figures['log to base']:.0%} of the base files" if "log to base" in figures else ""
    return f"{trigger}; {figures['log files']:,} log files of {figures['log bytes']:,} bytes{ratio}"
