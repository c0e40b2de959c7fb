"""LocalRunner: runs compaction tasks on threads of this process, as many as cores and memory allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol, runtime_checkable

from hoodie_py.runtime.machine import count_cores, measure_free_memory
from hoodie_py.writer.compaction.task import CompactionTask, OnRows
from hoodie_py.writer.handles.data_file import TaskResult

_BYTES_PER_LOG_BYTE = 8  # decoded and folded log rows, against their bytes on disk
_FIXED_BYTES = 128 * 1024 * 1024
_SHARE_OF_MEMORY = 0.5


@runtime_checkable
class Runner(Protocol):
    """Runs tasks: on threads of this process, or on the workers of an engine."""

    def run(self, tasks: Sequence[CompactionTask], on_rows: OnRows) -> Iterator[TaskResult]:
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

    def run(self, tasks: Sequence[CompactionTask], on_rows: OnRows) -> Iterator[TaskResult]:
        """Yield results in the order in which tasks end; after a failure no task begins."""
        width = self._workers or self._count_workers(tasks)
        with ThreadPoolExecutor(max(1, min(width, len(tasks))), "hoodie-compaction") as pool:
            waiting: set[Future[TaskResult]] = {pool.submit(task.run, on_rows) for task in tasks}
            try:
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                for future in waiting:
                    future.cancel()

    def _count_workers(self, tasks: Sequence[CompactionTask]) -> int:
        largest = max((task.log_bytes for task in tasks), default=0)
        needed = _FIXED_BYTES + _BYTES_PER_LOG_BYTE * largest
        memory = self._memory if self._memory is not None else measure_free_memory()
        return max(1, min(count_cores(), int(memory * _SHARE_OF_MEMORY) // needed))
