"""Pending instants: which writes, compactions, clusterings and rollbacks have begun and have not completed.

Only this module of the writer reads their plans (Hudi ``ClusteringUtils``, ``CompactionUtils``,
``BaseHoodieTableServiceClient.getPendingRollbackInfos``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hoodie_py.errors import FileMissingError, HoodieError, InvalidTableError, StorageError
from hoodie_py.formats.timeline import instants
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.formats.timeline.plans import RollbackMetadata, RollbackPlan
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey


@dataclass(frozen=True, slots=True)
class PendingSlice:
    """A file slice in a pending plan. ``names``: the name of its base file (None: it has none), then of its log
    files.
    """

    instant: Instant
    partition_path: str
    file_id: str
    names: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class PendingRollback:
    """A rollback that has not completed.

    ``plan`` is None if the rollback is only requested and its plan cannot be read. It has done nothing then.
    """

    instant: Instant
    plan: RollbackPlan | None

    @property
    def target(self) -> str:
        """Request time of the instant that it undoes; "" if the plan does not name one."""
        return "" if self.plan is None or self.plan.instant is None else self.plan.instant.time

    @property
    def action(self) -> str:
        """Action of that instant when the rollback was planned."""
        return "" if self.plan is None or self.plan.instant is None else self.plan.instant.action

    @property
    def files(self) -> dict[str, tuple[str, ...]]:
        """Names of the files that the plan removes, by partition path."""
        found: dict[str, tuple[str, ...]] = {}
        for request in () if self.plan is None else self.plan.requests:
            if request.files:
                found[request.partition_path] = (*found.get(request.partition_path, ()), *request.files)
        return found


def list_pending_writes(snapshot: Snapshot) -> list[Instant]:
    """Return the writes that have not completed, oldest first: no compactions, no clusterings."""
    pending = snapshot.timeline.select_pending()
    written = [
        each for each in pending if each.is_write and each.action not in (instants.COMPACTION, instants.LOG_COMPACTION)
    ]
    return [each for each in written if not is_clustering(snapshot, each)]


def is_clustering(snapshot: Snapshot, pending: Instant) -> bool:
    """Whether a pending instant is a clustering. Up to table version 6 only its plan shows that."""
    if pending.action == instants.REPLACE_COMMIT:
        return snapshot.timeline.read_replace_plan(pending).is_clustering
    return pending.action == instants.CLUSTERING


def iterate_pending_clusterings(snapshot: Snapshot) -> Iterator[tuple[Instant, frozenset[GroupKey]]]:
    """Yield each pending clustering with the file groups that it will replace."""
    for instant in snapshot.timeline.select_pending_replacements():
        plan = snapshot.timeline.read_replace_plan(instant)
        if plan.is_clustering:
            yield instant, frozenset(plan.iterate_file_groups())


def iterate_planned_slices(snapshot: Snapshot) -> Iterator[PendingSlice]:
    """Yield the file slices that pending compactions, log compactions and clusterings have planned."""
    timeline = snapshot.timeline
    for instant in (*timeline.select_pending_compactions(), *timeline.select_pending_log_compactions()):
        for each in snapshot.timeline.read_pending_plan(instant).operations:
            yield PendingSlice(instant, each.partition_path, each.file_id, (each.data_file, *each.delta_files))
    for instant in timeline.select_pending_replacements():
        for group in snapshot.timeline.read_replace_plan(instant).groups or ():
            for piece in group.slices:
                yield PendingSlice(instant, piece.partition_path, piece.file_id, (piece.data_file, *piece.delta_files))


def list_rollbacks_of(snapshot: Snapshot, time: str) -> list[Instant]:
    """Return the rollbacks of an instant, pending and completed ones, oldest first.

    Raises:
        CorruptFileError: a rollback's file is damaged.
    """
    later = (each for each in snapshot.timeline.select_actions(instants.ROLLBACK) if each.request_time > time)
    return [each for each in later if time in _read_targets(snapshot, each)]


def list_rolled_back(snapshot: Snapshot) -> list[str]:
    """Return the request times of the instants that completed rollbacks took back, oldest first.

    Raises:
        CorruptFileError: a rollback's file is damaged.
    """
    done = snapshot.timeline.select_actions(instants.ROLLBACK).select_completed()
    return sorted({time for each in done for time in _read_targets(snapshot, each)})


def list_pending_rollbacks(snapshot: Snapshot) -> list[PendingRollback]:
    """Return the rollbacks that have not completed, oldest first.

    Raises:
        InvalidTableError: an inflight rollback has no plan, or its plan names no instant.
        CorruptFileError: a plan is damaged.
    """
    begun = snapshot.timeline.select_pending().select_actions(instants.ROLLBACK)
    return [PendingRollback(each, _read_plan(snapshot, each)) for each in begun]


def _read_plan(snapshot: Snapshot, rollback: Instant) -> RollbackPlan | None:
    """Read a plan; None if it cannot be read and the rollback is not inflight yet. Java ignores such a plan as well."""
    path = instants.locate_requested(snapshot.config, rollback)
    try:
        plan = RollbackPlan.from_bytes(read_bounded(snapshot.files, path))
        if plan.instant is None or not (plan.instant.time.isascii() and plan.instant.time.isdigit()):
            raise InvalidTableError("A rollback plan names no instant.")
    except FileMissingError as error:
        if rollback.state == instants.REQUESTED:
            return None
        raise InvalidTableError(
            "An inflight rollback has no plan.", path=path, instant=rollback.request_time
        ) from error
    except StorageError:
        raise
    except HoodieError as error:
        if rollback.state == instants.REQUESTED:
            return None
        raise error.locate(path=path, instant=rollback.request_time) from error.__cause__
    return plan


def _read_targets(snapshot: Snapshot, rollback: Instant) -> tuple[str, ...]:
    if not rollback.is_completed:
        plan = _read_plan(snapshot, rollback)
        return () if plan is None or plan.instant is None else (plan.instant.time,)
    path = instants.locate_instant(snapshot.config, rollback)
    try:
        return RollbackMetadata.from_bytes(read_bounded(snapshot.files, path)).commits_rolled_back
    except HoodieError as error:
        raise error.locate(path=path, instant=rollback.request_time) from error.__cause__
