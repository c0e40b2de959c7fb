from __future__ import annotations

import datetime
import itertools
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.writer.clustering.row_keys import interleave, make_numbers, turn_axes

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
