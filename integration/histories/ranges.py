"""Ranges of a history's commits, and the ways to read one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from integration.histories.rules import Row

COLUMNS: tuple[tuple[str, ...] | None, ...] = (None, None, ("total", "id"), ("name",), ("_hoodie_commit_time", "part"))
FILTERS: tuple[tuple[str, Callable[[Row], bool]] | None, ...] = (
    None,
    None,
    ("total % 2 = 0", lambda row: row.total % 2 == 0),
    ("ts >= 2 and id <> 'k1'", lambda row: row.ts >= 2 and row.id != "k1"),
    ("part = 'p0'", lambda row: row.part == "p0"),
)
FALLBACKS = (None, None, None, "true", "false")
BATCH_ROWS: tuple[int | None, ...] = (None, 1, 2)
CHANGE_DATA = ("OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER")
EARLIEST = "earliest"
FROM_THE_BEGINNING = (EARLIEST, "000", "0" * 17)


@dataclass(frozen=True, slots=True)
class Moment:
    """A commit in time."""

    request: str
    completion: str


@dataclass(frozen=True, slots=True)
class Way:
    """A choice of columns, rows and batches, and of whether the latest rows do where files are gone."""

    columns: int = 0
    rows: int = 0
    batch_rows: int = 0
    on_gone_files: int = 0

    @classmethod
    def number(cls, number: int) -> Way:
        """Return a way; other numbers give others."""
        lengths = len(COLUMNS), len(FILTERS), len(BATCH_ROWS), len(FALLBACKS)
        return cls(*(number * step % length for step, length in zip((1, 2, 1, 3), lengths, strict=True)))

    @property
    def fallback(self) -> str | None:
        return FALLBACKS[self.on_gone_files]

    @property
    def condition(self) -> tuple[str, Callable[[Row], bool]] | None:
        return FILTERS[self.rows]

    def arguments(self) -> dict[str, object]:
        """Return them as a query takes them."""
        columns, condition = COLUMNS[self.columns], self.condition
        return {
            "columns": None if columns is None else list(columns),
            "filter": None if condition is None else condition[0],
            "batch_rows": BATCH_ROWS[self.batch_rows],
        }

    def select(self, found: Iterable[tuple[Row, str]], plain: Sequence[str]) -> list[tuple[object, ...]]:
        """Return what is left of rows and their commits, sorted. ``plain`` are the columns where none are chosen."""
        names = COLUMNS[self.columns] or plain
        chosen = [each for each in found if self.condition is None or self.condition[1](each[0])]
        return sorted(
            tuple(commit if name == "_hoodie_commit_time" else getattr(row, name) for name in names)
            for row, commit in chosen
        )


def is_in(moment: Moment, start: str, end: str | None, *, by_request: bool) -> bool:
    """Whether a commit is in a range: after its start, and not after its end."""
    time = moment.request if by_request else moment.completion
    after = start == EARLIEST or time > start
    return after and (end is None or time <= end)


def find_compared(moments: Iterable[Moment], time: str) -> str:
    """Return the completion time that a range compares for a time: that of the commit that was requested then.

    A time at which a commit completed means that, even if another was requested in the same millisecond.
    """
    completed = {each.request: each.completion for each in moments}
    return time if time in completed.values() else completed.get(time, time)


def edges(moments: Iterable[Moment]) -> list[str]:
    """Return times that split commits in every way: when they began, when they were completed, and just before."""
    times = {time for moment in moments for time in (moment.request, moment.completion)}
    return sorted(times | {_just_before(time) for time in times})


def pick(moments: Sequence[Moment], first: int, last: int) -> tuple[str, str | None]:
    """Return a range that two numbers choose."""
    times = edges(moments)
    starts, ends = [*FROM_THE_BEGINNING, *times], [None, *times]
    start, end = starts[first % len(starts)], ends[last % len(ends)]
    if end is not None and start not in FROM_THE_BEGINNING and end < start:
        return end, start
    return start, end


def choose(times: Sequence[str], most: int) -> list[tuple[str, str]]:
    """Return ranges between two commits: at most so many, those of single commits first."""
    ends = ["000", *sorted(times)]
    single = list(itertools.pairwise(ends))
    longer = [pair for pair in itertools.combinations(ends, 2) if pair not in single]
    step = max(1, -(-len(longer) // max(1, most - len(single))))
    return [*single, *longer[::step]][:most]


def _just_before(time: str) -> str:
    earlier = datetime.strptime(time, "%Y%m%d%H%M%S%f") - timedelta(milliseconds=1)
    return earlier.strftime("%Y%m%d%H%M%S%f")[:17]
