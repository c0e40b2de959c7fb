"""Run a planned log compaction (Hudi ``RunCompactionActionExecutor``, ``BaseHoodieTableServiceClient.logCompact``).

The steps are those of ``commit_protocol``; the completed instant is a delta commit. On failure the log compaction goes
back to requested. Writers may append to the slices meanwhile: readers put the new file in the place of what it joins.

Plan a log compaction: which slices have many log blocks (Hudi ``HoodieLogCompactionPlanGenerator``).

* A slice is taken if the blocks that count in its log are of enough instants, and if no pending plan names its file
  group. A block of an earlier log compaction counts as one, so that nothing is folded twice without need.
* Slices with partial updates are left out: their rows have columns that are absent, which no whole row can say.
* Up to table version 6 no plan is made beside a pending write: see ``refusals.check_pending_writes``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

from hoodie_py.errors import ConflictError, HoodieError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import INFLIGHT, LOG_COMPACTION, REQUESTED, Instant
from hoodie_py.formats.timeline.plans import CompactionOperation, CompactionPlan
from hoodie_py.formats.timeline.writers import write_commit_metadata, write_compaction_plan
from hoodie_py.options.log_compaction import BLOCKS_THRESHOLD
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.reader.selection import select_strategy
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.handles.data_file import CommitFacts, TaskResult
from hoodie_py.writer.handles.markers import Markers
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.indexes.undo import undo_metadata_commit
from hoodie_py.writer.lock.heartbeat import Heartbeat
from hoodie_py.writer.output_schema import OutputSchema, load_output_schema
from hoodie_py.writer.refusals import check_compactable, check_pending_writes
from hoodie_py.writer.rollback.finish import delete_files
from hoodie_py.writer.rollback.recovery import finish_rollbacks
from hoodie_py.writer.rollback.rollback import rollback
from hoodie_py.writer.rollback.written_files import find_written_files
from hoodie_py.writer.services.compaction_plan import find_planned_slices, read_blocks
from hoodie_py.writer.services.compaction_report import CompactionResult
from hoodie_py.writer.services.compaction_strategy import measure_operation
from hoodie_py.writer.services.log_compaction_task import LogCompactionTask, UnjoinableLogError
from hoodie_py.writer.services.planned_run import (
    begin_planned,
    check_no_rollback,
    check_still_planned,
    choose_planned,
    list_known_rollbacks,
    make_read_options,
    make_run_facts,
    with_schema_of,
)
from hoodie_py.writer.services.runner import LocalRunner, Runner
from hoodie_py.writer.timeline.session import PLAN_ID, RUN_ID, WriteSession, find_newest_time
from hoodie_py.writer.transaction.commit_protocol import (
    collect_sizes,
    collect_stats,
    complete_instant,
    remove_leftovers,
    take_back_on_failure,
    turn_missing_into_conflict,
)
from hoodie_py.writer.transaction.pending import iterate_planned_slices
from hoodie_py.writer.transaction.run_guard import forget_finished, guard_run

EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"


def schedule(session: WriteSession) -> str | None:
    """Save a plan and return its instant; None if no slice has enough log blocks.

    Raises:
        UnsupportedFeatureError: the table has a feature that is not handled.
        MergeError: the table needs a merger that was not supplied.
        ConflictError: another writer holds the lock, or a pending write is in the way.
        InvalidQueryError: an option has a bad value.
        CommitStateUnknownError: the store did not say whether the plan was saved.
    """
    recovered = session.look()
    check_foldable(session, recovered)
    finish_rollbacks(session, recovered)
    with session.hold_lock() as holding:
        snapshot = session.look()
        check_foldable(session, snapshot)
        forget_finished(session, snapshot)
        instant = session.clock.take(find_newest_time(snapshot.timeline))
        plan = make_plan(session, snapshot, instant)
        if not plan.operations:
            return None
        content = write_compaction_plan(plan)
        holding.ensure_held()
        session.open_timeline(snapshot).request(instant, LOG_COMPACTION, content)
    return instant


def check_foldable(session: WriteSession, snapshot: Snapshot) -> None:
    """Refuse a table whose log files cannot be joined here.

    Raises:
        UnsupportedFeatureError: names the feature.
        MergeError: the table needs a merger that was not supplied.
    """
    check_compactable(snapshot)
    config = snapshot.config
    if config.cdc_enabled:
        raise UnsupportedFeatureError("Log compaction of a table with change data capture.", table=config.name)
    select_strategy(config, session.settings.options, session.find_own_merger(config))


def make_plan(session: WriteSession, snapshot: Snapshot, instant: str) -> CompactionPlan:
    """Return the plan for an instant, which is later than every time on the timeline; it may have no operations.

    Raises:
        ConflictError: a pending write is in the way.
        CorruptFileError: a log file is damaged.
    """
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
            operations.append(_make_operation(each, session.settings.plan.max_file_size))
    return CompactionPlan(
        operations=tuple(operations),
        extra_metadata={PLAN_ID: uuid4().hex},
        strategy=EXECUTOR,
        preserve_hoodie_metadata=True,
    )


def _make_operation(file_slice: FileSlice, new_bytes: int) -> CompactionOperation:
    base = file_slice.base_file
    sizes = [log.size for log in file_slice.log_files]
    return CompactionOperation(
        base_instant_time=file_slice.base_instant,
        file_id=file_slice.file_id,
        partition_path=file_slice.partition_path,
        data_file=None if base is None else base.name,
        delta_files=tuple(log.name.name for log in file_slice.log_files),
        metrics=measure_operation(None if base is None else base.size, sizes, new_bytes),
        bootstrap_file=None if base is None or base.source is None else base.source.indexed,
    )


_OPERATION = "LOG_COMPACT"
_WHAT = "log compaction"


@dataclass(frozen=True, slots=True)
class _OpenLogCompaction:
    """A log compaction that has begun."""

    snapshot: Snapshot
    instant: Instant
    plan: CompactionPlan
    tasks: tuple[LogCompactionTask, ...]
    known_rollbacks: frozenset[str]
    schema: OutputSchema
    run_id: int


@watch_calls("log_compaction")
def run(session: WriteSession, instant: str | None = None, *, runner: Runner | None = None) -> CompactionResult:
    """Run a pending log compaction. ``instant`` is its request time, None for the oldest pending one.

    Raises:
        ConflictError: another writer runs it, rolled it back, or changed its file groups.
        InvalidQueryError: no log compaction is pending at that time.
        InvalidTableError: the plan does not fit the table.
        UnsupportedFeatureError: the table has a feature that is not handled, or a log has what no log block can say;
            then the plan is rolled back.
        MergeError: the table needs a merger that was not supplied, or versions do not merge.
        CommitStateUnknownError: the store did not say whether a file was written; nothing was taken back.
        StorageError: the store refused; the log compaction is back to requested.
    """
    try:
        return _run(session, instant, runner)
    except UnjoinableLogError as error:
        if "instant" in error.where:
            rollback(session, error.where["instant"])  # no later run could carry it out
        raise


def _run(session: WriteSession, instant: str | None, runner: Runner | None) -> CompactionResult:
    began = time.monotonic()
    snapshot = session.look()
    check_foldable(session, snapshot)
    if finish_rollbacks(session, snapshot):
        snapshot = session.look()
    pending = snapshot.timeline.select_pending_log_compactions().instants
    chosen = choose_planned(snapshot, pending, instant, _WHAT)
    if chosen is None:
        return CompactionResult()
    MetadataTable.check(snapshot, session.settings.metadata_mode)
    with turn_missing_into_conflict(session, snapshot), guard_run(session, chosen.request_time) as alive:
        begun = _begin(session, chosen.request_time, alive)
        with take_back_on_failure(lambda error: _abort(session, begun, error, alive)):
            tasks = sorted(begun.tasks, key=lambda task: task.size, reverse=True)
            done = {each.group: each for each in (runner or LocalRunner()).run(tasks, _ignore_rows)}
            if done.keys() != {task.group for task in begun.tasks}:
                raise ConflictError("The engine did not run every task.", instant=chosen.request_time)
            results = list(done.values())
            alive.ensure_alive()
            completed = complete_instant(session, alive, _Completion(session, begun, results))
        remove_leftovers(session.files, chosen.request_time, results, "The log compaction is complete", begun.run_id)
    completion_time = completed.completion_time or ""
    return CompactionResult.of(chosen.request_time, completion_time, results, time.monotonic() - began)


def _ignore_rows(rows: int) -> None:
    del rows


def _begin(session: WriteSession, instant: str, alive: Heartbeat) -> _OpenLogCompaction:
    with session.hold_lock() as holding:
        snapshot = session.look()
        pending = snapshot.timeline.select_pending_log_compactions().find(instant)
        if pending is None:
            raise ConflictError("Another writer finished the log compaction, or took it back.", instant=instant)
        plan = snapshot.timeline.read_pending_plan(pending)
        _check(session, snapshot, instant)
        slices = find_planned_slices(snapshot, plan, instant, takes_all_logs=False)
        begun = _plan_tasks(session, snapshot, pending, plan, slices)
        undo = partial(_undo_attempt, session, snapshot, pending)
        partitions = {task.group[0] for task in begun.tasks}
        begin_planned(session, snapshot, begun.instant, partitions, undo, alive, holding)
    return begun


def _check(session: WriteSession, snapshot: Snapshot, instant: str) -> None:
    check_foldable(session, snapshot)
    MetadataTable.check(snapshot, session.settings.metadata_mode)
    check_no_rollback(snapshot, instant, _WHAT)


def _plan_tasks(
    session: WriteSession, snapshot: Snapshot, pending: Instant, plan: CompactionPlan, slices: Sequence[FileSlice]
) -> _OpenLogCompaction:
    snapshot = with_schema_of(snapshot, pending.request_time)
    schema = load_output_schema(snapshot)
    facts = make_run_facts(session, snapshot, pending, schema, session.settings.file)
    read = make_read_options(session)
    own = session.find_own_merger(snapshot.config)
    tasks = tuple(_make_task(snapshot, facts, read, index, each, own) for index, each in enumerate(slices))
    known = list_known_rollbacks(snapshot, pending.request_time)
    requested = replace(pending, state=REQUESTED)
    return _OpenLogCompaction(snapshot, requested, plan, tasks, known, schema, facts.run_id)


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


@dataclass(frozen=True, slots=True)
class _Completion:
    """How a log compaction completes."""

    session: WriteSession
    begun: _OpenLogCompaction
    results: Sequence[TaskResult]
    adds_files: bool = True
    can_run_again: bool = True

    @property
    def known_rollbacks(self) -> frozenset[str]:
        """Rollbacks of earlier attempts."""
        return self.begun.known_rollbacks

    def describe(self) -> MetadataCommit:
        """Return the new log files, which change no key and no location."""
        return MetadataCommit(
            self.session,
            self.begun.snapshot,
            self.begun.instant.request_time,
            "compaction",
            _OPERATION,
            added=collect_sizes(self.results),
            stats=collect_stats(self.results),
            results=self.results,
            schema=self.begun.schema.avro,
            merger=self.session.find_own_merger(self.begun.snapshot.config),
        )

    def check_still_ours(self, now: Snapshot) -> Instant:
        """Check that no other writer changed the log compaction, its plan or its file groups."""
        begun = self.begun
        read, known = now.timeline.read_pending_plan, begun.known_rollbacks
        found = check_still_planned(now, begun.instant, begun.plan, read, known, _WHAT)
        _check(self.session, now, found.request_time)
        find_planned_slices(now, begun.plan, found.request_time, takes_all_logs=False)
        return found

    def settle_files(self, now: Snapshot, ensure_own: Callable[[], None]) -> None:
        """Check the files of the results and remove those of other attempts."""
        files, instant = self.session.files, self.begun.instant.request_time
        for path, size in collect_paths(self.results).items():
            if not files.exists(path) or files.stat(path).size != size:
                raise ConflictError("A file of the log compaction was removed or changed.", instant=instant, path=path)
        ensure_own()
        for marker in Markers(files, instant).list_announced():
            if marker.path not in collect_paths(self.results):
                files.delete_with_checksum(marker.path)

    def make_content(self, now: Snapshot) -> bytes:
        """Return the commit metadata."""
        extra = {**self.begun.plan.extra_metadata, RUN_ID: str(self.begun.run_id), **self.begun.schema.commit_texts}
        stats = collect_stats(self.results)
        metadata = CommitMetadata(operation_type=_OPERATION, extra_metadata=extra, compacted=True, write_stats=stats)
        return write_commit_metadata(metadata, now.config.timeline_layout)

    def check_overlap(self, before: Snapshot, after: Snapshot) -> None:
        """Check the plan's file groups again."""
        find_planned_slices(after, self.begun.plan, self.begun.instant.request_time, takes_all_logs=False)


