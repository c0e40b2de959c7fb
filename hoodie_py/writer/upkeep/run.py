"""Look at a table, say which table services are due, and run them (Hudi ``HoodieTableServiceClient``; the command-line
services ``HoodieCompactor``, ``HoodieClusteringJob`` and ``HoodieCleaner`` in one).

To look costs one listing of the table's files, for all judgements together; nothing is written, and no lock is taken.
A run goes through the services in an order that never loses work: failed writes are rolled back, what others left is
finished, the metadata table is served; then compaction, log compaction, clustering, clean and archival. Each is judged
again right before its turn, if the table has changed. A step that fails is told, and the next ones are taken.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal

from hoodie_py.errors import ConflictError, HoodieError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.runtime.telemetry import watch
from hoodie_py.table.indexes.view import read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.archival import archive
from hoodie_py.writer.clustering.cluster import Clustering
from hoodie_py.writer.commit.stale_plans import run_or_take_back
from hoodie_py.writer.index_jobs.build import build_index
from hoodie_py.writer.index_jobs.requests import define_index
from hoodie_py.writer.index_jobs.services import run_metadata_services
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.rollback.rollback import RollbackResult
from hoodie_py.writer.services import clean
from hoodie_py.writer.services.compaction import Compaction
from hoodie_py.writer.services.due_service import DueService
from hoodie_py.writer.services.log_compaction import LogCompaction
from hoodie_py.writer.services.runner import Runner
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.upkeep import judge
from hoodie_py.writer.upkeep.report import ServiceReport, ServiceStep

SERVICES = (
    judge.FAILED_WRITES,
    judge.PENDING_PLANS,
    judge.INDEX_BUILDS,
    judge.METADATA,
    judge.COMPACT,
    judge.FOLD,
    judge.CLUSTER,
    judge.CLEAN,
    judge.ARCHIVAL,
)
"""Names of the services, in the order in which they run."""

Texts = Iterator[str]
"""What a service did, a text for each step."""


def check_names(names: Collection[str] | None) -> tuple[str, ...]:
    """Return the services of these names in their order; None: all.

    Raises:
        InvalidQueryError: there is no such service.
    """
    if names is None:
        return SERVICES
    given = {each.strip().replace("-", " ").replace("_", " ") for each in names}
    unknown = sorted(given.difference(SERVICES))
    if unknown:
        known = ", ".join(each.replace(" ", "-") for each in SERVICES)
        raise InvalidQueryError(f"There is no table service {unknown[0][:60]!r}.", hint=f"There are: {known}.")
    return tuple(each for each in SERVICES if each in given)


def look(session: WriteSession, snapshot: Snapshot, names: Collection[str] | None = None) -> ServiceReport:
    """Judge services by a snapshot, and return the report. A service that cannot be judged says why.

    Raises:
        InvalidQueryError: there is no service of a name.
    """
    chosen = check_names(names)
    seen = _list_once(snapshot)
    judged: dict[str, DueService] = {}
    for name in chosen:
        judged[name] = _judge(session, seen, name, judged)
    return _make_report(snapshot, judged)


@dataclass(slots=True)
class ServiceRun:
    """One turn of the services of a table.

    Args:
        session: with the options, and the merger, which counts for a table whose own it is.
        names: of the services; None for all.
        runner: runs the tasks of compactions and clusterings; None: this process.
        on_step: called after each step.
        should_stop: asked before each service; if it says so, the turn ends.
    """

    session: WriteSession
    names: Collection[str] | None = None
    runner: Runner | None = None
    on_step: Callable[[ServiceStep], object] = lambda _: None
    should_stop: Callable[[], bool] = lambda: False
    steps: list[ServiceStep] = field(default_factory=list)

    def run(self) -> ServiceReport:
        """Do what is due, and return what was done and what is due after that.

        Raises:
            InvalidQueryError: there is no service of a name.
            StorageError, InvalidTableError: the table cannot be read.
        """
        chosen = check_names(self.names)
        judged: dict[str, DueService] = {}
        snapshot = self.session.look()
        seen = _list_once(snapshot)
        is_whole, taken = True, []
        for name in chosen:
            if self.should_stop():
                is_whole = False
                break
            judged[name] = _judge(self.session, seen, name, judged)
            if judged[name].is_due:
                self._take(name)
                taken.append(name)
                snapshot = self.session.look()
                seen = _list_once(snapshot)
        for name in taken:
            judged[name] = _judge(self.session, seen, name, judged)
        return _make_report(snapshot, judged, tuple(self.steps), is_whole=is_whole)

    def _take(self, name: str) -> None:
        """Run a service; tell each of its steps."""
        began = time.monotonic()
        try:
            with watch("service", self.session.files, service=name):
                for text in _ACTS[name](self):
                    self._tell(ServiceStep(name, text, "done", time.monotonic() - began))
                    began = time.monotonic()
        except Exception as error:  # noqa: BLE001 - engines raise their own; the other services must go on
            self._tell_failure(name, error, time.monotonic() - began)

    def _tell_failure(self, name: str, error: Exception, seconds: float) -> None:
        kind: Literal["conflict", "failed"] = "conflict" if isinstance(error, ConflictError) else "failed"
        text = str(error) if isinstance(error, HoodieError) else traceback.format_exception_only(error)[-1].strip()
        self._tell(ServiceStep(name, text[:2000], kind, seconds))

    def _tell(self, step: ServiceStep) -> None:
        self.steps.append(step)
        self.on_step(step)

    def undo_failed_writes(self) -> Texts:
        """Roll back writes whose writers died."""
        before = self.session.look().timeline.pending_times
        after = {each.request_time for each in undo_failed_writes(self.session, spare_others=True).timeline}
        gone = sorted(before - after)
        yield f"Rolled back what failed writes left: {', '.join(gone) or 'unfinished rollbacks or savepoints'}."

    def finish_plans(self) -> Texts:
        """Carry out plans that others left, except those of writers at work. One that fails does not stop the next."""
        for plan in judge.list_plans(self.session, self.session.look()):
            if plan.is_held or self.should_stop():
                continue
            began = time.monotonic()
            try:
                yield str(_PLANS[plan.kind](self, plan.instant.request_time))
            except HoodieError as error:
                self._tell_failure(judge.PENDING_PLANS, error, time.monotonic() - began)

    def build_indexes(self) -> Texts:
        """Finish builds of partitions of the metadata table."""
        session = self.session
        snapshot = session.look()
        definitions = read_definitions(session.files, snapshot.config)
        for name in sorted({*snapshot.config.metadata_partitions_inflight} - {*snapshot.config.metadata_partitions}):
            known = definitions.get(name)
            partition, made = define_index(snapshot, name, options=session.settings.options)
            for built in build_index(session, snapshot, partition, known or made):
                yield str(built)

    def serve_metadata(self) -> Texts:
        """Compact, clean and archive the metadata table."""
        run_metadata_services(self.session, self.session.look())
        yield "Served the metadata table."

    def compact(self) -> Texts:
        """Plan a compaction and carry it out."""
        service = Compaction()
        planned = service.schedule(service.with_upkeep_options(self.session))
        if planned is not None:
            yield str(self.run_compaction(planned))

    def fold_logs(self) -> Texts:
        """Plan a log compaction and carry it out."""
        planned = LogCompaction().schedule(self.session)
        if planned is not None:
            yield str(self.run_log_compaction(planned))

    def cluster(self) -> Texts:
        """Plan a clustering and carry it out."""
        service = Clustering()
        planned = service.schedule(service.with_upkeep_options(self.session))
        if planned is not None:
            yield str(self.run_clustering(planned))

    def clean(self) -> Texts:
        """Clean."""
        yield str(clean.clean(self.session))

    def archive(self) -> Texts:
        """Archive."""
        yield str(archive.archive(self.session))

    def run_compaction(self, instant: str) -> object:
        """Carry out a plan; one that is too old is rolled back, if it can be: the next compaction plans anew."""
        own = self.session.find_own_merger(self.session.look().config)
        done = run_or_take_back(self.session, instant, runner=self.runner, merger=own)
        if isinstance(done, RollbackResult):
            return f"The plan of compaction {instant} was too old for what came after it, and was rolled back."
        return done

    def run_log_compaction(self, instant: str) -> object:
        """Carry out a plan."""
        return f"Log compaction: {LogCompaction().run(self.session, instant, runner=self.runner)}"

    def run_clustering(self, instant: str) -> object:
        """Carry out a plan."""
        own = self.session.find_own_merger(self.session.look().config)
        return Clustering().run(self.session, instant, runner=self.runner, merger=own)

    def run_clean(self, instant: str) -> object:
        """Carry out a plan."""
        return clean.Clean().finish(self.session, instant)


_ACTS: dict[str, Callable[[ServiceRun], Texts]] = {
    judge.FAILED_WRITES: ServiceRun.undo_failed_writes,
    judge.PENDING_PLANS: ServiceRun.finish_plans,
    judge.INDEX_BUILDS: ServiceRun.build_indexes,
    judge.METADATA: ServiceRun.serve_metadata,
    judge.COMPACT: ServiceRun.compact,
    judge.FOLD: ServiceRun.fold_logs,
    judge.CLUSTER: ServiceRun.cluster,
    judge.CLEAN: ServiceRun.clean,
    judge.ARCHIVAL: ServiceRun.archive,
}
_PLANS: dict[str, Callable[[ServiceRun, str], object]] = {
    judge.COMPACT: ServiceRun.run_compaction,
    judge.FOLD: ServiceRun.run_log_compaction,
    judge.CLUSTER: ServiceRun.run_clustering,
    judge.CLEAN: ServiceRun.run_clean,
}


def _list_once(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with one view for all judgements: the metadata table lists the files, where there is one."""
    return Snapshot(
        snapshot.files,
        snapshot.config,
        snapshot.timeline,
        timezone=snapshot.timezone,
        view=snapshot.choose_view(),
        metadata=snapshot.metadata,
    )


