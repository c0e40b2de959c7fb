"""How much memory the log side of one file slice may take, and what of it each part of the work gets.

The limit holds for everything the log side needs beside the base file's own batches: log bytes, decoded rows, keys,
ordering values, handles, and what is made of them for a moment.  Rows and entries are held in memory while they fit,
with room left for the fold; beyond that they are written to spill files and worked on a portion at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_py.options.read import MERGE_MEMORY, SPILL_PATH
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.runtime.machine import count_cores, find_address_space_limit, find_memory_limit

_SHARE = 4  # a quarter of the machine's memory is for log sides
_OWN_SHARE = 8  # an eighth of the process's own limit, as addresses that are reserved or mapped count there too
_FOLD_COPIES = 6  # what a fold makes of entries: joined, numbered, sorted, gathered
_SMALL_FILE = 1 << 22


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
            limit = MERGE_MEMORY.read(options.options) or None
        directories = SPILL_PATH.read(options.options)
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
        return None if find_address_space_limit() is None else self.limit // 2

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
    share = find_memory_limit() // _SHARE // max(readers, count_cores())
    own = find_address_space_limit()
    return max(1, share if own is None else min(share, own // _OWN_SHARE // readers))
