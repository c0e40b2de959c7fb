from __future__ import annotations

import json
from pathlib import Path

from hoodie_py import HoodieTable
from tests.writer.compaction_tables import QUICK as OPTIONS
from tests.writer.compaction_tables import rows
from tests.writer.written_tables import Kind, row

QUICK = ("--option", "hoodie.time.generator.max_expected_clock_skew_ms=0")


def test_a_table_goes_up_and_down(hoodie, tmp_path: Path) -> None:
    base = Kind(6, False).create(tmp_path / "t")
    table = HoodieTable.open(base)
    table.upsert([row(1)], OPTIONS)
    before = rows(table)
    planned = hoodie("upgrade", base, "--dry-run", *QUICK).stdout
    assert "From version 6 to 9, this would be done:" in planned
    assert HoodieTable.open(base).config.version == 6
    done = json.loads(hoodie("upgrade", base, "--to", "8", "--json", *QUICK).stdout)
    assert (done["before"], done["after"]) == (6, 8)
    assert "The table has version 8 already." in hoodie("upgrade", base, "--to", "8", *QUICK).stdout
    assert "The table has version 6 now (it had 8)" in hoodie("downgrade", base, "--to", "6", *QUICK).stdout
    assert "Use upgrade." in hoodie("downgrade", base, "--to", "9", status=1).stderr
    assert rows(HoodieTable.open(base)) == before
