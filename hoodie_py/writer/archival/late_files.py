"""Remove the files of writes that were rolled back, before the active timeline begins after their instants.

A writer that sleeps may be judged dead, and rolled back. If it wakes, finishes a data file, and dies before it removes
the file again, the file stays. Readers ignore it, as its instant never completed. But an instant before the start of
the active timeline counts as archived, thus completed (``Timeline.is_archived_before``): the file's rows would appear.

So the archival that passes a rolled back instant lists the folders. Log files up to table version 6 are left alone:
they carry the instant of their slice, which may be a compaction that was rolled back while they are in use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.handles.data_file import is_named_after
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.transaction.pending import list_rolled_back


def remove_late_files(now: Snapshot, leaving: Sequence[Instant], ensure_held: Callable[[], None]) -> list[str]:
    """Remove data files of rolled back instants that the archival would make count, and return their paths.

    The caller holds the table's lock. ``ensure_held`` raises a ConflictError once the lock is lost.

    Raises:
        CorruptFileError: a rollback's file is damaged.
        StorageError: the store refused.
    """
    times = _list_times(now, leaving)
    if not times:
        return []
    every = now.config.has_logs_named_by_commit
    found = [
        info.path
        for listing in now.view.list_data_folders()
        for info in listing.files
        if (every or not info.name.startswith(".")) and any(is_named_after(info.name, time) for time in times)
    ]
    ensure_held()
    for path in found:
        now.files.delete_with_checksum(path)
    for time in times:
        Markers(now.files, time).remove_all()
    return found


def _list_times(now: Snapshot, leaving: Sequence[Instant]) -> list[str]:
    """Return the rolled back instants between the start of the active timeline now and its start after the archival."""
    timeline, going = now.timeline, set(leaving)
    first, then = timeline.first_active_time, timeline.filter(lambda each: each not in going).first_active_time
    if first is None or then is None or first == then:
        return []
    gone = [time for time in list_rolled_back(now) if first <= time < then and timeline.find(time) is None]
    # A compaction may have been rolled back, run again, completed and archived: its files count.
    return [time for time in gone if time not in now.timeline.read_archive().completion_times]
