"""A measured read: what was read from the files of a scan, what merging did, and how long it took.

``Scan.explain(analyze=True)`` returns one, like SQL's EXPLAIN ANALYZE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from hoodie_py.table.scan.task import ScanTask

if TYPE_CHECKING:
    from hoodie_py.reader.file_group import FileGroupReader
    from hoodie_py.reader.read_info import ReadStats
    from hoodie_py.runtime.fold_gate import FoldGate
    from hoodie_py.table.scan.query import Task


@dataclass(frozen=True, slots=True)
class MeasuredTask(ScanTask):
    """A task that collects the counts of its reads, in this process."""

    counts: list[ReadStats] = field(default_factory=list)

    def reader(self, gate: FoldGate | None = None) -> FileGroupReader:
        made = ScanTask.reader(self, gate)
        self.counts.append(made.stats)
        return made


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What a read of a scan did; a scan with a limit reads some of its slices.

    Attributes:
        rows: rows of the result.
        slices: file slices that were opened.
        base_rows: rows that were read from base files. Rows are not counted if no column of them was read, or if
            positions decided which of them stay.
        log_records: entries of valid log blocks.
        inserts, updates, deletes: rows that only logs have, base rows that logs changed, keys that logs deleted.
        skipped_blocks, corrupt_blocks: log blocks that are not part of the snapshot, and corrupt ones.
        log_bytes: bytes of log files.
        spilled_bytes: bytes written to disk to stay within the memory limit.
        seconds: wall-clock time of reading, without planning.
    """

    rows: int
    slices: int
    base_rows: int
    log_records: int
    inserts: int
    updates: int
    deletes: int
    skipped_blocks: int
    corrupt_blocks: int
    log_bytes: int
    spilled_bytes: int
    seconds: float

    @classmethod
    def of(cls, rows: int, counts: Sequence[ReadStats], seconds: float) -> ReadReport:
        """Sum up the counts of all slices."""
        return cls(
            rows=rows,
            slices=len(counts),
            base_rows=sum(each.base_rows for each in counts),
            log_records=sum(each.log_records for each in counts),
            inserts=sum(each.inserts for each in counts),
            updates=sum(each.updates for each in counts),
            deletes=sum(each.deletes for each in counts),
            skipped_blocks=sum(each.skipped_blocks for each in counts),
            corrupt_blocks=sum(each.corrupt_blocks for each in counts),
            log_bytes=sum(each.log_bytes for each in counts),
            spilled_bytes=sum(each.spill.bytes for each in counts),
            seconds=seconds,
        )

    def __str__(self) -> str:
        merged = (
            f" {self.log_records:,} log records updated {self.updates:,} rows, inserted {self.inserts:,} and deleted "
            f"{self.deletes:,}."
            if self.log_records
            else ""
        )
        spilled = f" {self.spilled_bytes:,} bytes went to disk." if self.spilled_bytes else ""
        return f"Reading gave {self.rows:,} rows in {self.seconds:.2f} s.{merged}{spilled}"


def measure_tasks(tasks: Sequence[Task], counts: list[ReadStats]) -> Iterator[MeasuredTask]:
    """Yield copies of the tasks whose reads append their counts to a list."""
    names = [each.name for each in fields(ScanTask)]
    for task in tasks:
        yield MeasuredTask(**{name: getattr(task, name) for name in names}, counts=counts)
