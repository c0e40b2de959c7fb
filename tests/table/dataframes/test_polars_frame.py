"""A LazyFrame gives the rows of its scan, and conditions that become nodes keep the rows that polars keeps."""

from __future__ import annotations

import operator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.table.dataframes.polars_frame import make_lazy_frame, push_down
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.predicate import Predicate
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


plugins = pytest.importorskip("polars.io.plugins")

NAN = float("nan")
DAY, TIME = date(2020, 1, 1), datetime(2020, 1, 1, 12, tzinfo=UTC)
ROWS = pa.table(
    {
        "id": list(range(8)),
        "i8": pa.array([0, 1, -128, 127, None, 5, 5, None], pa.int8()),
        "i": pa.array([0, 1, -5, 2**31 - 1, None, 5, 5, None], pa.int32()),
        "l": pa.array([0, 2**53 + 1, -5, 2**53, None, 5, 1, None], pa.int64()),
        "f": pa.array([0.0, -0.0, NAN, 0.1, None, float("inf"), 1.5, 2], pa.float32()),
        "d": pa.array([0.0, -0.0, NAN, 0.1, None, float("-inf"), 1.5, 2], pa.float64()),
        "s": ["", "a", "ab", "a%b", None, "é", "a_b\n", "B"],
        "bin": pa.array([b"", b"a", b"\xff", b"ab", None, b"\x00", b"b", b"B"], pa.binary()),
        "bo": [True, False, None, True, False, None, True, False],
        "dt": pa.array([DAY, date(1969, 12, 31), None, DAY, DAY, None, date(2024, 2, 29), DAY], pa.date32()),
        "ts": pa.array([TIME, None, datetime(1969, 1, 1, tzinfo=UTC)] + [TIME] * 5, pa.timestamp("us", "UTC")),
        "tn": pa.array([datetime(2020, 1, 1), None] + [datetime(2021, 5, 1, 0, 0, 0, 1)] * 6, pa.timestamp("us")),
        "dc": pa.array([Decimal("1.50"), None, Decimal("-0.01")] + [Decimal("99.99")] * 5, pa.decimal128(10, 2)),
        "st": [{"a": 1, "in": {"b": "x"}}, None, {"a": None, "in": None}] + [{"a": 5, "in": {"b": None}}] * 5,
    }
).cast(
    pa.schema(
        [
            ("id", pa.int64()), ("i8", pa.int8()), ("i", pa.int32()), ("l", pa.int64()), ("f", pa.float32()),
            ("d", pa.float64()), ("s", pa.string()), ("bin", pa.binary()), ("bo", pa.bool_()), ("dt", pa.date32()),
            ("ts", pa.timestamp("us", "UTC")), ("tn", pa.timestamp("us")), ("dc", pa.decimal128(10, 2)),
            ("st", pa.struct([("a", pa.int64()), ("in", pa.struct([("b", pa.string())]))])),
        ]
    )
)  # fmt: skip
BATCH = ROWS.to_batches()[0]
FRAME = pl.from_arrow(ROWS)
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
LITERALS: dict[str, list[Any]] = {
    "i8": [0, 127, 300, 1.5],
    "i": [0, 5, 2**40, 0.5],
    "l": [0, 2**53 + 1, 5, 1e15, 0.5],
    "f": [0.0, -0.0, 0.1, 1, NAN],
    "d": [0.0, 0.1, 1, float("inf"), NAN],
    "s": ["", "a", "é", "a%b"],
    "bin": [b"", b"a", b"\xff"],
    "bo": [True, False],
    "dt": [DAY, datetime(2020, 1, 1, 1)],
    "ts": [TIME],
    "tn": [datetime(2020, 1, 1), DAY],
    "dc": [Decimal("1.5"), Decimal("1.505"), Decimal(99), 1],
}


def hand_over(condition: pl.Expr) -> pl.Expr | None:
    """Return the condition as polars hands it to a source: with its types resolved."""
    seen: list[pl.Expr | None] = []

    def source(columns: object, predicate: pl.Expr | None, *_: object) -> Any:
        seen.append(predicate)
        yield FRAME

    plugins.register_io_source(source, schema=FRAME.schema).filter(condition).collect()
    return seen[0]


def keep(predicate: Predicate) -> list[int]:
    return pc.filter(BATCH["id"], evaluate(predicate, BATCH)).to_pylist()


