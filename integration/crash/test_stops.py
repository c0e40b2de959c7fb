"""A writer that was stopped for too long never says "done" of what another has taken back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import pytest

from hoodie_py import CommitStateUnknownError, HoodieTable, InvalidQueryError
from integration.crash import checks
from integration.crash.operations import Subject, clean, rollback, run
from integration.crash.races import LOST, Act, asked
from integration.crash.stops import Stopped, calls_of, options, stopped_at
from integration.crash.stores import Bucket, Folder, Place, files_at, open_table
from integration.crash.tables import table as service_table
from integration.crash.test_races import commits, finish, judge
from integration.crash.write_tables import write_table
from integration.crash.writes import (
    WRITES,
    Rows,
    WriteSubject,
    rows_at,
    rows_of,
    strays,
    subject_of_write,
    told_otherwise,
    upsert,
)

UNKNOWN = CommitStateUnknownError.__name__
DISK_POINTS, S3_POINTS = 4, 2

Calls = list[tuple[str, str]]


def points(calls: Calls, count: int) -> list[int]:
    """Choose where to stop: before the inflight file, before the last files of a timeline, right after the commit, and
    in between from the first look of the commit on.
    """
    made = [at for at, (verb, path) in enumerate(calls) if verb == "create" and path.startswith(".hoodie/")]
    commit = next(at for at in reversed(made) if "/metadata/" not in calls[at][1])
    looks = [at for at, (_, path) in enumerate(calls[:commit]) if path == ".hoodie/hoodie.properties"]
    between = range(looks[-1], min(commit + 12, len(calls)))
    chosen = {commit, commit + 1, *made[-3 if count > 2 else -1 :], *between[:: max(1, len(between) // count)]}
    begin = next(at for at in made if calls[at][1].endswith(".inflight") and "/metadata/" not in calls[at][1])
    return [begin, *sorted(at for at in chosen if max(looks[-1], begin + 1) <= at < len(calls))]


class Case(Protocol):
    """A table to begin with, and what must hold of it after a stop."""

    subject: Any

    def load(self) -> None:
        """Make the table be as it is to begin with."""
        ...

    def judge(self, end: Stopped) -> None:
        """Check what became of it."""
        ...


def several_stops(case: Case, place: Place, act: Act, other: Act, count: int) -> list[Stopped]:
    case.load()
    calls = calls_of(place, act, case.subject)
    ends = []
    for at in points(calls, count):
        case.load()
        ends.append(stopped_at(place, act, other, case.subject, at, f"{at} {calls[at]}"))
        case.judge(ends[-1])
    return ends


# Writes --------------------------------------------------------------------------------------------------------------


class Write:
    """Loads a table, and checks what became of it after a stop."""

    def __init__(self, place: Place, table: str, write: str, lock: str) -> None:
        self._place, self._table, self._write = place, table, WRITES[write]
        self.load()
        subject: Any = asked(lambda: subject_of_write(files_at(place), options(lock)))
        self.subject: WriteSubject = subject

    def load(self) -> None:
        self._place.load(write_table(self._table))

    def judge(self, end: Stopped) -> None:
        assert end.sleeper in {"done", UNKNOWN} | LOST, end
        assert end.other in {"done"} | LOST, end
        now: Rows = asked(lambda: rows_at(files_at(self._place)))
        assert now in self._allowed(end), end
        asked(lambda: self._go_on(now, end))

    def _allowed(self, end: Stopped) -> list[Rows]:
        assert self.subject.next_data is not None
        told = rows_of(self.subject.next_data) if end.other == "done" else {}
        before = self.subject.rows
        without = [{**before, **told}]
        with_it = [
            self._write.after(replace(self.subject, rows={**before, **told})),
            {**self._write.after(self.subject), **told},
        ]
        return {"done": with_it, UNKNOWN: with_it + without}.get(end.sleeper, without)

    def _go_on(self, now: Rows, end: Stopped) -> None:
        """Write, compact, and see that nothing lies about."""
        self._place.let_time_pass(3600)
        last = replace(self.subject, options=options("none"), data=self.subject.next_data)
        table = open_table(files_at(self._place))
        upsert(table, last)
        assert last.data is not None
        there = rows_at(files_at(self._place))
        assert there == {**now, **rows_of(last.data)}, end
        table = table.refresh()
        assert [each for each in table.timeline.select_pending() if each.action != "compaction"] == [], end
        new = [path for path in self._place.sizes() if not path.startswith(".hoodie/")]
        assert strays(table._snapshot, new) == [], end
        assert told_otherwise(table._snapshot, self.subject.newest) == [], end
        if table.config.is_merge_on_read:
            table.compact(options=last.options)
            assert rows_at(files_at(self._place)) == there, end


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "write", "lock"),
    [
        ("mdt_files_mor_v9", "upsert", "file"), ("made mor 6", "delete", "file"),
        ("made cow 6", "insert overwrite", "none"),
        *(
            pytest.param(*each, marks=pytest.mark.thorough)
            for each in [
                ("made mor 9", "upsert", "file"), ("made cow 9", "upsert", "none"),
                ("mdt_files_mor_v9 as 8", "insert", "none"), ("old15_metadata_mor", "upsert", "file"),
            ]
        ),
    ],
)  # fmt: skip
def test_a_write_that_slept(folder: Folder, table: str, write: str, lock: str) -> None:
    loaded = Write(folder, table, write, lock)
    ends = several_stops(loaded, folder, WRITES[write].act, _others, DISK_POINTS)
    assert {each.sleeper for each in ends} & LOST, ends
    assert "done" in {each.other for each in ends}, ends


@pytest.mark.s3
@pytest.mark.parametrize("write", ["upsert", pytest.param("insert overwrite", marks=pytest.mark.thorough)])
def test_a_write_that_slept_on_s3(bucket: Bucket, write: str) -> None:
    loaded = Write(bucket, "made mor 9", write, "object")
    several_stops(loaded, bucket, WRITES[write].act, _others, S3_POINTS)


def _others(table: HoodieTable, subject: Any) -> Any:
    return upsert(table, replace(subject, data=subject.next_data))


# Table services ------------------------------------------------------------------------------------------------------


def undoes_and_runs(table: HoodieTable, subject: Subject) -> Any:
    """Take the sleeper's run back, and run the compaction again."""
    rollback(table, subject)
    return run(table.refresh(), subject)


