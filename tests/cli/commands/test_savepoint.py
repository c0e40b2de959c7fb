from __future__ import annotations

import json
from pathlib import Path

from hoodie_py import HoodieTable
from tests.writer.compaction_tables import QUICK as OPTIONS
from tests.writer.compaction_tables import rows, writable
from tests.writer.written_tables import Kind, row

QUICK = ("--option", "hoodie.time.generator.max_expected_clock_skew_ms=0")


def test_a_table_goes_back_to_a_savepoint(hoodie, tmp_path: Path) -> None:
    base = Kind(9, False).create(tmp_path / "t")
    table = HoodieTable.open(base)
    table.upsert([row(1)], OPTIONS)
    before = rows(table)
    made = json.loads(hoodie("savepoint", base, "--user", "me", "--comment", "why", "--json", *QUICK).stdout)
    assert (made["user"], made["comment"]) == ("me", "why")
    assert made["instant"] in hoodie("savepoint", base, "--list").stdout
    table.upsert([row(2)], OPTIONS)
    assert "1 later instants" in hoodie("restore", base, made["instant"], *QUICK).stdout.replace("\n", " ")
    assert rows(HoodieTable.open(base)) == before
    assert "There is no savepoint" in hoodie("restore", base, "20200101000000000", status=1).stderr
    hoodie("savepoint", base, made["instant"], "--delete", *QUICK)
    assert hoodie("savepoint", base, "--list").stdout == ""
    hoodie("savepoint", base, "--delete", status=2)
    hoodie("restore", base, status=2)


def test_a_plan_is_taken_back(hoodie, tmp_path: Path) -> None:
    table = writable("basic_mor_v9_part", tmp_path)
    instant = hoodie("compact", table, "--schedule-only", *QUICK).stdout.strip()
    assert "is gone" in hoodie("rollback", table, instant, *QUICK).stdout
    assert len(HoodieTable.open(table).timeline.select_pending_compactions()) == 0
    assert "Pending instants: none" in hoodie("rollback", table, instant, status=1).stderr


def test_a_failed_write_is_undone(hoodie, tmp_path: Path) -> None:
    table = writable("inflight_last_mor_v6", tmp_path)
    before = rows(HoodieTable.open(table))
    [pending] = HoodieTable.open(table).timeline.select_pending()
    result = json.loads(hoodie("rollback", table, pending.request_time, "--json", *QUICK).stdout)
    assert (result["instant"], result["action"], result["left"]) == (pending.request_time, "deltacommit", "gone")
    assert rows(HoodieTable.open(table)) == before


def test_what_is_completed_stays(hoodie, tmp_path: Path) -> None:
    table = writable("basic_mor_v9_part", tmp_path)
    first = HoodieTable.open(table).timeline.instants[0].request_time
    assert "is completed" in hoodie("rollback", table, first, status=1).stderr
    hoodie("rollback", table, status=2)


def test_a_dry_run_lists_files_and_blocks_and_removes_nothing(hoodie, tmp_path: Path) -> None:
    table = writable("inflight_last_mor_v9", tmp_path)
    [pending] = HoodieTable.open(table).timeline.select_pending()
    before = sorted(table.rglob("*"))
    shown = hoodie("rollback", table, pending.request_time, "--dry-run", *QUICK).stdout
    found = json.loads(hoodie("rollback", table, pending.request_time, "--dry-run", "--json", *QUICK).stdout)
    assert sorted(table.rglob("*")) == before
    assert f"Rolling back the deltacommit {pending.request_time} would" in shown
    assert found["files"]
    for each in found["files"]:
        assert each["path"] in shown
    assert "AVRO_DATA" in shown
    assert all(path in shown for path in found["timeline_files"])