@st.composite
def leaves(draw: st.DrawFn) -> pl.Expr:
    name = draw(st.sampled_from(sorted(LITERALS)))
    column, value = pl.col(name), draw(st.sampled_from(LITERALS[name]))
    kind = draw(st.sampled_from(["compare"] * 4 + ["null", "in", "between", "missing", "prefix", "field", "other"]))
    if kind == "null":
        return column.is_null() if draw(st.booleans()) else column.is_not_null()
    if kind == "in":
        return column.is_in([each for each in LITERALS[name] if type(each) is type(value)])
    if kind == "between":
        return column.is_between(value, value, closed=draw(st.sampled_from(["both", "left", "right", "none"])))
    if kind == "missing":
        return column.eq_missing(value) if draw(st.booleans()) else column.ne_missing(value)
    if kind == "prefix":
        return pl.col("s").str.starts_with(draw(st.sampled_from(["", "a", "a%", "a_", "é"])))
    if kind == "field":
        return draw(st.sampled_from(COMPARE))(pl.col("st").struct.field("a"), 1)
    if kind == "other":
        return draw(
            st.sampled_from([pl.col("bo"), pl.col("d").is_nan(), pl.col("l") > pl.col("i"), pl.col("i") + 1 > 2])
        )
    return draw(st.sampled_from(COMPARE))(column, value)


def trees() -> st.SearchStrategy[pl.Expr]:
    def join(parts: st.SearchStrategy[pl.Expr]) -> st.SearchStrategy[pl.Expr]:
        return st.one_of(
            st.builds(operator.and_, parts, parts),
            st.builds(operator.or_, parts, parts),
            st.builds(operator.inv, parts),
        )

    return st.recursive(leaves(), join, max_leaves=5)


@settings(max_examples=100, deadline=None)
@given(condition=trees())
def test_nodes_keep_the_rows_that_polars_keeps(condition: pl.Expr) -> None:
    try:
        handed = hand_over(condition)
        kept = [] if handed is None else FRAME.filter(handed)["id"].to_list()
    except (pl.exceptions.PolarsError, TypeError):  # polars compares no such types
        return
    if handed is None:
        return
    predicate, is_all = push_down(handed, ROWS.schema)
    if is_all:
        assert predicate is not None
        assert keep(predicate) == kept
    elif predicate is not None:
        assert set(kept) <= set(keep(predicate))


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (pl.col("i") > 1, "i > 1"),
        (pl.col("d") > 1, "d > 1.0D"),
        (pl.col("f") > 0.5, "f > 0.5F"),
        (pl.col("s") == "x", "s = 'x'"),
        (pl.col("dt") >= DAY, "dt >= date'2020-01-01'"),
        (pl.col("dc") > Decimal("1.5"), "dc > 1.50"),
        (pl.col("s").is_in(["a", "b"]), "s in ('a', 'b')"),
        (pl.col("i").is_between(1, 5), "(i >= 1) and (i <= 5)"),
        (pl.col("st").struct.field("a") == 1, "st.a = 1"),
        (pl.col("st").struct.field("in").struct.field("b") == "x", "st.in.b = 'x'"),
        (~pl.col("bo") | pl.col("i").is_null(), "(not bo) or (i is null)"),
        (pl.col("l") > 1.5, "cast(l as double) > 1.5D"),
    ],
)
def test_usual_conditions_are_pushed_down_whole(condition: pl.Expr, text: str) -> None:
    handed = hand_over(condition)
    assert handed is not None
    predicate, is_all = push_down(handed, ROWS.schema)
    assert (str(predicate), is_all) == (text, True)


@pytest.mark.parametrize(
    "condition",
    [
        pl.col("i") + 1 > 2,
        pl.col("s").str.to_lowercase() == "x",
        pl.col("s").str.contains("a"),
        pl.col("d").is_nan(),
        pl.col("d").is_in([0.0]),
        pl.col("i").is_in([1, None]),
        pl.col("dc") > Decimal("1.505"),
        pl.col("s").cast(pl.Int32, strict=False) > 1,
    ],
)
def test_what_could_mean_something_else_is_left_to_polars(condition: pl.Expr) -> None:
    handed = hand_over(condition)
    assert handed is not None
    assert push_down(handed, ROWS.schema) == (None, False)
    both = hand_over((pl.col("i") > 1) & condition)
    assert both is not None
    predicate, is_all = push_down(both, ROWS.schema)
    assert (str(predicate), is_all) == ("i > 1", False)


def test_a_field_of_polars_own_making_is_no_column_of_the_table() -> None:
    assert push_down(pl.col("nope") > 1, ROWS.schema) == (None, False)
