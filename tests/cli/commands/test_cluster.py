from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from tests.writer.clustering.test_cluster import filled, whole
from tests.writer.written_tables import Kind

QUICK = ("--option", "hoodie.time.generator.max_expected_clock_skew_ms=0")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    filled(Kind(9, merge_on_read=True), tmp_path / "t")
    return tmp_path / "t"


def test_a_table_is_clustered_and_a_sentence_says_so(hoodie, table: Path) -> None:
    before = whole(HoodieTable.open(table))
    done = hoodie("cluster", table, "--sort", "name,ts", "--layout", "z-order", *QUICK)
    assert done.stdout.startswith("Clustering 2")
    assert "into 2 new ones" in done.stdout
    assert whole(HoodieTable.open(table)) == before


def test_the_two_steps(hoodie, table: Path) -> None:
    assert "would write 6 file slices" in hoodie("cluster", table, "--dry-run").stdout
    assert len(json.loads(hoodie("cluster", table, "--dry-run", "--json").stdout)["groups"]) == 2
    instant = hoodie("cluster", table, "--schedule-only", *QUICK).stdout.strip()
    assert "nothing to cluster" in hoodie("cluster", table, "--schedule-only", *QUICK).stderr
    assert hoodie("cluster", table, "--instant", instant, *QUICK).stdout.startswith(f"Clustering {instant}")
    hoodie("cluster", table, "--instant", instant, "--sort", "ts", status=2)
