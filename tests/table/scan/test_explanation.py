"""An explanation says what a scan leaves out, by what, and what that costs; it reads no rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie_py import HoodieTable, UnsupportedFeatureError
from tests.table.indexes.skipping_tables import ON, unpack


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> HoodieTable:
    return HoodieTable.open(unpack("types_mor_v9", tmp_path_factory.mktemp("explained")))


def test_it_says_what_each_index_left_out(table: HoodieTable) -> None:
    scan = table.scan(filter="i = 1072", options=ON)
    found = scan.explain()
    assert (found.partitions, found.slices, found.skipped_slices, found.read_slices) == (4, 6, 5, 1)
    assert [(step.name, step.considered, step.skipped) for step in found.steps] == [
        ("partition_stats", 6, 5),
        ("column_stats", 1, 0),
    ]
    assert found.read_files == 3
    assert found.read_bytes == sum(task.size for task in scan.tasks())
    assert found.calls > sum(step.calls for step in found.steps) > 0
    assert found.bytes >= sum(step.bytes for step in found.steps) > 0
    lines = str(found).splitlines()
    assert lines[0] == f"A snapshot query of 't' at {scan.instant}, where i = 1072."
    assert lines[1] == "4 partitions that may hold wanted rows by their values: 6 file slices."
    assert lines[2].startswith("partition_stats left out 5 of 6 file slices (")
    assert lines[4].startswith("To read: 1 file slice of 1 partition, 3 files of ")
    assert lines[-1].startswith("Planning took ")
    html = found._repr_html_()
    assert html.count("<tr>") == len(lines)
    assert scan.explain() == found


def test_it_says_why_no_index_was_asked(table: HoodieTable, corpus: Callable[[str], Path]) -> None:
    assert "No index was asked. There is no filter." in str(table.scan().explain())
    without = HoodieTable.open(corpus("nometa_mor_v6")).scan(filter="id = 'x'").explain()
    assert without.note == "The table has no metadata table."
    few = table.scan(filter="i = 1072").explain()
    assert "few, and their files tell the same" in str(few)


def test_partitions_are_those_with_wanted_values(table: HoodieTable) -> None:
    found = table.scan(filter="part = 'p1'").explain()
    assert (found.partitions, found.read_slices) == (1, 2)
    assert found.note == "2 file slices are too few for indexes to pay."


def test_a_range_of_commits_is_not_explained(table: HoodieTable) -> None:
    with pytest.raises(UnsupportedFeatureError, match="'incremental'"):
        table.incremental().explain()


@pytest.mark.parametrize("threads", ["1", "4"])
def test_a_read_is_measured_if_asked_for(table: HoodieTable, threads: str) -> None:
    scan = table.scan(filter="part <> 'p1'", options={"hoodie_py.read.threads": threads})
    found = scan.explain(analyze=True)
    readers = [task.reader() for task in scan.tasks()]
    for reader in readers:
        assert sum(batch.num_rows for batch in reader.to_batches())
    counts = [reader.stats for reader in readers]
    assert found.read is not None
    assert (found.read.rows, found.read.slices) == (scan.count(), found.read_slices)
    for name in ("base_rows", "log_records", "inserts", "updates", "deletes", "skipped_blocks", "log_bytes"):
        assert getattr(found.read, name) == sum(getattr(each, name) for each in counts), name
    assert found.read.updates > 0
    assert 0 < found.read.seconds < 60
    assert str(found).splitlines()[-1] == str(found.read)
    assert f"Reading gave {found.read.rows} rows in " in str(found.read)
    assert f" {found.read.log_records} log records updated {found.read.updates} rows" in str(found.read)


def test_a_scan_with_a_limit_reads_some_of_its_slices(table: HoodieTable) -> None:
    found = table.scan(limit=1).explain(analyze=True)
    assert found.read is not None
    assert (found.read.rows, found.read.slices) == (1, 1)
    assert found.read_slices > 1
