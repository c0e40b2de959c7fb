"""What the Connect test runs in a process of its own, as a user's script would: arguments are two tables."""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import SparkSession

from hoodie_py import HoodieTable, RecordMerger
from hoodie_py.spark import register


class KeepsOlder(RecordMerger):
    strategy_id = "0a1b2c3d-0000-4000-8000-000000000001"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return older


def main(plain: str, custom: str) -> None:
    spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    assert type(spark).__module__.startswith("pyspark.sql.connect")
    unregistered = spark.read.format("hoodie").load(plain)
    assert unregistered.count() == HoodieTable.open(plain).scan().count()
    register(spark, mergers=[KeepsOlder], name="hudi")
    want = HoodieTable.open(custom).scan(columns=["id", "price"], merger=KeepsOlder).to_arrow()
    got = spark.read.format("hudi").option("columns", "id,price").load(custom).toArrow()
    assert sorted(map(str, got.to_pylist())) == sorted(map(str, want.to_pylist()))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    assert spark.read.format("hudi").load(plain).where("id = 'k1'").count() == 1
    try:
        spark.read.format("hudi").load("/nowhere/at/all").collect()
    except Exception as error:
        assert "hoodie_py.errors.TableNotFoundError" in str(error), error
    else:
        raise AssertionError("a missing table was read")
    spark.stop()
    print("connect works")


if __name__ == "__main__":
    main(*sys.argv[1:])
