"""``spark.read.format("hoodie")``: columns, filters, catalogs, and one snapshot per load."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.spark import register
from integration.corpus_compare import differences
from integration.spark_uses import check_uses

pytest.importorskip("pyspark.sql.datasource", reason="NOT TESTED: pyspark is not installed")
TABLE = "event_time_updates_mor_v9"
TYPES = "types_mor_v9"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
FILTERS = (
    "id >= 'k3'",
    "name like 'r%' and name is not null",
    "ts in (20, 31) and price > 1.5",
    "ts = 50 or qty < 2",
    "not (name = 'r2') and id <=> 'k1'",
    "_hoodie_commit_time > '2026' and part = 'p0'",
    "part is null",
)


@contextmanager
def setting(spark: Any, name: str, value: str) -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


def in_process(uri: Path, **scan: Any) -> pa.Table:
    return HoodieTable.open(str(uri)).scan(**scan).to_arrow()


@pytest.fixture(scope="module")
def table(corpus: Callable[[str], Path]) -> Path:
    return corpus(TABLE)


@pytest.mark.classic  # spark_connect_session.py does the same over Connect
def test_the_format_is_found_without_registering(spark: Any, table: Path) -> None:
    frame = spark.newSession().read.format("hoodie").load(str(table))
    assert differences(frame.toArrow(), in_process(table)) == []


def test_people_may_call_it_hudi(spark: Any, table: Path) -> None:
    register(spark, name="hudi")
    assert differences(spark.read.format("hudi").load(f"file:{table}").toArrow(), in_process(table)) == []


def test_every_type_has_its_spark_counterpart(spark: Any, corpus: Callable[[str], Path]) -> None:
    where = corpus(TYPES)
    assert differences(spark.read.format("hoodie").load(str(where)).toArrow(), in_process(where)) == []


@pytest.mark.parametrize("columns", ["name,id", '["id"]', "NAME"])
def test_the_option_columns_projects(spark: Any, table: Path, columns: str) -> None:
    names = {"name,id": ["name", "id"], '["id"]': ["id"], "NAME": ["name"]}[columns]
    frame = spark.read.format("hoodie").option("columns", columns).load(str(table))
    assert frame.columns == names
    assert differences(frame.toArrow(), in_process(table, columns=names)) == []


def test_a_schema_of_the_users_own_projects_and_widens(spark: Any, table: Path) -> None:
    frame = spark.read.format("hoodie").schema("qty double, ID string").load(str(table))
    want = in_process(table, columns=["qty", "id"])
    want = want.set_column(0, "qty", want["qty"].cast(pa.float64())).rename_columns(["qty", "ID"])
    assert differences(frame.toArrow(), want) == []


@pytest.mark.parametrize("condition", FILTERS)
def test_filters_give_the_same_rows_pushed_or_not(spark: Any, table: Path, condition: str) -> None:
    frame = spark.read.format("hoodie").load(str(table)).where(condition)
    with setting(spark, PUSHDOWN, "false"):
        unpushed = frame.toArrow()
    with setting(spark, PUSHDOWN, "true"):
        pushed = spark.read.format("hoodie").load(str(table)).where(condition).toArrow()
    assert differences(unpushed, in_process(table, filter=condition)) == []
    assert differences(pushed, unpushed) == []


@pytest.mark.parametrize("pushdown", ["true", pytest.param("false", marks=pytest.mark.thorough)])
def test_uses_of_one_frame_do_not_see_each_others_filters(spark: Any, table: Path, pushdown: str) -> None:
    with setting(spark, PUSHDOWN, pushdown):
        check_uses(spark, table)


def test_a_view_and_a_self_join_read_one_snapshot(spark: Any, table: Path) -> None:
    spark.sql(f"create or replace temporary view trips using hoodie options (path '{table}')")
    rows = in_process(table).num_rows
    assert spark.sql("select count(*) from trips").head()[0] == rows
    assert spark.sql("select count(*) from trips a join trips b using (id)").head()[0] == rows


def test_a_catalog_table_remembers_path_and_read_options(spark: Any, table: Path) -> None:
    instant = list(HoodieTable.open(str(table)).timeline)[1].request_time
    spark.sql(f"create table plain_table using hoodie location '{table}'")
    spark.sql(f"create table old_table using hoodie options ('as.of.instant' '{instant}') location '{table}'")
    try:
        assert differences(spark.table("plain_table").toArrow(), in_process(table)) == []
        assert differences(spark.table("old_table").toArrow(), in_process(table, as_of=instant)) == []
    finally:
        spark.sql("drop table plain_table")
        spark.sql("drop table old_table")
    assert (table / ".hoodie").is_dir()


def test_read_optimized_and_time_travel_by_javas_option_names(spark: Any, table: Path) -> None:
    instant = list(HoodieTable.open(str(table)).timeline)[1].request_time
    reader = spark.read.format("hoodie")
    old = reader.option("as.of.instant", instant).load(str(table))
    assert differences(old.toArrow(), in_process(table, as_of=instant)) == []
    base = spark.read.format("hoodie").option("hoodie.datasource.query.type", "read_optimized").load(str(table))
    assert differences(base.toArrow(), in_process(table, query_type="read_optimized")) == []


@pytest.mark.classic
def test_a_load_is_pinned_while_the_table_changes(spark: Any, corpus_copy: Callable[[str], Path]) -> None:
    where = corpus_copy(TABLE)
    timeline = where / ".hoodie" / "timeline"
    last = max(timeline.glob("*_*.deltacommit"))
    hidden = last.rename(last.with_suffix(".hidden"))
    before, old = in_process(where), spark.read.format("hoodie").load(str(where))
    hidden.rename(last)
    after, new = in_process(where), spark.read.format("hoodie").load(str(where))
    assert differences(before, after) != []
    for _ in range(2):
        assert differences(old.toArrow(), before) == []
        assert differences(new.toArrow(), after) == []


def test_a_table_without_rows_has_columns(spark: Any, corpus: Callable[[str], Path]) -> None:
    frame = spark.read.format("hoodie").load(str(corpus("empty_mor_v9")))
    assert frame.count() == 0
    assert frame.columns == in_process(corpus("empty_mor_v9")).column_names


def test_limit_count_and_small_batches(spark: Any, table: Path) -> None:
    frame = spark.read.format("hoodie").option("batch_rows", "1").load(str(table))
    assert len(frame.limit(2).collect()) == 2
    assert frame.count() == in_process(table).num_rows


def test_tasks_are_small_and_show_no_credentials(corpus: Callable[[str], Path], spark: Any) -> None:
    from hoodie_py.spark.data_source import HoodieSource

    options = {"path": str(corpus("many_row_groups_mor_v9")), "storage_options": '{"auto_mkdir": false}'}
    source = HoodieSource(options)
    reader = source.reader(source.schema())
    assert len(pickle.dumps(reader)) < 64 << 10
    for partition in reader.partitions():
        assert len(pickle.dumps(partition)) < 64 << 10
        assert "auto_mkdir" not in repr(partition) + repr(reader) + repr(source)
        assert sum(batch.num_rows for batch in pickle.loads(pickle.dumps(reader)).read(partition))


@pytest.mark.classic
def test_a_plan_shows_no_storage_options(spark: Any, table: Path) -> None:
    secret = "hunter2-hunter2"
    frame = spark.read.format("hoodie").option("storage_options", f'{{"secret": "{secret}"}}').load(str(table))
    assert secret not in frame._jdf.queryExecution().toString()
    assert secret not in frame.schema.json()
