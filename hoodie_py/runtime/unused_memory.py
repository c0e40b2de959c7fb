"""Returns unused memory of mimalloc to the system now and then; over many slices it would add up.

mimalloc is Arrow's default allocator, unless the program chose another one (``runtime.allocator``).
"""

from __future__ import annotations

import threading

import pyarrow as pa

_KEEPING = "mimalloc"  # other allocators gain nothing
_BETWEEN = 16 << 20  # bytes of files read between two releases: using released pages again costs time


class _Read(threading.local):
    size = 0


_read = _Read()


def release_after(size: int) -> None:
    """Count the bytes of a slice that this thread has read, and release unused memory after every 16 MB.

    Only mimalloc is affected. It keeps memory by thread, so each thread releases its own.
    """
    _read.size += size
    if _read.size >= _BETWEEN:
        _read.size = 0
        pool = pa.default_memory_pool()
        if pool.backend_name == _KEEPING:
            pool.release_unused()
