"""Run a planned clustering (Hudi ``SparkExecuteClusteringCommitActionExecutor``, ``RunClusteringStrategy``).

The steps are those of ``commit_protocol``. A clustering begins by a check of its plan, and by removing what an earlier
attempt left. The work is one task for each group of the plan. The completed instant is a replace commit: it has the new
files, and the file groups whose rows are in them now. On failure the clustering goes back to requested. Where it
changes ranges of hashes, it writes them last, and confirms them when it has completed (``hash_ranges``).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from hoodie_py.errors import ConflictError, HoodieError, HoodieWarning, UnsupportedFeatureError
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.instants import REQUESTED, Instant
from hoodie_py.formats.timeline.replace_plan import ClusteringGroup, RequestedReplace
from hoodie_py.formats.timeline.writers import write_commit_metadata
from hoodie_py.options.clustering import SORT_COLUMNS, TARGET_FILE_BYTES
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.selection import select_strategy
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.clustering.plan import OPERATION, check_clusterable
from hoodie_py.writer.clustering.planned import find_planned_groups
from hoodie_py.writer.clustering.report import ClusteringResult
from hoodie_py.writer.clustering.resize import Resize, find_resize
from hoodie_py.writer.clustering.row_keys import check_layout
from hoodie_py.writer.clustering.settings import Layout, check_planned_execution
from hoodie_py.writer.clustering.task import ClusteringTask
from hoodie_py.writer.handles.base_codec import choose_codec
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.metadata_table import MetadataTable
from hoodie_py.writer.lock.heartbeat import Heartbeat
from hoodie_py.writer.output_schema import OutputSchema, load_output_schema
from hoodie_py.writer.precombine.merge_options import check_merger
from hoodie_py.writer.refusals import check_pending_writes
from hoodie_py.writer.rollback.attempt import undo_attempt
from hoodie_py.writer.rollback.recovery import finish_rollbacks
from hoodie_py.writer.services.planned_run import (
    begin_planned,
    check_no_rollback,
    check_still_planned,
    choose_planned,
    list_known_rollbacks,
    make_read_options,
    make_run_facts,
    put_back,
    settle_results,
    with_schema_of,
)
from hoodie_py.writer.services.runner import LocalRunner, Runner
from hoodie_py.writer.timeline.session import RUN_ID, WriteSession
from hoodie_py.writer.transaction.commit_protocol import (
    collect_sizes,
    collect_stats,
    complete_instant,
    remove_leftovers,
    take_back_on_failure,
    turn_missing_into_conflict,
)
from hoodie_py.writer.transaction.hash_ranges import confirm_hash_ranges, save_hash_ranges
from hoodie_py.writer.transaction.pending import is_clustering
from hoodie_py.writer.transaction.run_guard import guard_run

_WHAT = "clustering"
_ROOM = 1.1  # a file may be this much larger than its share of the rows, so that no small one is left over


@dataclass(frozen=True, slots=True)
class _OpenClustering:
    """A clustering that has begun: the table then, its plan, its tasks, and the rollbacks of earlier attempts."""

    snapshot: Snapshot
    instant: Instant
    plan: RequestedReplace
    tasks: tuple[ClusteringTask, ...]
    known_rollbacks: frozenset[str]
    schema: OutputSchema
    run_id: int
    resize: Resize | None

    @property
    def replaced(self) -> dict[str, tuple[str, ...]]:
        """File ids of the groups that are replaced, by partition path."""
        found: dict[str, tuple[str, ...]] = {}
        for partition, file_id in self.plan.iterate_file_groups():
            found[partition] = (*found.get(partition, ()), file_id)
        return found

    @property
    def places(self) -> list[GroupKey]:
        """Where new files may be: any file group of the plan's partitions."""
        return [(partition, "") for partition in self.replaced]


