"""Build columns from the parts in which a large block is decoded.

A part is copied after the earlier ones while it is still in the processor's cache, and the next part reuses its memory.
Keeping all parts and joining them at the end would take twice the memory, and copying would be slower.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import is_valid, make_bitmap
from hoodie_py.formats.avro.columnar_cursor import Misfit

_LONGEST_TEXTS = (1 << 31) - 1
_TEXTS = (pa.string(), pa.binary())


class _Column(Protocol):
    """A column that grows."""

    def add(self, part: pa.Array) -> None:
        """Copy a part after the earlier ones."""

    def finish(self) -> pa.Array:
        """Return all parts as one array, once all are added."""


class JoinedParts:
    """Rows that are added in parts.

    ``rows`` is the number of rows of all parts. ``content`` is the number of bytes from which they are decoded; it
    bounds the room that is reserved for later texts.
    """

    def __init__(self, schema: pa.Schema, rows: int, content: int) -> None:
        self._columns = [_make_column(field.type, rows, content) for field in schema]

    def add(self, columns: list[pa.Array]) -> None:
        """Append the columns of a part to the earlier parts.

        Raises Misfit if the texts of one column have more than 2 GiB.
        """
        for column, part in zip(self._columns, columns, strict=True):
            column.add(part)

    def finish(self) -> list[pa.Array]:
        """Return the columns of all rows."""
        return [column.finish() for column in self._columns]


def _make_column(type_: pa.DataType, rows: int, content: int) -> _Column:
    if type_ in _TEXTS:
        return _TextColumn(type_, rows, content)
    if pa.types.is_decimal128(type_) or (pa.types.is_primitive(type_) and type_.bit_width % 8 == 0):
        return _FixedColumn(type_, rows)
    return _AnyColumn()


class _Validity:
    """Which rows have a value; allocated only when the first null is added."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._valid: npt.NDArray[np.bool_] | None = None

    def add(self, part: pa.Array, done: int) -> None:
        if part.null_count:
            if self._valid is None:
                self._valid = np.ones(self._rows, np.bool_)
            self._valid[done : done + len(part)] = is_valid(part)

    def bitmap(self) -> pa.Buffer | None:
        return make_bitmap(self._valid)


class _FixedColumn:
    """Values of the same size."""

    def __init__(self, type_: pa.DataType, rows: int) -> None:
        self._type = type_
        self._rows = rows
        self._width = type_.bit_width // 8
        self._buffer = pa.allocate_buffer(rows * self._width)
        self._bytes = np.frombuffer(self._buffer, np.uint8)
        self._valid = _Validity(rows)
        self._done = 0

    def add(self, part: pa.Array) -> None:
        width, rows = self._width, len(part)
        values = np.frombuffer(part.buffers()[1], np.uint8, rows * width, part.offset * width)
        self._bytes[self._done * width : (self._done + rows) * width] = values
        self._valid.add(part, self._done)
        self._done += rows

    def finish(self) -> pa.Array:
        return pa.Array.from_buffers(self._type, self._rows, [self._valid.bitmap(), self._buffer])


class _TextColumn:
    """Strings or bytes. Room for all rows is reserved at once, estimated from the average length so far."""

    def __init__(self, type_: pa.DataType, rows: int, content: int) -> None:
        self._type = type_
        self._rows = rows
        self._content = content
        self._offsets = pa.allocate_buffer(4 * (rows + 1))
        self._ends = np.frombuffer(self._offsets, np.int32)
        self._ends[0] = 0
        self._valid = _Validity(rows)
        self._buffer = pa.py_buffer(b"")
        self._bytes = np.zeros(0, np.uint8)
        self._done = self._size = 0

    def add(self, part: pa.Array) -> None:
        rows = len(part)
        _, offsets, data = part.buffers()
        bounds = np.frombuffer(offsets, np.int32, rows + 1, 4 * part.offset)
        first, last = int(bounds[0]), int(bounds[-1])
        size, done = self._size + last - first, self._done + rows
        if size > _LONGEST_TEXTS:
            raise Misfit
        if size > len(self._bytes):
            self._make_room(size, size * self._rows // done * 9 // 8)
        np.add(bounds[1:], self._size - first, out=self._ends[self._done + 1 : done + 1])
        if size > self._size:
            self._bytes[self._size : size] = np.frombuffer(data, np.uint8, last - first, first)
        self._valid.add(part, self._done)
        self._done, self._size = done, size

    def _make_room(self, least: int, likely: int) -> None:
        buffer = pa.allocate_buffer(max(least, min(likely, max(2 * least, self._content))))
        room = np.frombuffer(buffer, np.uint8)
        if self._size:
            room[: self._size] = self._bytes[: self._size]
        self._buffer, self._bytes = buffer, room

    def finish(self) -> pa.Array:
        data = self._buffer.slice(0, self._size)
        return pa.Array.from_buffers(self._type, self._rows, [self._valid.bitmap(), self._offsets, data])


class _AnyColumn:
    """Values of other types: the parts are kept and joined at the end."""

    def __init__(self) -> None:
        self._parts: list[pa.Array] = []

    def add(self, part: pa.Array) -> None:
        self._parts.append(part)

    def finish(self) -> pa.Array:
        return pa.concat_arrays(self._parts)
