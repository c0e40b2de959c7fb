"""Where the memory of a process comes from: what a program may settle, and importing this package never does.

Arrow's own allocator, mimalloc, is quick with values of every size, and keeps much of what was freed: what one thread
gave back lies idle while another needs as much. glibc's takes no more time for narrow tables and a quarter less memory,
and for wide values a little more time (docs/memory.md). It gives threads heaps of their own, too, up to eight for a
core; with one for each core they share, and do not wait for each other.
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
    """Have Arrow and NumPy share the heaps of the C library, one for each core, for less memory.

    For programs that are about reading and writing tables, as the ``hoodie`` command is. Call it before pyarrow is
    imported, as Arrow looks at the environment then; processes that are started later inherit its choice. What the
    environment says already stays, and nothing is changed where the C library is not glibc.
    """
    if sys.platform != "linux" or _GLIBC not in os.confstr_names:
        return
    if "MALLOC_ARENA_MAX" not in os.environ and "arena_max" not in os.environ.get("GLIBC_TUNABLES", ""):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, count_cores())
    if "pyarrow" not in sys.modules:
        os.environ.setdefault(CHOICE, "system")
