"""Which rollbacks on a timeline are about an instant."""

from __future__ import annotations

from hoodie_py.errors import HoodieError
from hoodie_py.formats.instants import ROLLBACK, Instant
from hoodie_py.formats.plans import RollbackMetadata, RollbackPlan
from hoodie_py.table.snapshot import Snapshot


def rollbacks_of(snapshot: Snapshot, time: str) -> list[Instant]:
    """Return the rollbacks, pending and completed, that undo an instant, oldest first.

    Args:
        snapshot: the table as it is now.
        time: request time of the instant.

    Raises:
        CorruptFileError: a rollback's file is damaged.
    """
    later = (each for each in snapshot.timeline.timeline.of(ROLLBACK) if each.request_time > time)
    return [each for each in later if time in _targets(snapshot, each)]


def _targets(snapshot: Snapshot, rollback: Instant) -> tuple[str, ...]:
    folder, layout = snapshot.config.timeline_dir(), snapshot.config.timeline_layout
    requested = f"{folder}/{rollback.request_time}.{ROLLBACK}.requested"
    path = f"{folder}/{rollback.file_name(layout)}" if rollback.is_completed else requested
    try:
        data = snapshot.files.read(path)
        if rollback.is_completed:
            return RollbackMetadata.from_bytes(data).commits_rolled_back
        plan = RollbackPlan.from_bytes(data)
    except HoodieError as error:
        raise error.located(path=path, instant=rollback.request_time) from error.__cause__
    return () if plan.instant is None else (plan.instant.time,)
