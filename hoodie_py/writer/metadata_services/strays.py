"""Remove commits of the metadata table whose writes had been rolled back by then.

A writer that sleeps before it tells the metadata table may be taken for dead, and rolled back. If it wakes, tells the
metadata table, and dies, nothing on the table's timeline is left of its write, so that the entries would count.

A rollback removes the entries that there are at that time. Where it cannot, it has a commit of its own there, which
undoes them. So entries of a write that was rolled back, by a rollback that has none, came later.
"""

from __future__ import annotations

from collections.abc import Callable

from hoodie_py.formats.timeline.instants import COMMIT, DELTA_COMMIT
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.metadata_table.undo import undo_metadata_commit
from hoodie_py.writer.transaction.pending import list_rollbacks_of


def list_strays(snapshot: Snapshot, metadata: Timeline) -> list[str]:
    """Return the request times of such commits. ``metadata`` is the metadata table's timeline.

    Rollbacks are read only where the metadata table has a commit that the table around it does not have.

    Raises:
        CorruptFileError: a rollback's file is damaged.
        StorageError: the store refused.
    """
    around = snapshot.timeline.timeline
    first = around.first_active_time
    if first is None:
        return []
    completed = metadata.select_completed()
    last = completed.select_actions(COMMIT).last  # a compaction has taken what is older into base files
    since = max(first, "" if last is None else last.request_time)
    known = {each.request_time for each in around}
    unknown = [each.request_time for each in completed.select_actions(DELTA_COMMIT) if each.request_time not in known]
    return [time for time in unknown if time > since and _is_rolled_back_before(snapshot, metadata, time)]


def remove_strays(snapshot: Snapshot, metadata: Timeline, check: Callable[[], object]) -> bool:
    """Remove such commits with their entries, and return whether there were any. Call it under the table's lock.

    Raises:
        UnsupportedFeatureError: a log file also holds other commits.
        HoodieError: as for ``list_strays``, and what ``check`` raises.
    """
    found = list_strays(snapshot, metadata)
    for time in found:
        undo_metadata_commit(snapshot.files, time, check)
    return bool(found)


def _is_rolled_back_before(snapshot: Snapshot, metadata: Timeline, time: str) -> bool:
    done = [each for each in list_rollbacks_of(snapshot, time) if each.is_completed]
    return bool(done) and all(metadata.find(each.request_time) is None for each in done)
