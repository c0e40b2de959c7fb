"""Choose the allocators of a process, to save memory. Only programs do that; importing this package changes nothing.

Arrow's own allocator, mimalloc, is fast for values of every size, but each thread keeps much of the memory that it
freed while other threads allocate more. glibc's allocator needs a quarter less memory, no more time for narrow tables,
and a little more time for wide values (docs/memory.md). By default glibc makes up to eight heaps per core. With one
heap per core threads share memory, and still do not wait for each other.
"""

from __future__ import annotations

import ctypes
import os
import sys

from hoodie_py.runtime.machine import count_cores

CHOICE = "ARROW_DEFAULT_MEMORY_POOL"
_GLIBC = "CS_GNU_LIBC_VERSION"
_ARENA_MAX = -8  # of mallopt, in malloc.h


def settle_allocators() -> None:
    """Make Arrow and NumPy share the heaps of the C library, one per core.

    For programs whose work is reading and writing tables, like the ``hoodie`` command. Call it before pyarrow is
    imported: Arrow reads the environment then, and processes started later inherit the choice. Settings in the
    environment take precedence. Without glibc nothing changes.
    """
    if sys.platform != "linux" or _GLIBC not in os.confstr_names:
        return
    if "MALLOC_ARENA_MAX" not in os.environ and "arena_max" not in os.environ.get("GLIBC_TUNABLES", ""):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, count_cores())
    if "pyarrow" not in sys.modules:
        os.environ.setdefault(CHOICE, "system")
