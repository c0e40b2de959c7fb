"""The part of ``HoodieTable`` that merges log files into base files (Hudi ``HoodieCompactor``).

Modules of the writer are imported inside the methods, so that a program that only reads does not load them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from hoodie_py.writer.table_writes import TableWrites

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.writer.compaction.local_runner import Runner
    from hoodie_py.writer.compaction.report import CompactionResult, OnProgress, PlanReport
    from hoodie_py.writer.lock.lock import Lock


class TableCompaction(TableWrites):
    """Compaction of a table; ``HoodieTable`` says how an engine becomes a runner of tasks."""

    if TYPE_CHECKING:

        def _make_runner(self, engine: Any) -> Runner | None: ...

        def _choose_merger(self, engine: Any, merger: Merger | None) -> Merger | None: ...

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
            strategy: name of a Hudi compaction strategy, or several joined by commas; wins over the options'.
            options: Hudi's writer options: strategy, triggers, lock provider, ...
            dry_run: write nothing, and return a report of the plan and its reasons.
            lock: a lock that all writers of the table use, where it is not one of Hudi's supported locks.

        Returns:
            The instant of the plan; None when there is nothing to compact; with ``dry_run`` the report.

        Raises:
            UnsupportedFeatureError: the table has a feature that compaction does not handle.
            ConflictError: another writer holds the lock, or a pending write is in the way.
            InvalidQueryError: an unknown strategy or a bad option.
            CommitStateUnknownError: the store did not say whether it wrote the plan.

        Examples:
            >>> print(trips.schedule_compaction(dry_run=True))
            Compaction of trips would merge 1 of 2 file slices: 1 log files of ... bytes, about 7.7 KiB to read ...
            >>> instant = trips.schedule_compaction()
            >>> trips.inspect.compaction_plan(instant).num_rows
            1
        """
        from hoodie_py.writer.compaction import plan as compaction_plan

        session = self._open_session(options, lock, strategy=strategy)
        if dry_run:
            return compaction_plan.dry_run(session)
        instant = compaction_plan.schedule(session)
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
        """Carry out a planned compaction.

        Args:
            instant: instant of the plan; None for the oldest pending plan.
            engine: a SparkSession, classic or Connect, which runs one Spark task for each file group; None for threads
                of this process.
            options: Hudi's writer options: codec, bloom filter, metadata table, ...
            merger: the RecordMerger whose id the table names.
            lock: a lock that all writers of the table use, where it is not one of Hudi's supported locks.
            on_progress: called with a Progress while the compaction runs.
            override_merger: allow a merger that is not the table's. Its results are stored for good.

        Raises:
            ConflictError: another writer runs the plan, rolled it back, or changed its file groups.
            InvalidQueryError: there is no such pending plan, or the merger is not the table's.
            InvalidTableError: the plan does not fit the table.
            UnsupportedFeatureError: the table has a feature that compaction does not handle.
            MergeError: the table needs a merger that nobody supplied, or versions do not merge.
            CommitStateUnknownError: the store did not say whether it wrote the commit; nothing was rolled back.
            StorageError: the store refused; the table did not change.

        Examples:
            >>> instant = trips.schedule_compaction()
            >>> trips.run_compaction(instant).rows_updated
            1
        """
        from hoodie_py.writer.compaction import compact as compaction
        from hoodie_py.writer.precombine.merge_options import check_compaction_options

        merger = self._choose_merger(engine, merger)
        session = self._open_session(options, lock, merger)
        check_compaction_options(self._snapshot.config, session.settings.options)
        result = compaction.run(
            session,
            instant,
            runner=self._make_runner(engine),
            merger=merger,
            override_merger=override_merger,
            on_progress=on_progress,
        )
        return self._refresh(result, changed=result.instant is not None)

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
        """Plan a compaction and carry it out; with nothing to plan, carry out the oldest pending plan.

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
