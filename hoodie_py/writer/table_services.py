"""The part of ``HoodieTable`` that runs table services (Hudi ``BaseHoodieTableServiceClient``).

Modules of the writer are imported inside the methods, so that a program that only reads does not load them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from hoodie_py.writer.table_writes import TableWrites

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.writer.clustering.report import ClusteringReport, ClusteringResult
    from hoodie_py.writer.lock.lock import Lock
    from hoodie_py.writer.services.compaction_report import CompactionResult, OnProgress, PlanReport
    from hoodie_py.writer.services.service_run import Runner
    from hoodie_py.writer.upkeep.report import ServiceReport, ServiceStep


class TableServices(TableWrites):
    """The table services of a table; ``HoodieTable`` turns an engine into a runner of tasks."""

    if TYPE_CHECKING:

        def _make_runner(self, engine: Any) -> Runner | None: ...

        def _choose_merger(self, engine: Any, merger: Merger | None) -> Merger | None: ...

    def services(
        self,
        run: bool = False,
        engine: Any = None,
        options: Mapping[str, Any] | None = None,
        only: Collection[str] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
        on_step: Callable[[ServiceStep], object] | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> ServiceReport:
        """Return which table services are due and why; with ``run``, run them.

        The services, in the order in which they run: failed writes (rolled back), pending plans (finished), index
        builds (finished), metadata table (compacted, cleaned, archived), compaction, log compaction, clustering, clean,
        archival. Instants of writers with a fresh heartbeat are left alone. Without ``run`` nothing is written.

        Args:
            run: run the services that are due. A failed step is in the report, and the next steps are run.
            engine: a SparkSession, classic or Connect, which runs the tasks of compactions and clusterings; None for
                threads of this process.
            options: Hudi's writer options, which define when a service is due and how it is run.
            only: names of services, such as ``["clean", "archival"]``; None for all.
            merger: the RecordMerger of a table that needs one.
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.
            on_step: called with each step of a run.
            should_stop: called between the services of a run; if it returns true, the run ends.

        Raises:
            InvalidQueryError: a bad option, or no service has such a name.
            UnsupportedFeatureError: the table has a version that is only read.
            StorageError: the store refused to list the table. Later failures are in the report.

        Examples:
            >>> report = trips.services(options={"hoodie.compact.inline.max.delta.commits": "1"})
            >>> [service.name for service in report.due]
            ['compaction']
            >>> report = trips.services(run=True, options={"hoodie.compact.inline.max.delta.commits": "1"})
            >>> [(step.service, step.outcome) for step in report.steps]
            [('compaction', 'done')]
        """
        from hoodie_py.writer.upkeep.run import ServiceRun, look

        session = self._open_session(options, lock, self._choose_merger(engine, merger))
        if not run:
            return look(session, self._snapshot, only)
        turn = ServiceRun(session, only, self._make_runner(engine))
        if on_step is not None:
            turn.on_step = on_step
        if should_stop is not None:
            turn.should_stop = should_stop
        report = turn.run()
        return self._refresh(report, changed=bool(report.steps))

    @overload
    def schedule_compaction(
        self,
        strategy: str | None = None,
        options: Mapping[str, Any] | None = None,
        dry_run: Literal[False] = False,
        lock: Lock | None = None,
    ) -> str | None: ...

    @overload
    def schedule_compaction(
        self,
        strategy: str | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        dry_run: Literal[True],
        lock: Lock | None = None,
    ) -> PlanReport: ...

    def schedule_compaction(
        self,
        strategy: str | None = None,
        options: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        lock: Lock | None = None,
    ) -> str | PlanReport | None:
        """Plan a compaction of the table's current state.

        All file groups with log files are planned, in the order and within the limits of the strategy. If the options
        name a trigger or a trigger's threshold, a plan also needs enough changes since the last compaction.

        Args:
            strategy: name of a Hudi compaction strategy, or several joined by commas; takes precedence over the
                options.
            options: Hudi's writer options: strategy, triggers, lock provider, ...
            dry_run: write nothing, and return a report of the plan and its reasons.
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.

        Returns:
            The instant of the plan; None if there is nothing to compact; with ``dry_run`` the report.

        Raises:
            UnsupportedFeatureError: the table has a feature that compaction does not handle.
            ConflictError: another writer holds the lock, or a pending write prevents the plan.
            InvalidQueryError: an unknown strategy or a bad option.
            CommitStateUnknownError: the store did not say whether it wrote the plan.

        Examples:
            >>> print(trips.schedule_compaction(dry_run=True))
            Compaction of trips would merge 1 of 2 file slices: 1 log files of ... bytes, about 7.7 KiB to read ...
            >>> instant = trips.schedule_compaction()
            >>> trips.inspect.compaction_plan(instant).num_rows
            1
        """
        from hoodie_py.writer.services.compaction import Compaction
        from hoodie_py.writer.services.compaction_plan import dry_run as report

        session = self._open_session(options, lock, strategy=strategy)
        if dry_run:
            return report(session)
        instant = Compaction().schedule(session)
        return self._refresh(instant, changed=instant is not None)

    def run_compaction(
        self,
        instant: str | None = None,
        engine: Any = None,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
        on_progress: OnProgress | None = None,
        override_merger: bool = False,
    ) -> CompactionResult:
        """Run a planned compaction.

        Args:
            instant: instant of the plan; None for the oldest pending plan.
            engine: a SparkSession, classic or Connect, which runs one Spark task for each file group; None for threads
                of this process.
            options: Hudi's writer options: codec, bloom filter, metadata table, ...
            merger: the RecordMerger whose id the table names.
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.
            on_progress: called with a Progress while the compaction runs.
            override_merger: allow a merger that is not the table's. Its results are stored permanently.

        Raises:
            ConflictError: another writer runs the plan, rolled it back, or changed its file groups.
            InvalidQueryError: there is no such pending plan, or the merger is not the table's.
            InvalidTableError: the plan does not fit the table.
            UnsupportedFeatureError: the table has a feature that compaction does not handle.
            MergeError: the table needs a merger that was not supplied, or versions do not merge.
            CommitStateUnknownError: the store did not say whether it wrote the commit; nothing was rolled back.
            StorageError: the store refused; the table did not change.

        Examples:
            >>> instant = trips.schedule_compaction()
            >>> trips.run_compaction(instant).rows_updated
            1
        """
        from hoodie_py.writer.precombine.merge_options import check_compaction_options
        from hoodie_py.writer.services.compaction import Compaction

        merger = self._choose_merger(engine, merger)
        session = self._open_session(options, lock, merger)
        check_compaction_options(self._snapshot.config, session.settings.options)
        runner = self._make_runner(engine)
        service = Compaction(on_progress)
        result = service.run(session, instant, runner=runner, merger=merger, override_merger=override_merger)
        return self._refresh(result, changed=result.instant is not None, seen=session.looks.find_after(result.instant))

    def compact(
        self,
        engine: Any = None,
        strategy: str | None = None,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
        on_progress: OnProgress | None = None,
        override_merger: bool = False,
    ) -> CompactionResult:
        """Plan a compaction and run it; if there is nothing to plan, run the oldest pending plan.

        Arguments and errors as for ``schedule_compaction`` and ``run_compaction``.

        Examples:
            >>> print(trips.compact())
            Compaction ... merged 1 file group in ... s: 2 rows written, 1 updated, 0 inserted and 0 deleted; ... ...
            >>> [len(file_slice.log_files) for file_slice in trips.file_slices()]
            [0, 0]
        """
        from hoodie_py.writer.precombine.merge_options import check_merger

        check_merger(self._snapshot.config, merger, override=override_merger)  # before there is a plan
        instant = self.schedule_compaction(strategy, options, lock=lock)
        return self.run_compaction(instant, engine, options, merger, lock, on_progress, override_merger)

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

        Until the plan is run or rolled back, records of these file groups cannot be changed.

        Args:
            options: Hudi's writer options: ``hoodie.clustering.plan.strategy.*`` for sizes, partitions and sort
                columns, ``hoodie.layout.optimize.strategy`` for the order, lock provider, ...
            dry_run: write nothing, and return a report of the plan and its reasons.
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.

        Returns:
            The instant of the plan; None if there is nothing to cluster; with ``dry_run`` the report.

        Raises:
            UnsupportedFeatureError: the table has a feature, or the options name a strategy, that is not handled.
            ConflictError: another writer holds the lock, or a pending write prevents the plan.
            InvalidQueryError: a bad option, or a sort column that the table lacks.
            CommitStateUnknownError: the store did not say whether it wrote the plan.

        Examples:
            >>> instant = trips.schedule_clustering()
            >>> len(instant), trips.timeline.select_pending().last.action
            (17, 'clustering')
        """
        from hoodie_py.writer.clustering.cluster import Clustering
        from hoodie_py.writer.clustering.plan import dry_run as report

        session = self._open_session(options, lock)
        if dry_run:
            return report(session)
        instant = Clustering().schedule(session)
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
        """Run a planned clustering, of this package or of Java Hudi.

        Args:
            instant: instant of the plan; None for the oldest pending plan.
            engine: a SparkSession, classic or Connect, which runs one Spark task for each group of the plan; None for
                threads of this process.
            options: Hudi's writer options: codec, size of the new files, metadata table, ...
            merger: the RecordMerger whose id the table names.
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.
            override_merger: allow a merger that is not the table's. Its results are stored permanently.

        Raises:
            ConflictError: another writer runs the plan, rolled it back, or changed its file groups.
            InvalidQueryError: there is no such pending plan, or the merger is not the table's.
            InvalidTableError: the plan does not fit the table.
            UnsupportedFeatureError: the table or the plan has a feature that is not handled.
            MergeError: the table needs a merger that was not supplied, or versions do not merge.
            CommitStateUnknownError: the store did not say whether it wrote the commit; nothing was rolled back.
            StorageError: the store refused; the table did not change.

        Examples:
            >>> instant = trips.schedule_clustering()
            >>> trips.run_clustering(instant).rows_written
            3
        """
        from hoodie_py.writer.clustering.cluster import Clustering
        from hoodie_py.writer.precombine.merge_options import check_compaction_options

        merger = self._choose_merger(engine, merger)
        session = self._open_session(options, lock, merger)
        check_compaction_options(self._snapshot.config, session.settings.options)
        runner = self._make_runner(engine)
        result = Clustering().run(session, instant, runner=runner, merger=merger, override_merger=override_merger)
        return self._refresh(result, changed=result.instant is not None, seen=session.looks.find_after(result.instant))

    def cluster(
        self,
        engine: Any = None,
        options: Mapping[str, Any] | None = None,
        merger: Merger | None = None,
        lock: Lock | None = None,
        override_merger: bool = False,
    ) -> ClusteringResult:
        """Plan a clustering and run it; if there is nothing to plan, run the oldest pending plan.

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
        """Merge many small log files of a file group into one.

        It costs less than a compaction, as base files are neither read nor written. File slices are chosen if their log
        blocks come from at least ``hoodie.log.compaction.blocks.threshold`` (5) instants. If there is nothing to plan,
        the oldest pending plan is run.

        Args:
            engine: a SparkSession, classic or Connect, which runs one Spark task for each file group; None for threads
                of this process.
            options: Hudi's writer options: threshold, metadata table, lock provider, ...
            lock: a lock that all writers of the table use, if it is not one of Hudi's supported locks.
            merger: the RecordMerger whose id the table names.

        Raises:
            UnsupportedFeatureError: the table has change data, or is not merge-on-read; or the merger made deletes with
                data or rows that lack columns, which no log block can store. Then the plan is rolled back.
            InvalidQueryError: the merger is not the table's.
            MergeError: the table needs a merger that was not supplied, or versions do not merge.
            ConflictError: another writer is at work on the plan, or a pending write prevents it.
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
        from hoodie_py.writer.precombine.merge_options import check_merger
        from hoodie_py.writer.services.log_compaction import LogCompaction

        check_merger(self._snapshot.config, merger, override=False)
        session = self._open_session(options, lock, self._choose_merger(engine, merger))
        service = LogCompaction()
        instant = service.schedule(session)
        result = service.run(session, instant, runner=self._make_runner(engine))
        return self._refresh(result, changed=result.instant is not None)
