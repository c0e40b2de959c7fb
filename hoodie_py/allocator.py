"""Where the memory of a process comes from: Arrow's allocator, and how many heaps the threads of the process share.

Of the two allocators that Arrow's wheels bring, jemalloc keeps much less of what was freed than mimalloc, the default,
and gives pages back without fetching them again at once.  Both jemalloc and glibc, whose memory NumPy and Arrow's small
objects use, give each thread heaps of its own; what one thread freed then lies idle while another needs as much.
Threads that read file slices do their large steps in turn, so two of them share a heap of jemalloc.  Of glibc's there
is one for every core: with fewer, threads wait for each other at every small object (docs/memory.md).
"""

from __future__ import annotations

import ctypes
import os
import sys

CHOICE = "ARROW_DEFAULT_MEMORY_POOL"
JEMALLOC = "JE_ARROW_MALLOC_CONF"
_GLIBC = "CS_GNU_LIBC_VERSION"
_ARENA_MAX = -8  # of mallopt, in malloc.h
_CORES_A_HEAP = 2  # of Arrow's


def settle_allocators() -> None:
    """Have Arrow take jemalloc, and threads share heaps, but for what the environment settles and, of Arrow, what was
    settled when pyarrow was imported before.

    Processes that are started later inherit Arrow's choice. Builds of Arrow for other systems than Linux with glibc may
    lack jemalloc, and warn where it is asked for: they are left alone.
    """
    if sys.platform != "linux" or _GLIBC not in os.confstr_names:
        return
    cores = len(os.sched_getaffinity(0))
    heaps = max(1, cores // _CORES_A_HEAP)
    if "MALLOC_ARENA_MAX" not in os.environ and "arena_max" not in os.environ.get("GLIBC_TUNABLES", ""):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, cores)
    if "pyarrow" not in sys.modules:
        os.environ.setdefault(CHOICE, "jemalloc")
        os.environ.setdefault(JEMALLOC, f"narenas:{heaps},tcache:false,muzzy_decay_ms:0")
