"""64-bit roaring bitmaps in their portable form, as sorted integers (RoaringBitmap's format specification).

    bitmap     = bucket count, u64; for each bucket: the upper 32 bits of its values, u32; its lower bits as below
    lower bits = cookie 12347 | (containers - 1) << 16, u32; a bit for each container: whether it holds runs
                 or cookie 12346, u32; number of containers, u32
                 for each container: the next 16 bits of its values, u16; number of values - 1, u16
                 unless there are runs and fewer than 4 containers: where each container starts, u32
                 containers, which hold the lowest 16 bits of their values
    container  = with runs: number of runs, u16; for each run its first value, u16, and its length - 1, u16
                 of at most 4,096 values: each value, u16
                 else 65,536 bits

All integers are little-endian. A few bytes of runs can stand for billions of values, so how many there are is known
before any is written out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hoodie_py.errors import CorruptFileError

Values = npt.NDArray[np.int64]

_U64, _U32, _U16 = struct.Struct("<Q"), struct.Struct("<I"), struct.Struct("<H")
_PLAIN, _WITH_RUNS = 12346, 12347
_SMALLEST_BUCKET = 12  # bytes
_MOST_CONTAINERS = 1 << 16
_FEWEST_WITH_PLACES = 4
_MOST_LISTED = 4096
_BITS = 1 << 16
_LARGEST_UPPER = (1 << 31) - 1  # values are signed here


class _Container(NamedTuple):
    """The upper bits of some values, how many values there are, and what has their lower bits."""

    upper: int
    size: int
    lower: npt.NDArray[np.uint16]
    runs: bool


def decode_bitmap(data: bytes, allow: Callable[[int], None]) -> Values:
    """Return the values of a bitmap, ascending; bytes behind it are left aside.

    Args:
        data: the bitmap.
        allow: is told how many values there are, and raises if they are too many, before any is written out.

    Raises:
        CorruptFileError: not such a bitmap, or values of more than 63 bits.
    """
    try:
        containers = _containers(data)
    except (struct.error, ValueError, IndexError):
        raise CorruptFileError("A 64-bit roaring bitmap is cut short.") from None
    allow(sum(container.size for container in containers))
    values = np.empty(sum(container.size for container in containers), np.int64)
    done, last = 0, -1
    for container in containers:
        lower = _lower_bits(container)
        if container.upper <= last or not (lower[1:] > lower[:-1]).all():
            raise CorruptFileError("The values of a 64-bit roaring bitmap are not ascending.")
        np.add(lower, container.upper, out=values[done : done + container.size])
        done, last = done + container.size, container.upper
    return values


def _containers(data: bytes) -> list[_Container]:
    (buckets,) = _U64.unpack_from(data)
    if buckets * _SMALLEST_BUCKET > len(data):
        raise CorruptFileError(f"A 64-bit roaring bitmap of {len(data)} bytes cannot have {buckets} buckets.")
    found: list[_Container] = []
    at = _U64.size
    for _ in range(buckets):
        (upper,) = _U32.unpack_from(data, at)
        if upper > _LARGEST_UPPER:
            raise CorruptFileError("A 64-bit roaring bitmap has values of more than 63 bits.")
        at = _read_bucket(data, at + _U32.size, upper << 32, found)
    return found


def _read_bucket(data: bytes, at: int, upper: int, found: list[_Container]) -> int:
    """Add the containers of a bucket to those found, and return the place behind it."""
    (cookie,) = _U32.unpack_from(data, at)
    at += _U32.size
    if cookie & 0xFFFF == _WITH_RUNS:
        size = (cookie >> 16) + 1
        flags = data[at : at + (size + 7) // 8]
        at += (size + 7) // 8
        has_places = size >= _FEWEST_WITH_PLACES
    elif cookie == _PLAIN:
        (size,) = _U32.unpack_from(data, at)
        at += _U32.size
        if size > _MOST_CONTAINERS:
            raise CorruptFileError(f"A roaring bitmap cannot have {size} containers.")
        flags, has_places = b"", True
    else:
        raise CorruptFileError(f"A roaring bitmap cannot begin with {cookie}.")
    heads = np.frombuffer(data, "<u2", 2 * size, at).tolist()
    at += _U32.size * size * (2 if has_places else 1)
    for number in range(size):
        middle, count = heads[2 * number], heads[2 * number + 1] + 1
        runs = bool(flags) and bool(flags[number >> 3] >> (number & 7) & 1)
        if runs:
            (length,) = _U16.unpack_from(data, at)
            at += _U16.size
            length *= 2
        else:
            length = count if count <= _MOST_LISTED else _BITS // 16
        found.append(_Container(upper | middle << 16, count, np.frombuffer(data, "<u2", length, at), runs))
        at += _U16.size * length
    return at


def _lower_bits(container: _Container) -> Values:
    if container.runs:
        firsts, lengths = container.lower[::2].astype(np.int64), container.lower[1::2].astype(np.int64) + 1
        behind = np.cumsum(lengths)
        if not len(behind) or behind[-1] != container.size or int((firsts + lengths).max()) > _BITS:
            raise CorruptFileError("The runs of a roaring bitmap do not have as many values as they should.")
        return np.repeat(firsts - behind + lengths, lengths) + np.arange(container.size)
    if container.size <= _MOST_LISTED:
        return container.lower.astype(np.int64)
    found = np.flatnonzero(np.unpackbits(container.lower.view(np.uint8), bitorder="little"))
    if len(found) != container.size:
        raise CorruptFileError("A roaring bitmap does not have as many values as it should.")
    return found.astype(np.int64, copy=False)
