"""Write the instant that records a rollback: its plan and its metadata (Hudi ``BaseRollbackPlanActionExecutor``)."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.instants import ROLLBACK, Instant
from hoodie_py.formats.timeline.plans import (
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RolledBackInstant,
    RolledBackPartition,
)
from hoodie_py.formats.timeline.writers import write_rollback_metadata, write_rollback_plan
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time

Files = Mapping[str, tuple[str, ...]]
"""Names of data files, by partition path."""


def begin_rollback(session: WriteSession, snapshot: Snapshot, pending: Instant, files: Files) -> Instant:
    """Save the plan of a rollback, begin it, and return the inflight instant. Call it under the table's lock. ``files``
    are those that the pending instant wrote.

    Raises:
        CommitStateUnknownError: the store did not say whether a file was written.
    """
    writer = session.open_timeline(snapshot)
    plan = RollbackPlan(
        instant=RolledBackInstant(pending.request_time, pending.action),
        requests=tuple(RollbackRequest(partition, names) for partition, names in files.items()),
    )
    time = session.clock.take(find_newest_time(snapshot.timeline.timeline))
    return writer.begin(writer.request(time, ROLLBACK, write_rollback_plan(plan, session.files.java_uri)))


def delete_files(files: TableFiles, names: Files) -> None:
    """Delete data files. Missing files are no error."""
    for partition, each in names.items():
        for name in each:
            files.delete_with_checksum(f"{partition}/{name}" if partition else name)


def complete_rollback(
    session: WriteSession, snapshot: Snapshot, inflight: Instant, undone: Instant, files: Files
) -> None:
    """Complete a rollback. ``inflight`` is the rollback; other arguments and errors as for ``begin_rollback``."""
    metadata = RollbackMetadata(
        start_rollback_time=inflight.request_time,
        total_files_deleted=sum(map(len, files.values())),
        commits_rolled_back=(undone.request_time,),
        instants=(RolledBackInstant(undone.request_time, undone.action),),
        partitions={partition: RolledBackPartition(names, ()) for partition, names in files.items()},
    )
    completion_time = session.clock.take(find_newest_time(snapshot.timeline.timeline))
    content = write_rollback_metadata(metadata, session.files.java_uri)
    session.open_timeline(snapshot).complete(inflight, completion_time, content)
