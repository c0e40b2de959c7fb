"""The time of a tree of processes includes those that have ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.processes import PeakMemory, tree_memory, tree_seconds

# More than the tests ask for, as ticks are rounded down for each process.
BURN = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
FORGETFUL = f"""
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    {BURN.replace(chr(10), chr(10) + "    ")}
    os._exit(0)
time.sleep(0.1)
for _ in range(600):
    if not open(f"/proc/self/task/{{os.getpid()}}/children").read():
        break
    time.sleep(0.05)
print("ended", flush=True)
sys.stdin.read()
"""
COUNTING = Path(__file__).with_name("count_children")

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="NOT TESTED: there is no /proc")


@pytest.mark.parametrize(("path", "counted"), [(str(COUNTING), True), ("", False)], ids=["counting", "as it is"])
def test_ended_workers_of_a_daemon_that_ignores_them_count_with_our_hook(path: str, counted: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORGETFUL],
        env={"PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ended\n"
        assert (tree_seconds(process.pid) >= 0.4) == counted


def test_living_children_count() -> None:
    child = f"{BURN}\nprint(1, flush=True)\ninput()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        with PeakMemory(process.pid) as peak:
            assert tree_seconds(process.pid) >= 0.4
            now = tree_memory(process.pid)
            while peak.bytes == 0:
                pass
        assert peak.bytes >= now / 2 > 1 << 20
        process.stdin.write("\n")
