"""Clustering: write the rows of small file groups anew into larger ones (Hudi ``RunClusteringStrategy``,
``SparkExecuteClusteringCommitActionExecutor``).

The work is one task for each group of the plan; ``PlannedService`` has the steps. The plan is checked against the
current table first. The completed instant is a replace commit: it has the new files, and the file groups whose rows are
in them now. Where a clustering changes ranges of hashes, it writes them last, and confirms them when it has completed
(``hash_ranges``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from hoodie_py.errors import ConflictError, HoodieError, HoodieWarning, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import CLUSTERING, REPLACE_COMMIT, Instant
from hoodie_py.formats.timeline.plans import CompactionOperation, CompactionPlan
from hoodie_py.formats.timeline.replace_plan import (
    ClusteringGroup,
    ClusteringSlice,
    RequestedReplace,
    write_clustering_plan,
)
from hoodie_py.formats.timeline.writers import write_commit_metadata
from hoodie_py.options import clustering
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.selection import select_strategy
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.file_groups import FileGroup
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.clustering.bucket_plan import Resize, find_resize
from hoodie_py.writer.clustering.plan import OPERATION, check_clusterable, count_commits, make_plan, resolve_settings
from hoodie_py.writer.clustering.report import ClusteringResult
from hoodie_py.writer.clustering.row_keys import check_layout
from hoodie_py.writer.clustering.settings import Layout, check_planned_execution
from hoodie_py.writer.clustering.task import ClusteringTask
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.precombine.merge_options import keep_if_own
from hoodie_py.writer.services.compaction_plan import find_planned_slices, has_records
from hoodie_py.writer.services.due_service import DueService
from hoodie_py.writer.services.planned_service import PlannedService
from hoodie_py.writer.services.service_run import (
    Done,
    Opened,
    Runner,
    Saved,
    describe_files,
    make_facts,
    make_read_options,
    with_schema_of,
)
from hoodie_py.writer.timeline.session import RUN_ID, WriteSession, find_newest_time
from hoodie_py.writer.transaction.commit_protocol import FoundFiles, collect_stats
from hoodie_py.writer.transaction.hash_ranges import confirm_hash_ranges, save_hash_ranges
from hoodie_py.writer.transaction.pending import is_clustering

_ROOM = 1.1  # a file may be this much larger than its share of the rows, so that no small one is left over

_HINT = "Roll the clustering back and schedule a new one."


@dataclass(frozen=True, slots=True)
class _PlannedGroups:
    """The slices of each group of a plan, and what the plan does to ranges of hashes."""

    groups: Sequence[tuple[FileSlice, ...]]
    resize: Resize | None


@dataclass(frozen=True)
class Clustering(PlannedService[RequestedReplace, _PlannedGroups, ClusteringTask, ClusteringResult]):
    """Write the rows of small file groups anew into larger ones."""

    name: ClassVar[str] = "clustering"

    def judge(self, session: WriteSession, snapshot: Snapshot, judged: Mapping[str, DueService]) -> DueService:
        """Judge by the commits since the last clustering, and by what a plan would take."""
        chosen = self.with_upkeep_options(session)
        settings = resolve_settings(chosen, snapshot)
        options = chosen.settings.options
        key = (
            clustering.ASYNC_MAX_COMMITS if clustering.SCHEDULE_INLINE.read(options) else clustering.INLINE_MAX_COMMITS
        )
        least = key.read(options)
        commits, last = count_commits(snapshot)
        since = f"{commits} of {least} commits "
        since += f"since the clustering at {last}" if last else "and no clustering yet"
        figures: dict[str, int | float | str] = {"commits": commits}
        if commits < least:
            return DueService(self.name, "not due", since, figures)
        instant = session.clock.peek(find_newest_time(snapshot.timeline))
        report = make_plan(chosen, snapshot, instant, settings).report
        small = sum(len(each.file_ids) for each in report.groups)
        new = sum(each.new_files for each in report.groups)
        size = sum(each.base_bytes for each in report.groups)
        figures |= {"small files": small, "bytes": size, "new files": new}
        if not small:
            why = "no small file groups to put together" if settings.resize is None else report.not_due
            return DueService(self.name, "not due", f"{since}; {why}", figures)
        why = f"{since}; {small:,} file groups of {size:,} bytes would become {new:,}"
        return DueService(self.name, "due", why, figures)

    def with_upkeep_options(self, session: WriteSession) -> WriteSession:
        """Return the session with options that cluster no file group alone, unless they ask for it."""
        if clustering.SINGLE_GROUPS.find_text(session.settings.options) is not None:
            return session
        options = {**session.settings.options, str(clustering.SINGLE_GROUPS): "false"}
        return replace(session, settings=replace(session.settings, options=options))

    def run_inline(
        self, session: WriteSession, merger: Merger | None, runner: Runner | None
    ) -> ClusteringResult | None:
        """Run pending clusterings, then plan and run one if enough commits came since the last, and return its result
        (Hudi ``BaseHoodieTableServiceClient.inlineClustering``).

        None if the options do not ask for it, or nothing is due. With the option that only plans, a plan is made and
        left. Errors are those of ``schedule`` and ``run``.
        """
        options = session.settings.options
        if clustering.INLINE_CLUSTERING.read(options):
            own = keep_if_own(session.look().config, merger)
            for pending in self.list_pending(session.look()):
                self.run(session, pending.request_time, runner=runner, merger=own)
            planned = self.schedule(session, only_if_due=True)
            return None if planned is None else self.run(session, planned, runner=runner, merger=own)
        if clustering.SCHEDULE_INLINE.read(options) and not self.list_pending(session.look()):
            self.schedule(session, only_if_due=True)
        return None

    def check_plannable(self, session: WriteSession, snapshot: Snapshot) -> None:
        """Refuse a table that cannot be clustered here, and bad options."""
        resolve_settings(session, snapshot)

    def has_enough_commits(self, session: WriteSession, snapshot: Snapshot) -> bool:
        """Say whether enough commits came after the last clustering, as the options for inline planning ask."""
        options = session.settings.options
        commits, _ = count_commits(snapshot)
        if clustering.INLINE_CLUSTERING.read(options) and commits < clustering.INLINE_MAX_COMMITS.read(options):
            return False
        return not (clustering.SCHEDULE_INLINE.read(options) and commits < clustering.ASYNC_MAX_COMMITS.read(options))

    def check_table(self, session: WriteSession, snapshot: Snapshot) -> None:
        """Refuse a table that cannot be clustered here."""
        check_clusterable(snapshot)

    def make_plan(self, session: WriteSession, snapshot: Snapshot, instant: str) -> tuple[str, bytes] | None:
        """Plan the groups of small files, or the buckets that are to change."""
        plan = make_plan(session, snapshot, instant, resolve_settings(session, snapshot)).plan
        if not plan.groups:
            return None
        action = CLUSTERING if snapshot.config.timeline_layout > 1 else REPLACE_COMMIT
        return action, write_clustering_plan(plan, session.files.java_uri)

    def list_pending(self, snapshot: Snapshot) -> list[Instant]:
        """Return the pending clusterings, oldest first."""
        pending = snapshot.timeline.select_pending_replacements()
        return [each for each in pending if is_clustering(snapshot, each)]

    def read_plan(self, snapshot: Snapshot, instant: Instant) -> RequestedReplace:
        """Return a pending plan."""
        return snapshot.timeline.read_replace_plan(instant)

    def find(self, saved: Saved[RequestedReplace], earlier: _PlannedGroups | None = None) -> _PlannedGroups:
        """Return the slices that the plan names, and what it does to ranges of hashes."""
        snapshot, plan, instant = saved.snapshot, saved.plan, saved.time
        resize = find_resize(snapshot, plan, instant)
        if resize is None and check_clusterable(snapshot) is not None:
            raise UnsupportedFeatureError(
                "A clustering of a table with consistent hashing whose plan says nothing of ranges of hashes.",
                hint="Roll it back.",
                instant=instant,
            )
        check_planned_execution(plan.strategy, of_buckets=resize is not None)
        if earlier is not None and resize != earlier.resize:
            raise ConflictError("Ranges of hashes changed while the clustering ran.", instant=instant)
        heirs = None if resize is None else resize.find_heirs(plan)
        return _PlannedGroups(_find_planned_groups(snapshot, plan, instant, heirs), resize)

    def open(self, saved: Saved[RequestedReplace], found: _PlannedGroups, merger: Merger | None) -> _Opened:
        """Make a task for each group. New files may be in any file group of the plan's partitions."""
        session, plan, groups = saved.session, saved.plan, found.groups
        options = session.settings.options
        select_strategy(saved.snapshot.config, options, merger, writing=False)
        saved = with_schema_of(saved)
        snapshot, facts = saved.snapshot, make_facts(saved, [each for group in groups for each in group])
        schema, layout = facts.schema, _find_layout(plan, options)
        check_layout(layout, schema.arrow)
        read, target = make_read_options(session), clustering.TARGET_FILE_BYTES.read(options)
        targets = [None] * len(groups) if found.resize is None else found.resize.make_targets(snapshot, options)
        tasks = tuple(
            ClusteringTask(
                slices=slices,
                infos=tuple(snapshot.read_info(each).as_stored(schema.arrow, schema.defaults) for each in slices),
                facts=facts,
                index=index,
                layout=layout,
                file_bytes=_choose_file_bytes(slices, group, target),
                keeps_meta=plan.preserves_metadata,
                merger=merger,
                options=read,
                targets=bucket,
            )
            for index, (slices, group, bucket) in enumerate(zip(groups, plan.groups or (), targets, strict=True))
        )
        places = tuple((partition, "") for partition in _list_replaced(plan))
        return Opened(session, snapshot, saved.instant, plan, found, tasks, places, facts)

    def split(self, outcome: Any) -> tuple[Hashable, tuple[TaskResult, ...]]:
        """Return the task's number and the results of its files."""
        index, results = outcome
        return index, results

    def settle(
        self,
        opened: _Opened,
        results: Sequence[TaskResult],
        found: FoundFiles | None,
        ensure_own: Callable[[], None],
    ) -> None:
        """Check the files of the results, remove those of other attempts, and write ranges of hashes."""
        super().settle(opened, results, found, ensure_own)
        resize = opened.found.resize
        for ranges in () if resize is None else resize.ranges.values():
            save_hash_ranges(opened.session.files, ranges)

    def confirm(self, opened: _Opened) -> None:
        """Confirm the new ranges of hashes."""
        resize = opened.found.resize
        if resize is not None:
            try:
                confirm_hash_ranges(opened.session.files, opened.time, resize.ranges)
            except HoodieError as error:  # the archival does it
                text = f"The clustering is complete, its ranges of hashes are not confirmed: {error}"
                warnings.warn(HoodieWarning(text), stacklevel=4)

    def describe(self, opened: _Opened, results: Sequence[TaskResult]) -> MetadataCommit:
        """Return the new base files and the replaced file groups."""
        files = describe_files(opened, results, "clustering", OPERATION)
        return replace(files, replaced=_list_replaced(opened.plan))

    def make_content(self, opened: _Opened, results: Sequence[TaskResult], now: Snapshot) -> bytes:
        """Return the commit metadata."""
        facts = opened.facts
        metadata = CommitMetadata(
            operation_type=OPERATION,
            extra_metadata={RUN_ID: str(facts.run_id), **facts.schema.commit_texts},
            write_stats=collect_stats(results),
            replaced_file_ids=_list_replaced(opened.plan),
        )
        return write_commit_metadata(metadata, now.config.timeline_layout, replace=True)

    def check_overlap(self, opened: _Opened, before: Snapshot, after: Snapshot) -> None:
        """Check that no commit between two looks changed a replaced file group."""
        known = {each.request_time for each in before.timeline.list_completed_writes()} | {opened.time}
        groups = set(opened.plan.iterate_file_groups())
        for instant in after.timeline.list_completed_writes():
            if instant.request_time in known:
                continue
            metadata = after.timeline.read_metadata(instant)
            touched = {(each.partition_path, each.file_id or "") for each in metadata.iterate_stats()}
            touched |= {(path, each) for path, ids in metadata.replaced_file_ids.items() for each in ids}
            if touched & groups:
                raise ConflictError(
                    "Another writer changed a file group of the clustering.",
                    instant=opened.time,
                    file_group=min(touched & groups)[1],
                )

    def sum_up(self, done: Done[RequestedReplace, _PlannedGroups, ClusteringTask] | None) -> ClusteringResult:
        """Return what was done."""
        if done is None:
            return ClusteringResult()
        replaced = sum(map(len, _list_replaced(done.opened.plan).values()))
        return ClusteringResult.of(done.opened.time, done.completion_time, replaced, done.results, done.seconds)


