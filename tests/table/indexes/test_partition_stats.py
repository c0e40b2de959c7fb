"""Ranges of partitions leave out their slices, where they hold for every file of the partition."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.table.filter.sql_parser import parse_sql
from hoodie_py.table.indexes import ranges
from hoodie_py.table.indexes.index import FilterRequest
from hoodie_py.table.indexes.ranges import make_partition_stats_filters
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from tests.table.indexes.skipping_tables import unpack
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind, row


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("types_mor_v9", tmp_path_factory.mktemp("partitions"))


def make_request(snapshot: Snapshot, where: str) -> FilterRequest:
    view = open_metadata_view(snapshot)
    assert view is not None
    predicate = parse_sql(where, snapshot.schema.arrow)
    return FilterRequest(view, snapshot.files, snapshot.config, snapshot.timeline, snapshot.schema, predicate)


def ask(request: FilterRequest, snapshot: Snapshot) -> list[str] | None:
    """The partitions of the slices that are kept; None if the index tells nothing."""
    (index,) = make_partition_stats_filters(request)
    slices = snapshot.file_slices()
    kept = index.choose(slices)
    if kept is None:
        return None
    return sorted({each.partition_path for each, keep in zip(slices, kept.tolist(), strict=True) if keep})


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("i > 1070", ["p3"]),
        ("l < 0", []),
        ("d = -7.0", ["p2"]),
        ("nul is not null", []),
        ("dn > 1e9", ["p0", "p1", "p2", "p3"]),
        ("tsz is null", ["p2"]),
    ],
)
def test_partitions_are_left_out_by_their_ranges(table: Path, where: str, left: list[str]) -> None:
    snapshot = open_snapshot(str(table))
    assert ask(make_request(snapshot, where), snapshot) == left


def test_a_scan_of_the_past_and_a_table_without_record_keys_have_no_ranges(table: Path) -> None:
    snapshot = open_snapshot(str(table))
    request = make_request(snapshot, "i > 1070")
    assert make_partition_stats_filters(replace(request, is_current=False)) == []
    without_keys = replace(request.config, populate_meta_fields=False)
    assert make_partition_stats_filters(replace(request, config=without_keys)) == []


def test_a_column_that_some_file_does_not_tell_is_unknown(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after the list of indexed columns grew: Java's range then is that of the new files."""
    snapshot = open_snapshot(str(table))
    request = make_request(snapshot, "i > 1070")
    read = type(request.view).read_keys

    def read_fewer(self: object, *arguments: object) -> pa.Table:
        found = read(self, *arguments)  # type: ignore[arg-type]
        rows = found.to_pylist()
        for each in rows:
            if each["ColumnStatsMetadata"]["columnName"] == "i":
                each["ColumnStatsMetadata"]["valueCount"] -= 1
        return pa.Table.from_pylist(rows, found.schema)

    monkeypatch.setattr(type(request.view), "read_keys", read_fewer)
    assert ask(request, snapshot) == ["p0", "p1", "p2", "p3"]


def test_a_metadata_table_that_is_ahead_of_the_snapshot_tells_nothing(table: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(table, copy)
    snapshot = open_snapshot(str(copy))
    later = copy / ".hoodie/metadata/.hoodie/timeline/20991126000000000_20991126000000001.deltacommit"
    newest = max(later.parent.glob("*.deltacommit"))
    shutil.copyfile(newest, later)
    assert ask(make_request(snapshot, "i > 1070"), snapshot) is None
    assert ranges.is_ahead(open_metadata_view(snapshot), snapshot.timeline)  # type: ignore[arg-type]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_table_that_was_upgraded_from_version_6_uses_them(when: str, tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(6, True).create(tmp_path / "t"))
    table.upsert([row(number) for number in range(4)], options=QUICK)
    if when == "before":
        table.index.build("column_stats", options=QUICK)
    table.upgrade(8, options=QUICK)
    if when == "after":
        table.index.build("column_stats", options=QUICK)
    table.index.build("partition_stats", options=QUICK)
    table.upsert([row(number, 9, "z") for number in (1, 3)], options=QUICK)
    snapshot = open_snapshot(str(tmp_path / "t"))
    assert ask(make_request(snapshot, "name = 'z'"), snapshot) == ["p1"]
