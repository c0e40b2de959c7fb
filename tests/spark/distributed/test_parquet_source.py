"""Workers read Parquet files themselves only if Spark sees the same rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from pyspark.sql import functions as f

from hoodie_py import HoodieError, HoodieTable, TableNotFoundError
from hoodie_py.spark import write
from hoodie_py.spark.distributed import parquet_source
from hoodie_py.spark.distributed.parquet_source import FileSource, FrameSource, choose_row_source
from hoodie_py.spark.parquet_files import divide_groups, find_row_groups, read_groups
from tests.spark.test_parquet_files import SCHEMA, saved, table

OPTIONS = {
    "hoodie.table.name": "files",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}


_LEAST_BYTES = parquet_source._LEAST_BYTES


@pytest.fixture(autouse=True)
def _small_files_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_source, "_LEAST_BYTES", 0)


Load = Callable[[Any, list[Path]], Any]
PLAIN: dict[str, Load] = {
    "a file": lambda spark, files: spark.read.parquet(str(files[0])),
    "a file by its URL": lambda spark, files: spark.read.parquet(f"file://{files[0]}"),
    "files": lambda spark, files: spark.read.parquet(*map(str, files)),
    "a folder": lambda spark, files: spark.read.parquet(str(files[0].parent)),
    "a folder with a slash": lambda spark, files: spark.read.load(f"{files[0].parent}/"),
    "a folder by its URL": lambda spark, files: spark.read.format("parquet").load(f"file://{files[0].parent}"),
    "all columns": lambda spark, files: spark.read.parquet(str(files[0].parent)).select("*"),
}
OTHER: dict[str, Load] = {
    "a filter": lambda spark, files: spark.read.parquet(str(files[0])).where("ts > 0"),
    "a limit": lambda spark, files: spark.read.parquet(str(files[0])).limit(3),
    "some columns": lambda spark, files: spark.read.parquet(str(files[0])).select("id", "ts"),
    "another order": lambda spark, files: spark.read.parquet(str(files[0])).select(*reversed(SCHEMA.names)),
    "another name": lambda spark, files: spark.read.parquet(str(files[0])).withColumnRenamed("tags", "labels"),
    "a computed column": lambda spark, files: spark.read.parquet(str(files[0])).withColumn("ts", f.col("ts") + 1),
    "an option": lambda spark, files: spark.read.option("mergeSchema", "true").parquet(str(files[0])),
    "a pattern": lambda spark, files: spark.read.parquet(f"{files[0].parent}/*.parquet"),
    "a union": lambda spark, files: spark.read.parquet(str(files[0])).union(spark.read.parquet(str(files[0]))),
    "a schema of fewer columns": lambda spark, files: spark.read.schema("id string, ts long").parquet(str(files[0])),
    "another format": lambda spark, files: spark.read.format("text").load(str(files[0].parent)),
    "no file": lambda spark, _: spark.range(3),
}


@pytest.mark.classic
@pytest.mark.spark
@pytest.mark.parametrize("how", PLAIN)
def test_a_dataframe_that_is_nothing_but_files(spark: Any, tmp_path: Path, how: str) -> None:
    files = saved(tmp_path / "in a folder", 1 if how.startswith("a file") else 3)
    found = choose_row_source(PLAIN[how](spark, files))
    assert isinstance(found, FileSource)
    assert [(each.path, each.number) for each in found.groups] == [(str(path), n) for path in files for n in range(3)]


@pytest.mark.spark
@pytest.mark.parametrize("how", OTHER)
def test_a_dataframe_that_is_more_than_files(spark: Any, tmp_path: Path, how: str) -> None:
    assert isinstance(choose_row_source(OTHER[how](spark, saved(tmp_path / "data"))), FrameSource)


@pytest.mark.classic
@pytest.mark.spark
def test_few_bytes_are_for_spark(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = saved(tmp_path / "data", 2)
    df = spark.read.parquet(*map(str, files))
    monkeypatch.setattr(parquet_source, "_LEAST_BYTES", _LEAST_BYTES)
    assert isinstance(choose_row_source(df), FrameSource)
    size = sum(path.stat().st_size for path in files)
    for least, kind in ((size, FileSource), (size + 1, FrameSource)):
        monkeypatch.setattr(parquet_source, "_LEAST_BYTES", least)
        assert isinstance(choose_row_source(df), kind)


@pytest.mark.spark
def test_columns_that_change_their_names_with_each_other(spark: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": ["1"], "b": ["2"]}), tmp_path / "f.parquet")
    swapped = spark.read.parquet(str(tmp_path)).select(f.col("a").alias("b"), f.col("b").alias("a"))
    assert isinstance(choose_row_source(swapped), FrameSource)


@pytest.mark.spark
def test_files_in_folders_of_partitions_are_for_spark(spark: Any, tmp_path: Path) -> None:
    saved(tmp_path / "day=1")
    assert isinstance(choose_row_source(spark.read.parquet(str(tmp_path))), FrameSource)


@pytest.mark.spark
def test_rows_that_spark_keeps_are_for_spark(spark: Any, tmp_path: Path) -> None:
    saved(tmp_path / "data")
    kept = spark.read.parquet(str(tmp_path / "data")).persist()
    try:
        assert isinstance(choose_row_source(kept), FrameSource)
        assert isinstance(choose_row_source(spark.read.parquet(str(tmp_path / "data"))), FrameSource)
    finally:
        kept.unpersist()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "value"),
    [("spark.sql.files.ignoreCorruptFiles", "true"), ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY")],
)
def test_settings_that_change_what_is_read(spark: Any, tmp_path: Path, name: str, value: str) -> None:
    saved(tmp_path / "data")
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    try:
        assert isinstance(choose_row_source(spark.read.parquet(str(tmp_path / "data"))), FrameSource)
    finally:
        spark.conf.set(name, before)


@pytest.mark.classic
@pytest.mark.spark
@pytest.mark.parametrize("operation", ["bulk_insert", "upsert"])
def test_both_ways_write_the_same_rows(spark: Any, tmp_path: Path, operation: str) -> None:
    saved(tmp_path / "old", 2, compression="zstd")
    pq.write_table(table(range(60, 100), ts=2), tmp_path / "new.parquet")
    old, new = (spark.read.parquet(str(tmp_path / name)) for name in ("old", "new.parquet"))
    assert isinstance(choose_row_source(old), FileSource)
    seen = []
    for way, through_spark in (("files", False), ("frame", True)):
        for df in (old, new):
            rows = df.where("id is not null") if through_spark else df
            write(rows, str(tmp_path / way), operation=operation, options=OPTIONS)
        found = HoodieTable.open(tmp_path / way).scan(SCHEMA.names).to_arrow()
        seen.append(found.sort_by([("id", "ascending"), ("ts", "ascending")]).to_pylist())
    assert seen[0] == seen[1]
    assert len(seen[0]) == (100 if operation == "upsert" else 120)


@pytest.mark.classic
@pytest.mark.spark
def test_options_bound_the_number_of_tasks(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divide_groups, "__kwdefaults__", {"least": 0, "most": 1})
    df = spark.read.parquet(str(saved(tmp_path / "data")[0]))
    write(df, str(tmp_path / "three"), operation="bulk_insert", options=OPTIONS)
    two = {**OPTIONS, "hoodie.bulkinsert.shuffle.parallelism": "2"}
    write(df, str(tmp_path / "two"), operation="bulk_insert", options=two)
    assert len(list((tmp_path / "three").glob("*.parquet"))) == 3
    assert len(list((tmp_path / "two").glob("*.parquet"))) == 2


@pytest.mark.classic
@pytest.mark.spark
def test_a_file_that_goes_before_it_is_read(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path,) = saved(tmp_path / "data")
    df = spark.read.parquet(str(path))
    known = find_row_groups(str(path), SCHEMA, trusting=True)

    def gone(*_: Any, **__: Any) -> Any:
        path.unlink()
        return known

    monkeypatch.setattr(parquet_source, "find_row_groups", gone)
    with pytest.raises(HoodieError, match="no such file"):
        write(df, str(tmp_path / "table"), operation="bulk_insert", options=OPTIONS)
    with pytest.raises(TableNotFoundError):  # what the first write made is taken back
        HoodieTable.open(tmp_path / "table")


ALL_TYPES = [
    "cast(id as string) as s", "cast(cast(id as string) as binary) as bin", "id as long", "cast(id as int) as i",
    "cast(id as short) as sh", "cast(id % 128 as byte) as by", "id % 3 = 0 as flag",
    "cast(id / 7 as float) as fl", "id / 7D as d",
    "cast(id / 9 as decimal(4, 1)) as small", "cast(id * 1e9 as decimal(17, 3)) as middle",
    "cast(id * 1e20 as decimal(38, 9)) as large", "date_add(date'1582-10-01', cast(id as int)) as day",
    "timestamp'1899-12-31 23:59:59.123456' + make_interval(0, id) as at",
    "cast(timestamp_ntz'1581-12-31 23:59:59.123456' + make_interval(0, 0, 0, id) as timestamp_ntz) as local",
    "array(id, null, -id) as numbers", "array(array(cast(id as string)), null, array()) as nested",
    "map(cast(id as string), id, 'x', null) as m", "map(id, array(struct(id as p, 'r' as r))) as deep",
    "named_struct('a', id, 'b', named_struct('c', cast(id as string))) as st", "array(struct(id as only)) as one",
]  # fmt: skip


@pytest.mark.classic
@pytest.mark.spark
@pytest.mark.parametrize("times", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_files_that_spark_wrote_hold_what_spark_sees(spark: Any, tmp_path: Path, times: str) -> None:
    spark.conf.set("spark.sql.parquet.outputTimestampType", times)
    split = [each.rsplit(" as ", 1) for each in ALL_TYPES]
    columns = [f"if(id % 5 = 4, null, {value}) as {name}" for value, name in split]
    try:
        spark.range(0, 200, 1, 3).selectExpr("id", *columns).write.parquet(str(tmp_path / "data"))
    finally:
        spark.conf.unset("spark.sql.parquet.outputTimestampType")
    df = spark.read.parquet(str(tmp_path / "data"))
    found = choose_row_source(df)
    assert isinstance(found, FileSource)
    ours = pa.Table.from_batches(read_groups(found.groups, found.schema)).sort_by("id")
    theirs = df.toArrow().sort_by("id")
    assert ours.schema.names == theirs.schema.names
    assert ours.to_pylist() == theirs.to_pylist()
