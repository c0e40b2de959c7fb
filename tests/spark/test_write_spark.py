"""Writing by Spark gives the same tables as in process, sends mergers and errors, and leaves no other files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from pyspark.errors import PySparkException
from pyspark.sql import datasource

from hoodie_py import (
    ConflictError,
    CorruptFileError,
    HoodieError,
    HoodieTable,
    InvalidQueryError,
    MergeError,
    RecordMerger,
    TableNotFoundError,
)
from hoodie_py.spark import register, write
from hoodie_py.spark.distributed import jobs as write_engine
from hoodie_py.spark.distributed.jobs import FrameJobs
from hoodie_py.spark.distributed.payloads import choose_labels
from hoodie_py.spark.process import is_connect
from hoodie_py.writer.pipeline import write as write_module
from tests.spark.troubled_writes import Breaks, LosesRows, troubled
from tests.writer.change_tables import list_change_files, read_records
from tests.writer.compaction_tables import QUICK, leftovers, orphans
from tests.writer.pipeline.engines import write_by
from tests.writer.pipeline.test_engine import rows, seen, steps
from tests.writer.written_tables import SCHEMA, Kind

STREAMS = pytest.mark.skipif(
    not hasattr(datasource, "DataSourceStreamArrowWriter"), reason="NOT TESTED: this PySpark writes no Arrow streams"
)


@pytest.fixture
def frame(spark: Any) -> Any:
    def made(table: pa.Table) -> Any:
        return spark.createDataFrame(table)

    return made


class Longest(RecordMerger):
    """Keeps the longest name. Like a notebook's merger: workers cannot import its module."""

    strategy_id = "5a0c5f0e-0000-4000-8000-0000000000aa"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return newer if len(context.get_value(newer, "name")) >= len(context.get_value(older, "name")) else older


Longest.__module__ = "__main__"

OPTIONS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.partitionpath.field": "part",
}


def test_spark_writes_what_one_process_writes(spark: Any, frame: Any, tmp_path: Path) -> None:
    type_ = "COPY_ON_WRITE"  # others: ``EngineTests``
    options = {**OPTIONS, "hoodie.datasource.write.table.type": type_}
    HoodieTable.create(tmp_path / "want", SCHEMA, record_key="id", ordering="ts", partition_by="part", table_type=type_)
    for operation, data in steps(3):
        want = getattr(HoodieTable.open(tmp_path / "want"), operation)(data)
        ours = write(frame(data), str(tmp_path / "ours"), operation, **options)
        assert seen(tmp_path / "ours") == seen(tmp_path / "want"), operation
        assert (ours.rows_inserted, ours.rows_updated) == (want.rows_inserted, want.rows_updated)
        assert ours.instant is not None
    assert (orphans(tmp_path / "ours"), leftovers(tmp_path / "ours")) == ([], [])
    assert spark.catalog.listTables() == []
    if not is_connect(spark):
        assert not spark.sparkContext._jsc.sc().getPersistentRDDs().size()


