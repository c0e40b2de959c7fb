"""Explanation: what a scan would read, what was left out by which index, and what planning cost.

``Scan.explain`` returns one. It prints as sentences, and as a table in notebooks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.table.indexes.counted_files import CountedFiles
from hoodie_py.table.scan.html_table import format_html_table
from hoodie_py.table.scan.measured import ReadReport
from hoodie_py.table.scan.slice_choice import choose_slices
from hoodie_py.table.snapshot import Snapshot

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.table.filter.predicate import Predicate
    from hoodie_py.table.indexes.index import FilterStep


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a scan is planned.

    Attributes:
        table, instant, query_type, filter: of the scan; None for no filter.
        partitions: partitions with file slices that may contain matching rows, judging by their partition values.
        slices: file slices in these partitions.
        steps: what each index left out, in the order in which they were used.
        read_partitions, read_slices, read_files, read_bytes: what remains to be read.
        calls, bytes: requests to the store for listing files and reading indexes, and the bytes that they read.
        note: why no index was used; None if some were.
        read: what a read of the scan did, if it was measured.
    """

    table: str | None
    instant: str | None
    query_type: str
    filter: str | None
    partitions: int
    slices: int
    steps: tuple[FilterStep, ...]
    read_partitions: int
    read_slices: int
    read_files: int
    read_bytes: int
    calls: int
    bytes: int
    note: str | None = None
    read: ReadReport | None = None

    @property
    def skipped_slices(self) -> int:
        """File slices that indexes left out."""
        return self.slices - self.read_slices

    def __str__(self) -> str:
        return "\n".join(sentence for _, sentence in self._describe())

    def _repr_html_(self) -> str:
        return format_html_table("Explanation", self._describe())

    def _describe(self) -> list[tuple[str, str]]:
        """Return pairs of a subject and a sentence."""
        asked = f"A {self.query_type} query of {self.table!r} at {self.instant}"
        found = [("query", f"{asked}, {'without a filter' if self.filter is None else f'where {self.filter}'}.")]
        kept = "" if self.filter is None else " that may hold wanted rows by their values"
        found.append(
            (
                "partitions",
                f"{_count(self.partitions, 'partition')}{kept}: {_count(self.slices, 'file slice')}.",
            )
        )
        found += [(step.name, _describe_step(step)) for step in self.steps]
        if self.note is not None:
            found.append(("indexes", f"No index was asked. {self.note}"))
        left = f"{_count(self.read_slices, 'file slice')} of {_count(self.read_partitions, 'partition')}"
        files = f"{_count(self.read_files, 'file')} of {_format_size(self.read_bytes)}"
        found.append(("to read", f"To read: {left}, {files}."))
        cost = f"Planning took {_count(self.calls, 'request')} that read {_format_size(self.bytes)}."
        done = [] if self.read is None else [("read", str(self.read))]
        return [*found, ("cost", cost), *done]


def explain_snapshot(
    snapshot: Snapshot, query_type: str, predicate: Predicate | None, options: ReadOptions, merger: Merger | None
) -> Explanation:
    """Plan a snapshot scan again and describe the plan; arguments and errors as for ``choose_slices``."""
    files = CountedFiles(snapshot.files)
    # Without what the snapshot has cached, so that the requests are counted.
    planned = snapshot.forget_files(files)
    chosen = choose_slices(planned, query_type, predicate, options, merger)
    left, view = chosen.slices, planned.metadata.opened
    return Explanation(
        snapshot.config.name,
        snapshot.instant,
        query_type,
        None if predicate is None else str(predicate),
        chosen.partitions,
        chosen.considered,
        chosen.steps,
        len({each.partition_path for each in left}),
        len(left),
        sum(len(each.log_files) + (each.base_file is not None) for each in left),
        sum(_count_bytes(each) for each in left),
        files.calls + (0 if view is None else view.calls),
        files.bytes + (0 if view is None else view.bytes),
        chosen.note,
    )


def _count_bytes(file_slice: FileSlice) -> int:
    base = 0 if file_slice.base_file is None else file_slice.base_file.whole_size
    return base + sum(log.size for log in file_slice.log_files)


def _describe_step(step: FilterStep) -> str:
    if step.note is not None:
        return f"{step.name} left out nothing. {step.note}"
    cost = f"{_count(step.calls, 'request')}, {_format_size(step.bytes)}"
    return f"{step.name} left out {step.skipped:,} of {_count(step.considered, 'file slice')} ({cost})."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _format_size(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024 or unit == "MiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
