"""A LazyFrame gives the rows of its scan, and reads no more than its query needs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.table.dataframes.polars_frame import make_lazy_frame
from hoodie_py.table.scan.scan import Scan
from tests.table.dataframes.noted_rows import NotedRows

pl = pytest.importorskip("polars")


@pytest.fixture
def table(tmp_path: Path) -> HoodieTable:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("city", pa.string()),
            ("price", pa.float64()),
            ("ts", pa.int64()),
            ("tags", pa.list_(pa.string())),
        ]
    )
    table = HoodieTable.create(tmp_path / "t", schema, record_key="id", ordering="ts", partition_by="city")
    rows = [{"id": i, "city": "la" if i % 2 else "sf", "price": float(i), "ts": 1, "tags": ["x"]} for i in range(10)]
    table.upsert(rows)
    table.upsert([{**rows[4], "price": 400.0, "ts": 2}])
    return table


@pytest.fixture
def asked() -> list[Scan]:
    """Scans that polars' queries come to."""
    return []


def test_rows_and_types_are_those_of_the_scan(table: HoodieTable) -> None:
    lazy = table.scan_polars()
    eager = table.to_polars()
    assert lazy.collect_schema() == eager.schema
    assert lazy.collect().sort("id").equals(eager.sort("id"))
    assert lazy.collect(engine="streaming").sort("id").equals(eager.sort("id"))


def test_columns_conditions_and_slices_are_pushed_down(table: HoodieTable, asked: list[Scan]) -> None:
    lazy = make_lazy_frame(NotedRows(table.scan(), asked))
    cheap = lazy.filter((pl.col("city") == "sf") & (pl.col("price") > 100)).select("id").collect()
    assert cheap["id"].to_list() == [4]
    assert (set(asked[0].columns), str(asked[0].predicate)) == (
        {"id", "city", "price"},
        "(city = 'sf') and (price > 100.0D)",
    )
    assert len(asked[0].tasks()) == 1
    assert lazy.head(3).collect().height == 3
    assert asked[1].limit == 3
    assert lazy.select(pl.len()).collect().item() == 10
    assert len(asked[2].columns) == 1


def test_polars_applies_what_is_left_of_a_condition(table: HoodieTable, asked: list[Scan]) -> None:
    lazy = make_lazy_frame(NotedRows(table.scan(), asked))
    odd = lazy.filter((pl.col("id") >= 3) & (pl.col("id") % 2 == 1) & (pl.col("tags").list.len() == 1))
    assert sorted(odd.collect()["id"].to_list()) == [3, 5, 7, 9]
    assert str(asked[0].predicate) == "id >= 3"


def test_a_limit_comes_before_a_filter(table: HoodieTable, asked: list[Scan]) -> None:
    found = make_lazy_frame(NotedRows(table.scan(limit=2), asked)).filter(pl.col("id") >= 0).collect()
    assert found.height == 2
    assert (asked[0].limit, asked[0].predicate) == (2, None)
    assert table.scan_polars().head(2).filter(pl.col("id") >= 0).collect().height == 2
    assert table.scan_polars().filter(pl.col("id") >= 8).head(1).collect().height == 1


def test_explain_names_the_table_and_the_condition(table: HoodieTable) -> None:
    plan = table.scan_polars(filter="ts > 0").filter(pl.col("price") > 1).explain()
    assert "HUDI" in plan
    assert "price" in plan.partition("SELECTION")[2]


def test_ranges_of_commits_are_lazy_too(table: HoodieTable) -> None:
    first = next(iter(table.timeline)).completion_time
    changed = table.incremental(start=first).to_polars_lazy().filter(pl.col("price") > 1).collect()
    assert changed["id"].to_list() == [4]
