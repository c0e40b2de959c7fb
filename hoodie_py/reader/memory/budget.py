"""MemoryBudget: the memory that the log of one file slice may take, and the share of each step.

The limit covers everything of the log: bytes of files, decoded rows, keys, ordering values, handles, and temporary
arrays. Batches of base rows do not count. Rows and entries stay in memory while they fit and leave room for the fold.
Beyond that they are written to spill files and processed in portions. (Hudi: hoodie.memory.merge.max.size.)
"""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_py.options.read import MERGE_MEMORY, SPILL_PATH
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.runtime.machine import count_cores, find_address_space_limit, find_memory_limit

_SHARE = 4  # a quarter of the machine's memory is for logs
_OWN_SHARE = 8  # an eighth of the process's own limit, which counts reserved and mapped addresses, too
_FOLD_COPIES = 6  # a fold joins, numbers, sorts and gathers entries: about six copies in all
_SMALL_FILE = 1 << 22


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """The memory limit of one slice's log, in bytes."""

    limit: int
    directory: str | None = None  # for spill files; None for the system's directory for temporary files

    @classmethod
    def from_options(cls, options: ReadOptions) -> MemoryBudget:
        """Return the budget of each slice of a read."""
        limit = options.memory_limit
        if limit is None:
            limit = MERGE_MEMORY.read(options.options) or None
        directories = SPILL_PATH.read(options.options)
        return cls(compute_memory_share(limit, options.readers), directories[0] if directories else None)

    @property
    def portion(self) -> int:
        """Bytes of rows or entries that are processed at once."""
        return max(1, self.limit // 16)

    @property
    def rows_most(self) -> int:
        """Most bytes of rows in memory before anything is spilled."""
        return self.limit * 3 // 4

    @property
    def rows_held(self) -> int:
        """Most bytes of rows in memory after spilling began."""
        return max(1, self.limit // 8)

    @property
    def log_bytes_held(self) -> int:
        """Most bytes of log files in memory; a larger file is mapped."""
        return self.limit // 8

    @property
    def mapped_bytes(self) -> int | None:
        """Most bytes of spill files mapped at once; None unless address space is limited, as only then maps count."""
        return None if find_address_space_limit() is None else self.limit // 2

    @property
    def file_bytes(self) -> int:
        """Bytes after which a new spill file begins, as a file is mapped whole."""
        return max(_SMALL_FILE, self.limit // 4)

    def fits(self, row_bytes: int, entry_bytes: int) -> bool:
        """Say whether rows and their entries can stay in memory and be folded there."""
        return row_bytes + _FOLD_COPIES * entry_bytes + self.limit // 4 <= self.limit

    def count_rows_at_once(self, row_bytes: int) -> int:
        """Return how many rows of this size make a portion, at least one."""
        return max(1, self.portion // max(1, row_bytes))


def compute_memory_share(limit: int | None, readers: int) -> int:
    """Return the bytes that the log of one slice may take, from the user's ``limit`` or by default.

    The default is a quarter of the memory of the machine or container, divided by its cores, as each core may read a
    slice. If the process has a limit of its own (RLIMIT_AS, which Spark sets from ``spark.executor.pyspark.memory``),
    it is at most an eighth of that limit, divided by ``readers``, the number of slices that are read at the same time.
    """
    readers = max(1, readers)
    if limit is not None:
        return max(1, limit // readers)
    share = find_memory_limit() // _SHARE // max(readers, count_cores())
    own = find_address_space_limit()
    return max(1, share if own is None else min(share, own // _OWN_SHARE // readers))
