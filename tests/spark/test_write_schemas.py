"""Spark's writes change a table's schema by the same rule as those in process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import datasource

from hoodie_py import HoodieTable, InvalidQueryError
from hoodie_py.errors import HoodieWarning
from hoodie_py.options.write import LOSSY, SCHEMA_CHANGES
from hoodie_py.spark import merge_into, update, write
from hoodie_py.writer.dml.clauses import Update

_LARGE = 9007199254740993
_SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64()), ("i", pa.int32())])
_LOSSY = {SCHEMA_CHANGES: LOSSY}
_STRICT = {SCHEMA_CHANGES: "NONE"}


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    made = HoodieTable.create(tmp_path / "t", _SCHEMA, record_key="id")
    made.upsert([{"id": "a", "n": _LARGE, "i": 1}])
    return made


def _read(table: HoodieTable) -> tuple[list[pa.DataType], Any]:
    rows = HoodieTable.open(table.uri).scan(["id", "n", "i"], filter="id = 'a'").to_arrow()
    return rows.schema.types[1:], rows["n"][0].as_py()


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
def test_workers_write_what_a_word_allows(spark: Any, table: HoodieTable, operation: str) -> None:
    lossy = spark.createDataFrame(pa.table({"id": ["b"], "n": [1.5], "i": pa.array([1], pa.int32())}))
    wider = spark.createDataFrame(pa.table({"id": ["b"], "n": [1], "i": [1 << 40]}))
    with pytest.raises(InvalidQueryError, match="n becomes double, was long"):
        write(lossy, table.uri, operation)
    with pytest.raises(InvalidQueryError, match="allows no change: i becomes long"):
        write(wider, table.uri, operation, options=_STRICT)
    assert _read(table) == ([pa.int64(), pa.int32()], _LARGE)
    with pytest.warns(HoodieWarning, match="i becomes long, was int"):
        assert [each.column for each in write(wider, table.uri, operation).schema_changes] == ["i"]
    with pytest.warns(HoodieWarning, match="n becomes double, was long"):
        assert write(lossy, table.uri, operation, allow_loss=True).schema_changes[0].loses
    assert HoodieTable.open(table.uri).schema.field("n").type == pa.float64()


def test_the_data_source_has_the_same_rule(spark: Any, table: HoodieTable) -> None:
    frame = spark.createDataFrame(pa.table({"id": ["b"], "n": [1.5], "i": pa.array([1], pa.int32())}))
    with pytest.raises(PySparkException, match="n becomes double, was long"):
        frame.write.format("hoodie").mode("append").save(table.uri)
    wider = spark.createDataFrame(pa.table({"id": ["b"], "n": [1], "i": [1 << 40]}))
    with pytest.raises(PySparkException, match="allows no change"):
        wider.write.format("hoodie").mode("append").options(**_STRICT).save(table.uri)
    assert _read(table) == ([pa.int64(), pa.int32()], _LARGE)
    frame.write.format("hoodie").mode("append").options(**_LOSSY).save(table.uri)
    assert _read(table)[0] == [pa.float64(), pa.int32()]


@pytest.mark.skipif(
    not hasattr(datasource, "DataSourceStreamArrowWriter"), reason="NOT TESTED: this PySpark writes no Arrow streams"
)
def test_streams_have_the_same_rule(spark: Any, table: HoodieTable, tmp_path: Path) -> None:
    frame = spark.createDataFrame(pa.table({"id": ["b"], "n": [1.5], "i": pa.array([1], pa.int32())}))
    frame.write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "in"))
    writer = stream.writeStream.format("hoodie").trigger(availableNow=True)
    with pytest.raises(StreamingQueryException, match="n becomes double, was long"):
        writer.option("checkpointLocation", str(tmp_path / "c")).start(table.uri).awaitTermination()
    assert _read(table) == ([pa.int64(), pa.int32()], _LARGE)
    writer.options(**_LOSSY).option("checkpointLocation", str(tmp_path / "d")).start(table.uri).awaitTermination()
    assert _read(table)[0] == [pa.float64(), pa.int32()]


def test_updates_and_merges_change_no_column(spark: Any, table: HoodieTable) -> None:
    update(spark, table.uri, {"n": "8 / 4"})
    source = spark.createDataFrame(pa.table({"id": ["a"], "n": [3.0], "more": ["x"]}))
    merge_into(source, table.uri, on="id", when_matched=Update({"n": "source.n"}))
    assert _read(table) == ([pa.int64(), pa.int32()], 3)
