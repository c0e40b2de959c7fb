"""Log compaction: join many small log files of a file group into one (Hudi ``RunCompactionActionExecutor``,
``BaseHoodieTableServiceClient.logCompact``, ``HoodieLogCompactionPlanGenerator``).

The completed instant is a delta commit. Writers may append to the slices meanwhile: readers put the new file in the
place of what it joins. A slice is planned if the blocks that count in its log are of enough instants, and if no pending
plan names its file group.

* A block of an earlier log compaction counts as one, so that nothing is folded twice without need.
* Slices with partial updates are left out: their rows have columns that are absent, which no whole row can say.
* Up to table version 6 no plan is made beside a pending write: see ``refusals.check_pending_writes``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar
from uuid import uuid4

from hoodie_py.errors import ConflictError, HoodieError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.timeline.instants import INFLIGHT, LOG_COMPACTION, Instant
from hoodie_py.formats.timeline.plans import CompactionPlan
from hoodie_py.formats.timeline.writers import write_compaction_plan
from hoodie_py.options.log_compaction import BLOCKS_THRESHOLD
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.reader.selection import select_strategy
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.data_file import CommitFacts, TaskResult
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.undo import undo_metadata_commit
from hoodie_py.writer.refusals import check_compactable, check_pending_writes
from hoodie_py.writer.rollback.finish import delete_files
from hoodie_py.writer.rollback.written_files import find_written_files
from hoodie_py.writer.services.compaction import Compaction, make_compaction_content
from hoodie_py.writer.services.compaction_plan import find_planned_slices, make_operation, read_blocks
from hoodie_py.writer.services.compaction_report import CompactionResult
from hoodie_py.writer.services.due_service import DueService
from hoodie_py.writer.services.log_compaction_task import LogCompactionTask, UnjoinableLogError
from hoodie_py.writer.services.planned_service import PlannedService
from hoodie_py.writer.services.service_run import (
    Done,
    Opened,
    Saved,
    describe_files,
    make_facts,
    make_read_options,
    with_schema_of,
)
from hoodie_py.writer.timeline.session import PLAN_ID, WriteSession, find_newest_time
from hoodie_py.writer.transaction.pending import iterate_planned_slices

EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
_OPERATION = "LOG_COMPACT"

_Opened = Opened[CompactionPlan, list[FileSlice], LogCompactionTask]


@dataclass(frozen=True)
class LogCompaction(PlannedService[CompactionPlan, list[FileSlice], LogCompactionTask, CompactionResult]):
    """Join many small log files of a file group into one."""

    name: ClassVar[str] = "log compaction"
    may_run_beside_writes: ClassVar[bool] = True

    def judge(self, session: WriteSession, snapshot: Snapshot, judged: Mapping[str, DueService]) -> DueService:
        """Judge by what a plan would take, which reads the headers of blocks; without that if a compaction is due."""
        if not snapshot.config.is_merge_on_read:
            return DueService(self.name, "not due", "a copy-on-write table has no log files")
        self.check_table(session, snapshot)
        compaction = judged.get(Compaction.name)
        if compaction is not None and compaction.is_due:
            return DueService(self.name, "not due", "the compaction takes all log files")
        least = BLOCKS_THRESHOLD.read(session.settings.options)
        instant = session.clock.peek(find_newest_time(snapshot.timeline))
        taken = _plan(session, snapshot, instant).operations
        files = sum(len(each.delta_files) for each in taken)
        figures = {"file slices": len(taken), "log files": files, "threshold": least}
        if not taken:
            return DueService(self.name, "not due", f"no log has blocks of {least} commits", figures)
        why = f"{len(taken):,} file slices have log blocks of {least} or more commits, in {files:,} log files"
        return DueService(self.name, "due", why, figures)

    def check_table(self, session: WriteSession, snapshot: Snapshot) -> None:
        """Refuse a table whose log files cannot be joined here."""
        check_compactable(snapshot)
        config = snapshot.config
        if config.cdc_enabled:
            raise UnsupportedFeatureError("Log compaction of a table with change data capture.", table=config.name)
        select_strategy(config, session.settings.options, session.find_own_merger(config))

    def make_plan(self, session: WriteSession, snapshot: Snapshot, instant: str) -> tuple[str, bytes] | None:
        """Plan the slices that have enough log blocks."""
        self.check_table(session, snapshot)
        plan = _plan(session, snapshot, instant)
        return (LOG_COMPACTION, write_compaction_plan(plan)) if plan.operations else None

    def list_pending(self, snapshot: Snapshot) -> Sequence[Instant]:
        """Return the pending log compactions, oldest first."""
        return snapshot.timeline.select_pending_log_compactions().instants

    def read_plan(self, snapshot: Snapshot, instant: Instant) -> CompactionPlan:
        """Return a pending plan; an empty one if it was rolled back since the listing."""
        return snapshot.timeline.read_pending_plan(instant)

    def find(self, saved: Saved[CompactionPlan], earlier: list[FileSlice] | None = None) -> list[FileSlice]:
        """Return the slices with the log files that the plan names."""
        return find_planned_slices(saved.snapshot, saved.plan, saved.time, takes_all_logs=False)

    def open(self, saved: Saved[CompactionPlan], found: list[FileSlice], merger: Merger | None) -> _Opened:
        """Make a task for each slice. The merger is the session's, if it is the table's own."""
        saved = with_schema_of(saved)
        snapshot, facts, read = saved.snapshot, make_facts(saved, None), make_read_options(saved.session)
        own = saved.session.find_own_merger(snapshot.config)
        tasks = tuple(_make_task(snapshot, facts, read, index, each, own) for index, each in enumerate(found))
        places = tuple(task.group for task in tasks)
        return Opened(saved.session, snapshot, saved.instant, saved.plan, found, tasks, places, facts)

    def settle(self, opened: _Opened, results: Sequence[TaskResult], ensure_own: Callable[[], None]) -> None:
        """Check the files of the results and remove those of other attempts."""
        files = opened.session.files
        written = {path: size for result in results for path, size in result.sizes.items()}
        for path, size in written.items():
            if not files.exists(path) or files.stat(path).size != size:
                raise ConflictError(
                    "A file of the log compaction was removed or changed.", instant=opened.time, path=path
                )
        ensure_own()
        for marker in Markers(files, opened.time).list_announced():
            if marker.path not in written:
                files.delete_with_checksum(marker.path)

    def undo(
        self,
        session: WriteSession,
        snapshot: Snapshot,
        pending: Instant,
        places: Sequence[GroupKey],
        check: Callable[[], object],
    ) -> None:
        """Take an attempt back to requested: its files, its entries in the metadata table, its markers."""
        instant = pending.request_time
        undo_metadata_commit(session.files, instant, check)
        files = find_written_files(snapshot, instant)
        check()
        delete_files(session.files, files)
        Markers(session.files, instant).remove_all()
        if pending.state == INFLIGHT:
            session.open_timeline(snapshot).remove(pending)

    def is_hopeless(self, error: HoodieError) -> bool:
        """Say whether a log has what no log block can say."""
        return isinstance(error, UnjoinableLogError) and "instant" in error.where

    def describe(self, opened: _Opened, results: Sequence[TaskResult]) -> MetadataCommit:
        """Return the new log files, which change no key and no location."""
        files = describe_files(opened, results, "compaction", _OPERATION)
        return replace(files, merger=opened.session.find_own_merger(opened.snapshot.config))

    def make_content(self, opened: _Opened, results: Sequence[TaskResult], now: Snapshot) -> bytes:
        """Return the commit metadata."""
        return make_compaction_content(opened, results, now, _OPERATION)

    def check_overlap(self, opened: _Opened, before: Snapshot, after: Snapshot) -> None:
        """Check the plan's file groups again."""
        find_planned_slices(after, opened.plan, opened.time, takes_all_logs=False)

    def sum_up(self, done: Done[CompactionPlan, list[FileSlice], LogCompactionTask] | None) -> CompactionResult:
        """Return what was done."""
        if done is None:
            return CompactionResult()
        return CompactionResult.of(done.opened.time, done.completion_time, done.results, done.seconds)


