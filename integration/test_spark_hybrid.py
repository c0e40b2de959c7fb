"""``hoodie_py.spark.read`` uses Spark's own Parquet reader, too, and gives the same rows as the merging reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import HoodieError, HoodieTable
from hoodie_py.spark import read
from integration.corpus_compare import differences

# Copy on write, both kinds of slices, types, columns from the partition path, columns added later, no files at all.
TABLES = (
    "basic_cow_v9_part",
    "basic_mor_v9_part",
    "types_mor_v9",
    "drop_partition_columns_mor_v9",
    "evolve_add_column_mor_v9",
    "evolve_widen_mor_v9",
    "urlenc_partitions_mor_v9",
    "empty_mor_v9",
)


def scans(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.mark.parametrize("kind", ["snapshot", "read_optimized"])
@pytest.mark.parametrize("name", TABLES)
def test_rows_and_columns_equal_the_scan(spark: Any, corpus: Callable[[str], Path], name: str, kind: str) -> None:
    where = str(corpus(name))
    frame = read(spark, where, **{"hoodie.datasource.query.type": kind})
    assert differences(frame.toArrow(), HoodieTable.open(where).scan(query_type=kind).to_arrow()) == []


@pytest.mark.classic
def test_files_without_logs_go_to_sparks_own_reader(spark: Any, corpus: Callable[[str], Path]) -> None:
    where = str(corpus("basic_cow_v9_part"))
    columns = ["name", "id", "part"]
    frame = read(spark, where, columns=columns, filter="price >= 2 and part = 'p1'")
    assert "FileScan parquet" in scans(frame)
    assert "MapInArrow" not in scans(frame)
    want = HoodieTable.open(where).scan(columns=columns, filter="price >= 2 and part = 'p1'").to_arrow()
    assert want.num_rows
    assert differences(frame.toArrow(), want) == []


@pytest.mark.classic
def test_both_ways_make_one_frame(spark: Any, corpus: Callable[[str], Path]) -> None:
    where = str(corpus("inflight_last_mor_v6"))
    table = HoodieTable.open(where)
    frame = read(spark, where, filter="id is not null")
    assert "FileScan parquet" in scans(frame)
    assert "MapInArrow" in scans(frame)
    assert differences(frame.toArrow(), table.scan(filter="id is not null").to_arrow()) == []


@pytest.mark.classic
def test_columns_that_files_do_not_have_are_left_to_our_reader(spark: Any, corpus: Callable[[str], Path]) -> None:
    frame = read(
        spark, str(corpus("drop_partition_columns_mor_v9")), **{"hoodie.datasource.query.type": "read_optimized"}
    )
    assert "FileScan parquet" not in scans(frame)


def test_errors_come_as_they_are(spark: Any, tmp_path: Path, corpus: Callable[[str], Path]) -> None:
    with pytest.raises(HoodieError, match="nowhere"):
        read(spark, str(tmp_path / "nowhere"))
    with pytest.raises(HoodieError, match="gold"):
        read(spark, str(corpus("basic_cow_v9_part")), columns=["gold"])
