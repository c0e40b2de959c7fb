"""Many who want one lock: threads, and processes. What they guard is a counter that no two may change at once."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hoodie_py.writer.lock.lock import Lock, hold

WAIT = 60.0


def add_up(make: Callable[[], Lock], counter: Path, rounds: int) -> None:
    """Add to the counter, giving others every chance to do so in between."""
    for _ in range(rounds):
        with hold(make(), WAIT) as holding:
            value = int(counter.read_text())
            time.sleep(0.002)
            holding.ensure_held()
            counter.write_text(str(value + 1))


def race_threads(make: Callable[[], Lock], counter: Path, workers: int = 4, rounds: int = 5) -> int:
    counter.write_text("0")
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(add_up, make, counter, rounds) for _ in range(workers)]:
            done.result()
    return int(counter.read_text())


def race_processes(make: Callable[[], Lock], counter: Path, workers: int = 3, rounds: int = 5) -> int:
    """``make`` must be picklable."""
    counter.write_text("0")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=add_up, args=(make, counter, rounds)) for _ in range(workers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    return int(counter.read_text())
