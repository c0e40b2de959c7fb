"""Clean the metadata table: remove slices that no reader needs any more (Hudi ``cleanIfNecessary``,
``CleanPlanner.getFilesToCleanKeepingLatestVersions``).

Java keeps the two newest slices of each file group. A reader that opened the metadata table before the last compaction
still finds the files that it knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hoodie_py.formats.timeline.instants import CLEAN
from hoodie_py.formats.timeline.plans import CleanedPartition, CleanMetadata
from hoodie_py.formats.timeline.writers import write_clean_metadata, write_clean_plan
from hoodie_py.options.write import KEEP_LATEST_FILE_VERSIONS
from hoodie_py.table.metadata_table.view import MetadataView
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.clean.plan import CleanSettings, make_plan
from hoodie_py.writer.metadata_table.undo import METADATA_TABLE
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter

_VERSIONS = 2


def clean_old_slices(session: WriteSession, view: MetadataView, instant: str, ensure_held: Callable[[], None]) -> None:
    """Plan a clean and carry it out, if there is something to remove. The caller holds the lock of the table around it.

    Raises:
        ConflictError: another writer has an instant of that time.
        CommitStateUnknownError: the store did not say whether a timeline file was written.
        StorageError: the store refused; Java Hudi finishes the clean.
    """
    began = time.monotonic()
    files = session.files.sub(METADATA_TABLE)
    snapshot = Snapshot(files, view.config, view.timeline)
    plan = make_plan(snapshot, CleanSettings(KEEP_LATEST_FILE_VERSIONS, versions=_VERSIONS)).plan
    if plan is None or view.timeline.timeline.find(instant) is not None:
        return
    writer = TimelineWriter(files, view.config)
    ensure_held()
    inflight = writer.begin(writer.request(instant, CLEAN, write_clean_plan(plan, files.java_uri)))
    for partition, names in plan.files.items():
        for name in names:
            files.delete_with_checksum(f"{partition}/{name}")
    metadata = CleanMetadata(
        start_clean_time=instant,
        total_files_deleted=sum(map(len, plan.files.values())),
        last_completed_commit_timestamp=plan.last_completed_commit_timestamp,
        partitions={
            partition: CleanedPartition(tuple(names), (), False, plan.policy or "")
            for partition, names in plan.files.items()
        },
        time_taken_ms=round((time.monotonic() - began) * 1000),
    )
    completion_time = session.clock.take(find_newest_time(view.timeline.timeline))
    writer.complete(inflight, completion_time, write_clean_metadata(metadata))
