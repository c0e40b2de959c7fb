"""Lies in expression indexes are found, and what Spark alone can tell is said to be unchecked."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from tests.corpus import unpack_indexed
from tests.table.indexes.skipping_tables import unpack
from tests.writer.compaction_tables import QUICK
from tests.writer.index_jobs.indexed_tables import make_table
from tests.writer.written_tables import Kind


@pytest.mark.parametrize("name", ["global_sql_mor_v9", "global_sql_cow_v8"])
def test_javas_indexes_are_right(name: str, tmp_path: Path) -> None:
    report = HoodieTable.open(unpack_indexed(name, tmp_path / "t")).verify(data=False)
    assert report.is_right, str(report)
    found = [part for part in report.parts if part.name.startswith("expr_index_")]
    assert found
    assert all(part.checked and not part.untold and not part.unchecked for part in found)


def test_entries_that_are_gone_and_misplaced_are_found(tmp_path: Path) -> None:
    for attempt in range(20):  # names of files are random, and so is whether both file groups get an entry
        base = tmp_path / str(attempt)
        table = make_table(Kind(9, True), base)
        table.index.build("up", "name", function="upper", options=QUICK)
        found = sorted((base / ".hoodie/metadata/expr_index_up").glob("*.hfile"))
        if len(found) == 2:
            break
    one, two = found
    contents = one.read_bytes(), two.read_bytes()
    one.write_bytes(contents[1])
    two.write_bytes(contents[0])
    problems = {each.problem for each in table.refresh().verify(data=False).findings if each.part == "expr_index_up"}
    assert problems == {"misplaced"}


def test_what_depends_on_spark_is_said_to_be_unchecked(tmp_path: Path) -> None:
    report = HoodieTable.open(unpack("expressions_mor_v9", tmp_path)).verify(data=False)
    assert report.is_right, str(report)
    by_name = {part.name: part for part in report.parts}
    assert "'from_unixtime' gives there depends on Spark" in str(by_name["expr_index_idx_ts"].unchecked)
    assert by_name["expr_index_idx_up"].checked > 0
    assert "not checked" in str(report)
