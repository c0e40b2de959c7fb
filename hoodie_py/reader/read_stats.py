"""Counts of one read of a file group (Hudi's HoodieReadStats)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class SpillStats:
    """Spill files of a read: how many, and their bytes."""

    files: int = 0
    bytes: int = 0


@dataclass(slots=True)
class ReadStats:
    """Counts of one read.

    Attributes:
        base_rows: rows of the base file that were read.
        inserts, updates, deletes: rows that only the log has, base rows that the log changed, keys the log deleted.
        log_records: entries of all log blocks that count.
        blocks: all log blocks.
        skipped_blocks, corrupt_blocks, rollback_blocks: log blocks that do not count, are corrupt, are rollbacks.
        log_bytes: bytes of log files read.
        spill: files written to disk to stay within ``memory_limit``.
    """

    base_rows: int = 0
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    log_records: int = 0
    blocks: int = 0
    skipped_blocks: int = 0
    corrupt_blocks: int = 0
    rollback_blocks: int = 0
    log_bytes: int = 0
    spill: SpillStats = field(default_factory=SpillStats)
