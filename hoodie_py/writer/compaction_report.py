"""What a compaction plan takes and leaves out, for people: slice by slice, with reasons, bytes and cost."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie_py.table.scan import format_html_table

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
        """Bytes that compacting it reads, and writes again in about the size of the base file."""
        return 2 * self.base_bytes + self.log_bytes if self.base_bytes else 2 * self.log_bytes


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What scheduling a compaction would do.

    Attributes:
        table: its name.
        instant: the time at which it was asked.
        timezone: the zone that new instants are in.
        strategies: names of the strategies.
        slices: every slice, those that are taken and those that are not.
        not_due: why no plan would be made whatever the slices are; None if one would.
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
