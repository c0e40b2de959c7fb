"""Read single Avro values of many records at once, as Arrow arrays; ``columnar_cursor`` explains lanes and masks.

A ``LaneReader`` reads one type. ``read`` and ``skip`` are called with at least one lane that has a value, and advance
the places past the values, in place. Lanes without a value become null. A value that its type cannot have raises
CorruptFileError without a place; everything else that is not right raises Misfit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, from_texts, make_bitmap, take
from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.arrow_types import MICROS_PER_MILLI, MILLIS, MILLIS_LIMIT, to_arrow_type
from hoodie_py.formats.avro.columnar_cursor import (
    Mask,
    Misfit,
    Places,
    Source,
    decode_zigzag,
    find_largest,
    find_smallest,
    move,
)
from hoodie_py.formats.avro.schema import Decimal, Enum, Fixed, Primitive

_WORD = 8
_CELL_BYTES = 16
_DECIMAL_BYTES = 16


class LaneReader(Protocol):
    """Reads the values of one type."""

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        """Read a value for each lane."""

    def skip(self, source: Source, places: Places, mask: Mask) -> None:
        """Step over the values; only what stepping needs is checked."""


def check_values(values: pa.Array) -> pa.Array:
    """Let Arrow check the values themselves: UTF-8, decimal precision."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        reason = str(error).partition(" at string index")[0]  # an index in the part that is decoded
        raise CorruptFileError(f"An Avro value is not valid: {reason[:200]}.") from None
    return values


def make_fixed_width(source: Source, arrow: pa.DataType, mask: Mask, values: npt.NDArray[Any]) -> pa.Array:
    """Return an array of fixed-width values without converting them."""
    return pa.Array.from_buffers(arrow, len(values), [make_bitmap(mask), source.to_buffer(values)])


class NullReader:
    """Avro's null: no bytes."""

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        return pa.nulls(len(places))

    def skip(self, source: Source, places: Places, mask: Mask) -> None:
        return


class _FixedSizeReader:
    """Values of ``size`` bytes."""

    def __init__(self, size: int) -> None:
        self._size = size

    def skip(self, source: Source, places: Places, mask: Mask) -> None:
        move(places, self._size, mask)


class BooleanReader(_FixedSizeReader):
    """A byte, 0 or 1."""

    def __init__(self) -> None:
        super().__init__(1)

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        values = source.read_first_bytes(places, mask)
        if (largest := find_largest(values)) > 1:
            raise CorruptFileError(f"An Avro boolean cannot be {largest}.")
        move(places, 1, mask)
        bits = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [make_bitmap(mask), pa.py_buffer(bits)])


class RealReader(_FixedSizeReader):
    """float and double, which have the same bytes in Arrow."""

    def __init__(self, bits: str, arrow: pa.DataType) -> None:
        super().__init__(np.dtype(bits).itemsize)
        self._bits = bits
        self._arrow = arrow

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        values = source.view_as(self._bits)[places]
        if mask is not None:
            values *= mask
        move(places, self._size, mask)
        return make_fixed_width(source, self._arrow, mask, values)


class _VarintReader:
    """Variable-length integers."""

    def skip(self, source: Source, places: Places, mask: Mask) -> None:
        source.skip_integers(places, mask)


class IntegerReader(_VarintReader):
    """int and long, and the dates and times stored as them."""

    def __init__(self, node: Primitive) -> None:
        self._arrow = to_arrow_type(node)
        self._size = 4 if node.kind == "int" else 8
        self._millis = node.logical in MILLIS

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        raw = source.read_integers(places, mask)
        if self._size == 4:
            if raw.itemsize == _WORD:
                if int(np.bitwise_or.reduce(raw)) >> 32:
                    raise CorruptFileError("An Avro int has more than 32 bits.")
                raw = raw.astype(np.uint32)
            return make_fixed_width(source, self._arrow, mask, decode_zigzag(raw).astype(np.int32, copy=False))
        values = decode_zigzag(raw).astype(np.int64, copy=False)
        if self._millis:
            if not -MILLIS_LIMIT < find_smallest(values) <= find_largest(values) < MILLIS_LIMIT:
                raise CorruptFileError("An Avro timestamp in milliseconds is out of range.")
            values *= MICROS_PER_MILLI
        return make_fixed_width(source, self._arrow, mask, values)


