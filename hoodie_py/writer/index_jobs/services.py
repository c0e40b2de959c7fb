"""Run the table services of the metadata table that are due (Hudi ``HoodieTableMetadataWriter.performTableServices``,
``cleanIfNecessary``, ``HoodieMetadataWriteUtils``).

They run at the start of a write, before its instant, under the table's lock. So the last commit's entries never get
into a base file before the next write, and Java can roll that commit back. The order is Java's: first finish the cleans
and compactions that were begun, then clean, then compact, then archive. Strays (``remove_strays``) are removed before
that.

* A clean keeps the two newest slices of each file group: a reader that opened the metadata table before the last
  compaction still finds its files. It waits until three instants follow the last compaction. It is left out while a
  write in flight began before the compaction that made the older of the kept slices: Java's writers fail if the slices
  that they know are gone.
* A compaction is due after ``hoodie.metadata.compact.max.delta.commits`` delta commits. Its base files must not include
  the entries of an instant that is not complete, nor leave out entries of a part that is being built. So it waits while
  a pending instant of the table has entries in the metadata table, while a part of it is being built, and up to version
  6 while any instant before the metadata table's last delta commit is pending.
* The archival of the metadata table's own timeline keeps one commit more than the table around it, and every commit
  that is active there.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace

from hoodie_py.errors import CommitStateUnknownError, HoodieError, HoodieWarning
from hoodie_py.formats.timeline.instants import CLEAN, COMMIT, DELTA_COMMIT, INDEXING, INFLIGHT, SAVEPOINT, Instant
from hoodie_py.formats.timeline.plans import CleanPlan
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.formats.timeline.writers import write_clean_metadata, write_clean_plan
from hoodie_py.options.write import KEEP_LATEST_FILE_VERSIONS, METADATA_COMPACT_COMMITS, TABLE_SERVICES, TRIGGERS
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.listing import list_timeline
from hoodie_py.table.timeline.loader import load_config, load_timeline
from hoodie_py.table.timeline.time_travel import parse_zone
from hoodie_py.writer.archival.active_files import ActiveTimeline
from hoodie_py.writer.archival.archive import archive_instants
from hoodie_py.writer.archival.choice import Choice, choose_metadata_instants
from hoodie_py.writer.indexes.undo import METADATA_TABLE, undo_metadata_commit
from hoodie_py.writer.services.clean import make_metadata
from hoodie_py.writer.services.clean_plan import CleanSettings, check_plan, make_plan, read_saved_plan
from hoodie_py.writer.settings import ArchivalSettings
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter
from hoodie_py.writer.transaction.pending import list_rollbacks_of


def list_strays(snapshot: Snapshot, metadata: Timeline) -> list[str]:
    """Return the request times of strays: commits of the metadata table whose writes were rolled back before.

    A writer that sleeps before it writes to the metadata table may be judged dead, and rolled back. If it wakes, writes
    there, and dies, nothing on the table's timeline is left of its write, so that its entries would count.

    A rollback removes the entries that exist at that time; if it cannot, it has a commit of its own in the metadata
    table, which undoes them. So entries of a rolled back write came later if its rollback has no such commit.
    ``metadata`` is the metadata table's timeline.

    Raises:
        CorruptFileError: a rollback's file is damaged.
        StorageError: the store refused.
    """
    around = snapshot.timeline
    first = around.first_active_time
    if first is None:
        return []
    completed = metadata.select_completed()
    last = completed.select_actions(COMMIT).last  # a compaction has merged older entries into base files
    since = max(first, "" if last is None else last.request_time)
    known = {each.request_time for each in around}
    # Rollbacks are read only for commits that the table's timeline does not have.
    unknown = [each.request_time for each in completed.select_actions(DELTA_COMMIT) if each.request_time not in known]
    return [time for time in unknown if time > since and _is_rolled_back_before(snapshot, metadata, time)]


def remove_strays(snapshot: Snapshot, metadata: Timeline, check: Callable[[], object]) -> bool:
    """Remove strays (``list_strays``) with their entries, and return whether there were any. The caller holds the lock.

    Raises:
        UnsupportedFeatureError: a log file also holds other commits.
        HoodieError: as for ``list_strays``, and what ``check`` raises.
    """
    found = list_strays(snapshot, metadata)
    for each in found:
        undo_metadata_commit(snapshot.files, each, check)
    return bool(found)


def _is_rolled_back_before(snapshot: Snapshot, metadata: Timeline, time: str) -> bool:
    done = [each for each in list_rollbacks_of(snapshot, time) if each.is_completed]
    return bool(done) and all(metadata.find(each.request_time) is None for each in done)


KEPT_SLICES = 2


def clean_old_slices(session: WriteSession, view: MetadataView, instant: str, ensure_held: Callable[[], None]) -> None:
    """Plan and run a clean if there is something to remove. The caller holds the lock of the table around it.

    It keeps the newest slices of each file group, as Java does (``CleanPlanner.getFilesToCleanKeepingLatestVersions``).

    Raises:
        ConflictError: another writer has an instant of that time.
        CommitStateUnknownError: the store did not say whether a timeline file was written.
        StorageError: the store refused; the clean stays pending, and the next write finishes it.
    """
    snapshot = _make_snapshot(session, view)
    plan = make_plan(snapshot, CleanSettings(KEEP_LATEST_FILE_VERSIONS, versions=KEPT_SLICES)).plan
    if plan is None or view.timeline.find(instant) is not None:
        return
    ensure_held()
    writer = TimelineWriter(snapshot.files, view.config)
    requested = writer.request(instant, CLEAN, write_clean_plan(plan, snapshot.files.java_uri))
    _carry_out(session, view, requested, plan, ensure_held)


def finish_clean(session: WriteSession, view: MetadataView, pending: Instant, ensure_held: Callable[[], None]) -> None:
    """Finish a clean that another writer began, by its plan. Deleting a file twice is no error.

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
    metadata = make_metadata(plan, pending.request_time, began)
    completion_time = session.clock.take(find_newest_time(view.timeline))
    ensure_held()
    writer.complete(inflight, completion_time, write_clean_metadata(metadata))


