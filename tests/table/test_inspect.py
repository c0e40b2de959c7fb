"""Facts about tables as Arrow tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.compute as pc
import pytest

from hoodie_py.errors import InvalidQueryError, InvalidTableError, StorageError
from hoodie_py.table.inspect import TableInspect
from tests.table.tables import make_table, open_view


def inspect(root: Path) -> TableInspect:
    view = open_view(root)
    return TableInspect(view)


def test_timeline(corpus: Callable[[str], Path]):
    root = corpus("archived_timeline_mor_v9")
    active = inspect(root).timeline()
    assert active.column("request_time").to_pylist() == [each.request_time for each in open_view(root).timeline]
    both = inspect(root).timeline(archived=True)
    assert both.num_rows > active.num_rows
    times = both.column("request_time").to_pylist()
    assert times == sorted(times)


KINDS = ["basic_mor_v9_part", "compaction_done_mor_v9", "logonly_bucket_mor_v9", "basic_cow_v9_part"]


@pytest.mark.parametrize("name", KINDS)
def test_files_and_slices_agree(name: str, corpus: Callable[[str], Path]):
    facts = inspect(corpus(name))
    files, slices = facts.files(), facts.slices()
    visible = set(files.filter(files.column("visible")).column("path").to_pylist())
    listed = set(slices.column("base_file").drop_null().to_pylist())
    listed |= set(pc.list_flatten(slices.column("log_files")).to_pylist())
    assert visible == listed
    data = [path for path in corpus(name).rglob("*-0*_*") if ".hoodie" not in str(path)]
    assert {str(path.relative_to(corpus(name))) for path in data} == set(files.column("path").to_pylist())
    for path, size in zip(files.column("path").to_pylist(), files.column("size").to_pylist(), strict=True):
        assert (corpus(name) / path).stat().st_size == size


def test_slices_as_of_an_instant(corpus: Callable[[str], Path]):
    facts = inspect(corpus("time_travel_mor_v9"))
    first = facts.timeline().column("request_time")[0].as_py()
    assert pc.sum(facts.slices(first).column("log_size")).as_py() == 0
    assert pc.sum(facts.slices().column("log_size")).as_py() > 0


def test_stats_name_every_file_of_the_slices(corpus: Callable[[str], Path]):
    facts = inspect(corpus("basic_mor_v6_part"))
    stats, files = facts.stats(), facts.files()
    assert set(files.column("path").to_pylist()) <= set(stats.column("path").to_pylist())
    assert set(stats.column("operation").to_pylist()) >= {"UPSERT"}


def test_log_blocks(corpus: Callable[[str], Path]):
    facts = inspect(corpus("many_blocks_one_file_mor_v9"))
    files = facts.files()
    logs = files.filter(pc.equal(files.column("kind"), "log"))
    seen = set()
    for path, size in zip(logs.column("path").to_pylist(), logs.column("size").to_pylist(), strict=True):
        blocks = facts.log_blocks(path).to_pylist()
        assert sum(block["size"] for block in blocks) == size
        assert [block["offset"] for block in blocks] == sorted(block["offset"] for block in blocks)
        assert all(block["records"] > 0 and block["problem"] is None for block in blocks)
        seen |= {block["type"] for block in blocks}
    assert seen == {"AVRO_DATA", "DELETE"}


def test_damaged_blocks_are_listed(corpus: Callable[[str], Path]):
    facts = inspect(corpus("damaged_log_middle_mor_v6"))
    files = facts.files()
    rows = [
        row for path in files.filter(pc.equal(files.column("kind"), "log")).column("path").to_pylist()
        for row in facts.log_blocks(path).to_pylist()
    ]  # fmt: skip
    assert [row["problem"] is not None for row in rows] == [row["type"] == "CORRUPT" for row in rows]
    assert any(row["type"] == "CORRUPT" for row in rows)


def test_compaction_plan(corpus: Callable[[str], Path]):
    facts = inspect(corpus("compaction_pending_mor_v9"))
    timeline = facts.timeline().to_pylist()
    (pending,) = (row["request_time"] for row in timeline if row["action"] == "compaction")
    plan = facts.compaction_plan(pending)
    assert plan.num_rows > 0
    assert all(plan.column("log_files").to_pylist())
    with pytest.raises(InvalidQueryError):
        facts.compaction_plan(timeline[0]["request_time"])


def test_wrong_questions(tmp_path: Path):
    facts = inspect(make_table(tmp_path))
    with pytest.raises(InvalidQueryError):
        facts.log_blocks("a.parquet")
    with pytest.raises(InvalidTableError):
        facts.log_blocks("../.a-0_20260101000000000.log.1_0-0-0")
    with pytest.raises(StorageError):
        facts.log_blocks(".a-0_20260101000000000.log.1_0-0-0")
    for empty in (facts.timeline(), facts.files(), facts.slices(), facts.stats()):
        assert empty.num_rows == 0
