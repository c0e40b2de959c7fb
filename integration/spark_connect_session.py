"""The script that the Connect test runs in a process, like a user's script: read two tables, compact one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hoodie_py import HoodieTable, RecordMerger
from hoodie_py.spark import read, register
from integration.spark_uses import check_uses
from tests.spark.troubled_tasks import FailsOnce, Troubled
from tests.writer.compaction_tables import QUICK, leftovers, orphans, rows


class KeepsOlder(RecordMerger):
    strategy_id = "0a1b2c3d-0000-4000-8000-000000000001"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return older


def main(plain: str, custom: str, writable: str) -> None:
    spark = SparkSession.builder.remote("local[2,3]").config("spark.ui.enabled", "false").getOrCreate()
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    unregistered = spark.read.format("hoodie").load(plain)
    assert unregistered.count() == HoodieTable.open(plain).scan().count()
    register(spark, mergers=[KeepsOlder], name="hudi")
    want = HoodieTable.open(custom).scan(columns=["id", "price"], merger=KeepsOlder).to_arrow()
    got = spark.read.format("hudi").option("columns", "id,price").load(custom).toArrow()
    assert sorted(map(str, got.to_pylist())) == sorted(map(str, want.to_pylist()))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    assert spark.read.format("hudi").load(plain).where("id = 'k1'").count() == 1
    check_uses(spark, Path(plain))
    with pytest.raises(PySparkException, match=r"hoodie_py\.errors\.TableNotFoundError"):
        spark.read.format("hudi").load("/nowhere/at/all").collect()
    both = read(spark, custom, columns=["id", "price"], mergers=[KeepsOlder]).toArrow()
    assert sorted(map(str, both.to_pylist())) == sorted(map(str, want.to_pylist()))
    compact(spark, writable)
    spark.stop()
    print("connect works")


def compact(spark: Any, where: str) -> None:
    """Compact with tasks that fail once each, after they wrote their file; Spark retries them."""
    table = HoodieTable.open(where)
    before = rows(table)
    result = table.compact(Troubled.by(spark, FailsOnce), options=QUICK)
    assert result.file_groups == len(list(Path(where).rglob(f"*_{result.instant}.parquet")))
    assert rows(HoodieTable.open(where), "read_optimized") == before
    assert (orphans(Path(where)), leftovers(Path(where))) == ([], [])
    assert table.compact(spark, options=QUICK).instant is None


if __name__ == "__main__":
    main(*sys.argv[1:])