def choose_archived(session: WriteSession, metadata: Timeline, data: Timeline) -> Choice:
    """Return the instants of the metadata table that may be archived. This costs no request."""
    return choose_metadata_instants(metadata, data, _make_settings(session))


def archive_metadata_timeline(session: WriteSession, now: Snapshot, ensure_held: Callable[[], None]) -> None:
    """Archive the instants that are due. The caller holds the lock of the table around the metadata table.

    Raises:
        CorruptFileError: a file of the timeline or of the archive is damaged.
        ConflictError: the lock is lost, or another writer archives.
        CommitStateUnknownError: the store did not say whether it wrote a file.
        StorageError: the store refused.
    """
    files = session.files.sub(METADATA_TABLE)
    config = load_config(files)  # the folder of its archive may have another name than the table's
    listing = list_timeline(files, config)
    settings = _make_settings(session)
    choice = choose_metadata_instants(listing.timeline, now.timeline, settings)
    zone = parse_zone(session.timezone, now.config.timezone)
    archive_instants(ActiveTimeline(files, config, listing.names, zone), choice.instants, settings, ensure_held)


def _make_settings(session: WriteSession) -> ArchivalSettings:
    settings = session.settings.archival
    return replace(
        settings,
        min_commits=settings.min_commits + 1,
        max_commits=settings.max_commits + 1,
        clean_policy=KEEP_LATEST_FILE_VERSIONS,
        trigger=TRIGGERS[0],
        delta_commits=METADATA_COMPACT_COMMITS.read(session.settings.options),
    )


_INSTANTS_BEFORE_CLEAN = 3
_COMPACTION_SUFFIX, _CLEAN_SUFFIX = "001", "002"  # up to version 6 an instant is a delta commit's with a suffix


def run_metadata_services(session: WriteSession, before: Snapshot) -> None:
    """Compact and clean the metadata table if that is due. ``before`` is the table before the write.

    The write does not need it, so a failure is a warning.
    """
    if session.settings.metadata_mode != "auto" or not TABLE_SERVICES.read(session.settings.options):
        return
    if not before.config.metadata_partitions:
        return
    try:
        if _may_be_due(session, before):
            with session.hold_lock() as holding:
                _run(session, session.look(), holding.ensure_held)
    except CommitStateUnknownError:
        raise
    except HoodieError as error:
        text = f"A table service of the metadata table failed, and the write goes on: {error}"
        warnings.warn(HoodieWarning(text), stacklevel=3)


def _may_be_due(session: WriteSession, before: Snapshot) -> bool:
    """Whether a service may be due."""
    return bool(list_due(session, before))


def list_due(session: WriteSession, before: Snapshot) -> list[str]:
    """Return what may be due, in words. This costs one request: both timelines are in folders of the same name."""
    timeline = load_timeline(session.files.sub(METADATA_TABLE), before.config)
    begun = len(_select_begun_cleans(timeline)) + len(timeline.select_pending_compactions())
    due = [f"{begun} services of it have begun"] if begun else []
    strays = list_strays(before, timeline)
    if strays:
        due.append(f"it has {len(strays)} commits of writes that were rolled back before")
    if _is_compaction_due(session, timeline):
        due.append(f"{_count_deltas(timeline)} delta commits since its last compaction")
    if _may_clean(timeline):
        due.append("slices of it from before its last compaction")
    if not due:
        archived = len(choose_archived(session, timeline, before.timeline).instants)
        due += [f"{archived} instants of it can be archived"] if archived else []
    return due


