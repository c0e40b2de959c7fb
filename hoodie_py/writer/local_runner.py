"""Run compaction tasks in this process: threads, as many as cores and memory allow, the largest tasks first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol, runtime_checkable

from hoodie_py.runtime.machine import count_cores, measure_free_memory
from hoodie_py.writer.compaction_task import CompactionTask, OnRows, TaskResult

_BYTES_PER_LOG_BYTE = 8  # decoded and folded log rows, against their bytes on disk
_FIXED_BYTES = 128 * 1024 * 1024
_SHARE_OF_MEMORY = 0.5


@runtime_checkable
class Runner(Protocol):
    """What carries out tasks: threads here, an engine's workers elsewhere."""

    def run(self, tasks: Sequence[CompactionTask], on_rows: OnRows) -> Iterator[TaskResult]:
        """Yield the result of each task as it becomes known; tasks may be attempted more than once.

        Raises:
            HoodieError: a task failed; none is running any more.
        """
        ...


class LocalRunner:
    """Threads of this process.

    Args:
        workers: most tasks at once; None for as many as cores and memory allow.
        memory: bytes of memory to plan with; None for what the machine has free.
    """

    def __init__(self, workers: int | None = None, memory: int | None = None) -> None:
        self._workers = workers
        self._memory = memory

    def run(self, tasks: Sequence[CompactionTask], on_rows: OnRows) -> Iterator[TaskResult]:
        """Yield results in the order in which tasks end; after a failure no further task begins."""
        width = self._workers or self._count_workers(tasks)
        with ThreadPoolExecutor(max(1, min(width, len(tasks))), "hoodie-compaction") as pool:
            waiting: set[Future[TaskResult]] = {pool.submit(_run_task, task, on_rows) for task in tasks}
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


def _run_task(task: CompactionTask, on_rows: Callable[[int], None]) -> TaskResult:
    return task.run(on_rows)
