"""What the rollbacks on a timeline are about, those that were begun and not finished among them (Hudi
``getPendingRollbackInfos``).
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_py.errors import FileMissingError, HoodieError, InvalidTableError, StorageError
from hoodie_py.formats.instants import REQUESTED, ROLLBACK, Instant
from hoodie_py.formats.plans import RollbackMetadata, RollbackPlan
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class PendingRollback:
    """A rollback that was begun and is not complete.

    Attributes:
        instant: the rollback, requested or inflight.
        plan: what it undoes; None where it is only requested and its plan cannot be read: nothing was done by it.
    """

    instant: Instant
    plan: RollbackPlan | None

    @property
    def target(self) -> str:
        """Request time of the instant that it undoes; empty if none is known."""
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


def list_rollbacks_of(snapshot: Snapshot, time: str) -> list[Instant]:
    """Return the rollbacks, pending and completed, that undo an instant, oldest first.

    Args:
        snapshot: the table as it is now.
        time: request time of the instant.

    Raises:
        CorruptFileError: a rollback's file is damaged.
    """
    later = (each for each in snapshot.timeline.timeline.select_actions(ROLLBACK) if each.request_time > time)
    return [each for each in later if time in _read_targets(snapshot, each)]


def list_pending_rollbacks(snapshot: Snapshot) -> list[PendingRollback]:
    """Return the rollbacks that were begun and not finished, oldest first.

    Raises:
        InvalidTableError: the plan of one that is inflight is not there, or names no instant.
        CorruptFileError: it is damaged.
    """
    begun = snapshot.timeline.timeline.select_pending().select_actions(ROLLBACK)
    return [PendingRollback(each, _read_plan(snapshot, each)) for each in begun]


def _read_plan(snapshot: Snapshot, rollback: Instant) -> RollbackPlan | None:
    """Read a plan; one that cannot be read does not count before the rollback is inflight, as in Java."""
    path = _find_plan_path(snapshot, rollback)
    try:
        plan = RollbackPlan.from_bytes(read_bounded(snapshot.files, path))
        if plan.instant is None or not (plan.instant.time.isascii() and plan.instant.time.isdigit()):
            raise InvalidTableError("a rollback plan names no instant")
    except FileMissingError as error:
        if rollback.state == REQUESTED:
            return None
        raise InvalidTableError("an inflight rollback has no plan", path=path, instant=rollback.request_time) from error
    except StorageError:
        raise
    except HoodieError as error:
        if rollback.state == REQUESTED:
            return None
        raise error.locate(path=path, instant=rollback.request_time) from error.__cause__
    return plan


def _read_targets(snapshot: Snapshot, rollback: Instant) -> tuple[str, ...]:
    if not rollback.is_completed:
        plan = _read_plan(snapshot, rollback)
        return () if plan is None or plan.instant is None else (plan.instant.time,)
    path = f"{snapshot.config.find_timeline_folder()}/{rollback.file_name(snapshot.config.timeline_layout)}"
    try:
        return RollbackMetadata.from_bytes(read_bounded(snapshot.files, path)).commits_rolled_back
    except HoodieError as error:
        raise error.locate(path=path, instant=rollback.request_time) from error.__cause__


def _find_plan_path(snapshot: Snapshot, rollback: Instant) -> str:
    return f"{snapshot.config.find_timeline_folder()}/{rollback.request_time}.{ROLLBACK}.{REQUESTED}"
