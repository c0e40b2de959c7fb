"""Statistics of log files, from few commits."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.reader.file_slice import LogFile
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.table.timeline.log_stats import LogStats
from tests.watched_requests import Request, find_read_commits
from tests.writer.written_tables import QUICK

_SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string())])


def _write(table: HoodieTable, part: str) -> None:
    table.upsert(pa.table({"id": ["a"], "part": [part]}, schema=_SCHEMA), QUICK)


@pytest.mark.parametrize("version", [6, 9])
def test_only_commits_that_may_have_written_a_log_are_read(
    tmp_path: Path, version: int, requests_made: list[Request]
) -> None:
    table = HoodieTable.create(tmp_path, _SCHEMA, record_key="id", partition_by="part", table_version=version)
    for part in ("other", "other", "p", "p", "other"):
        _write(table, part)
    [file_slice] = [each for each in table.file_slices() if each.partition_path == "p"]
    [log] = file_slice.log_files
    timeline = TableTimeline.load(table.files, table.config)
    requests_made.clear()
    [stat] = LogStats(timeline).find(log)
    assert (stat.path, stat.num_inserts, stat.num_update_writes) == (log.path, 0, 1)
    assert len(find_read_commits(requests_made, tmp_path)) == (3 if version == 6 else 1)


def test_of_many_commits_nothing_is_said(tmp_path: Path) -> None:
    table = HoodieTable.create(tmp_path, _SCHEMA, record_key="id", partition_by="part", table_version=6)
    for _ in range(3):
        _write(table, "p")
    [log] = table.file_slices()[0].log_files[:1]
    assert isinstance(log, LogFile)
    assert LogStats(TableTimeline.load(table.files, table.config), most_commits=2).find(log) == ()
    assert len(LogStats(TableTimeline.load(table.files, table.config), most_commits=3).find(log)) > 0
