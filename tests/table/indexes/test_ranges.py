"""Which slices statistics may judge: those whose every value is in a file with statistics of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.reader.file_slice import SourceFile
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.table.filter.sql_parser import parse_sql
from hoodie_py.table.indexes.index import FilterRequest
from hoodie_py.table.indexes.ranges import may_be_judged
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.scan.slice_choice import choose_slices
from tests.table.indexes.skipping_tables import ON, open_scan, unpack


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("types_mor_v9", tmp_path_factory.mktemp("judged"))


def test_slices_with_logs_and_a_merger_of_the_user_are_read(table: Path) -> None:
    """It may compute a value that no file has."""

    class Merger:
        payload_classes = ()

    scan = open_scan(table)
    predicate = parse_sql("l < 0", scan.schema)
    chosen = choose_slices(scan.snapshot, "snapshot", predicate, ReadOptions(options=ON), Merger())  # type: ignore[arg-type]
    with_logs = {each.file_id for each in scan.snapshot.file_slices() if each.log_files}
    assert {each.file_id for each in chosen.slices} == with_logs
    assert len(with_logs) == 4


def test_bootstrapped_files_and_custom_merges_are_not_judged(table: Path) -> None:
    snapshot = open_scan(table).snapshot
    view = open_metadata_view(snapshot)
    assert view is not None
    predicate = parse_sql("l < 0", snapshot.schema.arrow)
    request = FilterRequest(view, snapshot.files, snapshot.config, snapshot.timeline, snapshot.schema, predicate)
    plain = next(each for each in snapshot.file_slices() if not each.log_files)
    logged = next(each for each in snapshot.file_slices() if each.log_files)
    assert plain.base_file is not None
    source = SourceFile("/elsewhere", "a.parquet", 10)
    bootstrapped = replace(plain, base_file=replace(plain.base_file, source=source))
    computing = replace(request, merges_values=False)
    assert may_be_judged(request, plain)
    assert may_be_judged(request, logged)
    assert not may_be_judged(request, bootstrapped)
    assert may_be_judged(computing, plain)
    assert not may_be_judged(computing, logged)
    assert snapshot.config.merge_mode is not MergeMode.CUSTOM


def test_a_scan_of_the_past_asks_the_statistics_of_files(table: Path) -> None:
    """Those of a file never change; those of a partition do."""
    scan = open_scan(table)
    first = min(each.request_time for each in scan.snapshot.timeline.list_completed_writes())
    past = open_scan(table, as_of=first)
    predicate = parse_sql("i > 1000", past.schema)
    chosen = choose_slices(past.snapshot, "snapshot", predicate, past.options, None)
    assert [each.name for each in chosen.steps] == ["column_stats"]
    assert not chosen.slices
