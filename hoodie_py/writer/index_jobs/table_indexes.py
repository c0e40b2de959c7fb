"""TableIndexes: build, drop and list the indexes of a table (``table.index``), and build what a write's options switch
on (Hudi ``HoodieBackedTableMetadataWriter.dropMetadataPartitions``, ``initializeIfNeeded``,
``MetadataPartitionType.isMetadataPartitionEnabled``).

As in Java, indexes are built before the write, so that the write itself keeps them up. Unlike in Java's Spark writers,
an option that is not given switches nothing on, and one that is off drops nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hoodie_py.errors import (
    ConflictError,
    CorruptFileError,
    FileMissingError,
    HoodieWarning,
    InvalidQueryError,
    InvalidTableError,
)
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes import definitions as names
from hoodie_py.formats.indexes.definitions import IndexDefinition
from hoodie_py.formats.timeline.instants import INDEXING, Instant
from hoodie_py.options import indexes as keys
from hoodie_py.options.read import METADATA_ENABLE
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.indexes.view import read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.index_jobs.requests import check_nothing_pending, define_index
from hoodie_py.writer.indexes.kept_indexes import list_planned_partitions
from hoodie_py.writer.indexes.metadata_table import write_definitions
from hoodie_py.writer.indexes.undo import METADATA_TABLE
from hoodie_py.writer.lock.lock import Lock
from hoodie_py.writer.precombine.merge_options import check_merger
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.timeline.folder_tree import remove_tree
from hoodie_py.writer.timeline.session import WriteSession

if TYPE_CHECKING:
    from hoodie_py.table.indexes.overview import IndexOverview
    from hoodie_py.writer.index_jobs.build import BuiltIndex, OnRecords

Planned = Mapping[Instant, frozenset[str]]
"""Java's pending instants that build partitions of the metadata table, with the partitions."""


def drop_index(session: WriteSession, name: str) -> list[str]:
    """Drop a partition and the partitions made from it, and return their names. ``files`` stands for all.

    The name may lack the prefix of secondary and expression indexes. A Java build that ended in an error leaves an
    inflight instant, and maybe a definition, of a partition that the properties do not name. It is dropped like any
    other: until then only Java writes to the table or builds an index.

    Raises:
        InvalidQueryError: there is no such partition, or another index needs it.
        ConflictError: another writer holds the lock or is at work.
        StorageError: the store refused.
    """
    from hoodie_py.writer.index_jobs.build import PartitionState

    undo_failed_writes(session)
    with session.hold_lock() as holding:
        snapshot = session.look()
        planned = list_planned(snapshot)
        dropped = _choose_dropped(snapshot, name, planned)
        check_nothing_pending(snapshot, indexing_too=False)
        holding.ensure_held()
        # Properties first, so that no reader uses what is about to go. By the definition Java would build it again.
        PartitionState(session.files, snapshot.config).drop(dropped)
        _drop_definitions(session, snapshot, dropped)
        if names.FILES_PARTITION in dropped:
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
    if name == names.FILES_PARTITION and there:
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
        if names.FILES_PARTITION not in dropped:
            raise
        before = names.IndexDefinitions()  # all of them go, even if they cannot be read
        write_definitions(session.files, snapshot.config, before)
    after = before
    for each in dropped:
        after = after.drop(each)
    if after != before:
        write_definitions(session.files, snapshot.config, after)


def _list_defined(snapshot: Snapshot) -> list[str]:
    """Return the partitions that have a definition. The next Java writer builds the missing ones."""
    return [each.name for each in read_definitions(snapshot.files, snapshot.config)]


def _drop_plans(session: WriteSession, snapshot: Snapshot, dropped: list[str], planned: Planned) -> None:
    """Remove pending instants of Java that build a dropped partition (Hudi ``deletePendingIndexingInstant``)."""
    timeline = session.open_timeline(snapshot)
    for instant, partitions in planned.items():
        if names.FILES_PARTITION in dropped or not partitions.isdisjoint(dropped):
            timeline.remove_pending(instant)


def list_planned(snapshot: Snapshot) -> Planned:
    """Return Java's pending instants that build partitions, with the names of the partitions.

    If a plan cannot be read, the names are empty; such an instant is dropped with ``files`` only.

    Raises:
        StorageError: the store refused.
    """
    found = {}
    for instant in snapshot.timeline.select_pending().select_actions(INDEXING):
        try:
            paths = list_planned_partitions(snapshot, instant)
        except (CorruptFileError, FileMissingError):
            paths = frozenset()
        found[instant] = frozenset(filter(_is_partition, paths))
    return found


def _is_partition(name: str) -> bool:
    """Whether a name can be a partition's. A plan is not trusted: its text could be a path elsewhere."""
    return bool(name) and not set("/\\\0") & set(name) and not name.startswith(".")


OpenSession = Callable[[Mapping[str, Any] | None, Lock | None, Merger | None], WriteSession]


