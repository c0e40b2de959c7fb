"""Every truncation and every flipped bit of a choice of real files: ``python -m tests.fuzz.sweep``.

Each file is damaged by processes of their own (``damage``) with limits of time and memory for a case, two at a time.
What may come of a case: a HoodieError, the answer of the whole file, a skipped block that is reported, another value
(where the flipped byte is part of a value, which carries no checksum), or the answer of a file that ends earlier (where
it was cut between two blocks). Anything else is printed and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.damage import NUMBER, count
from tests.fuzz.subjects import subjects

KINDS = ("cut", "flip")
CASES_AT_ONCE = 10_000
_LONGEST_WAIT = 1200  # seconds for a process that burns no CPU and so is not ended by its own limit


@dataclass(slots=True)
class Tally:
    """How the cases of a file ended, and what was wrong: (kind, number, what)."""

    name: str
    size: int
    outcomes: Counter[str] = field(default_factory=Counter)
    problems: list[tuple[str, int, str]] = field(default_factory=list)

    def __str__(self) -> str:
        parts = ", ".join(f"{number} {outcome}" for outcome, number in self.outcomes.most_common())
        return f"{self.name:<72}{self.size:>6} bytes: {parts}"


@dataclass(frozen=True, slots=True)
class Job:
    """Cases for one process."""

    subject: str
    kind: str
    numbers: range


def jobs(names: Sequence[str], stride: int) -> Iterator[Job]:
    """The cases of some files, every ``stride``-th of them, in handy parts."""
    for name in names:
        for kind in KINDS:
            total = count(subjects()[name].data, kind)
            thinned = stride * subjects()[name].thin
            step = thinned * CASES_AT_ONCE
            for first in range(0, total, step):
                yield Job(name, kind, range(first, min(first + step, total), thinned))


def run_job(job: Job) -> Tally:
    """Go through the cases; a process that dies is told of, and another goes on behind the case it died of."""
    tally = Tally(job.subject, len(subjects()[job.subject].data))
    first = job.numbers.start
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "note"
        while first < job.numbers.stop:
            note.write_bytes(NUMBER.pack(first))
            done = _process(job, first, note)
            if done.returncode == 0:
                result = json.loads(done.stdout)
                tally.outcomes.update(result["outcomes"])
                tally.problems += [(job.kind, number, what) for number, what in result["problems"]]
                break
            (died,) = NUMBER.unpack(note.read_bytes())
            what = f"ended with {done.returncode}: {done.stderr[-500:]}"
            tally.problems.append((job.kind, died, what))
            tally.outcomes["died"] += 1
            first = died + job.numbers.step
    return tally


def _process(job: Job, first: int, note: Path) -> subprocess.CompletedProcess[str]:
    numbers = (first, job.numbers.stop, job.numbers.step)
    command = [sys.executable, "-m", "tests.fuzz.damage", job.subject, job.kind, *map(str, numbers), str(note)]
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    root = Path(__file__).resolve().parents[2]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_LONGEST_WAIT, env=environment, cwd=root
        )
    except subprocess.TimeoutExpired as expired:
        return subprocess.CompletedProcess(command, -1, "", f"no answer after {expired.timeout} s")


def sweep(names: Sequence[str], stride: int = 1, at_once: int = 2) -> Iterator[Tally]:
    """Damage files and give a tally of each, in order."""
    with ThreadPoolExecutor(at_once) as pool:
        current: Tally | None = None
        for part in pool.map(run_job, list(jobs(names, stride))):
            if current is not None and current.name != part.name:
                yield current
                current = None
            if current is None:
                current = part
            else:
                current.outcomes.update(part.outcomes)
                current.problems += part.problems
        if current is not None:
            yield current


def main(arguments: Sequence[str] | None = None) -> int:
    """Damage files and print how it went; 1 when something is wrong."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzz.sweep", description="Damage real files in every way.")
    options.add_argument("--stride", type=int, default=1, help="take every n-th case only (default 1: all)")
    options.add_argument("--at-once", type=int, default=2, help="processes (default 2)")
    options.add_argument("names", nargs="*", help="beginnings of file names, such as log/ or timeline/ (default all)")
    chosen = options.parse_args(arguments)
    names = [name for name in subjects() if not chosen.names or name.startswith(tuple(chosen.names))]
    started = time.monotonic()
    total: Counter[str] = Counter()
    wrong = 0
    for tally in sweep(names, chosen.stride, chosen.at_once):
        print(tally, flush=True)
        for kind, number, what in tally.problems:
            print(f"    WRONG {kind} {number}: {what}", flush=True)
        total.update(tally.outcomes)
        wrong += len(tally.problems)
    parts = ", ".join(f"{number} {outcome}" for outcome, number in total.most_common())
    print(f"{total.total()} cases of {len(names)} files in {time.monotonic() - started:.0f} s: {parts}; {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
