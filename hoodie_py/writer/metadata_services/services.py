"""Run the table services of the metadata table that are due (Hudi ``HoodieTableMetadataWriter.performTableServices``).

They run at the start of a write, before its instant, under the table's lock. So the last commit's entries are never
in a base file before the next write, and Java can roll that commit back. The order is Java's: first finish the
cleans and compactions that were begun, then clean, then compact, then archive. What ``strays`` finds goes before that.

* A clean waits until three instants follow the last compaction, as readers may still read the files before it. It is
  left out as long as a write in flight began before the compaction that made the older of the slices that stay: Java's
  writers find no file groups where the slices that they know are gone, and fail.
* A compaction is due after ``hoodie.metadata.compact.max.delta.commits`` delta commits. It waits while its base files
  could take in the entries of an instant that is not complete, or leave out those of one that is being built: while a
  pending instant of the table has entries in the metadata table, while a part of it is being built, and up to version 6
  while any instant before the metadata table's last delta commit is pending.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from hoodie_py.errors import CommitStateUnknownError, HoodieError, HoodieWarning
from hoodie_py.formats.timeline.instants import CLEAN, COMMIT, DELTA_COMMIT, INDEXING, INFLIGHT, SAVEPOINT
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.options.write import METADATA_COMPACT_COMMITS, TABLE_SERVICES
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.table.metadata_table.source import open_metadata_view
from hoodie_py.table.metadata_table.view import MetadataView
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import load_timeline
from hoodie_py.writer.metadata_services.archival import archive_metadata_timeline, choose_archived
from hoodie_py.writer.metadata_services.cleaning import KEPT_SLICES, clean_old_slices, finish_clean
from hoodie_py.writer.metadata_services.compaction import MetadataCompaction
from hoodie_py.writer.metadata_services.strays import list_strays, remove_strays
from hoodie_py.writer.metadata_table.undo import METADATA_TABLE
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time

_INSTANTS_BEFORE_CLEAN = 3
_COMPACTION_SUFFIX, _CLEAN_SUFFIX = "001", "002"  # up to version 6 instants are those of delta commits with a suffix


def run_metadata_services(session: WriteSession, before: Snapshot) -> None:
    """Compact and clean the metadata table if that is due; ``before`` is the table before the write.

    The write can do without, so a failure is a warning.
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
    """Return what may be due, in words. This costs one request: the metadata table's timeline lies as the table's."""
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
        archived = len(choose_archived(session, timeline, before.timeline.timeline).instants)
        due += [f"{archived} instants of it can be archived"] if archived else []
    return due


@watch_calls("metadata_services")
def _run(session: WriteSession, now: Snapshot, ensure_held: Callable[[], None]) -> None:
    view = open_metadata_view(now)
    if view is None:
        return
    timeline = view.timeline.timeline
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
    if choose_archived(session, timeline, now.timeline.timeline).instants:
        archive_metadata_timeline(session, now, ensure_held)


def compact_metadata_table(session: WriteSession, ensure_held: Callable[[], None]) -> None:
    """Finish what services of the metadata table have begun, then compact all its file groups, whether that is due or
    not. Call it under the table's lock, beside no pending write. A group that is too large stays as it is.

    Raises:
        HoodieError: a file is missing or damaged, or the store refused.
    """
    now = session.look()
    view = open_metadata_view(now)
    if view is not None and remove_strays(now, view.timeline.timeline, ensure_held):
        view = open_metadata_view(session.look())
    if view is None:
        return
    timeline = view.timeline.timeline
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
    """Whether a write in flight may know slices that a clean would remove; plans that nobody runs know none."""
    made = timeline.select_completed().select_actions(COMMIT).instants[-KEPT_SLICES:]
    since = (made[0].completion_time or made[0].request_time) if len(made) == KEPT_SLICES else ""
    writes = (COMMIT, DELTA_COMMIT)
    pending = [each for each in now.timeline.timeline.select_pending() if each.action != SAVEPOINT]
    return any(each.request_time < since for each in pending if each.state == INFLIGHT or each.action in writes)


def _find_obstacle(now: Snapshot, view: MetadataView) -> bool:
    """Whether the metadata table may not be compacted now."""
    timeline = now.timeline.timeline
    if now.config.metadata_partitions_inflight or len(timeline.select_pending().select_actions(INDEXING)):
        return True
    if len(view.timeline.timeline.select_pending_log_compactions()):
        return True
    known = view.timeline.timeline.select_completed()
    if now.config.has_logs_named_by_commit:
        return any(known.find(time) is not None for time in timeline.pending_times)
    last = known.select_actions(DELTA_COMMIT).last
    return last is not None and any(time <= last.request_time for time in timeline.pending_times)


def _choose_instant(session: WriteSession, now: Snapshot, view: MetadataView, suffix: str) -> str:
    timeline = view.timeline.timeline
    last = timeline.select_completed().select_actions(DELTA_COMMIT).last
    if not now.config.has_logs_named_by_commit and last is not None:
        return last.request_time + suffix
    return session.clock.take(max(find_newest_time(timeline), find_newest_time(now.timeline.timeline)))
