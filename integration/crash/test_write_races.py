"""Two processes at one table, one of which writes rows: what returned is there whole, what lost is not there at all."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from integration.crash import checks
from integration.crash.children import DIED, Child
from integration.crash.faults import KILL_BEFORE, Plan, faulty
from integration.crash.operations import LOCKS, QUICK, Subject
from integration.crash.races import LOST, Act, asked, race
from integration.crash.stores import Bucket, Folder, Place, files_at, open_table
from integration.crash.write_tables import write_table
from integration.crash.writes import PARTITION, strays

ROUNDS = 4
PAIRS = [
    ("made mor 9", "file"), ("made mor 6", "machine"), ("made mor 9 indexed", "file"), ("made cow 9", "machine"),
    pytest.param("made cow 8 indexed", "machine", marks=pytest.mark.thorough),
]  # fmt: skip

Rows = dict[tuple[str, str], tuple[int, str]]


def new(name: str, ts: int) -> list[dict[str, Any]]:
    """Rows that all writers write: known keys of both partitions, and a new one."""
    return [{"id": f"k{at}", "part": f"p{at % 3 % 2}", "ts": ts, "name": name} for at in (0, 1, 4, 7, 50)]


def writes(name: str) -> Act:
    def act(table: HoodieTable, subject: Subject) -> Any:
        return table.upsert(new(name, 5), subject.options)

    return act


def overwrites(table: HoodieTable, subject: Subject) -> Any:
    return table.insert_overwrite_table(new("over", 5), subject.options)


def compacts(table: HoodieTable, subject: Subject) -> Any:
    return table.compact(LocalEngine(1), options=subject.options)


def cleans(table: HoodieTable, subject: Subject) -> Any:
    return table.clean(1, subject.options)


def undoes(table: HoodieTable, subject: Subject) -> Any:
    return table.rollback(subject.instant, subject.options)


def rows(place: Place) -> Rows:
    found = open_table(files_at(place)).scan(columns=["id", PARTITION, "ts", "name"]).to_arrow()
    by_key = {(each[PARTITION], each["id"]): (each["ts"], each["name"]) for each in found.to_pylist()}
    assert len(by_key) == len(found), "a key is there twice"
    return by_key


def with_rows(before: Rows, name: str) -> Rows:
    return before | {(each["part"], each["id"]): (each["ts"], each["name"]) for each in new(name, 5)}


def outcomes(before: Rows, done: list[str]) -> list[Rows]:
    """What may be there after these writes, in whatever order they came."""
    found = []
    for order in itertools.permutations(done):
        now = before
        for name in order:
            now = with_rows({} if name == "over" else now, name)
        found.append(now)
    return found


def several_rounds(place: Place, table: str, acts: dict[str, Act], lock: str, *, pending: bool = False) -> set[str]:
    """Race; return how often what came of it. The names of acts that write are those of their rows."""
    options = {**QUICK, **LOCKS[lock]}
    seen: set[str] = set()
    for seed in range(ROUNDS):
        place.load(write_table(table))
        before = asked(lambda: rows(place))
        instant = asked(lambda: _killed(place, options)) if pending else ""
        ends = race(place, list(acts.values()), Subject(options, instant), seed)
        assert set(ends) <= {"done", "nothing to do"} | LOST, ends
        done = [name for name, end in zip(acts, ends, strict=True) if end == "done" and name in ("a", "b", "over")]
        allowed = outcomes(before, done)

        def judge(options: dict[str, str] = options, allowed: list[Rows] = allowed, ends: list[str] = ends) -> None:
            now = rows(place)
            assert now in allowed, (ends, now)
            place.let_time_pass(3600)
            last = open_table(files_at(place))
            last.upsert(new("last", 9), options)
            assert rows(place) == now | {(e["part"], e["id"]): (9, "last") for e in new("last", 9)}, ends
            pending = [each for each in last.timeline.select_pending() if each.action != "compaction"]
            assert pending == [], ends
            assert strays(last._snapshot, list(place.sizes())) == [], ends
            assert checks.orphans(last._snapshot, place.sizes()) == [], ends
            assert list(last.verify(data=False).findings) == [], ends
            if last.config.is_merge_on_read:
                now = rows(place)
                while any(each.log_files for each in last.refresh().file_slices()):
                    last.compact(options=options)
                assert rows(place) == now, ends

        asked(judge)
        seen.add(" ".join(ends))
    return seen


def _killed(place: Place, options: dict[str, str]) -> str:
    """Leave a write pending whose process died before it could commit, and return its instant."""

    def dies() -> None:
        plan = Plan()
        table = open_table(faulty(files_at(place), plan))
        plan.armed = True
        plan.fault = KILL_BEFORE
        act = plan.call

        def call(verb: str, key: str, do: Callable[[], Any]) -> Any:
            if verb == "create" and key.endswith("commit") and "/metadata/" not in key:
                plan.at = len(plan.calls)
            return act(verb, key, do)

        vars(plan)["call"] = call
        table.upsert(new("dead", 7), options)

    assert Child(dies).result()[0] == DIED
    place.let_time_pass(3600)
    pending = open_table(files_at(place)).timeline.select_pending()
    return next(each.request_time for each in pending)


@pytest.mark.parametrize(("table", "lock"), PAIRS)
def test_two_upserts(folder: Folder, table: str, lock: str) -> None:
    seen = several_rounds(folder, table, {"a": writes("a"), "b": writes("b")}, lock)
    assert any("done" in each for each in seen)


@pytest.mark.parametrize(("table", "lock"), PAIRS)
def test_an_upsert_and_an_overwrite(folder: Folder, table: str, lock: str) -> None:
    several_rounds(folder, table, {"a": writes("a"), "over": overwrites}, lock)


@pytest.mark.parametrize(("table", "lock"), PAIRS[:3])
def test_an_upsert_and_a_compaction(folder: Folder, table: str, lock: str) -> None:
    several_rounds(folder, table, {"a": writes("a"), "compaction": compacts}, lock)


@pytest.mark.parametrize(("table", "lock"), PAIRS)
def test_an_upsert_and_a_clean(folder: Folder, table: str, lock: str) -> None:
    several_rounds(folder, table, {"a": writes("a"), "clean": cleans}, lock)


@pytest.mark.parametrize(("table", "lock"), PAIRS)
def test_an_upsert_and_a_rollback(folder: Folder, table: str, lock: str) -> None:
    several_rounds(folder, table, {"a": writes("a"), "rollback": undoes}, lock, pending=True)


@pytest.mark.s3
@pytest.mark.thorough
def test_two_upserts_on_s3(bucket: Bucket) -> None:
    several_rounds(bucket, "made mor 9", {"a": writes("a"), "b": writes("b")}, "object")
