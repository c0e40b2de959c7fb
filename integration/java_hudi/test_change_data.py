"""Change data that we write is what Java reads, in all modes, and Java's and ours follow each other in one table."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.java_hudi.change_data import MODES, Capturing, ChangingTable
from integration.java_hudi.session import JavaSession
from integration.java_hudi.tables import Kind, make_row

EVERY = [
    Capturing(Kind(version, partitioned=True, metadata=False, merge_on_read=mor), mode)
    for version in (9, 8, 6)
    for mor in (False, True)
    for mode in MODES
]
ONE_OF_EACH = [each for each in EVERY if each.mode == MODES[EVERY.index(each) // 6]]


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


@pytest.mark.parametrize("table", ONE_OF_EACH, ids=str, indirect=True)
def test_java_and_we_take_turns(table: ChangingTable) -> None:
    table.write([make_row(number) for number in range(12)], "insert", by_java=True)
    for turn in range(10):
        by_java = bool(turn % 2)
        table.change(turn + 2, by_java=by_java)
        if table.of.kind.merge_on_read and turn % 4 in (1, 2):
            table.compact(by_java=by_java)
        if turn in (4, 9):
            table.check()
