"""Matches of a merge: the pairs that a nested loop finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.errors import InvalidQueryError
from hoodie_py.table.filter.evaluate import evaluate
from hoodie_py.writer.dml import source_join
from hoodie_py.writer.dml.names import Names
from hoodie_py.writer.dml.source_join import SourceRows, bind_condition

TARGET = pa.schema([("a", pa.string()), ("b", pa.int32()), ("c", pa.float64())])
SOURCE = pa.schema([("a", pa.string()), ("b", pa.int64()), ("c", pa.float64()), ("d", pa.int64())])
TEXTS = st.sampled_from(["x", "y", "", None])
NUMBERS = st.sampled_from([0, 1, -1, None])
FLOATS = st.sampled_from([0.0, -0.0, 1.5, float("nan"), None])
CONDITIONS: list[tuple[str | list[str], Any]] = [
    ("a", lambda t, s: same(t["a"], s["a"])),
    (["a", "b"], lambda t, s: same(t["a"], s["a"]) and same(t["b"], s["b"])),
    (["c", "b", "a"], lambda t, s: all(same(t[name], s[name]) for name in "abc")),
    ("t.c = s.c and t.b = 1", lambda t, s: same(t["c"], s["c"]) and t["b"] == 1),
    ("s.b = t.b and d > t.b", lambda t, s: same(t["b"], s["b"]) and s["d"] is not None and s["d"] > t["b"]),
    ("t.b + 1 = s.b and s.a = 'x'", lambda t, s: t["b"] is not None and s["b"] == t["b"] + 1 and s["a"] == "x"),
]


def same(left: Any, right: Any) -> bool:
    """As in SQL: null is equal to nothing; as in Spark: NaN is equal to itself."""
    if left is None or right is None:
        return False
    return bool(left == right or (left != left and right != right))


def rows(schema: pa.Schema) -> st.SearchStrategy[list[dict[str, Any]]]:
    values = {"a": TEXTS, "b": NUMBERS, "c": FLOATS, "d": NUMBERS}
    return st.lists(st.fixed_dictionaries({name: values[name] for name in schema.names}), max_size=8)


@settings(max_examples=150, deadline=None)
@given(rows(TARGET), rows(SOURCE), st.sampled_from(range(len(CONDITIONS))), st.sampled_from([1, 10_000]))
def test_pairs_are_those_of_a_nested_loop(
    target: list[dict[str, Any]], source: list[dict[str, Any]], number: int, listed: int
) -> None:
    on, holds = CONDITIONS[number]
    before, source_join._LISTED = source_join._LISTED, listed
    try:
        condition = bind_condition(on, Names(TARGET, SOURCE, "t", "s"))
        found = SourceRows(pa.Table.from_pylist(source, SOURCE), condition)
        batch = pa.RecordBatch.from_pylist(target, TARGET)
        at, of = found.find_pairs(batch)
        passing = set(np.flatnonzero(evaluate(found.make_filter(), batch).fill_null(False).to_numpy(False)).tolist())
    finally:
        source_join._LISTED = before
    wanted = [(i, j) for i, t in enumerate(target) for j, s in enumerate(source) if holds(t, s)]
    assert sorted(zip(at.tolist(), of.tolist(), strict=True)) == wanted
    assert found.matched.tolist() == [j in {pair[1] for pair in wanted} for j in range(len(source))]
    assert passing.issuperset(pair[0] for pair in wanted)


def test_a_join_that_explodes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_join, "_MOST_PAIRS", 100)
    rows = [{"a": "x"}] * 20
    found = SourceRows(pa.Table.from_pylist(rows, SOURCE), bind_condition("a", Names(TARGET, SOURCE)))
    with pytest.raises(InvalidQueryError, match="too many rows"):
        found.find_pairs(pa.RecordBatch.from_pylist(rows, TARGET))
