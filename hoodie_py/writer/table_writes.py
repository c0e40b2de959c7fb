"""The part of ``HoodieTable`` that writes rows and alters columns (Hudi ``HoodieWriteClient``, ``AlterTableCommand``).

Modules of the writer are imported inside the methods, so that a program that only reads does not load them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.table.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.writer.alter.alter import AlterResult
    from hoodie_py.writer.commit.result import WriteResult
    from hoodie_py.writer.dml.clauses import Clauses
    from hoodie_py.writer.lock.lock import Lock
    from hoodie_py.writer.pipeline.write import Writer
    from hoodie_py.writer.records import WriteOperation
    from hoodie_py.writer.timeline.session import WriteSession


T = TypeVar("T")


class TableWrites:
    """Writes to a table. After a write this object shows the new state of the table.

    Data may be anything with an Arrow stream (pyarrow, polars, duckdb, nanoarrow, ...), pandas, or a list of dicts.
    Options are Hudi's writer options by Java's names: index type, file sizes, how to treat a metadata table, lock
    provider, inline compaction and clean, ...

    A write is committed completely, or leaves the table unchanged. The next writer rolls an interrupted write back.
    """

    _snapshot: Snapshot

    def upsert(
        self,
        data: Any,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
        *,
        allow_loss: bool = False,
    ) -> WriteResult:
        """Update records whose keys are in the table, and insert the others.

        Several rows of one key are merged first. Rows that the table's delete rules mark delete their records.

        Args:
            data: the rows.
            options: Hudi's writer options.
            merger: a RecordMerger, used instead of the table's merge mode.
            lock: the lock that the table's other writers use, if it is not a supported lock provider.
            allow_loss: let the table's columns get the types of the rows, as Java does, even if values may lose digits
                (long to double) or become text. Without it such rows are refused, but rows may add columns and widen
                types without loss, which a warning and ``WriteResult.schema_changes`` name.

        Raises:
            InvalidQueryError: rows have no key, columns or values do not fit the table, or an option is bad.
            UnsupportedFeatureError: the table has a feature that writing does not handle.
            ConflictError: another writer changed the table, or is at work.
            MergeError: the table needs a merger that was not supplied, or versions do not merge.
            CommitStateUnknownError: the store did not say whether the commit landed; nothing was taken back.
            StorageError: the store refused; the table is unchanged.

        Examples:
            >>> rows = [
            ...     {"id": "a", "city": "sf", "price": 14.0, "ts": 3},
            ...     {"id": "d", "city": "la", "price": 5.0, "ts": 3},
            ... ]
            >>> result = trips.upsert(rows)
            >>> result.rows_updated, result.rows_inserted
            (1, 1)
            >>> trips.upsert(pa.table({"id": ["a"], "city": ["sf"], "price": [1.0], "ts": [2]})).rows_in_logs
            1
            >>> trips.scan(["id", "price"], filter="id = 'a'").to_arrow().to_pylist()  # ts 2 came late
            [{'id': 'a', 'price': 14.0}]
        """
        from hoodie_py.writer.records import WriteOperation

        return self._write(data, WriteOperation.UPSERT, options, merger, lock, allow_loss=allow_loss)

    def insert(
        self,
        data: Any,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
        *,
        allow_loss: bool = False,
    ) -> WriteResult:
        """Add records without searching for their keys; arguments and errors as for ``upsert``.

        If a key is in the table already, the table then has two rows of that key, as in Java Hudi. The options' policy
        for duplicates can drop such rows or refuse them.

        Examples:
            >>> trips.insert([{"id": "d", "city": "la", "price": 5.0, "ts": 1}]).rows_inserted
            1
        """
        from hoodie_py.writer.records import WriteOperation

        return self._write(data, WriteOperation.INSERT, options, merger, lock, allow_loss=allow_loss)

    def bulk_insert(
        self,
        data: Any,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
        *,
        allow_loss: bool = False,
    ) -> WriteResult:
        """Add many records, sorted if the options ask for it, without searching for their keys.

        Arguments and errors as for ``upsert``.

        Examples:
            >>> trips.bulk_insert([{"id": "d", "city": "la", "price": 5.0, "ts": 1}]).rows_inserted
            1
        """
        from hoodie_py.writer.records import WriteOperation

        return self._write(data, WriteOperation.BULK_INSERT, options, merger, lock, allow_loss=allow_loss)

    def insert_overwrite(
        self,
        data: Any,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
        partitions: str | Sequence[str] | None = None,
        *,
        allow_loss: bool = False,
    ) -> WriteResult:
        """Replace all rows of partitions; other arguments and errors as for ``upsert``.

        Args:
            data: the new rows.
            options: Hudi's writer options.
            merger: a RecordMerger, used instead of the table's merge mode.
            lock: the lock of the table's other writers.
            partitions: paths of the partitions to replace, even if no row belongs to them; all rows must belong to
                one of them. None: the partitions of the rows.
            allow_loss: as for ``upsert``.

        Examples:
            >>> trips.insert_overwrite([{"id": "z", "city": "la", "price": 1.0, "ts": 1}]).groups_replaced
            1
            >>> sorted(trips.scan(["id"]).to_arrow()["id"].to_pylist())
            ['a', 'b', 'z']
        """
        from hoodie_py.writer.records import WriteOperation

        writer = self._make_writer(options, merger, lock, allow_loss=allow_loss)
        if partitions is not None:
            writer = replace(writer, partitions=(partitions,) if isinstance(partitions, str) else tuple(partitions))
        result = writer.write(data, WriteOperation.INSERT_OVERWRITE)
        return self._refresh(result, changed=result.instant is not None)

    def delete_partition(
        self,
        paths: str | Sequence[str],
        options: Mapping[str, Any] | None = None,
        lock: Lock | None = None,
        merger: Merger | None = None,
        *,
        missing_ok: bool = True,
    ) -> WriteResult:
        """Delete all rows of partitions by one replace commit; cleans remove the files later.

        No rows are read, except for keys if the table has an index over keys.

        Args:
            paths: paths of partitions as they are on disk, such as ``sf``, or ``city=sf``, which stands for ``sf`` in a
                table whose folders are bare values; ``*`` stands for any characters, so that ``2026/*`` is all
                partitions below ``2026``. Paths without a partition are left out, as in Java.
            options: Hudi's writer options.
            lock: the lock of the table's other writers.
            merger: the RecordMerger whose id the table names, for the keys.
            missing_ok: whether a path may stand for no partition with rows.

        Raises:
            InvalidQueryError: the table has no partitions, no path was given, or one leads out of the table; or one
                stands for no partition and ``missing_ok`` is False: the error names the partitions.
            UnsupportedFeatureError: the table has a feature that writing does not handle, or consistent hashing.
            ConflictError: another writer changed the table, or a compaction or clustering of the partitions is pending.
            CommitStateUnknownError: the store did not say whether the commit landed; nothing was taken back.
            StorageError: the store refused; the table is unchanged.

        Examples:
            >>> trips.delete_partition("la").groups_replaced
            1
            >>> trips.scan().count()
            2
        """
        given = (paths,) if isinstance(paths, str) else tuple(paths)
        result = self._make_writer(options, merger, lock).delete_partition(given, missing_ok=missing_ok)
        return self._refresh(result, changed=result.instant is not None)

    def insert_overwrite_table(
        self,
        data: Any,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
        *,
        allow_loss: bool = False,
    ) -> WriteResult:
        """Replace all rows of the table; arguments and errors as for ``upsert``.

        Examples:
            >>> trips.insert_overwrite_table([{"id": "z", "city": "la", "price": 1.0, "ts": 1}]).groups_replaced
            2
            >>> trips.scan(["id"]).to_arrow()["id"].to_pylist()
            ['z']
        """
        from hoodie_py.writer.records import WriteOperation

        return self._write(data, WriteOperation.INSERT_OVERWRITE_TABLE, options, merger, lock, allow_loss=allow_loss)

    def delete(
        self,
        keys_or_filter: Any,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
    ) -> WriteResult:
        """Delete records; other arguments and errors as for ``upsert``.

        Args:
            keys_or_filter: a filter, as Spark SQL text or a pyarrow expression: the rows that match it are deleted. Or
                keys, as a list or an Arrow array. Anything else is rows with at least the key columns.
            options: Hudi's writer options.
            merger: a RecordMerger, used instead of the table's merge mode.
            lock: the lock of the table's other writers.

        Examples:
            >>> trips.delete(["b"]).rows_deleted
            1
            >>> trips.delete("price > 25").rows_deleted
            1
            >>> trips.scan().count()
            1
        """
        from pyarrow import compute as pc

        from hoodie_py.writer.records import WriteOperation

        if not isinstance(keys_or_filter, str | pc.Expression):
            return self._write(keys_or_filter, WriteOperation.DELETE, options, merger, lock)
        result = self._make_writer(options, merger, lock).delete_where(keys_or_filter)
        return self._refresh(result, changed=result.instant is not None)

    def update(
        self,
        set: Mapping[str, Any],  # noqa: A002 - users know the name from SQL
        where: str | pc.Expression | None = None,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
    ) -> WriteResult:
        """Set columns of the rows that match a filter; other arguments and errors as for ``upsert``.

        A row keeps its ordering value unless it is set. Record keys do not change. On merge-on-read tables from version
        8 on, log files contain only the columns that are set.

        Args:
            set: a Spark SQL expression for each column, such as ``{"price": "price * 2"}``; a value other than text is
                a literal.
            where: Spark SQL filter or pyarrow expression; None for all rows.
            options: Hudi's writer options.
            merger: a RecordMerger, used instead of the table's merge mode.
            lock: the lock of the table's other writers.

        Examples:
            >>> trips.update(set={"price": "price * 2"}, where="city = 'sf'").rows_updated
            2
            >>> trips.scan(["id", "price"]).to_arrow().sort_by("id").to_pylist()
            [{'id': 'a', 'price': 24.0}, {'id': 'b', 'price': 40.0}, {'id': 'c', 'price': 30.0}]
        """
        from hoodie_py.writer.pipeline.modify import Modifier

        result = Modifier(self._open_session(options, lock, merger), merger).update(set, where)
        return self._refresh(result, changed=result.instant is not None)

    def merge(
        self,
        source: Any,
        on: str | Sequence[str],
        *,
        when_matched: Clauses = None,
        when_not_matched: Clauses = None,
        by_source: Clauses = None,
        source_alias: str = "source",
        target_alias: str = "target",
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
    ) -> WriteResult:
        """Update, delete and insert rows according to a source, like SQL's MERGE INTO.

        For each argument, the first clause whose condition holds for a row counts. Two rows of the source must not
        change the same row. Only file groups that can contain a match are read, unless there are clauses ``by_source``.
        Other arguments and errors as for ``upsert``.

        Args:
            source: the rows; held in memory.
            on: a column or columns that both sides have, or a Spark SQL condition such as
                ``"target.id = source.key and target.city = 'sf'"``, with at least one equality between both sides.
            when_matched: ``Update`` and ``Delete`` clauses for rows of the table with a match. "update" sets all
                columns.
            when_not_matched: ``Insert`` clauses for rows of the source without a match; "insert" sets all columns.
            by_source: ``Update`` and ``Delete`` clauses for rows of the table without a match.
            source_alias: the name of the source in expressions.
            target_alias: the name of the table in expressions.
            options: Hudi's writer options.
            merger: a RecordMerger, used instead of the table's merge mode.
            lock: the lock of the table's other writers.

        Examples:
            >>> news = [
            ...     {"id": "a", "city": "sf", "price": 15.0, "ts": 5},
            ...     {"id": "e", "city": "la", "price": 9.0, "ts": 5},
            ... ]
            >>> result = trips.merge(
            ...     news, on="id", when_matched=Update({"price": "source.price"}), when_not_matched=Insert()
            ... )
            >>> result.rows_updated, result.rows_inserted
            (1, 1)
        """
        from hoodie_py.writer.pipeline.modify import MergeRequest, Modifier

        request = MergeRequest(on, when_matched, when_not_matched, by_source, source_alias, target_alias)
        result = Modifier(self._open_session(options, lock, merger), merger).merge(source, request)
        return self._refresh(result, changed=result.instant is not None)

    def _write(
        self,
        data: Any,
        operation: WriteOperation,
        options: Mapping[str, Any] | None,
        merger: Merger | None,
        lock: Lock | None,
        *,
        allow_loss: bool = False,
    ) -> WriteResult:
        writer = self._make_writer(options, merger, lock, allow_loss=allow_loss)
        result = writer.write(data, operation)
        if result.instant is None:
            return result
        return self._refresh(result, seen=writer.session.looks.find_after(result.instant))

    def _make_writer(
        self,
        options: Mapping[str, Any] | None,
        merger: Merger | None,
        lock: Lock | None,
        *,
        allow_loss: bool = False,
    ) -> Writer:
        from hoodie_py.options.write import LOSSY, SCHEMA_CHANGES
        from hoodie_py.writer.pipeline.write import Writer

        if allow_loss:
            options = {**(options or {}), SCHEMA_CHANGES: LOSSY}
        return Writer(self._open_session(options, lock, merger), merger)

    def _open_session(
        self,
        options: Mapping[str, Any] | None,
        lock: Lock | None,
        merger: Merger | None = None,
        strategy: str | None = None,
    ) -> WriteSession:
        from hoodie_py.writer.refusals import check_version
        from hoodie_py.writer.timeline.session import WriteSession

        check_version(self._snapshot)
        return WriteSession.open(self._snapshot, options=options, strategy=strategy, lock=lock, merger=merger)

    def _refresh(self, result: T, *, changed: bool = True, seen: Snapshot | None = None) -> T:
        """Load the table again, so that it shows the change. As the change is committed, a failure is a warning.

        ``seen``: the table with the change, if the call has loaded it already.
        """
        if not changed:
            return result
        try:
            known = self._snapshot
            self._snapshot = seen or open_snapshot(known.files, timezone=known.timezone, earlier=known)
        except HoodieError as error:
            text = f"The change is committed; the table could not be loaded again, so open it again: {error}"
            warnings.warn(HoodieWarning(text), stacklevel=4)
        return result

    def alter(
        self,
        add: Mapping[str, pa.DataType | str] | Iterable[pa.Field] | None = None,
        rename: Mapping[str, str] | None = None,
        drop: str | Sequence[str] = (),
        cast: Mapping[str, pa.DataType | str] | None = None,
        reorder: Mapping[str, str] | None = None,
        nullable: str | Sequence[str] = (),
        comment: Mapping[str, str | None] | None = None,
        *,
        allow_loss: bool = False,
        dry_run: bool = False,
        options: Mapping[str, Any] | None = None,
        lock: Lock | None = None,
    ) -> AlterResult:
        """Add, rename, drop, retype or move columns by Hudi's schema-on-read, without rewriting files.

        All changes are one commit. Names lead into structs by dots, into lists by ``element`` and into maps by
        ``value``, such as ``st.a`` and ``tags.element.name``. Java Hudi reads and writes such a table with
        ``hoodie.schema.on.read.enable=true``.

        Args:
            add: new columns, all nullable: types by name, or Arrow fields. A text is a type of Spark SQL.
            rename: new names by old ones.
            drop: columns to drop. Files keep their values, for queries of the past.
            cast: new types by name. Old values are converted when they are read.
            reorder: positions by name: ``first``, ``after NAME`` or ``before NAME``.
            nullable: required columns that may be null from now on.
            comment: comments by name; None removes one.
            allow_loss: allow casts in which values may lose digits, become text, or have no value in the new type.
            dry_run: change nothing, and return what would change.
            options: Hudi's writer options: lock provider, ...
            lock: the lock of the table's other writers, if it is not a supported lock provider.

        Raises:
            InvalidQueryError: there is no such column, or a change is not allowed: keys, partition paths or the order
                of versions depend on the column, an index covers it, or its values cannot be read in the new type.
            UnsupportedFeatureError: the table has a feature or a type that is not handled.
            ConflictError: another writer changed the table, or is at work.
            CommitStateUnknownError: the store did not say whether the commit landed; nothing was taken back.
            StorageError: the store refused; the table is unchanged.

        Examples:
            >>> result = trips.alter(add={"tip": pa.float64()}, rename={"price": "fare"})
            >>> trips.schema.names[-4:]
            ['city', 'fare', 'ts', 'tip']
            >>> trips.scan(["id", "fare", "tip"], filter="id = 'a'").to_arrow().to_pylist()
            [{'id': 'a', 'fare': 12.0, 'tip': None}]
        """
        from hoodie_py.writer.alter import alter
        from hoodie_py.writer.alter.changes import Changes
        from hoodie_py.writer.alter.type_text import make_fields, make_type

        changes = Changes(
            add=make_fields(add),
            rename=dict(rename or {}),
            drop=(drop,) if isinstance(drop, str) else tuple(drop),
            cast={name: make_type(each) for name, each in (cast or {}).items()},
            reorder=dict(reorder or {}),
            nullable=(nullable,) if isinstance(nullable, str) else tuple(nullable),
            comment=dict(comment or {}),
            allow_loss=allow_loss,
        )
        result = alter.alter(self._open_session(options, lock), changes, dry_run=dry_run)
        return self._refresh(result, changed=result.instant is not None)