class EnumReader(_VarintReader):
    """A symbol, by its number."""

    def __init__(self, node: Enum) -> None:
        self._symbols = from_texts(node.symbols, pa.string())
        self._cells = max(len(symbol.encode()) for symbol in node.symbols) // _CELL_BYTES

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        raw = source.read_integers(places, mask)
        if int(np.bitwise_or.reduce(raw)) & 1 or find_largest(raw) >> 1 >= len(self._symbols):
            raise CorruptFileError("An Avro enum value is not one of the symbols.")
        source.budget.charge(len(raw) * self._cells)
        numbers = (raw >> raw.dtype.type(1)).astype(np.int32)
        return take(self._symbols, from_numpy(numbers, None if mask is None else ~mask))


class TextReader:
    """string and bytes: a length, then the bytes."""

    def __init__(self, arrow: pa.DataType) -> None:
        self._arrow = arrow

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        lengths = source.read_lengths(places, mask).astype(np.int64)
        total = int(np.add.reduce(lengths))
        if total > source.content:
            raise Misfit
        rows = len(places)
        longest = find_largest(lengths)
        if longest * (rows if mask is None else int(np.count_nonzero(mask))) == total:
            data, offsets = _copy_same_length(source, places, mask, longest, lengths)
            places += lengths
        else:
            data, offsets = _gather_texts(source, places, lengths)
        texts = pa.Array.from_buffers(self._arrow, rows, [make_bitmap(mask), offsets, data])
        # Without a byte above 127 the text is ASCII, and needs no check of its UTF-8.
        if total and self._arrow == pa.string() and find_smallest(np.frombuffer(data, np.int8)) < 0:
            return check_values(texts)
        return texts

    def skip(self, source: Source, places: Places, mask: Mask) -> None:
        places += source.read_lengths(places, mask).astype(np.int64, copy=False)


def _copy_same_length(
    source: Source, places: Places, mask: Mask, length: int, lengths: Places
) -> tuple[pa.Buffer, pa.Buffer]:
    """Copy texts that all have the same length; return their bytes and offsets."""
    rows = len(places)
    offsets = np.zeros(rows + 1, np.int32)
    if not length:
        return pa.py_buffer(b""), pa.py_buffer(offsets)
    if mask is None:
        offsets = np.arange(0, (rows + 1) * length, length, dtype=np.int32)
    else:
        places = places[mask]
        np.cumsum(lengths, out=offsets[1:], dtype=np.int32)
    texts = source.view_as(f"V{length}")[places].view(np.uint8)
    return source.to_buffer(texts), source.to_buffer(offsets)


def _gather_texts(source: Source, places: Places, lengths: Places) -> tuple[pa.Buffer, pa.Buffer]:
    """Copy texts of any length, and advance past them."""
    rows = len(places)
    bounds = np.empty(2 * rows + 1, np.int32)
    bounds[0:-1:2] = places
    places += lengths
    if find_largest(places) > source.size:
        raise Misfit
    bounds[1::2] = places
    bounds[-1] = source.size
    # Arrow does the copying: the whole data is seen as one binary array, in which every other entry is a text and the
    # entries between are the bytes between the texts. ``take`` then copies the even entries.
    entries = pa.Array.from_buffers(pa.binary(), 2 * rows, [None, pa.py_buffer(bounds), source.buffer])
    _, offsets, data = take(entries, _list_even_numbers(rows)).buffers()
    return data, offsets


@lru_cache(maxsize=4)
def _list_even_numbers(count: int) -> pa.Array:
    """Return the first even numbers; cached, as all text columns of a part need the same."""
    return from_numpy(np.arange(0, 2 * count, 2, dtype=np.int32))


