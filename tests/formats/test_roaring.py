"""64-bit roaring bitmaps, beside CRoaring."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.roaring import decode_bitmap

PLACES = st.integers(0, 3 << 16) | st.integers(0, 1 << 34) | st.integers(0, (1 << 63) - 1)
RANGES = st.lists(st.tuples(PLACES, st.integers(1, 70_000), st.sampled_from([1, 1, 2, 3, 40])), max_size=5)


def bitmap_of(ranges: list[tuple[int, int, int]], *, optimize: bool) -> BitMap64:
    bitmap = BitMap64()
    for first, length, step in ranges:
        stop = min(first + length, (1 << 63) - 1)
        if step == 1:
            bitmap.add_range(first, stop)
        else:
            bitmap |= BitMap64(range(first, stop, step))
    if optimize:
        bitmap.run_optimize()
    return bitmap


def decoded(data: bytes) -> Any:
    told: list[int] = []
    values = decode_bitmap(data, told.append)
    assert told == [len(values)]
    assert values.dtype == np.int64
    return values


@settings(deadline=None)
@given(RANGES, st.booleans())
def test_every_kind_of_container_is_read(ranges: list[tuple[int, int, int]], optimize: bool) -> None:
    bitmap = bitmap_of(ranges, optimize=optimize)
    assert np.array_equal(decoded(bitmap.serialize()), np.array(bitmap.to_array(), np.uint64).astype(np.int64))


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("containers", [1, 3, 4, 9])
def test_places_of_containers_are_there_or_not(containers: int, optimize: bool) -> None:
    bitmap = bitmap_of([(number << 16, 5 + number, 1) for number in range(containers)], optimize=optimize)
    assert decoded(bitmap.serialize()).tolist() == list(bitmap)


@pytest.mark.parametrize("count", [4095, 4096, 4097, 1 << 16])
def test_the_border_between_lists_and_bits(count: int) -> None:
    bitmap = BitMap64(range(0, count * 16 if count < 5000 else count, 16 if count < 5000 else 1))
    assert np.array_equal(decoded(bitmap.serialize()), np.array(bitmap.to_array(), np.int64))


@settings(deadline=None)
@given(RANGES, st.booleans(), st.data())
def test_damage_is_an_error_or_other_values_in_order(
    ranges: list[tuple[int, int, int]], optimize: bool, data: st.DataObject
) -> None:
    raw = bytearray(bitmap_of(ranges, optimize=optimize).serialize())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, min(len(raw), 60) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        values = decode_bitmap(cut, lambda count: None if count < 1 << 22 else pytest.fail("more than there can be"))
    except CorruptFileError:
        return
    assert (np.diff(values) > 0).all()
    assert not len(values) or values[0] >= 0


class TooManyError(Exception):
    pass


def test_nothing_is_written_out_before_the_number_is_allowed() -> None:
    bitmap = BitMap64()
    bitmap.add_range(0, 1 << 32)
    bitmap.run_optimize()

    def refuse(count: int) -> None:
        assert count == 1 << 32
        raise TooManyError

    with pytest.raises(TooManyError):
        decode_bitmap(bitmap.serialize(), refuse)


def test_what_lies_behind_is_left_aside() -> None:
    assert decoded(BitMap64([1, 5]).serialize() + b"more").tolist() == [1, 5]
