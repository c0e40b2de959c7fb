"""Which allocator Arrow takes: a choice that it reads once, when pyarrow is imported.

Of the two that Arrow's wheels bring, jemalloc keeps much less of what was freed than mimalloc, the default, and gives
pages back without fetching them again at once.  A merge allocates and frees the columns of batch after batch, so this
is a quarter of its memory and a tenth of its time (docs/memory.md).  Scikit-learn settles its OpenMP runtime so.
"""

from __future__ import annotations

import os
import sys

CHOICE = "ARROW_DEFAULT_MEMORY_POOL"
_GLIBC = "CS_GNU_LIBC_VERSION"


def prefer_jemalloc() -> None:
    """Have Arrow take jemalloc, unless the environment names another allocator or pyarrow was imported before.

    Processes that are started later inherit the choice. Builds of Arrow for other systems than Linux with glibc may
    lack jemalloc, and warn where it is asked for: they are left alone.
    """
    if sys.platform == "linux" and _GLIBC in os.confstr_names and "pyarrow" not in sys.modules:
        os.environ.setdefault(CHOICE, "jemalloc")
