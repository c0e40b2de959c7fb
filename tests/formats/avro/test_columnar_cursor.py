"""Integers, lengths and counts of many lanes at once, against their encoder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.avro.columnar_cursor import BACK, FRONT, Budget, Misfit, Source, copy_to_arrow, decode_zigzag
from tests.arrow_memory import watched
from tests.formats.log_writer import unsigned, varint

NUMBERS = st.integers(0, 63).flatmap(lambda bit: st.integers(-(1 << bit), (1 << bit) - 1))
NO_BUDGET = Budget(0)


def lanes_of(parts: list[bytes]) -> tuple[Source, np.ndarray]:
    sizes = np.array([0, *(len(part) for part in parts[:-1])], np.int64)
    return Source(parts, NO_BUDGET), FRONT + np.cumsum(sizes)


def masks(length: int) -> st.SearchStrategy[np.ndarray | None]:
    return st.none() | st.lists(st.booleans(), min_size=length, max_size=length).map(np.array)


@given(st.lists(NUMBERS, min_size=1, max_size=40), st.data())
def test_integers(numbers: list[int], data: st.DataObject) -> None:
    encoded = [varint(number) for number in numbers]
    mask = data.draw(masks(len(numbers)))
    source, places = lanes_of(encoded)
    skipped = places.copy()
    behind = [
        place + (len(raw) if mask is None or mask[i] else 0)
        for i, (place, raw) in enumerate(zip(places, encoded, strict=True))
    ]
    values = decode_zigzag(source.read_integers(places, mask)).tolist()
    source.skip_integers(skipped, mask)
    assert values == [number if mask is None or mask[i] else 0 for i, number in enumerate(numbers)]
    assert places.tolist() == skipped.tolist() == behind


@given(st.lists(st.integers(0, 1 << 30), min_size=1, max_size=40), st.data())
def test_lengths(numbers: list[int], data: st.DataObject) -> None:
    mask = data.draw(masks(len(numbers)))
    source, places = lanes_of([varint(number) for number in numbers])
    expected = [number if mask is None or mask[i] else 0 for i, number in enumerate(numbers)]
    assert source.read_lengths(places, mask).tolist() == expected


@given(st.lists(st.tuples(st.integers(-(1 << 30), 1 << 30), st.integers(0, 1 << 40)), min_size=1, max_size=40))
def test_counts(pairs: list[tuple[int, int]]) -> None:
    encoded = [varint(count) + (varint(size) if count < 0 else b"") for count, size in pairs]
    source, places = lanes_of(encoded)
    ends = (places + [len(raw) for raw in encoded]).tolist()
    assert source.counts(places).tolist() == [abs(count) for count, _ in pairs]
    assert places.tolist() == ends


@pytest.mark.parametrize("others", [[], [b"\x02"] * 20, [varint(1 << 50)] * 20])
def test_what_is_no_integer_length_or_count(others: list[bytes]) -> None:
    too_long = b"\x80" * 10 + b"\x01"
    too_large = b"\xff" * 9 + b"\x02"
    for raw in (too_long, too_large):
        for read in (Source.read_integers, Source.read_lengths):
            source, places = lanes_of([*others, raw])
            with pytest.raises(Misfit):
                read(source, places, None)
        source, places = lanes_of([*others, raw])
        with pytest.raises(Misfit):
            source.counts(places)
    source, places = lanes_of([*others, too_long])
    with pytest.raises(Misfit):
        source.skip_integers(places, None)
    for raw in (varint(-1), varint(-(1 << 40)), varint(1 << 40), unsigned((1 << 64) - 1)):
        source, places = lanes_of([*others[:5], raw])
        with pytest.raises(Misfit):
            source.read_lengths(places, None)
    source, places = lanes_of([varint(1 << 40)])
    with pytest.raises(Misfit):
        source.counts(places)


def test_places_outside_of_the_data() -> None:
    source = Source([b"\x02" * 5], NO_BUDGET)
    assert source.size == FRONT + 5
    for place in (source.size + BACK, 1 << 40):
        with pytest.raises(IndexError):
            source.read_integers(np.array([FRONT, place]), None)
    source.read_integers(np.array([source.size]), None)
    with pytest.raises(UnsupportedFeatureError, match="unfold"):
        NO_BUDGET.charge(1)


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 5000])
def test_values_are_copied_into_arrow_memory_if_they_are_many(count: int) -> None:
    allocated = watched()
    for values in (np.arange(count), np.arange(2 * count).reshape(count, 2)):
        buffer = copy_to_arrow(values)
        assert bytes(buffer) == values.tobytes()
        assert (allocated() >= values.nbytes > 0) is (values.nbytes >= 8192)
        del buffer
        assert allocated() == 0


@pytest.mark.parametrize("size", [1 << 10, 1 << 16])
def test_pieces_that_lie_apart_are_joined(size: int) -> None:
    pieces = [bytes([i]) * (size + i) for i in range(1, 4)]
    source = Source([pieces[0], memoryview(pieces[1]), pieces[2]], NO_BUDGET)
    assert bytes(source.raw) == bytes(FRONT) + b"".join(pieces) + bytes(BACK)
    assert source.starts == [FRONT, FRONT + size + 1, FRONT + 2 * size + 3]
    assert source.size == len(source.raw) - BACK
