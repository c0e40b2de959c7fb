"""The tasks of a table service on workers, in a module that imports little: a new worker imports it first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from hoodie_py.spark.attempts import iterate_numbers, pack, run_for_outcome, unpack_once
from hoodie_py.spark.mergers import load_mergers
from hoodie_py.spark.process import freeze_imports

if TYPE_CHECKING:
    from hoodie_py.writer.services.service_run import Task

JOBS = 16  # most jobs at the same time
JOB_BYTES = 512 << 20  # least bytes that a job reads: planning a job costs up to a second of processor time
LARGEST_JOB = 256  # most file groups in a job

R = TypeVar("R")


@dataclass(frozen=True, slots=True, repr=False)
class ServiceJob:
    """Compaction tasks for workers: row i of the input stands for task i. Its repr shows no storage options.

    ``packed``: the tasks without their merger. ``packed_merger``: empty for none.
    """

    packed: bytes
    count: int
    packed_merger: bytes
    attempts: int

    @classmethod
    def from_tasks(cls, tasks: Sequence[Task[Any]], packed_merger: bytes, attempts: int) -> ServiceJob:
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
        return f"ServiceJob({self.count} file groups)"


def split_tasks(tasks: Sequence[Task[R]]) -> list[Sequence[Task[R]]]:
    """Divide tasks among jobs, keeping their order. A job has several file groups only if they are small."""
    worth = sum(task.size for task in tasks) // JOB_BYTES
    size = min(LARGEST_JOB, -(-len(tasks) // max(1, min(JOBS, worth))))
    return [tasks[start : start + size] for start in range(0, len(tasks), size)]