def test_an_index_that_is_built_before_a_write_begins_has_its_rows(
    frame: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HoodieTable.open(Kind(9, True).create(tmp_path))
    table.upsert(rows(range(12), 1), QUICK)
    serve = write_module.run_metadata_services

    def build_then_serve(*given: Any) -> None:
        monkeypatch.setattr(write_module, "run_metadata_services", serve)
        HoodieTable.open(tmp_path).index.build("record_index", options=QUICK)
        serve(*given)

    monkeypatch.setattr(write_module, "run_metadata_services", build_then_serve)
    write(frame(rows(range(8, 20), 2, "new")), str(tmp_path), "upsert", **OPTIONS)
    report = HoodieTable.open(tmp_path).verify()
    assert report.is_right, str(report)
    by_index = {**QUICK, "hoodie.index.type": "RECORD_INDEX"}
    HoodieTable.open(tmp_path).upsert(rows(range(20), 3), by_index)
    assert HoodieTable.open(tmp_path).scan(filter="ts = 3").count() == HoodieTable.open(tmp_path).scan().count() == 20


@pytest.mark.parametrize("type_", ["MERGE_ON_READ", pytest.param("COPY_ON_WRITE", marks=pytest.mark.thorough)])
def test_tables_without_meta_fields(spark: Any, frame: Any, tmp_path: Path, type_: str) -> None:
    options = {**OPTIONS, "hoodie.datasource.write.table.type": type_}
    kind = Kind(9, type_ == "MERGE_ON_READ", virtual=True)
    kind.create(tmp_path / "want")
    for at, (operation, data) in enumerate(steps(5)[:4]):
        getattr(HoodieTable.open(tmp_path / "want"), operation)(data)
        if at % 2 or operation in ("delete", "insert"):
            write(frame(data), str(tmp_path / "ours"), operation, **options)
        else:
            more = {"hoodie.datasource.write.operation": operation, "hoodie.populate.meta.fields": "false"}
            frame(data).write.format("hoodie").mode("append").options(**options, **more).save(str(tmp_path / "ours"))
        assert seen(tmp_path / "ours") == seen(tmp_path / "want"), operation
    ours = HoodieTable.open(tmp_path / "ours")
    assert ours.schema.names == SCHEMA.names
    if kind.merge_on_read:
        ours.compact(engine=spark, options=QUICK)
        assert HoodieTable.open(tmp_path / "ours").scan(query_type="read_optimized").count() == len(
            seen(tmp_path / "want")
        )
    with pytest.raises(PySparkException, match="says 'true'"):
        frame(rows(range(1), 1)).write.format("hoodie").mode("append").options(
            **options, **{"hoodie.populate.meta.fields": "true"}
        ).save(str(tmp_path / "ours"))
    assert (orphans(tmp_path / "ours"), leftovers(tmp_path / "ours")) == ([], [])


@STREAMS
def test_a_stream_into_a_table_without_meta_fields(spark: Any, frame: Any, tmp_path: Path) -> None:
    Kind(9, True, virtual=True).create(tmp_path / "t")
    frame(rows(range(10), 1)).write.parquet(str(tmp_path / "in"))
    for at in range(2):
        frame(rows(range(at * 5, at * 5 + 10), at)).write.mode("append").parquet(str(tmp_path / "in"))
        stream = spark.readStream.schema(frame(rows(range(1), 1)).schema).parquet(str(tmp_path / "in"))
        writer = stream.writeStream.format("hoodie").options(**OPTIONS)
        query = (
            writer.option("checkpointLocation", str(tmp_path / "c"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "t"))
        )
        assert query.awaitTermination(300)
    assert len(seen(tmp_path / "t")) == 15


@pytest.mark.parametrize("type_", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_change_data_capture_by_options(spark: Any, frame: Any, tmp_path: Path, type_: str) -> None:
    options = {
        **OPTIONS,
        "hoodie.datasource.write.table.type": type_,
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": "DATA_BEFORE",
    }
    write(frame(rows(range(30), 1)), str(tmp_path), **options)
    config = HoodieTable.open(tmp_path).config
    assert (config.cdc_enabled, config.cdc_mode) == (True, "DATA_BEFORE")
    write(frame(rows(range(20, 25), 2, "new")), str(tmp_path), **options)
    write(frame(rows(range(5), 2)), str(tmp_path), "delete", **options)
    if type_ == "MERGE_ON_READ":
        assert list_change_files(tmp_path) == []
        HoodieTable.open(tmp_path).compact(engine=spark)
    found = [record for path in list_change_files(tmp_path) for record in read_records(path)]
    assert sorted((each["op"], each["record_key"], each["before"]["name"]) for each in found) == sorted(
        [("u", f"k{each:03}", f"n{each}") for each in range(20, 25)]
        + [("d", f"k{each:03}", f"n{each}") for each in range(5)]
    )
    assert (orphans(tmp_path), leftovers(tmp_path)) == ([], [])


def test_tasks_of_a_bulk_insert_write_files_of_their_own(frame: Any, tmp_path: Path) -> None:
    data = rows(range(40), 1)
    bad = data.set_column(0, "id", pa.array([*data.column("id").to_pylist()[:-1], None]))
    with pytest.raises(InvalidQueryError, match="null or empty"):
        write(frame(bad).repartition(3), str(tmp_path), "bulk_insert", **OPTIONS)
    with pytest.raises(TableNotFoundError):
        HoodieTable.open(tmp_path)
    result = write(frame(data).repartition(3), str(tmp_path), "bulk_insert", **OPTIONS)
    assert (result.rows_inserted, result.file_groups) == (40, 9)
    assert seen(tmp_path) == sorted(tuple(row.values()) for row in data.to_pylist())
    numbers = HoodieTable.open(tmp_path).scan(["_hoodie_commit_seqno", "_hoodie_file_name"]).to_arrow()
    assert len(set(numbers.column(0).to_pylist())) == 40
    assert len(set(numbers.column(1).to_pylist())) == 9


@pytest.mark.parametrize("limit", [1, 1 << 20])
def test_keys_that_the_table_lacks_are_shuffled_where_sketches_are_large(
    frame: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(write_engine, "_SKETCH_BYTES", limit)
    asked = []
    sketch = FrameJobs.sketch_keys
    monkeypatch.setattr(FrameJobs, "sketch_keys", lambda *args: asked.append(sketch(*args)) or asked[-1])
    write(frame(rows(range(40), 1)), str(tmp_path), **OPTIONS)
    result = write(frame(rows(range(30, 50), 2)).repartition(4), str(tmp_path), **OPTIONS)
    assert (result.rows_inserted, result.rows_updated) == (10, 10)
    assert [each is None for each in asked] == [limit == 1]


def test_modes(frame: Any, tmp_path: Path) -> None:
    where = str(tmp_path / "t")
    write(frame(rows(range(9), 1)), where, mode="errorifexists", options=OPTIONS)
    with pytest.raises(ConflictError, match="a Hudi table already"):
        write(frame(rows(range(3), 2)), where, mode="error")
    assert write(frame(rows(range(3), 2)), where, mode="ignore").instant is None
    assert len(seen(tmp_path / "t")) == 9
    write(frame(rows(range(3), 2)), where, mode="overwrite")
    assert len(seen(tmp_path / "t")) == 3


@pytest.mark.parametrize("type_", ["MERGE_ON_READ", pytest.param("COPY_ON_WRITE", marks=pytest.mark.thorough)])
def test_a_notebook_s_merger_decides_on_workers(spark: Any, frame: Any, tmp_path: Path, type_: str) -> None:
    options = {
        **OPTIONS,
        "hoodie.datasource.write.table.type": type_,
        "hoodie.write.record.merge.mode": "CUSTOM",
        "hoodie.write.record.merge.strategy.id": Longest.strategy_id,
    }
    batches = [rows(range(6), 1, "ab"), rows(range(6), 2, "a"), rows(range(3), 3, "abc"), rows(range(3, 6), 4, "x")]
    for data in [pa.concat_tables(batches[:2]), *batches[2:]]:
        write(frame(data), str(tmp_path / "direct"), merger=Longest, **options)
    register(spark, mergers=[Longest], name="hoodie_longest")
    for data in [pa.concat_tables(batches[:2]), *batches[2:]]:
        source = frame(data).write.format("hoodie_longest").mode("append").options(**options)
        source.save(str(tmp_path / "source"))
    for where in ("direct", "source"):
        found = HoodieTable.open(tmp_path / where).scan(["id", "name"], merger=Longest).to_arrow().sort_by("id")
        assert found["name"].to_pylist() == ["abc0", "abc1", "abc2", "ab3", "ab4", "ab5"]


def test_a_table_without_its_merger_is_not_written(frame: Any, tmp_path: Path) -> None:
    options = {
        **OPTIONS,
        "hoodie.write.record.merge.mode": "CUSTOM",
        "hoodie.write.record.merge.strategy.id": "5a0c5f0e-0000-4000-8000-0000000000ab",
    }
    with pytest.raises(MergeError, match="0000000000ab"):
        write(frame(rows(range(6), 1)), str(tmp_path), **options)
    with pytest.raises(TableNotFoundError):
        HoodieTable.open(tmp_path)


def test_errors_of_workers_keep_their_type(frame: Any, tmp_path: Path) -> None:
    write(frame(rows(range(9), 1)), str(tmp_path), **OPTIONS)
    before = list(HoodieTable.open(tmp_path).timeline)
    bad = rows(range(3), 2).set_column(0, "id", pa.array(["a", None, "c"]))
    with pytest.raises(InvalidQueryError, match="null or empty"):
        write(frame(bad), str(tmp_path))
    [base, *_] = tmp_path.rglob("*.parquet")
    base.write_bytes(b"PAR1 not at all PAR1")
    with pytest.raises(CorruptFileError) as caught:
        write(frame(rows(range(9), 2)), str(tmp_path))
    assert any("Traceback" in note for note in caught.value.__notes__)
    assert list(HoodieTable.open(tmp_path).timeline) == before


def nothing_is_left(base: Path) -> None:
    """Wait for tasks of a cancelled job, which may run a little longer and then remove their files."""
    deadline = time.monotonic() + 60
    while (orphans(base), leftovers(base)) != ([], []) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert (orphans(base), leftovers(base)) == ([], [])


def test_a_worker_that_breaks_is_an_error_that_says_so(spark: Any, frame: Any, tmp_path: Path) -> None:
    write(frame(rows(range(30), 1)), str(tmp_path / "t"), **OPTIONS)
    before = seen(tmp_path / "t")
    with pytest.raises(HoodieError, match="one over nothing"):
        write_by(troubled(spark, Breaks), tmp_path / "t", frame(rows(range(10, 40), 2)))
    assert seen(tmp_path / "t") == before
    nothing_is_left(tmp_path / "t")


def test_rows_that_change_while_they_are_written(spark: Any, frame: Any, tmp_path: Path) -> None:
    Kind(9, True).create(tmp_path)
    with pytest.raises(HoodieError, match="must not change"):
        write_by(troubled(spark, LosesRows), tmp_path, frame(rows(range(30), 1)))
    assert seen(tmp_path) == []


# By data source -----------------------------------------------------------------------------------------------------


def staged(where: Path) -> list[Path]:
    return list(where.rglob("hoodie_py-rows-*"))


@pytest.mark.parametrize("version", [6, 8, 9])
def test_the_data_source_appends_and_overwrites(spark: Any, frame: Any, tmp_path: Path, version: int) -> None:
    where = str(tmp_path / "t")
    options = {**OPTIONS, "hoodie.write.table.version": str(version)}
    frame(rows(range(30), 1)).repartition(3).write.format("hoodie").mode("append").options(**options).save(where)
    frame(rows(range(20, 40), 2, "b")).write.format("hoodie").mode("append").save(where)
    found = spark.read.format("hoodie").load(where)
    assert (found.count(), found.where("name like 'b%'").count()) == (40, 20)
    delete = frame(rows(range(5), 3)).write.format("hoodie").mode("append")
    delete.option("hoodie.datasource.write.operation", "delete").save(where)
    assert len(seen(tmp_path / "t")) == 35
    frame(rows(range(3), 1)).write.format("hoodie").mode("overwrite").save(where)
    assert len(seen(tmp_path / "t")) == 3
    assert HoodieTable.open(where).config.version == version
    assert (staged(tmp_path), orphans(tmp_path / "t"), leftovers(tmp_path / "t")) == ([], [], [])


def test_errors_of_a_commit_reach_the_user(frame: Any, tmp_path: Path) -> None:
    where = str(tmp_path / "t")
    secret = {"storage_options": '{"auto_mkdir": true}'}
    keyed = frame(rows(range(3), 1)).write.format("hoodie").option("hoodie.datasource.write.recordkey.field", "nothing")
    with pytest.raises(PySparkException, match=r"InvalidQueryError.*nothing"):
        keyed.mode("append").save(where)
    frame(rows(range(3), 1)).write.format("hoodie").mode("append").options(**OPTIONS, **secret).save(where)
    before = list(HoodieTable.open(where).timeline)
    bad = rows(range(3), 2).set_column(0, "id", pa.array(["a", None, "c"]))
    with pytest.raises(PySparkException, match=r"InvalidQueryError: Rows whose record key is null"):
        frame(bad).write.format("hoodie").mode("append").options(**secret).save(where)
    broken = frame(rows(range(3), 2)).selectExpr("id", "part", "raise_error('no more') AS ts", "name")
    with pytest.raises(PySparkException, match="no more"):
        broken.selectExpr("id", "part", "cast(ts as long) ts", "name").write.format("hoodie").mode("append").save(where)
    assert list(HoodieTable.open(where).timeline) == before
    assert staged(tmp_path) == []


@STREAMS
def test_a_stream_that_begins_again_writes_no_batch_twice(spark: Any, frame: Any, tmp_path: Path) -> None:
    where, source, checkpoint = (tmp_path / name for name in ("t", "in", "checkpoint"))

    def run() -> None:
        stream = spark.readStream.schema(frame(rows(range(1), 1)).schema).parquet(str(source))
        writer = stream.writeStream.format("hoodie").options(**OPTIONS).option("checkpointLocation", str(checkpoint))
        query = writer.trigger(availableNow=True).start(str(where))
        assert query.awaitTermination(300)

    for at in range(2):
        frame(rows(range(at * 5, at * 5 + 10), at)).write.mode("append").parquet(str(source))
        run()
    commits = len(list(HoodieTable.open(where).timeline))
    last = max((each for each in (checkpoint / "commits").iterdir() if each.name.isdigit()), key=lambda p: int(p.name))
    last.unlink()  # as if Spark had been killed between our commit and its own
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    run()
    assert len(list(HoodieTable.open(where).timeline)) == commits == 2
    assert len(seen(where)) == 15
    assert staged(tmp_path) == []


def test_labels_go_to_partitions_of_their_own(spark: Any) -> None:
    for count in (1, 3, 64):
        numbers = spark.createDataFrame(pa.table({"label": pa.array(choose_labels(count), pa.int32())}))
        placed = numbers.repartition(count, "label").selectExpr("spark_partition_id() AS at").collect()
        assert sorted(row["at"] for row in placed) == list(range(count))


def test_names_of_every_script_and_names_that_are_refused(spark: Any, frame: Any, tmp_path: Path) -> None:
    rows = pa.table({"ключ": ["a", "b"], "größe": [1, 2], "s": [{"имя": "x"}, {"имя": "y"}]})
    options = {
        "hoodie.datasource.write.recordkey.field": "ключ",
        "hoodie.datasource.write.precombine.field": "größe",
    }
    write(frame(rows), str(tmp_path / "t"), "upsert", **options)
    found = spark.read.format("hoodie").load(str(tmp_path / "t")).where("`größe` > 1 and `s`.`имя` = 'y'")
    assert [each["ключ"] for each in found.select("ключ", "s").collect()] == ["b"]
    for name in ("_hoodie_commit_time", "a-b"):
        with pytest.raises(InvalidQueryError):
            write(frame(rows.append_column(name, pa.array([1, 2]))), str(tmp_path / "t"), "upsert", **options)
        with pytest.raises(InvalidQueryError):
            write(frame(rows.append_column(name, pa.array([1, 2]))), str(tmp_path / "new"), "upsert", **options)
        assert not (tmp_path / "new" / ".hoodie").exists()
    again = spark.read.format("hoodie").load(str(tmp_path / "t"))
    write(again, str(tmp_path / "copy"), "insert", **options)
    assert HoodieTable.open(tmp_path / "copy").scan(["ключ"]).count() == 2
