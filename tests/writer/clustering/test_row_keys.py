"""Rows of a clustering are sorted by its columns or curve, in memory and on disk alike."""

from __future__ import annotations

import datetime
import itertools
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.writer.clustering.row_keys import RowKeys, check_layout, interleave, make_numbers, turn_axes
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


WORDS = st.lists(st.integers(0, (1 << 64) - 1), min_size=1, max_size=5)


def join(words: list[np.ndarray], bits: int) -> list[int]:
    """The places as whole numbers of ``bits`` bits."""
    found = [0] * len(words[0])
    for word in words:
        found = [(number << 64) | int(part) for number, part in zip(found, word, strict=True)]
    return [number >> (64 * len(words) - bits) for number in found]


@given(st.lists(WORDS, min_size=1, max_size=8), st.sampled_from([8, 16, 64]))
def test_bits_are_interleaved_from_the_highest(rows: list[list[int]], bits: int) -> None:
    count = min(map(len, rows))
    columns = [[row[place] & ((1 << bits) - 1) for row in rows] for place in range(count)]
    places = join(interleave([np.array(column, np.uint64) for column in columns], bits), count * bits)
    for row, place in zip(zip(*columns, strict=True), places, strict=True):
        expected = "".join(f"{value:0{bits}b}"[bit] for bit in range(bits) for value in row)
        assert place == int(expected, 2)


@pytest.mark.parametrize(("count", "side"), [(1, 64), (2, 16), (3, 8), (4, 4)])
def test_neighbours_on_the_hilbert_curve_are_neighbours_in_space(count: int, side: int) -> None:
    points = np.array(list(itertools.product(range(side), repeat=count)), np.uint64)
    places = join(interleave(turn_axes(list(points.T.copy()), 8), 8), count * 8)
    assert len(set(places)) == len(points)
    path = points[np.argsort(np.array(places, dtype=object))].astype(int)
    assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    "values",
    [
        pa.array([-(1 << 62), -1, 0, 5]),
        pa.array([-(1 << 30), 0, 5], pa.int32()),
        pa.array([float("-inf"), -2.5, -0.0, 0.0, 1e-300, 3.0, float("inf")]),
        pa.array([-2.5, 0.5], pa.float32()),
        pa.array([Decimal("-2.5"), Decimal("1.25")]),
        pa.array([datetime.date(1960, 1, 1), datetime.date(2020, 1, 1)]),
        pa.array([datetime.datetime(1960, 1, 1), datetime.datetime(2020, 1, 1)], pa.timestamp("us", "UTC")),
        pa.array(["", "a", "ab", "b", "é"]),
        pa.array([b"", b"\x00\x01", b"\xff"]),
        pa.array([b"ab", b"ac"], pa.binary(2)),
        pa.array([False, True]),
    ],
)
def test_numbers_sort_as_the_values_do_and_nulls_come_first(values: pa.Array) -> None:
    numbers = make_numbers(pa.concat_arrays([values, pa.nulls(1, values.type)]).slice(0, len(values) + 1)).tolist()
    assert numbers[-1] == 0
    assert numbers[:-1] == sorted(numbers[:-1])
    assert make_numbers(values.slice(1)).tolist() == numbers[1:-1]
