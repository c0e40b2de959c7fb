"""Change data that we write is what Java reads, in all modes, and Java's and ours follow each other in one table."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from integration.java_hudi.change_data import MODES, Capturing, ChangingTable
from integration.java_hudi.session import JavaSession
from integration.java_hudi.tables import Kind, Lake, make_row

EVERY = [
    Capturing(Kind(version, partitioned=True, metadata=True, merge_on_read=mor), mode)
    for version in (9, 8, 6)
    for mor in (False, True)
    for mode in MODES
]
ONE_OF_EACH = [each for each in EVERY if each.mode == MODES[EVERY.index(each) // 6]]
one_of_each = pytest.mark.parametrize("table", ONE_OF_EACH, ids=str, indirect=True)
merge_on_read = pytest.mark.parametrize(
    "table", [each for each in ONE_OF_EACH if each.kind.merge_on_read], ids=str, indirect=True
)


@pytest.fixture
def table(java: JavaSession, tmp_path: Path, request: pytest.FixtureRequest) -> ChangingTable:
    """A table that is yet to be made."""
    return ChangingTable(java, tmp_path / "table", request.param)


@pytest.mark.parametrize("table", EVERY, ids=str, indirect=True)
def test_java_reads_our_changes(table: ChangingTable) -> None:
    table.create()
    table.write([make_row(number) for number in range(12)])
    table.write([make_row(0, 0, name="too old"), make_row(1, 2, name="newer")])
    table.change(3)
    table.check()
    if table.of.kind.merge_on_read:
        table.compact()
        table.check()
        table.change(4)
        table.check()
    table.write([{**row, "ts": 9} for row in list(table.rows.values()) if row["part"] == "p1"], "delete")
    table.replace_partition([make_row(number, 5) for number in (0, 3, 60)])
    table.check()


@one_of_each
def test_java_and_we_take_turns(table: ChangingTable) -> None:
    table.write([make_row(number) for number in range(12)], "insert", by_java=True)
    for turn in range(10):
        by_java = bool(turn % 2)
        table.change(turn + 2, by_java=by_java)
        if table.of.kind.merge_on_read and turn % 4 in (1, 2):
            table.compact(by_java=by_java)
        if turn in (4, 9):
            table.check()


@merge_on_read
def test_java_reads_our_changes_beside_a_pending_compaction(table: ChangingTable) -> None:
    table.create()
    table.write([make_row(number) for number in range(12)])
    table.change(2)
    instant = HoodieTable.open(table.path).schedule_compaction()
    table.change(3)
    table.check()
    assert HoodieTable.open(table.path).run_compaction(instant).instant == instant
    table.change(4)
    table.check()


@one_of_each
def test_java_rolls_back_what_we_left(table: ChangingTable) -> None:
    table.create()
    table.write([make_row(number) for number in range(12)])
    table.change(2, by_java=True)
    table.kill_upsert([make_row(number, 6, price=-6.0) for number in (0, 1, 50)])
    assert table.of.kind.merge_on_read or table.change_files() - table.named_change_files()
    table.change(7, by_java=True)
    assert len(HoodieTable.open(table.path).timeline.select_pending()) == 0
    table.check()
    assert table.change_files() == table.named_change_files()


@one_of_each
def test_we_roll_back_what_we_left(table: ChangingTable) -> None:
    table.create()
    table.write([make_row(number) for number in range(12)])
    table.change(2, by_java=True)
    table.kill_upsert([make_row(number, 6, price=-6.0) for number in (0, 1, 50)])
    table.change(7)
    table.check()
    assert table.change_files() == table.named_change_files()
    table.change(8, by_java=True)
    table.check()


@merge_on_read
@pytest.mark.parametrize("by_java", [True, False])
def test_a_compaction_of_ours_that_died_is_run_again(table: ChangingTable, by_java: bool) -> None:
    table.create()
    table.write([make_row(number) for number in range(12)])
    table.change(2, by_java=True)
    table.change(3)
    instant = table.kill_compaction()
    assert table.change_files() - table.named_change_files()
    table.change(4)  # not by Java: it fails over what it wrote beside a pending compaction once that has completed
    if by_java:
        assert table.java.run_compaction(table.path, table.of.kind.service_options, instant) == instant
    else:
        assert HoodieTable.open(table.path).run_compaction(instant).instant == instant
    table.check()
    assert table.change_files() == table.named_change_files()


@one_of_each
def test_a_clean_of_ours_removes_what_java_s_does(table: ChangingTable, tmp_path: Path) -> None:
    table.write([make_row(number) for number in range(12)], "insert", by_java=True)
    for turn in range(4):
        table.change(turn + 2, by_java=bool(turn % 2))
        if table.of.kind.merge_on_read:
            table.compact(by_java=not turn % 2)
    for number, retained in enumerate((1, 3)):
        theirs, ours = (table.copied(tmp_path / f"{name}{number}") for name in ("java", "ours"))
        table.java.clean(theirs.path, theirs.of.kind.service_options, retained)
        HoodieTable.open(ours.path).clean(retain_commits=retained)
        assert ours.change_files() == theirs.change_files()
        assert ours.change_files() < table.change_files()
        Lake(table.java, ours.path, ours.of.kind, ours.rows).check()
        ours.change(9, by_java=True)
        Lake(table.java, ours.path, ours.of.kind, ours.rows).check()
