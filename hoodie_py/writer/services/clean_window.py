"""The commits that cleans have not passed yet, and what they made removable (Hudi ``CleanPlanner``,
``getPartitionPathsForIncrementalCleaning``).

A file slice can go once a commit before the earliest retained one has made a newer base file in its file group, or has
replaced the group. So what a clean finds depends on the commits between the earliest one that the last clean retained
and the earliest one that it retains itself. Their metadata says where to look, and whether to look at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.formats.timeline.commit_metadata import NO_COMMIT, CommitMetadata
from hoodie_py.formats.timeline.instants import CLEAN, COMMIT, SAVEPOINT
from hoodie_py.formats.timeline.plans import CleanMetadata
from hoodie_py.formats.timeline.timeline import Instant
from hoodie_py.options.write import SAVEPOINTED
from hoodie_py.table.snapshot import Snapshot


def may_free_files(snapshot: Snapshot, earliest: str) -> bool:
    """Say whether a clean that retains the commits from ``earliest`` on may find files to remove.

    The newest commits are read first. Errors as for ``list_partitions``.
    """
    since = snapshot.timeline.find_earliest_retained() or ""
    window = list(_iterate_window(snapshot, since, earliest))
    return any(_frees_files(snapshot, each) for each in reversed(window))


def list_partitions(snapshot: Snapshot, earliest: str) -> list[str] | None:
    """Return the partitions in which a clean may find files to remove; None: in any.

    Raises:
        CorruptFileError: a file of the timeline is damaged.
        StorageError: the store refused.
    """
    timeline = snapshot.timeline
    last = timeline.select_actions(CLEAN).select_completed().last
    since = timeline.find_earliest_retained()
    if last is None or since is None or timeline.is_archived_before(since):
        return None
    noted = timeline.read_instant_file(last, CleanMetadata.from_bytes).extra_metadata.get(SAVEPOINTED, "")
    kept = {each.request_time for each in timeline.select_completed().select_actions(SAVEPOINT)}
    if {each for each in noted.split(",") if each} - kept:  # what only that savepoint kept may lie anywhere
        return None
    found: set[str] = set()
    for each in _iterate_window(snapshot, since, earliest):
        metadata = timeline.read_metadata(each)
        found.update(metadata.write_stats, metadata.replaced_file_ids)
    return sorted(found)


def _iterate_window(snapshot: Snapshot, since: str, earliest: str) -> Iterator[Instant]:
    return (each for each in snapshot.timeline.select_writes() if since <= each.request_time < earliest)


def _frees_files(snapshot: Snapshot, commit: Instant) -> bool:
    if commit.action == COMMIT and snapshot.config.is_merge_on_read:  # a compaction
        return True
    metadata = snapshot.timeline.read_metadata(commit)
    return bool(metadata.replaced_file_ids) or _rewrites_files(metadata)


def _rewrites_files(metadata: CommitMetadata) -> bool:
    """Whether a commit made a base file for an older one, of which it says the instant."""
    later = (each for each in metadata.iterate_stats() if each.prev_commit not in (None, NO_COMMIT))
    return any(each.file_name is not None and parse_log_file_name(each.file_name) is None for each in later)
