"""The part of ``HoodieTable`` that reads rows: a table's queries.

What only some queries need is imported when they are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hoodie_py.table.query import make_query
from hoodie_py.table.scan.scan import Scan
from hoodie_py.table.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from hoodie_py.reader.file_slice import FileSlice
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.reader.read_info import ReadInfo
    from hoodie_py.table.timeline.time_travel import AsOf


class TableQueries:
    """Queries of a table in the state that this object shows. Nothing is read until rows are asked for."""

    _snapshot: Snapshot

    def file_slices(self, as_of: AsOf | None = None, filter: str | pc.Expression | None = None) -> list[FileSlice]:  # noqa: A002
        """Return the file slices that a snapshot query reads.

        Args:
            as_of: instant of the past; None for now.
            filter: leaves out partitions that cannot hold rows for it.
        """
        snapshot = self._snapshot if as_of is None else self._snapshot.travel_to(as_of)
        from hoodie_py.table.filter.as_predicate import as_predicate

        return snapshot.file_slices("snapshot", as_predicate(filter, snapshot.schema.arrow))

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
            options: Hudi's reader options, for settings without an argument; an argument wins.

        Raises:
            InvalidQueryError: an unknown or repeated column, a bad filter, instant or number.
            UnsupportedFeatureError: a kind of query that is not handled.
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
        start: AsOf | None = "earliest",
        end: AsOf | None = None,
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

        Deleted records are not in it. Both times compare with the commits' completion times, up to table version 6 with
        their request times.

        Args:
            start: exclusive; "earliest" for the beginning, digits such as a commit's time, or any form of ``as_of``.
            end: inclusive; None for now.
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
        """
        from hoodie_py.table.incremental.query import make_incremental_scan

        return make_incremental_scan(
            self._snapshot,
            start,
            end,
            columns=columns,
            filter=filter,
            limit=limit,
            merger=merger,
            memory_limit=memory_limit,
            batch_rows=batch_rows,
            integrity=integrity,
            options=options,
        )

    def read_info(self, file_slice: FileSlice, as_of: AsOf | None = None) -> ReadInfo:
        """Return the facts that a FileGroupReader needs to read one slice.

        Args:
            file_slice: one of ``file_slices``.
            as_of: the same instant as for ``file_slices``.
        """
        snapshot = self._snapshot if as_of is None else self._snapshot.travel_to(as_of)
        return snapshot.read_info(file_slice)
