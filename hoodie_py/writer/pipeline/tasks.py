"""Make the tasks that write placed records: to a log file, a new base file, or a rewritten base file.

Hudi's ``BaseSparkCommitActionExecutor`` chooses in the same way between ``HoodieAppendHandle``, ``HoodieCreateHandle``,
``HoodieMergeHandle`` and ``HoodieConcatHandle``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter

import numpy as np

from hoodie_py.formats.timeline.commit_metadata import NO_COMMIT, WriteStat
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger, RecordMerger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.schema_evolution.file_mappings import FileMappings
from hoodie_py.runtime.machine import count_cores
from hoodie_py.runtime.telemetry import carry_span, watch_calls
from hoodie_py.table.schema.by_id import make_mappings
from hoodie_py.table.schema.history import load_schema_history
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.handles.append import AppendTask, writes_positions
from hoodie_py.writer.handles.create import ExtendTask, InsertTask
from hoodie_py.writer.handles.data_file import CommitFacts, TaskResult
from hoodie_py.writer.handles.merge import RewriteTask
from hoodie_py.writer.pipeline.assign import AssignedRecords, FileAssignment
from hoodie_py.writer.pipeline.small_files import Fill, find_custom_merger, has_insert_hook
from hoodie_py.writer.records import WriteRecords
from hoodie_py.writer.settings import WriteSettings

WriteTask = InsertTask | ExtendTask | RewriteTask | AppendTask

_MOST_ROWS = 1 << 20  # that all jobs hold if more run than there are cores: this bounds their memory


@dataclass(frozen=True)
class Tasks:
    """Makes the tasks of one commit."""

    snapshot: Snapshot
    facts: CommitFacts
    settings: WriteSettings
    merger: Merger | None = None

    def iterate_jobs(self, routed: AssignedRecords) -> Iterator[Job]:
        """Yield one job for each placement.

        Raises:
            MergeError: the table needs a merger that was not supplied.
        """
        for placement, task in zip(routed.assignments, self.iterate_tasks(routed.assignments), strict=True):
            size = estimate_work(task, placement)
            yield Job(partial(_run, task, routed, placement), size, self.facts.files.parallel)

    def iterate_tasks(self, placements: Sequence[FileAssignment]) -> Iterator[WriteTask]:
        """Yield one task for each placement; errors as for ``iterate_jobs``."""
        custom = find_custom_merger(self.snapshot, self.settings, self.merger)
        hooked = has_insert_hook(custom)
        for index, placement in enumerate(placements):
            old = placement.file_slice
            if old is None and not hooked:
                yield InsertTask(self.facts, index, placement.partition_path, placement.file_id)
            elif old is not None and placement.fill is Fill.EXTEND:
                yield ExtendTask(self.facts, index, old, self._read_info(old), self._read_options)
            elif old is None or placement.fill is Fill.MERGE or not self.snapshot.config.is_merge_on_read:
                yield self._make_rewrite(index, placement)
            else:
                yield self._make_append(index, old, placement.positions_of, custom)

    def _make_rewrite(self, index: int, placement: FileAssignment) -> RewriteTask:
        old = placement.file_slice
        if old is None:
            old = FileSlice(placement.partition_path, placement.file_id, self.facts.instant, None, ())
        return RewriteTask(self.facts, index, old, self._read_info(old), self.merger, self._read_options)

    def _read_info(self, old: FileSlice) -> ReadInfo:
        info = self.snapshot.read_info(old).as_stored(self.facts.schema.arrow, self.facts.schema.defaults)
        return info if self.facts.schema.version is None else replace(info, mappings=self._mappings)

    @cached_property
    def _mappings(self) -> FileMappings | None:
        """How old files store the columns that the table has from this write on.

        A column that this write adds may have the name of one that was dropped or renamed, whose values are not its
        own.
        """
        query = self.facts.schema.version
        assert query is not None
        return make_mappings(
            replace(query, version=int(self.facts.instant)), load_schema_history(self.snapshot.timeline)
        )

    @property
    def _read_options(self) -> ReadOptions:
        return ReadOptions(options=self.settings.options)

    def _make_append(
        self, index: int, old: FileSlice, positions_of: str | None, custom: RecordMerger | None
    ) -> AppendTask:
        task = make_append_task(self.snapshot, self.facts, self.settings, old, index, positions_of)
        if custom is None:
            return task
        config = self.facts.config
        # The merger may look at the row of a delete, so marked deletes are written as rows, not as keys.
        rules = DeleteRules.of(self.facts.schema.arrow, config.merge_properties, self.settings.options)
        return replace(task, delete_rules=rules)


def estimate_work(task: WriteTask, placement: FileAssignment) -> int:
    """Estimate the work of a task in rows."""
    base = None if placement.file_slice is None else placement.file_slice.base_file
    old = 0 if base is None else base.whole_size
    # A rewrite also copies the old rows: about 100 bytes of base file per row.
    return (old // 100 if isinstance(task, RewriteTask | ExtendTask) else 0) + len(placement)


@watch_calls("write_file", attrgetter("facts.files"))
def run_task(task: WriteTask, records: WriteRecords, positions: np.ndarray, inserts: int) -> TaskResult:
    """Run a task.

    ``positions``: row numbers in the base file, -1 if unknown. ``inserts``: the number of records with new keys.

    Raises:
        HoodieError: the task failed. Readers do not see what it wrote.
    """
    if isinstance(task, InsertTask | ExtendTask):
        return task.run([records])
    if isinstance(task, RewriteTask):
        return task.run(records)
    return task.run(records, positions, inserts)


def _run(task: WriteTask, routed: AssignedRecords, placement: FileAssignment) -> TaskResult:
    return run_task(task, routed.get_records(placement), routed.get_positions(placement), placement.inserts)


def make_append_task(
    snapshot: Snapshot,
    facts: CommitFacts,
    settings: WriteSettings,
    file_slice: FileSlice,
    index: int,
    positions_of: str | None = None,
) -> AppendTask:
    """Return the task that adds a log file to a slice.

    ``positions_of``: the instant of the base file that row numbers refer to.
    """
    key = file_slice.partition_path, file_slice.file_id
    base = file_slice.base_file
    # A planned compaction takes only the log files that it lists, so later ones belong to the slice that it will make.
    instant = snapshot.view.visibility.find_pending_compaction(key) or file_slice.base_instant or facts.instant
    version, logs = 1, [log.name.name for log in file_slice.log_files]
    if not facts.config.cdc_enabled:  # a reader of changes needs what the planned slice is compacted from, too
        logs = [log.name.name for log in file_slice.log_files if log.name.instant == instant]
    if not facts.config.has_logs_named_by_commit:
        # Such names contain no commit, so the new log file takes the next free version.
        groups = {group.key: group for group in snapshot.view.list_file_groups([file_slice.partition_path])}
        taken = [log.name.version for log in groups[key].log_files if log.name.instant == instant]
        version = max(taken, default=0) + 1
    wanted = writes_positions(snapshot.config, settings.options)
    return AppendTask(
        facts=facts,
        index=index,
        partition_path=key[0],
        file_id=key[1],
        base_instant=instant,
        version=version,
        base_file=None if base is None else base.name,
        log_files=tuple(logs),
        positions_of=positions_of if wanted else None,
    )


def make_workload(files: Iterable[FileAssignment]) -> dict[str, tuple[WriteStat, ...]]:
    """Return the inflight file's statistics: inserts of each partition, then updates of each file group.

    The same as Hudi's ``WorkloadProfile``.
    """
    inserts: dict[str, int] = {}
    updates: dict[str, list[WriteStat]] = {}
    for each in files:
        inserts.setdefault(each.partition_path, 0)
        if each.file_slice is None:
            inserts[each.partition_path] += each.inserts
            continue
        base = each.file_slice.base_file
        filling = 0 if each.fill is Fill.NONE else each.inserts
        inserts[each.partition_path] += filling
        stat = WriteStat(
            file_id=each.file_id,
            path=None,
            prev_commit=NO_COMMIT if base is None else base.instant,
            num_update_writes=len(each) - filling,
        )
        updates.setdefault(each.partition_path, []).append(stat)
    new = {path: WriteStat(file_id="", path=None, prev_commit=NO_COMMIT, num_inserts=n) for path, n in inserts.items()}
    return {path: (stat, *updates.get(path, ())) for path, stat in new.items()}


@dataclass(frozen=True, slots=True)
class Job:
    """A task with its records. ``size`` estimates the work in rows; ``parallel``: how many requests its store takes at
    once.
    """

    run: Callable[[], TaskResult]
    size: int
    parallel: int = 1


def run_jobs(jobs: Sequence[Job], workers: int | None = None) -> list[TaskResult]:
    """Run all jobs and return their results, in any order.

    ``workers`` run at once; None: as many as there are cores, and more small jobs, which wait for a store for most of
    their time.

    Raises:
        HoodieError: a job failed. No job is running any more then.
    """
    if not jobs:
        return []
    # The largest first, so that no large job starts last and runs alone.
    ordered = sorted(jobs, key=lambda job: job.size, reverse=True)
    with ThreadPoolExecutor(workers or _choose_width(ordered), "hoodie-write") as pool:
        futures = [pool.submit(carry_span(job.run)) for job in ordered]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            for future in futures:
                future.cancel()
    failed = next((future for future in futures if not future.cancelled() and future.exception() is not None), None)
    if failed is not None:
        failed.result()
    return [future.result() for future in futures]


def _choose_width(jobs: Sequence[Job]) -> int:
    """Return how many jobs to run at once; the largest job comes first."""
    width = min(count_cores(), len(jobs))
    rows = sum(each.size for each in jobs[:width])
    while width < min(jobs[0].parallel, len(jobs)) and rows + jobs[width].size <= _MOST_ROWS:
        rows += jobs[width].size
        width += 1
    return max(1, width)
