from __future__ import annotations

import json
from pathlib import Path

from hoodie_py import HoodieTable
from tests.writer.compaction_tables import writable

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
