"""Reports of a compaction: what its plan takes and leaves out, how far it has come, and what it did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hoodie_py.runtime.wording import Sentence, format_count
from hoodie_py.table.scan.html_table import format_html_table
from hoodie_py.writer.handles.data_file import TaskResult

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """One file slice before a plan: whether it is taken, why, and its bytes."""

    partition_path: str
    file_id: str
    taken: bool
    reason: str
    base_bytes: int
    log_files: int
    log_bytes: int

    @property
    def cost_bytes(self) -> int:
        """Bytes that its compaction reads and writes. The new base file counts as large as the old one."""
        return 2 * self.base_bytes + self.log_bytes if self.base_bytes else 2 * self.log_bytes


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What scheduling a compaction would do. ``slices`` has every slice, taken or not. ``not_due`` says why no plan
    would be made, whatever the slices are; None if one would.

    Examples:
        >>> report = trips.schedule_compaction(dry_run=True)
        >>> len(report.slices), len(report.taken)
        (2, 1)
    """

    table: str
    instant: str
    timezone: str
    strategies: tuple[str, ...]
    slices: tuple[PlannedSlice, ...]
    not_due: str | None = None

    @property
    def taken(self) -> tuple[PlannedSlice, ...]:
        """The slices that would be compacted."""
        return tuple(each for each in self.slices if each.taken)

    @property
    def cost_bytes(self) -> int:
        """Bytes that would be read and written."""
        return sum(each.cost_bytes for each in self.taken)

    def __str__(self) -> str:
        if self.not_due is not None:
            return f"No compaction of {self.table}: {self.not_due}."
        logs = sum(each.log_files for each in self.taken)
        log_bytes = sum(each.log_bytes for each in self.taken)
        return (
            f"Compaction of {self.table} would merge {len(self.taken)} of {len(self.slices)} file slices: "
            f"{logs} log files of {_format_size(log_bytes)}, about {_format_size(self.cost_bytes)} to read and write. "
            f"New instants are in {self.timezone}."
        )

    def __repr__(self) -> str:
        lines = [str(self)]
        lines += [
            f"  {'+' if each.taken else '-'} {_format_name(each)}: {_format_facts(each)}"
            for each in self.slices[:_SHOWN]
        ]
        if len(self.slices) > _SHOWN:
            lines.append(f"  ... and {len(self.slices) - _SHOWN} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (_format_name(each), f"{'in' if each.taken else 'out'}: {_format_facts(each)}")
            for each in self.slices[:_SHOWN]
        ]
        return format_html_table(str(self), rows)


@dataclass(frozen=True, slots=True)
class CompactionResult(Sentence):
    """A completed compaction; ``instant`` is None if there was nothing to do.

    ``rows_updated``, ``rows_deleted`` and ``rows_inserted`` count what the log files changed in the base rows.
    ``seconds`` is wall-clock time, sizes are in bytes.

    Examples:
        >>> result = trips.compact()
        >>> print(result)
        Compaction ... merged 1 file group in ... s: 2 rows written, 1 updated, 0 inserted and 0 deleted; ... ...
        >>> result.file_groups, result.rows_updated
        (1, 1)
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
            bytes_written=sum(size for each in results for size in each.sizes.values()),
            seconds=seconds,
        )

    def __str__(self) -> str:
        if self.instant is None:
            return "There was nothing to compact."
        return (
            f"Compaction {self.instant} merged {format_count(self.file_groups, 'file group')} in {self.seconds:.1f} s: "
            f"{self.rows_written:,} rows written, {self.rows_updated:,} updated, {self.rows_inserted:,} inserted and "
            f"{self.rows_deleted:,} deleted; {self.bytes_read:,} bytes read, {self.bytes_written:,} written."
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a compaction; ``rows`` counts written rows, also of unfinished groups if the engine counts.

    Examples:
        >>> seen = []
        >>> rows = trips.compact(on_progress=seen.append).rows_written
        >>> seen[-1].file_groups_done, seen[-1].file_groups
        (1, 1)
    """

    instant: str
    file_groups: int
    file_groups_done: int
    bytes_total: int
    bytes_done: int
    rows: int
    seconds: float

    @property
    def rows_per_second(self) -> float:
        """Rows written per second, on average."""
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimate of the remaining seconds by bytes; None before the first file group is done."""
        if not self.bytes_done:
            return None
        return self.seconds * (self.bytes_total - self.bytes_done) / self.bytes_done


OnProgress = Callable[[Progress], None]


def _format_name(each: PlannedSlice) -> str:
    return f"{each.partition_path}/{each.file_id}" if each.partition_path else each.file_id


def _format_facts(each: PlannedSlice) -> str:
    logs = f"{each.log_files} log files of {_format_size(each.log_bytes)}"
    return f"{logs} on {_format_size(each.base_bytes)}; {each.reason}"


def _format_size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return ""
