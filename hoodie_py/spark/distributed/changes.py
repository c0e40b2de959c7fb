"""Updates and merges on the workers of a Spark session: they read the file groups, compute changes and write files.

Each file slice is read twice: first to find what changes, then, once the commit has begun, for the rows to write.
Nothing is shuffled. The rows of a merge's source are in the driver's memory and go to all workers. The driver looks up
new keys, writes the files that have only new rows, and commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.reader.merge.merger import Merger
from hoodie_py.spark.attempts import (
    OUTCOME,
    count_tries,
    iterate_numbers,
    make_numbers,
    pack,
    run_for_outcome,
    run_job,
    unpack_once,
    unpack_outcome,
)
from hoodie_py.spark.mergers import load_mergers, pack_mergers
from hoodie_py.spark.process import freeze_imports
from hoodie_py.spark.types import as_spark_schema
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.dml.changes import RowChanges, choose_batch_rows, compute_changes, read_changes
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.handles.merge import RewriteTask
from hoodie_py.writer.pipeline.engine import ChangedGroup, Work
from hoodie_py.writer.pipeline.tasks import Job, run_jobs


@dataclass(frozen=True, slots=True)
class _Examined:
    """What changes in one slice. ``matched``: numbers of the source's rows that matched."""

    updates: int
    deletes: int
    moved: tuple[pa.Table, ...]
    matched: np.ndarray


@dataclass(frozen=True, slots=True)
class _Reads:
    """What workers read: the changes to compute, and the tasks of slices."""

    changes: RowChanges
    tasks: tuple[ScanTask, ...]
    packed_merger: bytes

    def get_task(self, number: int) -> ScanTask:
        """Return a task with its merger."""
        return replace(self.tasks[number], merger=next(iter(load_mergers(self.packed_merger)), None))


@dataclass(frozen=True, slots=True, repr=False)
class ExamineSlices:
    """Computes on a worker what changes: row i of the input stands for slice i. ``packed`` is a ``_Reads``."""

    packed: bytes
    attempts: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pa.set_cpu_count(1)  # Spark gives a task one core
        for number in iterate_numbers(batches):
            yield run_for_outcome(partial(self._examine, number), self.attempts)
        freeze_imports()

    def _examine(self, number: int) -> _Examined:
        reads: _Reads = unpack_once(self.packed)
        changes, task = reads.changes, reads.get_task(number)
        if changes.source is not None:  # the worker's copy is shared by its tasks
            changes.source.matched[:] = False
        updates, deletes, moved, held = 0, 0, list[pa.Table](), list[pa.RecordBatch]()

        def handle() -> tuple[int, int]:
            found = compute_changes(changes, task, held) if held else []
            held.clear()
            moved.extend(each.moved for each in found if each.moved.num_rows)
            dead = sum(pc.sum(each.deletes).as_py() or 0 for each in found)
            return sum(len(each.keys) for each in found) - dead, dead

        for batch in task.to_batches():
            held.append(batch)
            if sum(each.num_rows for each in held) >= choose_batch_rows(changes):
                more = handle()
                updates, deletes = updates + more[0], deletes + more[1]
        more = handle()
        matched = np.empty(0, np.int64) if changes.source is None else np.flatnonzero(changes.source.matched)
        return _Examined(updates + more[0], deletes + more[1], tuple(moved), matched)


@dataclass(frozen=True, slots=True, repr=False)
class WriteChanges:
    """Writes the changed rows of file groups on a worker: row i of the input stands for file i.

    ``packed``: a ``_Reads``. ``packed_work``: for each file the number of its slice and its ``Work``.
    """

    packed: bytes
    packed_work: bytes
    attempts: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pa.set_cpu_count(1)  # Spark gives a task one core
        for number in iterate_numbers(batches):
            yield run_for_outcome(partial(self._write, number), self.attempts)
        freeze_imports()

    def _write(self, number: int) -> TaskResult:
        reads: _Reads = unpack_once(self.packed)
        at, work = unpack_once(self.packed_work)[number]
        task = reads.get_task(at)
        if isinstance(work.task, RewriteTask):
            work = replace(work, task=replace(work.task, merger=task.merger))
        done: TaskResult = work.run(read_changes(reads.changes, task, work.ordering))
        return done


class SparkChanges:
    """What changes in the slices of tasks, found by workers and written by workers (``Changes``)."""

    def __init__(self, spark: Any, changes: RowChanges, tasks: Sequence[ScanTask], merger: Merger | None) -> None:
        self._spark = spark
        self._attempts = count_tries(spark)
        self._tag = f"hoodie-change-{uuid4().hex}"
        bare = tuple(replace(each, merger=None) for each in tasks)
        self._packed = pack(_Reads(changes, bare, pack_mergers([] if merger is None else [merger])))
        self._slices: dict[GroupKey, int] = {}
        self.groups: dict[GroupKey, ChangedGroup] = {}
        self.moved: list[pa.Table] = []
        examined = self._run(ExamineSlices(self._packed, self._attempts), len(tasks))
        for number, (task, found) in enumerate(zip(tasks, examined, strict=True)):
            key = task.file_slice.partition_path, task.file_slice.file_id
            if found.updates or found.deletes:
                self.groups[key] = ChangedGroup(task.file_slice, updates=found.updates, deletes=found.deletes)
                self._slices[key] = number
            self.moved += found.moved
            if changes.source is not None:
                changes.source.matched[found.matched] = True

    def write(self, work: Sequence[Work]) -> Sequence[TaskResult]:
        """As ``Changes.write``; the driver writes files that have only new rows."""
        here = [each for each in work if not each.changes]
        there = [(self._slices[each.task.group], _without_merger(each)) for each in work if each.changes]
        results = self._run(WriteChanges(self._packed, pack(there), self._attempts), len(there))
        return [*results, *run_jobs([Job(partial(each.run, None), each.rows) for each in here])]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _run(self, step: Any, count: int) -> list[Any]:
        """Return the outcomes of a step's pieces of work, in order."""
        if not count:
            return []
        frame = make_numbers(self._spark, count).mapInArrow(step, as_spark_schema(OUTCOME))
        with run_job(self._spark, self._tag, "write"):
            rows = list(frame.collect())
        return [unpack_outcome(row) for row in rows]


def _without_merger(work: Work) -> Work:
    return replace(work, task=replace(work.task, merger=None)) if isinstance(work.task, RewriteTask) else work
