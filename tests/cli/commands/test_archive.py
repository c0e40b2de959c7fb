from __future__ import annotations

import json
from pathlib import Path

from hoodie_py import HoodieTable
from tests.writer.written_tables import Kind, row

QUICK = (
    "--option",
    "hoodie.time.generator.max_expected_clock_skew_ms=0",
    "--option",
    "hoodie.clean.commits.retained=1",
)
KEEP = ("--min-commits", "1", "--max-commits", "2", *QUICK)


def test_old_instants_go_and_are_still_listed(hoodie, tmp_path: Path) -> None:
    base = Kind(9, merge_on_read=False, partitioned=False).create(tmp_path / "t")
    for ts in range(4):
        HoodieTable.open(base).upsert([row(1, ts)], {"hoodie.time.generator.max_expected_clock_skew_ms": 0})
    assert "There is nothing to archive of 4 commits" in hoodie("archive", base).stdout
    shown = json.loads(hoodie("archive", base, *KEEP, "--dry-run", "--json").stdout)
    assert (len(shown["instants"]), shown["dry_run"]) == (2, True)  # a clean retains one, and two more stay
    assert hoodie("archive", base, *KEEP).stdout.startswith("Archived 2 instants, ")
    assert len(json.loads(hoodie("timeline", base, "--json").stdout)) == 2
    assert len(json.loads(hoodie("timeline", base, "--archived", "--json").stdout)) == 4
