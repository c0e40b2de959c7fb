"""The names of the data source, and what SQL does with a table of the catalog."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hoodie_py.spark import register

HUDI = ("hudi", "org.apache.hudi", "HUDI")


@pytest.fixture
def table(corpus_copy: Callable[[str], Path]) -> Path:
    return corpus_copy("event_time_updates_mor_v9")


@pytest.mark.classic
def test_hudis_own_names_are_registered(spark: Any, table: Path) -> None:
    register(spark)
    expected = spark.read.format("hoodie").load(str(table)).count()
    assert [spark.read.format(name).load(str(table)).count() for name in HUDI] == [expected] * 3


@pytest.mark.parametrize("there", [True, False])
def test_the_names_stay_javas_where_its_source_is(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[str] = []
    utils = SimpleNamespace(classIsLoadable={"org.apache.hudi.DefaultSource": there}.get)
    packages = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(spark=SimpleNamespace())))
    packages.org.apache.spark.util = SimpleNamespace(Utils=utils)
    conf = SimpleNamespace(getAll={}.items)
    session = SimpleNamespace(
        _jvm=packages,
        conf=SimpleNamespace(getAll={}, get=lambda *_: None),
        sparkContext=SimpleNamespace(getConf=lambda: conf),
        dataSource=SimpleNamespace(register=lambda source: registered.append(source.name())),
    )
    for name in ("warn_of_worker_python", "watch_catalog", "call_on_change"):
        monkeypatch.setattr(f"hoodie_py.spark.session.{name}", lambda *_: None)
    register(session)
    assert registered == (["hoodie"] if there else ["hudi", "org.apache.hudi", "hoodie"])


@pytest.mark.parametrize("name", ["hudi", "org.apache.hudi"])
def test_sql_knows_them(spark: Any, table: Path, name: str) -> None:
    register(spark, name=name)
    made = f"named_{name.replace('.', '_')}"
    spark.sql(f"CREATE TABLE {made} USING {name} LOCATION '{table}'")
    try:
        assert spark.sql(f"SELECT count(*) AS n FROM {made}").collect()[0].n == 6
        with pytest.raises(Exception, match="UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"):
            spark.sql(f"SELECT * FROM {name.rsplit('.', maxsplit=1)[-1]}.`{table}`").collect()
    finally:
        spark.sql(f"DROP TABLE {made}")


def test_spark_says_that_a_name_is_not_registered(spark: Any, table: Path) -> None:
    if not hasattr(spark, "newSession"):
        pytest.skip("NOT TESTED: a Connect client makes no second session")
    with pytest.raises(Exception, match=r"DATA_SOURCE_NOT_FOUND\] Failed to find the data source: org.apache.hudi"):
        spark.newSession().read.format("org.apache.hudi").load(str(table)).collect()


@pytest.mark.parametrize("statement", ["INSERT INTO", "INSERT OVERWRITE"])
def test_inserts_into_a_table_of_the_catalog_change_nothing_and_say_what_to_do(
    spark: Any, table: Path, statement: str
) -> None:
    spark.sql(f"CREATE TABLE target USING hoodie LOCATION '{table}'")
    before = sorted(path for path in table.rglob("*") if path.is_file())
    try:
        with pytest.raises(Exception, match=r"hoodie_py\.spark\.write\(df, path\)") as caught:
            spark.sql(f"{statement} target SELECT * FROM target").collect()
    finally:
        spark.sql("DROP TABLE target")
    text = str(caught.value)
    assert 0 <= text.find("No path was given.") < text.find("Traceback (most recent call last)")
    assert sorted(path for path in table.rglob("*") if path.is_file()) == before
