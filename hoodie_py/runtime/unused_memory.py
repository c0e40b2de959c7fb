"""Returns the memory that mimalloc keeps to the system now and then, as it adds up over many slices.

mimalloc is Arrow's own allocator. A process uses it unless a program chose another one (``runtime.allocator``).
"""

from __future__ import annotations

import threading

import pyarrow as pa

_KEEPING = "mimalloc"  # other allocators gain nothing
_BETWEEN = 16 << 20  # bytes of files to read between two releases, as released pages cost time when they are used again


class _Read(threading.local):
    size = 0


_read = _Read()


def release_after(size: int) -> None:
    """Count the bytes of a slice that this thread has read, and release unused memory after every 16 MB.

    Nothing is done for other allocators. mimalloc keeps memory by thread, so each thread releases its own.
    """
    _read.size += size
    if _read.size >= _BETWEEN:
        _read.size = 0
        pool = pa.default_memory_pool()
        if pool.backend_name == _KEEPING:
            pool.release_unused()
