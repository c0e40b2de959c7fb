"""Many small commits on one table, with all table services after each write: what they cost, and what can be read.

The table is compared with a model while it grows old: the rows now, as of each commit that cleans retain, and what
ranges of these commits changed.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hoodie_py import HoodieTable
from integration.year.model import COLUMNS, SCHEMA, Moment, Rows, YearModel, iterate_rows
from tests.benchmarks.counting_files import Counts, open_counted

RETAINED = 10
SERVICES: Mapping[str, str] = {
    "hoodie.compact.inline": "true",
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": str(RETAINED),
    "hoodie.archive.automatic": "true",
    "hoodie.time.generator.max_expected_clock_skew_ms": "0",
}
CLUSTERED: Mapping[str, str] = {"hoodie.clustering.inline": "true", "hoodie.clustering.inline.max.commits": "20"}
"""Beside the other services; with more commits than stay active, a clustering would never be due."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What table, and what happens to it; ``statistics``: the metadata table has those that Java's tables have."""

    version: int = 9
    merge_on_read: bool = True
    metadata: bool = True
    clustered: bool = False
    statistics: bool = True

    def __str__(self) -> str:
        parts = [f"v{self.version}", "mor" if self.merge_on_read else "cow"]
        parts += ["mdt"] * self.metadata + ["stats"] * (self.metadata and self.statistics)
        parts += ["clustered"] * self.clustered
        return "-".join(parts)

    @property
    def indexes(self) -> tuple[str, ...]:
        """Partitions of the metadata table."""
        statistics = ("column_stats", *(("partition_stats",) if self.version >= 8 else ()))
        return ("files", *(statistics if self.statistics else ())) if self.metadata else ()

    @property
    def options(self) -> dict[str, str]:
        """Hudi's options for each write."""
        return {**SERVICES, **(CLUSTERED if self.clustered else {})}


@dataclass(frozen=True, slots=True)
class Span:
    """Means of a part of the commits: processor seconds, wall seconds and calls of the store for one of them; what is
    there at its end. Files of the archive, also of the metadata table's, are counted apart.
    """

    commits: int
    cpu: float
    median_cpu: float
    wall: float
    calls: float
    bytes_read: float
    active: int
    active_files: int
    archive_files: int
    data_files: int
    metadata_files: int
    table_bytes: int


@dataclass(slots=True)
class Year:
    """The figures of a run."""

    kind: str
    commits: int
    spans: list[Span] = field(default_factory=list)
    reads: int = 0
    seconds: float = 0.0
    peak_bytes: int = 0

    def grown(self, name: str) -> float:
        """Return how many times the first part's figure the last part's is."""
        return float(getattr(self.spans[-1], name) / max(getattr(self.spans[0], name), 1e-9))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return asdict(self)


class Difference(AssertionError):
    """The table is not what the model says."""


