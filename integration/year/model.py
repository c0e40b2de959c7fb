"""What a table of small upserts must hold: its rows after each of the last commits, in plain Python."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema([
    ("id", pa.string()), ("part", pa.string()), ("ts", pa.int64()), ("total", pa.int64()), ("name", pa.string()),
])  # fmt: skip
COLUMNS = tuple(SCHEMA.names)
PARTITIONS = 4
_KEYS = 400
_ROWS = 6
_KEPT = 40

Row = tuple[Any, ...]
Rows = dict[str, Row]


@dataclass(frozen=True, slots=True)
class Moment:
    """The table after a commit. ``time`` is what ranges compare; ``changed`` are the keys that the commit wrote."""

    request: str
    time: str
    rows: Rows
    changed: frozenset[str]


@dataclass(slots=True)
class YearModel:
    """The rows of the table, and its last moments, the oldest first."""

    seed: int = 1
    rows: Rows = field(default_factory=dict)
    moments: deque[Moment] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def make_first(self) -> pa.Table:
        """Return the rows that the table begins with."""
        return _to_table([_make_row(number, 0) for number in range(_KEYS)])

    def make_next(self, commit: int) -> tuple[str, Any]:
        """Return the next operation, "upsert" or "delete", and its data: some rows, or keys with their partitions."""
        chance = random.Random(self.seed * 1_000_003 + commit)
        if commit % 10 == 9 and self.rows:
            keys = chance.sample(sorted(self.rows), 2)
            return "delete", _to_table([(*self.rows[key][:2], commit, *self.rows[key][3:]) for key in keys])
        folders = chance.sample(range(PARTITIONS), 2)
        numbers = [number for number in range(_KEYS) if number % PARTITIONS in folders]
        return "upsert", _to_table([_make_row(number, commit) for number in chance.sample(numbers, _ROWS)])

    def note(self, operation: str, data: pa.Table, request: str, time: str) -> None:
        """Note what a commit did."""
        rows = dict(self.rows)
        written = {row[0]: row for row in iterate_rows(data)}
        if operation == "delete":
            for key in written:
                rows.pop(key, None)
        else:
            rows.update(written)
        self.rows = rows
        self.moments.append(Moment(request, time, rows, frozenset(written)))

    def changed_between(self, first: int, last: int) -> Rows:
        """Return the rows that the moments after ``first`` up to ``last`` wrote, as they were at the last one."""
        some = list(self.moments)[first + 1 : last + 1]
        keys = frozenset[str]().union(*(each.changed for each in some))
        return {key: row for key, row in some[-1].rows.items() if key in keys}


def iterate_rows(data: pa.Table) -> Iterator[Row]:
    """Yield the rows of a table, without meta columns."""
    return zip(*(data[name].to_pylist() for name in COLUMNS), strict=True)


def _make_row(number: int, commit: int) -> Row:
    return f"k{number:04d}", f"p{number % PARTITIONS}", commit, commit * 7 + number, f"name {number} at {commit}"


def _to_table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], SCHEMA)
