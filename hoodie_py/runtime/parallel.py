"""Run small jobs on several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hoodie_py.runtime.telemetry import carry_span

T = TypeVar("T")


def run_in_order(jobs: Sequence[Callable[[], T]], threads: int) -> list[T]:
    """Run jobs, several at a time, and return their results in order. The first error is raised; waiting jobs are
    dropped.
    """
    if threads < 2 or len(jobs) < 2:
        return [job() for job in jobs]
    with ThreadPoolExecutor(min(threads, len(jobs)), "hoodie-metadata") as pool:
        futures = [pool.submit(carry_span(job)) for job in jobs]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
