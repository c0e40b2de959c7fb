"""Damages one file in every way and says what came of it; a process of its own, which may be killed.

``python -m tests.fuzz.damage SUBJECT KIND FIRST STOP STRIDE NOTE``: KIND is "cut" (number n leaves the first n bytes)
or "flip" (number n turns over bit n % 8 of byte n // 8). Before each case its number is written into the file NOTE, so
that whoever waits knows which case a crash belongs to. The result is one line of JSON: how many cases ended how, and
what is wrong.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from hoodie_py.errors import HoodieError
from tests.fuzz.subjects import Subject, same, subjects

CPU_SECONDS = 5  # for one case
FREE_BYTES = 200 << 20
TIMES_THE_FILE = 3
_ADDRESS_SPACE = 8 << 30  # beyond this an allocation fails, however little of it would be touched
_MOST_PROBLEMS = 20
NUMBER = struct.Struct("<q")


def damaged(data: bytes, kind: str, number: int) -> bytes:
    """The file of a case."""
    if kind == "cut":
        return data[:number]
    changed = bytearray(data)
    changed[number >> 3] ^= 1 << (number & 7)
    return bytes(changed)


def count(data: bytes, kind: str) -> int:
    """How many cases there are."""
    return len(data) if kind == "cut" else 8 * len(data)


def verdict(subject: Subject, whole: Any, kind: str, number: int) -> tuple[str, str | None]:
    """What became of a case, and what is wrong with that."""
    try:
        answer, skipped = subject.read(damaged(subject.data, kind, number))
    except HoodieError as error:
        return "refused", _out_of_memory(error)
    except Exception as error:  # this is what is looked for
        return "failed", f"{type(error).__name__}: {str(error)[:200]}"
    if skipped:
        return "skipped and reported", None
    if same(answer, whole):
        return "same answer", None
    if kind == "cut":
        return "cut between blocks", None if number in subject.ends else "lost rows in silence"
    return "another value", None if number >> 3 not in subject.framing else "took damaged framing"


def _out_of_memory(error: BaseException | None) -> str | None:
    while error is not None:
        if isinstance(error, MemoryError):
            return f"asked for too much memory: {str(error)[:100]}"
        error = error.__cause__ or error.__context__
    return None


def run(subject: Subject, kind: str, numbers: range, note: Path) -> dict[str, Any]:
    """Go through cases."""
    whole, _ = subject.read(subject.data)
    outcomes: Counter[str] = Counter()
    problems: list[tuple[int, str]] = []
    allowed = FREE_BYTES + TIMES_THE_FILE * len(subject.data)
    least = _peak()
    with note.open("r+b") as file, mmap.mmap(file.fileno(), NUMBER.size) as place:
        for number in numbers:
            NUMBER.pack_into(place, 0, number)
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            outcome, problem = verdict(subject, whole, kind, number)
            if _peak() - least > allowed:
                problem = f"took {_peak() - least >> 20} MB"
                least = _peak()
            outcomes[outcome] += 1
            if problem is not None and len(problems) < _MOST_PROBLEMS:
                problems.append((number, problem))
    return {"outcomes": outcomes, "problems": problems}


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main(arguments: list[str]) -> None:
    """Run as a process: SIGPROF ends it when a case takes too long, with the place in the code on stderr."""
    name, kind, first, stop, stride, note = arguments
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    result = run(subjects()[name], kind, range(int(first), int(stop), int(stride)), Path(note))
    print(json.dumps(result), flush=True)
    os._exit(0)  # what a library does with its threads at the end of a process is no case


if __name__ == "__main__":
    main(sys.argv[1:])
