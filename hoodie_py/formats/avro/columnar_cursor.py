"""Read the same Avro value of many records at once: bytes, words, integers and lengths as NumPy arrays.

A *lane* is one record, or one item of an array or map. ``places`` contains the position of each lane's next value.
``mask``, unless it is None, is true for the lanes that have a value there. A lane without one reads as zero and does
not move. The methods that read values of varying size advance ``places`` in place.

Two rules keep this safe with hostile input:

* Positions never go back, a length is at most the data's length, and reading outside of the padded data raises
  IndexError. So a record whose last position is its end has stayed inside its bytes all the way.
* Everything that is not right raises ``Misfit``, or an error without a place; ``faults`` then finds the place.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.errors import UnsupportedFeatureError

Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_] | None
Unsigned = npt.NDArray[np.unsignedinteger]

FRONT = 16  # bytes before the records: decimals are read as the words before their end
BACK = 24  # bytes after the records: lanes without a value, or past their record, read words at the end

_LONGEST_DATA = (1 << 31) - 1 - FRONT - BACK  # so that 32 bits hold every position
_FEW_BYTES = 8192
RECORDS_AT_ONCE = 1 << 13  # about the size of a large block's parts; larger parts outgrow the processor's cache
MOST_ITEMS = 1 << 21  # of arrays and maps, in the records that are decoded at once
_SAMPLED = 16
_CONTINUES = np.uint64(0x8080808080808080)
_SEVEN_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONE = np.uint64(1)
_ALL_BITS = (1 << 64) - 1
_WORD = 8
_SIGNED = {1: np.int8, 4: np.int32, 8: np.int64}
# How the seven-bit groups of a word are joined to groups of 14, 28 and 56 bits: needed if a span is above the limit.
_GROUPINGS = (
    (0xFF, np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (0xFFFF, np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (0xFFFFFFFF, np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
)


class Misfit(Exception):
    """The data is damaged."""


class Budget:
    """The number of array cells that may be allocated without a byte of data for each."""

    def __init__(self, cells: int) -> None:
        self._cells = cells

    def charge(self, cells: int) -> None:
        """Take cells from the budget. Raises UnsupportedFeatureError if too few are left."""
        self._cells -= cells
        if self._cells < 0:
            raise UnsupportedFeatureError("The Avro records unfold to far more values than they have bytes.")


class Source:
    """The bytes of some records, padded on both sides.

    Pieces inside one Arrow buffer, with room around them, are read in place; others are copied.
    """

    def __init__(self, pieces: Sequence[memoryview | bytes], budget: Budget) -> None:
        self.content = sum(map(len, pieces))  # in bytes
        if self.content > _LONGEST_DATA:
            raise UnsupportedFeatureError(f"{self.content} bytes of Avro records cannot be decoded at once.")
        self.raw, self.starts = _find_shared_buffer(pieces) or _copy_pieces(pieces)  # starts are from FRONT on
        self.size = len(self.raw) - BACK  # where the last piece ends
        self.budget = budget
        self.records_at_once = RECORDS_AT_ONCE
        self.most_items = MOST_ITEMS
        self.in_parts = False  # whether arrays will soon be copied into a larger one, and so stay in NumPy's memory
        self.bytes = np.frombuffer(self.raw, np.uint8)
        self.words: npt.NDArray[np.uint64] = self.view_as("<u8")
        self.buffer = pa.py_buffer(self.raw)

    def view_as(self, dtype: str) -> npt.NDArray[Any]:
        """View the data as one value at each byte."""
        kind = np.dtype(dtype)
        return np.ndarray((max(len(self.raw) - kind.itemsize + 1, 0),), kind, self.raw, strides=(1,))

    def to_buffer(self, values: npt.NDArray[Any]) -> pa.Buffer:
        """Return values as a buffer: in Arrow's memory, unless they will soon be copied."""
        return pa.py_buffer(values) if self.in_parts else copy_to_arrow(values)

    def read_first_bytes(self, places: Places, mask: Mask) -> npt.NDArray[np.uint8]:
        """Read one byte of each lane, without moving."""
        first = self.bytes.take(places)
        if mask is not None:
            first *= mask
        return first

    def read_integers(self, places: Places, mask: Mask) -> Unsigned:
        """Read variable-length integers as uint8 or uint64, still zig-zag encoded, and advance."""
        # Mostly all integers have one byte. A sample is cheaper than a look at all first bytes that fails.
        sample = self.bytes.take(places[:: len(places) // _SAMPLED + 1])
        if find_largest(sample) < 0x80:
            first = self.read_first_bytes(places, mask)
            if np.bitwise_or.reduce(first) < 0x80:
                places += 1 if mask is None else mask
                return first
        return self._read_long_integers(places, mask)

    def skip_integers(self, places: Places, mask: Mask) -> None:
        """Advance over variable-length integers of up to ten bytes."""
        first = self.read_first_bytes(places, mask)
        if np.bitwise_or.reduce(first) < 0x80:
            places += 1 if mask is None else mask
            return
        words = self._read_words(places, mask)
        widths = _count_widths(_find_spans(words))
        if find_largest(widths) == _WORD:
            self._read_high_bits(words, widths, places)
        _move_by_widths(places, widths, mask)

    def read_lengths(self, places: Places, mask: Mask) -> Unsigned:
        """Read the lengths before strings or bytes, and advance to their first bytes."""
        first = self.read_first_bytes(places, mask)
        if not np.bitwise_or.reduce(first) & 0x81:  # all lengths are non-negative and have one byte
            places += 1 if mask is None else mask
            first >>= 1
            return first
        long = self._read_long_integers(places, mask)
        top = int(np.bitwise_or.reduce(long))
        if top & 1 or top >> 32:
            raise Misfit
        long >>= _ONE
        return long

    def counts(self, places: Places) -> npt.NDArray[np.int64]:
        """Read the item counts of array or map blocks, and the byte length after negative ones, and advance."""
        first = self.read_first_bytes(places, None)
        if not np.bitwise_or.reduce(first) & 0x81:
            places += 1
            return (first >> 1).astype(np.int64)
        long = self._read_long_integers(places, None)
        top = int(np.bitwise_or.reduce(long))
        if top >> 32:
            raise Misfit
        if top & 1:
            sized = np.flatnonzero(long & _ONE)
            behind = places[sized]
            self.read_integers(behind, None)
            places[sized] = behind
        return ((long + _ONE) >> _ONE).astype(np.int64)

    def _read_words(self, places: Places, mask: Mask) -> npt.NDArray[np.uint64]:
        words = self.words[places]
        if mask is not None:
            words *= mask
        return words

    def _read_long_integers(self, places: Places, mask: Mask) -> npt.NDArray[np.uint64]:
        words = self._read_words(places, mask)
        spans = _find_spans(words)
        widest = find_largest(spans)
        widths = _count_widths(spans)
        top = self._read_high_bits(words, widths, places) if widest == _ALL_BITS else None
        words &= spans
        words &= _SEVEN_BITS
        for limit, groups, shift in _GROUPINGS:
            if widest > limit:
                high = words & groups
                words ^= high
                high >>= shift
                words |= high
        if top is not None:
            words |= top
        _move_by_widths(places, widths, mask)
        return words

    def _read_high_bits(
        self, words: npt.NDArray[np.uint64], widths: npt.NDArray[np.uint8], places: Places
    ) -> npt.NDArray[np.uint64] | None:
        """Return bits 56 to 63 of integers longer than a word, and correct the widths; None if there are none."""
        longer = (words & _CONTINUES) == _CONTINUES
        if not longer.any():
            return None
        ninth = self.bytes.take(places + _WORD)
        ninth *= longer
        longest = ninth >= 0x80
        tenth = self.bytes.take(places + _WORD + 1)
        tenth *= longest
        # More than 64 bits.
        if find_largest(tenth) > 1:
            raise Misfit
        widths += longer
        widths += longest
        ninth &= 0x7F
        ninth |= tenth << 7
        return ninth.astype(np.uint64) << np.uint64(56)


def _find_shared_buffer(pieces: Sequence[memoryview | bytes]) -> tuple[memoryview, list[int]] | None:
    """Find the Arrow buffer that contains all pieces, with room around them; return it and each piece's start in it."""
    owner = pieces[0].obj if pieces and isinstance(pieces[0], memoryview) else None
    if not isinstance(owner, pa.Buffer):
        return None
    if not all(isinstance(piece, memoryview) and piece.obj is owner for piece in pieces):
        return None
    found = [pa.py_buffer(piece) for piece in pieces]
    first = min(piece.address for piece in found) - FRONT
    last = max(piece.address + piece.size for piece in found) + BACK
    start, stop = first - owner.address, last - owner.address
    if start < 0 or stop > owner.size or stop - start > _LONGEST_DATA:
        return None
    return memoryview(owner).cast("B")[start:stop], [piece.address - first for piece in found]


def _copy_pieces(pieces: Sequence[memoryview | bytes]) -> tuple[memoryview, list[int]]:
    """Copy pieces one after the other; return the copy and the start of each piece in it."""
    starts = accumulate((len(piece) for piece in pieces[:-1]), initial=FRONT)
    return memoryview(b"".join((bytes(FRONT), *pieces, bytes(BACK)))), list(starts)


def _find_spans(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Set the bits of each word up to the end of its first integer: all bits if it is longer than eight bytes."""
    # The last byte of an integer is the first one without its top bit. Subtracting one from the lowest such bit sets
    # all bits below it.
    stops = ~words
    stops &= _CONTINUES
    spans = stops - _ONE
    spans ^= stops
    return spans


def _count_widths(spans: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Return the number of bytes that each span covers."""
    widths = np.bitwise_count(spans)
    widths >>= 3
    return widths


def _move_by_widths(places: Places, widths: npt.NDArray[np.uint8], mask: Mask) -> None:
    if mask is not None:
        widths *= mask
    places += widths


def find_smallest(values: npt.NDArray[Any]) -> int:
    """Return the smallest value; faster than ``values.min()``, which is Python code."""
    return int(np.minimum.reduce(values))


def find_largest(values: npt.NDArray[Any]) -> int:
    """Return the largest value."""
    return int(np.maximum.reduce(values))


def decode_zigzag(raw: Unsigned) -> npt.NDArray[np.signedinteger]:
    """Decode the result of ``read_integers`` to signed numbers of the same size; ``raw`` is overwritten."""
    one = raw.dtype.type(1)
    sign = raw & one
    np.negative(sign, out=sign)
    raw >>= one
    raw ^= sign
    signed: npt.NDArray[np.signedinteger] = raw.view(_SIGNED[raw.itemsize])
    return signed


def move(places: Places, size: int, mask: Mask) -> None:
    """Advance lanes by ``size`` bytes."""
    places += size if mask is None else mask * np.int64(size)


def copy_to_arrow(values: npt.NDArray[Any]) -> pa.Buffer:
    """Copy values into memory of Arrow's pool, unless they are few.

    Arrow reuses that memory for base rows once these values are gone. NumPy's memory would stay with the process.
    """
    if values.nbytes < _FEW_BYTES:
        return pa.py_buffer(values)
    buffer = pa.allocate_buffer(values.nbytes)
    np.frombuffer(buffer, values.dtype).reshape(values.shape)[:] = values
    return buffer
