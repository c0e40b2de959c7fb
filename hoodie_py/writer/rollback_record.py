"""The instant on the timeline that records a rollback: its plan, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie_py.files import TableFiles
from hoodie_py.formats.instants import ROLLBACK, Instant
from hoodie_py.formats.metadata_writers import write_rollback_metadata, write_rollback_plan
from hoodie_py.formats.plans import (
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RolledBackInstant,
    RolledBackPartition,
)
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.location import make_java_location
from hoodie_py.writer.session import WriteSession, find_newest_time
from hoodie_py.writer.timeline_writer import delete_with_checksum

Files = Mapping[str, tuple[str, ...]]
"""Names of data files, by partition path."""


def begin_rollback(session: WriteSession, snapshot: Snapshot, pending: Instant, files: Files) -> Instant:
    """Record the plan of a rollback and begin it; return the inflight instant.

    Args:
        session: of the writing call, whose lock is held.
        snapshot: the table as it is now.
        pending: the instant that is undone.
        files: what it wrote.

    Raises:
        CommitStateUnknownError: the store did not say whether a file was written.
    """
    writer = session.open_timeline(snapshot)
    plan = RollbackPlan(
        instant=RolledBackInstant(pending.request_time, pending.action),
        requests=tuple(RollbackRequest(partition, names) for partition, names in files.items()),
    )
    time = session.clock.take(find_newest_time(snapshot.timeline.timeline))
    return writer.begin(writer.request(time, ROLLBACK, write_rollback_plan(plan, make_java_location(session.files))))


def delete_files(files: TableFiles, names: Files) -> None:
    """Delete data files; those that are gone are no error."""
    for partition, each in names.items():
        for name in each:
            delete_with_checksum(files, f"{partition}/{name}" if partition else name)


def complete_rollback(
    session: WriteSession, snapshot: Snapshot, inflight: Instant, undone: Instant, files: Files
) -> None:
    """Complete a rollback; arguments and errors as for ``begin_rollback``, save ``inflight``: the rollback."""
    metadata = RollbackMetadata(
        start_rollback_time=inflight.request_time,
        total_files_deleted=sum(map(len, files.values())),
        commits_rolled_back=(undone.request_time,),
        instants=(RolledBackInstant(undone.request_time, undone.action),),
        partitions={partition: RolledBackPartition(names, ()) for partition, names in files.items()},
    )
    completion_time = session.clock.take(find_newest_time(snapshot.timeline.timeline))
    content = write_rollback_metadata(metadata, make_java_location(session.files))
    session.open_timeline(snapshot).complete(inflight, completion_time, content)
