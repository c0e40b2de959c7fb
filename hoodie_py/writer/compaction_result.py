"""What a compaction did, and how far one has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hoodie_py.writer.compaction_task import TaskResult


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """A completed compaction; ``instant`` is None when there was nothing to do.

    ``rows_updated``, ``rows_deleted`` and ``rows_inserted`` count what the log files did to base rows, ``seconds`` is
    wall-clock time, sizes are in bytes.
    """

    instant: str | None = None
    completion_time: str | None = None
    file_groups: int = 0
    rows_written: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_inserted: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, instant: str, completion_time: str, results: Sequence[TaskResult], seconds: float) -> CompactionResult:
        """Sum up the results of all tasks."""
        return cls(
            instant=instant,
            completion_time=completion_time,
            file_groups=len(results),
            rows_written=sum(each.stat.num_writes for each in results),
            rows_updated=sum(each.stat.num_update_writes for each in results),
            rows_deleted=sum(each.stat.num_deletes for each in results),
            rows_inserted=sum(each.stat.num_inserts for each in results),
            bytes_read=sum(each.bytes_read for each in results),
            bytes_written=sum(each.stat.file_size_in_bytes for each in results),
            seconds=seconds,
        )

    def __str__(self) -> str:
        if self.instant is None:
            return "There was nothing to compact."
        return (
            f"Compaction {self.instant} merged {self.file_groups} file groups in {self.seconds:.1f} s: "
            f"{self.rows_written:,} rows written, {self.rows_updated:,} updated, {self.rows_inserted:,} inserted and "
            f"{self.rows_deleted:,} deleted; {self.bytes_read:,} bytes read, {self.bytes_written:,} written."
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a compaction has come; ``rows`` are rows written, of groups under way too where the engine tells."""

    instant: str
    file_groups: int
    file_groups_done: int
    bytes_total: int
    bytes_done: int
    rows: int
    seconds: float

    @property
    def rows_per_second(self) -> float:
        """Rows written in a second, on average."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds still to go, judged by bytes; None before the first file group is done."""
        if not self.bytes_done:
            return None
        return self.seconds * (self.bytes_total - self.bytes_done) / self.bytes_done


OnProgress = Callable[[Progress], None]
