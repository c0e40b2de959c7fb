"""Plan a clustering: which small file groups to write anew, together (Hudi ``ClusteringPlanActionExecutor``,
``PartitionAwareClusteringPlanStrategy``, ``SparkSizeBasedClusteringPlanStrategy``).

* A slice is a candidate if its base file is below the small file limit, and if no pending compaction, log compaction or
  clustering has planned its file group. A slice without base file counts as large as a new file.
* In each partition the largest slices come first, and a group ends before it exceeds its size. Plans have a limited
  number of groups.
* Tables with consistent hashing: a partition's buckets split, merge or are written anew (``bucket_plan``). Nothing is
  planned beside a pending write, nor in a partition with a pending clustering: writes put keys by the old ranges.
* The partitions that the options name or that match their pattern are looked at; a mode chooses among these. The plan
  records the partitions with slices that are left out, as Java's incremental planner looks only at these and at
  partitions that changed.
* Up to table version 6 no plan is made beside a pending write: see ``refusals.check_pending_writes``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from hoodie_py.errors import InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.timeline.instants import CLUSTERING, REPLACE_COMMIT
from hoodie_py.formats.timeline.replace_plan import ClusteringGroup, ClusteringSlice, RequestedReplace
from hoodie_py.options import clustering as keys
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.time_travel import parse_zone
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.clustering.bucket_plan import plan_buckets
from hoodie_py.writer.clustering.report import ClusteringReport, PlannedGroup
from hoodie_py.writer.clustering.row_keys import check_layout
from hoodie_py.writer.clustering.settings import ClusteringSettings
from hoodie_py.writer.index.table_index import find_bucket_engine
from hoodie_py.writer.index_settings import CONSISTENT
from hoodie_py.writer.output_schema import load_output_schema
from hoodie_py.writer.refusals import check_pending_writes, check_writable
from hoodie_py.writer.services.compaction_strategy import LOG_BYTES, measure_operation
from hoodie_py.writer.timeline.session import PLAN_ID, WriteSession, find_newest_time
from hoodie_py.writer.transaction.hash_ranges import load_hash_ranges
from hoodie_py.writer.transaction.pending import is_clustering, iterate_planned_slices, list_pending_writes

OPERATION = "CLUSTER"
_NOTHING_SMALL, _NO_BUCKET = "no file slice is small enough and free", "no bucket is to change, or none is free"

_HOURS = 24


@dataclass(frozen=True, slots=True)
class PlannedClustering:
    """A plan that could be saved, and its report."""

    plan: RequestedReplace
    report: ClusteringReport


def dry_run(session: WriteSession) -> ClusteringReport:
    """Report what would be planned. It writes nothing and takes no lock; errors as for ``Clustering.schedule``."""
    snapshot = session.look()
    settings = resolve_settings(session, snapshot)
    instant = session.clock.peek(find_newest_time(snapshot.timeline))
    return make_plan(session, snapshot, instant, settings).report


def resolve_settings(session: WriteSession, snapshot: Snapshot) -> ClusteringSettings:
    """Return the settings of a plan by the session's options, for the kind of table that it is.

    Raises:
        InvalidQueryError: an option has a bad value.
        UnsupportedFeatureError: the table has a feature that is not handled, or the options name another strategy.
    """
    options = session.settings.options
    if check_clusterable(snapshot) == CONSISTENT:
        partitioned = bool(snapshot.config.partition_fields)
        return ClusteringSettings.for_buckets(options, session.settings.plan.max_file_size, partitioned=partitioned)
    return ClusteringSettings.from_options(options)


def check_clusterable(snapshot: Snapshot) -> str | None:
    """Refuse a table that cannot be clustered here. Return the engine of its bucket index, None if it has none.

    Raises:
        UnsupportedFeatureError: names the feature.
    """
    check_writable(snapshot)
    engine = None if snapshot.instant is None else find_bucket_engine(snapshot)
    if engine not in (None, CONSISTENT):
        raise UnsupportedFeatureError(
            "Clustering of a table with a bucket index of numbered buckets, whose rows cannot change their file group.",
            hint="Only consistent hashing can be given other buckets.",
            table=snapshot.config.name,
        )
    if engine == CONSISTENT and not snapshot.config.is_merge_on_read:
        raise UnsupportedFeatureError("Consistent hashing of a copy-on-write table.", table=snapshot.config.name)
    return engine


def count_commits(snapshot: Snapshot) -> tuple[int, str]:
    """Return how many commits came after the last clustering, pending or not, and its request time; "" without one."""
    last = next(_iterate_clusterings(snapshot), "")
    timeline = snapshot.timeline.select_writes().select_completed()
    return sum(each.request_time > last for each in timeline), last


def _iterate_clusterings(snapshot: Snapshot) -> Iterator[str]:
    """Yield request times of clusterings, pending ones too, the newest first."""
    for each in reversed(snapshot.timeline.instants):
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
    writes = [] if settings.resize is None else list_pending_writes(snapshot)
    if writes:
        reason = f"the {writes[0].action} {writes[0].request_time} is pending, and puts keys by the old buckets"
        report = ClusteringReport(snapshot.config.name, instant, settings.layout.columns, (), not_due=reason)
        return PlannedClustering(RequestedReplace(OPERATION), report)
    zone = parse_zone(snapshot.timezone, snapshot.config.timezone)
    paths = sorted(snapshot.view.list_paths())
    chosen = choose_partitions(paths, settings.mode, settings.options, datetime.now(zone).hour)
    by_partition, left_out = _sort_out(snapshot, chosen, settings)
    plan_max = session.settings.plan.max_file_size
    every = [group for path in chosen for group in _make_groups(snapshot, path, by_partition[path], settings, plan_max)]
    groups = every[: settings.most_groups]
    for group in every[settings.most_groups :]:
        reason = f"the plan has its {settings.most_groups} groups"
        left_out.update({(each.partition_path, each.file_id): reason for each in group.slices})
    taken = {(each.partition_path, each.file_id) for group in groups for each in group.slices}
    alone = "it would be alone in its group" if settings.resize is None else "its bucket is neither split nor merged"
    rest = (each for path in chosen for each in by_partition[path])
    for each in rest:
        key = each.partition_path, each.file_id
        if key not in taken:
            left_out.setdefault(key, alone)
    return _describe(snapshot, instant, settings, groups, left_out, plan_max)


@dataclass(frozen=True, slots=True)
class _Group:
    """Slices that are written together into so many files; ``extra`` says which, of buckets."""

    slices: tuple[FileSlice, ...]
    new_files: int
    extra: Mapping[str, str]


def _sort_out(
    snapshot: Snapshot, chosen: Sequence[str], settings: ClusteringSettings
) -> tuple[dict[str, list[FileSlice]], dict[GroupKey, str]]:
    """Return the slices that can be taken, by partition path, and why others cannot."""
    held = {(each.partition_path, each.file_id): each.instant for each in iterate_planned_slices(snapshot)}
    busy = (
        {} if settings.resize is None else {path: on for (path, _), on in held.items() if is_clustering(snapshot, on)}
    )
    left_out: dict[GroupKey, str] = {}
    by_partition: dict[str, list[FileSlice]] = {path: [] for path in chosen}
    for each in snapshot.view.list_slices():  # as the folders have them: a file that is not taken is lost
        key = each.partition_path, each.file_id
        reason = _explain_left_out(each, by_partition, settings)
        pending = held.get(key) or busy.get(each.partition_path)
        if pending is not None:
            reason = f"{pending.action} {pending.request_time} is pending"
        if reason is None:
            by_partition[each.partition_path].append(each)
        else:
            left_out[key] = reason
    return by_partition, left_out


def _make_groups(
    snapshot: Snapshot, path: str, slices: Sequence[FileSlice], settings: ClusteringSettings, new_bytes: int
) -> Iterator[_Group]:
    """Yield the groups of a partition. ``new_bytes`` is the size of a slice without base file."""
    if settings.resize is None:
        for group in _divide(slices, settings, new_bytes):
            total = sum(_count_bytes(each, new_bytes) for each in group)
            yield _Group(tuple(group), max(1, math.ceil(total / settings.target_file_bytes)), {})
        return
    ranges = load_hash_ranges(snapshot, path) if slices else None
    strange = {each.file_id for each in slices}.difference(() if ranges is None else ranges.file_ids)
    if strange:
        raise InvalidTableError(
            "A file group has none of the ranges of hashes of its partition, so its bucket cannot change.",
            partition=path or None,
            file_group=min(strange),
        )
    for each in [] if ranges is None else plan_buckets(ranges, slices, settings.resize):
        yield _Group(each.slices, len(each.resize.file_ids), each.resize.to_extra())


def _explain_left_out(
    file_slice: FileSlice, chosen: Mapping[str, list[FileSlice]], settings: ClusteringSettings
) -> str | None:
    if file_slice.partition_path not in chosen:
        return "its partition is not chosen"
    base = file_slice.base_file if settings.resize is None else None
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
    groups: Sequence[_Group],
    left_out: Mapping[GroupKey, str],
    new_bytes: int,
) -> PlannedClustering:
    planned = [_make_group(group, new_bytes) for group in groups]
    plan = RequestedReplace(
        operation_type=OPERATION,
        groups=tuple(planned),
        strategy=settings.execution,
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
        not_due=None if planned else _NOTHING_SMALL if settings.resize is None else _NO_BUCKET,
    )
    return PlannedClustering(plan, report)


def _make_group(group: _Group, new_bytes: int) -> ClusteringGroup:
    measured = [
        measure_operation(
            None if each.base_file is None else each.base_file.size, [log.size for log in each.log_files], new_bytes
        )
        for each in group.slices
    ]
    return ClusteringGroup(
        slices=tuple(map(_make_slice, group.slices)),
        num_output_file_groups=group.new_files,
        metrics={name: sum(each[name] for each in measured) for name in measured[0]},
        extra=group.extra,
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


def _report_group(taken: _Group, group: ClusteringGroup) -> PlannedGroup:
    slices = taken.slices
    return PlannedGroup(
        partition_path=slices[0].partition_path,
        file_ids=tuple(each.file_id for each in slices),
        base_bytes=sum(each.base_file.size for each in slices if each.base_file is not None),
        log_files=sum(len(each.log_files) for each in slices),
        log_bytes=int(group.metrics[LOG_BYTES]),
        new_files=group.num_output_file_groups or 1,
    )


def choose_partitions(paths: Sequence[str], mode: str, options: Mapping[str, str], hour: int) -> list[str]:
    """Return the partitions to plan, in the order in which groups are made. ``hour`` is the hour of the day.

    The partitions that the options name or that match their pattern come first; the mode chooses among these (Hudi
    ``ClusteringPlanPartitionFilter``). Partition paths are compared as text.

    Raises:
        InvalidQueryError: a pattern cannot be understood.
    """
    chosen = _select(paths, options)
    if mode == keys.RECENT_DAYS:
        skipped, most = keys.SKIP_LATEST_PARTITIONS.read(options), keys.LOOKBACK_PARTITIONS.read(options)
        newest = sorted(chosen, reverse=True)[skipped:]
        return newest[:most] if most else newest
    if mode == keys.SELECTED_PARTITIONS:
        begin, end = keys.BEGIN_PARTITION.read(options), keys.END_PARTITION.read(options)
        return [each for each in chosen if (begin is None or each >= begin) and (end is None or each <= end)]
    if mode == keys.DAY_ROLLING:
        return [each for number, each in enumerate(sorted(chosen)) if number % _HOURS == hour]
    return chosen


def _select(paths: Sequence[str], options: Mapping[str, str]) -> list[str]:
    named = set(keys.PARTITIONS_SELECTED.read(options))
    chosen = [each for each in paths if not named or each in named]
    pattern = keys.PARTITION_REGEX.read(options)
    if pattern is None:
        return chosen
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InvalidQueryError(
            f"The pattern of partition paths cannot be understood: {error}.", hint=f"See {keys.PARTITION_REGEX}."
        ) from error
    return [each for each in chosen if compiled.fullmatch(each)]
