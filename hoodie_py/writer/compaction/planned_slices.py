"""Turn a compaction plan into file slices, and check it against the current table.

Another program may have made the plan, some time ago. So before anything is written: each file must exist and belong to
its file group, the group must not be replaced or have a newer base file, and the plan must name every log file below
the new base file, as the rows of others would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TypeVar

from hoodie_py.errors import ConflictError, HoodieError, InvalidTableError
from hoodie_py.formats.hfile.bootstrap_index import IndexedSource
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.timeline.plans import CompactionOperation, CompactionPlan
from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
from hoodie_py.reader.log.log_files import ScannedBlock
from hoodie_py.reader.log.scan import scan_log_files
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.bootstrap import locate_source
from hoodie_py.table.view.committed_logs import CommittedLogs
from hoodie_py.table.view.file_groups import FileGroup

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