@watch_calls("clustering")
def run(
    session: WriteSession,
    instant: str | None = None,
    *,
    runner: Runner | None = None,
    merger: Merger | None = None,
    override_merger: bool = False,
) -> ClusteringResult:
    """Run a pending clustering. ``instant`` is its request time, None for the oldest pending one; ``runner`` None means
    threads of this process.

    Raises:
        ConflictError: another writer runs the clustering, rolled it back, or changed its file groups.
        InvalidQueryError: no clustering is pending at that time, or the merger is not the table's.
        InvalidTableError: the plan does not fit the table.
        UnsupportedFeatureError: the table or the plan has a feature that is not handled.
        MergeError: the table needs a merger that was not supplied, or versions do not merge.
        CommitStateUnknownError: the store did not say whether a file was written; nothing was taken back.
        StorageError: the store refused; the clustering is back to requested.
    """
    began = time.monotonic()
    if runner is not None and not isinstance(runner, Runner):
        raise UnsupportedFeatureError(
            f"Clustering by an engine of type {type(runner).__name__}.", hint="Leave it out, or give one with run()."
        )
    snapshot = _recover(session, instant)
    check_merger(snapshot.config, merger, override=override_merger)
    chosen = choose_planned(snapshot, list_pending(snapshot), instant, _WHAT)
    if chosen is None:
        return ClusteringResult()
    MetadataTable.check(snapshot, session.settings.metadata_mode)  # before a heartbeat leaves its folder
    with turn_missing_into_conflict(session, snapshot), guard_run(session, chosen.request_time) as alive:
        begun = _begin(session, chosen.request_time, merger, alive)
        undo = partial(put_back, session, begun.instant, begun.run_id, begun.places, alive, _WHAT)
        with take_back_on_failure(undo):
            results = _run_tasks(begun, runner or LocalRunner())
            alive.ensure_alive()
            done = complete_instant(session, alive, _ClusteringCompletion(session, begun, results))
        remove_leftovers(session.files, done.request_time, results, "The clustering is complete", begun.run_id)
        _confirm(session, begun)
    replaced = sum(map(len, begun.replaced.values()))
    completion_time = done.completion_time or ""
    return ClusteringResult.of(chosen.request_time, completion_time, replaced, results, time.monotonic() - began)


def _confirm(session: WriteSession, begun: _OpenClustering) -> None:
    if begun.resize is not None:
        try:
            confirm_hash_ranges(session.files, begun.instant.request_time, begun.resize.ranges)
        except HoodieError as error:  # the archival does it
            text = f"The clustering is complete, its ranges of hashes are not confirmed: {error}"
            warnings.warn(HoodieWarning(text), stacklevel=3)


def list_pending(snapshot: Snapshot) -> list[Instant]:
    """Return the pending clusterings, oldest first."""
    pending = snapshot.timeline.select_pending_replacements()
    return [each for each in pending if is_clustering(snapshot, each)]


def _recover(session: WriteSession, instant: str | None) -> Snapshot:
    """Finish pending rollbacks, that of the clustering too, and return the table after that."""
    snapshot = session.look()
    check_clusterable(snapshot)
    pending = list_pending(snapshot)
    chosen = instant or (pending[0].request_time if pending else None)
    return session.look() if finish_rollbacks(session, snapshot, chosen) else snapshot


def _begin(session: WriteSession, instant: str, merger: Merger | None, alive: Heartbeat) -> _OpenClustering:
    with session.hold_lock() as holding:
        snapshot = session.look()
        pending = next((each for each in list_pending(snapshot) if each.request_time == instant), None)
        if pending is None:
            raise ConflictError("Another writer finished the clustering, or took it back.", instant=instant)
        plan = snapshot.timeline.read_replace_plan(pending)
        resize = _check(snapshot, plan, instant)
        MetadataTable.check(snapshot, session.settings.metadata_mode)
        select_strategy(snapshot.config, session.settings.options, merger, writing=False)
        groups = find_planned_groups(snapshot, plan, instant, None if resize is None else resize.find_heirs(plan))
        begun = _plan_tasks(session, snapshot, pending, plan, groups, resize, merger)
        undo = partial(undo_attempt, session, snapshot, pending, begun.places)
        begin_planned(session, snapshot, begun.instant, begun.replaced, undo, alive, holding)
    return begun


def _check(snapshot: Snapshot, plan: RequestedReplace, instant: str) -> Resize | None:
    """Check that the plan can be carried out, and return what it does to ranges of hashes."""
    engine = check_clusterable(snapshot)
    check_pending_writes(snapshot, instant)
    check_no_rollback(snapshot, instant, _WHAT)
    resize = find_resize(snapshot, plan, instant)
    if resize is None and engine is not None:
        raise UnsupportedFeatureError(
            "A clustering of a table with consistent hashing whose plan says nothing of ranges of hashes.",
            hint="Roll it back.",
            instant=instant,
        )
    check_planned_execution(plan.strategy, of_buckets=resize is not None)
    return resize


def _plan_tasks(
    session: WriteSession,
    snapshot: Snapshot,
    pending: Instant,
    plan: RequestedReplace,
    groups: Sequence[tuple[FileSlice, ...]],
    resize: Resize | None,
    merger: Merger | None,
) -> _OpenClustering:
    snapshot = with_schema_of(snapshot, pending.request_time)
    schema = load_output_schema(snapshot)
    options = session.settings.options
    layout = _find_layout(plan, options)
    check_layout(layout, schema.arrow)
    codec = choose_codec(session.settings.file, snapshot, [each for group in groups for each in group])
    facts = make_run_facts(session, snapshot, pending, schema, codec)
    read = make_read_options(session)
    target = TARGET_FILE_BYTES.read(options)
    targets = [None] * len(groups) if resize is None else resize.make_targets(snapshot, options)
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
    known = list_known_rollbacks(snapshot, pending.request_time)
    requested = replace(pending, state=REQUESTED)
    return _OpenClustering(snapshot, requested, plan, tasks, known, schema, facts.run_id, resize)


