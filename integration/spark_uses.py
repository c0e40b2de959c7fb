"""Use a DataFrame, view or catalog table several times, with different filters, in one query and in several."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hoodie_py import HoodieTable
from hoodie_py.spark import read


def check_uses(spark: Any, table: Path) -> None:
    """Compare the keys that several uses return with those of the table.

    Views and tables of the session are dropped, because other tests share it.

    Args:
        spark: a session, classic or Connect.
        table: a table with a column id and the keys k1 and k8, among others.
    """
    keys = sorted(HoodieTable.open(str(table)).scan(columns=["id"]).to_arrow()["id"].to_pylist())
    assert {"k1", "k8"} < set(keys)
    try:
        for make in (_load, _load_with_columns, _load_by_view, _load_from_catalog, _read):
            _check(make(spark, table), keys, make)
        some = [key for key in keys if key != "k8"]
        for frame in (read(spark, str(table), filter="id <> 'k8'"), read(spark, str(table), ["id"], "id <> 'k8'")):
            _check(frame, some, read)
    finally:
        for view in ("used_view", "used_again"):
            spark.catalog.dropTempView(view)
        spark.sql("drop table if exists used_table")


def _check(frame: Any, keys: list[str], make: Callable[..., Any]) -> None:
    def compute(rows: Any) -> list[str]:
        return sorted(row.id for row in rows.select("id").collect())

    one, others = frame.where("id = 'k1'"), frame.where("id <> 'k1'")
    assert compute(one.select("id").union(frame.where("id = 'k8'").select("id"))) == [
        k for k in keys if k in ("k1", "k8")
    ]
    assert compute(frame) == keys, make
    assert compute(one.select("id").union(frame.select("id"))) == sorted(["k1", *keys]), make
    assert compute(frame.join(others.select("id"), "id")) == [key for key in keys if key != "k1"], make
    assert compute(frame.join(others.select("id"), "id", "left_anti")) == ["k1"], make
    assert compute(others) == [key for key in keys if key != "k1"], make
    frame.createOrReplaceTempView("used_again")
    text = "select id from used_again where id in (select id from used_again where id > 'k1') or id = 'k1'"
    assert compute(get_session(frame).sql(text)) == [key for key in keys if key >= "k1"], make
    assert compute(frame.limit(1)) != [], make
    assert compute(frame) == keys, make
    with TemporaryDirectory() as folder:
        frame.write.mode("overwrite").parquet(folder)  # a copy has all rows
        assert compute(get_session(frame).read.parquet(folder)) == keys, make


def get_session(frame: Any) -> Any:
    """Return the session of a DataFrame."""
    return frame.sparkSession


def _load(spark: Any, table: Path) -> Any:
    return spark.read.format("hoodie").load(str(table))


def _load_with_columns(spark: Any, table: Path) -> Any:
    return spark.read.format("hoodie").schema("id string").load(str(table))


def _load_by_view(spark: Any, table: Path) -> Any:
    spark.sql(f"create or replace temporary view used_view using hoodie options (path '{table}')")
    return spark.table("used_view")


def _load_from_catalog(spark: Any, table: Path) -> Any:
    spark.sql(f"create table used_table using hoodie location '{table}'")
    return spark.table("used_table")


def _read(spark: Any, table: Path) -> Any:
    return read(spark, str(table))