def collect_paths(results: Sequence[TaskResult]) -> dict[str, int]:
    """Return the sizes of the new files by path."""
    return {path: size for result in results for path, size in result.sizes.items()}


def _undo_attempt(session: WriteSession, snapshot: Snapshot, pending: Instant, check: Callable[[], object]) -> None:
    """Take an inflight log compaction back to requested: its files, its entries in the metadata table, its markers."""
    instant = pending.request_time
    undo_metadata_commit(session.files, instant, check)
    files = find_written_files(snapshot, instant)
    check()
    delete_files(session.files, files)
    Markers(session.files, instant).remove_all()
    if pending.state == INFLIGHT:
        session.open_timeline(snapshot).remove(pending)


def _abort(session: WriteSession, begun: _OpenLogCompaction, error: BaseException, alive: Heartbeat) -> None:
    """Take the log compaction back to requested, and note on the error what could not be removed."""
    try:
        with session.hold_lock() as holding:
            snapshot = session.look()
            found = snapshot.timeline.select_pending_log_compactions().find(begun.instant.request_time)
            if found is not None and found.state == INFLIGHT:
                _undo_attempt(session, snapshot, found, partial(alive.ensure_own, holding))
    except HoodieError as problem:
        error.add_note(f"What the log compaction wrote was not all removed: {problem} The next run will do that.")
