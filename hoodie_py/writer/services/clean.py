"""Clean: remove file slices that no query needs any more (Hudi ``CleanActionExecutor``).

``PlannedService`` has the steps of a run. A clean that fails stays inflight: to delete a file twice is no error, so the
next clean, this package's or Java's, goes on with it by its plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, TypeVar

from hoodie_py.errors import ConflictError, HoodieError
from hoodie_py.files import TableFiles, list_removable
from hoodie_py.formats.timeline.instants import CLEAN, INFLIGHT, RESTORE, Instant
from hoodie_py.formats.timeline.plans import CleanedPartition, CleanMetadata, CleanPlan
from hoodie_py.formats.timeline.writers import write_clean_metadata, write_clean_plan
from hoodie_py.options.write import KEEP_LATEST_COMMITS
from hoodie_py.reader.file_slice import SourceFile
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.runtime.telemetry import carry_span, watch_calls
from hoodie_py.runtime.wording import Sentence
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.indexes.undo import undo_metadata_commit
from hoodie_py.writer.services.clean_plan import (
    CleanReport,
    CleanSettings,
    check_cleanable,
    check_plan,
    find_earliest_retained,
    make_plan,
    read_saved_plan,
)
from hoodie_py.writer.services.clean_sources import check_sources, delete_source
from hoodie_py.writer.services.clean_window import may_free_files
from hoodie_py.writer.services.due_service import DueService
from hoodie_py.writer.services.planned_service import PlannedService
from hoodie_py.writer.services.service_run import Done, Opened, Runner, Saved
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.commit_protocol import FoundFiles
from hoodie_py.writer.transaction.unfinished_savepoints import remove_unfinished_savepoints

T = TypeVar("T")

_PARALLEL = 8
_MOST_COMMITS_BETWEEN = 10  # cleans of writes


@dataclass(frozen=True, slots=True)
class CleanResult(Sentence):
    """Completed cleans; ``instants`` is empty if there was nothing to remove.

    ``earliest`` is the request time of the earliest commit whose files were all kept; None if the policy has none.

    Examples:
        >>> for price in (1.0, 2.0):
        ...     rows = trips.insert_overwrite_table([{"id": "z", "city": "la", "price": price, "ts": 1}]).rows_inserted
        >>> result = trips.clean(retain_commits=1)
        >>> result.files_deleted
        3
    """

    instants: tuple[str, ...] = ()
    earliest: str | None = None
    partitions: int = 0
    files_deleted: int = 0
    seconds: float = 0.0

    @property
    def instant(self) -> str | None:
        """Request time of the last clean."""
        return self.instants[-1] if self.instants else None

    def __str__(self) -> str:
        if not self.instants:
            return "There was nothing to clean."
        resumed = f" (after {len(self.instants) - 1} that were pending)" if len(self.instants) > 1 else ""
        return (
            f"Clean {self.instants[-1]}{resumed} removed {self.files_deleted:,} files from {self.partitions} "
            f"partitions in {self.seconds:.1f} s."
        )


_Opened = Opened[CleanPlan, list[SourceFile], Any]
_Done = Done[CleanPlan, list[SourceFile], Any]


@dataclass(frozen=True)
class Clean(PlannedService[CleanPlan, list[SourceFile], Any, CleanResult]):
    """Remove old file slices. ``retain_commits`` commits stay readable; None: the options' number. With
    ``incremental`` it looks only where commits since the last clean may have left some.
    """

    name: ClassVar[str] = "clean"
    writes_files: ClassVar[bool] = False

    retain_commits: int | None = None
    incremental: bool = False

    def read_settings(self, session: WriteSession) -> CleanSettings:
        """Return what stays by the options. Raises UnsupportedFeatureError or InvalidQueryError."""
        return replace(CleanSettings.of(session.settings.options, self.retain_commits), incremental=self.incremental)

    def judge(self, session: WriteSession, snapshot: Snapshot, judged: Mapping[str, DueService]) -> DueService:
        """Judge by what a plan would remove."""
        settings = self.read_settings(session)
        report = make_plan(snapshot, settings).report
        if report.waits is not None:
            return DueService(self.name, "not due", report.waits)
        files = sum(len(each.files) for each in report.removed)
        size = sum(each.size for each in report.removed)
        by_commits = report.policy == "KEEP_LATEST_COMMITS"
        kept = f"{settings.commits} commits" if by_commits else f"{settings.versions} versions"
        commits = len(snapshot.timeline.select_writes())
        figures = {"files": files, "bytes": size, "commits": commits}
        if not files:
            return DueService(self.name, "not due", f"no file is older than the {kept} retained, of {commits}", figures)
        why = f"{files:,} files of {size:,} bytes are older than the {kept} that are retained"
        return DueService(self.name, "due", why, figures)

    def check_table(self, session: WriteSession, snapshot: Snapshot) -> None:
        """Refuse a table beside a pending restore."""
        check_cleanable(snapshot)

    def make_plan(self, session: WriteSession, snapshot: Snapshot, instant: str) -> tuple[str, bytes] | None:
        """Plan the files that no retained commit needs."""
        plan = make_plan(snapshot, self.read_settings(session)).plan
        if plan is None:
            return None
        MetadataTable.check(snapshot, session.settings.metadata_mode)
        return CLEAN, write_clean_plan(plan, session.files.java_uri)

    def list_pending(self, snapshot: Snapshot) -> Sequence[Instant]:
        """Return the pending cleans, oldest first."""
        return snapshot.timeline.select_pending().select_actions(CLEAN).instants

    def read_plan(self, snapshot: Snapshot, instant: Instant) -> CleanPlan | None:
        """Return a pending plan; None if its file is empty."""
        return read_saved_plan(snapshot, instant)

    def find(self, saved: Saved[CleanPlan], earlier: list[SourceFile] | None = None) -> list[SourceFile]:
        """Check that no query needs a file of the plan, and return the source files that go with them."""
        check_plan(saved.snapshot, saved.plan)
        return check_sources(saved.snapshot, saved.plan, saved.session.settings.options)

    def open(self, saved: Saved[CleanPlan], found: list[SourceFile], merger: Merger | None) -> _Opened:
        """Begin a run, whose work is to delete the plan's files."""
        return Opened(saved.session, saved.snapshot, saved.instant, saved.plan, found)

    def run_tasks(self, opened: _Opened, runner: Runner) -> list[TaskResult]:
        """Delete the files of the plan in this process. Every one is tried."""
        _delete_files(opened.session.files, opened.plan)
        _run_all(partial(delete_source, opened.session.files), opened.found)
        return []

    def check_still_ours(self, opened: _Opened, now: Snapshot) -> Instant:
        """Check that no other writer finished the clean or took it back."""
        found = now.timeline.find(opened.time, CLEAN)
        if found is None or found.is_completed:
            raise ConflictError("Another writer finished the clean, or took it back.", instant=opened.time)
        if found.state != INFLIGHT:
            raise ConflictError("Another writer took the clean back while it ran.", instant=opened.time)
        return found

    def settle(
        self,
        opened: _Opened,
        results: Sequence[TaskResult],
        found: FoundFiles | None,
        ensure_own: Callable[[], None],
    ) -> None:
        """Take back what an earlier attempt told the metadata table, if it ended right after that."""
        ensure_own()
        undo_metadata_commit(opened.session.files, opened.time, ensure_own)

    def describe(self, opened: _Opened, results: Sequence[TaskResult]) -> MetadataCommit:
        """Return the removed files."""
        return MetadataCommit(opened.session, opened.snapshot, opened.time, "clean", deleted=opened.plan.files)

    def make_content(self, opened: _Opened, results: Sequence[TaskResult], now: Snapshot) -> bytes:
        """Return the clean metadata."""
        return write_clean_metadata(make_metadata(opened.plan, opened.time, opened.began))

    def check_overlap(self, opened: _Opened, before: Snapshot, after: Snapshot) -> None:
        """Do nothing: a clean goes with every commit."""

    def sum_up(self, done: _Done | None) -> CleanResult:
        """Return what was done."""
        return _sum_up([] if done is None else [done], time.monotonic() if done is None else done.opened.began)


