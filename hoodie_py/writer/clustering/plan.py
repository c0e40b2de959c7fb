"""Plan a clustering: which small file groups to write anew, together (Hudi ``ClusteringPlanActionExecutor``,
``PartitionAwareClusteringPlanStrategy``, ``SparkSizeBasedClusteringPlanStrategy``).

* A slice is a candidate if its base file is below the small file limit, and if no pending compaction, log compaction or
  clustering has planned its file group. A slice without base file counts as large as a new file.
* In each partition the largest slices come first, and a group ends before it exceeds its size. Plans have a limited
  number of groups.
* The plan records the partitions with slices that are left out, as Java's incremental planner looks only at those and
  at partitions that changed.
* Up to table version 6 no plan is made beside a pending write: see ``refusals.check_pending_writes``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.timeline.clustering_writer import write_clustering_plan
from hoodie_py.formats.timeline.instants import CLUSTERING, REPLACE_COMMIT
from hoodie_py.formats.timeline.replace_plan import ClusteringGroup, ClusteringSlice, RequestedReplace
from hoodie_py.options.clustering import ASYNC_MAX_COMMITS, INLINE_CLUSTERING, INLINE_MAX_COMMITS, SCHEDULE_INLINE
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.time_travel import parse_zone
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.clustering.partitions import choose_partitions
from hoodie_py.writer.clustering.report import ClusteringReport, PlannedGroup
from hoodie_py.writer.clustering.row_keys import check_layout
from hoodie_py.writer.clustering.settings import EXECUTION_CLASS, ClusteringSettings
from hoodie_py.writer.compaction.strategy import LOG_BYTES, measure_operation
from hoodie_py.writer.index.table_index import has_bucket_files
from hoodie_py.writer.output_schema import load_output_schema
from hoodie_py.writer.refusals import check_pending_writes, check_writable
from hoodie_py.writer.rollback.recovery import finish_rollbacks
from hoodie_py.writer.timeline.session import PLAN_ID, WriteSession, find_newest_time
from hoodie_py.writer.transaction.pending import iterate_planned_slices
from hoodie_py.writer.transaction.run_guard import forget_finished

OPERATION = "CLUSTER"


@dataclass(frozen=True, slots=True)
class PlannedClustering:
    """A plan that could be saved, and its report."""

    plan: RequestedReplace
    report: ClusteringReport


def schedule(session: WriteSession, *, only_if_due: bool = False) -> str | None:
    """Save a clustering plan and return its instant; None if there is nothing to cluster, or it is not due.

    Raises:
        UnsupportedFeatureError: the table has a feature that is not handled, or the options name another strategy.
        ConflictError: another writer holds the lock, or a pending write is in the way.
        InvalidQueryError: an option has a bad value, or a sort column is not in the table.
        CommitStateUnknownError: the store did not say whether the plan was saved.
    """
    recovered = session.look()
    check_clusterable(recovered)
    settings = ClusteringSettings.from_options(session.settings.options)
    finish_rollbacks(session, recovered)
    with session.hold_lock() as holding:
        snapshot = session.look()
        check_clusterable(snapshot)
        if only_if_due and not is_due(snapshot, session.settings.options):
            return None
        forget_finished(session, snapshot)
        instant = session.clock.take(find_newest_time(snapshot.timeline.timeline))
        planned = make_plan(session, snapshot, instant, settings)
        if not planned.plan.groups:
            return None
        content = write_clustering_plan(planned.plan, session.files.java_uri)
        action = CLUSTERING if snapshot.config.timeline_layout > 1 else REPLACE_COMMIT
        holding.ensure_held()
        session.open_timeline(snapshot).request(instant, action, content)
    return instant


def dry_run(session: WriteSession) -> ClusteringReport:
    """Report what ``schedule`` would plan. It writes nothing and takes no lock; errors as for ``schedule``."""
    snapshot = session.look()
    check_clusterable(snapshot)
    settings = ClusteringSettings.from_options(session.settings.options)
    instant = session.clock.peek(find_newest_time(snapshot.timeline.timeline))
    return make_plan(session, snapshot, instant, settings).report


def check_clusterable(snapshot: Snapshot) -> None:
    """Refuse a table that cannot be clustered here.

    Raises:
        UnsupportedFeatureError: names the feature.
    """
    check_writable(snapshot)
    if snapshot.instant is not None and has_bucket_files(snapshot):
        raise UnsupportedFeatureError(
            "Clustering of a table with a bucket index, whose rows cannot change their file group.",
            table=snapshot.config.name,
        )


def is_due(snapshot: Snapshot, options: Mapping[str, str]) -> bool:
    """Whether enough commits came after the last clustering, as the options for inline planning ask."""
    commits, _ = count_commits(snapshot)
    if INLINE_CLUSTERING.read(options) and commits < INLINE_MAX_COMMITS.read(options):
        return False
    return not (SCHEDULE_INLINE.read(options) and commits < ASYNC_MAX_COMMITS.read(options))


def count_commits(snapshot: Snapshot) -> tuple[int, str]:
    """Return how many commits came after the last clustering, pending or not, and its request time; "" without one."""
    last = next(_iterate_clusterings(snapshot), "")
    timeline = snapshot.timeline.timeline.select_writes().select_completed()
    return sum(each.request_time > last for each in timeline), last


def _iterate_clusterings(snapshot: Snapshot) -> Iterator[str]:
    """Yield request times of clusterings, pending ones too, the newest first."""
    for each in reversed(snapshot.timeline.timeline.instants):
        if each.comparable_action != REPLACE_COMMIT:
            continue
        if each.is_completed:
            if snapshot.timeline.read_metadata(each).operation_type == OPERATION:
                yield each.request_time
        elif each.action == CLUSTERING or snapshot.timeline.read_replace_plan(each).is_clustering:
            yield each.request_time


def make_plan(
    session: WriteSession, snapshot: Snapshot, instant: str, settings: ClusteringSettings
) -> PlannedClustering:
    """Return the plan for an instant, which is later than every time on the timeline; it may have no groups.

    Raises:
        InvalidQueryError: a sort column is not in the table, or a pattern is bad.
        ConflictError: a pending write is in the way.
    """
    if snapshot.instant is None:
        report = ClusteringReport(
            snapshot.config.name, instant, settings.layout.columns, (), not_due="there are no rows"
        )
        return PlannedClustering(RequestedReplace(OPERATION), report)
    check_layout(settings.layout, load_output_schema(snapshot).arrow)
    check_pending_writes(snapshot, instant)
    held = {(each.partition_path, each.file_id): each.instant for each in iterate_planned_slices(snapshot)}
    zone = parse_zone(snapshot.timezone, snapshot.config.timezone)
    paths = sorted(snapshot.view.list_paths())
    chosen = choose_partitions(paths, settings.mode, settings.options, datetime.now(zone).hour)
    left_out: dict[GroupKey, str] = {}
    by_partition: dict[str, list[FileSlice]] = {path: [] for path in chosen}
    for each in snapshot.view.list_slices():  # as the folders have them: a file that is not taken is lost
        key = each.partition_path, each.file_id
        reason = _explain_left_out(each, by_partition, settings)
        if key in held:
            reason = f"{held[key].action} {held[key].request_time} is pending"
        if reason is None:
            by_partition[each.partition_path].append(each)
        else:
            left_out[key] = reason
    plan_max = session.settings.plan.max_file_size
    every = [group for path in chosen for group in _divide(by_partition[path], settings, plan_max)]
    groups = every[: settings.most_groups]
    for group in every[settings.most_groups :]:
        reason = f"the plan has its {settings.most_groups} groups"
        left_out.update({(each.partition_path, each.file_id): reason for each in group})
    taken = {(each.partition_path, each.file_id) for group in groups for each in group}
    rest = (each for path in chosen for each in by_partition[path])
    for each in rest:
        key = each.partition_path, each.file_id
        if key not in taken:
            left_out.setdefault(key, "it would be alone in its group")
    return _describe(snapshot, instant, settings, groups, left_out, plan_max)


def _explain_left_out(
    file_slice: FileSlice, chosen: Mapping[str, list[FileSlice]], settings: ClusteringSettings
) -> str | None:
    if file_slice.partition_path not in chosen:
        return "its partition is not chosen"
    base = file_slice.base_file
    if base is not None and base.size >= settings.small_file_bytes:
        return f"its base file has {settings.small_file_bytes:,} bytes or more"
    return None


def _divide(slices: Sequence[FileSlice], settings: ClusteringSettings, new_bytes: int) -> Iterator[list[FileSlice]]:
    """Yield the groups of a partition. ``new_bytes`` is the size of a slice without base file."""
    group: list[FileSlice] = []
    total = 0
    for each in sorted(slices, key=lambda each: _count_bytes(each, new_bytes), reverse=True):
        size = _count_bytes(each, new_bytes)
        if group and total + size > settings.group_bytes:
            yield group
            group, total = [], 0
        group.append(each)
        total += size
    if len(group) > 1 or (group and settings.single_groups):
        yield group


def _count_bytes(file_slice: FileSlice, new_bytes: int) -> int:
    return new_bytes if file_slice.base_file is None else file_slice.base_file.size


def _describe(
    snapshot: Snapshot,
    instant: str,
    settings: ClusteringSettings,
    groups: Sequence[Sequence[FileSlice]],
    left_out: Mapping[GroupKey, str],
    new_bytes: int,
) -> PlannedClustering:
    planned = [_make_group(group, settings, new_bytes) for group in groups]
    plan = RequestedReplace(
        operation_type=OPERATION,
        groups=tuple(planned),
        strategy=EXECUTION_CLASS,
        strategy_params=settings.layout.params,
        preserves_metadata=settings.keeps_meta,
        missing_partitions=tuple(sorted({path for path, _ in left_out})),
        extra_metadata={PLAN_ID: uuid4().hex},
    )
    report = ClusteringReport(
        table=snapshot.config.name,
        instant=instant,
        sort_columns=settings.layout.columns,
        groups=tuple(map(_report_group, groups, planned)),
        left_out=tuple((path, file_id, reason) for (path, file_id), reason in left_out.items()),
        not_due=None if planned else "no file slice is small enough and free",
    )
    return PlannedClustering(plan, report)


def _make_group(slices: Sequence[FileSlice], settings: ClusteringSettings, new_bytes: int) -> ClusteringGroup:
    measured = [
        measure_operation(
            None if each.base_file is None else each.base_file.size, [log.size for log in each.log_files], new_bytes
        )
        for each in slices
    ]
    total = sum(_count_bytes(each, new_bytes) for each in slices)
    return ClusteringGroup(
        slices=tuple(map(_make_slice, slices)),
        num_output_file_groups=max(1, math.ceil(total / settings.target_file_bytes)),
        metrics={name: sum(each[name] for each in measured) for name in measured[0]},
    )


def _make_slice(file_slice: FileSlice) -> ClusteringSlice:
    base = file_slice.base_file
    return ClusteringSlice(
        file_id=file_slice.file_id,
        partition_path=file_slice.partition_path,
        data_file=None if base is None else base.name,
        delta_files=tuple(log.name.name for log in file_slice.log_files),
        bootstrap_file=None if base is None or base.source is None else base.source.indexed,
    )


def _report_group(slices: Sequence[FileSlice], group: ClusteringGroup) -> PlannedGroup:
    return PlannedGroup(
        partition_path=slices[0].partition_path,
        file_ids=tuple(each.file_id for each in slices),
        base_bytes=sum(each.base_file.size for each in slices if each.base_file is not None),
        log_files=sum(len(each.log_files) for each in slices),
        log_bytes=int(group.metrics[LOG_BYTES]),
        new_files=group.num_output_file_groups or 1,
    )
