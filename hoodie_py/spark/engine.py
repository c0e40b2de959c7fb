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
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from pyspark.util import inheritable_thread_target

from hoodie_py.reader.merge.registry import find_supplied_merger
from hoodie_py.spark.attempts import OUTCOME, count_tries, make_numbers, run_job, unpack_outcome
from hoodie_py.spark.distributed.changes import SparkChanges
from hoodie_py.spark.distributed.jobs import FrameJobs
from hoodie_py.spark.distributed.rows import FrameRows
from hoodie_py.spark.distributed.service_job import JOBS, ServiceJob, split_tasks
from hoodie_py.spark.mergers import pack_mergers
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
        jobs = [ServiceJob.from_tasks(each, packed_merger, attempts) for each in split_tasks(tasks)]
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

    def _run_job(self, job: ServiceJob, tag: str) -> list[Any]:
        """Run a job; each job has its own thread."""
        with run_job(self._spark, tag, "compaction"):
            return list(make_numbers(self._spark, job.count).mapInArrow(job, as_spark_schema(OUTCOME)).collect())


def _pack_merger(task: Task[Any]) -> bytes:
    """Pack the merger of a compaction; all its tasks have the same one."""
    merger = find_supplied_merger(task.info.config, task.options.options, task.merger)
    return pack_mergers([] if merger is None else [merger])
