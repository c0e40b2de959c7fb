"""Plan a log compaction: which slices have many log blocks (Hudi ``HoodieLogCompactionPlanGenerator``).

* A slice is taken if the blocks that count in its log are of enough instants, and if no pending plan names its file
  group. A block of an earlier log compaction counts as one, so that nothing is folded twice without need.
* Slices with partial updates are left out: their rows have columns that are absent, which no whole row can say.
* Up to table version 6 no plan is made beside a pending write: see ``refusals.check_pending_writes``.
"""

from __future__ import annotations

from uuid import uuid4

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.timeline.instants import LOG_COMPACTION
from hoodie_py.formats.timeline.plans import CompactionOperation, CompactionPlan
from hoodie_py.formats.timeline.writers import write_compaction_plan
from hoodie_py.options.log_compaction import BLOCKS_THRESHOLD
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.reader.selection import select_strategy
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.compaction.planned_slices import read_blocks
from hoodie_py.writer.compaction.strategy import measure_operation
from hoodie_py.writer.refusals import check_compactable, check_pending_writes
from hoodie_py.writer.rollback.recovery import finish_rollbacks
from hoodie_py.writer.timeline.session import PLAN_ID, WriteSession, find_newest_time
from hoodie_py.writer.transaction.pending import iterate_planned_slices
from hoodie_py.writer.transaction.run_guard import forget_finished

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
        instant = session.clock.take(find_newest_time(snapshot.timeline.timeline))
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
