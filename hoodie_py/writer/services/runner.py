"""Run the tasks of a table service: on threads of this process, as many as cores and memory allow, or on an engine."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol, Self, TypeVar, runtime_checkable

from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.runtime.machine import count_cores, measure_free_memory
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.writer.services.compaction_task import OnRows

_BYTES_PER_LOG_BYTE = 8  # decoded and folded log rows, against their bytes on disk
_FIXED_BYTES = 128 * 1024 * 1024
_SHARE_OF_MEMORY = 0.5

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Task(Protocol[R_co]):
    """A piece of a table service: picklable, and it may be attempted more than once."""

    @property
    def key(self) -> Hashable:
        """What tells it from the other tasks of its run."""
        ...

    @property
    def size(self) -> int:
        """Bytes of its files, a measure of the work."""
        ...

    @property
    def log_bytes(self) -> int:
        """Bytes of log files that are held in memory at the same time."""
        ...

    @property
    def info(self) -> ReadInfo:
        """Facts of the table."""
        ...

    @property
    def options(self) -> ReadOptions:
        """Options of the read."""
        ...

    @property
    def merger(self) -> Merger | None:
        """The merger that is used instead of the table's."""
        ...

    def with_merger(self, merger: Merger | None) -> Self:
        """Return the task with another merger."""
        ...

    def run(self, on_rows: OnRows | None = None) -> R_co:
        """Do the work. Errors are those of the task."""
        ...


@runtime_checkable
class Runner(Protocol):
    """Runs tasks: on threads of this process, or on the workers of an engine."""

    def run(self, tasks: Sequence[Task[R]], on_rows: OnRows) -> Iterator[R]:
        """Yield the result of each task when it ends; a task may be attempted more than once.

        Raises:
            HoodieError: a task failed; the other tasks have ended.
        """
        ...


class LocalRunner:
    """Threads of this process. Without ``workers`` as many as cores and memory allow; ``memory`` is in bytes, None for
    what is free now.
    """

    def __init__(self, workers: int | None = None, memory: int | None = None) -> None:
        self._workers = workers
        self._memory = memory

    def run(self, tasks: Sequence[Task[R]], on_rows: OnRows) -> Iterator[R]:
        """Yield results in the order in which tasks end; after a failure no task begins."""
        width = self._workers or self._count_workers(tasks)
        with ThreadPoolExecutor(max(1, min(width, len(tasks))), "hoodie-compaction") as pool:
            waiting: set[Future[R]] = {pool.submit(carry_span(task.run), on_rows) for task in tasks}
            try:
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                for future in waiting:
                    future.cancel()

    def _count_workers(self, tasks: Sequence[Task[R]]) -> int:
        largest = max((task.log_bytes for task in tasks), default=0)
        needed = _FIXED_BYTES + _BYTES_PER_LOG_BYTE * largest
        memory = self._memory if self._memory is not None else measure_free_memory()
        return max(1, min(count_cores(), int(memory * _SHARE_OF_MEMORY) // needed))
