"""SparkEngine: the workers of a Spark session do the work of writes and table services; the driver commits.

A write's rows, and the rows that an update changes, stay with the workers (``distributed``). Of a compaction or
clustering each file group, or set of groups, is a Spark task (Java: ``HoodieCompactor`` and
``RunCompactionActionExecutor`` of hudi-client).

The largest file groups come first. They are divided among a few Spark jobs that run at the same time. Spark returns the
rows of a job only when the whole job is done, so several jobs give results, errors and progress while the compaction
runs. Only DataFrames are used, so classic and Connect sessions behave alike.

Spark may retry a task, or run two copies of it. Each attempt writes a file with its own name and reports it. The driver
commits the reported files and removes the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

import pyarrow as pa
from pyspark.util import inheritable_thread_target

from hoodie_py.reader.merge.registry import find_supplied_merger
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
from hoodie_py.spark.distributed.changes import SparkChanges
from hoodie_py.spark.distributed.jobs import FrameJobs
from hoodie_py.spark.distributed.rows import FrameRows
from hoodie_py.spark.mergers import load_mergers, pack_mergers
from hoodie_py.spark.process import freeze_imports
from hoodie_py.spark.types import as_arrow_schema, as_spark_schema
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.writer.dml.changes import RowChanges
from hoodie_py.writer.pipeline.engine import Changes, Rows, Target
from hoodie_py.writer.services.compaction_task import OnRows
from hoodie_py.writer.services.service_run import R, Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hoodie_py.writer.services.service_run import Runner

    EngineChoice = Runner | SparkSession

JOBS = 16  # most jobs at the same time
JOB_BYTES = 512 << 20  # least bytes that a job reads: planning a job costs up to a second of processor time
LARGEST_JOB = 256  # most file groups in a job


class SparkEngine:
    """The workers of a Spark session, classic or Connect (``Engine``).

    They need this package and access to the table. The driver sends them the merger: the given one, or the one that it
    finds for the table. ``jobs``: the jobs of a write.
    """

    jobs: ClassVar[type[FrameJobs]] = FrameJobs

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, tasks: Sequence[Task[R]], on_rows: OnRows) -> Iterator[R]:
        """Yield the result of each task when its job is done.

        ``on_rows`` is never called, as Spark reports no rows before a task ends; the results count them.

        Raises:
            HoodieError: a task failed, or Spark did not run it. The other jobs are cancelled.
        """
        if not tasks:
            return
        packed_merger, attempts = _pack_merger(tasks[0]), count_tries(self._spark)
        jobs = [_Job.from_tasks(each, packed_merger, attempts) for each in split_tasks(tasks)]
        tag = f"hoodie-compaction-{uuid4().hex}"
        inherit = inheritable_thread_target(self._spark)
        with ThreadPoolExecutor(min(len(jobs), JOBS), "hoodie-compaction") as pool:
            waiting = [pool.submit(inherit(self._run_job), job, tag) for job in jobs]
            try:
                for future in as_completed(waiting):
                    yield from map(unpack_outcome, future.result())
            # Also if the caller gives up: closing the generator raises GeneratorExit here.
            except BaseException:
                for future in waiting:
                    future.cancel()
                self._spark.interruptTag(tag)
                raise

    def list_columns(self, data: Any, target: Target) -> tuple[Any, Sequence[str]]:
        """As ``Engine.list_columns``; the data is a DataFrame."""
        del target
        return data, data.columns

    def key(self, data: Any, target: Target) -> Rows:
        """As ``Engine.key``; the data is a DataFrame."""
        return FrameRows(self.jobs(self._spark, data), as_arrow_schema(data.schema), target)

    def find_changes(self, changes: RowChanges, tasks: Sequence[ScanTask], target: Target) -> Changes:
        """As ``Engine.find_changes``."""
        return SparkChanges(self._spark, changes, tasks, target.merger)

    def _run_job(self, job: _Job, tag: str) -> list[Any]:
        """Run a job; each job has its own thread."""
        with run_job(self._spark, tag, "compaction"):
            return list(make_numbers(self._spark, job.count).mapInArrow(job, as_spark_schema(OUTCOME)).collect())


@dataclass(frozen=True, slots=True, repr=False)
class _Job:
    """Compaction tasks for workers: row i of the input stands for task i. Its repr shows no storage options.

    ``packed``: the tasks without their merger. ``packed_merger``: empty for none.
    """

    packed: bytes
    count: int
    packed_merger: bytes
    attempts: int

    @classmethod
    def from_tasks(cls, tasks: Sequence[Task[Any]], packed_merger: bytes, attempts: int) -> _Job:
        """Pack tasks into one pickle, in which they share common objects."""
        bare = tuple(task.with_merger(None) for task in tasks)
        return cls(pack(bare), len(tasks), packed_merger, attempts)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the tasks whose numbers come in, on a worker."""
        pa.set_cpu_count(1)  # Spark gives a task one core
        for number in iterate_numbers(batches):
            yield run_for_outcome(partial(self._run, number), self.attempts)
        freeze_imports()

    def _run(self, number: int) -> Any:
        task: Task[Any] = unpack_once(self.packed)[number]
        return task.with_merger(next(iter(load_mergers(self.packed_merger)), None)).run()

    def __repr__(self) -> str:
        return f"_Job({self.count} file groups)"


def split_tasks(tasks: Sequence[Task[R]]) -> list[Sequence[Task[R]]]:
    """Divide tasks among jobs, keeping their order. A job has several file groups only if they are small."""
    worth = sum(task.size for task in tasks) // JOB_BYTES
    size = min(LARGEST_JOB, -(-len(tasks) // max(1, min(JOBS, worth))))
    return [tasks[start : start + size] for start in range(0, len(tasks), size)]


def _pack_merger(task: Task[Any]) -> bytes:
    """Pack the merger of a compaction; all its tasks have the same one."""
    merger = find_supplied_merger(task.info.config, task.options.options, task.merger)
    return pack_mergers([] if merger is None else [merger])
