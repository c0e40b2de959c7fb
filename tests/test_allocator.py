"""Which allocator Arrow has in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hoodie_py.allocator import CHOICE

_SAY = "print(pyarrow.default_memory_pool().backend_name)"
_GLIBC = sys.platform == "linux" and "CS_GNU_LIBC_VERSION" in os.confstr_names


def allocator_after(code: str, choice: str | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != CHOICE}
    if choice is not None:
        environment[CHOICE] = choice
    command = [sys.executable, "-W", "error", "-c", f"{code}\n{_SAY}"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return run.stdout.strip()


@pytest.mark.smoke
@pytest.mark.skipif(not _GLIBC, reason="NOT TESTED: Arrow brings jemalloc to Linux with glibc alone")
def test_arrow_takes_jemalloc_where_it_comes_after_hoodie_py() -> None:
    assert allocator_after("import hoodie_py, pyarrow") == "jemalloc"


def test_a_choice_of_the_environment_is_kept() -> None:
    assert allocator_after("import hoodie_py, pyarrow", "system") == "system"


def test_nothing_is_changed_where_pyarrow_came_first() -> None:
    own = allocator_after("import pyarrow")
    assert allocator_after(f"import os, pyarrow, hoodie_py\nassert {CHOICE!r} not in os.environ") == own
