"""The metadata table's own timeline stays short, and reads by it stay right."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.snapshot import open_snapshot
from tests.writer.compaction_tables import writable

SOON: dict[str, Any] = {
    "hoodie.index.type": "SIMPLE",
    "hoodie.time.generator.max_expected_clock_skew_ms": 0,
    "hoodie.metadata.compact.max.delta.commits": 2,
    "hoodie.archive.automatic": "true",
    "hoodie.keep.min.commits": 3,
    "hoodie.keep.max.commits": 4,
    "hoodie.clean.commits.retained": 1,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.timeline.compaction.batch.size": 2,
}


def upsert(base: Path) -> None:
    table = HoodieTable.open(base)
    names = [name for name in table.schema.names if not name.startswith("_hoodie_")]
    table.upsert(table.scan(columns=names, limit=2).to_arrow(), SOON)


@pytest.mark.parametrize("name", ["mdt_files_mor_v9", "old15_metadata_mor"])
def test_both_timelines_stay_short(name: str, tmp_path: Path) -> None:
    base = writable(name, tmp_path)
    rows = HoodieTable.open(base).scan().count()
    active = []
    for _ in range(14):
        upsert(base)
        active.append([len(HoodieTable.open(place).timeline) for place in (base, base / ".hoodie/metadata")])
    assert max(active[-6:])[0] <= 8
    assert max(both[1] for both in active[-6:]) <= 14
    archived = HoodieTable.open(base / ".hoodie/metadata").inspect.timeline(archived=True)
    assert archived.num_rows > active[-1][1]
    view = open_metadata_view(open_snapshot(str(base)))
    assert view is not None
    assert view.unlisted == ()
    assert HoodieTable.open(base).scan().count() == rows
    assert HoodieTable.open(base).verify().is_right
    shutil.rmtree(base / ".hoodie/metadata/files")  # reads did use it
    with pytest.warns(match="metadata table"):
        HoodieTable.open(base).scan().count()


def test_a_partition_that_was_built_anew_is_trusted_after_its_first_commit_was_archived_again(tmp_path: Path) -> None:
    """Its first commit has the same time as that of another partition, long ago."""
    base = writable("mdt_files_mor_v9", tmp_path)
    table = HoodieTable.open(base)
    table.index.build("column_stats")
    for _ in range(7):
        upsert(base)
    table.index.drop("column_stats")
    table.index.build("column_stats")
    timeline = base / ".hoodie/metadata/.hoodie/timeline"
    began = {tuple(path.stem.split("_")) for path in timeline.glob("00000*_*.deltacommit")}
    assert began
    for _ in range(4):
        upsert(base)
    assert not began & {tuple(path.stem.split("_")) for path in timeline.glob("00000*_*.deltacommit")}
    archived = pa.concat_tables(pq.read_table(path) for path in (timeline / "history").glob("*.parquet"))
    assert began <= set(zip(archived["instantTime"].to_pylist(), archived["completionTime"].to_pylist(), strict=True))
    where = "id >= '0'"
    listed = HoodieTable.open(base).scan(filter=where, options={"hoodie.metadata.enable": "false"})
    assert HoodieTable.open(base).scan(filter=where).count() == listed.count()


def test_a_partition_built_late_does_not_hide_that_the_metadata_table_is_behind(tmp_path: Path) -> None:
    base = writable("mdt_files_mor_v9", tmp_path)
    for _ in range(7):
        upsert(base)
    last = HoodieTable.open(base).timeline.select_completed().last
    assert last is not None
    HoodieTable.open(base).index.build("column_stats")
    for path in (base / ".hoodie/metadata/.hoodie/timeline").glob(f"{last.request_time}*"):
        path.unlink()
    view = open_metadata_view(open_snapshot(str(base)))
    assert view is not None
    assert view.unlisted == (last.request_time,)
