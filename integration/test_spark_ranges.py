"""Ranges of commits in Spark, as rows and as changes: ``format("hoodie")`` and ``hoodie_py.spark.read``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from hoodie_py import HoodieTable, InvalidQueryError
from hoodie_py.spark import read
from integration.corpus_compare import differences

pytest.importorskip("pyspark.sql.datasource", reason="NOT TESTED: pyspark is not installed")

TYPE, FORMAT = "hoodie.datasource.query.type", "hoodie.datasource.query.incremental.format"
BEGIN, END = "hoodie.datasource.read.begin.instanttime", "hoodie.datasource.read.end.instanttime"


def middle_range(table: HoodieTable) -> dict[str, str]:
    """Options of the range without the first and the last commit."""
    times = sorted(each.completion_time or "" for each in table.timeline if each.is_completed and each.is_write)
    return {TYPE: "incremental", BEGIN: times[0], END: times[-2]}


@pytest.mark.parametrize("name", ["incremental_ranges_cow_v6", "incremental_ranges_mor_v9"])
def test_rows_of_a_range(spark: Any, corpus: Callable[[str], Path], name: str) -> None:
    where = str(corpus(name))
    table = HoodieTable.open(where)
    asked = middle_range(table)
    want = table.incremental(asked[BEGIN], asked[END]).to_arrow()
    assert want.num_rows > 0
    assert differences(spark.read.format("hoodie").options(**asked).load(where).toArrow(), want) == []
    assert differences(read(spark, where, options=asked).toArrow(), want) == []
    first = want.column_names[5:7]
    some = want.select(first).filter(pc.is_valid(want[first[0]]))
    condition = f"{first[0]} is not null"
    assert differences(read(spark, where, first, condition, options=asked).toArrow(), some) == []
    frame = spark.read.format("hoodie").options(**asked).option("columns", ",".join(first)).load(where)
    assert differences(frame.where(condition).toArrow(), some) == []
    with pytest.raises(InvalidQueryError, match="begin"):
        read(spark, where, options={TYPE: "incremental"})


@pytest.mark.parametrize("name", ["cdc_before_after_cow_v9", "cdc_before_mor_v9"])
def test_changes_of_a_range(spark: Any, corpus: Callable[[str], Path], name: str) -> None:
    where = str(corpus(name))
    table = HoodieTable.open(where)
    asked = {**middle_range(table), FORMAT: "cdc"}
    want = table.changes(asked[BEGIN], asked[END]).to_arrow()
    assert want.num_rows > 0
    frame = spark.read.format("hoodie").options(**asked).load(where)
    assert frame.columns == ["op", "ts_ms", "before", "after"]
    assert differences(frame.toArrow(), want) == []
    assert differences(read(spark, where, options=asked).toArrow(), want) == []
    deleted = want.filter(pc.equal(want["op"], "d")).select(["before"])
    assert differences(read(spark, where, ["before"], "op = 'd'", options=asked).toArrow(), deleted) == []


def test_a_catalog_table_of_changes(spark: Any, corpus: Callable[[str], Path]) -> None:
    where = str(corpus("cdc_before_mor_v9"))
    spark.sql(
        f"create table changed using hoodie options ('{TYPE}' 'incremental', '{FORMAT}' 'cdc', '{BEGIN}' '000') "
        f"location '{where}'"
    )
    try:
        assert differences(spark.table("changed").toArrow(), HoodieTable.open(where).changes().to_arrow()) == []
    finally:
        spark.sql("drop table changed")
