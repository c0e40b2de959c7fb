from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from tests.writer.compaction_tables import rows, writable

QUICK = ("--option", "hoodie.time.generator.max_expected_clock_skew_ms=0")
KEEP_ONE = ("--policy", "KEEP_LATEST_FILE_VERSIONS", "--option", "hoodie.clean.fileversions.retained=1")


@pytest.fixture
def table(hoodie, tmp_path: Path) -> Path:
    """A table with old slices: it was just compacted."""
    base = writable("basic_mor_v9_part", tmp_path)
    hoodie("compact", base, *QUICK)
    return base


def data_files(table: Path) -> set[str]:
    return {path.name for path in table.rglob("*") if path.is_file() and ".hoodie/" not in path.as_posix()}


def test_a_dry_run_says_what_goes_and_why(hoodie, table: Path) -> None:
    before = data_files(table)
    found = json.loads(hoodie("clean", table, "--dry-run", "--json", *KEEP_ONE).stdout)
    assert [each["removed"] for each in found["slices"]].count(True) == 3
    shown = hoodie("clean", table, "--dry-run", *KEEP_ONE, env={"COLUMNS": "140"}).stdout
    assert "it is older than what is retained" in shown
    assert "would remove 3 of 6" in shown
    assert data_files(table) == before


def test_old_slices_go_and_rows_stay(hoodie, table: Path) -> None:
    before, there = rows(HoodieTable.open(table)), data_files(table)
    planned = json.loads(hoodie("clean", table, "--dry-run", "--json", *KEEP_ONE).stdout)
    gone = {name for each in planned["slices"] if each["removed"] for name, _ in each["files"]}
    assert "removed" in hoodie("clean", table, *KEEP_ONE, *QUICK).stdout
    assert there - data_files(table) == gone
    assert rows(HoodieTable.open(table)) == before
    assert hoodie("clean", table, *KEEP_ONE, *QUICK).stdout == "There was nothing to clean.\n"


def test_ten_commits_stay_unless_it_is_said_otherwise(hoodie, table: Path) -> None:
    assert json.loads(hoodie("clean", table, "--json", *QUICK).stdout)["instants"] == []
    found = json.loads(hoodie("clean", table, "--dry-run", "--json", "--retain-commits", "1").stdout)
    assert found["policy"] == "KEEP_LATEST_COMMITS"


@pytest.mark.parametrize(
    ("wrong", "status"), [(("--retain-commits", "0"), 2), (("--option", "x"), 2), (("--policy", "KEEP_ALL"), 1)]
)
def test_wrong_usage(hoodie, table: Path, wrong: tuple[str, ...], status: int) -> None:
    before = data_files(table)
    hoodie("clean", table, *wrong, status=status)
    assert data_files(table) == before
