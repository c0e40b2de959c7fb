"""Undo an instant that has not completed (Hudi ``BaseRollbackActionExecutor``).

* A compaction under way goes back to requested: its files and markers go, and its inflight file. A requested one is
  removed, unless writers up to table version 6 have already named log files after it.
* Any other write: its data files go, then a completed rollback instant says so, then the instant's own files. What a
  write made is told by the instant in file names; up to version 6 log files carry none, so their blocks are looked at,
  and a log file that holds other commits' blocks too is left to Java.
* What the instant did to the metadata table is taken back first; readers ignore it anyway while the instant is pending.

A rollback that was cut short is taken up again by the next one of the same instant.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.instants import (
    CLUSTERING,
    COMMIT,
    COMPACTION,
    DELTA_COMMIT,
    INFLIGHT,
    REPLACE_COMMIT,
    REQUESTED,
    ROLLBACK,
    Instant,
)
from hoodie_py.formats.metadata_writers import write_rollback_metadata, write_rollback_plan
from hoodie_py.formats.plans import (
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RolledBackInstant,
    RolledBackPartition,
)
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.attempt import undo_attempt
from hoodie_py.writer.heartbeat import HEARTBEAT_FOLDER
from hoodie_py.writer.location import java_location
from hoodie_py.writer.markers import Markers
from hoodie_py.writer.metadata_table import undo_metadata_commit
from hoodie_py.writer.rollback_facts import rollbacks_of
from hoodie_py.writer.run_guard import run_guard
from hoodie_py.writer.session import WriteSession, newest_time
from hoodie_py.writer.timeline_writer import delete_with_checksum
from hoodie_py.writer.written_files import written_files

_UNDONE = (COMMIT, DELTA_COMMIT, REPLACE_COMMIT, CLUSTERING)

Files = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class RollbackResult:
    """What a rollback did.

    Attributes:
        instant: that was undone.
        action: of it.
        left: "requested" where it can be run again, "gone" where nothing of it is left.
        rollback: the instant that records the rollback; None where none is needed.
        files_deleted: data files that were removed.
    """

    instant: str
    action: str
    left: str
    rollback: str | None = None
    files_deleted: int = 0

    def __str__(self) -> str:
        what = f"The {self.action} {self.instant}"
        if self.left == REQUESTED:
            return f"{what} is back to requested; {self.files_deleted} files were removed."
        return f"{what} is gone; {self.files_deleted} files were removed."


def rollback(session: WriteSession, instant: str) -> RollbackResult:
    """Undo a pending instant.

    Args:
        session: of the writing call.
        instant: its request time.

    Raises:
        InvalidQueryError: there is no pending instant at that time.
        ConflictError: somebody is at work on it, or finished it meanwhile.
        UnsupportedFeatureError: an action, or a state, that only Java Hudi can undo.
        CommitStateUnknownError: the store did not say whether the rollback was recorded.
        StorageError: the store refused; the next rollback takes this one up.
    """
    _find(session.look(), instant)
    with run_guard(session, instant) as alive, session.locked() as holding:
        snapshot = session.look()
        pending = _find(snapshot, instant)
        alive.pending(alive.heartbeat.was_there)  # Java needs to find it: see failed_writes
        holding.ensure_held()
        alive.ensure_alive()
        undo = _undo_compaction if pending.action == COMPACTION else _undo_write
        result = undo(session, snapshot, pending)
        alive.pending(False)
    return result


def _find(snapshot: Snapshot, instant: str) -> Instant:
    found = snapshot.timeline.timeline.find(instant)
    if found is None or found.is_completed:
        state = "There is no instant" if found is None else f"The {found.action} is completed"
        known = ", ".join(each.request_time for each in snapshot.timeline.timeline.pending()) or "none"
        raise InvalidQueryError(f"{state} at {instant[:40]!r}.", hint=f"Pending instants: {known}.")
    if found.action not in (COMPACTION, *_UNDONE):
        raise UnsupportedFeatureError(
            f"Rolling back a pending {found.action}.", hint="Let Java Hudi do that.", instant=instant
        )
    return found


# Compactions ---------------------------------------------------------------------------------------------------------


def _undo_compaction(session: WriteSession, snapshot: Snapshot, pending: Instant) -> RollbackResult:
    instant = pending.request_time
    plan = snapshot.timeline.compaction_plan(pending)
    groups = [(each.partition_path, each.file_id) for each in plan.operations]
    if pending.state == REQUESTED and snapshot.view.visibility.logs_carry_base_instant:
        partitions = sorted({partition for partition, _ in groups})
        for group in snapshot.view.file_groups(partitions):
            for log in group.log_files:
                if log.name.instant == instant:
                    raise UnsupportedFeatureError(
                        f"Removing a compaction plan on table version {snapshot.config.version} once log files are "
                        "named after it.",
                        hint="Run the compaction. Where a write that failed named them, roll that back first.",
                        instant=instant,
                        path=log.path,
                    )
    removed = undo_attempt(session, snapshot, pending, groups)
    if pending.state == INFLIGHT:
        return RollbackResult(instant, COMPACTION, REQUESTED, None, removed)
    session.timeline(snapshot).remove(pending)
    return RollbackResult(instant, COMPACTION, "gone", None, removed)


# Writes --------------------------------------------------------------------------------------------------------------


def _undo_write(session: WriteSession, snapshot: Snapshot, pending: Instant) -> RollbackResult:
    began = time.monotonic()
    instant = pending.request_time
    known = rollbacks_of(snapshot, instant)
    done = next((each for each in known if each.is_completed), None)
    if done is not None:
        _remove_instant(session, snapshot, pending)
        return RollbackResult(instant, pending.action, "gone", done.request_time)
    files = written_files(snapshot, instant)
    undo_metadata_commit(session.files, instant)
    recorded = _begin(session, snapshot, pending, known, files)
    for partition, names in files.items():
        for name in names:
            delete_with_checksum(session.files, f"{partition}/{name}" if partition else name)
    count = sum(map(len, files.values()))
    metadata = RollbackMetadata(
        start_rollback_time=recorded.request_time,
        total_files_deleted=count,
        commits_rolled_back=(instant,),
        instants=(RolledBackInstant(instant, pending.action),),
        partitions={partition: RolledBackPartition(names, ()) for partition, names in files.items()},
        time_taken_ms=round((time.monotonic() - began) * 1000),
    )
    completion_time = session.clock.next(newest_time(snapshot.timeline.timeline))
    content = write_rollback_metadata(metadata, java_location(session.files))
    session.timeline(snapshot).complete(recorded, completion_time, content)
    _remove_instant(session, snapshot, pending)
    return RollbackResult(instant, pending.action, "gone", recorded.request_time, count)


def _begin(session: WriteSession, snapshot: Snapshot, pending: Instant, known: list[Instant], files: Files) -> Instant:
    """Record the rollback's plan and begin it, or take up one that was begun; return the inflight instant."""
    writer = session.timeline(snapshot)
    if known:
        begun = known[0]
        return begun if begun.state == INFLIGHT else writer.begin(begun)
    time_taken = session.clock.next(newest_time(snapshot.timeline.timeline))
    plan = RollbackPlan(
        instant=RolledBackInstant(pending.request_time, pending.action),
        requests=tuple(RollbackRequest(partition, names) for partition, names in files.items()),
    )
    return writer.begin(writer.request(time_taken, ROLLBACK, write_rollback_plan(plan, java_location(session.files))))


def _remove_instant(session: WriteSession, snapshot: Snapshot, pending: Instant) -> None:
    """Remove what is left of the instant: markers, heartbeat, and its own files, the requested one last."""
    Markers(session.files, pending.request_time).remove_all()
    delete_with_checksum(session.files, f"{HEARTBEAT_FOLDER}/{pending.request_time}")
    writer = session.timeline(snapshot)
    for state in (INFLIGHT, REQUESTED):
        writer.remove(replace(pending, state=state))
