"""Columns of unions of null and one simple type, which most columns of Hudi tables are.

``avro_columns`` could build them from a column of the type and one of nulls. One step for both takes half the Python
calls, which are the cost of a block with few records.
"""

from __future__ import annotations

from array import array

import numpy as np
import pyarrow as pa

from hoodie_py.formats.avro_bytes import make_branch_error, read_span, read_varint
from hoodie_py.formats.avro_schema import Primitive
from hoodie_py.formats.avro_types import to_arrow_type
from hoodie_py.formats.avro_values import REALS, Column, Slots, make_integer_array, make_number_array, make_text_array

_BRANCHES = 2  # the encoded numbers of both branches together


def make_optional_column(data: bytes, node: Primitive, null_byte: int) -> Column | None:
    """Make the column of a union of null and a primitive type; None for a type that is not read here.

    Args:
        data: what is read.
        node: the type that is not null.
        null_byte: the encoded number of the null branch, 0 or 2.
    """
    kind = node.kind
    if kind in ("string", "bytes"):
        return _make_text(data, to_arrow_type(node), null_byte)
    if kind in ("int", "long"):
        return _make_integer(data, node, null_byte)
    return _make_real(data, kind, null_byte) if kind in REALS else None


def _narrow_slots(slots: Slots, valid: bytearray) -> Slots:
    return slots.narrow(np.frombuffer(valid, np.bool_)) if 0 in valid else slots


def _make_text(data: bytes, arrow: pa.DataType, null_byte: int) -> Column:
    valid, ends, values = bytearray(), array("i", (0,)), bytearray()
    tell, append, extend = valid.append, ends.append, values.extend
    value_byte = _BRANCHES - null_byte

    def step(pos: int, end: int) -> int:
        byte = data[pos]
        if byte != value_byte:
            return _step_over_null(data, pos, null_byte, valid)
        tell(1)
        byte = data[pos + 1]
        start = pos + 2
        stop = start + (byte >> 1)
        if byte >= 0x80 or byte & 1 or stop > end:  # longer, negative or too long: the full reading
            start, stop = read_span(data, pos + 1, end)
        extend(data[start:stop])
        append(len(values))
        return stop

    return Column(step, lambda slots: make_text_array(_narrow_slots(slots, valid), arrow, ends, values))


def _make_integer(data: bytes, node: Primitive, null_byte: int) -> Column:
    valid, values = bytearray(), array("i" if node.kind == "int" else "q")
    tell, append = valid.append, values.append
    value_byte = _BRANCHES - null_byte

    def step(pos: int, _: int) -> int:
        byte = data[pos]
        if byte != value_byte:
            return _step_over_null(data, pos, null_byte, valid)
        tell(1)
        byte = data[pos + 1]
        if byte < 0x80:
            append((byte >> 1) ^ -(byte & 1))
            return pos + 2
        value, pos = read_varint(data, pos + 1)
        append(value)
        return pos

    return Column(step, lambda slots: make_integer_array(_narrow_slots(slots, valid), node, values))


def _make_real(data: bytes, kind: str, null_byte: int) -> Column:
    dtype, arrow = REALS[kind]
    valid, values = bytearray(), bytearray()
    tell, extend = valid.append, values.extend
    value_byte, size = _BRANCHES - null_byte, 1 + int(arrow.bit_width) // 8

    def step(pos: int, _: int) -> int:
        if data[pos] != value_byte:
            return _step_over_null(data, pos, null_byte, valid)
        tell(1)
        stop = pos + size
        extend(data[pos + 1 : stop])
        return stop

    return Column(
        step, lambda slots: make_number_array(_narrow_slots(slots, valid), arrow, np.frombuffer(values, dtype))
    )


def _step_over_null(data: bytes, pos: int, null_byte: int, valid: bytearray) -> int:
    """Step over a branch that is not the value's: null, or none."""
    if data[pos] != null_byte:
        raise make_branch_error(read_varint(data, pos)[0], pos)
    valid.append(0)
    return pos + 1
