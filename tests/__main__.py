"""All tests: those without a JVM on all processors and, beside them, those that share one Spark, then one Java Hudi.

A JVM spends much of its time waiting, so the two chains take little longer than the first alone.  What the second one
prints comes at the end.  Further variants of long tests, marked thorough, are left to `make thorough`.

    python -m tests [arguments for pytest]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO

# One process more than processors, as a third of the time is waiting for clocks, servers and other processes. The
# slowest tests come last; a process that has none left takes some of another's.
_PROCESSES = min(6, (os.cpu_count() or 1) + 1)
_PLAIN = ("-n", str(_PROCESSES), "--dist", "worksteal", "-m", "not spark and not java and not thorough")
_WITH_JVM = (("-m", "spark and not thorough"), ("-m", "java and not slow and not thorough"))
_NONE_SELECTED = 5  # pytest's status


def run_pytest(chosen: Sequence[str], given: Sequence[str], into: IO[str] | None = None) -> int:
    """Run pytest in a process of its own and return its status."""
    command = [sys.executable, "-m", "pytest", *chosen, *given]
    return subprocess.run(command, stdout=into, stderr=into and subprocess.STDOUT, check=False).returncode


def run_all(given: Sequence[str]) -> list[int]:
    """Run both chains and return the status of each run."""
    given_up = threading.Event()
    with tempfile.TemporaryFile("w+") as printed, ThreadPoolExecutor(1) as beside:
        rest = beside.submit(lambda: [run_pytest(each, given, printed) for each in _WITH_JVM if not given_up.is_set()])
        try:
            statuses = [run_pytest(_PLAIN, given)]
            if not rest.done():
                print("\nThe tests that use a JVM are still running.", flush=True)
            statuses += rest.result()
        except KeyboardInterrupt:  # which every process has got; no further one is started
            given_up.set()
            raise
        printed.seek(0)
        shutil.copyfileobj(printed, sys.stdout)
    return statuses


def main(given: Sequence[str]) -> int:
    """Return the first status that is a failure; pytest's own for "none selected" if no run had a test."""
    statuses = run_all(given)
    failures = [status for status in statuses if status not in {0, _NONE_SELECTED}]
    return failures[0] if failures else min(statuses)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