@watch_calls("clean")
def clean(session: WriteSession, retain_commits: int | None = None) -> CleanResult:
    """Finish pending cleans, then plan one and carry it out. ``retain_commits`` commits stay readable; None: the
    options' number.

    Raises:
        UnsupportedFeatureError: the table has a feature, or the options have a policy, that is not handled.
        InvalidQueryError: an option has a bad value.
        InvalidTableError: a pending clean would remove a file that is needed.
        ConflictError: another writer holds the lock, or finished the clean first.
        CommitStateUnknownError: the store did not say whether a timeline file was written.
        StorageError: the store failed; the clean stays pending, and the next one continues it.
    """
    return _run(session, Clean(retain_commits))


def clean_inline(session: WriteSession, instant: str) -> CleanResult | None:
    """Clean after the commit of a request time; None if that is not due. Errors as for ``clean``.

    Unless ``hoodie.clean.trigger.max.commits`` says otherwise, every tenth commit may clean, or as many as are retained
    if these are fewer. Java cleans after each one, which costs half as much as a small write itself. The last look at
    the table decides; unless a commit has left files that may go, nothing is listed.
    """
    known, service = session.looks.last, Clean(incremental=True)
    if known is None or not _is_due(known, instant, service.read_settings(session)):
        return None
    return watch_calls("clean")(_run)(session, service)


