"""Running measured processes, and what the kernel says of a tree of them."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from tests.benchmarks.job import Job, ReadSample

ROOT = Path(__file__).resolve().parent.parent.parent
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PARENT, _TIMES, _RESIDENT = 1, slice(11, 15), 21  # fields of /proc/PID/stat behind the command's name


def run_job(job: Job, env: Mapping[str, str] | None = None) -> ReadSample:
    """Do a job in a process of its own, with further variables in its environment.

    Raises:
        RuntimeError: it failed; the text has its last words.
    """
    arguments = job.to_json(), str(time.monotonic())
    return ReadSample(**answer_of(f"{job.name} on {job.table}", "tests.benchmarks.child", *arguments, env=env))


def answer_of(what: str, module: str, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
    """Run a module in a process of its own and return the JSON of the last line that it prints.

    Raises:
        RuntimeError: ``what`` it is about failed; the text has its last words.
    """
    command = [sys.executable, "-m", module, *arguments]
    variables = {**os.environ, **(env or {})}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{what} failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def import_seconds(modules: str, rounds: int) -> float:
    """Return the median processor time of a process that imports ``modules`` and ends."""

    def once() -> float:
        before = os.times()
        subprocess.run([sys.executable, "-c", f"import {modules}"], cwd=ROOT, check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    once()
    return statistics.median(once() for _ in range(rounds))


def interleaved(jobs: Sequence[Job], rounds: int, say: Callable[[str], None]) -> dict[str, list[ReadSample]]:
    """Do all jobs in turn, ``rounds`` times over; sums are checked in the first round."""
    samples: dict[str, list[ReadSample]] = defaultdict(list)
    for turn in range(rounds):
        for job in jobs:
            this = Job(**{**job.__dict__, "check": turn == 0})
            samples[job.name].append(run_job(this))
            last = samples[job.name][-1]
            say(f"round {turn + 1}/{rounds}  {job.table:9} {job.name:34} cpu {last.cpu:6.2f}  wall {last.wall:6.2f}")
    return dict(samples)


def _stats() -> dict[int, list[str]]:
    """Return the fields of every process's /proc/PID/stat."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):  # it ended meanwhile
                found[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
    return found


def _tree(stats: dict[int, list[str]], root: int) -> Iterable[list[str]]:
    children = defaultdict(list)
    for pid, fields in stats.items():
        children[int(fields[_PARENT])].append(pid)
    left = [root]
    while left:
        pid = left.pop()
        if pid in stats:
            yield stats[pid]
        left += children[pid]


def tree_seconds(root: int) -> float:
    """Return user and system time of a process and all below it, also of those that ended and were waited for."""
    return sum(int(ticks) for fields in _tree(_stats(), root) for ticks in fields[_TIMES]) / _TICK


def tree_memory(root: int) -> int:
    """Return the resident bytes of a process and all below it; pages that they share count more than once."""
    return sum(int(fields[_RESIDENT]) for fields in _tree(_stats(), root)) * _PAGE


class PeakMemory:
    """The most resident memory of a tree of processes while a ``with`` block runs, by looking every 50 ms."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.bytes = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.05):
            self.bytes = max(self.bytes, tree_memory(self._root))


def machine() -> dict[str, str]:
    """Describe the machine as far as it matters for figures, without its name."""
    cpu = platform.processor() or platform.machine()
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    memory = os.sysconf("SC_PHYS_PAGES") * _PAGE / (1 << 30)
    return {
        "processor": cpu,
        "processors": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "system": platform.system(),
        "python": platform.python_version(),
    }


def load() -> float:
    """Return the mean number of running processes over the last minute."""
    return os.getloadavg()[0]