def run_year(
    path: Path,
    kind: Kind,
    commits: int,
    *,
    model: YearModel | None = None,
    checks: int = 40,
    on_span: Callable[[Span], None] = lambda _: None,
) -> Year:
    """Make a table at a path that is free, and commit; return the figures of each tenth.

    ``checks``: how often the past is compared.

    Raises:
        Difference: a read is not what the model says.
    """
    model = model or YearModel()
    began = time.monotonic()
    create_table(path, kind, model)
    table, counts = open_counted(str(path))
    year, every = Year(str(kind), commits), max(1, commits // checks)
    for tenth in range(10):
        cost = _Cost(counts)
        for commit in range(1 + commits * tenth // 10, 1 + commits * (tenth + 1) // 10):
            operation, data = model.make_next(commit)
            with cost:
                done = getattr(table, operation)(data, kind.options)
            request, completion = done.instant, done.completion_time
            model.note(operation, data, request, request if kind.version < 8 else completion)
            if commit % every == 0:
                year.reads += check_table(HoodieTable.open(path), model)
        year.spans.append(_make_span(path, table, cost))
        on_span(year.spans[-1])
    year.seconds = time.monotonic() - began
    year.peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return year


def create_table(path: Path, kind: Kind, model: YearModel) -> None:
    """Make the table with its first rows and its indexes."""
    table = HoodieTable.create(
        path, SCHEMA, record_key="id", ordering="ts", partition_by="part", table_version=kind.version,
        table_type="MERGE_ON_READ" if kind.merge_on_read else "COPY_ON_WRITE",
    )  # fmt: skip
    rows = model.make_first()
    done = table.insert(rows, kind.options)
    model.note("insert", rows, done.instant, done.instant if kind.version < 8 else done.completion_time)
    for name in kind.indexes:
        HoodieTable.open(path).index.build(name, options=dict(SERVICES))


class _Cost:
    """Adds up what calls cost."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self.cpu: list[float] = []
        self.wall = 0.0
        self.calls = self.bytes = 0

    def __enter__(self) -> None:
        self._begun = time.process_time(), time.perf_counter(), self._counts.calls, self._counts.bytes

    def __exit__(self, *_: object) -> None:
        cpu, wall, calls, read = self._begun
        self.cpu.append(time.process_time() - cpu)
        self.wall += time.perf_counter() - wall
        self.calls += self._counts.calls - calls
        self.bytes += self._counts.bytes - read


def _make_span(path: Path, table: HoodieTable, cost: _Cost) -> Span:
    number = len(cost.cpu)
    timeline = path / ".hoodie" / "timeline"
    active = timeline if timeline.is_dir() else path / ".hoodie"
    archive = [each for each in _files(path) if {"archived", "history"} & {*each.parts}]
    every = _files(path)
    inner = [each for each in _files(path / ".hoodie" / "metadata") if not {"archived", "history"} & {*each.parts}]
    return Span(
        commits=number,
        cpu=statistics.fmean(cost.cpu),
        median_cpu=statistics.median(cost.cpu),
        wall=cost.wall / number,
        calls=cost.calls / number,
        bytes_read=cost.bytes / number,
        active=len(table.refresh().timeline),
        active_files=sum(each.is_file() for each in active.iterdir()),
        archive_files=len(archive),
        data_files=sum(not each.is_relative_to(path / ".hoodie") for each in every),
        metadata_files=len(inner),
        table_bytes=sum(each.stat().st_size for each in every),
    )


def _files(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file()] if folder.is_dir() else []


def check_table(table: HoodieTable, model: YearModel) -> int:
    """Compare all reads inside the retention with the model; return their number."""
    _check("now", _by_key(table.scan(columns=COLUMNS)), model.rows)
    moments = list(model.moments)
    retained = _find_retained(table, moments)
    for number in retained:
        _check(f"as of {moments[number].time}", _by_key(table.scan(columns=COLUMNS, as_of=moments[number].time)),
               moments[number].rows)  # fmt: skip
    ranges = [(first, last) for first in retained for last in retained if last > first]
    for first, last in ranges:
        begin, end = moments[first].time, moments[last].time
        found = _by_key(table.incremental(begin, end, columns=COLUMNS))
        _check(f"from {begin} to {end}", found, model.changed_between(first, last))
    return 1 + len(retained) + len(ranges)


def _find_retained(table: HoodieTable, moments: list[Moment]) -> list[int]:
    """Return which moments cleans retain: with compactions and the like, that is fewer than their number of commits."""
    commits = [each.request_time for each in table.timeline.select_writes()]
    earliest = commits[-RETAINED] if len(commits) > RETAINED else ""
    return [number for number, each in enumerate(moments) if each.request >= earliest]


def _by_key(scan: Any) -> Rows:
    rows = list(iterate_rows(scan.to_arrow()))
    found = {row[0]: row for row in rows}
    if len(found) != len(rows):
        raise Difference("a key is there twice")
    return found


def _check(what: str, found: Rows, want: Rows) -> None:
    if found != want:
        keys = sorted(key for key in found.keys() | want.keys() if found.get(key) != want.get(key))
        some = [(key, found.get(key), want.get(key)) for key in keys[:3]]
        raise Difference(f"{what}: {len(keys)} keys differ, such as (key, found, wanted) {some}")
