"""HoodieTable: the class with which users open, create, read and maintain tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import pyarrow as pa

from hoodie_py.files import TableFiles
from hoodie_py.table.scan.html_table import format_html_table
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.table.table_queries import TableQueries
from hoodie_py.writer.table_services import TableServices
from hoodie_py.writer.table_states import TableStates

if TYPE_CHECKING:
    from hoodie_py.formats.config.table_config import TableConfig
    from hoodie_py.formats.timeline.timeline import Timeline
    from hoodie_py.metastore.entry import HasMetastore
    from hoodie_py.metastore.report import SyncResult
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.spark.engine import EngineChoice
    from hoodie_py.table.inspect import TableInspect
    from hoodie_py.writer.archival.archive import ArchiveResult
    from hoodie_py.writer.index_jobs.table_indexes import TableIndexes
    from hoodie_py.writer.indexes.verify_report import VerifyReport
    from hoodie_py.writer.lock.lock import Lock
    from hoodie_py.writer.services.clean import CleanResult
    from hoodie_py.writer.services.clean_plan import CleanReport
    from hoodie_py.writer.services.service_run import Runner


class HoodieTable(TableQueries, TableStates, TableServices):
    """A Hudi table; ``HoodieTable.open`` opens one, ``HoodieTable.create`` creates one.

    A table object shows the state of the table when it was opened, or after the last change through this object: rows
    written, a compaction planned or run, a clean, a rollback. ``refresh`` returns the current state.

    Examples:
        >>> table = HoodieTable.open("trips")
        >>> table.scan(columns=["id", "price"], filter="price > 15").to_arrow().to_pydict()
        {'id': ['c', 'b'], 'price': [30.0, 20.0]}
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @classmethod
    def open(
        cls, uri: str | PathLike[str], storage_options: Mapping[str, Any] | None = None, timezone: str | None = None
    ) -> HoodieTable:
        """Open a table at its base path.

        Args:
            uri: a local path or any URI that fsspec knows, e.g. ``s3://bucket/table`` (``s3a://`` is the same).
            storage_options: fsspec keys or ``AWS_*`` names for the store.
            timezone: zone of naive times if the table's timeline is in LOCAL time, and of times without a zone in
                filters and other SQL; UTC by default.

        Raises:
            TableNotFoundError: there is no Hudi table at the path.
            InvalidTableError: the table's properties or timeline are broken.
            UnsupportedFeatureError: the table's version or format is not supported.
            StorageError: the store refused or failed.

        Examples:
            >>> HoodieTable.open("trips").scan().count()
            3
        """
        return cls(open_snapshot(fspath(uri), storage_options=storage_options, timezone=timezone))

    @classmethod
    def create(
        cls,
        uri: str | PathLike[str],
        schema: pa.Schema,
        *,
        record_key: str | Sequence[str] | None = None,
        ordering: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] = (),
        table_type: str = "MERGE_ON_READ",
        table_version: int = 9,
        name: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        properties: Mapping[str, Any] | None = None,
        merge_mode: str | None = None,
        merge_strategy_id: str | None = None,
        merger: Merger | None = None,
        key_generator: str | None = None,
        timezone: str | None = None,
    ) -> HoodieTable:
        """Create an empty table, which Java Hudi can read and write, too.

        Args:
            uri: base path of the table, as for ``open``.
            schema: columns of the rows, as an Arrow schema; Hudi's meta columns may be left out.
            record_key: the field or fields that identify a record; ``a.b`` for nested fields. None: every write
                generates new keys for its rows.
            ordering: the field or fields that decide which version of a record is newer. None: the order of commits
                decides.
            partition_by: partition fields. ``field:TIMESTAMP`` and ``field:SIMPLE`` select a custom key generator.
            table_type: "MERGE_ON_READ" or "COPY_ON_WRITE".
            table_version: version of Hudi's format: 9, 8 or 6.
            name: name of the table; the last part of the uri by default.
            storage_options: as for ``open``.
            properties: further table properties, such as hive-style partition paths.
            merge_mode: "EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING" or "CUSTOM"; by default it follows from the other
                arguments.
            merge_strategy_id: the id of a merger of your own.
            merger: a merger of your own, which has an id. The table stores only the id: readers need the merger again.
            key_generator: "SIMPLE", "COMPLEX", "NON_PARTITION", "TIMESTAMP" or "CUSTOM"; by default it follows from the
                fields.
            timezone: as for ``open``.

        Raises:
            ConflictError: there is a table at the path already.
            InvalidQueryError: a field is not a column, or arguments contradict each other.
            UnsupportedFeatureError: a column type, version or key generator is not supported.
            CommitStateUnknownError: the store did not say whether it wrote the table's properties.
            StorageError: the store refused or failed.

        Examples:
            >>> from datetime import UTC, datetime
            >>> schema = pa.schema(
            ...     [("sensor", pa.string()), ("at", pa.timestamp("us", "UTC")), ("value", pa.float64())]
            ... )
            >>> readings = HoodieTable.create("readings", schema, record_key="sensor", ordering="at")
            >>> readings.upsert([{"sensor": "s1", "at": datetime(2026, 1, 1, tzinfo=UTC), "value": 0.5}]).rows_inserted
            1
        """
        from hoodie_py.writer import create as given
        from hoodie_py.writer.create import NewTable, create_table

        files = TableFiles.open(fspath(uri), storage_options)
        new = NewTable(
            name=name if name is not None else given.make_default_name(files),
            schema=given.to_arrow_schema(schema),
            record_key=given.split_field_names(record_key or ()),
            ordering=given.split_field_names(ordering or ()),
            partition_by=given.split_field_names(partition_by),
            table_type=table_type,
            version=table_version,
            merge_mode=merge_mode,
            merge_strategy_id=given.resolve_strategy_id(merger, merge_strategy_id),
            key_generator=key_generator,
            properties=given.to_property_texts(properties),
        )
        return cls(create_table(files, new).open(timezone))

    def refresh(self) -> HoodieTable:
        """Return the table in its current state.

        Examples:
            >>> other = HoodieTable.open("trips")
            >>> trips.delete(["a"]).rows_deleted
            1
            >>> other.scan().count(), other.refresh().scan().count()
            (3, 2)
        """
        return HoodieTable(open_snapshot(self.files, timezone=self._snapshot.timezone, earlier=self._snapshot))

    @property
    def files(self) -> TableFiles:
        """Access to the table's files.

        Examples:
            >>> trips.files.exists(".hoodie/hoodie.properties")
            True
        """
        return self._snapshot.files

    @property
    def uri(self) -> str:
        """Base path of the table, without credentials.

        Examples:
            >>> from pathlib import Path
            >>> Path(trips.uri).name
            'trips'
        """
        return self._snapshot.files.uri

    @property
    def config(self) -> TableConfig:
        """The table's properties: name, type, version, record key fields, ordering fields, merge mode, ...

        Examples:
            >>> trips.config.table_type, trips.config.merge_mode.value
            ('MERGE_ON_READ', 'EVENT_TIME_ORDERING')
        """
        return self._snapshot.config

    @property
    def timeline(self) -> Timeline:
        """The active timeline: instants with request time, completion time, action and state, oldest first.

        Examples:
            >>> [(instant.action, instant.state) for instant in trips.timeline]
            [('deltacommit', 'completed'), ('deltacommit', 'completed')]
        """
        return self._snapshot.timeline

    @property
    def schema(self) -> pa.Schema:
        """Schema of a full scan, Hudi's meta columns first.

        Examples:
            >>> trips.schema.names[-4:]
            ['id', 'city', 'price', 'ts']
        """
        return self._snapshot.schema.arrow

    @property
    def inspect(self) -> TableInspect:
        """Views of the table as Arrow tables: timeline, files, slices, log blocks, statistics, plans.

        Examples:
            >>> trips.inspect.timeline()["action"].to_pylist()
            ['deltacommit', 'deltacommit']
        """
        from hoodie_py.table.inspect import TableInspect

        return TableInspect(self._snapshot.view, self._snapshot.choose_view())

    @property
    def index(self) -> TableIndexes:
        """The table's indexes, in its metadata table: ``build``, ``drop`` and ``show`` them.

        Examples:
            >>> built = trips.index.build("record_index")
            >>> [index.name for index in built]
            ['files', 'record_index']
        """
        from hoodie_py.writer.index_jobs.table_indexes import TableIndexes

        return TableIndexes(lambda: self._snapshot, self._open_session, self._refresh)

    def verify(
        self,
        metadata: bool = True,
        data: bool = True,
        options: Mapping[str, Any] | None = None,
        on_progress: Callable[[str, int, int | None], None] | None = None,
        resume: str | PathLike[str] | None = None,
        merger: Merger | None = None,
    ) -> VerifyReport:
        """Check the table, and return a report of what is wrong. Nothing is changed, and no lock is taken.

        If problems are found and the table has changed during the check, it is checked again, three times at most.

        Args:
            metadata: compare the metadata table with the table's files: lists of files, locations of records, secondary
                keys, statistics, bloom filters.
            data: read every file of the newest slices completely.
            options: Hudi's reader options.
            on_progress: called with the name of the running check, the number of entries checked so far, and their
                total number; None if the total is not known before they are read.
            resume: a local file that records progress, so that a killed check continues there. It is used only for the
                same state of the table and the same options, and removed when the check is complete.
            merger: the RecordMerger whose id the table stores.

        Raises:
            InvalidQueryError: ``resume`` is a folder or an unrelated file, or the merger is not the table's.
            StorageError: the store failed. Files that cannot be read are findings of the report, not errors.

        Examples:
            >>> print(trips.verify())
            Checked trips at ... (data 2): nothing is wrong, in ... s.
        """
        from hoodie_py.table.scan.arguments import read_option_texts
        from hoodie_py.writer.index_jobs.verify import verify_table
        from hoodie_py.writer.precombine.merge_options import check_merger

        check_merger(self.config, merger, override=False)
        return verify_table(
            self._snapshot,
            metadata=metadata,
            data=data,
            options=read_option_texts(options),
            on_progress=on_progress,
            resume=resume,
            merger=merger,
        )

    def sync(
        self,
        catalog: HasMetastore,
        database: str | None = None,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> SyncResult:
        """Register the table in a catalog, or update its entries there: columns, partitions, newest commit.

        The entries are the same as those of Java Hudi's sync tools: one for a COPY_ON_WRITE table; ``name_ro``,
        ``name_rt`` and ``name`` for a MERGE_ON_READ table. Entries that are up to date are not written.

        Args:
            catalog: a catalog from ``open_catalog``.
            database: name of the database; by default the one in the table's properties, or ``default``.
            name: name of the table in the catalog; by default the table's own.
            options: Hudi's ``hoodie.datasource.hive_sync.`` options.
            dry_run: write nothing, and return what would change.

        Raises:
            InvalidQueryError: an option is wrong, or the catalog cannot change a column to the table's type.
            InvalidTableError: the table has no commits.
            ConflictError: another table has the name.
            UnsupportedFeatureError: the table or an option is not supported.
            StorageError: the catalog or the store failed; the next sync continues.

        Examples:
            >>> print(trips.sync(catalog, "lake", dry_run=True))
            Dry run: lake.trips_ro is new: 2 partitions added. lake.trips_rt is new: 2 partitions added. lake.trips ...
        """
        from hoodie_py.metastore.sync import sync_table
        from hoodie_py.table.scan.arguments import read_option_texts

        texts = read_option_texts(options)
        return sync_table(
            self._snapshot, catalog.metastore, database=database, table=name, given=texts, dry_run=dry_run
        )

    @overload
    def clean(
        self,
        retain_commits: int | None = None,
        options: Mapping[str, Any] | None = None,
        dry_run: Literal[False] = False,
        lock: Lock | None = None,
    ) -> CleanResult: ...

    @overload
    def clean(
        self,
        retain_commits: int | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        dry_run: Literal[True],
        lock: Lock | None = None,
    ) -> CleanReport: ...

    def clean(
        self,
        retain_commits: int | None = None,
        options: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        lock: Lock | None = None,
    ) -> CleanResult | CleanReport:
        """Remove file slices that no query needs any more, and finish interrupted cleans.

        Queries of the past reach back to the earliest retained commit. File slices that savepoints and pending plans
        refer to always stay.

        Args:
            retain_commits: how many commits stay readable; takes precedence over the options; 10 by default.
            options: Hudi's writer options: policy, commits or file versions retained, lock provider, ...
            dry_run: write nothing, and return a report of the slices to remove and the reasons.
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.

        Raises:
            UnsupportedFeatureError: a feature of the table, or the policy in the options, is not supported.
            InvalidQueryError: an option is wrong.
            InvalidTableError: a pending clean would remove a file that queries need.
            ConflictError: another writer holds the lock, or finished the clean first.
            CommitStateUnknownError: the store did not say whether it wrote a timeline file.
            StorageError: the store failed; the clean stays pending, and the next clean finishes it.

        Examples:
            >>> for price in (1.0, 2.0):
            ...     rows = trips.insert_overwrite_table(
            ...         [{"id": "z", "city": "la", "price": price, "ts": 1}]
            ...     ).rows_inserted
            >>> print(trips.clean(retain_commits=1))
            Clean ... removed 3 files from 2 partitions in ... s.
        """
        from hoodie_py.writer.services import clean

        session = self._open_session(options, lock)
        if dry_run:
            return clean.dry_run(session, retain_commits)
        result = clean.clean(session, retain_commits)
        return self._refresh(result, changed=bool(result.instants))

    def archive(
        self, options: Mapping[str, Any] | None = None, dry_run: bool = False, lock: Lock | None = None
    ) -> ArchiveResult:
        """Move the oldest completed instants from the active timeline to the archive, as writes do by themselves.

        More than ``hoodie.keep.max.commits`` commits (30) are reduced to ``hoodie.keep.min.commits`` (20). Instants
        that cleans retain, or that pending writes, savepoints and the metadata table need, stay active.

        Args:
            options: Hudi's writer options: how many commits stay, lock provider, ...
            dry_run: write nothing, and return what could be moved.
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.

        Raises:
            InvalidQueryError: an option is wrong.
            CorruptFileError: an instant's file, or the archive, is damaged.
            UnsupportedFeatureError: the archive has a form that is not supported.
            ConflictError: another writer holds the lock, or archives at the same time.
            CommitStateUnknownError: the store did not say whether it wrote a file.
            StorageError: the store failed; the next archival continues where this one ended.

        Examples:
            >>> trips.archive().instants  # two commits are too few
            ()
        """
        from hoodie_py.writer.archival import archive

        result = archive.archive(self._open_session(options, lock), dry_run=dry_run)
        return self._refresh(result, changed=bool(result.instants) and not dry_run)

    def _make_runner(self, engine: EngineChoice | None) -> Runner | None:
        """Return the task runner for an engine; PySpark is imported only for a Spark session."""
        if _is_spark(engine):
            from hoodie_py.spark.engine import SparkEngine

            return SparkEngine(cast("Any", engine))
        return cast("Runner | None", engine)

    def _choose_merger(self, engine: EngineChoice | None, merger: Merger | None) -> Merger | None:
        """Return the given merger, else the one registered for the table in the engine's Spark session, else None."""
        if _is_spark(engine):
            from hoodie_py.spark.mergers import find_session_merger

            return find_session_merger(cast("Any", engine), self.config, {}, merger)
        return merger

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
        columns, _ = self._snapshot.find_columns()
        return format_html_table(
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
                ("columns", "(unknown)" if columns is None else ", ".join(columns.names)),
            ],
        )


def _is_spark(engine: object) -> bool:
    return any(cls.__module__.startswith("pyspark.") for cls in type(engine).__mro__)