def _find_layout(plan: RequestedReplace, options: Mapping[str, str]) -> Layout:
    """Return the layout of a plan. Java's plans name the sort columns only, so the options tell the rest."""
    named = {name: text for name, text in options.items() if name != SORT_COLUMNS}
    return Layout.from_options({**named, **plan.strategy_params})


def _choose_file_bytes(slices: Iterable[FileSlice], group: ClusteringGroup, target: int) -> int:
    """Return the size at which files end: the rows are spread evenly over the planned number of files."""
    total = sum(each.base_file.whole_size for each in slices if each.base_file is not None)
    count = max(1, group.num_output_file_groups or 1)
    return target if count == 1 else max(1, min(target, int(_ROOM * total / count)))


def _run_tasks(begun: _OpenClustering, runner: Runner) -> list[TaskResult]:
    """Run all tasks, the largest first, and return the results of their files. The first attempt at a task counts."""
    done: dict[int, tuple[TaskResult, ...]] = {}
    for index, results in runner.run(sorted(begun.tasks, key=lambda task: task.size, reverse=True), _ignore_rows):
        done.setdefault(index, results)
    if done.keys() != {task.index for task in begun.tasks}:
        raise ConflictError("The engine did not run every task.", instant=begun.instant.request_time)
    return [result for results in done.values() for result in results]


def _ignore_rows(rows: int) -> None:
    del rows


@dataclass(frozen=True, slots=True)
class _ClusteringCompletion:
    """How a clustering completes."""

    session: WriteSession
    begun: _OpenClustering
    results: Sequence[TaskResult]
    adds_files: bool = True
    can_run_again: bool = True

    @property
    def known_rollbacks(self) -> frozenset[str]:
        """Rollbacks of earlier attempts."""
        return self.begun.known_rollbacks

    def describe(self) -> MetadataCommit:
        """Return the new base files and the replaced file groups."""
        return MetadataCommit(
            self.session,
            self.begun.snapshot,
            self.begun.instant.request_time,
            "clustering",
            OPERATION,
            added=collect_sizes(self.results),
            stats=collect_stats(self.results),
            replaced=self.begun.replaced,
            results=self.results,
            schema=self.begun.schema.avro,
        )

    def check_still_ours(self, now: Snapshot) -> Instant:
        """Check that no other writer changed the clustering, its plan or its file groups."""
        begun = self.begun
        read, known = now.timeline.read_replace_plan, begun.known_rollbacks
        found = check_still_planned(now, begun.instant, begun.plan, read, known, _WHAT)
        resize = _check(now, begun.plan, found.request_time)
        if resize != begun.resize:
            raise ConflictError("Ranges of hashes changed while the clustering ran.", instant=found.request_time)
        heirs = None if resize is None else resize.find_heirs(begun.plan)
        find_planned_groups(now, begun.plan, found.request_time, heirs)
        return found

    def settle_files(self, now: Snapshot, ensure_own: Callable[[], None]) -> None:
        """Check the files of the results, remove those of other attempts, and write ranges of hashes."""
        instant = self.begun.instant.request_time
        settle_results(self.session.files, instant, self.begun.places, self.results, ensure_own, _WHAT)
        for ranges in () if self.begun.resize is None else self.begun.resize.ranges.values():
            save_hash_ranges(self.session.files, ranges)

    def make_content(self, now: Snapshot) -> bytes:
        """Return the commit metadata."""
        metadata = CommitMetadata(
            operation_type=OPERATION,
            extra_metadata={RUN_ID: str(self.begun.run_id), **self.begun.schema.commit_texts},
            write_stats=collect_stats(self.results),
            replaced_file_ids=self.begun.replaced,
        )
        return write_commit_metadata(metadata, now.config.timeline_layout, replace=True)

    def check_overlap(self, before: Snapshot, after: Snapshot) -> None:
        """Check that no commit between two looks changed a replaced file group."""
        own = self.begun.instant.request_time
        known = {each.request_time for each in before.timeline.list_completed_writes()} | {own}
        groups = set(self.begun.plan.iterate_file_groups())
        for instant in after.timeline.list_completed_writes():
            if instant.request_time in known:
                continue
            metadata = after.timeline.read_metadata(instant)
            touched = {(each.partition_path, each.file_id or "") for each in metadata.iterate_stats()}
            touched |= {(path, each) for path, ids in metadata.replaced_file_ids.items() for each in ids}
            if touched & groups:
                raise ConflictError(
                    "Another writer changed a file group of the clustering.",
                    instant=own,
                    file_group=min(touched & groups)[1],
                )
