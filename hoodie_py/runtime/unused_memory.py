"""Memory that mimalloc keeps: given back now and then, as it adds up over many slices.

That is Arrow's own allocator, which a process has unless something else was settled (``hoodie_py.runtime.allocator``).
"""

from __future__ import annotations

import threading

import pyarrow as pa

_KEEPING = "mimalloc"  # with the others, giving back after slices changes neither memory nor time
_BETWEEN = 16 << 20  # bytes of files read between two calls: what is given back has to be fetched again, page by page


class _Read(threading.local):
    size = 0


_read = _Read()


def release_after(size: int) -> None:
    """Note that a thread has read a slice, and give unused memory back to the system when it has read much.

    Nothing is done for other allocators. Memory is kept by thread, so each thread gives back its own.

    Args:
        size: bytes of the slice's files.
    """
    _read.size += size
    if _read.size >= _BETWEEN:
        _read.size = 0
        pool = pa.default_memory_pool()
        if pool.backend_name == _KEEPING:
            pool.release_unused()
