"""A compaction whose store dies, refuses or loses its answer, all over: the rows stay, and a re-run completes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieError, HoodieTable
from hoodie_py.files import TableFiles
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from tests.writer.compaction_tables import QUICK, completed, copied, leftovers, missing, opened, orphans, rows, writable
from tests.writer.faulty_files import WRITES, FaultyFiles, Killed, Plan

TABLES = [
    "basic_mor_v6_part", "basic_mor_v8_part", "basic_mor_v9_part", "mdt_files_mor_v9", "mdt_all_mor_v6",
    "cdc_before_after_mor_v6", "cdc_before_mor_v9",
]  # fmt: skip
pytestmark = [
    pytest.mark.filterwarnings("ignore:The compaction is complete"),  # its markers were not removed
    pytest.mark.filterwarnings("ignore:A heartbeat was not removed"),
]

FAULTS = ("kill before", "kill after", "refuse", "lose answer")
STRIDE = 5  # every so manyth writing call


def schedule(table: HoodieTable, _: str | None) -> Any:
    return table.schedule_compaction(options=QUICK)


def run(table: HoodieTable, instant: str | None) -> Any:
    return table.run_compaction(instant, LocalEngine(1), QUICK)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("action", [schedule, run])
@pytest.mark.parametrize("name", TABLES)
def test_rows_stay_and_a_re_run_completes(name: str, action: Any, fault: str, tmp_path: Path) -> None:
    start = writable(name, tmp_path / "start")
    before = rows(HoodieTable.open(start))
    commits = completed(HoodieTable.open(start), "commit")
    instant = None if action is schedule else HoodieTable.open(start).schedule_compaction(options=QUICK)
    trace = Plan(watched=WRITES)
    action(opened(FaultyFiles(TableFiles.open(copied(start, tmp_path / "traced")), trace)), instant)
    first = (FAULTS.index(fault) + TABLES.index(name)) % STRIDE
    for at in {*range(first, len(trace.trace), STRIDE), len(trace.trace) - 1}:
        base = copied(start, tmp_path / "case")
        plan = Plan(at=at, fault=fault, watched=WRITES)
        with suppress(Killed, HoodieError):
            action(opened(FaultyFiles(TableFiles.open(base), plan)), instant)
        assert plan.dead is fault.startswith("kill"), trace.trace[at]
        assert rows(HoodieTable.open(base)) == before, trace.trace[at]
        table = HoodieTable.open(base)
        pending = table.timeline.select_pending_compactions().last
        if pending is None:
            table.compact(LocalEngine(1), options=QUICK)
        else:
            run(table, pending.request_time)
        now = HoodieTable.open(base)
        assert rows(now) == rows(now, "read_optimized") == before, trace.trace[at]
        assert len(completed(now, "commit")) == len(commits) + 1
        now.schedule_compaction(options=QUICK)
        assert (orphans(base), missing(base), leftovers(base)) == ([], [], []), trace.trace[at]