class FixedReader(_FixedSizeReader):
    """``size`` bytes, or a vector."""

    def __init__(self, node: Fixed) -> None:
        super().__init__(node.size)
        self._vector = node.vector

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        present = len(places) if mask is None else int(np.count_nonzero(mask))
        if present * self._size > source.content:
            raise Misfit
        lengths = np.full(len(places), self._size)
        if mask is not None:
            lengths *= mask
        data, offsets = _copy_same_length(source, places, mask, self._size, lengths)
        move(places, self._size, mask)
        values = pa.Array.from_buffers(pa.binary(), len(places), [make_bitmap(mask), offsets, data])
        return values if self._vector is None else self._vector.to_lists(values)


class DecimalReader:
    """A decimal in big-endian two's complement, as a fixed or as bytes with a length; bytes before the last 16 repeat
    the sign.
    """

    def __init__(self, node: Decimal) -> None:
        self._arrow = to_arrow_type(node)
        self._size = node.size
        self._limit: int = 10**node.precision

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        if self._size is None:
            lengths = source.read_lengths(places, mask).astype(np.int64)
            longest = find_largest(lengths)
            if not find_smallest(lengths if mask is None else lengths[mask]):
                raise CorruptFileError("An Avro decimal has no bytes.")
            shortest = find_smallest(lengths)
            places += lengths
            bits: Any = lengths * 8
        else:
            longest = shortest = self._size
            move(places, self._size, mask)
            bits = np.int64(8 * self._size)
        if longest > _DECIMAL_BYTES:
            _check_signs(source, places, np.broadcast_to(bits >> 3, places.shape), mask)
        values = np.empty((len(places), 2), "<i8")
        # Arrow's 128-bit integer is a low and a high word, read backwards from the value's end; shifts drop the bytes
        # before its start.
        low = _read_big_endian(source, places, _WORD, mask)
        if shortest <= _WORD:
            unused = np.maximum(64 - bits, 0)
            signed = (low << unused) >> unused
            values[:, 0] = signed
            values[:, 1] = signed >> 63
        if longest > _WORD:
            unused = np.clip(128 - bits, 0, 63)
            high = (_read_big_endian(source, places, _DECIMAL_BYTES, mask) << unused) >> unused
            if shortest > _WORD:
                values[:, 0], values[:, 1] = low, high
            else:
                wide = bits > 64
                values[wide, 0], values[wide, 1] = low[wide], high[wide]
        decimals = make_fixed_width(source, self._arrow, mask, values)
        return decimals if self._is_surely_in_range(values, longest) else check_values(decimals)

    def _is_surely_in_range(self, values: npt.NDArray[np.int64], longest: int) -> bool:
        """Return whether the extremes alone show that no value has too many digits."""
        if longest <= _WORD:
            low = values[:, 0]
            return self._limit >> 63 > 0 or -self._limit < find_smallest(low) <= find_largest(low) < self._limit
        high = values[:, 1]
        limit = self._limit >> 64
        return -limit <= find_smallest(high) and find_largest(high) < limit

    def skip(self, source: Source, places: Places, mask: Mask) -> None:
        if self._size is None:
            places += source.read_lengths(places, mask).astype(np.int64, copy=False)
        else:
            move(places, self._size, mask)


def _check_signs(source: Source, ends: Places, lengths: Places, mask: Mask) -> None:
    """Check that all bytes before the last 16 of long values only repeat the sign. Raises CorruptFileError."""
    long = lengths > _DECIMAL_BYTES
    if mask is not None:
        long &= mask
    for end, length in zip(ends[long].tolist(), lengths[long].tolist(), strict=True):
        last = end - _DECIMAL_BYTES
        sign = b"\xff" if source.raw[last] & 0x80 else b"\0"
        if source.raw[end - length : last] != sign * (length - _DECIMAL_BYTES):
            raise CorruptFileError("An Avro decimal has more digits than its type.")


def _read_big_endian(source: Source, ends: Places, distance: int, mask: Mask) -> npt.NDArray[np.int64]:
    """Read the eight bytes that start ``distance`` bytes before each end."""
    words = source.words[ends - distance]
    if mask is not None:
        words *= mask
    return words.byteswap(inplace=True).view(np.int64)
