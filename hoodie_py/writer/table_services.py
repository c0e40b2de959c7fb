"""The part of ``HoodieTable`` that says which table services are due, and runs them.

Modules of the writer are imported inside the methods, so that a program that only reads does not load them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from hoodie_py.writer.table_writes import TableWrites

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.writer.compaction.local_runner import Runner
    from hoodie_py.writer.lock.lock import Lock
    from hoodie_py.writer.services.report import ServiceReport, ServiceStep


class TableServices(TableWrites):
    """All table services at once; ``HoodieTable`` says how an engine becomes a runner of tasks."""

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
        """Say which table services are due and why, and do what is due if asked to.

        The services, in the order in which they run: failed writes (rolled back), pending plans (finished), index
        builds (finished), metadata table (compacted, cleaned, archived), compaction, log compaction, clustering, clean,
        archival. What a writer with a fresh heartbeat is at work on is left alone. Without ``run`` nothing is written.

        Args:
            run: do what is due. A step that fails is in the report, and the next ones are taken.
            engine: a SparkSession, classic or Connect, which runs the tasks of compactions and clusterings; None for
                threads of this process.
            options: Hudi's writer options, which say when a service is due and how it is done.
            only: names of services, such as ``["clean", "archival"]``; None for all.
            merger: the RecordMerger of a table that needs one.
            lock: a lock that all writers of the table use, where it is not one of Hudi's supported locks.
            on_step: called with each step of a run.
            should_stop: asked between the services of a run; true ends it.

        Raises:
            InvalidQueryError: a bad option, or no service has such a name.
            UnsupportedFeatureError: the table is of a version that is only read.
            StorageError: the store refused to list the table. Later failures are in the report.

        Examples:
            >>> report = trips.services(options={"hoodie.compact.inline.max.delta.commits": "1"})
            >>> [service.name for service in report.due]
            ['compaction']
            >>> report = trips.services(run=True, options={"hoodie.compact.inline.max.delta.commits": "1"})
            >>> [(step.service, step.outcome) for step in report.steps]
            [('compaction', 'done')]
        """
        from hoodie_py.writer.services.services import ServiceRun, look

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
