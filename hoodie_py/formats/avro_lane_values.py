"""Read single Avro values of many records at once, as Arrow arrays (``avro_cursor`` explains lanes, places and masks).

A ``LaneReader`` reads one type. ``read`` and ``skip`` are called with at least one lane that has a value. They move
the places behind the values, in place. Lanes without a value become null. What is not clearly right raises Misfit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.formats.arrays import from_numpy, from_texts
from hoodie_py.formats.avro_cursor import (
    Mask,
    Misfit,
    Places,
    Source,
    decode_zigzag,
    find_largest,
    find_smallest,
    make_bitmap,
    move,
)
from hoodie_py.formats.avro_schema import Enum, Fixed, Primitive
from hoodie_py.formats.avro_types import MICROS_PER_MILLI, MILLIS, to_arrow_type
from hoodie_py.formats.kernels import take

_WORD = 8
_MILLIS_LIMIT = (1 << 63) // MICROS_PER_MILLI
_CELL_BYTES = 16


class LaneReader(Protocol):
    """Reads the values of one type."""

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        """Read a value for each lane."""

    def skip(self, source: Source, places: Places, mask: Mask) -> None:
        """Step over the values; check only what stepping needs."""


def check_values(values: pa.Array) -> pa.Array:
    """Let Arrow check the values themselves: UTF-8, decimal precision."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raise Misfit from None
    return values


def make_fixed_width(source: Source, arrow: pa.DataType, mask: Mask, values: npt.NDArray[Any]) -> pa.Array:
    """Make an array of fixed-width values without converting them."""
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
        if find_largest(values) > 1:
            raise Misfit
        move(places, 1, mask)
        bits = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [make_bitmap(mask), pa.py_buffer(bits)])


class RealReader(_FixedSizeReader):
    """float and double: Arrow has the same bytes."""

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
    """int and long, and the dates and times kept as them."""

    def __init__(self, node: Primitive) -> None:
        self._arrow = to_arrow_type(node)
        self._size = 4 if node.kind == "int" else 8
        self._millis = node.logical in MILLIS

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        raw = source.read_integers(places, mask)
        if self._size == 4:
            if raw.itemsize == _WORD:
                if int(np.bitwise_or.reduce(raw)) >> 32:
                    raise Misfit
                raw = raw.astype(np.uint32)
            return make_fixed_width(source, self._arrow, mask, decode_zigzag(raw).astype(np.int32, copy=False))
        values = decode_zigzag(raw).astype(np.int64, copy=False)
        if self._millis:
            if not -_MILLIS_LIMIT < find_smallest(values) <= find_largest(values) < _MILLIS_LIMIT:
                raise Misfit
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
            raise Misfit
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
    """Copy texts of any length, and move behind them.

    Arrow does the copying: the whole data is seen as one binary array, in which every other entry is a text and the
    entries between are the bytes between the texts. ``take`` then copies the even entries.
    """
    rows = len(places)
    bounds = np.empty(2 * rows + 1, np.int32)
    bounds[0:-1:2] = places
    places += lengths
    if find_largest(places) > source.size:
        raise Misfit
    bounds[1::2] = places
    bounds[-1] = source.size
    entries = pa.Array.from_buffers(pa.binary(), 2 * rows, [None, pa.py_buffer(bounds), source.buffer])
    _, offsets, data = take(entries, _list_even_numbers(rows)).buffers()
    return data, offsets


@lru_cache(maxsize=4)
def _list_even_numbers(count: int) -> pa.Array:
    """Return the first even numbers; cached, as every text column of a part needs the same."""
    return from_numpy(np.arange(0, 2 * count, 2, dtype=np.int32))


class FixedReader(_FixedSizeReader):
    """``size`` bytes."""

    def __init__(self, node: Fixed) -> None:
        super().__init__(node.size)

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        present = len(places) if mask is None else int(np.count_nonzero(mask))
        if present * self._size > source.content:
            raise Misfit
        lengths = np.full(len(places), self._size)
        if mask is not None:
            lengths *= mask
        data, offsets = _copy_same_length(source, places, mask, self._size, lengths)
        move(places, self._size, mask)
        return pa.Array.from_buffers(pa.binary(), len(places), [make_bitmap(mask), offsets, data])