def _list_replaced(plan: RequestedReplace) -> dict[str, tuple[str, ...]]:
    """Return the file ids of the groups that are replaced, by partition path."""
    found: dict[str, tuple[str, ...]] = {}
    for partition, file_id in plan.iterate_file_groups():
        found[partition] = (*found.get(partition, ()), file_id)
    return found


def _find_layout(plan: RequestedReplace, options: Mapping[str, str]) -> Layout:
    """Return the layout of a plan. Java's plans name the sort columns only, so the options say the rest."""
    named = {name: text for name, text in options.items() if name != clustering.SORT_COLUMNS}
    return Layout.from_options({**named, **plan.strategy_params})


def _choose_file_bytes(slices: Iterable[FileSlice], group: ClusteringGroup, target: int) -> int:
    """Return the size at which files end: the rows are spread evenly over the planned number of files."""
    total = sum(each.base_file.whole_size for each in slices if each.base_file is not None)
    count = max(1, group.num_output_file_groups or 1)
    return target if count == 1 else max(1, min(target, int(_ROOM * total / count)))


def _find_planned_groups(
    snapshot: Snapshot,
    plan: RequestedReplace,
    instant: str,
    heirs: Mapping[GroupKey, frozenset[str]] | None = None,
) -> list[tuple[FileSlice, ...]]:
    """Return the slices of each group of a plan. ``heirs`` are the file ids that each file group's rows go to, if the
    plan names them.

    A group of the plan is replaced when the clustering completes, so whatever else is in its file groups is lost then.
    So each slice must be as the plan has it: no other base file, no further log file with live rows, not replaced. Java
    Hudi relies on writers that keep away from planned groups.

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
    """Return paths of files in planned file groups whose rows the same commit put into their heirs, too.

    Java's writers may put changes of planned buckets into the old file group and the new one at once (Hudi
    ``SparkConsistentBucketDuplicateUpdateStrategy``). Such commits lose nothing: the write statistics show them.
    """
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


_Opened = Opened[RequestedReplace, _PlannedGroups, ClusteringTask]
