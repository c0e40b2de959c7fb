"""The part of ``HoodieTable`` that reads rows: a table's queries, and its rows as objects of dataframe libraries.

What only some queries need is imported when they are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.errors import InvalidQueryError
from hoodie_py.options.read import FALLBACK_TO_FULL_SCAN
from hoodie_py.table.query import make_query
from hoodie_py.table.scan.arguments import read_option_texts
from hoodie_py.table.scan.scan import Scan
from hoodie_py.table.snapshot import Snapshot

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow.compute as pc

    from hoodie_py.reader.file_slice import FileSlice
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.reader.read_info import ReadInfo
    from hoodie_py.table.incremental.follow import TableFollower
    from hoodie_py.table.incremental.named_commits import RangeEnd
    from hoodie_py.table.timeline.time_travel import AsOf


class TableQueries:
    """Queries of a table in the state that this object shows. Nothing is read until rows are asked for.

    Each method that returns a data frame is one call for a scan. ``scan`` takes more arguments, such as a time of the
    past.
    """

    _snapshot: Snapshot

    def file_slices(self, as_of: AsOf | None = None, filter: str | pc.Expression | None = None) -> list[FileSlice]:  # noqa: A002
        """Return the file slices that a snapshot query reads; no data file is opened, whatever its format.

        Args:
            as_of: instant of the past; None for now.
            filter: leaves out partitions that cannot hold rows for it.

        Examples:
            >>> [(file_slice.partition_path, len(file_slice.log_files)) for file_slice in trips.file_slices()]
            [('la', 0), ('sf', 1)]
        """
        snapshot = self._snapshot if as_of is None else self._snapshot.travel_to(as_of)
        if filter is None:
            return snapshot.list_slices()
        from hoodie_py.table.filter.as_predicate import as_predicate
        from hoodie_py.table.filter.sql_settings import of_process

        settings = of_process(snapshot.timezone)
        return snapshot.list_slices(as_predicate(filter, snapshot.schema.arrow, settings=settings))

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002 - the name users know from pyarrow and pyiceberg
        as_of: AsOf | None = None,
        query_type: str | None = None,
        limit: int | None = None,
        merger: Merger | None = None,
        memory_limit: int | None = None,
        batch_rows: int | None = None,
        integrity: str = "default",
        options: Mapping[str, Any] | None = None,
    ) -> Scan:
        """Make a scan; nothing is read until its rows are asked for.

        Args:
            columns: names of columns in order; None for all.
            filter: Spark SQL text such as ``"price > 10 and city = 'sf'"``, or a pyarrow expression.
            as_of: read the table's state at this time: a Hudi instant (14 or 17 digits), a date, a date and time,
                seconds (10 digits) or milliseconds (13 digits) since 1970, as text, number, date or datetime.
            query_type: "snapshot" (default) merges log files, "read_optimized" reads base files only.
            limit: most rows.
            merger: a RecordMerger that merges in place of the table's merge mode.
            memory_limit: most bytes of memory for log records; more go to disk. None for a share of the process's
                memory (docs/memory.md).
            batch_rows: most rows of a batch; by default 65536, and fewer of more than two columns, but at least 16384.
            integrity: "strict" refuses corrupt log blocks, files whose size differs from their commit's statistics, and
                missing files that commits name. It reads all commits.
            options: Hudi's reader options, for settings without an argument; an argument takes precedence.

        Raises:
            InvalidQueryError: an unknown or repeated column, a bad filter, instant or number.
            UnsupportedFeatureError: a kind of query that is not handled.

        Examples:
            >>> trips.scan(columns=["id", "price"], filter="city = 'sf' and price < 15").to_arrow().to_pylist()
            [{'id': 'a', 'price': 12.0}]
            >>> first = trips.timeline.instants[0]
            >>> trips.scan(columns=["id", "price"], filter="id = 'a'", as_of=first.request_time).to_arrow().to_pylist()
            [{'id': 'a', 'price': 10.0}]
        """
        snapshot = self._snapshot if as_of is None else self._snapshot.travel_to(as_of)
        return make_query(
            snapshot,
            columns=columns,
            filter=filter,
            query_type=query_type,
            limit=limit,
            merger=merger,
            memory_limit=memory_limit,
            batch_rows=batch_rows,
            integrity=integrity,
            options=options,
        )

    def incremental(
        self,
        start: RangeEnd | None = "earliest",
        end: RangeEnd | None = None,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002
        limit: int | None = None,
        merger: Merger | None = None,
        memory_limit: int | None = None,
        batch_rows: int | None = None,
        integrity: str = "default",
        options: Mapping[str, Any] | None = None,
    ) -> Scan:
        """Make a scan of the rows that commits after ``start`` and up to ``end`` wrote, in their state at the end.

        Deleted records are not included. Both times are compared with the commits' completion times; up to table
        version 6 with their request times.

        Args:
            start: exclusive; "earliest" for the beginning, a commit (what a write returned, an instant of ``timeline``,
                or the digits of either of its times), other digits, or any form of ``as_of``.
            end: inclusive, in any of these forms; None for now.
            columns: as for ``scan``, like all arguments below.
            filter: on the rows at the range's end.
            limit: most rows.
            merger: merges in place of the table's merge mode.
            memory_limit: most bytes of memory for log records.
            batch_rows: most rows of a batch.
            integrity: "default" or "strict".
            options: Hudi's reader options, also those of incremental queries.

        Raises:
            InvalidQueryError: a bad range or argument, or the range's files are gone; the message names the range that
                the timeline has.
            UnsupportedFeatureError: the table has no meta fields.

        Examples:
            >>> first = trips.timeline.instants[0]
            >>> trips.incremental(start=first.completion_time, columns=["id", "price"]).to_arrow().to_pylist()
            [{'id': 'a', 'price': 12.0}]
        """
        from hoodie_py.table.incremental.named_commits import find_time
        from hoodie_py.table.incremental.query import make_incremental_scan

        timeline, texts = self._snapshot.timeline, read_option_texts(options)
        return make_incremental_scan(
            self._snapshot,
            find_time(timeline, start, texts),
            find_time(timeline, end, texts),
            columns=columns,
            filter=filter,
            limit=limit,
            merger=merger,
            memory_limit=memory_limit,
            batch_rows=batch_rows,
            integrity=integrity,
            options=texts,
        )

    def changes(
        self,
        start: RangeEnd | None = "earliest",
        end: RangeEnd | None = None,
        as_structs: bool = False,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002
        limit: int | None = None,
        merger: Merger | None = None,
        memory_limit: int | None = None,
        batch_rows: int | None = None,
        integrity: str = "default",
        options: Mapping[str, Any] | None = None,
    ) -> Scan:
        """Make a scan of the changes that commits after ``start`` and up to ``end`` made, with the columns

        * ``op``: "i" for an insert, "u" for an update, "d" for a delete;
        * ``ts_ms``: the commit, by its request time;
        * ``before``, ``after``: the row before and after the commit, null where there is none.

        The changes of a file group come in the order of the commits. If a record moves to another partition, or its
        file group is overwritten, its old row is a delete and its new one an insert of the same commit. Both times are
        compared with the commits' completion times; up to table version 6 with their request times.

        Args:
            start: exclusive; "earliest" for the beginning, a commit (what a write returned, an instant of ``timeline``,
                or the digits of either of its times), other digits, or any form of ``as_of``.
            end: inclusive, in any of these forms; None for now.
            as_structs: return rows as structs of the table's columns, instead of JSON texts as in Java Hudi.
            columns: some of the four columns.
            filter: on the four columns.
            limit: most changes.
            merger: merges in place of the table's merge mode.
            memory_limit: most bytes of memory for log records.
            batch_rows: most changes of a batch.
            integrity: "default" or "strict". Change logs are always read strictly.
            options: Hudi's reader options, also those of incremental queries.

        Raises:
            InvalidQueryError: the table has no change data, a bad range or argument, or the range's files are gone; the
                message names the range that is available.

        Examples:
            >>> updates = trips.changes(
            ...     columns=["op", "before", "after"], as_structs=True, filter="op = 'u'"
            ... ).to_arrow()
            >>> updates["before"].to_pylist()[0]["price"], updates["after"].to_pylist()[0]["price"]
            (10.0, 12.0)
        """
        from hoodie_py.table.changes.query import make_changes_scan
        from hoodie_py.table.incremental.named_commits import find_time

        timeline, texts = self._snapshot.timeline, read_option_texts(options)
        return make_changes_scan(
            self._snapshot,
            find_time(timeline, start, texts),
            find_time(timeline, end, texts),
            as_structs,
            columns=columns,
            filter=filter,
            limit=limit,
            merger=merger,
            memory_limit=memory_limit,
            batch_rows=batch_rows,
            integrity=integrity,
            options=texts,
        )

    def follow(
        self,
        start: RangeEnd = "earliest",
        poll: float | None = 5.0,
        changes: bool = False,
        as_structs: bool = False,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002
        max_commits: int | None = None,
        merger: Merger | None = None,
        memory_limit: int | None = None,
        batch_rows: int | None = None,
        integrity: str = "default",
        options: Mapping[str, Any] | None = None,
    ) -> TableFollower:
        """Iterate over the rows of commits as they land, each batch with the token to continue from.

        New commits are read as ``incremental`` reads them: several commits form one step, with each row in the state
        that the last of them left it in, without deleted records. With ``changes`` commits are read one by one, as
        ``changes`` reads them. ``batch.token`` moves with the last batch of a step (``batch.is_last``); until then it
        is the token from before. So a consumer that stores the token together with the result of its work on the rows
        neither loses rows nor doubles them.

        Args:
            start: a token; or "earliest" for all rows, "latest" for what lands after the state of this object, or a
                time as for ``incremental``.
            poll: seconds between looks at the table; None ends the iteration when there is nothing new.
            changes: return changes instead of rows; the table must have change data.
            as_structs: as for ``changes``.
            columns: as for ``scan``, like all arguments after ``max_commits``.
            filter: on the rows that commits wrote. A batch without rows stands for commits that wrote no such row.
            max_commits: most commits of a step. 1 returns each commit's rows separately, and is the default for
                changes, so that the changes of a record come in order. Commits whose files were cleaned are then an
                error; without ``max_commits`` their rows come as the table has them now.
            merger: merges in place of the table's merge mode.
            memory_limit: most bytes of memory for log records.
            batch_rows: most rows of a batch.
            integrity: "default" or "strict".
            options: Hudi's reader options, also those of incremental queries.

        Raises:
            InvalidQueryError: a token of another table, or of a commit that this table does not have (any more), or
                another bad argument; during the iteration, if commits can no longer be read without a gap.
            UnsupportedFeatureError: the table has no meta fields.

        Examples:
            >>> for batch in trips.follow(start="earliest", poll=None, columns=["id", "price"]):
            ...     token = batch.token
            >>> trips.upsert([{"id": "b", "city": "sf", "price": 25.0, "ts": 9}]).rows_updated
            1
            >>> [batch.rows.to_pylist() for batch in trips.follow(start=token, poll=None, columns=["id", "price"])]
            [[{'id': 'b', 'price': 25.0}]]
        """
        from hoodie_py.table.changes.query import make_changes_scan
        from hoodie_py.table.incremental.follow import TableFollower
        from hoodie_py.table.incremental.query import make_incremental_scan

        if as_structs and not changes:
            raise InvalidQueryError("The argument as_structs is for changes.", hint="Give changes=True, too.")
        make = partial(make_changes_scan, as_structs=as_structs) if changes else make_incremental_scan

        def make_scan(snapshot: Snapshot, after: str, end: str | None, texts: Mapping[str, str]) -> Scan:
            return make(
                snapshot,
                after,
                end,
                columns=columns,
                filter=filter,
                merger=merger,
                memory_limit=memory_limit,
                batch_rows=batch_rows,
                integrity=integrity,
                options=texts,
            )

        return TableFollower(
            self._snapshot,
            make_scan,
            start=start,
            poll=poll,
            max_commits=1 if changes and max_commits is None else max_commits,
            changes=changes,
            # Changes never come from full scans: their query refuses archived commits itself.
            options={**({FALLBACK_TO_FULL_SCAN: "true"} if changes else {}), **read_option_texts(options)},
        )

    def read_info(self, file_slice: FileSlice, as_of: AsOf | None = None) -> ReadInfo:
        """Return the facts that a FileGroupReader needs to read one slice.

        Args:
            file_slice: one of ``file_slices``.
            as_of: the same instant as for ``file_slices``.

        Examples:
            >>> import pickle
            >>> info = trips.read_info(trips.file_slices()[0])
            >>> info.config.name, len(pickle.dumps(info)) < 65536
            ('trips', True)
        """
        snapshot = self._snapshot if as_of is None else self._snapshot.travel_to(as_of)
        return snapshot.read_info(file_slice)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return all rows through Arrow's C stream interface, so that polars, DuckDB and pandas take a table."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002
        merger: Merger | None = None,
    ) -> pa.Table:
        """Return rows as a ``pyarrow.Table``; ``columns``, ``filter`` and ``merger`` as for ``scan``.

        Examples:
            >>> trips.to_arrow(columns=["id", "price"], filter="city = 'la'").to_pylist()
            [{'id': 'c', 'price': 30.0}]
        """
        return self.scan(columns=columns, filter=filter, merger=merger).to_arrow()

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002
        merger: Merger | None = None,
        **options: Any,
    ) -> pandas.DataFrame:
        """Return rows as a pandas DataFrame; ``columns``, ``filter`` and ``merger`` as for ``scan``.

        Further options go to pyarrow's ``Table.to_pandas``.

        Examples:
            >>> trips.to_pandas(columns=["id", "price"]).sort_values("id")["price"].tolist()
            [12.0, 20.0, 30.0]
        """
        return self.scan(columns=columns, filter=filter, merger=merger).to_pandas(**options)

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002
        merger: Merger | None = None,
    ) -> polars.DataFrame:
        """Return rows as a polars DataFrame; ``columns``, ``filter`` and ``merger`` as for ``scan``.

        Examples:
            >>> trips.to_polars(columns=["id", "price"]).sort("id")["price"].to_list()
            [12.0, 20.0, 30.0]
        """
        return self.scan(columns=columns, filter=filter, merger=merger).to_polars()

    def scan_polars(
        self,
        filter: str | pc.Expression | None = None,  # noqa: A002
        as_of: AsOf | None = None,
        query_type: str | None = None,
        merger: Merger | None = None,
        memory_limit: int | None = None,
        integrity: str = "default",
        options: Mapping[str, Any] | None = None,
    ) -> polars.LazyFrame:
        """Make a polars LazyFrame; nothing is read until it is collected, and then only what the query needs.

        Columns, slices and the conditions that mean the same in both libraries are pushed down. Arguments and errors
        are those of ``scan``.

        Examples:
            >>> import polars as pl
            >>> trips.scan_polars().filter(pl.col("price") > 15).select("id").collect().height
            2
        """
        return self.scan(
            filter=filter,
            as_of=as_of,
            query_type=query_type,
            merger=merger,
            memory_limit=memory_limit,
            integrity=integrity,
            options=options,
        ).to_polars_lazy()

    def head(
        self,
        n: int = 5,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002
        merger: Merger | None = None,
    ) -> pa.Table:
        """Return the first rows found, in no order; no more is read than they need.

        Args:
            n: most rows.
            columns: as for ``scan``.
            filter: as for ``scan``.
            merger: as for ``scan``.

        Examples:
            >>> trips.head(2, columns=["id"]).num_rows
            2
        """
        return self.scan(columns=columns, filter=filter, limit=n, merger=merger).to_arrow()