class TableIndexes:
    """The indexes of a table: the partitions of its metadata table (Hudi's SQL ``CREATE INDEX``, ``DROP INDEX``).

    ``open_session`` begins a call that writes. ``refresh`` loads the table's new state.
    """

    def __init__(self, look: Callable[[], Snapshot], open_session: OpenSession, refresh: Callable[[Any], Any]) -> None:
        self._look = look
        self._open_session = open_session
        self._refresh = refresh

    def build(
        self,
        name: str,
        column: str | None = None,
        *,
        function: str | None = None,
        kind: str | None = None,
        partitioned: bool = False,
        arguments: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        lock: Lock | None = None,
        on_records: OnRecords | None = None,
        merger: Merger | None = None,
    ) -> tuple[BuiltIndex, ...]:
        """Build an index over the table as it is; a table without a metadata table gets one.

        No writer can commit while it is built: the table's lock is held. A build that was killed leaves the index
        unfinished, and no reader uses it. Build it again, or let Java Hudi do so.

        Args:
            name: ``record_index``, ``column_stats``, ``partition_stats``, ``bloom_filters`` or ``files``; any other
                name denotes a secondary or expression index, which needs a column.
            column: the column of a secondary or expression index.
            function: for an expression index: the function over the column, such as ``year`` or ``identity``.
            kind: for an expression index: what is stored for each file, ``column_stats`` (the default) or
                ``bloom_filters``. Without ``function`` and ``kind`` the index is a secondary one.
            partitioned: whether the keys of a record index are unique only within a partition of the table.
            arguments: the other arguments of the function, by Hudi's names, such as ``pos``.
            options: Hudi's writer options: numbers of file groups, lock provider, ...
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.
            on_records: called with the partition and its number of records so far.
            merger: the RecordMerger whose id the table names.

        Returns:
            What was built: the index, and ``files`` before it if the table had no metadata table.

        Raises:
            InvalidQueryError: the index exists already, lacks what it needs, or an argument is wrong.
            MergeError: the table needs a merger that was not supplied.
            UnsupportedFeatureError: the table version has no such index, or its values cannot be computed here.
            ConflictError: another writer holds the lock, or is at work.
            CommitStateUnknownError: the store did not say whether it wrote a file.
            StorageError: the store refused.
        """
        from hoodie_py.writer.index_jobs.build import build_index

        session = self._open_session(options, lock, merger)
        look = session.look()
        check_merger(look.config, merger, override=False)
        partition, definition = define_index(
            look,
            name,
            column,
            function=function,
            kind=kind,
            partitioned=partitioned,
            arguments=arguments,
            options=session.settings.options,
        )
        built = build_index(session, look, partition, definition, on_records)
        result: tuple[BuiltIndex, ...] = self._refresh(tuple(built))
        return result

    def drop(self, name: str, *, options: Mapping[str, Any] | None = None, lock: Lock | None = None) -> tuple[str, ...]:
        """Drop an index, complete or not, and return the names of the dropped partitions.

        Dropping ``column_stats`` also drops ``partition_stats``, and dropping ``files`` drops all. What a failed build
        of Java left is dropped, too. Arguments and errors as for ``build``.
        """
        dropped = drop_index(self._open_session(options, lock, None), name)
        result: tuple[str, ...] = self._refresh(tuple(dropped))
        return result

    def show(self) -> IndexOverview:
        """Return the indexes of the table: kind, columns, file groups, records, bytes, state.

        Raises:
            CorruptFileError, InvalidTableError: the metadata table, or the file of definitions, is damaged.
            StorageError: the store refused.
        """
        from hoodie_py.table.indexes.overview import list_indexes

        snapshot = self._look()
        begun = [name for some in list_planned(snapshot).values() for name in some]
        return list_indexes(snapshot.files, snapshot.config, begun)

    def __repr__(self) -> str:
        return f"TableIndexes({', '.join(each.name for each in self.show()) or 'none'})"


_SWITCHES = (
    (keys.COLUMN_STATS_ENABLE, names.COLUMN_STATS),
    (keys.PARTITION_STATS_ENABLE, names.PARTITION_STATS),
    (keys.BLOOM_ENABLE, names.BLOOM_FILTERS),
    (keys.RECORD_ENABLE, names.RECORD_INDEX),
    (keys.PARTITIONED_RECORD_ENABLE, names.RECORD_INDEX),
)


def build_wanted(session: WriteSession, snapshot: Snapshot) -> Snapshot:
    """Build the indexes that the options switch on and the table lacks, and return the table after that.

    If another writer's write is pending, nothing is built, with a warning: a later write builds it.

    Raises:
        HoodieError: as ``build_index``.
    """
    options = session.settings.options
    built = False
    for partition, definition in _list_wanted(snapshot, options):
        if partition in snapshot.config.metadata_partitions:
            continue
        from hoodie_py.writer.index_jobs.build import build_index  # every write asks what is wanted, and few build

        try:
            build_index(session, snapshot, partition, definition)
        except ConflictError as error:
            text = f"The index {partition} is not built now; a later write builds it: {error}"
            warnings.warn(HoodieWarning(text), stacklevel=4)
            break
        built = True
    return session.look() if built else snapshot


def _list_wanted(snapshot: Snapshot, options: Mapping[str, str]) -> Iterator[tuple[str, IndexDefinition | None]]:
    """Yield the partitions that are switched on, in the order of their dependencies."""
    if METADATA_ENABLE.read_given(options) is False:
        return
    if METADATA_ENABLE.read_given(options):
        yield names.FILES_PARTITION, None
    config = snapshot.config
    on = [name for switch, name in _SWITCHES if switch.read(options)]
    for name in dict.fromkeys(on):
        if name == names.PARTITION_STATS:
            has_columns = names.COLUMN_STATS in (*on, *config.metadata_partitions)
            if not (has_columns and config.is_partitioned and config.has_logs_named_by_commit):
                continue  # as in Java
        partitioned = name == names.RECORD_INDEX and keys.PARTITIONED_RECORD_ENABLE.read(options)
        yield define_index(snapshot, name, partitioned=partitioned, options=options)
    column = keys.SECONDARY_COLUMN.read(options)
    if column is not None and keys.SECONDARY_ENABLE.read(options) and config.has_logs_named_by_commit:
        yield define_index(snapshot, keys.INDEX_NAME.read(options) or names.SECONDARY_PREFIX + column, column)