@watch_calls("metadata_services")
def _run(session: WriteSession, now: Snapshot, ensure_held: Callable[[], None]) -> None:
    from hoodie_py.writer.index_jobs.compaction import MetadataCompaction  # every write asks what is due; few compact

    view = open_metadata_view(now)
    if view is None:
        return
    timeline = view.timeline
    if remove_strays(now, timeline, ensure_held):
        return  # what follows would need the new timeline; the next write does it
    cleans, compactions = _select_begun_cleans(timeline), timeline.select_pending_compactions()
    for instant in cleans:
        finish_clean(session, view, instant, ensure_held)
    for instant in compactions:
        MetadataCompaction(session, view).run(instant, ensure_held)
    if len(cleans) or len(compactions):
        return  # as above
    if _may_clean(timeline) and not _has_older_writers(now, timeline):
        clean_old_slices(session, view, _choose_instant(session, now, view, _CLEAN_SUFFIX), ensure_held)
    if _is_compaction_due(session, timeline) and not _find_obstacle(now, view):
        compaction = MetadataCompaction(session, view)
        requested = compaction.schedule(_choose_instant(session, now, view, _COMPACTION_SUFFIX), ensure_held)
        if requested is not None:
            compaction.run(requested, ensure_held)
    if choose_archived(session, timeline, now.timeline).instants:
        archive_metadata_timeline(session, now, ensure_held)


def compact_metadata_table(session: WriteSession, ensure_held: Callable[[], None]) -> None:
    """Finish the services of the metadata table that were begun, then compact all its file groups, due or not.

    The caller holds the table's lock, and no write is pending. A group that is too large stays as it is.

    Raises:
        HoodieError: a file is missing or damaged, or the store refused.
    """
    from hoodie_py.writer.index_jobs.compaction import MetadataCompaction

    now = session.look()
    view = open_metadata_view(now)
    if view is not None and remove_strays(now, view.timeline, ensure_held):
        view = open_metadata_view(session.look())
    if view is None:
        return
    timeline = view.timeline
    cleans, compactions = _select_begun_cleans(timeline), timeline.select_pending_compactions()
    for instant in cleans:
        finish_clean(session, view, instant, ensure_held)
    for instant in compactions:
        MetadataCompaction(session, view).run(instant, ensure_held)
    now = session.look()
    view = open_metadata_view(now)
    if view is None or _find_obstacle(now, view):
        return
    compaction = MetadataCompaction(session, view)
    requested = compaction.schedule(_choose_instant(session, now, view, _COMPACTION_SUFFIX), ensure_held)
    if requested is not None:
        compaction.run(requested, ensure_held)


def _select_begun_cleans(timeline: Timeline) -> Timeline:
    return timeline.select_pending().select_actions(CLEAN)


def _is_compaction_due(session: WriteSession, timeline: Timeline) -> bool:
    """Whether enough delta commits completed after the last compaction (Hudi ``CompactionUtils``)."""
    return _count_deltas(timeline) >= METADATA_COMPACT_COMMITS.read(session.settings.options)


def _count_deltas(timeline: Timeline) -> int:
    completed = timeline.select_completed()
    last = completed.select_actions(COMMIT).last
    since = "" if last is None else last.request_time
    deltas = completed.select_actions(DELTA_COMMIT)
    return sum((each.completion_time or each.request_time) > since for each in deltas)


def _may_clean(timeline: Timeline) -> bool:
    """Whether readers have just had time to finish since the last compaction (Hudi ``cleanIfNecessary``)."""
    completed = timeline.select_completed()
    last = completed.select_actions(COMMIT).last
    if last is None:
        return False  # every file group has one slice
    later = completed.select_after(last.request_time)
    return len(later) == _INSTANTS_BEFORE_CLEAN


def _has_older_writers(now: Snapshot, timeline: Timeline) -> bool:
    """Whether a write in flight may know slices that a clean would remove. A plan that no process runs knows none."""
    made = timeline.select_completed().select_actions(COMMIT).instants[-KEPT_SLICES:]
    since = (made[0].completion_time or made[0].request_time) if len(made) == KEPT_SLICES else ""
    writes = (COMMIT, DELTA_COMMIT)
    pending = [each for each in now.timeline.select_pending() if each.action != SAVEPOINT]
    return any(each.request_time < since for each in pending if each.state == INFLIGHT or each.action in writes)


def _find_obstacle(now: Snapshot, view: MetadataView) -> bool:
    """Whether the metadata table may not be compacted now."""
    timeline = now.timeline
    if now.config.metadata_partitions_inflight or len(timeline.select_pending().select_actions(INDEXING)):
        return True
    if len(view.timeline.select_pending_log_compactions()):
        return True
    known = view.timeline.select_completed()
    if now.config.has_logs_named_by_commit:
        return any(known.find(time) is not None for time in timeline.pending_times)
    last = known.select_actions(DELTA_COMMIT).last
    return last is not None and any(time <= last.request_time for time in timeline.pending_times)


def _choose_instant(session: WriteSession, now: Snapshot, view: MetadataView, suffix: str) -> str:
    timeline = view.timeline
    last = timeline.select_completed().select_actions(DELTA_COMMIT).last
    if not now.config.has_logs_named_by_commit and last is not None:
        return last.request_time + suffix
    return session.clock.take(max(find_newest_time(timeline), find_newest_time(now.timeline)))