class Service:
    """Loads a table with a compaction planned, or one done, and checks what became of it after a stop."""

    def __init__(self, place: Place, name: str, lock: str, *, cleans: bool) -> None:
        place.load(service_table(name))
        self._place, self._cleans = place, cleans
        self._before: str = asked(lambda: checks.rows(files_at(place)))

        def plan() -> str | None:
            table = open_table(files_at(place))
            return (
                table.compact(options=options(lock)).instant
                if cleans
                else table.schedule_compaction(options=options(lock))
            )

        self.subject = Subject(options(lock), asked(plan))
        self._state = place.dump()
        self._had: int = asked(lambda: commits(place))

    def load(self) -> None:
        self._place.load(self._state)

    def judge(self, end: Stopped) -> None:
        assert end.sleeper in {"done", "nothing to do", UNKNOWN} | LOST, end
        now, pending = judge(self._place, self.subject, self._before)
        if not self._cleans:
            done = [end.sleeper, end.other].count("done")
            assert done <= 1, end
            assert now - self._had in ((0, 1) if UNKNOWN in (end.sleeper, end.other) else (done,)), end
            # The rollback of a plan whose run had not begun removes the plan; the run after it finds none.
            gone = end.other == InvalidQueryError.__name__
            assert pending == (now == self._had and not gone), end
        finish(self._place, self.subject, self._before)


@pytest.mark.slow
@pytest.mark.parametrize("other", [undoes_and_runs, run], ids=["undone and run", "run"])
@pytest.mark.parametrize(
    ("table", "lock"),
    [
        ("compaction_inline_rounds_mor_v9", "file"),
        pytest.param("mdt_files_mor_v9", "none", marks=pytest.mark.thorough),
        pytest.param("old15_metadata_mor", "file", marks=pytest.mark.thorough),
    ],
)
def test_a_compaction_that_slept(folder: Folder, table: str, other: Act, lock: str) -> None:
    loaded = Service(folder, table, lock, cleans=False)
    ends = several_stops(loaded, folder, run, other, DISK_POINTS)
    assert {each.sleeper for each in ends} & LOST, ends


@pytest.mark.slow
@pytest.mark.parametrize(("table", "lock"), [("mdt_files_mor_v9", "file"), ("compaction_inline_rounds_mor_v6", "none")])
def test_a_clean_that_slept(folder: Folder, table: str, lock: str) -> None:
    loaded = Service(folder, table, lock, cleans=True)
    ends = several_stops(loaded, folder, clean, clean, DISK_POINTS)
    assert "done" in {each.other for each in ends} | {each.sleeper for each in ends}
