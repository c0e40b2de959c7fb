"""Streams of a table, from ``spark.readStream`` to ``writeStream``, through restarts and table services."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable

pytest.importorskip("pyspark.sql.streaming.datasource", reason="NOT TESTED: PySpark 4.2 or newer is not installed")

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("value", pa.string())])
SINK = {
    "hoodie.table.name": "sink",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.operation": "bulk_insert",  # a row that comes twice is there twice
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}
Rows = Counter[tuple[Any, ...]]


@pytest.fixture
def source(tmp_path: Path) -> HoodieTable:
    return make_source(tmp_path / "source")


def make_source(path: Path, **more: Any) -> HoodieTable:
    return HoodieTable.create(
        str(path), SCHEMA, record_key="id", ordering="ts", table_type="MERGE_ON_READ", table_version=9, **more
    )


def upsert(table: HoodieTable, number: int, keys: str) -> Rows:
    rows = [{"id": key, "ts": number, "value": f"{key}{number}"} for key in keys]
    table.upsert(pa.Table.from_pylist(rows, schema=SCHEMA))
    return Counter((row["id"], row["ts"], row["value"]) for row in rows)


def start(spark: Any, folder: Path, **options: Any) -> Any:
    """Start a query that pipes the source to the sink. Only its checkpoint outlives it."""
    rows = spark.readStream.format("hoodie").options(**options).load(str(folder / "source"))
    return (
        rows.selectExpr("id", "ts", "value")
        .writeStream.format("hoodie")
        .options(**SINK)
        .option("checkpointLocation", str(folder / "checkpoint"))
    )


def pipe(spark: Any, folder: Path, **options: Any) -> list[int]:
    """Read all that there is; return the rows of each batch."""
    query = start(spark, folder, **options).trigger(availableNow=True).start(str(folder / "sink"))
    assert query.awaitTermination(300)
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]


def sunk(folder: Path) -> Rows:
    rows = HoodieTable.open(str(folder / "sink")).scan(columns=["id", "ts", "value"]).to_arrow().to_pylist()
    return Counter((row["id"], row["ts"], row["value"]) for row in rows)


@pytest.mark.classic
def test_a_table_is_piped_to_another_through_restarts(spark: Any, source: HoodieTable, tmp_path: Path) -> None:
    wrote = upsert(source, 1, "abc") + upsert(source, 2, "ad")
    assert pipe(spark, tmp_path, maxCommitsPerTrigger=1) == [3, 2]
    assert sunk(tmp_path) == wrote
    assert pipe(spark, tmp_path) == []
    wrote += upsert(source, 3, "bc")
    source.compact()
    wrote += upsert(source, 4, "a")
    assert pipe(spark, tmp_path) == [3]
    wrote += upsert(source, 5, "a")
    source.clean(retain_commits=1)
    assert pipe(spark, tmp_path) == [1]
    assert sunk(tmp_path) == wrote


def test_a_batch_that_spark_did_not_note_as_done_is_not_written_again(
    spark: Any, source: HoodieTable, tmp_path: Path
) -> None:
    wrote = upsert(source, 1, "abc")
    pipe(spark, tmp_path)
    wrote += upsert(source, 2, "ab")
    pipe(spark, tmp_path)
    for noted in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        noted.unlink()
    upsert(source, 3, "abc")
    source.compact()
    pipe(spark, tmp_path)
    assert sunk(tmp_path) == wrote + Counter({("a", 3, "a3"): 1, ("b", 3, "b3"): 1, ("c", 3, "c3"): 1})


def test_a_query_goes_on_with_commits_as_they_land(spark: Any, source: HoodieTable, tmp_path: Path) -> None:
    wrote = upsert(source, 1, "ab")
    query = start(spark, tmp_path).trigger(processingTime="500 milliseconds").start(str(tmp_path / "sink"))
    try:
        made = tmp_path / "sink" / ".hoodie" / "hoodie.properties"
        wait_for(lambda: made.is_file() and sunk(tmp_path) == wrote, query)
        wrote += upsert(source, 2, "b")
        wait_for(lambda: sunk(tmp_path) == wrote, query)
    finally:
        query.stop()
    assert sunk(tmp_path) == wrote


def wait_for(condition: Callable[[], bool], query: Any) -> None:
    until = time.monotonic() + 300
    while not condition():
        assert query.exception() is None
        assert time.monotonic() < until
        time.sleep(0.5)


def test_a_stream_of_changes(spark: Any, tmp_path: Path) -> None:
    source = make_source(tmp_path / "source", properties={"hoodie.table.cdc.enabled": "true"})
    upsert(source, 1, "ab")
    cdc = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": "cdc"}
    upsert(source, 2, "b")
    source.delete(["a"])
    rows = spark.readStream.format("hoodie").options(**cdc, maxCommitsPerTrigger=1).load(str(tmp_path / "source"))
    assert rows.columns == ["op", "ts_ms", "before", "after"]
    (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "changes"))
        .awaitTermination(300)
    )
    found = spark.read.parquet(str(tmp_path / "changes")).collect()

    def take(image: str | None) -> Any:
        return None if image is None else json.loads(image)["value"]

    assert sorted((row.op, take(row.before) or "", take(row.after) or "") for row in found) == [
        ("d", "a1", ""), ("i", "", "a1"), ("i", "", "b1"), ("u", "b1", "b2"),
    ]  # fmt: skip


def test_the_checkpoint_of_another_table_shows_as_an_error(spark: Any, source: HoodieTable, tmp_path: Path) -> None:
    upsert(source, 1, "a")
    pipe(spark, tmp_path)
    (tmp_path / "source").rename(tmp_path / "old")
    upsert(make_source(tmp_path / "source"), 1, "a")
    with pytest.raises(Exception, match="is not in the table's history") as caught:
        pipe(spark, tmp_path)
    assert "InvalidQueryError" in str(caught.value)
