"""Clean the metadata table: remove slices that no reader needs any more (Hudi ``cleanIfNecessary``,
``CleanPlanner.getFilesToCleanKeepingLatestVersions``).

Java keeps the two newest slices of each file group. A reader that opened the metadata table before the last compaction
still finds the files that it knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hoodie_py.formats.timeline.instants import CLEAN, INFLIGHT, Instant
from hoodie_py.formats.timeline.plans import CleanedPartition, CleanMetadata, CleanPlan
from hoodie_py.formats.timeline.writers import write_clean_metadata, write_clean_plan
from hoodie_py.options.write import KEEP_LATEST_FILE_VERSIONS
from hoodie_py.table.metadata_table.view import MetadataView
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.clean.plan import CleanSettings, check_plan, make_plan, read_saved_plan
from hoodie_py.writer.metadata_table.undo import METADATA_TABLE
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter

KEPT_SLICES = 2


def clean_old_slices(session: WriteSession, view: MetadataView, instant: str, ensure_held: Callable[[], None]) -> None:
    """Plan a clean and carry it out, if there is something to remove. The caller holds the lock of the table around it.

    Raises:
        ConflictError: another writer has an instant of that time.
        CommitStateUnknownError: the store did not say whether a timeline file was written.
        StorageError: the store refused; the clean stays pending, and the next write finishes it.
    """
    snapshot = _make_snapshot(session, view)
    plan = make_plan(snapshot, CleanSettings(KEEP_LATEST_FILE_VERSIONS, versions=KEPT_SLICES)).plan
    if plan is None or view.timeline.timeline.find(instant) is not None:
        return
    ensure_held()
    writer = TimelineWriter(snapshot.files, view.config)
    requested = writer.request(instant, CLEAN, write_clean_plan(plan, snapshot.files.java_uri))
    _carry_out(session, view, requested, plan, ensure_held)


def finish_clean(session: WriteSession, view: MetadataView, pending: Instant, ensure_held: Callable[[], None]) -> None:
    """Finish a clean that another writer began, by its plan; to delete a file twice is no error.

    Raises:
        CorruptFileError, FileMissingError, InvalidTableError: the plan is damaged, or names files that are needed.
        CommitStateUnknownError, StorageError: as ``clean_old_slices``.
    """
    snapshot = _make_snapshot(session, view)
    plan = read_saved_plan(snapshot, pending)
    ensure_held()
    if plan is None:
        TimelineWriter(snapshot.files, view.config).remove_pending(pending)  # as Java does; it has removed nothing
        return
    check_plan(snapshot, plan)
    _carry_out(session, view, pending, plan, ensure_held)


def _make_snapshot(session: WriteSession, view: MetadataView) -> Snapshot:
    return Snapshot(session.files.sub(METADATA_TABLE), view.config, view.timeline)


def _carry_out(
    session: WriteSession, view: MetadataView, pending: Instant, plan: CleanPlan, ensure_held: Callable[[], None]
) -> None:
    began = time.monotonic()
    files = session.files.sub(METADATA_TABLE)
    writer = TimelineWriter(files, view.config)
    inflight = pending if pending.state == INFLIGHT else writer.begin(pending)
    for partition, names in plan.files.items():
        for name in names:
            files.delete_with_checksum(f"{partition}/{name}")
    metadata = CleanMetadata(
        start_clean_time=pending.request_time,
        total_files_deleted=sum(map(len, plan.files.values())),
        earliest_commit_to_retain=plan.earliest_instant_to_retain,
        last_completed_commit_timestamp=plan.last_completed_commit_timestamp,
        partitions={
            partition: CleanedPartition(tuple(names), (), False, plan.policy or "")
            for partition, names in plan.files.items()
        },
        time_taken_ms=round((time.monotonic() - began) * 1000),
        extra_metadata=plan.extra_metadata,
    )
    completion_time = session.clock.take(find_newest_time(view.timeline.timeline))
    ensure_held()
    writer.complete(inflight, completion_time, write_clean_metadata(metadata))
