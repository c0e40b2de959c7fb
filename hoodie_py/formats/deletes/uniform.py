"""Decodes deletes that all have the same layout: keys of one length and integers of one width.

Most delete blocks are of this kind, and NumPy decodes such a block as a table of bytes. Every record is checked against
the layout of the first one; ``decoder`` decodes all other blocks delete by delete (``varying``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.formats.avro.columnar_cursor import decode_zigzag
from hoodie_py.formats.deletes.ordering_value import OrderingKind

PRESENT = 2  # the byte before a key or path that is not null
NOT_SHORT = 0x81  # bits set in the length of a text of 64 bytes or more, and in a negative length
INTEGER_TAGS = {
    4: OrderingKind.INT,
    6: OrderingKind.LONG,
    16: OrderingKind.DATE,
    20: OrderingKind.TIME_MICROS,
    22: OrderingKind.TIMESTAMP_MICROS,
}
INT_LIMIT = 1 << 31
SMALL_KINDS = (OrderingKind.INT, OrderingKind.DATE)

_ABSENT = 0
_MORE = 0x80  # set in every byte of an integer except the last
_WIDEST = 9  # bytes of the longest integer that cannot overflow
_MOST_KEY_BYTES = 1 << 31


@dataclass(frozen=True, slots=True, eq=False)
class DecodedDeletes:
    """Deletes in order: record keys, and the kinds (``OrderingKind``) and values of their ordering values."""

    keys: pa.StringArray
    kinds: npt.NDArray[np.int8]
    numbers: npt.NDArray[np.int64]  # integer values; 0 for other kinds and for none
    others: dict[int, Any] = field(default_factory=dict)  # other values, by the number of the delete


@dataclass(frozen=True, slots=True)
class _RecordShape:
    """The layout of a record: offsets of its parts from its start, in bytes."""

    key_bytes: int
    path: int
    tag: int
    kind: OrderingKind
    size: int

    @property
    def fixed(self) -> list[int]:
        """Offsets of the bytes that are equal in all records of this layout."""
        path = [self.path] if self.tag == self.path + 1 else [self.path, self.path + 1]
        return [0, 1, *path, self.tag]


def decode_uniform_deletes(payload: bytes, pos: int, count: int) -> DecodedDeletes | None:
    """Decode one or more deletes (``count``) of a version 3 payload that consists of one Avro array block.

    The first delete is at ``pos``. Returns None if a delete has another layout than the first one, or is damaged.
    """
    shape = _find_shape(payload, pos)
    if shape is None or pos + count * shape.size + 1 != len(payload) or payload[-1] != 0:
        return None
    # A table with one row of bytes for each delete, without a copy.
    rows = np.frombuffer(payload, np.uint8, count * shape.size, pos).reshape(count, shape.size)
    fixed = rows[:, shape.fixed]
    integers = rows[:, shape.tag + 1 :]
    if not (fixed == fixed[0]).all() or not _has_one_width(integers):
        return None
    numbers = _decode_numbers(integers)
    if shape.kind in SMALL_KINDS and len(numbers) and not -INT_LIMIT <= numbers.min() <= numbers.max() < INT_LIMIT:
        return None
    kinds = np.full(count, shape.kind, np.int8)
    # The int 0 means "no ordering value", see ``decoder``.
    if shape.kind is OrderingKind.INT:
        kinds[numbers == 0] = OrderingKind.NONE
    keys = _make_keys(rows[:, 2 : 2 + shape.key_bytes])
    return None if keys is None else DecodedDeletes(keys, kinds, numbers)


def _find_shape(payload: bytes, pos: int) -> _RecordShape | None:
    """Return the layout of the first record; None if it is not decoded here."""
    try:
        if payload[pos] != PRESENT or payload[pos + 1] & NOT_SHORT:
            return None
        key_bytes = payload[pos + 1] >> 1
        path = tag = 2 + key_bytes
        if payload[pos + path] == PRESENT and not payload[pos + path + 1] & NOT_SHORT:
            tag += 2 + (payload[pos + path + 1] >> 1)
        elif payload[pos + path] == _ABSENT:
            tag += 1
        else:
            return None
        kind = OrderingKind.NONE if payload[pos + tag] == _ABSENT else INTEGER_TAGS.get(payload[pos + tag])
        if kind is None:
            return None
        size = tag + 1
        if kind is not OrderingKind.NONE:
            while payload[pos + size] & _MORE:
                size += 1
            size += 1
    except IndexError:
        return None
    return _RecordShape(key_bytes, path, tag, kind, size) if size - tag - 1 <= _WIDEST else None


def _has_one_width(integers: npt.NDArray[np.uint8]) -> bool:
    more = integers >= _MORE  # the byte is not the last one of its integer
    return bool(more[:, :-1].all() and not more[:, -1:].any())


def _decode_numbers(integers: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    raw = np.zeros(len(integers), np.uint64)
    for place in range(integers.shape[1]):
        raw |= (integers[:, place] & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * place)
    return decode_zigzag(raw).astype(np.int64)


def _make_keys(texts: npt.NDArray[np.uint8]) -> pa.StringArray | None:
    count, width = texts.shape
    if count * width >= _MOST_KEY_BYTES:
        return None
    offsets = from_numpy(
        np.arange(0, count * width + 1, width, dtype=np.int32) if width else np.zeros(count + 1, np.int32)
    )
    data = np.ascontiguousarray(texts)
    keys = pa.Array.from_buffers(pa.string(), count, [None, offsets.buffers()[1], pa.py_buffer(data)])
    try:
        keys.validate(full=bool((data >= _MORE).any()))
    except pa.ArrowInvalid:
        return None
    return keys
