"""Look at a table, say which table services are due, and run them (Hudi ``HoodieTableServiceClient``; the command-line
services ``HoodieCompactor``, ``HoodieClusteringJob`` and ``HoodieCleaner`` in one).

To look costs one listing of the table's files, for all judgements together; nothing is written, and no lock is taken.
A run goes through the services in an order that never loses work: failed writes are rolled back, what others left is
finished, the metadata table is served; then compaction, log compaction, clustering, clean and archival. Each is judged
again right before its turn, if the table has changed. A step that fails is reported, and the next ones are taken.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from hoodie_py.errors import ConflictError, HoodieError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.runtime.telemetry import watch
from hoodie_py.table.indexes.view import read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.archival import archive
from hoodie_py.writer.index_jobs.build import build_index
from hoodie_py.writer.index_jobs.requests import define_index
from hoodie_py.writer.index_jobs.services import run_metadata_services
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.rollback.rollback import RollbackResult
from hoodie_py.writer.services import clean
from hoodie_py.writer.services.clean import Clean
from hoodie_py.writer.services.compaction import Compaction
from hoodie_py.writer.services.due_service import DueService
from hoodie_py.writer.services.log_compaction import LogCompaction
from hoodie_py.writer.services.planned_service import AnyService
from hoodie_py.writer.services.service_run import Runner
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.upkeep import judge
from hoodie_py.writer.upkeep.report import ServiceReport, ServiceStep
from hoodie_py.writer.upkeep.stale_plans import run_or_take_back

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
                for text in _find(name).act(self):
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
                yield self._finish(plan.service, plan.instant.request_time)
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

    def serve(self, service: AnyService) -> Texts:
        """Make a plan and carry it out."""
        planned = service.schedule(service.with_upkeep_options(self.session))
        if planned is not None:
            yield self._finish(service, planned)

    def clean(self) -> Texts:
        """Clean."""
        yield str(clean.clean(self.session))

    def archive(self) -> Texts:
        """Archive."""
        yield str(archive.archive(self.session))

    def _finish(self, service: AnyService, instant: str) -> str:
        """Carry out a plan. A compaction's that is too old is rolled back, if it can be: the next one plans anew."""
        if not isinstance(service, Compaction):
            done = service.finish(self.session, instant, runner=self.runner)
            return f"Log compaction: {done}" if isinstance(service, LogCompaction) else str(done)
        own = self.session.find_own_merger(self.session.look().config)
        compacted = run_or_take_back(self.session, instant, runner=self.runner, merger=own)
        if isinstance(compacted, RollbackResult):
            return f"The plan of compaction {instant} was too old for what came after it, and was rolled back."
        return str(compacted)


@dataclass(frozen=True, slots=True)
class _Service:
    """A service: how it is judged, and what it does. A judge also gets the services that were judged before it."""

    name: str
    judge: Callable[[WriteSession, Snapshot, Mapping[str, DueService]], DueService]
    act: Callable[[ServiceRun], Texts]

    @classmethod
    def of_plans(cls, service: AnyService) -> _Service:
        """Return a service that saves plans. A clean also finishes those of others, and says so in one result."""
        act = ServiceRun.clean if isinstance(service, Clean) else partial(ServiceRun.serve, service=service)
        return cls(service.name, service.judge, act)


_SERVICES = (
    _Service(
        judge.FAILED_WRITES,
        lambda session, now, _: judge.judge_failed_writes(session, now),
        ServiceRun.undo_failed_writes,
    ),
    _Service(judge.PENDING_PLANS, lambda session, now, _: judge.judge_plans(session, now), ServiceRun.finish_plans),
    _Service(judge.INDEX_BUILDS, lambda _, now, __: judge.judge_index_builds(now), ServiceRun.build_indexes),
    _Service(judge.METADATA, lambda session, now, _: judge.judge_metadata(session, now), ServiceRun.serve_metadata),
    *map(_Service.of_plans, judge.PLANNED),
    _Service(judge.ARCHIVAL, lambda session, now, _: judge.judge_archival(session, now), ServiceRun.archive),
)
SERVICES = tuple(each.name for each in _SERVICES)
"""Names of the services, in the order in which they run."""


def _list_once(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with one view for all judgements: the metadata table lists the files, where there is one."""
    return snapshot.evolve(view=snapshot.choose_view())


def _find(name: str) -> _Service:
    return _SERVICES[SERVICES.index(name)]


def _judge(session: WriteSession, snapshot: Snapshot, name: str, judged: Mapping[str, DueService]) -> DueService:
    try:
        return _find(name).judge(session, snapshot, judged)
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
