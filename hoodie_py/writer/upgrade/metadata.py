"""The metadata table while a table's version changes.

It moves like the table around it. Meanwhile the properties list its partitions as being built, so that no reader uses
it; if the run dies, the next one builds them anew. Partitions that the other version does not know are dropped first.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo

from hoodie_py.errors import FileMissingError, InvalidTableError, TableNotFoundError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import METADATA_PARTITIONS, METADATA_PARTITIONS_INFLIGHT, TableConfig
from hoodie_py.formats.indexes import definitions as names
from hoodie_py.formats.timeline.instants import COMMIT, DELTA_COMMIT
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.indexes.view import read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import load_config, load_timeline
from hoodie_py.writer.handles.markers import remove_finished
from hoodie_py.writer.index_jobs.build import PartitionState, rebuild_partitions
from hoodie_py.writer.index_jobs.services import compact_metadata_table
from hoodie_py.writer.indexes.commit import DeltaCommit
from hoodie_py.writer.indexes.metadata_table import write_definitions
from hoodie_py.writer.indexes.partition_files import PartitionFiles
from hoodie_py.writer.indexes.registry import find_index
from hoodie_py.writer.indexes.undo import METADATA_TABLE
from hoodie_py.writer.lock.lock import HeldLock
from hoodie_py.writer.timeline.folder_tree import remove_tree
from hoodie_py.writer.timeline.session import WriteSession, find_newest_time
from hoodie_py.writer.timeline.table_properties import change_properties
from hoodie_py.writer.upgrade.step import Changes, Step, apply_changes
from hoodie_py.writer.upgrade.timeline_move import TimelineMove, list_leftovers


def drop_partitions(session: WriteSession, snapshot: Snapshot, step: Step) -> None:
    """Drop the partitions that do not stay, with their definitions.

    Raises:
        StorageError: the store refused; the next run goes on.
    """
    config = snapshot.config
    if step.dropped:
        gone = step.dropped
        if names.FILES_PARTITION in gone:
            gone = (*config.metadata_partitions, *config.metadata_partitions_inflight)
        PartitionState(session.files, config).drop(gone)
    if step.definitions is not None:
        write_definitions(session.files, config, step.definitions)
    for name in step.dropped:
        if name == names.FILES_PARTITION:
            remove_tree(session.files, METADATA_TABLE)
        else:
            remove_tree(session.files.sub(METADATA_TABLE), name)


def set_aside(session: WriteSession, snapshot: Snapshot, ensure_held: Callable[[], None]) -> tuple[str, ...]:
    """Compact the metadata table and take it out of use; return the partitions that were complete."""
    config = snapshot.config
    if not config.metadata_partitions:
        if (
            names.FILES_PARTITION in config.metadata_partitions_inflight
        ):  # a run that died, or a build: it is built anew
            remove_tree(session.files, METADATA_TABLE)
        return ()
    compact_metadata_table(session, ensure_held)
    ensure_held()
    # No reader may use it while it is between two layouts; a run that dies here leaves it to be built anew.
    every = sorted({*config.metadata_partitions, *config.metadata_partitions_inflight})
    change_properties(session.files, {METADATA_PARTITIONS: "", METADATA_PARTITIONS_INFLIGHT: ",".join(every)})
    return tuple(config.metadata_partitions)


def forget_metadata_table(session: WriteSession, snapshot: Snapshot) -> None:
    """Remove the metadata table, and list its partitions in the properties as ones to build."""
    config = snapshot.config
    every = sorted({*config.metadata_partitions, *config.metadata_partitions_inflight})
    if every:
        change_properties(session.files, {METADATA_PARTITIONS: "", METADATA_PARTITIONS_INFLIGHT: ",".join(every)})
    remove_tree(session.files, METADATA_TABLE)


def move_metadata_table(
    session: WriteSession, step: Step, zone: tzinfo, ensure_held: Callable[[], None], *, moves: bool
) -> None:
    """Bring the metadata table, if there is one, to the version of a step.

    ``moves``: whether the layout of timelines changes. A metadata table that the table does not use any more is left
    alone.

    Raises:
        CorruptFileError: a file of it is damaged.
        StorageError: the store refused; the next run goes on.
    """
    files = session.files.sub(METADATA_TABLE)
    before = _load(files)
    if before is None or before.version == step.to:
        return
    changes = dict(step.metadata_changes)
    after = TableConfig.from_properties(apply_changes(before.properties, changes))
    move = TimelineMove(files, before, after, zone, session.settings.archival, ensure_held)
    if moves:
        move.copy()
    ensure_held()
    change_properties(files, changes)
    if moves:
        move.remove_old()


def _load(files: TableFiles) -> TableConfig | None:
    try:
        return load_config(files)
    except TableNotFoundError:
        return None


def name_partitions(snapshot: Snapshot, complete: tuple[str, ...], step: Step) -> Changes:
    """Return the properties that put partitions into use again, and list the others as ones to build."""
    config = snapshot.config
    if not complete and not config.metadata_partitions and not config.metadata_partitions_inflight:
        return {}
    kept = [each for each in complete if each not in step.dropped]
    inflight = set(config.metadata_partitions_inflight) - set(kept) - set(step.dropped)
    return {METADATA_PARTITIONS: ",".join(sorted(kept)), METADATA_PARTITIONS_INFLIGHT: ",".join(sorted(inflight))}


def finish_metadata_table(session: WriteSession, holding: HeldLock) -> list[str]:
    """Build the partitions that are listed as ones to build, and return sentences about what was done."""
    snapshot = session.look()
    config = snapshot.config
    told: list[str] = []
    files = session.files.sub(METADATA_TABLE)
    metadata = _load(files)
    if metadata is not None and config.metadata_partitions:
        for path in list_leftovers(files, metadata):
            files.delete_with_checksum(path)
        remove_finished(files, load_timeline(files, metadata))  # markers of a compaction that died after it completed
    left = list(config.metadata_partitions_inflight)
    if config.metadata_partitions and not left and _is_behind(snapshot):
        left = list(config.metadata_partitions)
        change_properties(session.files, {METADATA_PARTITIONS: "", METADATA_PARTITIONS_INFLIGHT: ",".join(left)})
    unknown = [name for name in left if find_index(name) is None]
    if unknown:
        _forget(session, unknown)
        told.append(f"The indexes {', '.join(unknown)} are dropped: they cannot be built here.")
    left = [name for name in left if name not in unknown]
    if left:
        rebuild_partitions(session, left, holding)
        told.append(f"Built {', '.join(sorted(left))} of the metadata table anew.")
    return told


def _is_behind(snapshot: Snapshot) -> bool:
    try:
        view = open_metadata_view(snapshot)
    except (FileMissingError, InvalidTableError, TableNotFoundError):
        return True
    return view is not None and bool(view.unlisted)


def _forget(session: WriteSession, partitions: list[str]) -> None:
    config = session.look().config
    PartitionState(session.files, config).drop(partitions)
    definitions = read_definitions(session.files, config)
    for name in partitions:
        definitions = definitions.drop(name)
        remove_tree(session.files.sub(METADATA_TABLE), name)
    write_definitions(session.files, config, definitions)


def add_empty_commit(session: WriteSession, ensure_held: Callable[[], None]) -> None:
    """Add a delta commit after the last compaction of the metadata table, in a table of version 6 (Hudi
    ``UpgradeDowngrade.run``).

    Up to that version the instant of the next compaction is made from the last delta commit's with a suffix, and must
    be later than the last compaction.
    """
    snapshot = session.look()
    view = open_metadata_view(snapshot)
    if view is None:
        return
    completed = view.timeline.select_completed()
    last, delta = completed.select_actions(COMMIT).last, completed.select_actions(DELTA_COMMIT).last
    if last is None or delta is None or delta.request_time > last.request_time:
        return
    files = session.files.sub(METADATA_TABLE)
    schema = PartitionFiles(
        files, view.config, names.FILES_PARTITION, view.list_file_groups(names.FILES_PARTITION)
    ).read_schema()
    if schema is None:
        raise InvalidTableError("No file of the metadata table has a schema.", path=files.uri)
    beyond = max(find_newest_time(load_timeline(files, view.config)), find_newest_time(snapshot.timeline))
    commit = DeltaCommit(files, view.config, session.clock.take(beyond), schema)
    ensure_held()
    commit.begin()
    commit.write([])
    commit.complete(session.clock.take(beyond))
