"""Which files of a range are looked up before they are read: those that a clean may have removed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, HoodieWarning
from hoodie_py.errors import FileMissingError
from tests.watched_requests import Request

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("price", pa.int64())])


def make(place: Path, table_type: str, version: int, commits: int) -> tuple[HoodieTable, list[str]]:
    table = HoodieTable.create(
        place, SCHEMA, record_key="id", ordering="ts", table_type=table_type, table_version=version
    )
    for number in range(commits):
        table.upsert([{"id": "a", "ts": number, "price": number}])
    writes = table.timeline.select_writes()
    return table, [(each.completion_time if version > 6 else each.request_time) or "" for each in writes]


def find_looked_up(made: list[Request]) -> list[str]:
    """Paths of data files that were looked up."""
    return [each.path for each in made if each.verb == "stat" and "/.hoodie/" not in each.path]


@pytest.mark.parametrize(("version", "expected"), [(9, 0), (8, 0), (6, 2)])
def test_without_cleans_only_old_versions_are_looked_up(
    tmp_path: Path, requests_made: list[Request], version: int, expected: int
) -> None:
    table, times = make(tmp_path / "t", "MERGE_ON_READ", version, 3)
    _ = table.schema  # of the newest file, which is looked up for it
    requests_made.clear()
    assert table.incremental(times[0]).to_arrow()["price"].to_pylist() == [2]
    assert len(find_looked_up(requests_made)) == expected


def test_commits_before_the_earliest_retained_one_are_looked_up(tmp_path: Path, requests_made: list[Request]) -> None:
    table, times = make(tmp_path / "t", "COPY_ON_WRITE", 9, 5)
    table.clean(retain_commits=2)
    _ = table.schema  # of the newest file, which is looked up for it
    requests_made.clear()
    assert table.incremental(times[2]).to_arrow()["price"].to_pylist() == [4]
    assert find_looked_up(requests_made) == []
    with pytest.warns(HoodieWarning, match="What is left of the file slices at its end is read"):
        assert table.incremental(times[0], times[1]).to_arrow().num_rows == 0
    assert len(find_looked_up(requests_made)) == 1


def test_a_clean_that_counts_file_versions_leaves_nothing_certain(tmp_path: Path, requests_made: list[Request]) -> None:
    table, times = make(tmp_path / "t", "COPY_ON_WRITE", 9, 3)
    table.clean(options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"})
    _ = table.schema  # of the newest file, which is looked up for it
    requests_made.clear()
    assert table.incremental(times[1]).to_arrow()["price"].to_pylist() == [2]
    assert len(find_looked_up(requests_made)) == 1


def test_a_clean_that_counts_commits_does_not_hide_an_earlier_one_that_counts_versions(tmp_path: Path) -> None:
    schema = SCHEMA.append(pa.field("part", pa.string()))
    table = HoodieTable.create(
        tmp_path / "t", schema, record_key="id", ordering="ts", partition_by="part", table_type="COPY_ON_WRITE"
    )
    for number, ids in enumerate(["ab", "ab", "ab", "a", "a", "a"]):
        table.upsert([{"id": each, "ts": number, "price": number, "part": each} for each in ids])
    times = [each.completion_time or "" for each in table.timeline.select_writes()]
    table.clean(options={"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "2"})
    early = table.timeline.select_writes().instants[3]
    assert table.clean(retain_commits=3).earliest == early.request_time
    with pytest.warns(HoodieWarning, match="What is left of the file slices at its end is read"):
        assert table.incremental(times[2], times[3]).to_arrow().num_rows == 0


def test_a_file_that_is_lost_is_an_error(tmp_path: Path) -> None:
    table, times = make(tmp_path / "t", "MERGE_ON_READ", 9, 2)
    for log in (tmp_path / "t").glob(".*.log.*"):
        log.unlink()
    with pytest.raises(FileMissingError, match="A file of the range is gone"):
        table.incremental(times[0]).to_arrow()
