from __future__ import annotations

import json
from pathlib import Path

from hoodie_py import HoodieTable
from tests.writer.compaction_tables import QUICK as OPTIONS
from tests.writer.compaction_tables import rows, writable
from tests.writer.written_tables import Kind, row

QUICK = ("--option", "hoodie.time.generator.max_expected_clock_skew_ms=0")


def test_columns_are_altered(hoodie, tmp_path: Path) -> None:
    table = writable("basic_mor_v9_part", tmp_path)
    names = HoodieTable.open(table).schema.names
    wanted = ("--add", "more=decimal(10, 2)", "--move", "more=first", "--comment", "more=money", *QUICK)
    planned = hoodie("alter", table, *wanted, "--dry-run").stdout
    assert planned.startswith("Not altered yet:")
    assert HoodieTable.open(table).schema.names == names
    done = json.loads(hoodie("alter", table, *wanted, "--json").stdout)
    assert done["columns"]["more"] == "decimal128(10, 2)"
    assert HoodieTable.open(table).schema.names[5] == "more"
    assert "more becomes most" in hoodie("alter", table, "--rename", "more=most", *QUICK).stdout
    assert "most is dropped" in hoodie("alter", table, "--drop", "most", *QUICK).stdout
    assert HoodieTable.open(table).schema.names == names
    assert "Nothing to alter" in hoodie("alter", table, "--nullable", names[-1]).stdout


def test_wrong_changes(hoodie, tmp_path: Path) -> None:
    table = writable("basic_mor_v9_part", tmp_path)
    assert "no column 'nope'" in hoodie("alter", table, "--drop", "nope", status=1).stderr
    assert "is no type" in hoodie("alter", table, "--add", "x=thing", status=1).stderr
    assert "NAME=VALUE" in hoodie("alter", table, "--add", "x", status=2).stderr


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
