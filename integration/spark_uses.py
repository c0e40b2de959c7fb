"""One DataFrame, view or catalog table in several uses, each with a filter of its own, in one query and in several."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hoodie_py import HoodieTable
from hoodie_py.spark import read


def check_uses(spark: Any, table: Path) -> None:
    """Compare the keys that several uses give with those of the table.

    Args:
        spark: a session, classic or Connect.
        table: a table with a column id, of whose keys k1 and k8 are two.
    """
    keys = sorted(HoodieTable.open(str(table)).scan(columns=["id"]).to_arrow()["id"].to_pylist())
    assert {"k1", "k8"} < set(keys)
    for make in (_loaded, _loaded_with_columns, _viewed, _in_the_catalog, _read):
        _check(make(spark, table), keys, make)
    some = [key for key in keys if key != "k8"]
    for frame in (read(spark, str(table), filter="id <> 'k8'"), read(spark, str(table), ["id"], "id <> 'k8'")):
        _check(frame, some, read)
    spark.sql("drop table used_table")


def _check(frame: Any, keys: list[str], make: Callable[..., Any]) -> None:
    def found(rows: Any) -> list[str]:
        return sorted(row.id for row in rows.select("id").collect())

    one, others = frame.where("id = 'k1'"), frame.where("id <> 'k1'")
    assert found(one.select("id").union(frame.where("id = 'k8'").select("id"))) == [
        k for k in keys if k in ("k1", "k8")
    ]
    assert found(frame) == keys, make
    assert found(one.select("id").union(frame.select("id"))) == sorted(["k1", *keys]), make
    assert found(frame.join(others.select("id"), "id")) == [key for key in keys if key != "k1"], make
    assert found(frame.join(others.select("id"), "id", "left_anti")) == ["k1"], make
    assert found(others) == [key for key in keys if key != "k1"], make
    frame.createOrReplaceTempView("used_again")
    text = "select id from used_again where id in (select id from used_again where id > 'k1') or id = 'k1'"
    assert found(spark_of(frame).sql(text)) == [key for key in keys if key >= "k1"], make
    assert found(frame.limit(1)) != [], make
    assert found(frame) == keys, make
    with TemporaryDirectory() as folder:
        frame.write.mode("overwrite").parquet(folder)  # a copy has all rows
        assert found(spark_of(frame).read.parquet(folder)) == keys, make


def spark_of(frame: Any) -> Any:
    """Return the session of a DataFrame."""
    return frame.sparkSession


def _loaded(spark: Any, table: Path) -> Any:
    return spark.read.format("hoodie").load(str(table))


def _loaded_with_columns(spark: Any, table: Path) -> Any:
    return spark.read.format("hoodie").schema("id string").load(str(table))


def _viewed(spark: Any, table: Path) -> Any:
    spark.sql(f"create or replace temporary view used_view using hoodie options (path '{table}')")
    return spark.table("used_view")


def _in_the_catalog(spark: Any, table: Path) -> Any:
    spark.sql(f"create table used_table using hoodie location '{table}'")
    return spark.table("used_table")


def _read(spark: Any, table: Path) -> Any:
    return read(spark, str(table))
