"""Reports of a clustering: what its plan takes and leaves out, and what it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hoodie_py.runtime.wording import Sentence, format_count
from hoodie_py.table.scan.html_table import format_html_table
from hoodie_py.writer.handles.data_file import TaskResult

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """Slices that would be written into new files together; sizes are in bytes."""

    partition_path: str
    file_ids: tuple[str, ...]
    base_bytes: int
    log_files: int
    log_bytes: int
    new_files: int

    def __str__(self) -> str:
        where = self.partition_path or "(the table)"
        logs = f" and {format_count(self.log_files, 'log file')} of {self.log_bytes:,} bytes" if self.log_files else ""
        groups = format_count(len(self.file_ids), "file group")
        return f"{where}: {groups} of {self.base_bytes:,} bytes{logs} to {format_count(self.new_files, 'file')}"


@dataclass(frozen=True, slots=True)
class ClusteringReport:
    """What scheduling a clustering would do. ``left_out`` has a reason for each file slice that is not taken, by
    partition path and file id. ``not_due`` says why no plan would be made; None if one would.
    """

    table: str
    instant: str
    sort_columns: tuple[str, ...]
    groups: tuple[PlannedGroup, ...]
    left_out: tuple[tuple[str, str, str], ...] = ()
    not_due: str | None = None

    def __str__(self) -> str:
        if self.not_due is not None:
            return f"No clustering of {self.table}: {self.not_due}."
        count = sum(len(each.file_ids) for each in self.groups)
        size = sum(each.base_bytes + each.log_bytes for each in self.groups)
        order = f", sorted by {', '.join(self.sort_columns)}" if self.sort_columns else ""
        return (
            f"Clustering of {self.table} would write {count} file slices of {size:,} bytes into about "
            f"{sum(each.new_files for each in self.groups)} new files, in {len(self.groups)} groups{order}; "
            f"{len(self.left_out)} slices are left out."
        )

    def __repr__(self) -> str:
        lines = [str(self), *(f"  + {each}" for each in self.groups[:_SHOWN])]
        lines += [f"  - {path}/{file_id}: {reason}" for path, file_id, reason in self.left_out[:_SHOWN]]
        hidden = max(0, len(self.groups) - _SHOWN) + max(0, len(self.left_out) - _SHOWN)
        return "\n".join([*lines, f"  ... and {hidden} more"] if hidden else lines)

    def _repr_html_(self) -> str:
        return format_html_table(str(self), [(each.partition_path, str(each)) for each in self.groups[:_SHOWN]])


@dataclass(frozen=True, slots=True)
class ClusteringResult(Sentence):
    """A completed clustering; ``instant`` is None if there was nothing to do. ``seconds`` is wall-clock time, sizes are
    in bytes.
    """

    instant: str | None = None
    completion_time: str | None = None
    groups_replaced: int = 0
    files_written: int = 0
    rows_written: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    seconds: float = 0.0

    @classmethod
    def of(
        cls, instant: str, completion_time: str, replaced: int, results: Sequence[TaskResult], seconds: float
    ) -> ClusteringResult:
        """Sum up the results of all tasks. ``replaced`` is the number of replaced file groups."""
        return cls(
            instant=instant,
            completion_time=completion_time,
            groups_replaced=replaced,
            files_written=len(results),
            rows_written=sum(each.stat.num_writes for each in results),
            bytes_read=sum(each.bytes_read for each in results),
            bytes_written=sum(each.stat.file_size_in_bytes for each in results),
            seconds=seconds,
        )

    def __str__(self) -> str:
        if self.instant is None:
            return "There was nothing to cluster."
        groups = format_count(self.groups_replaced, "file group")
        return (
            f"Clustering {self.instant} wrote {self.rows_written:,} rows of {groups} into "
            f"{self.files_written} new ones in {self.seconds:.1f} s: {self.bytes_read:,} bytes read, "
            f"{self.bytes_written:,} written."
        )
