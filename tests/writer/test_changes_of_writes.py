"""Random writes to tables with change data: the changes of every range lead from the rows before it to those after."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieTable
from hoodie_py.formats.config.table_config import CDC_MODES
from tests.writer.compaction_tables import QUICK, orphans
from tests.writer.written_tables import Kind, Row, row

KINDS = [
    (Kind(version, merge_on_read, partitioned=bool(number % 2), captures=True), CDC_MODES[number % 3])
    for number, (version, merge_on_read) in enumerate((v, mor) for v in (9, 8, 6) for mor in (True, False))
]
STEPS = 14
Rows = dict[str, Row]


def step(table: HoodieTable, lot: random.Random, ts: int) -> None:
    """One write, or a part of a compaction."""
    pending = table.timeline.select_pending_compactions().last
    some = lot.sample(range(24), lot.randrange(1, 8))
    stale = lot.random() < 0.2
    rows = [row(number, ts - 4 if stale else ts, f"n{ts}") for number in some]
    choice = lot.random()
    if choice < 0.5:
        table.upsert(rows, options=QUICK)
    elif choice < 0.7:
        table.delete([each | {"ts": ts} for each in rows], options=QUICK)
    elif choice < 0.8 and pending is None:
        table.insert_overwrite(rows, options=QUICK)
    elif not table.config.is_merge_on_read:
        table.insert([row(100 + ts, ts)], options=QUICK)
    elif pending is not None:
        table.run_compaction(pending.request_time, options=QUICK)
    elif choice < 0.9:
        table.schedule_compaction(options=QUICK)
    else:
        table.compact(options=QUICK)


def read(table: HoodieTable) -> Rows:
    rows = table.scan(["id", "part", "ts", "name"]).to_arrow().to_pylist()
    assert len({each["id"] for each in rows}) == len(rows)
    return {each["id"]: each for each in rows}


def newest_time(table: HoodieTable) -> str:
    """Where a range begins that follows all commits of the table."""
    by_request = table.config.version < 8
    done = table.timeline.select_writes()
    return max((each.request_time if by_request else each.completion_time or "" for each in done), default="")


def replay(changes: list[dict[str, Any]], rows: Rows) -> Rows:
    """Apply changes to rows, and check that each fits."""
    now = dict(rows)
    for change in changes:
        before, after = change["before"], change["after"]
        key = (before or after)["id"]
        assert (before is None, after is None) == {"i": (True, False), "u": (False, False), "d": (False, True)}[
            change["op"]
        ]
        assert now.pop(key, None) == before
        if after is not None:
            now[key] = after
    return now


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("kind", "mode"), KINDS, ids=str)
def test_changes_lead_from_rows_to_rows(kind: Kind, mode: str, seed: int, tmp_path: Path) -> None:
    lot = random.Random(f"{kind} {mode} {seed}")
    kind.create(tmp_path, properties={"hoodie.table.cdc.supplemental.logging.mode": mode})
    seen: list[tuple[str, Rows]] = [("", {})]
    for ts in range(5, 5 + STEPS):
        step(HoodieTable.open(tmp_path), lot, ts)
        table = HoodieTable.open(tmp_path)
        seen.append((newest_time(table), read(table)))
    table = HoodieTable.open(tmp_path)
    for start, rows in seen[:-1]:
        found = table.changes(start or "earliest", as_structs=True).to_arrow().to_pylist()
        found.sort(key=lambda change: (change["ts_ms"], change["op"] != "d"))  # an overwrite replaces groups
        wanted = [{**each, "before": pick(each["before"]), "after": pick(each["after"])} for each in found]
        assert replay(wanted, rows) == seen[-1][1], start
    assert orphans(tmp_path) == []


def pick(image: Row | None) -> Row | None:
    return None if image is None else {name: image[name] for name in ("id", "part", "ts", "name")}
