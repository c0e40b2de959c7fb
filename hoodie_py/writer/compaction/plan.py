"""Plan a compaction: which file slices to merge into new base files (Hudi ``HoodieCompactionPlanGenerator``,
``ScheduleCompactionActionExecutor``).

* Each file group's newest slice is a candidate if it has log files whose commits completed before the compaction's
  instant, and if no pending compaction, log compaction or clustering has planned the group: a group may be in one plan
  only.
* Strategies choose among the candidates. The plan records the partitions of slices that are left out, as Java's
  incremental planner looks only at those and at partitions that changed.
* If the options name a trigger or one of its thresholds, a plan is made only when that is due, as in Java's inline
  scheduling. Without them, every slice with log files is a candidate.
* Up to table version 6 no plan is made beside a pending write: see ``refusals.check_pending_writes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from uuid import uuid4

from hoodie_py.formats.timeline.instants import CLUSTERING, COMMIT, COMPACTION, DELTA_COMMIT
from hoodie_py.formats.timeline.plans import CompactionOperation, CompactionPlan
from hoodie_py.formats.timeline.writers import write_compaction_plan
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.compaction.report import PlannedSlice, PlanReport
from hoodie_py.writer.compaction.strategy import Candidates, choose_operations, measure_operation
from hoodie_py.writer.compaction.trigger import judge_trigger
from hoodie_py.writer.refusals import check_compactable, check_pending_writes
from hoodie_py.writer.rollback.recovery import finish_rollbacks
from hoodie_py.writer.settings import PlanSettings
from hoodie_py.writer.timeline.session import PLAN_ID, WriteSession, find_newest_time
from hoodie_py.writer.transaction.pending import iterate_planned_slices
from hoodie_py.writer.transaction.run_guard import forget_finished


@dataclass(frozen=True, slots=True)
class PlannedCompaction:
    """A plan that could be saved, and its report."""

    plan: CompactionPlan
    report: PlanReport


def schedule(session: WriteSession) -> str | None:
    """Save a compaction plan and return its instant; None if there is nothing to compact, or it is not due.

    Raises:
        UnsupportedFeatureError: the table has a feature that is not handled, or its timeline is ahead of the clock.
        ConflictError: another writer holds the lock, or a pending write is in the way.
        InvalidQueryError: a strategy is unknown, or an option has a bad value.
        CommitStateUnknownError: the store did not say whether the plan was saved.
    """
    recovered = session.look()
    check_compactable(recovered)
    finish_rollbacks(session, recovered)
    with session.hold_lock() as holding:
        snapshot = session.look()
        check_compactable(snapshot)
        forget_finished(session, snapshot)
        instant = session.clock.take(find_newest_time(snapshot.timeline.timeline))
        planned = make_plan(snapshot, instant, session.settings.plan)
        if planned is None or not planned.plan.operations:
            return None
        content = write_compaction_plan(planned.plan)
        holding.ensure_held()
        session.open_timeline(snapshot).request(instant, COMPACTION, content)
    return instant


def dry_run(session: WriteSession) -> PlanReport:
    """Report what ``schedule`` would plan. It writes nothing and takes no lock; errors as for ``schedule``."""
    snapshot = session.look()
    check_compactable(snapshot)
    instant = session.clock.peek(find_newest_time(snapshot.timeline.timeline))
    settings = session.settings.plan
    planned = make_plan(snapshot, instant, settings)
    if planned is not None:
        return planned.report
    return PlanReport(
        snapshot.config.name, instant, _name_zone(snapshot), settings.strategies, (), f"{settings.trigger} is not due"
    )


def make_plan(
    snapshot: Snapshot, instant: str, settings: PlanSettings, today: date | None = None
) -> PlannedCompaction | None:
    """Return the plan for an instant; None if the settings name a trigger that is not due. ``instant`` is later than
    every time on the timeline; ``today`` is for strategies that count days.

    Raises:
        InvalidQueryError: a strategy is unknown, or does not fit the table.
        ConflictError: a pending write is in the way.
    """
    if settings.trigger is not None:
        trigger = judge_trigger(snapshot.timeline.timeline, instant, settings)
        if trigger is None or not trigger.is_due:
            return None
    check_pending_writes(snapshot, instant)
    held = _find_held_groups(snapshot)
    slices = snapshot.view.list_slices()  # as the folders have them: a file that is not taken is lost
    ready: dict[GroupKey, FileSlice] = {}
    left_out: dict[GroupKey, str] = {}
    for file_slice in slices:
        key = file_slice.partition_path, file_slice.file_id
        reason = held.get(key) or _explain_left_out(snapshot, file_slice, instant)
        if reason is None:
            ready[key] = file_slice
        else:
            left_out[key] = reason
    operations = {key: _make_operation(file_slice, settings) for key, file_slice in ready.items()}
    partitions = snapshot.view.list_paths()
    offer = Candidates(tuple(operations.values()), partitions, today or datetime.now(UTC).date())
    choice = choose_operations(offer, settings)
    left_out.update(choice.left_out)
    taken = {(each.partition_path, each.file_id) for each in choice.taken}
    report = PlanReport(
        snapshot.config.name,
        instant,
        _name_zone(snapshot),
        settings.strategies,
        tuple(_make_planned_slice(each, left_out, taken, settings) for each in slices),
    )
    missing = {each.partition_path for each in report.slices if not each.taken and each.log_files}
    plan = CompactionPlan(
        operations=choice.taken,
        extra_metadata={PLAN_ID: uuid4().hex},
        missing_partitions=tuple(sorted(missing)),
    )
    return PlannedCompaction(plan, report)


def _name_zone(snapshot: Snapshot) -> str:
    return snapshot.timezone or "UTC" if snapshot.config.timezone != "UTC" else "UTC"


def _make_operation(file_slice: FileSlice, settings: PlanSettings) -> CompactionOperation:
    base = file_slice.base_file
    sizes = [log.size for log in file_slice.log_files]
    return CompactionOperation(
        base_instant_time=file_slice.base_instant,
        file_id=file_slice.file_id,
        partition_path=file_slice.partition_path,
        data_file=None if base is None else base.name,
        delta_files=tuple(log.name.name for log in file_slice.log_files),
        metrics=measure_operation(None if base is None else base.size, sizes, settings.max_file_size),
        bootstrap_file=None if base is None or base.source is None else base.source.indexed,
    )


def _explain_left_out(snapshot: Snapshot, file_slice: FileSlice, instant: str) -> str | None:
    if not file_slice.log_files:
        return "it has no log files"
    visibility = snapshot.view.visibility
    if visibility.logs_carry_base_instant:
        return None
    for log in file_slice.log_files:
        if visibility.find_completion_time(log.name.instant, instant) >= instant:
            return f"commit {log.name.instant} completed after {instant}"
    return None


def _find_held_groups(snapshot: Snapshot) -> Mapping[GroupKey, str]:
    """Return the file groups of other pending plans, with the reason to leave them out."""
    held: dict[GroupKey, str] = {}
    for each in iterate_planned_slices(snapshot):
        action = each.instant.action if each.instant.comparable_action in (COMMIT, DELTA_COMMIT) else CLUSTERING
        held[each.partition_path, each.file_id] = f"{action} {each.instant.request_time} is pending"
    return held


def _make_planned_slice(
    file_slice: FileSlice, left_out: Mapping[GroupKey, str], taken: set[GroupKey], settings: PlanSettings
) -> PlannedSlice:
    key = file_slice.partition_path, file_slice.file_id
    base = file_slice.base_file
    return PlannedSlice(
        partition_path=file_slice.partition_path,
        file_id=file_slice.file_id,
        taken=key in taken,
        reason=left_out.get(key, f"chosen by {', '.join(settings.strategies)}"),
        base_bytes=0 if base is None else base.size,
        log_files=len(file_slice.log_files),
        log_bytes=sum(log.size for log in file_slice.log_files),
    )
