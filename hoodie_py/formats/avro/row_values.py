"""Columns of single Avro values: the step that reads each type, and the Arrow array of its values.

A column has a *step* (``binary``), which reads one value into a compact buffer, and ``array``, which makes the Arrow
array of the buffer. No Python object is made per value. The buffer contains no nulls: ``Slots`` says which rows its
values belong to. ``array`` also checks what a step cannot see: UTF-8 and decimal precision.
"""

from __future__ import annotations

from array import array
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import make_bitmap
from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.arrow_types import MICROS_PER_MILLI, MILLIS, MILLIS_LIMIT, to_arrow_type
from hoodie_py.formats.avro.binary import Step, read_span, read_varint
from hoodie_py.formats.avro.schema import Decimal, Fixed, Primitive

DECIMAL_BYTES = 16

REALS = {"float": ("<f4", pa.float32()), "double": ("<f8", pa.float64())}


class Slots(NamedTuple):
    """The number of rows of an array, and the mask of the rows with a value (None for all)."""

    rows: int
    mask: npt.NDArray[np.bool_] | None = None

    def narrow(self, valid: npt.NDArray[np.bool_]) -> Slots:
        """Keep the values whose entry in ``valid`` is true; ``valid`` has one entry per value."""
        return self if valid.all() else Slots(self.rows, self.place(valid))

    def place(self, dense: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Put values at the rows that have one, and zeros at the other rows."""
        if self.mask is None:
            return dense
        placed = np.zeros((self.rows, *dense.shape[1:]), dense.dtype)
        placed[self.mask] = dense
        return placed

    def offsets(self, ends: array[int]) -> pa.Buffer:
        """Return the offsets of the rows; ``ends`` is 0 and the end of each value."""
        if self.mask is None:
            return pa.py_buffer(ends)
        values = np.zeros(self.rows + 1, np.int32)
        np.cumsum(self.mask, out=values[1:])
        return pa.py_buffer(np.asarray(ends).take(values))

    def bitmap(self) -> pa.Buffer | None:
        """Return Arrow's validity bitmap."""
        return make_bitmap(self.mask)


class Finish(Protocol):
    """Makes the Arrow array of the values read so far."""

    def __call__(self, slots: Slots) -> pa.Array:
        """Make the array, with the values at their slots; called once, after the last value."""


class Column(NamedTuple):
    """The step that reads one value, and the function that makes the array of all values."""

    step: Step
    array: Finish


def make_primitive_column(data: bytes, node: Primitive) -> Column:
    """Return the column of a primitive type."""
    kind = node.kind
    if kind in ("string", "bytes"):
        return make_text_column(data, to_arrow_type(node))
    if kind in ("int", "long"):
        return _make_integer_column(data, node)
    if kind in REALS:
        return _make_real_column(data, *REALS[kind])
    return (
        _make_boolean_column(data)
        if kind == "boolean"
        else Column(lambda pos, _: pos, lambda slots: pa.nulls(slots.rows))
    )


def make_number_array(slots: Slots, arrow: pa.DataType, values: npt.NDArray[Any] | array[int]) -> pa.Array:
    """Return an array of fixed-width values without converting them."""
    placed = values if slots.mask is None else np.ascontiguousarray(slots.place(np.asarray(values)))
    return pa.Array.from_buffers(arrow, slots.rows, [slots.bitmap(), pa.py_buffer(placed)])


def _check_values(values: pa.Array) -> pa.Array:
    """Let Arrow check the values themselves: UTF-8, decimal precision."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptFileError(f"An Avro value is not valid: {str(error)[:200]}.") from None
    return values


def _make_boolean_column(data: bytes) -> Column:
    values = bytearray()
    append = values.append

    def step(pos: int, _: int) -> int:
        byte = data[pos]
        if byte > 1:
            raise CorruptFileError(f"An Avro boolean cannot be {byte}.", offset=pos)
        append(byte)
        return pos + 1

    def finish(slots: Slots) -> pa.Array:
        bits = np.packbits(slots.place(np.frombuffer(values, np.uint8)), bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), slots.rows, [slots.bitmap(), pa.py_buffer(bits)])

    return Column(step, finish)


def make_integer_step(data: bytes, values: array[int]) -> Step:
    """Return the step that appends an int, a long or an enum number to ``values``."""
    append = values.append

    def step(pos: int, _: int) -> int:
        byte = data[pos]
        if byte < 0x80:
            append((byte >> 1) ^ -(byte & 1))
            return pos + 1
        value, pos = read_varint(data, pos)
        append(value)
        return pos

    return step


def make_integer_array(slots: Slots, node: Primitive, values: array[int]) -> pa.Array:
    """Return an array of integers; milliseconds become microseconds.

    Raises CorruptFileError if a timestamp is out of range.
    """
    if node.logical not in MILLIS:
        return make_number_array(slots, to_arrow_type(node), values)
    numbers = np.asarray(values)
    if len(numbers) and not -MILLIS_LIMIT < numbers.min() <= numbers.max() < MILLIS_LIMIT:
        raise CorruptFileError("An Avro timestamp in milliseconds is out of range.")
    return make_number_array(slots, to_arrow_type(node), numbers * MICROS_PER_MILLI)


def _make_integer_column(data: bytes, node: Primitive) -> Column:
    """Return the column of int or long; an int of more than 32 bits raises OverflowError in its step."""
    values = array("i" if node.kind == "int" else "q")

    return Column(make_integer_step(data, values), lambda slots: make_integer_array(slots, node, values))


def _make_bytes_step(data: bytes, size: int, values: bytearray) -> Step:
    extend = values.extend

    def step(pos: int, _: int) -> int:
        stop = pos + size
        extend(data[pos:stop])
        return stop

    return step


def _make_real_column(data: bytes, dtype: str, arrow: pa.DataType) -> Column:
    values = bytearray()

    def finish(slots: Slots) -> pa.Array:
        return make_number_array(slots, arrow, np.frombuffer(values, dtype))

    return Column(_make_bytes_step(data, np.dtype(dtype).itemsize, values), finish)


def make_fixed_column(data: bytes, node: Fixed) -> Column:
    """Return the column of ``size`` bytes per value, or of vectors."""
    values = bytearray()

    def finish(slots: Slots) -> pa.Array:
        offsets = slots.offsets(array("i", range(0, len(values) + 1, node.size)))
        column = pa.Array.from_buffers(pa.binary(), slots.rows, [slots.bitmap(), offsets, pa.py_buffer(values)])
        return column if node.vector is None else node.vector.to_lists(column)

    return Column(_make_bytes_step(data, node.size, values), finish)


def make_text_column(data: bytes, arrow: pa.DataType) -> Column:
    """Return the column of strings or bytes: a length, then the bytes."""
    ends = array("i", (0,))
    values = bytearray()
    append, extend = ends.append, values.extend

    def step(pos: int, end: int) -> int:
        byte = data[pos]
        start = pos + 1
        stop = start + (byte >> 1)
        if byte >= 0x80 or byte & 1 or stop > end:  # read_span reads longer lengths and refuses invalid ones
            start, stop = read_span(data, pos, end)
        extend(data[start:stop])
        append(len(values))
        return stop

    return Column(step, lambda slots: make_text_array(slots, arrow, ends, values))


def make_text_array(slots: Slots, arrow: pa.DataType, ends: array[int], values: bytearray) -> pa.Array:
    """Return an array of strings or bytes from their ends and all their bytes.

    Raises CorruptFileError if a string is not UTF-8.
    """
    texts = pa.Array.from_buffers(arrow, slots.rows, [slots.bitmap(), slots.offsets(ends), pa.py_buffer(values)])
    return texts if values.isascii() else _check_values(texts)


def make_fixed_decimal_column(data: bytes, node: Decimal) -> Column:
    """Return the column of decimals stored as fixed: big-endian two's complement; bytes beyond 16 repeat the sign."""
    size = node.min_size
    values = bytearray()

    def finish(slots: Slots) -> pa.Array:
        digits = np.frombuffer(values, np.uint8).reshape(-1, size)[:, ::-1]
        words = np.empty((len(digits), DECIMAL_BYTES), np.uint8)
        words[:] = np.where(digits[:, -1:] >= 0x80, np.uint8(0xFF), np.uint8(0))
        words[:, : min(size, DECIMAL_BYTES)] = digits[:, :DECIMAL_BYTES]
        sign = np.where(words[:, -1:] >= 0x80, np.uint8(0xFF), np.uint8(0))
        if not (digits[:, DECIMAL_BYTES:] == sign).all():
            raise CorruptFileError("An Avro decimal has more digits than its type.")
        return _check_values(make_number_array(slots, to_arrow_type(node), words))

    return Column(_make_bytes_step(data, size, values), finish)


def make_bytes_decimal_column(data: bytes, node: Decimal) -> Column:
    """Return the column of decimals stored as bytes: big-endian two's complement of at least one byte."""
    values = bytearray()

    def step(pos: int, end: int) -> int:
        start, stop = read_span(data, pos, end)
        if start == stop:
            raise CorruptFileError("An Avro decimal has no bytes.", offset=pos)
        number = int.from_bytes(data[start:stop], "big", signed=True)
        values.extend(number.to_bytes(DECIMAL_BYTES, "little", signed=True))
        return stop

    def finish(slots: Slots) -> pa.Array:
        words = np.frombuffer(values, np.uint8).reshape(-1, DECIMAL_BYTES)
        return _check_values(make_number_array(slots, to_arrow_type(node), words))

    return Column(step, finish)
