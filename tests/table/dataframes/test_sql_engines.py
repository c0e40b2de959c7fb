"""SQL engines give the rows of the scan, and push columns and conditions down to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, UnsupportedFeatureError
from hoodie_py.table.dataframes import arrow_dataset

NAN = float("nan")
SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("price", pa.float64()), ("ts", pa.int64())])
QUERIES = [
    ("id > 6", [7, 8, 9]),
    ("city = 'la' and id between 3 and 7", [3, 5, 7]),
    ("city in ('sf', 'x')", [0, 2, 4, 6, 8]),
    ("id in (1, 2, 3, 4, 5, 6, 99)", [1, 2, 3, 4, 5, 6]),
    ("not (id = 1 or city = 'sf')", [3, 5, 7, 9]),
    ("price > 7.5", [4, 8, 9]),
    ("price < 1.5", [0, 1]),
    ("price is null", [6]),
    ("id + 1 = 3", [2]),
    ("city like 'l%' and id < 4", [1, 3]),
]


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts", partition_by="city")
    rows = [{"id": i, "city": "la" if i % 2 else "sf", "price": float(i), "ts": 1} for i in range(10)]
    table.upsert(rows)
    table.upsert([{**rows[4], "price": NAN, "ts": 2}, {**rows[6], "price": None, "ts": 2}])
    return table


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Scans that queries come to."""
    scans: list[Any] = []
    make = arrow_dataset._make_reader

    def note(scan: Any, *gate: Any) -> Any:
        scans.append(scan)
        return make(scan, *gate)

    monkeypatch.setattr(arrow_dataset, "_make_reader", note)
    return scans


def test_duckdb_gives_the_rows_that_it_asks_for(table: HoodieTable, asked: list[Any]) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        table.scan().to_duckdb("trips", connection)
        for condition, ids in QUERIES:
            found = connection.execute(f"select id from trips where {condition} order by id").fetchall()
            assert [row[0] for row in found] == ids, condition
        assert set(asked[0].columns) == {"id"}
        assert str(asked[0].predicate) == "id > 6"
        assert len(asked[1].tasks()) == 1
        joined = connection.execute("select count(*) from trips a join trips b using (id)").fetchall()
        assert joined == [(10,)]
        limited = table.scan(limit=4).to_duckdb("few", connection)
        assert limited.execute("select count(*) from few where id >= 0").fetchall() == [(4,)]
        assert connection.execute("select id from trips limit 2").fetchall()


def test_datafusion_gives_the_rows_that_it_asks_for(table: HoodieTable, asked: list[Any]) -> None:
    pytest.importorskip("datafusion")
    context = table.scan().to_datafusion("trips")
    for condition, ids in QUERIES:
        found = context.sql(f"select id from trips where {condition} order by id").to_pydict()
        assert found["id"] == ids, condition
    read = [each for each in asked if each.predicate is not None and "city = 'la'" in str(each.predicate)]
    assert len(read) in (1, 2)  # the plan has a scanner of its own
    assert set(read[0].columns) == {"id"}
    table.scan(limit=4).to_datafusion("few", context)
    assert context.sql("select count(*) as n from few where id >= 0").to_pydict() == {"n": [4]}
    table.scan(filter="id < 0").to_datafusion("none", context)
    assert context.sql("select count(*) as n from none").to_pydict() == {"n": [0]}


def test_ibis_gives_the_rows_that_it_asks_for(table: HoodieTable) -> None:
    pytest.importorskip("ibis")
    trips = table.scan().to_ibis("trips")
    assert sorted(trips.filter(trips.id > 6).id.to_pyarrow().to_pylist()) == [7, 8, 9]


@pytest.mark.parametrize(("method", "package"), [("to_datafusion", "datafusion"), ("to_ibis", "ibis")])
def test_a_missing_package_is_named(
    table: HoodieTable, method: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(UnsupportedFeatureError, match=f"{package} is not installed") as caught:
        getattr(table.scan(), method)("trips")
    assert caught.value.hint == f"pip install 'hoodie_py[{package}]'"
