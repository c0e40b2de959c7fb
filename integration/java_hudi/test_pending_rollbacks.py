"""A rollback that Java Hudi began and did not finish: this package finishes it, and Java goes on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.writer.timeline.timeline_writer import TimelineWriter
from integration.java_hudi.tables import SCHEMA, Kind, Lake, make_row
from tests.writer.compaction_tables import QUICK

KINDS = [Kind(9, True, True), Kind(9, True, False), Kind(9, True, True, False), Kind(9, False, False, False)]
LOST = [make_row(number, 9, name="lost") for number in (0, 3, 6, 40, 41)]


def cut_short(base: Path) -> str:
    """Take the last step of the newest rollback back, where Java died: it had removed the instant before."""
    table = HoodieTable.open(base)
    rollback = table.timeline.select_actions("rollback").instants[-1]
    TimelineWriter(table.files, table.config).remove(rollback)
    return rollback.request_time


def going_on(lake: Lake, how: str, rollback: str) -> None:
    rows = [make_row(number, 5, name="ours") for number in (1, 4, 50)]
    if how == "upsert":
        lake.open().upsert(pa.Table.from_pylist(rows, SCHEMA), QUICK)
        lake.note(rows, "upsert")
    elif how == "compact":
        lake.open().compact(options=QUICK)
    else:
        assert lake.open().rollback(rollback, QUICK).left == "gone"
    assert all(each.is_completed for each in lake.open().timeline.select_actions("rollback"))
    lake.check()
    lake.change(7)
    lake.check()
    if lake.kind.merge_on_read:
        lake.run_java()
        lake.check()
    if lake.kind.metadata:
        lake.check_metadata()


@pytest.mark.parametrize("how", ["upsert", "rollback"])
@pytest.mark.parametrize("lake", KINDS, ids=str, indirect=True)
def test_of_a_write(lake: Lake, how: str) -> None:
    rows = dict(lake.rows)
    lake.write(LOST)
    last = lake.open().timeline.select_writes().instants[-1].request_time
    lake.java.call(lake.path, "rollback_to_instant", instant_time=last)
    lake.rows = rows
    going_on(lake, how, cut_short(lake.path))


@pytest.mark.parametrize("how", ["upsert", "compact", "rollback"])
@pytest.mark.parametrize("lake", [*KINDS[:2], Kind(8, True, False)], ids=str, indirect=True)
def test_of_a_compaction(lake: Lake, how: str) -> None:
    lake.java.call(lake.path, "rollback_to_instant", instant_time=lake.run_java())
    going_on(lake, how, cut_short(lake.path))
