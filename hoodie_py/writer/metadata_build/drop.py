"""Drop partitions of the metadata table (Hudi ``HoodieBackedTableMetadataWriter.dropMetadataPartitions``).

The table's properties change first, so that no reader uses what is about to go. Then go the definition, without which
Java does not build the index again, the files, and the plan of a Java build of it.

A Java build that ended in an error leaves an inflight instant, and maybe a definition, of a partition that the
properties do not name. It is dropped like any other: until then only Java writes to the table or builds an index.
"""

from __future__ import annotations

from collections.abc import Mapping

from hoodie_py.errors import CorruptFileError, FileMissingError, InvalidQueryError, InvalidTableError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.metadata_table import index_definitions as names
from hoodie_py.formats.timeline.instants import INDEXING, Instant
from hoodie_py.table.metadata_table.definitions import read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.metadata_build.checks import check_nothing_pending
from hoodie_py.writer.metadata_build.state import PartitionState
from hoodie_py.writer.metadata_table.definitions_file import write_definitions
from hoodie_py.writer.metadata_table.kept_indexes import list_planned_partitions
from hoodie_py.writer.metadata_table.undo import METADATA_TABLE
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.timeline.folder_tree import remove_tree
from hoodie_py.writer.timeline.session import WriteSession

Planned = Mapping[Instant, frozenset[str]]
"""Pending instants of Java that build partitions of the metadata table, and the partitions."""


def drop_index(session: WriteSession, name: str) -> list[str]:
    """Drop a partition, with those that are made from it, and return their names. ``files`` stands for all.

    The name may lack the prefix of secondary and expression indexes.

    Raises:
        InvalidQueryError: there is no such partition, or another index needs it.
        ConflictError: another writer holds the lock or is at work.
        StorageError: the store refused.
    """
    undo_failed_writes(session)
    with session.hold_lock() as holding:
        snapshot = session.look()
        planned = list_planned(snapshot)
        dropped = _choose_dropped(snapshot, name, planned)
        check_nothing_pending(snapshot, indexing_too=False)
        holding.ensure_held()
        PartitionState(session.files, snapshot.config).drop(dropped)
        _drop_definitions(session, snapshot, dropped)
        if names.FILES in dropped:
            remove_tree(session.files, METADATA_TABLE)
        else:
            for each in dropped:
                remove_tree(session.files.sub(METADATA_TABLE), each)
        _drop_plans(session, snapshot, dropped, planned)
    return dropped


def _choose_dropped(snapshot: Snapshot, name: str, planned: Planned) -> list[str]:
    config = snapshot.config
    there = _list_partitions(config)
    begun = {each for some in planned.values() for each in some}
    if name == names.FILES and there:
        return sorted({*there, *begun})
    known = sorted({*there, *begun, *_list_defined(snapshot)})
    spelt = (name, names.SECONDARY_PREFIX + name, names.EXPRESSION_PREFIX + name)
    partition = next((each for each in spelt if each in known), None)
    if partition is None:
        hint = f"It has {', '.join(known)}." if known else "It has no metadata table."
        raise InvalidQueryError(f"The table has no index {name[:100]!r}.", hint=hint)
    if partition == names.COLUMN_STATS and names.PARTITION_STATS in there:
        return [partition, names.PARTITION_STATS]
    needing = [each for each in there if each.startswith(names.SECONDARY_PREFIX)]
    if partition == names.RECORD_INDEX and needing:
        raise InvalidQueryError(f"The index {needing[0]!r} needs {partition!r}.", hint=f"Drop {needing[0]} first.")
    return [partition]


def _list_partitions(config: TableConfig) -> list[str]:
    return sorted({*config.metadata_partitions, *config.metadata_partitions_inflight})


def _drop_definitions(session: WriteSession, snapshot: Snapshot, dropped: list[str]) -> None:
    try:
        before = read_definitions(session.files, snapshot.config)
    except (CorruptFileError, InvalidTableError):
        if names.FILES not in dropped:
            raise
        before = names.IndexDefinitions()  # all of them go, also those that cannot be read
        write_definitions(session.files, snapshot.config, before)
    after = before
    for each in dropped:
        after = after.drop(each)
    if after != before:
        write_definitions(session.files, snapshot.config, after)


def _list_defined(snapshot: Snapshot) -> list[str]:
    """Return the partitions that have a definition; the next Java writer builds those that are not there."""
    return [each.name for each in read_definitions(snapshot.files, snapshot.config)]


def _drop_plans(session: WriteSession, snapshot: Snapshot, dropped: list[str], planned: Planned) -> None:
    """Remove pending instants of Java that build a dropped partition (Hudi ``deletePendingIndexingInstant``)."""
    timeline = session.open_timeline(snapshot)
    for instant, partitions in planned.items():
        if names.FILES in dropped or not partitions.isdisjoint(dropped):
            timeline.remove_pending(instant)


def list_planned(snapshot: Snapshot) -> Planned:
    """Return the pending instants of Java that build partitions, with the names of these: none where the plan cannot be
    read; such an instant goes with ``files`` only.

    Raises:
        StorageError: the store refused.
    """
    found = {}
    for instant in snapshot.timeline.timeline.select_pending().select_actions(INDEXING):
        try:
            paths = list_planned_partitions(snapshot, instant)
        except (CorruptFileError, FileMissingError):
            paths = frozenset()
        found[instant] = frozenset(filter(_is_partition, paths))
    return found


def _is_partition(name: str) -> bool:
    """Whether a name can be a partition's: a plan is not trusted with a path of its own."""
    return bool(name) and not set("/\\\0") & set(name) and not name.startswith(".")
