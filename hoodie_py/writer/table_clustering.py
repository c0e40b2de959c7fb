"""The part of ``HoodieTable`` that lays rows out anew (Hudi ``BaseHoodieTableServiceClient``).

Modules of the writer are imported inside the methods, so that a program that only reads does not load them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from hoodie_py.writer.table_writes import TableWrites

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.writer.clustering.report import ClusteringReport, ClusteringResult
    from hoodie_py.writer.compaction.local_runner import Runner
    from hoodie_py.writer.compaction.report import CompactionResult
    from hoodie_py.writer.lock.lock import Lock


class TableClustering(TableWrites):
    """Clustering of a table; ``HoodieTable`` says how an engine becomes a runner of tasks."""

    if TYPE_CHECKING:

        def _make_runner(self, engine: Any) -> Runner | None: ...

        def _choose_merger(self, engine: Any, merger: Merger | None) -> Merger | None: ...

    @overload
    def schedule_clustering(
        self, options: Mapping[str, Any] | None = None, dry_run: Literal[False] = False, lock: Lock | None = None
    ) -> str | None: ...

    @overload
    def schedule_clustering(
        self, options: Mapping[str, Any] | None = None, *, dry_run: Literal[True], lock: Lock | None = None
    ) -> ClusteringReport: ...

    def schedule_clustering(
        self, options: Mapping[str, Any] | None = None, dry_run: bool = False, lock: Lock | None = None
    ) -> str | ClusteringReport | None:
        """Plan a clustering: small file groups whose rows are to be written into larger ones.

        Until the plan is carried out or rolled back, records of these file groups cannot be changed.

        Args:
            options: Hudi's writer options: ``hoodie.clustering.plan.strategy.*`` for sizes, partitions and sort
                columns, ``hoodie.layout.optimize.strategy`` for the order, lock provider, ...
            dry_run: write nothing, and return a report of the plan and its reasons.
            lock: a lock that all writers of the table use, where it is not one of Hudi's supported locks.

        Returns:
            The instant of the plan; None when there is nothing to cluster; with ``dry_run`` the report.

        Raises:
            UnsupportedFeatureError: the table has a feature that clustering does not handle, or another strategy.
            ConflictError: another writer holds the lock, or a pending write is in the way.
            InvalidQueryError: a bad option, or a sort column that the table lacks.
            CommitStateUnknownError: the store did not say whether it wrote the plan.

        Examples:
            >>> instant = trips.schedule_clustering()
            >>> len(instant), trips.timeline.select_pending().last.action
            (17, 'clustering')
        """
        from hoodie_py.writer.clustering import plan

        session = self._open_session(options, lock)
        if dry_run:
            return plan.dry_run(session)
        instant = plan.schedule(session)
        return self._refresh(instant, changed=instant is not None)

    def run_clustering(
        self,
        instant: str | None = None,
        engine: Any = None,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
        override_merger: bool = False,
    ) -> ClusteringResult:
        """Carry out a planned clustering, of this package or of Java Hudi.

        Args:
            instant: instant of the plan; None for the oldest pending plan.
            engine: a SparkSession, classic or Connect, which runs one Spark task for each group of the plan; None for
                threads of this process.
            options: Hudi's writer options: codec, size of the new files, metadata table, ...
            merger: the RecordMerger whose id the table names.
            lock: a lock that all writers of the table use, where it is not one of Hudi's supported locks.
            override_merger: allow a merger that is not the table's. Its results are stored for good.

        Raises:
            ConflictError: another writer runs the plan, rolled it back, or changed its file groups.
            InvalidQueryError: there is no such pending plan, or the merger is not the table's.
            InvalidTableError: the plan does not fit the table.
            UnsupportedFeatureError: the table or the plan has a feature that is not handled.
            MergeError: the table needs a merger that nobody supplied, or versions do not merge.
            CommitStateUnknownError: the store did not say whether it wrote the commit; nothing was rolled back.
            StorageError: the store refused; the table did not change.

        Examples:
            >>> instant = trips.schedule_clustering()
            >>> trips.run_clustering(instant).rows_written
            3
        """
        from hoodie_py.writer.clustering import cluster
        from hoodie_py.writer.precombine.merge_options import check_compaction_options

        merger = self._choose_merger(engine, merger)
        session = self._open_session(options, lock, merger)
        check_compaction_options(self._snapshot.config, session.settings.options)
        result = cluster.run(
            session, instant, runner=self._make_runner(engine), merger=merger, override_merger=override_merger
        )
        return self._refresh(result, changed=result.instant is not None)

    def cluster(
        self,
        engine: Any = None,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
        override_merger: bool = False,
    ) -> ClusteringResult:
        """Plan a clustering and carry it out; with nothing to plan, carry out the oldest pending plan.

        Arguments and errors as for ``schedule_clustering`` and ``run_clustering``.

        Examples:
            >>> result = trips.cluster(options={"hoodie.clustering.plan.strategy.sort.columns": "price"})
            >>> print(result)
            Clustering ... wrote 3 rows of 2 file groups into 2 new ones in ... s: ... bytes read, ... written.
        """
        from hoodie_py.writer.precombine.merge_options import check_merger

        check_merger(self._snapshot.config, merger, override=override_merger)  # before there is a plan
        instant = self.schedule_clustering(options, lock=lock)
        return self.run_clustering(instant, engine, options, merger, lock, override_merger)

    def log_compact(
        self,
        engine: Any = None,
        options: Mapping[str, Any] | None = None,
        lock: Lock | None = None,
        merger: Merger | None = None,
    ) -> CompactionResult:
        """Join many small log files of a file group into one; with nothing to plan, carry out the oldest pending plan.

        It costs less than a compaction, as base files are neither read nor written. File slices are taken that have log
        blocks of at least ``hoodie.log.compaction.blocks.threshold`` (5) instants.

        Args:
            engine: a SparkSession, classic or Connect, which runs one Spark task for each file group; None for threads
                of this process.
            options: Hudi's writer options: threshold, metadata table, lock provider, ...
            lock: a lock that all writers of the table use, where it is not one of Hudi's supported locks.
            merger: the RecordMerger whose id the table names.

        Raises:
            UnsupportedFeatureError: the table has change data, or is not merge-on-read; or the merger made deletes with
                data or rows that lack columns, which no log block can say. Then the plan is rolled back.
            InvalidQueryError: the merger is not the table's.
            MergeError: the table needs a merger that nobody supplied, or versions do not merge.
            ConflictError: another writer is at work on the plan, or a pending write is in the way.
            InvalidTableError: the plan does not fit the table.
            CommitStateUnknownError: the store did not say whether it wrote a timeline file.
            StorageError: the store refused; the table did not change.

        Examples:
            >>> schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
            >>> counts = HoodieTable.create("counts", schema, record_key="id")
            >>> for n in range(6):
            ...     rows = counts.upsert([{"id": "a", "n": n}]).rows_updated
            >>> counts.log_compact(options={"hoodie.log.compaction.blocks.threshold": "5"}).file_groups
            1
        """
        from hoodie_py.writer.log_compaction import plan, run
        from hoodie_py.writer.precombine.merge_options import check_merger

        check_merger(self._snapshot.config, merger, override=False)
        session = self._open_session(options, lock, self._choose_merger(engine, merger))
        instant = plan.schedule(session)
        result = run.run(session, instant, runner=self._make_runner(engine))
        return self._refresh(result, changed=result.instant is not None)
