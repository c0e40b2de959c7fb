"""Ray, Dask and Daft give the rows of the scan, from its tasks."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, UnsupportedFeatureError
from hoodie_py.table.dataframes.task_reads import narrow_task, read_tables

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("price", pa.float64()), ("ts", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts", partition_by="city")
    rows = [{"id": i, "city": "la" if i % 2 else "sf", "price": float(i), "ts": 1} for i in range(10)]
    table.upsert(rows)
    table.upsert([{**rows[4], "price": float("nan"), "ts": 2}, {**rows[6], "price": None, "ts": 2}])
    return table


def test_a_task_gives_at_least_one_table(table: HoodieTable) -> None:
    task = pickle.loads(pickle.dumps(table.scan(filter="price > 100 and price < 200").tasks()[0]))
    (empty,) = read_tables(narrow_task(task, ["id"]))
    assert (empty.schema.names, empty.num_rows) == (["id"], 0)


def test_dask_gives_the_rows(table: HoodieTable) -> None:
    pytest.importorskip("dask.dataframe")
    frame = table.scan().to_dask()
    assert frame.npartitions == 2
    assert sorted(frame[frame.city == "la"]["id"].compute(scheduler="threads").tolist()) == [1, 3, 5, 7, 9]
    assert frame["price"].isna().sum().compute(scheduler="threads") == 1
    assert len(table.scan(limit=3).to_dask().compute(scheduler="threads")) == 3
    assert len(table.scan(filter="id < 0").to_dask().compute(scheduler="threads")) == 0


def test_daft_gives_the_rows(table: HoodieTable, monkeypatch: pytest.MonkeyPatch) -> None:
    daft = pytest.importorskip("daft")
    from hoodie_py.table.dataframes import daft_frame

    bound: list[Any] = []
    bind = daft_frame._bind
    monkeypatch.setattr(daft_frame, "_bind", lambda *given: bound.append(bind(*given)) or bound[-1])
    col = daft.col
    for condition, ids in [
        (col("id") > 6, [7, 8, 9]),
        ((col("city") == "la") & (col("id") < 5), [1, 3]),
        (col("price") > 7.5, [4, 8, 9]),
        (col("id") % 2 == 1, [1, 3, 5, 7, 9]),
        (col("price").is_null(), [6]),
        (col("city").is_in(["la"]), [1, 3, 5, 7, 9]),
        (~(col("id") < 8), [8, 9]),
    ]:
        assert sorted(table.scan().to_daft().where(condition).select("id").to_pydict()["id"]) == ids, str(condition)
    assert str(bound[0]) == "id > 6"
    assert table.scan().to_daft().limit(2).count_rows() == 2
    assert table.scan(limit=3).to_daft().where(col("id") >= 0).count_rows() == 3
    assert table.scan(filter="id < 0").to_daft().count_rows() == 0


@pytest.mark.slow
def test_ray_gives_the_rows(table: HoodieTable) -> None:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, object_store_memory=100 << 20, include_dashboard=False, logging_level="ERROR")
    try:
        rows = table.scan().to_ray().take_all()
        assert sorted(row["id"] for row in rows) == list(range(10))
        assert table.scan(limit=3).to_ray().count() == 3
        assert table.scan(filter="id < 0").to_ray().count() == 0
    finally:
        ray.shutdown()


@pytest.mark.parametrize("package", ["dask", "daft", "ray"])
def test_a_missing_package_is_named(table: HoodieTable, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(UnsupportedFeatureError, match=f"{package} is not installed") as caught:
        getattr(table.scan(), f"to_{package}")()
    assert caught.value.hint == f"pip install 'hoodie_py[{package}]'"
