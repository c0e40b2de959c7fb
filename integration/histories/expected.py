"""What an operation on plans must come to where the store does not fail, and how it may fail instead."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from hoodie_py import ConflictError, HoodieError, Instant, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.writer.indexes.returning_keys import StalePlanError
from integration.histories.model import Model
from integration.histories.operations import (
    Cluster,
    ClusterPlan,
    ClusterRun,
    Compact,
    FoldPlan,
    FoldRun,
    Index,
    LogCompact,
    Operation,
    Plan,
    Rollback,
    Run,
    RunClustering,
    RunPlan,
    Schedule,
    ScheduleClustering,
    Unplan,
)
from integration.histories.rules import CUSTOM

COMMITS = ("commit", "deltacommit", "replacecommit")
SERVICES = ("compaction", "clustering", "logcompaction")
NOTHING_PENDING = Instant("0" * 17, None, "commit", "requested")


@dataclass(frozen=True, slots=True)
class Expected:
    """The events of an operation, and the errors that may come in their place."""

    events: set[type]
    errors: tuple[type[HoodieError], ...] = ()


def expect(model: Model, operation: Operation, before: list[Instant]) -> Expected:
    """Say what an operation must come to; ``before`` is the timeline that it finds."""
    oldest = next(iter(model.plans), None)
    plans = {Plan} if model.has_logs_to_plan() else set()
    may: tuple[type[HoodieError], ...] = (
        (ConflictError,) if has_failed_writes(before, model.more_plans.clusterings) else ()
    )
    if isinstance(operation, Schedule | Compact | LogCompact) and not model.kind.merge_on_read:
        return Expected(set(), (UnsupportedFeatureError, InvalidQueryError))
    if isinstance(operation, ScheduleClustering | RunClustering | Cluster):
        return _expect_clustering(model, operation, may)
    stale = (StalePlanError,) if _may_be_stale(model, before) else ()
    match operation:
        case LogCompact() if model.kind.change_data:
            return Expected(set(), (UnsupportedFeatureError,))
        case LogCompact() if model.has_logs_to_fold():
            # What the custom merger makes of some logs cannot be said in a log file; then the plan is gone, too.
            unsaid = (UnsupportedFeatureError,) if model.kind.mode == CUSTOM else ()
            return Expected({FoldPlan, FoldRun}, (*may, *unsaid))
        case LogCompact():
            return Expected({FoldRun} if model.more_plans.foldings else set(), may)
        case Schedule():
            return Expected(plans, may)
        case RunPlan() if oldest is None:
            return Expected(set(), (*may, InvalidQueryError))
        case RunPlan():
            return Expected({Run}, (*may, *stale))
        case Compact() if plans:
            return Expected({Plan, Run}, (*may, *stale))
        case Compact() if oldest is None:
            return Expected(set(), (*may, InvalidQueryError))
        case Compact():
            return Expected({Run}, (*may, *stale))
        case Rollback():
            return _expect_rollback(model, before)
        case Index() if _has_begun(model, before):
            return Expected(set(), (ConflictError,))
    return Expected(set(), may)


def _has_begun(model: Model, before: list[Instant]) -> bool:
    """Whether something is pending beside which no index changes: it was begun or, up to version 6, planned."""
    pending = [each for each in before if not each.is_completed]
    return any(each.state == "inflight" or model.kind.version < 8 for each in pending)


def _may_be_stale(model: Model, before: list[Instant]) -> bool:
    """Whether a write completed after a plan, for which an index forbids it (``metadata_table.key_comparison``)."""
    plan = next(iter(model.plans), None)
    if plan is None or not model.kind.indexed:
        return False
    return any(each.action in COMMITS and (each.completion_time or "") > plan for each in before)


def _expect_clustering(model: Model, operation: Operation, may: tuple[type[HoodieError], ...]) -> Expected:
    if model.kind.buckets and not (isinstance(operation, RunClustering) or not model.groups):
        return Expected(set(), (UnsupportedFeatureError,))
    if model.kind.buckets:
        may = (*may, UnsupportedFeatureError)  # of a table whose rows are all gone its commits still tell
    plans = {ClusterPlan} if model.has_groups_to_cluster() else set()
    pending = bool(model.more_plans.clusterings)
    if isinstance(operation, ScheduleClustering):
        return Expected(plans, may)
    if isinstance(operation, Cluster) and plans:
        return Expected({ClusterPlan, ClusterRun}, may)
    return (
        Expected({ClusterRun}, may) if pending else Expected(set(), (*may, InvalidQueryError, UnsupportedFeatureError))
    )


def _expect_rollback(model: Model, before: list[Instant]) -> Expected:
    first = find_first_pending(before)
    if first is NOTHING_PENDING:
        return Expected(set(), (InvalidQueryError,))
    if first.request_time in {*model.more_plans.clusterings, *model.more_plans.foldings}:
        return Expected({Unplan})
    if first.action != "compaction" or first.state != "requested":
        return Expected(set())
    may_have_logs = model.has_logs_after(first.request_time) or has_failed_writes(before)
    stuck = model.kind.version < 8 and may_have_logs
    return Expected({Unplan}, (UnsupportedFeatureError,) if stuck else ())


def find_first_pending(timeline: Iterable[Instant]) -> Instant:
    """Return the oldest write or compaction that is pending."""
    pending = (each for each in timeline if not each.is_completed and each.action in (*SERVICES, *COMMITS))
    return min(pending, key=lambda each: each.request_time, default=NOTHING_PENDING)


def has_failed_writes(timeline: list[Instant], planned: Collection[str] = ()) -> bool:
    """Whether writes are pending that are no plans; their files may be there."""
    return any(
        not each.is_completed and each.action in COMMITS and each.request_time not in planned for each in timeline
    )
