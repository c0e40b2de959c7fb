"""An instant of the past is refused if cleans removed what was the newest then, also where they name no commit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.names import parse_log_file_name
from hoodie_py.reader.file_slice import FileSlice, LogFile
from hoodie_py.table.timeline.cleans import CleanFacts
from hoodie_py.table.view.cleaned_slices import CleanedSlices
from hoodie_py.table.view.visibility import Visibility
from tests.watched_requests import failing_requests, writes
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind, row

BY_VERSIONS = {**QUICK, "hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
TWO_PARTITIONS = (0, 1)
KINDS = [Kind(version, merge_on_read) for version in (9, 8, 6) for merge_on_read in (True, False)]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


def read(table: HoodieTable, as_of: str, **scan: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        table.refresh().scan(["id", "ts"], as_of=as_of, **scan).to_arrow().sort_by("id").to_pylist()
    )
    return rows


def is_cleaned(table: HoodieTable, as_of: str, **scan: Any) -> bool:
    with pytest.raises(InvalidQueryError, match="were cleaned"):
        read(table, as_of, **scan)
    return True


def change(table: HoodieTable, number: int, ts: int) -> str:
    """Change a row, in its partition, and return the instant from which on it reads so."""
    table.refresh().upsert([row(number, ts)], QUICK)
    if table.config.is_merge_on_read:
        table.refresh().compact(options=QUICK)
    return str(table.refresh()._snapshot.instant)


@every_kind
def test_versions_that_were_the_newest_are_missed(kind: Kind, tmp_path: Path) -> None:
    table = HoodieTable.open(kind.create(tmp_path))
    both = [change(table, number, 1) for number in TWO_PARTITIONS][-1]
    first, second = (row(number, 1)["part"] for number in TWO_PARTITIONS)
    assert first != second
    times = [change(table, 0, ts) for ts in range(2, 5)]
    assert len(read(table, both)) == 2
    assert table.refresh().clean(options=BY_VERSIONS).files_deleted >= 3
    for time in (both, *times[:-1]):
        assert is_cleaned(table, time)
        assert is_cleaned(table, time, limit=100)
        assert is_cleaned(table, time, filter=f"part = '{first}'")
        assert is_cleaned(table, time, query_type="read_optimized")
        assert [each["ts"] for each in read(table, time, filter=f"part = '{second}'")] == [1]
        with pytest.raises(InvalidQueryError, match="were cleaned"):
            table.refresh().file_slices(as_of=time)
    assert [each["ts"] for each in read(table, times[-1])] == [4, 1]
    assert [each["ts"] for each in read(table, change(table, 0, 5))] == [5, 1]


@every_kind
def test_a_later_clean_by_commits_does_not_hide_it(kind: Kind, tmp_path: Path) -> None:
    table = HoodieTable.open(kind.create(tmp_path))
    times = [change(table, 0, ts) for ts in range(1, 5)]
    table.refresh().clean(options=BY_VERSIONS)
    times += [change(table, 0, ts) for ts in range(5, 9)]
    assert table.refresh().clean(12 if kind.merge_on_read else 6, QUICK).files_deleted == 0
    table.refresh().clean(7 if kind.merge_on_read else 4, QUICK)
    assert all(is_cleaned(table, time) for time in times[:3])
    assert [each["ts"] for time in times[4:] for each in read(table, time)] == [5, 6, 7, 8]


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(8, False), Kind(6, False), Kind(6, True)], ids=str)
def test_an_archived_clean_tells_it_too(kind: Kind, tmp_path: Path) -> None:
    """On timeline layout 1 the last clean stays active, so there are two."""
    table = HoodieTable.open(kind.create(tmp_path))
    keep = {**BY_VERSIONS, "hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3}
    times = []
    for ts in range(1, 9):
        times.append(change(table, 0, ts))
        if ts in (3, 5):
            assert table.refresh().clean(options=BY_VERSIONS).files_deleted
            table.refresh().archive(options=keep)
    table.refresh().archive(options=keep)
    first = HoodieTable.open(tmp_path).timeline.instants[0].request_time
    assert times[2] < first
    for time in (*times[:2], times[3]):
        assert is_cleaned(table, time)
    assert [each["ts"] for time in times[4:] for each in read(table, time)] == [5, 6, 7, 8]


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(8, False), Kind(6, True)], ids=str)
def test_rows_of_a_partition_that_is_gone_are_missed(kind: Kind, tmp_path: Path) -> None:
    table = HoodieTable.open(kind.create(tmp_path))
    times = [change(table, number, 1) for number in TWO_PARTITIONS]
    first, second = (row(number, 1)["part"] for number in TWO_PARTITIONS)
    table.refresh().delete_partition(second, options=QUICK)
    after = str(table.refresh()._snapshot.instant)
    assert table.refresh().clean(options=BY_VERSIONS).files_deleted
    assert is_cleaned(table, times[1])
    assert is_cleaned(table, times[1], limit=5)
    assert len(read(table, times[1], filter=f"part = '{first}'")) == 1
    assert len(read(table, times[0])) == 1
    assert len(read(table, after)) == 1


def test_a_savepoint_keeps_its_instant(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, False).create(tmp_path))
    times = [change(table, 0, ts) for ts in range(1, 5)]
    table.refresh().savepoint(times[1], options=QUICK)
    table.refresh().clean(options=BY_VERSIONS)
    assert [each["ts"] for each in read(table, times[1])] == [2]
    assert is_cleaned(table, times[0])
    assert is_cleaned(table, times[2])  # not the older slice that the savepoint kept


@pytest.mark.parametrize("metadata", ["true", "false"])
def test_what_a_clean_that_has_begun_removes_is_not_read(metadata: str, tmp_path: Path) -> None:
    """The metadata table lists its files until it completes."""
    options = {**BY_VERSIONS, "hoodie.metadata.enable": metadata}
    table = HoodieTable.open(Kind(9, False).create(tmp_path))
    for ts in range(1, 4):
        table.upsert([row(0, ts)], options)
    first = table.timeline.instants[0].request_time
    completed = writes(rf"{tmp_path}/\.hoodie/timeline/[\d_]+\.clean$")
    with failing_requests(completed, KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        table.refresh().clean(options=options)
    assert table.refresh().timeline.select_pending().last is not None
    assert is_cleaned(table, first)
    table.refresh().clean(options=options)
    assert is_cleaned(table, first)


def test_files_of_other_names_and_later_times_say_nothing() -> None:
    clean = CleanFacts("9", None, {"p": ("a_0-0-0_5.parquet", ".a_5.log.1_0-0-0", "notes.txt", "a_0-0-0_3.parquet")})
    assert CleanedSlices.of([clean], "4").newest == {"p": {"a": "3"}}
    assert CleanedSlices.of([clean], "5").newest == {"p": {"a": "5"}}
    assert CleanedSlices.of([clean], "2").newest == {}


def test_a_slice_that_has_lost_its_base_file_alone_is_not_read() -> None:
    """A clean that died, or whose delete failed, may leave the log files."""
    log_name = parse_log_file_name(".a-0_5.log.1_0-0-0")
    assert log_name is not None
    left = FileSlice("p", "a-0", "5", None, (LogFile("p/.a-0_5.log.1_0-0-0", 9, log_name),))
    clean = CleanFacts("9", None, {"p": ("a-0_0-0-0_3.parquet", ".a-0_5.log.1_0-0-0")})
    used = cast("Visibility", SimpleNamespace(is_replaced=lambda *_: False))
    with pytest.raises(InvalidQueryError, match="were cleaned"):
        CleanedSlices.of([clean], "6").check([left], used, lambda _: True)
    CleanedSlices.of([clean], "6").check([replace(left, base_instant="6")], used, lambda _: True)
