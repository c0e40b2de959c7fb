"""Commits that one state of a table has read, for the states after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.table.timeline import known_commits
from hoodie_py.table.timeline.known_commits import KnownCommits
from hoodie_py.table.timeline.loader import TableTimeline
from tests.writer.written_tables import QUICK

_SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string())])


def _create(path: Path, version: int) -> HoodieTable:
    return HoodieTable.create(path, _SCHEMA, record_key="id", partition_by="part", table_version=version)


def _write(table: HoodieTable) -> None:
    table.upsert(pa.table({"id": ["a"], "part": ["p"]}, schema=_SCHEMA), QUICK)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    read: list[str] = []
    plain = TableTimeline._load_metadata

    def load(self: TableTimeline, instant: Instant) -> CommitMetadata:
        if not self.config.is_metadata_table:
            read.append(instant.request_time)
        return plain(self, instant)

    monkeypatch.setattr(TableTimeline, "_load_metadata", load)
    return read


@pytest.mark.parametrize("version", [6, 9])
def test_writes_in_a_row_read_each_commit_once(tmp_path: Path, version: int, reads: list[str]) -> None:
    table = _create(tmp_path, version)
    for _ in range(6):
        _write(table)
    assert len(reads) == len(set(reads))
    table.refresh().file_slices()
    assert len(reads) == len(set(reads))


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(
    ("action", "operation", "in_layout_1"),
    [
        ("deltacommit", "UPSERT", True),
        ("commit", "INSERT", True),
        ("commit", "COMPACT", False),
        ("deltacommit", "LOG_COMPACT", False),
        ("replacecommit", "CLUSTER", False),
        ("replacecommit", "INSERT_OVERWRITE", False),
        ("commit", "UNKNOWN", False),
    ],
)
def test_what_may_run_again_at_the_same_time_is_not_kept(
    tmp_path: Path, version: int, action: str, operation: str, in_layout_1: bool
) -> None:
    known, config = KnownCommits(), _create(tmp_path, version).config
    instant = Instant("20260101000000000", "20260101000001000", action, "completed")
    metadata = CommitMetadata(operation)
    known.add(instant, metadata, config)
    assert (known.get(instant) is metadata) == (version == 9 or in_layout_1)
    legacy = replace(instant, is_legacy=True)
    known.add(legacy, metadata, config)
    assert known.get(legacy) is None


def test_the_first_ones_are_forgotten_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_commits, "_MOST_STATS", 4)
    known, config = KnownCommits(), _create(tmp_path, 9).config
    instants = [Instant(f"{number}", f"{number}", "deltacommit", "completed") for number in range(5)]
    stats = (WriteStat("a", "p/a"), WriteStat("b", "p/b"))
    for each in instants[:3]:
        known.add(each, CommitMetadata("UPSERT", write_stats={"p": stats}), config)
        known.stats_of_logs[each.request_time] = {}
    assert [known.get(each) is None for each in instants] == [True, False, False, True, True]
    assert list(known.stats_of_logs) == ["1", "2"]
    known.add(instants[3], CommitMetadata("UPSERT", write_stats={"p": stats * 3}), config)  # too many alone
    assert known.get(instants[3]) is None
    assert known.get(instants[2]) is not None