def _is_due(snapshot: Snapshot, instant: str, settings: CleanSettings) -> bool:
    timeline = snapshot.timeline
    last = timeline.select_actions(CLEAN).select_completed().last
    times = [each.request_time for each in timeline.select_writes()]
    since = sum(last is None or each > last.request_time for each in times)
    # The write may have compacted, too, so the tenth commit need not be the last one.
    own = sum(each >= instant for each in times)
    interval = max(1, min(settings.commits, _MOST_COMMITS_BETWEEN))
    if settings.least_commits is None and since // interval == (since - own) // interval:
        return False
    if since < (settings.least_commits or 1):
        return False
    if len(timeline.select_pending().select_actions(RESTORE)):
        return False  # it goes back to older files, and no clean is allowed beside it
    if settings.policy != KEEP_LATEST_COMMITS or len(timeline.select_pending().select_actions(CLEAN)):
        return True
    earliest = find_earliest_retained(snapshot, settings)
    return earliest is not None and may_free_files(snapshot, earliest.request_time)


def _run(session: WriteSession, service: Clean) -> CleanResult:
    began = time.monotonic()
    service.read_settings(session)
    snapshot = session.look()
    service.check_table(session, snapshot)
    remove_unfinished_savepoints(session, snapshot)
    done = [service.carry_out(session, snapshot, each.request_time) for each in service.list_pending(snapshot)]
    planned = service.save_plan(session)
    if planned is not None:
        done.append(service.carry_out(session, snapshot, planned))
    return _sum_up([each for each in done if each is not None], began)


def dry_run(session: WriteSession, retain_commits: int | None = None) -> CleanReport:
    """Report what ``clean`` would plan. It writes nothing and takes no lock; errors as for ``clean``."""
    return make_plan(session.look(), CleanSettings.of(session.settings.options, retain_commits)).report


def make_metadata(plan: CleanPlan, instant: str, began: float) -> CleanMetadata:
    """Return the metadata of a clean that has removed all files of its plan. ``began``: ``time.monotonic()`` then."""
    return CleanMetadata(
        start_clean_time=instant,
        total_files_deleted=sum(map(len, plan.files.values())),
        earliest_commit_to_retain=plan.earliest_instant_to_retain,
        last_completed_commit_timestamp=plan.last_completed_commit_timestamp,
        partitions={
            partition: CleanedPartition(tuple(names), (), False, plan.policy or "")
            for partition, names in plan.files.items()
        },
        time_taken_ms=round((time.monotonic() - began) * 1000),
        extra_metadata=plan.extra_metadata,
        sources=plan.sources,
    )


def _sum_up(done: Sequence[_Done], began: float) -> CleanResult:
    plans = [each.opened.plan for each in done]
    return CleanResult(
        instants=tuple(each.opened.time for each in done),
        earliest=plans[-1].earliest_instant_to_retain if plans else None,
        partitions=len({partition for each in plans for partition in each.files}),
        files_deleted=sum(len(names) for each in plans for names in each.files.values()),
        seconds=time.monotonic() - began,
    )


def _delete_files(files: TableFiles, plan: CleanPlan) -> None:
    paths = [f"{partition}/{name}" if partition else name for partition, names in plan.files.items() for name in names]
    _run_all(files.delete_with_checksum, list_removable(files, paths))


def _run_all(delete: Callable[[T], None], files: Sequence[T]) -> None:
    with ThreadPoolExecutor(_PARALLEL, "hoodie-clean") as pool:
        failures = [each for each in pool.map(carry_span(partial(_try, delete)), files) if each is not None]
    if failures:  # every file was tried
        raise failures[0]


def _try(delete: Callable[[T], None], file: T) -> HoodieError | None:
    try:
        delete(file)
    except HoodieError as error:
        return error
    return None
