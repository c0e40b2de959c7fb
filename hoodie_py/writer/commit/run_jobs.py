"""Run the tasks of a write in threads of this process, at most one for each core, the largest tasks first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass

from hoodie_py.runtime.machine import count_cores
from hoodie_py.writer.handles.result import TaskResult


@dataclass(frozen=True, slots=True)
class Job:
    """A task with its records; ``size`` is a measure of the work."""

    run: Callable[[], TaskResult]
    size: int


def run_jobs(jobs: Sequence[Job], workers: int | None = None) -> list[TaskResult]:
    """Run all jobs and return their results, in any order.

    Raises:
        HoodieError: a job failed. No job runs any more.
    """
    if not jobs:
        return []
    ordered = sorted(jobs, key=lambda job: job.size, reverse=True)
    with ThreadPoolExecutor(max(1, min(workers or count_cores(), len(jobs))), "hoodie-write") as pool:
        futures = [pool.submit(job.run) for job in ordered]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            for future in futures:
                future.cancel()
    failed = next((future for future in futures if not future.cancelled() and future.exception() is not None), None)
    if failed is not None:
        failed.result()
    return [future.result() for future in futures]
