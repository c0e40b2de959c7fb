"""HoodieTable: the facade that users open tables with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.files import TableFiles
from hoodie_py.formats.table_config import TableConfig
from hoodie_py.formats.timeline import Timeline
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merger import RecordMerger
from hoodie_py.reader.read_info import ReadInfo
from hoodie_py.table.filters import as_predicate
from hoodie_py.table.inspect import TableInspect
from hoodie_py.table.instants import AsOf
from hoodie_py.table.query import make_scan
from hoodie_py.table.scan import Scan, html_table
from hoodie_py.table.snapshot import Snapshot, open_snapshot

if TYPE_CHECKING:
    import pyarrow.compute as pc


class HoodieTable:
    """A Hudi table, opened for reading; make one with ``HoodieTable.open``.

    The table is as it was when it was opened; ``refresh`` looks again.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @classmethod
    def open(
        cls, uri: str | PathLike[str], storage_options: Mapping[str, Any] | None = None, timezone: str | None = None
    ) -> HoodieTable:
        """Open a table at its base path.

        Args:
            uri: a local path or anything fsspec knows, e.g. ``s3://bucket/table`` (``s3a://`` is the same).
            storage_options: fsspec keys or ``AWS_*`` names for the store.
            timezone: zone of times without one where the table says LOCAL; UTC unless given.

        Raises:
            TableNotFoundError: there is no Hudi table.
            InvalidTableError: its properties or timeline are broken.
            UnsupportedFeatureError: a table version or format that is not handled.
            StorageError: the store refused or failed.
        """
        return cls(open_snapshot(fspath(uri), storage_options=storage_options, timezone=timezone))

    def refresh(self) -> HoodieTable:
        """Return the table as it is now."""
        return HoodieTable(open_snapshot(self.files, timezone=self._snapshot.timezone))

    @property
    def files(self) -> TableFiles:
        """Access to the table's files."""
        return self._snapshot.files

    @property
    def uri(self) -> str:
        """Base path of the table, without credentials."""
        return self._snapshot.files.uri

    @property
    def config(self) -> TableConfig:
        """The table's properties: name, type, version, record key fields, ordering fields, merge mode, ..."""
        return self._snapshot.config

    @property
    def timeline(self) -> Timeline:
        """The active timeline: instants with request time, completion time, action and state, oldest first."""
        return self._snapshot.timeline.timeline

    @property
    def schema(self) -> pa.Schema:
        """Schema of a full scan, Hudi's meta columns first."""
        return self._snapshot.schema.arrow

    @cached_property
    def inspect(self) -> TableInspect:
        """Facts about the table as Arrow tables: timeline, files, slices, log blocks, statistics, plans."""
        return TableInspect(self._snapshot.files, self._snapshot.config, self._snapshot.timeline, self._snapshot.view)

    def file_slices(self, as_of: AsOf | None = None, filter: str | pc.Expression | None = None) -> list[FileSlice]:  # noqa: A002
        """Return the file slices that a snapshot query reads.

        Args:
            as_of: instant of the past; None for now.
            filter: leaves out partitions that cannot hold such rows.
        """
        snapshot = self._snapshot if as_of is None else self._snapshot.at(as_of)
        return snapshot.file_slices("snapshot", as_predicate(filter, snapshot.schema.arrow))

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | None = None,  # noqa: A002 - the name users know from pyarrow and pyiceberg
        as_of: AsOf | None = None,
        query_type: str | None = None,
        limit: int | None = None,
        merger: RecordMerger | type[RecordMerger] | None = None,
        memory_limit: int | None = None,
        batch_rows: int | None = None,
        integrity: str = "default",
        options: Mapping[str, Any] | None = None,
    ) -> Scan:
        """Ask for rows; nothing is read until the scan is consumed.

        Args:
            columns: names of columns in the order wanted; None for all.
            filter: Spark SQL text such as ``"price > 10 and city = 'sf'"``, or a pyarrow expression.
            as_of: read the table as it was: a Hudi instant (14 or 17 digits), ISO text, date or datetime.
            query_type: "snapshot" (default) merges log files, "read_optimized" reads base files only.
            limit: most rows.
            merger: a RecordMerger that decides instead of the table's merge mode.
            memory_limit: most bytes of log-side rows held for one file group.
            batch_rows: most rows in a batch; 65536 unless given.
            integrity: "strict" makes corrupt log blocks, and files whose size differs from their commit's statistics,
                errors.
            options: Hudi's own reader keys, for what has no argument; an argument wins.

        Raises:
            InvalidQueryError: an unknown or repeated column, a bad filter, instant or number.
            UnsupportedFeatureError: a kind of query that is not handled.
        """
        snapshot = self._snapshot if as_of is None else self._snapshot.at(as_of)
        return make_scan(
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

    def read_info(self, file_slice: FileSlice, as_of: AsOf | None = None) -> ReadInfo:
        """Return what reading one slice takes, for FileGroupReader.

        Args:
            file_slice: one of ``file_slices``.
            as_of: the instant that was given there.
        """
        snapshot = self._snapshot if as_of is None else self._snapshot.at(as_of)
        return snapshot.read_info(file_slice)

    def __repr__(self) -> str:
        config = self.config
        facts = (
            repr(config.name),
            config.table_type,
            f"version {config.version}",
            f"at {self._snapshot.instant}",
            self.uri,
        )
        return f"HoodieTable({', '.join(facts)})"

    def _repr_html_(self) -> str:
        config = self.config
        return html_table(
            "Hudi table",
            [
                ("name", config.name),
                ("path", self.uri),
                ("type", config.table_type),
                ("version", config.version),
                ("instant", self._snapshot.instant),
                ("record key", ", ".join(config.record_key_fields)),
                ("partitioned by", ", ".join(config.partition_fields)),
                ("ordering", ", ".join(config.ordering_fields)),
                ("merge mode", config.merge_mode.value),
                ("columns", ", ".join(self.schema.names)),
            ],
        )
