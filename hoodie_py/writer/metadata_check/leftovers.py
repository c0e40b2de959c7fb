"""Log files that only pending instants wrote: what a failed write leaves until its rollback.

From table version 8 on their names tell, but for those in new buckets of a pending clustering, which have its time. Up
to version 6 a log file is named after its slice's base file. So blocks have to be looked at (spec F2.3); the metadata
table has no entry for such files, as it gets entries when a write completes.
"""

from __future__ import annotations

from hoodie_py.errors import FileMissingError
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.formats.timeline.instants import CLUSTERING
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.metadata_table.file_lists import read_file_lists
from hoodie_py.table.metadata_table.view import MetadataView
from hoodie_py.table.snapshot import Snapshot


def find_leftovers(snapshot: Snapshot, view: MetadataView) -> frozenset[str]:
    """Return the paths of log files without an entry in the metadata table whose blocks are all of pending instants.

    Raises:
        CorruptFileError: a log file is too large to look at, or the metadata table cannot be read.
        StorageError: the store refused.
    """
    timeline = snapshot.timeline.timeline
    pending = timeline.pending_times
    clusterings = timeline.select_pending().select_actions(CLUSTERING).pending_times
    named_by_commit = snapshot.config.has_logs_named_by_commit
    if not (clusterings if named_by_commit else pending):
        return frozenset()
    _, listed = read_file_lists(view, None)
    known = {each.path for files in listed.values() for each in files}
    unknown = [
        each.path
        for listing in snapshot.view.list_partitions()
        for each in listing.files
        if each.path not in known and _may_be_left(each.name, clusterings if named_by_commit else None)
    ]
    return frozenset(path for path in unknown if _is_of(snapshot, path, pending))


def _may_be_left(name: str, times: frozenset[str] | None) -> bool:
    """Say whether a file is a log file named after one of some times; None: after any."""
    parsed = parse_log_file_name(name)
    return parsed is not None and (times is None or parsed.instant in times)


def _is_of(snapshot: Snapshot, path: str, pending: frozenset[str]) -> bool:
    try:
        data = read_bounded(snapshot.files, path, "log_bytes")
    except FileMissingError:  # rolled back since the listing
        return True
    times = {block.instant_time for block in iterate_blocks(data) if isinstance(block, LogBlock)}
    return bool(times) and times <= pending
