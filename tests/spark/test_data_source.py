"""The data source as Spark's planning workers use it, without a session."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from pyspark.sql import datasource
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from hoodie_py import HoodieError, HoodieTable, UnsupportedFeatureError
from hoodie_py.spark.data_source import HoodieSource, make_source_class
from hoodie_py.spark.reading.reader import HoodiePartition, choose_batch_rows
from tests.table.scan.test_empty_tables import make_table

TABLE = "event_time_updates_mor_v9"


@pytest.fixture
def path(corpus: Callable[[str], Path]) -> str:
    return str(corpus(TABLE))


def rows(source: HoodieSource, schema: StructType | None = None) -> pa.Table:
    """Plan and read like Spark, which pickles everything between the steps."""
    schema = source.schema() if schema is None else schema
    reader = pickle.loads(pickle.dumps(source)).reader(schema)
    worker = pickle.loads(pickle.dumps(reader))
    partitions = [pickle.loads(pickle.dumps(each)) for each in reader.partitions()]
    batches = [batch for partition in partitions for batch in worker.read(partition)]
    return pa.Table.from_batches(batches, worker._target)


def test_batches_of_wide_rows_have_fewer() -> None:
    rows_by_width = [choose_batch_rows(columns) for columns in (0, 1, 8, 27, 100, 10_000)]
    assert rows_by_width == [65_536, 65_536, 65_536, 19_418, 5_242, 4_096]


def test_rows_come_in_the_declared_schema(path: str) -> None:
    declared = StructType([StructField("QTY", LongType()), StructField("id", StringType(), nullable=False)])
    table = rows(HoodieSource({"path": path}), declared)
    assert table.schema.equals(pa.schema([("QTY", pa.int64()), pa.field("id", pa.string(), nullable=False)]))
    want = HoodieTable.open(path).scan(columns=["qty", "id"]).to_arrow()
    assert sorted(table["id"].to_pylist()) == sorted(want["id"].to_pylist())


def test_a_table_without_schema_has_no_rows_and_no_columns(tmp_path: Path) -> None:
    make_table(tmp_path / "t")
    changes = {**RANGE, "hoodie.datasource.query.incremental.format": "cdc"}
    for options in ({}, {"hoodie.datasource.query.type": "read_optimized"}, RANGE):
        assert rows(HoodieSource({"path": str(tmp_path / "t"), **options})) == pa.table({})
    found = rows(HoodieSource({"path": str(tmp_path / "t"), **changes}))
    assert found.column_names == ["op", "ts_ms", "before", "after"]
    assert found.num_rows == 0


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"hoodie.datasource.query.type": "cdc"}, "InvalidQueryError", "cdc"),
        ({"hoodie.datasource.query.type": "sideways"}, "InvalidQueryError", "sideways"),
        ({"columns": "id,ID"}, "InvalidQueryError", "asked for twice"),
        ({"columns": "gold"}, "InvalidQueryError", "'gold'"),
        ({"as.of.instant": "yesterday"}, "InvalidQueryError", "yesterday"),
        ({"integrity": "casual"}, "InvalidQueryError", "casual"),
        ({"batch_rows": "0"}, "InvalidQueryError", "batch_rows"),
        ({"memory_limit": "-1"}, "InvalidQueryError", "memory_limit"),
        ({"hoodie.merge.use.record.positions": "yes"}, "InvalidQueryError", "Give true or false"),
        ({"hoodie.merge.use.record.position": "true"}, "InvalidQueryError", "Did you mean"),
    ],
)
def test_bad_options_show_when_the_load_is_made(path: str, options: dict[str, str], error: str, said: str) -> None:
    with pytest.raises(HoodieError) as caught:
        HoodieSource({"path": path, **options}).schema()
    assert type(caught.value).__name__ == error
    assert said in str(caught.value)


def test_a_declared_type_that_loses_values_is_refused(path: str) -> None:
    declared = StructType([StructField("ts", IntegerType())])
    with pytest.raises(HoodieError, match="'ts' is int64 in the table"):
        HoodieSource({"path": path}).reader(declared)


@pytest.mark.skipif(not hasattr(datasource, "EqualTo"), reason="NOT TESTED: Spark 4.0 pushes no filters to Python")
def test_every_filter_stays_with_spark_and_leaves_nothing_out(path: str) -> None:
    source = HoodieSource({"path": path})
    reader = source.reader(source.schema())
    filters = [datasource.EqualTo(("id",), "k1"), datasource.EqualTo(("part",), "nowhere")]
    before = len(reader.partitions())
    assert [id(each) for each in reader.pushFilters(filters)] == [id(each) for each in filters]
    assert len(reader.partitions()) == before
    # Spark refuses a reader that has this method while its setting for pushed filters is off
    assert type(reader).pushFilters is datasource.DataSourceReader.pushFilters


def test_a_query_gives_a_catalog_table_no_options_of_its_own(path: str) -> None:
    columns = HoodieSource({"path": path, "provider": "hoodie", "memory_limit": "100000"}).schema()
    assert rows(HoodieSource({}), columns).num_rows == HoodieTable.open(path).scan().count()
    assert rows(HoodieSource({"path": path, "memory_limit": "100000"}), columns).num_rows > 0
    for name, value in (("as.of.instant", "20260101000000000"), ("memory_limit", "200000"), ("columns", "id")):
        with pytest.raises(UnsupportedFeatureError, match=rf"a catalog table \({name}\)"):
            HoodieSource({"path": path, name: value}).reader(columns)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"hoodie.memory.merge.max.size": "1GB"}, "InvalidQueryError", "cannot be '1GB'"),
        ({"hoodie.merge.use.record.positions": "yes"}, "InvalidQueryError", "Give true or false"),
        ({"hoodie.merge.use.record.position": "true"}, "InvalidQueryError", "Did you mean"),
        ({"hoodie.precommit.validators": "a.B"}, "UnsupportedFeatureError", "Writes are not validated"),
        ({"hoodie.compact.inline": "on"}, "InvalidQueryError", "hoodie.compact.inline cannot be 'on'"),
    ],
)
def test_bad_options_of_a_write_show_before_there_is_a_table(
    tmp_path: Path, options: dict[str, str], error: str, said: str
) -> None:
    given = {"path": str(tmp_path / "t"), "hoodie.datasource.write.recordkey.field": "id", **options}
    with pytest.raises(HoodieError, match=said) as caught:
        HoodieSource(given).writer(StructType([StructField("id", StringType())]), overwrite=False)
    assert type(caught.value).__name__ == error
    assert not (tmp_path / "t").exists()


def test_a_pin_outlives_changes_of_the_table(corpus_copy: Callable[[str], Path]) -> None:
    where = corpus_copy(TABLE)
    last = max((where / ".hoodie" / "timeline").glob("*_*.deltacommit"))
    hidden = last.rename(last.with_suffix(".hidden"))
    source = HoodieSource({"path": str(where)})
    schema = source.schema()
    source = pickle.loads(pickle.dumps(source))
    before = rows(HoodieSource({"path": str(where)})).sort_by("id")
    hidden.rename(last)
    assert rows(source, schema).sort_by("id").equals(before)
    assert not rows(HoodieSource({"path": str(where)})).sort_by("id").equals(before)


RANGE = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}


def test_a_range_of_commits_by_javas_options(path: str) -> None:
    second = list(HoodieTable.open(path).timeline)[1].completion_time
    options = {"path": path, **RANGE, "hoodie.datasource.read.begin.instanttime": second}
    want = HoodieTable.open(path).incremental(second).to_arrow()
    assert 0 < want.num_rows < HoodieTable.open(path).incremental().count()
    assert rows(HoodieSource({**options})).sort_by("id").equals(want.sort_by("id"))
    ended = HoodieSource({**options, "hoodie.datasource.read.end.instanttime": second, "columns": "id"})
    assert rows(ended).num_rows == 0


def test_a_range_without_a_start_is_an_error_that_names_the_option(path: str) -> None:
    source = HoodieSource({"path": path, "hoodie.datasource.query.type": "incremental"})
    schema = source.schema()
    with pytest.raises(HoodieError, match=r"hoodie\.datasource\.read\.begin\.instanttime"):
        source.reader(schema)


def test_a_pin_fixes_the_end_of_a_range(corpus_copy: Callable[[str], Path]) -> None:
    where = corpus_copy(TABLE)
    last = max((where / ".hoodie" / "timeline").glob("*_*.deltacommit"))
    hidden = last.rename(last.with_suffix(".hidden"))
    source = HoodieSource({"path": str(where), **RANGE})
    schema = source.schema()
    source = pickle.loads(pickle.dumps(source))
    before = rows(HoodieSource({"path": str(where), **RANGE})).sort_by("id")
    hidden.rename(last)
    assert rows(source, schema).sort_by("id").equals(before)
    assert not rows(HoodieSource({"path": str(where), **RANGE})).sort_by("id").equals(before)


def test_a_catalog_table_may_be_a_range(path: str) -> None:
    columns = HoodieSource({"path": path, "provider": "hoodie", **RANGE}).schema()
    assert rows(HoodieSource({}), columns).num_rows == HoodieTable.open(path).incremental().count()


def test_planned_queries_do_not_carry_the_pin_to_their_tasks(path: str) -> None:
    source = HoodieSource({"path": path})
    schema = source.schema()
    pinned = len(pickle.dumps(source))
    source.reader(schema)
    assert len(pickle.dumps(source)) < min(pinned, 2_000)


def test_catalog_tables_carry_path_and_read_options_but_no_secrets(path: str) -> None:
    options = {
        "path": path,
        "provider": "hoodie",
        "owner": "me",
        "location": path,
        "storage_options": '{"auto_mkdir": false, "secret": "hunter2"}',
        "fs.s3a.secret.key": "hunter2",
        "hoodie.datasource.query.type": "read_optimized",
    }
    source = HoodieSource({**options, "storage_options": "{}"})
    schema = source.schema()
    assert "hunter2" not in schema.json()
    want = HoodieTable.open(path).scan(query_type="read_optimized").to_arrow()
    assert sorted(rows(HoodieSource({}), schema)["id"].to_pylist()) == sorted(want["id"].to_pylist())
    assert all(field.metadata in (None, {}) for field in HoodieSource({"path": path}).schema())


def test_nothing_is_read_of_spark_s_own_empty_partition(path: str) -> None:
    source = HoodieSource({"path": path})
    assert list(source.reader(source.schema()).read(datasource.InputPartition(None))) == []


def test_reading_stops_where_spark_stops(path: str) -> None:
    source = HoodieSource({"path": path, "batch_rows": "1"})
    reader = source.reader(source.schema())
    batches = reader.read(reader.partitions()[0])
    assert next(batches).num_rows == 1
    batches.close()
    assert list(batches) == []


def test_a_partition_too_large_to_send_is_split(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie_py.spark.reading.reader.LARGEST_PARTITION", 1)
    source = HoodieSource({"path": path})
    partitions = source.reader(source.schema()).partitions()
    assert [len(each.tasks) for each in partitions if isinstance(each, HoodiePartition)] == [1] * 3


def test_a_registered_class_travels_by_value() -> None:
    from pyspark import cloudpickle

    cls = make_source_class("hudi", [], {"spark.hadoop.fs.s3a.endpoint": "e"})
    there = cloudpickle.loads(cloudpickle.dumps(cls))
    assert there.name() == "hudi"
    assert there.session == {"spark.hadoop.fs.s3a.endpoint": "e"}
    assert issubclass(there, HoodieSource)
    assert HoodieSource.name() == "hoodie"