def _plan(session: WriteSession, snapshot: Snapshot, instant: str) -> CompactionPlan:
    """Return the plan for an instant; it may have no operations."""
    check_pending_writes(snapshot, instant)
    held = {(each.partition_path, each.file_id) for each in iterate_planned_slices(snapshot)}
    least = BLOCKS_THRESHOLD.read(session.settings.options)
    by_file = snapshot.config.has_logs_named_by_commit
    options = ReadOptions(options=session.settings.options)
    operations = []
    for each in snapshot.view.list_slices():
        if (each.partition_path, each.file_id) in held or len(each.log_files) < (least if by_file else 1):
            continue
        blocks = read_blocks(each, snapshot.read_info(each), options)
        if len({block.instant for block in blocks}) >= least and not any(block.block.is_partial for block in blocks):
            operations.append(make_operation(each, session.settings.plan.max_file_size))
    return CompactionPlan(
        operations=tuple(operations),
        extra_metadata={PLAN_ID: uuid4().hex},
        strategy=EXECUTOR,
        preserve_hoodie_metadata=True,
    )


def _make_task(
    snapshot: Snapshot, facts: CommitFacts, read: ReadOptions, index: int, file_slice: FileSlice, merger: Merger | None
) -> LogCompactionTask:
    info = snapshot.read_info(file_slice).as_stored(facts.schema.arrow, facts.schema.defaults)
    blocks = read_blocks(file_slice, info, read)
    if any(each.block.is_partial for each in blocks):
        raise InvalidTableError(
            "Invalid plan: a log compaction takes a slice with partial updates.",
            hint="Roll the plan back, and compact the table.",
            instant=facts.instant,
            file_group=file_slice.file_id,
        )
    version = 1
    if not facts.config.has_logs_named_by_commit:
        groups = {group.key: group for group in snapshot.view.list_file_groups([file_slice.partition_path])}
        logs = groups[file_slice.partition_path, file_slice.file_id].log_files
        version += max((log.name.version for log in logs if log.name.instant == file_slice.base_instant), default=0)
    instants = tuple(dict.fromkeys(each.instant for each in blocks))
    return LogCompactionTask(file_slice, info, facts, index, instants, version, read, merger)
