"""Java Hudi and this package take turns at one table: what either plans, compacts and cleans, the other goes on with.

Every step compares all rows and columns: Java's default read, its read without the metadata table, its filtered reads
and our own, with each other and with a model of the rows.
"""

from __future__ import annotations

import pytest

from integration.java_hudi.tables import KINDS, Kind, Lake, make_row, same_rows

PARTITIONED = [kind for kind in KINDS if kind.partitioned]
every_kind = pytest.mark.parametrize("lake", KINDS, ids=str, indirect=True)
partitioned = pytest.mark.parametrize("lake", PARTITIONED, ids=str, indirect=True)
one_of_each_version = pytest.mark.parametrize(
    "lake", [Kind(version, True, True) for version in (9, 8, 6)], ids=str, indirect=True
)


def check_compacted(lake: Lake, instant: str) -> None:
    """One completed commit, nothing pending, and read-optimised rows are the snapshot's."""
    table = lake.open()
    found = table.timeline.find(instant)
    assert found is not None
    assert (found.action, found.state) == ("commit", "completed")
    assert lake.planned() == []
    assert not list((lake.path / ".hoodie" / ".temp").glob(instant))


def go_on(lake: Lake, ts: int) -> None:
    """Java writes, compacts and cleans the table as if nobody else had touched it."""
    lake.change(ts)
    lake.check()
    lake.check_metadata()
    lake.run_java()
    lake.java.clean(lake.path, lake.kind.service_options)
    lake.change(ts + 1)
    lake.check()


@every_kind
def test_we_schedule_and_run(lake: Lake) -> None:
    before = lake.check()
    assert lake.log_files()
    instant = lake.open().schedule_compaction()
    assert instant is not None
    same_rows(before, lake.check())
    result = lake.open().run_compaction(instant)
    assert result.instant == instant
    check_compacted(lake, instant)
    assert lake.log_files() == 0
    same_rows(before, lake.check())
    go_on(lake, 4)


@partitioned
def test_we_schedule_and_java_runs(lake: Lake) -> None:
    before = lake.check()
    instant = lake.open().schedule_compaction()
    assert instant is not None
    assert lake.run_java(instant) == instant
    check_compacted(lake, instant)
    same_rows(before, lake.check())
    go_on(lake, 4)


@partitioned
def test_java_schedules_and_we_run(lake: Lake) -> None:
    before = lake.check()
    instant = lake.schedule_java()
    result = lake.open().run_compaction()
    assert result.instant == instant
    check_compacted(lake, instant)
    same_rows(before, lake.check())
    go_on(lake, 4)


@partitioned
def test_java_writes_while_ours_is_pending_and_we_run(lake: Lake) -> None:
    instant = lake.open().schedule_compaction()
    assert instant is not None
    lake.change(4)
    before = lake.check()
    assert lake.open().run_compaction(instant).instant == instant
    check_compacted(lake, instant)
    same_rows(before, lake.check())
    second = lake.open().compact().instant
    assert second is not None
    check_compacted(lake, second)
    same_rows(before, lake.check())
    go_on(lake, 5)


@partitioned
def test_java_writes_while_ours_is_pending_and_java_runs(lake: Lake) -> None:
    instant = lake.open().schedule_compaction()
    assert instant is not None
    lake.change(4)
    before = lake.check()
    assert lake.run_java(instant) == instant
    same_rows(before, lake.check())
    assert lake.open().compact().instant is not None
    same_rows(before, lake.check())


@one_of_each_version
def test_java_writes_while_javas_is_pending_and_we_run(lake: Lake) -> None:
    instant = lake.schedule_java()
    lake.change(4)
    before = lake.check()
    assert lake.open().run_compaction(instant).instant == instant
    same_rows(before, lake.check())
    go_on(lake, 5)


@one_of_each_version
def test_compactions_in_turn(lake: Lake) -> None:
    for ts in (4, 6):
        assert lake.open().compact().instant is not None
        lake.change(ts)
        before = lake.check()
        lake.run_java()
        same_rows(before, lake.check())
        lake.change(ts + 1)
    assert lake.open().compact().instant is not None
    lake.check()


@partitioned
def test_we_clean_and_java_goes_on(lake: Lake) -> None:
    assert lake.open().compact().instant is not None
    lake.change(4)
    assert lake.open().compact().instant is not None
    lake.change(5)
    before = lake.check()
    cleaned = lake.open().clean(retain_commits=1)
    assert cleaned.files_deleted > 0
    same_rows(before, lake.check())
    lake.check_metadata()
    go_on(lake, 6)
    lake.open().clean(retain_commits=1)
    lake.check()


@one_of_each_version
def test_we_take_our_plan_back(lake: Lake) -> None:
    before = lake.check()
    instant = lake.open().schedule_compaction()
    assert instant is not None
    lake.open().rollback(instant)
    assert lake.planned() == []
    same_rows(before, lake.check())
    go_on(lake, 4)


@one_of_each_version
def test_all_rows_of_a_group_are_deleted(lake: Lake) -> None:
    group = [row for row in lake.rows.values() if row["part"] == "p1"]
    lake.write([{**row, "ts": 4} for row in group], "delete")
    before = lake.check()
    instant = lake.open().compact().instant
    assert instant is not None
    check_compacted(lake, instant)
    same_rows(before, lake.check())
    lake.write([make_row(int(row["id"][1:]), 5) for row in group[:3]])
    go_on(lake, 6)


@one_of_each_version
def test_older_updates_lose(lake: Lake) -> None:
    rows = list(lake.rows.values())[:6]
    lake.write([{**row, "ts": 9, "price": 900.0} for row in rows])
    lake.write([{**row, "ts": 5, "price": 500.0} for row in rows])
    before = lake.check()
    assert lake.open().compact().instant is not None
    same_rows(before, lake.check())
    lake.write([{**row, "ts": 6, "price": 600.0} for row in rows])
    lake.check()
    lake.run_java()
    lake.check()
