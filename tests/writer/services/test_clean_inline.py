"""Writes clean and archive by themselves: a table of many commits stays bounded, and what a clean took is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import ConflictError, InvalidQueryError
from hoodie_py.files import TableFiles
from hoodie_py.table.snapshot import open_snapshot
from hoodie_py.writer.pipeline import afterwards
from hoodie_py.writer.services import clean
from hoodie_py.writer.services.clean_window import list_partitions
from tests.writer.compaction_tables import QUICK

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("ts", pa.int64())])
EACH = {**QUICK, "hoodie.clean.trigger.max.commits": "1", "hoodie.clean.commits.retained": "1"}


def create(base: Path, kind: str = "COPY_ON_WRITE", version: int = 9) -> HoodieTable:
    return HoodieTable.create(
        base, SCHEMA, record_key="id", ordering="ts", partition_by="part", table_type=kind, table_version=version
    )


def rows(ts: int, *parts: str) -> list[dict[str, Any]]:
    return [{"id": f"k{part}", "part": part, "ts": ts} for part in parts]


def count_files(base: Path, part: str = "p") -> int:
    return len(list((base / f"part={part}").glob("*.parquet")) or list((base / part).glob("*.parquet")))


def list_cleans(table: HoodieTable) -> int:
    return len(table.refresh().timeline.select_actions("clean").instants)


@pytest.mark.parametrize("version", [6, 9])
def test_a_table_of_many_commits_stays_bounded(tmp_path: Path, version: int) -> None:
    table = create(tmp_path / "t", version=version)
    made: list[str] = []
    for ts in range(1, 46):
        done = table.upsert(rows(ts, "p"), options=QUICK)
        assert done.instant is not None
        made.append(done.instant)
        assert count_files(tmp_path / "t") <= 21, "ten commits are retained, and at most ten more wait for a clean"
        assert len(table.timeline.select_writes()) <= 31
        assert (done.clean is not None) == (ts in (20, 30, 40))
    assert count_files(tmp_path / "t") == 16
    assert table.scan().to_arrow()["ts"].to_pylist() == [45]
    assert table.scan(as_of=made[-10]).to_arrow()["ts"].to_pylist() == [36]
    every = table.inspect.timeline(archived=True).to_pylist()
    commits = [each for each in every if each["action"] == "commit"]
    assert len(commits) == 45, "archival loses no commit"
    assert table.verify().is_right
    [last] = [each.request_time for each in table.timeline.select_actions("clean").instants][-1:]
    with pytest.raises(InvalidQueryError, match=rf"cleaned by {last}.*hoodie\.clean\.commits\.retained"):
        table.scan(as_of=made[25]).to_arrow()


def test_options_switch_both_off(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    off = {**QUICK, "hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
    for ts in range(1, 33):
        table.upsert(rows(ts, "p"), options=off)
    assert count_files(tmp_path / "t") == len(table.timeline.select_writes()) == 32
    done = table.upsert(rows(40, "p"), options={**QUICK, "hoodie.table.services.enabled": "false"})
    assert done.clean is None
    assert done.archive is None


def test_a_write_that_also_compacts_cleans_when_that_is_due(tmp_path: Path) -> None:
    table = create(tmp_path / "t", "MERGE_ON_READ")
    options = {
        **QUICK,
        "hoodie.clean.commits.retained": "3",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "4",
    }
    for ts in range(1, 8):
        table.upsert(rows(ts, "p"), options=options)
    assert list_cleans(table) == 0
    done = table.upsert(rows(8, "p"), options=options)  # the ninth commit, and a compaction as the tenth
    assert done.compaction is not None
    assert done.clean is not None
    assert list_cleans(table) == 1


def test_a_trigger_that_was_given_is_javas(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    for ts in range(1, 6):
        table.upsert(rows(ts, "p"), options=EACH)
    assert list_cleans(table) == 3
    assert count_files(tmp_path / "t") == 2, "the newest, and the one before, which the retained commit still reads"


def test_commits_that_free_nothing_cost_no_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("It was planned.")

    monkeypatch.setattr(clean, "make_plan", fail)
    table = create(tmp_path / "t", "MERGE_ON_READ")
    for ts in range(1, 12):
        table.upsert(rows(ts, "p"), options=EACH)  # into logs
        table.insert(
            [{"id": f"n{ts}", "part": "q", "ts": ts}], options={**EACH, "hoodie.parquet.small.file.limit": "0"}
        )
    assert list_cleans(table) == 0
    table.compact(options={**QUICK, "hoodie.compact.inline.max.delta.commits": "1"})
    with pytest.raises(AssertionError, match="planned"):
        table.upsert(rows(50, "p"), options=EACH)


def test_a_clean_looks_where_commits_were_since_the_last_one(tmp_path: Path) -> None:
    table = create(tmp_path / "t")
    for ts in range(1, 4):
        table.upsert(rows(ts, "p", "q"), options=EACH)
    kept = table.upsert(rows(4, "p", "q"), options=EACH).instant
    assert kept is not None
    table.savepoint(kept, options=QUICK)
    for ts in range(5, 8):
        table.upsert(rows(ts, "p"), options=EACH)
    last = table.upsert(rows(8, "p"), options={**QUICK, "hoodie.clean.automatic": "false"}).instant
    snapshot = open_snapshot(TableFiles.open(tmp_path / "t"))
    assert last is not None
    assert list_partitions(snapshot, last) == ["part=p"] or list_partitions(snapshot, last) == ["p"]
    table.upsert(rows(9, "q"), options=EACH)
    assert table.scan(as_of=kept).to_arrow()["ts"].to_pylist() == [4, 4]
    table.delete_savepoint(kept, options=QUICK)
    snapshot = open_snapshot(TableFiles.open(tmp_path / "t"))
    assert list_partitions(snapshot, last) is None, "what only the savepoint kept may lie anywhere"
    for ts in range(10, 13):
        table.upsert(rows(ts, "q"), options=EACH)
    assert count_files(tmp_path / "t", "p") == 1
    assert sorted(table.scan().to_arrow()["ts"].to_pylist()) == [8, 12]


def test_another_writer_in_the_way_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Any, instant: str) -> None:
        raise ConflictError("Another writer finished the clean.")

    monkeypatch.setattr(afterwards, "clean_inline", fail)
    table = create(tmp_path / "t")
    done = table.upsert(rows(1, "p"), options=QUICK)  # a warning would be an error
    assert done.clean is None
    assert table.scan().count() == 1
