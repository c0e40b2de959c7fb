"""Places on a space-filling curve: rows that are near each other in several columns come near each other in a file.

A value becomes a number of 64 bits that sorts as the values do (Hudi ``BinaryUtil``, ``SparkSortUtils``). The Z-order
curve interleaves the bits of these numbers; the Hilbert curve first turns the axes, so that neighbours on the curve are
always neighbours in space (J. Skilling, "Programming the Hilbert curve", 2004). Java's orders have the same locality
and other bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import is_valid, to_booleans, to_numbers
from hoodie_py.arrow.fields import is_text

Numbers = npt.NDArray[np.uint64]

BITS = 64
MOST_COLUMNS = 8
_SIGN = np.uint64(1 << 63)
_ONE = np.uint64(1)


def can_order(type_: pa.DataType) -> bool:
    """Whether values of a type have places on a curve."""
    return not pa.types.is_nested(type_) and not pa.types.is_dictionary(type_)


def make_numbers(values: pa.Array) -> Numbers:
    """Return a number for each value that sorts as the values do; texts count with their first 8 bytes, nulls as 0."""
    type_ = values.type
    if is_text(type_) or pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return _number_texts(values.cast(pa.binary()))
    if pa.types.is_fixed_size_binary(type_):
        return _number_texts(values.cast(pa.binary()))
    if pa.types.is_boolean(type_):
        return (to_booleans(values) & is_valid(values)).astype(np.uint64)
    if pa.types.is_decimal(type_):
        values = values.cast(pa.float64())
    if pa.types.is_floating(values.type):
        bits = to_numbers(values).astype(np.float64).view(np.uint64)
        numbers = np.where(bits & _SIGN != 0, ~bits, bits | _SIGN)
    else:
        width = pa.int32() if values.type.bit_width == 32 else pa.int64()
        whole = values if pa.types.is_integer(values.type) else values.view(width)
        numbers = to_numbers(whole).astype(np.int64).view(np.uint64) ^ _SIGN
    return np.where(is_valid(values), numbers, np.uint64(0))


def _number_texts(values: pa.Array) -> Numbers:
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    starts, lengths = offsets[:-1].astype(np.int64), np.diff(offsets)
    data = values.buffers()[2]
    raw = np.frombuffer(data if data is not None and data.size else b"\0", np.uint8)
    first = np.zeros((len(values), 8), np.uint8)
    for place in range(8):
        at = np.flatnonzero(lengths > place)
        first[at, place] = raw[starts[at] + place]
    return np.where(is_valid(values), first.view(">u8")[:, 0].astype(np.uint64), np.uint64(0))


def interleave(axes: Sequence[Numbers], bits: int = BITS) -> list[Numbers]:
    """Interleave the ``bits`` low bits of numbers, the highest bits first; a multiple of 8 and at most 8 axes.

    The places on the curve come as columns of 64 bits, the most significant first, so that rows sort by all of them.
    """
    count, width = len(axes), bits // 8
    found = np.zeros((len(axes[0]), -(-count * width // 8) * 8), np.uint8)
    for number in range(width):
        shift = np.uint64(8 * (width - 1 - number))
        word = np.zeros(len(axes[0]), np.uint64)
        for place, axis in enumerate(axes):
            low = ((axis >> shift) & np.uint64(0xFF)).astype(np.intp)
            word |= _make_spread(count)[low] << np.uint64(count - 1 - place)
        found[:, number * count : (number + 1) * count] = (
            word.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - count :]
        )
    words = found.view(">u8").astype(np.uint64)
    return [np.ascontiguousarray(words[:, number]) for number in range(words.shape[1])]


@lru_cache(maxsize=MOST_COLUMNS)
def _make_spread(count: int) -> Numbers:
    """Return each byte with ``count - 1`` zero bits put between its bits."""
    spread = [sum(((byte >> bit) & 1) << (bit * count) for bit in range(8)) for byte in range(256)]
    return np.array(spread, np.uint64)


def turn_axes(axes: Sequence[Numbers], bits: int = BITS) -> list[Numbers]:
    """Turn coordinates into those whose interleaved bits are the place on the Hilbert curve."""
    turned = [np.array(axis, np.uint64) for axis in axes]
    first = turned[0]
    for bit in range(bits - 1, 0, -1):
        mask = np.uint64((1 << bit) - 1)
        for axis in turned:
            is_set = (axis >> np.uint64(bit)) & _ONE
            spread = (np.uint64(0) - is_set) & mask  # the low bits if the bit is set
            change = (first ^ axis) & (mask ^ spread)
            first ^= spread | change
            axis ^= change
    for number in range(1, len(turned)):
        turned[number] ^= turned[number - 1]
    last, flips = turned[-1], np.zeros(len(first), np.uint64)
    for bit in range(bits - 1, 0, -1):
        is_set = (last >> np.uint64(bit)) & _ONE
        flips ^= (np.uint64(0) - is_set) & np.uint64((1 << bit) - 1)
    for axis in turned:
        axis ^= flips
    return turned
