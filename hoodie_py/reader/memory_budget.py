"""How much memory the log side of one file slice may take, and what of it each part of the work gets.

The limit holds for everything the log side needs beside the base file's own batches: log bytes, decoded rows, keys,
ordering values, handles, and what is made of them for a moment.  Rows and entries are held in memory while they fit,
with room left for the fold; beyond that they are written to spill files and worked on a portion at a time.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from io import FileIO

from hoodie_py.options.read import MERGE_MEMORY, SPILL_PATH
from hoodie_py.reader.read_info import ReadOptions

_SHARE = 4  # a quarter of the machine's memory is for log sides
_OWN_SHARE = 8  # an eighth of the process's own limit, as addresses that are reserved or mapped count there too
_FOLD_COPIES = 6  # what a fold makes of entries: joined, numbered, sorted, gathered
_SMALL_FILE = 1 << 22
_CGROUP_ROOT = "/sys/fs/cgroup"


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """The limit of one slice's log side and what follows from it.

    Attributes:
        limit: bytes.
        directory: where spill files go; None for the system's directory for temporary files.
    """

    limit: int
    directory: str | None = None

    @classmethod
    def from_options(cls, options: ReadOptions) -> MemoryBudget:
        """Return the budget that a read's settings give each slice."""
        limit = options.memory_limit
        if limit is None:
            limit = MERGE_MEMORY.of(options.options) or None
        directories = SPILL_PATH.of(options.options)
        return cls(compute_memory_share(limit, options.readers), directories[0] if directories else None)

    @property
    def portion(self) -> int:
        """Bytes of rows or entries that are worked on at once."""
        return max(1, self.limit // 16)

    @property
    def rows_most(self) -> int:
        """Bytes of rows held at most while all of the log side is in memory."""
        return self.limit * 3 // 4

    @property
    def rows_held(self) -> int:
        """Bytes of rows held before they are written out, once the log side spills."""
        return max(1, self.limit // 8)

    @property
    def log_bytes_held(self) -> int:
        """Bytes of log files held at once; a larger one is mapped."""
        return self.limit // 8

    @property
    def mapped_bytes(self) -> int | None:
        """Bytes of spill files mapped at once; None for no bound, as only a limit of address space makes them count."""
        return None if _address_space() is None else self.limit // 2

    @property
    def file_bytes(self) -> int:
        """Bytes of a spill file after which another is begun, as a file is mapped whole."""
        return max(_SMALL_FILE, self.limit // 4)

    def fits(self, row_bytes: int, entry_bytes: int) -> bool:
        """Say whether rows and the entries that speak of them can stay in memory and be folded there."""
        return row_bytes + _FOLD_COPIES * entry_bytes + self.limit // 4 <= self.limit

    def count_rows_at_once(self, row_bytes: int) -> int:
        """Return how many rows of a size make a portion, at least one."""
        return max(1, self.portion // max(1, row_bytes))


def compute_memory_share(limit: int | None, readers: int) -> int:
    """Return the bytes that the log side of one slice may take.

    Args:
        limit: the user's ``memory_limit``; None for the default: a quarter of the memory that the machine or the
            container has, divided by its processors, as each of them may read a slice; where the process has a limit
            of its own (RLIMIT_AS, which Spark sets from ``spark.executor.pyspark.memory``), at most an eighth of that
            divided by ``readers``.
        readers: slices that are read at the same time under this limit.
    """
    readers = max(1, readers)
    if limit is not None:
        return max(1, limit // readers)
    share = _machine_memory() // _SHARE // max(readers, _processors())
    own = _address_space()
    return max(1, share if own is None else min(share, own // _OWN_SHARE // readers))


@lru_cache(maxsize=1)
def _machine_memory() -> int:
    """Return the memory of the machine or, if that is less, of the container, as it was when first asked."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_cgroup_limits("/proc/self/cgroup", _CGROUP_ROOT)])


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _address_space() -> int | None:
    """Return the process's own limit of memory; None without one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _cgroup_limits(membership: str | os.PathLike[str], root: str | os.PathLike[str]) -> Iterator[int]:
    """Yield the memory limits of the process's control groups, of version 2 or 1, and of those around them."""
    lines = _text_in(membership).splitlines()  # none where that is not to be known: then the machine's memory counts
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers == "":
            top, name = str(root), "memory.max"
        elif "memory" in controllers.split(","):
            top, name = f"{root}/memory", "memory.limit_in_bytes"
        else:
            continue
        group = f"{top}/{path.strip('/')}".rstrip("/")
        while True:
            limit = _text_in(f"{group}/{name}").strip()
            if limit.isdecimal():  # not the word max
                yield int(limit)
            if len(group) <= len(top):
                break
            group = group.rpartition("/")[0]


def _text_in(path: str | os.PathLike[str]) -> str:
    """Return the text of a file; none where there is no such file, or no text in it."""
    try:
        with FileIO(path) as file:
            return file.readall().decode()
    except (OSError, UnicodeDecodeError):
        return ""
