"""Undo a commit of the metadata table, or look for one (Hudi ``HoodieBackedTableMetadataWriter.update``).

Readers ignore log blocks of an instant that has not completed in the table around the metadata table. Undoing such an
instant includes removing its log files in all partitions of the metadata table, and its delta commit there. Java does
the same by a rollback in the metadata table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hoodie_py.errors import FileMissingError, TableNotFoundError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.indexes.definitions import RECORD_INDEX, SECONDARY_PREFIX
from hoodie_py.formats.indexes.own_instants import BEFORE_ALL, creates_partition, find_covered_time
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import (
    COMMIT,
    COMPACTION,
    COMPLETED,
    DELTA_COMMIT,
    INFLIGHT,
    REQUESTED,
    Instant,
)
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import load_config, load_timeline
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.indexes.partition_files import PartitionFiles, list_partition_folders
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter

METADATA_TABLE = f"{METADATA_FOLDER}/metadata"


def is_recorded_in_metadata(snapshot: Snapshot, instant: str) -> bool:
    """Whether a table's metadata table has a complete commit of an instant."""
    found = _load_metadata_timeline(snapshot).find(instant, DELTA_COMMIT)
    return found is not None and found.is_completed


def is_compacted_in_metadata(snapshot: Snapshot, instant: str) -> bool:
    """Whether a base file of the metadata table may contain the instant's entries, so that they cannot be removed.

    That base file comes from a later compaction, or from a commit that created a partition from the table's files after
    the instant wrote them. Up to table version 6 nothing is created beside pending instants, so the times show which
    came first; if they do not, such a commit always counts.
    """
    timeline = _load_metadata_timeline(snapshot)
    if len(timeline.select_after(instant).select_actions(COMMIT, COMPACTION)):
        return True
    if timeline.find(instant) is not None:
        return False
    return any(_may_cover(each, instant) for each in timeline if creates_partition(each.request_time))


def _may_cover(creation: Instant, instant: str) -> bool:
    """Whether a commit that created a partition may have included the files of an instant."""
    if not creation.request_time.startswith(BEFORE_ALL):
        return find_covered_time(creation.request_time) >= instant
    done = creation.completion_time
    return done in (None, creation.request_time) or done > instant  # timeline layout 1 has no time of completion


def is_index_compacted_in_metadata(snapshot: Snapshot, instant: str) -> bool:
    """Whether base files of the metadata table contain entries of an index over keys that the instant wrote.

    They record where keys are, not where they were, so they cannot be taken back (Hudi ``validateRollback``).
    """
    names = snapshot.config.metadata_partitions
    if not any(name == RECORD_INDEX or name.startswith(SECONDARY_PREFIX) for name in names):
        return False
    timeline = _load_metadata_timeline(snapshot)
    found = timeline.find(instant, DELTA_COMMIT)
    if found is None or not found.is_completed:
        return False
    compactions = timeline.select_completed().select_actions(COMMIT)
    return any(each.request_time > (found.completion_time or found.request_time) for each in compactions)


def _load_metadata_timeline(snapshot: Snapshot) -> Timeline:
    """Return the timeline of the metadata table; an empty one if there is no metadata table."""
    if not snapshot.config.metadata_partitions:
        return Timeline()
    place = snapshot.files.sub(METADATA_TABLE)
    try:
        return load_timeline(place, load_config(place))
    except TableNotFoundError:
        return Timeline()


def undo_metadata_commit(files: TableFiles, instant: str, check: Callable[[], object] | None = None) -> None:
    """Remove the entries of a pending instant from the metadata table, if it has any. Call it under the table's lock.

    ``check`` is called between the listing and the deletion. It raises if the run has lost the lock or its heartbeat:
    then another process may have run the instant again.

    Raises:
        UnsupportedFeatureError: a log file of the metadata table also holds other commits.
    """
    place = files.sub(METADATA_TABLE)
    found = _find_commit(place, instant)
    if found is None:
        return
    if check is not None and (found.paths or found.states):
        check()
    # The instant goes after its files, the completed file first: whatever is left is still found by the next attempt.
    for path in found.paths:
        place.delete_with_checksum(path)
    for state in found.states:
        found.writer.remove(state)
    Markers(place, instant).remove_all()


def list_metadata_files(files: TableFiles, instant: str) -> list[str]:
    """Return the paths of the files that ``undo_metadata_commit`` would remove; errors as for it."""
    place = files.sub(METADATA_TABLE)
    found = _find_commit(place, instant)
    if found is None:
        return []
    paths = [*found.paths, *map(found.writer.locate, found.states)]
    return [f"{METADATA_TABLE}/{path}" for path in paths if place.exists(path)]


@dataclass(frozen=True, slots=True)
class _Commit:
    """The files of a metadata table's commit: its log files, and the states of its instant in the order of removal."""

    writer: TimelineWriter
    paths: tuple[str, ...]
    states: tuple[Instant, ...]


def _find_commit(place: TableFiles, instant: str) -> _Commit | None:
    """Find a commit of the metadata table; None if there is no such table."""
    try:
        config = load_config(place)
    except TableNotFoundError:
        return None
    found = load_timeline(place, config).find(instant, DELTA_COMMIT)
    paths = {marker.path for marker in Markers(place, instant).list_announced()}
    writer = TimelineWriter(place, config)
    if found is not None and found.is_completed:
        stats = CommitMetadata.from_bytes(read_bounded(place, writer.locate(found))).iterate_stats()
        paths |= {stat.path for stat in stats if stat.path}
    if found is not None and config.has_logs_named_by_commit:
        for partition in list_partition_folders(place):
            paths |= set(PartitionFiles(place, config, partition).list_logs_of(instant))
    for path in sorted(paths):
        _check_own_log(place, path, instant)
    states: tuple[Instant, ...] = ()
    if found is not None:
        names = (COMPLETED, INFLIGHT, REQUESTED) if found.is_completed else (INFLIGHT, REQUESTED)
        states = tuple(replace(found, state=state) for state in names)
    return _Commit(writer, tuple(sorted(paths)), states)


def _check_own_log(files: TableFiles, path: str, instant: str) -> None:
    try:
        data = read_bounded(files, path)
    except FileMissingError:
        return
    blocks = [block for block in iterate_blocks(data) if isinstance(block, LogBlock)]
    if any(block.instant_time != instant for block in blocks):
        raise UnsupportedFeatureError(
            "Undoing a commit of the metadata table that shares a log file with others.",
            hint="Let Java Hudi roll the instant back.",
            path=path,
            instant=instant,
        )
