"""Plan a compaction: which file slices to merge into new base files (Hudi ``HoodieCompactionPlanGenerator``,
``ScheduleCompactionActionExecutor``).

* Each file group's newest slice is a candidate if it has log files whose commits completed before the compaction's
  instant, and if no pending compaction, log compaction or clustering has planned the group: a group may be in one plan
  only.
* Strategies choose among the candidates. The plan records the partitions of slices that are left out, as Java's
  incremental planner looks only at those and at partitions that changed.
* If the options name a trigger or one of its thresholds, a plan is made only when that is due, as in Java's inline
  scheduling. Without them, every slice with log files is a candidate.
* Up to table version 6 no plan is made beside a pending write: see ``refusals.check_pending_writes``.

Turn a compaction plan into file slices, and check it against the current table.

Another program may have made the plan, some time ago. So before anything is written: each file must exist and belong to
its file group, the group must not be replaced or have a newer base file, and the plan must name every log file below
the new base file, as the rows of others would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TypeVar
from uuid import uuid4

from hoodie_py.errors import ConflictError, HoodieError, InvalidTableError
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.timeline.instants import CLUSTERING, COMMIT, DELTA_COMMIT
from hoodie_py.formats.timeline.plans import CompactionOperation, CompactionPlan
from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
from hoodie_py.reader.log.log_files import ScannedBlock
from hoodie_py.reader.log.scan import scan_log_files
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.committed_logs import CommittedLogs
from hoodie_py.table.view.file_groups import FileGroup
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.refusals import check_compactable, check_pending_writes
from hoodie_py.writer.services.compaction_report import PlannedSlice, PlanReport
from hoodie_py.writer.services.compaction_strategy import (
    Candidates,
    choose_operations,
    judge_trigger,
    measure_operation,
)
from hoodie_py.writer.settings import PlanSettings
from hoodie_py.writer.timeline.session import PLAN_ID, WriteSession, find_newest_time
from hoodie_py.writer.transaction.pending import iterate_planned_slices


@dataclass(frozen=True, slots=True)
class PlannedCompaction:
    """A plan that could be saved, and its report."""

    plan: CompactionPlan
    report: PlanReport


def dry_run(session: WriteSession) -> PlanReport:
    """Report what would be planned. It writes nothing and takes no lock; errors as for ``Compaction.schedule``."""
    snapshot = session.look()
    check_compactable(snapshot)
    instant = session.clock.peek(find_newest_time(snapshot.timeline))
    settings = session.settings.plan
    planned = make_plan(snapshot, instant, settings)
    if planned is not None:
        return planned.report
    return PlanReport(
        snapshot.config.name, instant, _name_zone(snapshot), settings.strategies, (), f"{settings.trigger} is not due"
    )


def make_plan(
    snapshot: Snapshot, instant: str, settings: PlanSettings, today: date | None = None
) -> PlannedCompaction | None:
    """Return the plan for an instant; None if the settings name a trigger that is not due. ``instant`` is later than
    every time on the timeline; ``today`` is for strategies that count days.

    Raises:
        InvalidQueryError: a strategy is unknown, or does not fit the table.
        ConflictError: a pending write is in the way.
    """
    if settings.trigger is not None:
        trigger = judge_trigger(snapshot.timeline, instant, settings)
        if trigger is None or not trigger.is_due:
            return None
    check_pending_writes(snapshot, instant)
    held = _find_held_groups(snapshot)
    slices = snapshot.view.list_slices()  # as the folders have them: a file that is not taken is lost
    ready: dict[GroupKey, FileSlice] = {}
    left_out: dict[GroupKey, str] = {}
    for file_slice in slices:
        key = file_slice.partition_path, file_slice.file_id
        reason = held.get(key) or _explain_left_out(snapshot, file_slice, instant)
        if reason is None:
            ready[key] = file_slice
        else:
            left_out[key] = reason
    operations = {key: make_operation(file_slice, settings.max_file_size) for key, file_slice in ready.items()}
    partitions = snapshot.view.list_paths()
    offer = Candidates(tuple(operations.values()), partitions, today or datetime.now(UTC).date())
    choice = choose_operations(offer, settings)
    left_out.update(choice.left_out)
    taken = {(each.partition_path, each.file_id) for each in choice.taken}
    report = PlanReport(
        snapshot.config.name,
        instant,
        _name_zone(snapshot),
        settings.strategies,
        tuple(_make_planned_slice(each, left_out, taken, settings) for each in slices),
    )
    missing = {each.partition_path for each in report.slices if not each.taken and each.log_files}
    plan = CompactionPlan(
        operations=choice.taken,
        extra_metadata={PLAN_ID: uuid4().hex},
        missing_partitions=tuple(sorted(missing)),
    )
    return PlannedCompaction(plan, report)


def _name_zone(snapshot: Snapshot) -> str:
    return snapshot.timezone or "UTC" if snapshot.config.timezone != "UTC" else "UTC"


def make_operation(file_slice: FileSlice, new_bytes: int) -> CompactionOperation:
    """Return the operation of a slice in a plan; ``new_bytes`` is the expected size of the new file."""
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


def _explain_left_out(snapshot: Snapshot, file_slice: FileSlice, instant: str) -> str | None:
    if not file_slice.log_files:
        return "it has no log files"
    visibility = snapshot.view.visibility
    if visibility.logs_carry_base_instant:
        return None
    for log in file_slice.log_files:
        if visibility.find_completion_time(log.name.instant, instant) >= instant:
            return f"commit {log.name.instant} completed after {instant}"
    return None


def _find_held_groups(snapshot: Snapshot) -> Mapping[GroupKey, str]:
    """Return the file groups of other pending plans, with the reason to leave them out."""
    held: dict[GroupKey, str] = {}
    for each in iterate_planned_slices(snapshot):
        action = each.instant.action if each.instant.comparable_action in (COMMIT, DELTA_COMMIT) else CLUSTERING
        held[each.partition_path, each.file_id] = f"{action} {each.instant.request_time} is pending"
    return held


def _make_planned_slice(
    file_slice: FileSlice, left_out: Mapping[GroupKey, str], taken: set[GroupKey], settings: PlanSettings
) -> PlannedSlice:
    key = file_slice.partition_path, file_slice.file_id
    base = file_slice.base_file
    return PlannedSlice(
        partition_path=file_slice.partition_path,
        file_id=file_slice.file_id,
        taken=key in taken,
        reason=left_out.get(key, f"chosen by {', '.join(settings.strategies)}"),
        base_bytes=0 if base is None else base.size,
        log_files=len(file_slice.log_files),
        log_bytes=sum(log.size for log in file_slice.log_files),
    )


T = TypeVar("T")

_PLAN_HINT = "Roll the plan back and schedule a new one."


def find_planned_slices(
    snapshot: Snapshot, plan: CompactionPlan, instant: str, *, takes_all_logs: bool = True
) -> list[FileSlice]:
    """Return one slice for each operation of a plan, in its order. ``takes_all_logs``: what the plan makes closes the
    slices, so that it must name all of their log files.

    Raises:
        InvalidTableError: the plan names a file that is missing or belongs to another group, or lacks a log file.
        ConflictError: a file group was replaced, or has a newer base file.
        FileMissingError: the index of a metadata-only bootstrap is gone, and a base file needs it.
    """
    partitions = {operation.partition_path for operation in plan.operations}
    groups = {group.key: group for group in snapshot.view.list_file_groups(sorted(partitions))}
    found: dict[tuple[str, str], FileSlice] = {}
    for operation in plan.operations:
        key = operation.partition_path, operation.file_id
        try:
            if key in found:
                raise InvalidTableError("Invalid plan: a compaction plan names a file group twice.", hint=_PLAN_HINT)
            group = groups.get(key) or FileGroup(*key, (), ())
            found[key] = _make_slice(snapshot, operation, group, instant)
            _check_current(snapshot, group, found[key], instant)
            if takes_all_logs:
                _check_whole(snapshot, group, found[key], instant)
        except HoodieError as error:
            raise error.locate(instant=instant, file_group=key[1][:200], partition=key[0] or None) from error.__cause__
    return list(found.values())


def _make_slice(snapshot: Snapshot, operation: CompactionOperation, group: FileGroup, instant: str) -> FileSlice:
    base = None if operation.data_file is None else _find_base_file(operation.data_file, group, instant)
    named = (_find_log_file(snapshot, name, group, operation.base_instant_time) for name in operation.delta_files)
    logs = [log for log in named if log is not None]
    if len({log.path for log in logs}) != len(logs):
        raise InvalidTableError("Invalid plan: a compaction plan names a log file twice.", hint=_PLAN_HINT)
    if base is None and not logs:
        raise InvalidTableError("Invalid plan: a compaction plan names a file group without files.", hint=_PLAN_HINT)
    start = operation.base_instant_time or (base.instant if base is not None else logs[0].name.instant)
    logs.sort(key=lambda log: log.name.sort_key)
    readable = snapshot.view.make_readable(FileSlice(group.partition_path, group.file_id, start, base, tuple(logs)))
    _check_source(snapshot, operation, readable.base_file)
    return readable


def _check_source(snapshot: Snapshot, operation: CompactionOperation, base: BaseFile | None) -> None:
    """Check that a plan names the source that the bootstrap index has; plans of old versions name none."""
    if operation.bootstrap_file is None:
        return
    from hoodie_py.formats.hfile.bootstrap_index import IndexedSource  # few tables need it and the format of its index
    from hoodie_py.table.view.bootstrap import locate_source

    source = None if base is None else base.source
    folder = snapshot.config.bootstrap_base_path or ""
    if source is None or locate_source(IndexedSource(operation.bootstrap_file, None), folder).path != source.path:
        raise InvalidTableError(
            "Invalid plan: a compaction plan names another source file than the bootstrap index.",
            path=operation.bootstrap_file[:500],
            hint=_PLAN_HINT,
        )


def _find_base_file(name: str, group: FileGroup, instant: str) -> BaseFile:
    parsed = parse_base_file_name(name)
    if parsed is None or parsed.file_id != group.file_id or parsed.instant >= instant:
        raise _make_foreign_error(name)
    return _get_first(name, [file for file in group.base_files if file.name == name])


def _find_log_file(snapshot: Snapshot, name: str, group: FileGroup, base_instant: str | None) -> LogFile | None:
    """Return a planned log file; None if its write was rolled back after the plan was made.

    Up to table version 6 a plan may name such a file, as its name has the slice's base instant.
    """
    parsed = parse_log_file_name(name)
    if parsed is None or parsed.file_id != group.file_id:
        raise _make_foreign_error(name)
    if parsed.is_cdc:  # Java plans change-data files with the slice, and reads none
        return None
    found = [file for file in group.log_files if file.name.name == name]
    if not found and snapshot.view.visibility.logs_carry_base_instant and parsed.instant == base_instant:
        path = f"{group.partition_path}/{name}" if group.partition_path else name
        committed = CommittedLogs(snapshot.files, snapshot.bare_config, snapshot.view.make_block_rules())
        if not committed.find_committed([LogFile(path, 0, parsed)]):
            return None
    return _get_first(name, found)


def _make_foreign_error(name: str) -> InvalidTableError:
    return InvalidTableError(
        "Invalid plan: a compaction plan names a file of something else.", path=name[:500], hint=_PLAN_HINT
    )


def _get_first(name: str, found: Sequence[T]) -> T:
    if not found:
        raise InvalidTableError(
            "Invalid plan: a compaction plan names a file that is not there.", path=name[:500], hint=_PLAN_HINT
        )
    return found[0]


def _check_current(snapshot: Snapshot, group: FileGroup, planned: FileSlice, instant: str) -> None:
    visibility = snapshot.view.visibility
    if visibility.is_replaced(group.key, None):
        raise ConflictError("A file group of the compaction plan was replaced.", hint=_PLAN_HINT)
    for base in group.base_files:
        newer = planned.base_file is None or base.instant > planned.base_file.instant
        if newer and base.instant != instant and visibility.is_committed(base.instant):
            raise ConflictError("A file group of the compaction plan has another base file now.", path=base.path)
    if planned.base_file is not None and not visibility.is_committed(planned.base_file.instant):
        raise InvalidTableError(
            "Invalid plan: a compaction plan names a base file that was never committed.", hint=_PLAN_HINT
        )
    if not visibility.logs_carry_base_instant:
        uncommitted = [log for log in planned.log_files if not visibility.is_committed(log.name.instant)]
        if uncommitted:
            raise InvalidTableError(
                "Invalid plan: a compaction plan names a log file of a write that has not completed.",
                path=uncommitted[0].path,
            )


def _check_whole(snapshot: Snapshot, group: FileGroup, planned: FileSlice, instant: str) -> None:
    named = {log.path for log in planned.log_files}
    others = (log for log in group.log_files if log.path not in named)
    lost = next(_iterate_lost_logs(snapshot, planned, others, instant), None)
    if lost is not None:
        raise InvalidTableError(
            "Invalid plan: a compaction plan leaves out a log file whose rows would be lost.",
            path=lost.path,
            hint=_PLAN_HINT,
        )


def _iterate_lost_logs(
    snapshot: Snapshot, planned: FileSlice, others: Iterable[LogFile], instant: str
) -> Iterator[LogFile]:
    """Yield log files with live rows that belong below the new base file and are not in the plan."""
    visibility = snapshot.view.visibility
    for log in others:
        written = log.name.instant
        if visibility.logs_carry_base_instant:
            below = written == planned.base_instant
            if below and has_records(snapshot, planned, log):
                yield log
        elif visibility.is_committed(written):
            completed = visibility.find_completion_time(written, instant)
            start = "" if planned.base_file is None else planned.base_file.instant
            if start <= completed < instant:
                yield log


def has_records(snapshot: Snapshot, planned: FileSlice, log: LogFile) -> bool:
    """Whether a log file holds committed records. Up to version 6 its name does not tell."""
    alone = FileSlice(planned.partition_path, planned.file_id, planned.base_instant, None, (log,))
    return bool(read_blocks(alone, snapshot.read_info(alone), ReadOptions()))


def read_blocks(file_slice: FileSlice, info: ReadInfo, options: ReadOptions) -> list[ScannedBlock]:
    """Return the log blocks of a slice that count, in merge order, without their contents."""
    stats = ReadStats()
    with closing(Spill(MemoryBudget.from_options(options), stats)) as spill:
        found = scan_log_files(
            info.files, file_slice.log_files, info.rules, stats, spill, strict=False, committed=info.committed
        )
        return [each.drop_content() for each in found]
