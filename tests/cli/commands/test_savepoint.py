from __future__ import annotations

import json
from pathlib import Path

from hoodie_py import HoodieTable
from tests.writer.compaction_tables import QUICK as OPTIONS
from tests.writer.compaction_tables import rows
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
