"""Tables of Spark's catalog name the place that the catalog names, and say what to do where their columns differ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.spark import read, register

pytestmark = pytest.mark.classic

SCHEMA = pa.schema([("id", pa.string()), ("v", pa.int64())])
WRITE = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.table.name": "w"}
QUERY_TYPE = "hoodie.datasource.query.type"


def make_table(path: Path, *ids: str) -> str:
    table = HoodieTable.create(path, SCHEMA, record_key="id")
    table.upsert(pa.table([list(ids), list(range(len(ids)))], schema=SCHEMA))
    return str(path)


@pytest.fixture
def entries(spark: Any) -> Iterator[Any]:
    """The session; what it has in its catalog afterwards is dropped."""
    register(spark)
    known = {each.name for each in spark.catalog.listTables()}
    yield spark
    for each in spark.catalog.listTables():
        if each.name not in known and not each.isTemporary:
            spark.sql(f"DROP TABLE {each.name}")


@pytest.fixture
def first(tmp_path: Path) -> str:
    return make_table(tmp_path / "first", "a", "b")


def ids(spark: Any, table: str) -> list[str]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect())


def test_an_entry_follows_its_location(entries: Any, first: str, tmp_path: Path) -> None:
    other = make_table(tmp_path / "an other, 100%", "x")
    entries.sql(f"CREATE TABLE moving USING hoodie LOCATION '{first}'")
    assert ids(entries, "moving") == ["a", "b"]
    entries.sql(f"ALTER TABLE moving SET LOCATION '{other}'")
    assert ids(entries, "moving") == ["x"]
    entries.sql(f"ALTER TABLE moving SET LOCATION '{tmp_path / 'nothing'}'")
    with pytest.raises(Exception, match="There is no Hudi table here"):
        ids(entries, "moving")
    entries.sql(f"ALTER TABLE moving SET LOCATION '{first}'")
    assert ids(entries, "moving") == ["a", "b"]
    entries.sql("ALTER TABLE moving RENAME TO moved")
    assert ids(entries, "moved") == ["a", "b"]


def test_the_options_of_an_entry_stay_at_its_place(entries: Any, first: str) -> None:
    instant = next(iter(HoodieTable.open(first).timeline)).request_time
    HoodieTable.open(first).upsert([{"id": "c", "v": 9}])
    entries.sql(f"CREATE TABLE old USING hoodie OPTIONS ('as.of.instant' '{instant}') LOCATION '{first}'")
    entries.sql("ALTER TABLE old SET TBLPROPERTIES ('a' = 'b')")
    assert ids(entries, "old") == ["a", "b"]


@pytest.mark.parametrize(
    "statement",
    ["ADD COLUMNS (extra int)", "RENAME COLUMN v TO w", "ALTER COLUMN v TYPE string"],
    ids=lambda text: text.partition(" ")[0],
)
def test_columns_that_the_table_lacks_are_told_with_what_to_do(entries: Any, first: str, statement: str) -> None:
    entries.sql(f"CREATE TABLE altered USING hoodie LOCATION '{first}'")
    entries.sql(f"ALTER TABLE altered {statement}")
    with pytest.raises(Exception, match=r"Spark's catalog declares other columns.*HoodieTable\.alter\(\)"):
        entries.sql("SELECT * FROM altered").collect()


def test_a_column_that_both_add_is_read(entries: Any, first: str) -> None:
    entries.sql(f"CREATE TABLE grown USING hoodie LOCATION '{first}'")
    entries.sql("ALTER TABLE grown ADD COLUMNS (extra int)")
    HoodieTable.open(first).alter(add={"extra": pa.int32()})
    assert entries.sql("SELECT extra FROM grown").count() == 2
    entries.sql("ALTER TABLE grown DROP COLUMN _hoodie_commit_time")
    assert ids(entries, "grown") == ["a", "b"]


def test_an_entry_with_declared_columns_reads_these(entries: Any, first: str) -> None:
    entries.sql(f"CREATE TABLE declared (ID string) USING hoodie LOCATION '{first}'")
    assert entries.table("declared").columns == ["ID"]
    assert ids(entries, "declared") == ["a", "b"]
    entries.catalog.createTable("made", path=first, source="hoodie", schema=entries.table("declared").schema)
    assert ids(entries, "made") == ["a", "b"]


def test_entries_made_from_frames_can_be_read(entries: Any, first: str, tmp_path: Path) -> None:
    df = entries.createDataFrame([("n", 1)], "id string, v long")
    df.write.format("hoodie").options(**WRITE, path=str(tmp_path / "s")).mode("append").saveAsTable("saved")
    assert ids(entries, "saved") == ["n"]
    df.writeTo("written").using("hoodie").options(**WRITE).option("path", str(tmp_path / "w")).create()
    assert ids(entries, "written") == ["n"]
    entries.sql(f"CREATE TABLE source USING hoodie LOCATION '{first}'")
    copied = entries.table("source").select("id", "v").where("id = 'a'")
    copied.write.format("hoodie").options(**WRITE, path=str(tmp_path / "c")).mode("append").saveAsTable("copied")
    assert ids(entries, "copied") == ["a"]


def test_a_table_from_a_query_is_refused_and_leaves_no_entry(entries: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"hoodie_py\.spark\.write\(df, path\)"):
        entries.sql(f"CREATE TABLE from_query USING hoodie LOCATION '{tmp_path / 'none'}' AS SELECT 1 AS id")
    assert not entries.catalog.tableExists("from_query")


def test_streams_read_and_write_entries(entries: Any, first: str, tmp_path: Path) -> None:
    pytest.importorskip("pyspark.sql.streaming.datasource", reason="NOT TESTED: PySpark 4.2 or newer")
    entries.sql(f"CREATE TABLE streamed USING hoodie LOCATION '{first}'")
    rows = entries.readStream.table("streamed").select("id", "v")
    sink = rows.writeStream.format("hoodie").options(**WRITE).option("path", str(tmp_path / "to"))
    query = sink.option("checkpointLocation", str(tmp_path / "ck")).trigger(availableNow=True).toTable("streamed_to")
    assert query.awaitTermination(300)
    assert ids(entries, "streamed_to") == ["a", "b"]


def test_read_options_of_the_session_count_below_those_of_the_load(entries: Any, first: str) -> None:
    HoodieTable.open(first).upsert([{"id": "a", "v": 77}])  # into a log file
    entries.sql(f"CREATE TABLE entry USING hoodie LOCATION '{first}'")

    def values() -> list[list[int]]:
        load = entries.read.format("hoodie")
        frames = (load.load(first), entries.table("entry"), read(entries, first))
        return [sorted(row.v for row in each.collect()) for each in frames]

    try:
        assert values() == [[1, 77]] * 3
        entries.conf.set(QUERY_TYPE, "read_optimized")
        assert values() == [[0, 1]] * 3
        explicit = entries.read.format("hoodie").option("hoodie.datasource.view.type", "snapshot").load(first)
        assert sorted(row.v for row in explicit.collect()) == [1, 77]
        entries.conf.set("hoodie.datasource.read.create.filesystem.relation", "true")
        with pytest.raises(Exception, match=r"table\.inspect\.files\(\)"):
            entries.read.format("hoodie").load(first)
    finally:
        entries.conf.unset(QUERY_TYPE)
        entries.conf.unset("hoodie.datasource.read.create.filesystem.relation")
    assert values() == [[1, 77]] * 3
