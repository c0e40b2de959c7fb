"""TableIndexes: the indexes of a table, as users build, drop and look at them (``table.index``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.metadata_table.overview import IndexOverview, list_indexes
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.lock.lock import Lock
from hoodie_py.writer.metadata_build.build import BuiltIndex, OnRecords, build_index
from hoodie_py.writer.metadata_build.drop import drop_index, list_planned
from hoodie_py.writer.metadata_build.requests import define_index
from hoodie_py.writer.precombine.merge_options import check_merger
from hoodie_py.writer.timeline.session import WriteSession

OpenSession = Callable[[Mapping[str, Any] | None, Lock | None, Merger | None], WriteSession]


class TableIndexes:
    """The indexes of a table: the partitions of its metadata table (Hudi's SQL ``CREATE INDEX``, ``DROP INDEX``).

    ``open_session`` begins a call that writes, ``refresh`` shows the table's new state.
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

        Nobody can commit while it is built: the table's lock is held. A build that was killed leaves the index
        unfinished, which no reader uses; build it again, or let Java Hudi do so.

        Args:
            name: ``record_index``, ``column_stats``, ``partition_stats``, ``bloom_filters`` or ``files``; any other
                name is that of a secondary or expression index, which needs a column.
            column: the column of a secondary or expression index.
            function: of an expression index: the function over the column, such as ``year`` or ``identity``.
            kind: of an expression index: what is kept of each file, ``column_stats`` (the default) or
                ``bloom_filters``. Without ``function`` and ``kind`` the index is a secondary one.
            partitioned: a record index whose keys are unique only within a partition of the table.
            arguments: the other arguments of the function, by Hudi's names, such as ``pos``.
            options: Hudi's writer options: numbers of file groups, lock provider, ...
            lock: a lock that all writers of the table use, where it is not one of Hudi's supported locks.
            on_records: called with the partition and its number of records so far.
            merger: the RecordMerger whose id the table names.

        Returns:
            What was built: the index, and ``files`` before it if the table had no metadata table.

        Raises:
            InvalidQueryError: the index is there already, lacks what it needs, or an argument is wrong.
            MergeError: the table needs a merger that nobody supplied.
            UnsupportedFeatureError: the table version has no such index, or its values cannot be told here.
            ConflictError: another writer holds the lock, or is at work.
            CommitStateUnknownError: the store did not say whether it wrote a file.
            StorageError: the store refused.
        """
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
        """Drop an index, complete or not, and return the names of the partitions that went.

        ``column_stats`` takes ``partition_stats`` with it, and ``files`` takes all. What a build of Java
        left that ended in an error is dropped, too. Arguments and errors as for ``build``.
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
        snapshot = self._look()
        begun = [name for some in list_planned(snapshot).values() for name in some]
        return list_indexes(snapshot.files, snapshot.config, begun)

    def __repr__(self) -> str:
        return f"TableIndexes({', '.join(each.name for each in self.show()) or 'none'})"
