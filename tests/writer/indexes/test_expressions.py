"""Expression indexes are kept: with the results, or with ranges that hold for all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.table.snapshot import open_snapshot
from tests.writer.compaction_tables import QUICK
from tests.writer.indexes.statistics_tables import plain, unpacked

Row = dict[str, Any]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return unpacked("global_sql_mor_v9", tmp_path)


def read(base: Path, name: str) -> list[Row]:
    view = open_snapshot(base).metadata.open()
    assert view is not None
    return [row for batch in view.read_all(name) for row in batch.to_pylist()]


def indexes(base: Path) -> dict[str, Row]:
    definitions = json.loads((base / ".hoodie/.index_defs/index.json").read_text())["indexDefinitions"]
    return {name: each for name, each in definitions.items() if name.startswith("expr_index_")}


def count_rows(base: Path, name: str) -> int:
    return int(pq.read_metadata(next(base.rglob(name))).num_rows)


def test_each_index_gets_records_of_new_files_and_partitions(base: Path) -> None:
    names = [name for name in open_snapshot(base).config.metadata_partitions if name.startswith("expr_index_")]
    assert names
    before = {name: {row["key"] for row in read(base, name)} for name in names}
    instant = str(HoodieTable.open(base).compact(options=QUICK).instant)
    written = {path.name for path in base.rglob(f"*_{instant}.parquet")}
    assert written
    assert set(names) <= set(open_snapshot(base).config.metadata_partitions)
    for name in names:
        new = [row for row in read(base, name) if row["key"] not in before[name]]
        if indexes(base)[name]["indexType"] == "bloom_filters":
            assert len(new) == len(written)
            continue
        files = [plain(row["ColumnStatsMetadata"]) for row in new if row["type"] == 3]
        assert {row["fileName"] for row in files} == {each for each in written if count_rows(base, each)}
        for row in files:
            assert (row["minValue"] is None) == (row["valueCount"] == row["nullCount"])
            assert row["totalUncompressedSize"] == 2 * row["totalSize"] > 0
        whole = [plain(row["ColumnStatsMetadata"]) for row in read(base, name) if row["type"] == 6]
        assert whole
        assert all(row["isTightBound"] for row in whole)


def test_a_log_file_of_deletes_alone_has_no_record_and_leaves_its_partition_known(base: Path) -> None:
    """Java merges the records of files only where they have values of one type."""
    name = next(name for name, each in indexes(base).items() if each["indexType"] == "column_stats")
    doomed = HoodieTable.open(base).scan(columns=["id", "part"]).to_arrow().slice(0, 1)
    instant = HoodieTable.open(base).delete(doomed["id"].to_pylist(), QUICK).instant
    records = [plain(row["ColumnStatsMetadata"]) for row in read(base, name)]
    assert any(base.rglob(f".*_{instant}.log.*"))
    assert not any(str(instant) in row["fileName"] or not row["valueCount"] for row in records)
    part = doomed["part"][0].as_py()
    changed = HoodieTable.open(base).scan(filter=f"part = '{part}'").to_arrow().slice(0, 1)
    HoodieTable.open(base).upsert(changed.drop_columns([n for n in changed.column_names if n[:7] == "_hoodie"]), QUICK)
    [whole] = [
        row for row in (plain(each["ColumnStatsMetadata"]) for each in read(base, name)) if row["fileName"] == part
    ]
    assert -10_000 < int(whole["minValue"][1]) <= int(whole["maxValue"][1]) < 10_000


def test_an_unknown_function_is_refused_before_the_write(base: Path) -> None:
    path = base / ".hoodie/.index_defs/index.json"
    content = json.loads(path.read_text())
    name = next(name for name, each in indexes(base).items() if each["indexType"] == "column_stats")
    content["indexDefinitions"][name]["indexFunction"] = "somewhat"
    path.write_text(json.dumps(content))
    with pytest.raises(UnsupportedFeatureError, match="the function 'somewhat'"):
        HoodieTable.open(base).compact(options=QUICK)
