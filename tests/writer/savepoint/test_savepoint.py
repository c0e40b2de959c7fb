from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, InvalidQueryError, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.instants import INFLIGHT, SAVEPOINT, Instant
from hoodie_py.writer.savepoint.savepoint import create_savepoint
from hoodie_py.writer.timeline.session import InstantClock
from tests.writer.compaction_tables import QUICK, completed, opened, rows
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan
from tests.writer.written_tables import Kind, row, session


def written(kind: Kind, base: Path, rounds: int = 3) -> HoodieTable:
    """A table with some commits."""
    table = HoodieTable.open(kind.create(base))
    for ts in range(1, rounds + 1):
        table.upsert([row(number, ts) for number in range(6 if ts == 1 else 3)], QUICK)
    return table


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(8, False, False), Kind(6, True)], ids=str)
def test_a_savepoint_keeps_the_files_of_a_commit_from_cleans(kind: Kind, tmp_path: Path) -> None:
    table = written(kind, tmp_path / "t", 2)
    before, instant = rows(table), str(table._snapshot.instant)
    made = table.savepoint(user="me", comment="before the change", options=QUICK)
    assert (made.instant, made.user, made.comment) == (instant, "me", "before the change")
    assert table.savepoints() == [made] == HoodieTable.open(table.uri).savepoints()
    assert str(made) == f"Savepoint {instant} by me keeps {made.files} files: before the change."
    for ts in (3, 4, 5):
        table.upsert([row(number, ts) for number in range(6)], QUICK)
        if kind.merge_on_read:
            table.compact(options=QUICK)
    table.clean(1, QUICK)
    assert rows(HoodieTable.open(table.uri)) != before
    assert rows_at(table, instant) == before
    with pytest.raises(InvalidQueryError, match="has a savepoint already"):
        table.savepoint(instant, options=QUICK)
    table.delete_savepoint(instant, QUICK)
    assert table.savepoints() == [] == completed(HoodieTable.open(table.uri), "savepoint")
    table.upsert([row(1, 6)], QUICK)
    assert table.clean(1, QUICK).files_deleted


def rows_at(table: HoodieTable, instant: str) -> object:
    from collections import Counter

    found = table.scan(as_of=instant).to_arrow().drop_columns(["_hoodie_file_name"])
    return Counter(map(repr, found.to_pylist()))


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(6, False)], ids=str)
def test_a_commit_that_was_cleaned_gets_none(kind: Kind, tmp_path: Path) -> None:
    table = written(kind, tmp_path / "t")
    first = table.timeline.select_writes().instants[0].request_time
    if kind.merge_on_read:
        table.compact(options=QUICK)
    table.upsert([row(number, 8) for number in range(6)], QUICK)
    assert table.clean(1, QUICK).files_deleted
    with pytest.raises(InvalidQueryError, match="A clean may have removed files"):
        table.savepoint(first, options=QUICK)
    for wrong in ("20200101000000000", "nonsense"):
        with pytest.raises(InvalidQueryError, match="There is no commit at"):
            table.savepoint(wrong, options=QUICK)
        with pytest.raises(InvalidQueryError, match="There is no savepoint at"):
            table.delete_savepoint(wrong, QUICK)


def test_an_empty_table_gets_none(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, True).create(tmp_path / "t"))
    with pytest.raises(InvalidQueryError, match="no completed commit"):
        table.savepoint()
    assert table.savepoints() == []


@pytest.mark.parametrize("fault", ["kill before", "kill after"])
def test_a_savepoint_that_was_cut_short_is_made_again(fault: str, tmp_path: Path) -> None:
    table = written(Kind(9, True), tmp_path / "t")
    files = TableFiles.open(table.uri)
    for at in range(20):
        plan = Plan(at=at, fault=fault, watched=WRITES)
        try:
            opened(FaultyFiles(files, plan)).savepoint(options=QUICK)
        except Killed:
            pass
        else:
            break
        again = HoodieTable.open(table.uri)
        if not again.savepoints():
            again.savepoint(options=QUICK)
        again.upsert([row(1, 9)], QUICK)
        again.delete_savepoint(again.savepoints()[0].instant, QUICK)
    assert 2 <= at < 19


@pytest.mark.parametrize("fault", ["kill before", "kill after", "refuse", "lose answer"])
def test_a_deletion_that_was_cut_short_leaves_a_savepoint_or_nothing(fault: str, tmp_path: Path) -> None:
    """Never an inflight file alone, which nobody could take away: cleans keep what it may name."""
    table = written(Kind(9, True), tmp_path / "t")
    files = TableFiles.open(table.uri)
    for at in range(20):
        instant = table.savepoint(options=QUICK).instant
        try:
            opened(FaultyFiles(files, Plan(at=at, fault=fault, watched=WRITES))).delete_savepoint(instant, QUICK)
        except (Killed, StorageError):
            pass
        else:
            break
        table = HoodieTable.open(table.uri)
        if table.savepoints():
            table.delete_savepoint(instant, QUICK)
        assert list((tmp_path / "t").rglob("*.savepoint*")) == []
        table = HoodieTable.open(table.uri)
    assert 2 <= at < 19


def test_a_savepoint_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    """The newest time on the timeline is ahead of the clock by more than one waits for, but not by a mistake."""
    table = written(Kind(9, True), tmp_path / "t")
    instant = table._snapshot.instant
    late = session(tmp_path / "t")
    clock = InstantClock(now=lambda: datetime.now(UTC) - timedelta(minutes=1), sleep=lambda _: None)
    with pytest.raises(ConflictError, match="ahead of this machine's clock"):
        create_savepoint(replace(late, clock=clock), instant, "", "")
    assert list((tmp_path / "t").rglob("*.savepoint*")) == []


@pytest.mark.parametrize("change", ["upsert", "clean", "services"])
@pytest.mark.parametrize("kind", [Kind(9, True), Kind(6, True)], ids=str)
def test_what_a_dead_savepoint_left_is_removed_once_it_is_old(kind: Kind, change: str, tmp_path: Path) -> None:
    table = written(kind, tmp_path / "t")
    timeline = session(tmp_path / "t").open_timeline(table._snapshot)
    left = tmp_path / "t" / timeline.locate(Instant(str(table._snapshot.instant), None, SAVEPOINT, INFLIGHT))
    left.touch()

    def do() -> None:
        table = HoodieTable.open(tmp_path / "t")
        if change == "upsert":
            table.upsert([row(1, 9)])
        elif change == "services":
            table.services(run=True, only=["failed writes"])
        else:
            getattr(table, change)()

    do()
    assert left.exists(), "somebody may be at work on it"
    then = time.time() - 121
    os.utime(left, (then, then))
    do()
    assert not left.exists()
