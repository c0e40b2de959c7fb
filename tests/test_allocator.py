"""Which allocator Arrow has in a fresh process, and how many heaps its threads share."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hoodie_py.allocator import CHOICE, JEMALLOC

_SAY = "print(pyarrow.default_memory_pool().backend_name)"
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
    environment = {name: value for name, value in os.environ.items() if name not in {CHOICE, JEMALLOC}} | settings
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return run.stdout.strip()


def allocator_after(code: str, choice: str | None = None) -> str:
    return said_by(f"{code}\n{_SAY}", **({} if choice is None else {CHOICE: choice}))


@pytest.mark.smoke
@pytest.mark.skipif(not _GLIBC, reason="NOT TESTED: Arrow brings jemalloc to Linux with glibc alone")
def test_arrow_takes_jemalloc_where_it_comes_after_hoodie_py() -> None:
    assert allocator_after("import hoodie_py, pyarrow") == "jemalloc"


def test_a_choice_of_the_environment_is_kept() -> None:
    assert allocator_after("import hoodie_py, pyarrow", "system") == "system"


def test_nothing_is_changed_where_pyarrow_came_first() -> None:
    own = allocator_after("import pyarrow")
    assert (
        allocator_after(f"import os, pyarrow, hoodie_py\nassert not {{{CHOICE!r}, {JEMALLOC!r}}} & set(os.environ)")
        == own
    )


@pytest.mark.skipif(not _GLIBC, reason="NOT TESTED: heaps are those of glibc")
def test_there_are_no_more_heaps_than_cores_unless_the_environment_says_how_many() -> None:
    cores = len(os.sched_getaffinity(0))
    assert int(said_by(f"import hoodie_py\n{_HEAPS}")) == min(cores, 13)
    assert int(said_by(f"import hoodie_py\n{_HEAPS}", MALLOC_ARENA_MAX="5")) == 5
    assert int(said_by(f"import hoodie_py\n{_HEAPS}", GLIBC_TUNABLES="glibc.malloc.arena_max=4")) == 4
    setting = f"import os, hoodie_py; print(os.environ[{JEMALLOC!r}])"
    assert said_by(setting) == f"narenas:{max(1, cores // 2)},tcache:false,muzzy_decay_ms:0"
    assert said_by(setting, **{JEMALLOC: "narenas:3"}) == "narenas:3"
