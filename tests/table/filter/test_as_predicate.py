"""Nodes found in Arrow's expressions keep the rows that Arrow keeps, for values of every kind."""

from __future__ import annotations

import operator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.table.filter.as_predicate import find_parts
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.table.filter.predicate import And, Predicate
from tests.table.filter_rows import SCHEMA, rows

BATCH = rows()
VALUES: dict[str, list[Any]] = {
    "i8": [0, 1, -128, 200],
    "n32": [0, 1, 2**40],
    "i64": [0, 5, 2**53 + 1],
    "f": [0.5, 1, 0.1, -0.0],
    "d": [0.0, -0.0, 1.5, 2, float("inf"), float("nan")],
    "dc": [Decimal("1.5"), Decimal("1.555"), 1, Decimal("99999999.99")],
    "s": ["", "a", "zz"],
    "bo": [True, False],
    "dt": [date(2020, 1, 1), date(1969, 12, 31)],
}
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@st.composite
def leaves(draw: st.DrawFn) -> pc.Expression:
    name = draw(st.sampled_from(sorted(VALUES)))
    kind = draw(st.sampled_from(["compare", "compare", "in", "null", "valid"]))
    column = pc.field(name)
    if kind == "null":
        return column.is_null()
    if kind == "valid":
        return column.is_valid()
    if kind == "in":
        places = draw(st.lists(st.integers(0, len(BATCH) - 1), min_size=1, max_size=3))
        return column.isin(BATCH[name].take(pa.array(places)))
    return draw(st.sampled_from(COMPARE))(column, draw(st.sampled_from(VALUES[name])))


def trees() -> st.SearchStrategy[pc.Expression]:
    def join(parts: st.SearchStrategy[pc.Expression]) -> st.SearchStrategy[pc.Expression]:
        return st.one_of(
            st.builds(operator.and_, parts, parts),
            st.builds(operator.or_, parts, parts),
            st.builds(operator.inv, parts),
        )

    return st.recursive(leaves(), join, max_leaves=5)


def keep(nodes: tuple[Any, ...]) -> list[int]:
    if not nodes:
        return BATCH["id"].to_pylist()
    root = nodes[0] if len(nodes) == 1 else And(nodes)
    return pc.filter(BATCH["id"], evaluate(Predicate(root), BATCH)).to_pylist()


@settings(max_examples=150, deadline=None)
@given(expression=trees())
def test_nodes_keep_the_rows_that_arrow_keeps(expression: pc.Expression) -> None:
    try:
        kept = pa.Table.from_batches([BATCH]).filter(expression)["id"].to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # Arrow's own limits, of decimals above all
        return
    parts = find_parts(expression, SCHEMA)
    if parts.is_all:
        assert keep(parts.nodes) == kept
    else:
        assert set(kept) <= set(keep(parts.nodes))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (pc.field("n32") > 1, "n32 > 1"),
        (pc.field("st", "x") == 1, "st.x = 1"),
        (pc.field("s").isin(["a", "b"]), "(not (s is null)) and (s in ('a', 'b'))"),
        (pc.if_else(pc.field("s").is_valid(), pc.field("s").isin(["a"]), pa.scalar(None, pa.bool_())), "s in ('a')"),
        (pc.field("d") < 2, "d < 2.0D"),
        (pc.field("d") >= 2.0, "(d >= 2.0D) and (d < cast('nan' as double))"),
        (pc.field("dc") > Decimal("1.2"), "dc > 1.20"),
    ],
)
def test_usual_forms_become_nodes(expression: pc.Expression, text: str) -> None:
    parts = find_parts(expression, SCHEMA)
    assert parts.is_all
    root = parts.nodes[0] if len(parts.nodes) == 1 else And(parts.nodes)
    assert str(Predicate(root)) == text


def test_times_of_other_units_and_zones_are_the_same_instants() -> None:
    schema = pa.schema([("t", pa.timestamp("us", "UTC"))])
    expression = pc.field("t") > pa.scalar(datetime(2020, 1, 1, tzinfo=UTC), pa.timestamp("s", "Europe/Berlin"))
    (node,) = find_parts(expression, schema).nodes
    assert str(node) == "(t > timestamp'2020-01-01 00:00:00Z')"


@pytest.mark.parametrize(
    "expression",
    [
        pc.field("d") == pa.scalar(float("nan")),
        pc.field("n32") + 1 > 2,
        pc.field("s").isin(pa.array(["a", None])),
        pc.field("d").is_null(nan_is_null=True),
        pc.starts_with(pc.field("s"), "a"),
        pc.field("dc") > Decimal("1.555"),
    ],
)
def test_what_could_mean_something_else_is_left_to_arrow(expression: pc.Expression) -> None:
    assert find_parts(expression, SCHEMA).nodes == ()
    some = find_parts((pc.field("n64") == 1) & expression, SCHEMA)
    assert (len(some.nodes), some.is_all) == (1, False)
