"""What an operation came to, told from the timeline, and whether that is what should have been."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hoodie_py import CommitStateUnknownError, ConflictError, HoodieError, HoodieTable, Instant, InvalidTableError
from hoodie_py.writer.clustering.cluster import Clustering
from integration.histories.expected import COMMITS, expect, has_failed_writes
from integration.histories.findings import Counts, Difference
from integration.histories.model import Model
from integration.histories.operations import (
    Alter,
    Cluster,
    ClusterPlan,
    ClusterRun,
    DeleteKeys,
    DeletePartition,
    DeleteRows,
    DeleteWhere,
    Event,
    FoldPlan,
    FoldRun,
    Insert,
    Merge,
    Operation,
    Overwrite,
    Plan,
    Rollback,
    Run,
    RunClustering,
    Unplan,
    Update,
    Upsert,
)

WRITES = (
    Upsert, Insert, Overwrite, DeleteKeys, DeleteRows, DeleteWhere, DeletePartition, Update, Merge, Alter,
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What came of an operation.

    Attributes:
        model: of the table before it.
        table: after it.
        counts: are added to.
    """

    model: Model
    table: HoodieTable
    counts: Counts

    def find_events(
        self,
        operation: Operation,
        before: list[Instant],
        after: list[Instant],
        error: BaseException | None,
        *,
        reached: bool,
    ) -> list[Event]:
        """Tell from the timeline what has happened, and check that it is what should have."""
        new = {each.request_time for each in after if each.is_completed} - completed(before)
        error_text = "" if error is None else f"{type(error).__name__}: {error}"
        if isinstance(operation, WRITES):
            landed = [each for each in after if each.request_time in new]
            may = (
                (ConflictError,) if has_failed_writes(before, self.model.more_plans.clusterings) else ()
            )  # whether its writer is at work may be uncertain
            return self._of_write(operation, landed, error, may, reached=reached)
        events = self._of_plans(after, new)
        if reached and error is not None:
            return events
        model, done = self._without_rollback(operation, events, before)
        planning = operation
        if isinstance(operation, Cluster) and self._finishes_while_running(events, before):
            planning = operation if self.model.has_groups_to_cluster() else RunClustering()
        expected = expect(model, planning, before)
        if error is not None:
            if not isinstance(error, expected.errors):
                raise Difference(f"{operation} failed: {error_text}")
            self.counts.refusals[f"{type(operation).__name__}: {type(error).__name__}"] += 1
        elif done != expected.events and (done or model is self.model):  # finishing a rollback may be all that is done
            raise Difference(f"{operation} came to {done}, not to {expected.events}")
        return events

    def _without_rollback(
        self, operation: Operation, events: list[Event], before: list[Instant]
    ) -> tuple[Model, set[type]]:
        """Return the model, and the kinds of events, without the plans whose pending rollback is finished first."""
        model, kinds = self.model, {type(event) for event in events}
        rolls_back = any(each.action == "rollback" and not each.is_completed for each in before)
        if rolls_back and not isinstance(operation, Rollback):
            for event in events:
                if isinstance(event, Unplan):
                    model = model.after(event, event.name)
            kinds.discard(Unplan)
        return model, kinds

    def _finishes_while_running(self, events: list[Event], before: list[Instant]) -> bool:
        """Say whether the rollback of a pending clustering is finished by the run: it waits for the next run of that
        instant, so what was planned before still counts the groups as taken.
        """
        there = {each.request_time for each in before if not each.is_completed}
        return any(isinstance(each, Unplan) and each.name in there for each in events)

    def _of_write(
        self,
        operation: Any,
        new: list[Instant],
        error: BaseException | None,
        may: tuple[type[HoodieError], ...],
        *,
        reached: bool,
    ) -> list[Event]:
        writes = [each for each in new if each.action in COMMITS]
        if len(writes) > 1:
            raise Difference(f"{operation} made {len(writes)} commits")
        if error is None:
            changed = self.model.after(operation)
            if not writes and changed.rows() != self.model.rows():
                raise Difference(f"{operation} returned and committed nothing")
            if writes and self.model.replaces_planned(operation):
                raise Difference(f"{operation} changed file groups that a plan has")
            return [operation] if writes else []
        if not reached:
            double = isinstance(error, InvalidTableError) and self.model.has_double_keys()
            planned = isinstance(error, ConflictError) and self.model.replaces_planned(operation)
            if not double and not planned and not isinstance(error, may):
                raise Difference(f"{operation} failed: {type(error).__name__}: {error}")
            self.counts.refusals[f"{type(operation).__name__}: {type(error).__name__}"] += 1
        if writes and isinstance(error, HoodieError) and not isinstance(error, CommitStateUnknownError):
            raise Difference(f"{operation} failed with {type(error).__name__}: {error}, and is committed")
        return [operation] if writes else []

    def find_commit(self, event: Event, before: list[Instant], after: list[Instant]) -> Instant | None:
        """Return the instant of an event; plans have none that is completed."""
        if isinstance(event, Plan | ClusterPlan | FoldPlan | Unplan):
            return None
        new = [each for each in after if each.is_completed and each.request_time not in completed(before)]
        more = self.model.more_plans
        plans = {*self.model.plans, *more.clusterings, *more.foldings}
        for each in new:
            if isinstance(event, Run | ClusterRun | FoldRun):
                if each.request_time == event.name:
                    return each
            elif each.request_time not in plans and each.action in COMMITS:
                return each
        raise Difference(f"{event} has no instant")

    def _of_plans(self, after: list[Instant], new: set[str]) -> list[Event]:
        """Return what the timeline says of plans: made, carried out, taken back."""
        model, events = self.model, list[Event]()
        done = {each.request_time: each.action for each in after if each.is_completed}
        clusterings = {each.request_time for each in Clustering().list_pending(self.table._snapshot)}
        folding = {each.request_time for each in after if each.action == "logcompaction"}
        compacting = {each.request_time for each in after if each.action == "compaction" and not each.is_completed}
        fresh = {action: {each for each in new if done[each] == action} for action in set(done.values())}
        known = (
            (
                model.plans,
                compacting,
                fresh.get("commit", set()) if self.model.kind.merge_on_read else set(),
                Plan,
                Run,
            ),
            (model.more_plans.clusterings, clusterings, fresh.get("replacecommit", set()), ClusterPlan, ClusterRun),
            (model.more_plans.foldings, folding, fresh.get("deltacommit", set()), FoldPlan, FoldRun),
        )
        for plans, pending, carried_out, plan, run in known:
            made = sorted((pending | carried_out) - set(plans))
            events += [plan(name) for name in made]
            for name in [*plans, *made]:
                if name in done:
                    events.append(run(name))
                elif name not in pending:
                    events.append(Unplan(name))
        return events


def completed(timeline: list[Instant]) -> set[str]:
    """Return the request times of completed instants."""
    return {each.request_time for each in timeline if each.is_completed}
