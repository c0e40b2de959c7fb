"""A write that had not completed is taken back by one process while others read what they have listed before."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from hoodie_py import HoodieTable, Scan
from integration.crash.operations import LOCKS, QUICK, Subject
from integration.crash.races import LOST, asked, race
from integration.crash.stores import Bucket, Folder, Place
from integration.crash.test_write_races import PARTITION, Rows, _killed, new, rows, with_rows
from integration.crash.write_tables import write_table

TABLES = ["made mor 6", "made mor 8", "made mor 9", "made cow 6"]
LONGEST = 60.0

Read = Callable[[Scan], Any]


def whole(scan: Scan) -> Rows:
    found = scan.to_arrow().to_pylist()
    return {(each[PARTITION], each["id"]): (each["ts"], each["name"]) for each in found}


def by_task(scan: Scan) -> Rows:
    found = [row for task in scan.tasks() for batch in task.to_batches() for row in batch.to_pylist()]
    return {(each[PARTITION], each["id"]): (each["ts"], each["name"]) for each in found}


def reads_late(read: Read, before: Rows, **scan: Any) -> Callable[[HoodieTable, Subject], Any]:
    """List the files, wait until the write is gone, and read."""

    def act(table: HoodieTable, subject: Subject) -> Any:
        pinned = table.scan(columns=["id", PARTITION, "ts", "name"], **scan)
        assert pinned.tasks()
        wait_until_gone(table, subject.instant)
        found = read(pinned)
        assert found == before, found
        return True

    return act


def wait_until_gone(table: HoodieTable, instant: str) -> None:
    deadline = time.monotonic() + LONGEST
    while table.refresh().timeline.find(instant) is not None:
        assert time.monotonic() < deadline, "nobody took the write back"
        time.sleep(0.3)  # each look asks the store several times


def undoes_later(table: HoodieTable, subject: Subject) -> Any:
    time.sleep(0.5)  # until the readers have listed what there is
    return table.rollback(subject.instant, subject.options)


def writes_over_it(table: HoodieTable, subject: Subject) -> Any:
    time.sleep(0.5)
    return table.upsert(new("over", 5), subject.options)


def check(place: Place, name: str, lock: str) -> None:
    options = {**QUICK, **LOCKS[lock]}
    for seed, taker in enumerate((undoes_later, writes_over_it)):
        place.load(write_table(name))
        before = asked(lambda: rows(place))
        subject = Subject(options, asked(lambda: _killed(place, options)))
        readers = [reads_late(whole, before), reads_late(by_task, before), reads_late(whole, before, memory_limit=1)]
        ends = race(place, [*readers, taker], subject, seed)
        assert ends == ["done"] * 4
        after = with_rows(before, "over") if taker is writes_over_it else before
        assert asked(lambda: rows(place)) == after


@pytest.mark.parametrize("name", TABLES)
def test_a_pinned_read_gives_the_same_rows(folder: Folder, name: str) -> None:
    check(folder, name, "machine")


@pytest.mark.s3
@pytest.mark.thorough
@pytest.mark.parametrize("name", ["made mor 9"])
def test_a_pinned_read_gives_the_same_rows_on_s3(bucket: Bucket, name: str) -> None:
    check(bucket, name, "object")


@pytest.mark.parametrize("name", ["made mor 6", "made mor 9"])
def test_writers_either_win_or_meet_a_conflict(folder: Folder, name: str) -> None:
    """Two write while a third takes a failed write back; none meets a file that is missing."""
    options = {**QUICK, **LOCKS["file"]}
    for seed in range(4):
        folder.load(write_table(name))
        before = asked(lambda: rows(folder))
        subject = Subject(options, asked(lambda: _killed(folder, options)))

        def writes(table: HoodieTable, subject: Subject) -> Any:
            return table.upsert(new("a", 5), subject.options)

        def undoes(table: HoodieTable, subject: Subject) -> Any:
            return table.rollback(subject.instant, subject.options)

        ends = race(folder, [writes, writes, undoes], subject, seed)
        assert set(ends) <= {"done"} | LOST, ends
        wrote = "done" in ends[:2]
        assert asked(lambda: rows(folder)) == (with_rows(before, "a") if wrote else before)
