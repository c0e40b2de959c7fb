"""Read decimals of many records at once, as Arrow's 128-bit integers (``avro_cursor`` explains lanes and places)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.formats.avro_cursor import Mask, Misfit, Places, Source, find_largest, find_smallest, move
from hoodie_py.formats.avro_lane_values import check_values, make_fixed_width
from hoodie_py.formats.avro_schema import Decimal
from hoodie_py.formats.avro_types import to_arrow_type

_DECIMAL_BYTES = 16
_WORD = 8


class DecimalReader:
    """A decimal in big-endian two's complement of at most 16 bytes: as a fixed, or as bytes with a length."""

    def __init__(self, node: Decimal) -> None:
        self._arrow = to_arrow_type(node)
        self._size = node.size
        self._limit: int = 10**node.precision

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        if self._size is None:
            lengths = source.read_lengths(places, mask).astype(np.int64)
            longest = find_largest(lengths)
            if not find_smallest(lengths if mask is None else lengths[mask]):
                raise Misfit
            shortest = find_smallest(lengths)
            places += lengths
            bits: Any = lengths * 8
        else:
            longest = shortest = self._size
            move(places, self._size, mask)
            bits = np.int64(8 * self._size)
        if longest > _DECIMAL_BYTES and (self._size is None or not _is_sign(source, places, mask, longest)):
            raise Misfit
        values = np.empty((len(places), 2), "<i8")
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
        """Return whether a glance at the extremes shows that no value has too many digits."""
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


def _is_sign(source: Source, ends: Places, mask: Mask, size: int) -> bool:
    """Return whether the bytes before the last 16 only repeat the sign."""
    sign = source.read_first_bytes(ends - _DECIMAL_BYTES, mask) & 0x80
    sign = (sign >> 7) * np.uint8(0xFF)
    return all(
        (source.read_first_bytes(ends - distance, mask) == sign).all()
        for distance in range(_DECIMAL_BYTES + 1, size + 1)
    )


def _read_big_endian(source: Source, ends: Places, distance: int, mask: Mask) -> npt.NDArray[np.int64]:
    """Read the eight bytes that start ``distance`` bytes before the ends."""
    words = source.words[ends - distance]
    if mask is not None:
        words *= mask
    return words.byteswap(inplace=True).view(np.int64)
