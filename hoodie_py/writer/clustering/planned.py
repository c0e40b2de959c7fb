"""Turn a clustering plan into file slices, and check it against the current table.

A group of the plan is replaced when the clustering completes, so whatever else is in its file groups is lost then. So
each slice must be as the plan has it: no other base file, no further log file with live rows, not replaced. Java Hudi
relies on writers that keep away from planned groups.

Java's writers may put changes of planned buckets into the old file group and the new one at once (Hudi
``SparkConsistentBucketDuplicateUpdateStrategy``). Such commits lose nothing: the write statistics tell.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hoodie_py.errors import ConflictError, InvalidTableError
from hoodie_py.formats.timeline.plans import CompactionOperation, CompactionPlan
from hoodie_py.formats.timeline.replace_plan import ClusteringGroup, ClusteringSlice, RequestedReplace
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.file_groups import FileGroup
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.services.compaction_plan import find_planned_slices, has_records

_HINT = "Roll the clustering back and schedule a new one."


def find_planned_groups(
    snapshot: Snapshot,
    plan: RequestedReplace,
    instant: str,
    heirs: Mapping[GroupKey, frozenset[str]] | None = None,
) -> list[tuple[FileSlice, ...]]:
    """Return the slices of each group of a plan. ``heirs`` are the file ids that each file group's rows go to, if the
    plan names them.

    Raises:
        InvalidTableError: the plan is not one that can be carried out, or names a file that is missing.
        ConflictError: a file group was changed or replaced since.
    """
    for group in plan.groups or ():
        _check_group(group, instant)
    pieces = [piece for group in plan.groups or () for piece in group.slices]
    wanted = CompactionPlan(tuple(map(_to_operation, pieces)))
    slices = find_planned_slices(snapshot, wanted, instant, takes_all_logs=heirs is None)
    groups = {each.key: each for each in snapshot.view.list_file_groups({piece.partition_path for piece in pieces})}
    inherited = set[str]() if heirs is None else _find_inherited(snapshot, instant, heirs)
    for each in slices:
        key = each.partition_path, each.file_id
        _check_untouched(snapshot, groups.get(key) or FileGroup(*key, (), ()), each, inherited, instant)
    rest = iter(slices)
    return [tuple(next(rest) for _ in group.slices) for group in plan.groups or ()]


def _check_group(group: ClusteringGroup, instant: str) -> None:
    if not group.slices or len({piece.partition_path for piece in group.slices}) > 1:
        raise InvalidTableError(
            "Invalid plan: a group of a clustering plan has no slices, or those of several partitions.",
            instant=instant,
            hint=_HINT,
        )


def _to_operation(piece: ClusteringSlice) -> CompactionOperation:
    return CompactionOperation(
        base_instant_time=None,
        file_id=piece.file_id,
        partition_path=piece.partition_path,
        data_file=piece.data_file,
        delta_files=piece.delta_files,
        bootstrap_file=piece.bootstrap_file,
    )


def _find_inherited(snapshot: Snapshot, instant: str, heirs: Mapping[GroupKey, frozenset[str]]) -> set[str]:
    """Return paths of files in planned file groups whose rows the same commit put into their heirs, too."""
    found: set[str] = set()
    writes = [each for each in snapshot.timeline.list_completed_writes() if each.request_time > instant]
    for metadata in snapshot.timeline.read_all_metadata(writes):
        for partition, stats in metadata.write_stats.items():
            written = {stat.file_id or "" for stat in stats}
            for stat in stats:
                if heirs.get((partition, stat.file_id or ""), frozenset()) & written:
                    found.add(stat.path or "")
    return found


def _check_untouched(
    snapshot: Snapshot, group: FileGroup, planned: FileSlice, inherited: Collection[str], instant: str
) -> None:
    visibility = snapshot.view.visibility
    named = {log.path for log in planned.log_files}.union(inherited)
    for log in group.log_files:
        if log.path in named or log.name.is_cdc:
            continue
        if visibility.logs_carry_base_instant:
            changed = log.name.instant == planned.base_instant and has_records(snapshot, planned, log)
        else:
            start = "" if planned.base_file is None else planned.base_file.instant
            committed = visibility.is_committed(log.name.instant)
            changed = committed and visibility.find_completion_time(log.name.instant, instant) >= start
        if changed:
            raise ConflictError(
                "A file group of the clustering plan was written to since.",
                path=log.path,
                instant=instant,
                file_group=planned.file_id,
                hint=_HINT,
            )


def list_groups(plan: RequestedReplace) -> Sequence[tuple[str, str]]:
    """Return partition path and file id of the file groups that a plan replaces."""
    return list(plan.iterate_file_groups())
