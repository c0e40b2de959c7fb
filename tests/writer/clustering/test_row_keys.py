"""Rows of a clustering are sorted by its columns or curve, in memory and on disk alike."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.writer.clustering.row_keys import RowKeys, check_layout
from hoodie_py.writer.clustering.settings import HILBERT, LINEAR, Z_ORDER, Layout
from hoodie_py.writer.clustering.task import sort_rows

SCHEMA = pa.schema([("n", pa.int64()), ("a", pa.int32()), ("b", pa.string()), ("s", pa.struct([("x", pa.float64())]))])


def batches(seed: int, count: int = 12) -> list[pa.RecordBatch]:
    chance = random.Random(seed)
    found, first = [], 0
    for _ in range(count):
        size = chance.randint(0, 200)
        rows = {
            "n": range(first, first + size),
            "a": [chance.choice([None, *range(9)]) for _ in range(size)],
            "b": [chance.choice([None, "x", "yy", "a long text of more than eight bytes"]) for _ in range(size)],
            "s": [chance.choice([None, {"x": None}, {"x": chance.random()}]) for _ in range(size)],
        }
        found.append(pa.RecordBatch.from_arrays([pa.array(rows[f.name], f.type) for f in SCHEMA], schema=SCHEMA))
        first += size
    return found


def order(keys: RowKeys, given: list[pa.RecordBatch], limit: int) -> list[int]:
    table = pa.Table.from_batches(list(sort_rows(given, keys, MemoryBudget(limit))), SCHEMA)
    return table["n"].to_pylist()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([LINEAR, Z_ORDER, HILBERT]), st.booleans())
def test_spilled_rows_come_in_the_same_order_as_rows_in_memory(seed: int, curve: str, sampled: bool) -> None:
    given_rows = batches(seed)
    layout = Layout(("a", "b", "s.x"), curve, sampled)
    keys = RowKeys.from_sample(layout, given_rows) if sampled else RowKeys(layout)
    assert order(keys, given_rows, 20_000) == order(keys, given_rows, 1 << 30)


def test_rows_sort_by_one_column_after_the_other_and_equal_ones_keep_their_order() -> None:
    given_rows = batches(7)
    rows = pa.Table.from_batches(given_rows).to_pylist()
    rows.sort(key=lambda row: (row["a"] is None, row["a"] or 0, row["b"] is None, row["b"] or ""))
    assert order(RowKeys(Layout(("a", "b"))), given_rows, 10_000) == [row["n"] for row in rows]


def test_a_sample_spreads_columns_of_unlike_ranges() -> None:
    """With ranks both columns decide; with the values the wide one decides alone."""
    chance = random.Random(3)
    rows = pa.RecordBatch.from_pydict(
        {"a": [chance.randrange(256) for _ in range(4096)], "b": [chance.randrange(1 << 60) for _ in range(4096)]}
    )
    spans = {}
    for sampled in (False, True):
        layout = Layout(("a", "b"), Z_ORDER, sampled)
        keys = RowKeys.from_sample(layout, [rows]) if sampled else RowKeys(layout)
        table = pa.Table.from_batches(list(sort_rows([rows], keys, MemoryBudget(1 << 30))))
        parts = [table["a"].slice(start, 256).to_pylist() for start in range(0, 4096, 256)]
        spans[sampled] = sum(max(part) - min(part) for part in parts) / len(parts)
    assert spans[True] < 100 < spans[False]


def test_no_rows_are_no_rows() -> None:
    assert order(RowKeys(Layout(("a",))), [], 1 << 30) == []


def test_columns_that_have_no_order_are_refused() -> None:
    check_layout(Layout(("a", "s.x"), HILBERT), SCHEMA)
    with pytest.raises(InvalidQueryError, match="nope"):
        check_layout(Layout(("nope",)), SCHEMA)
    with pytest.raises(UnsupportedFeatureError, match="struct"):
        check_layout(Layout(("s",)), SCHEMA)
    wide = pa.schema([(f"c{number}", pa.int64()) for number in range(9)])
    with pytest.raises(UnsupportedFeatureError, match="9 columns"):
        check_layout(Layout(tuple(wide.names), Z_ORDER), wide)
