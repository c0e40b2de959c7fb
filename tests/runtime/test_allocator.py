"""Which allocator Arrow has in a fresh process, and how many heaps its threads share."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hoodie_py.runtime.allocator import CHOICE
from hoodie_py.runtime.machine import count_cores

_SAY = "print(pyarrow.default_memory_pool().backend_name)"
_SETTLE = "from hoodie_py.runtime.allocator import settle_allocators; settle_allocators()"
_GLIBC = sys.platform == "linux" and "CS_GNU_LIBC_VERSION" in os.confstr_names


_HEAPS = """
import ctypes, re, threading

def fill():
    bytearray(100_000)
    met.wait()

met = threading.Barrier(12)
threads = [threading.Thread(target=fill) for _ in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
libc = ctypes.CDLL(None)
libc.open_memstream.restype = ctypes.c_void_p
text, size = ctypes.c_char_p(), ctypes.c_size_t()
stream = ctypes.c_void_p(libc.open_memstream(ctypes.byref(text), ctypes.byref(size)))
libc.malloc_info(0, stream)
libc.fclose(stream)
print(len(re.findall(b"<heap ", text.value)))
"""


def said_by(code: str, **settings: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != CHOICE} | settings
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return run.stdout.strip()


def allocator_after(code: str, choice: str | None = None) -> str:
    return said_by(f"{code}\n{_SAY}", **({} if choice is None else {CHOICE: choice}))


@pytest.mark.smoke
def test_importing_changes_neither_allocator_nor_environment() -> None:
    own = allocator_after("import pyarrow")
    every = "import hoodie_py; [getattr(hoodie_py, name) for name in hoodie_py.__all__]"
    code = f"import os; before = dict(os.environ); {every}; import pyarrow; assert dict(os.environ) == before"
    assert allocator_after(code) == own


@pytest.mark.skipif(not _GLIBC, reason="NOT TESTED: heaps are those of glibc")
def test_importing_bounds_no_heaps() -> None:
    assert int(said_by(f"import hoodie_py\n{_HEAPS}")) == int(said_by(_HEAPS))


@pytest.mark.skipif(not _GLIBC, reason="NOT TESTED: only where the C library is glibc is its allocator taken")
def test_the_system_s_allocator_is_taken_by_who_asks_for_it() -> None:
    assert allocator_after(f"{_SETTLE}; import pyarrow") == "system"


@pytest.mark.skipif(not _GLIBC, reason="NOT TESTED: only where the C library is glibc is its allocator taken")
def test_the_command_settles_it() -> None:
    code = "from hoodie_py import cli\ntry: cli.main()\nexcept SystemExit: pass\nimport pyarrow"
    assert allocator_after(f"import sys; sys.argv[1:] = ['--version']\n{code}").splitlines()[-1] == "system"


def test_a_choice_of_the_environment_is_kept() -> None:
    assert allocator_after(f"{_SETTLE}; import pyarrow", "mimalloc") == "mimalloc"


def test_nothing_is_changed_where_pyarrow_came_first() -> None:
    own = allocator_after("import pyarrow")
    assert allocator_after(f"import os, pyarrow; {_SETTLE}\nassert {CHOICE!r} not in os.environ") == own


@pytest.mark.skipif(not _GLIBC, reason="NOT TESTED: heaps are those of glibc")
def test_there_are_no_more_heaps_than_cores_unless_the_environment_says_how_many() -> None:
    cores = count_cores()
    assert int(said_by(f"{_SETTLE}\n{_HEAPS}")) == min(cores, 13)
    assert int(said_by(f"{_SETTLE}\n{_HEAPS}", MALLOC_ARENA_MAX="5")) == 5
    assert int(said_by(f"{_SETTLE}\n{_HEAPS}", GLIBC_TUNABLES="glibc.malloc.arena_max=4")) == 4
