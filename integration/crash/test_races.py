"""Two processes at one table, each delayed at random at its storage calls: at most one wins, and the rows stay."""

from __future__ import annotations

from typing import Any

import pytest

from hoodie_py import HoodieTable
from integration.crash import checks
from integration.crash.operations import LOCKS, QUICK, Subject, clean, rollback, run, schedule
from integration.crash.races import LOST, Act, asked, race
from integration.crash.stores import Bucket, Folder, Place, State, files_at, open_table
from integration.crash.tables import table

ROUNDS = 6
TABLES = ["compaction_inline_rounds_mor_v6", "compaction_inline_rounds_mor_v9", "mdt_files_mor_v9"]


def compact(opened: HoodieTable, subject: Subject) -> Any:
    """Plan and run, as two cron jobs would."""
    instant = schedule(opened, subject)
    return instant and run(opened, Subject(subject.options, instant))


def opened(place: Place) -> HoodieTable:
    return open_table(files_at(place))


def planned(place: Place, name: str, lock: str) -> tuple[State, Subject, str]:
    """Return a table with a compaction planned, who is at it, and the rows."""
    options = {**QUICK, **LOCKS[lock]}
    place.load(table(name))
    before = asked(lambda: checks.rows(files_at(place)))
    instant = asked(lambda: opened(place).schedule_compaction(options=options))
    return place.dump(), Subject(options, instant), before


def commits(place: Place) -> int:
    return sum(each.is_completed and each.action == "commit" for each in opened(place).timeline)


def judge(place: Place, subject: Subject, before: str) -> tuple[int, bool]:
    """Check what must hold after any race; return the number of commits and whether the plan is still pending."""

    def look() -> tuple[int, bool]:
        assert checks.rows(files_at(place)) == before
        assert checks.orphans(opened(place)._snapshot, place.sizes()) == []
        pending = opened(place).timeline.select_pending_compactions().find(subject.instant)
        return commits(place), pending is not None

    found: tuple[int, bool] = asked(look)
    return found


def finish(place: Place, subject: Subject, before: str) -> None:
    """Run what is left, after which everything is compacted and nothing is lying about."""

    def work() -> None:
        place.let_time_pass(3600)
        compactions = opened(place).timeline.select_pending_compactions()
        if len(compactions):
            run(opened(place), Subject(subject.options))
        opened(place).compact(options=subject.options)
        place.let_time_pass(3600)
        opened(place).clean(1, options=subject.options)
        assert checks.rows(files_at(place)) == checks.rows(files_at(place), "read_optimized") == before
        snapshot = opened(place)._snapshot
        assert checks.orphans(snapshot, place.sizes()) == []
        assert checks.metadata_faults(snapshot, place.sizes(), subject.instant[:-1]) == []

    asked(work)


@pytest.mark.parametrize("lock", ["machine", "file"])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("other", [run, rollback, clean], ids=["compactor", "rollback", "cleaner"])
def test_a_compactor_and_another(folder: Folder, name: str, other: Act, lock: str) -> None:
    several_rounds(folder, name, [run, other], lock, ROUNDS)


@pytest.mark.parametrize("lock", ["machine", "file"])
@pytest.mark.parametrize("name", TABLES)
def test_four_that_plan_and_run(folder: Folder, name: str, lock: str) -> None:
    options = {**QUICK, **LOCKS[lock]}
    folder.load(table(name))
    before = asked(lambda: checks.rows(files_at(folder)))
    had = asked(lambda: commits(folder))
    for seed in range(ROUNDS // 2):
        folder.load(table(name))
        ends = race(folder, [compact] * 4, Subject(options), seed)
        assert set(ends) <= {"done", "nothing to do"} | LOST, ends
        assert ends.count("done") <= 1
        assert judge(folder, Subject(options, "0"), before)[0] == had + ends.count("done"), ends


@pytest.mark.s3
@pytest.mark.parametrize(
    "other",
    [
        pytest.param(run, id="compactor"),
        pytest.param(rollback, id="rollback", marks=pytest.mark.thorough),
        pytest.param(clean, id="cleaner", marks=pytest.mark.thorough),
    ],
)
def test_on_s3(bucket: Bucket, other: Act) -> None:
    several_rounds(bucket, "compaction_inline_rounds_mor_v9", [run, other], "object", 2)


def several_rounds(place: Place, name: str, acts: list[Act], lock: str, rounds: int) -> None:
    state, subject, before = planned(place, name, lock)
    had = asked(lambda: commits(place))
    for seed in range(rounds):
        place.load(state)
        ends = race(place, acts, subject, seed)
        now, pending = judge(place, subject, before)
        assert now == had + (ends[0] == "done") + (acts[1] is run and ends[1] == "done"), ends
        if acts[1] is clean:
            assert set(ends) <= {"done", "nothing to do"} | LOST, ends
        else:
            assert ends.count("done") <= 1, ends
            assert set(ends) <= {"done"} | LOST, ends
            assert pending == ("done" not in ends), ends
    finish(place, subject, before)