def _judge(session: WriteSession, snapshot: Snapshot, name: str, judged: dict[str, DueService]) -> DueService:
    judges: dict[str, Callable[[], DueService]] = {
        judge.FAILED_WRITES: lambda: judge.judge_failed_writes(session, snapshot),
        judge.PENDING_PLANS: lambda: judge.judge_plans(session, snapshot),
        judge.INDEX_BUILDS: lambda: judge.judge_index_builds(snapshot),
        judge.METADATA: lambda: judge.judge_metadata(session, snapshot),
        judge.COMPACT: lambda: Compaction().judge(session, snapshot, judged),
        judge.FOLD: lambda: LogCompaction().judge(session, snapshot, judged),
        judge.CLUSTER: lambda: Clustering().judge(session, snapshot, judged),
        judge.CLEAN: lambda: clean.Clean().judge(session, snapshot, judged),
        judge.ARCHIVAL: lambda: judge.judge_archival(session, snapshot),
    }
    try:
        return judges[name]()
    except ConflictError as error:
        return DueService(name, "waits", str(error))
    except UnsupportedFeatureError as error:
        return DueService(name, "not handled", str(error))
    except HoodieError as error:
        return DueService(name, "unknown", str(error))


def _make_report(
    snapshot: Snapshot,
    judged: dict[str, DueService],
    steps: tuple[ServiceStep, ...] = (),
    *,
    is_whole: bool = True,
) -> ServiceReport:
    config = snapshot.config
    return ServiceReport(
        table=config.name,
        uri=snapshot.files.uri,
        table_type=config.table_type,
        version=config.version,
        instant=snapshot.timeline.newest_time or None,
        services=tuple(judged.values()),
        steps=steps,
        is_whole=is_whole,
    )
