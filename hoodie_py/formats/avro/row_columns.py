"""Columns that the row decoder fills record by record: nested types, and the choice of a column by type.

``row_values`` has the single values. Memory stays in proportion to the bytes read. Two things take memory without
bytes: the fields of null structs, and the symbols of enums. They are charged to a budget before they are allocated.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, from_texts
from hoodie_py.arrow.compute import call, cast, take
from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.avro.arrow_types import find_wider_type, to_arrow_type
from hoodie_py.formats.avro.binary import Step, make_branch_error, read_count, read_span, read_varint
from hoodie_py.formats.avro.row_values import (
    REALS,
    Column,
    Slots,
    make_bytes_decimal_column,
    make_fixed_column,
    make_fixed_decimal_column,
    make_integer_array,
    make_integer_step,
    make_number_array,
    make_primitive_column,
    make_text_array,
    make_text_column,
)
from hoodie_py.formats.avro.schema import Array, AvroType, Decimal, Enum, Fixed, Map, Primitive, Record, Union, is_null

_CELLS_PER_BYTE = 4
_FREE_CELLS = 1 << 22
_CELL_BYTES = 16
_BRANCHES = 2  # the encoded numbers of both branches together


class ColumnBuilder:
    """Makes columns that read the same data, and holds their common budget."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._cells = max(_FREE_CELLS, _CELLS_PER_BYTE * len(data))

    def make_column(self, node: AvroType) -> Column:
        """Make an empty column of a type."""
        return self._MAKERS[type(node)](self, node)

    def _make_primitive(self, node: Primitive) -> Column:
        return make_primitive_column(self._data, node)

    def _make_decimal(self, node: Decimal) -> Column:
        return (make_bytes_decimal_column if node.size is None else make_fixed_decimal_column)(self._data, node)

    def _make_fixed(self, node: Fixed) -> Column:
        return make_fixed_column(self._data, node)

    def _charge(self, cells: int) -> None:
        """Take cells without bytes from the budget. Raises UnsupportedFeatureError if it is used up."""
        self._cells -= cells
        if self._cells < 0:
            raise UnsupportedFeatureError("The Avro records unfold to far more values than they have bytes.")

    def _make_enum(self, node: Enum) -> Column:
        numbers = array("q")
        symbols = from_texts(node.symbols, pa.string())
        longest = max(len(symbol.encode()) for symbol in node.symbols)

        def finish(slots: Slots) -> pa.Array:
            chosen = np.asarray(numbers)
            if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(symbols):
                raise CorruptFileError("An Avro enum value is none of the symbols.")
            self._charge(len(chosen) * (longest // _CELL_BYTES))
            missing = None if slots.mask is None else ~slots.mask
            return take(symbols, from_numpy(slots.place(chosen), missing))

        return Column(make_integer_step(self._data, numbers), finish)

    def _make_record(self, node: Record) -> Column:
        columns = [self.make_column(field.type) for field in node.fields]
        steps = [column.step for column, field in zip(columns, node.fields, strict=True) if field.type.min_size]
        struct_type = to_arrow_type(node)

        def step(pos: int, end: int) -> int:
            for read in steps:
                pos = read(pos, end)
            return pos

        def finish(slots: Slots) -> pa.Array:
            children = [column.array(slots) for column in columns]
            return pa.Array.from_buffers(struct_type, slots.rows, [slots.bitmap()], children=children)

        return Column(step, finish)

    def _make_array(self, node: Array) -> Column:
        items = self.make_column(node.items)
        ends = array("i", (0,))
        list_type = to_arrow_type(node)

        def finish(slots: Slots) -> pa.Array:
            children = [items.array(Slots(ends[-1]))]
            return pa.Array.from_buffers(
                list_type, slots.rows, [slots.bitmap(), slots.offsets(ends)], children=children
            )

        return Column(_make_blocks_step(self._data, node.items.min_size, items.step, ends), finish)

    def _make_map(self, node: Map) -> Column:
        keys = make_text_column(self._data, pa.string())
        values = self.make_column(node.values)
        ends = array("i", (0,))
        map_type = to_arrow_type(node)
        entry_type = pa.struct([map_type.key_field, map_type.item_field])
        read_key, read_value = keys.step, values.step

        def read_entry(pos: int, end: int) -> int:
            return read_value(read_key(pos, end), end)

        def finish(slots: Slots) -> pa.Array:
            inner = Slots(ends[-1])
            children = [keys.array(inner), values.array(inner)]
            entries = pa.Array.from_buffers(entry_type, inner.rows, [None], children=children)
            buffers = [slots.bitmap(), slots.offsets(ends)]
            return pa.Array.from_buffers(map_type, slots.rows, buffers, children=[entries])

        return Column(_make_blocks_step(self._data, 1 + node.values.min_size, read_entry, ends), finish)

    def _make_union(self, node: Union) -> Column:
        members = node.members
        if len(node.branches) == 1:
            inner = self.make_column(members[0])
            return Column(_make_union_step(self._data, [inner.step], bytearray()), inner.array)
        if len(members) == 1 and len(node.branches) == 2:
            return self._make_nullable(node, members[0])
        return self._make_general_union(node)

    def _make_nullable(self, node: Union, member: AvroType) -> Column:
        null_byte = 2 if node.branches[0] is member else 0
        if (
            isinstance(member, Primitive)
            and (simple := make_optional_column(self._data, member, null_byte)) is not None
        ):
            return simple
        inner = self.make_column(member)
        valid = bytearray()

        def finish(slots: Slots) -> pa.Array:
            nulls = valid.count(0)
            if not nulls:
                return inner.array(slots)
            self._charge((member.width - 1) * nulls)
            return inner.array(slots.narrow(np.frombuffer(valid, np.bool_)))

        return Column(_make_nullable_step(self._data, null_byte, inner.step, valid), finish)

    def _make_general_union(self, node: Union) -> Column:
        columns = [self.make_column(branch) for branch in node.branches]
        chosen = array("H")
        step = _make_union_step(self._data, [column.step for column in columns], chosen)
        union_type = to_arrow_type(node)
        wide = find_wider_type(node.members)

        def finish(slots: Slots) -> pa.Array:
            branches = np.asarray(chosen)
            self._charge(node.width * len(branches))
            present = np.ones(len(branches), np.bool_)
            members: list[pa.Array] = []
            for number, (column, branch) in enumerate(zip(columns, node.branches, strict=True)):
                if is_null(branch):
                    present &= branches != number
                else:
                    members.append(column.array(slots.narrow(branches == number)))
            if wide is not None:
                return call("coalesce", *(cast(member, wide) for member in members))
            if len(members) == 1:
                return members[0]
            return pa.Array.from_buffers(union_type, slots.rows, [slots.narrow(present).bitmap()], children=members)

        return Column(step, finish)

    _MAKERS: ClassVar[dict[type[AvroType], Callable[[ColumnBuilder, Any], Column]]] = {
        Primitive: _make_primitive,
        Decimal: _make_decimal,
        Fixed: _make_fixed,
        Enum: _make_enum,
        Array: _make_array,
        Map: _make_map,
        Record: _make_record,
        Union: _make_union,
    }


def _make_nullable_step(data: bytes, null_byte: int, inner: Step, valid: bytearray) -> Step:
    """Return the step over a union of null and another type; ``null_byte`` is the encoded number of the null branch."""
    append = valid.append
    value_byte = 2 - null_byte

    def step(pos: int, end: int) -> int:
        byte = data[pos]
        if byte == value_byte:
            append(1)
            return inner(pos + 1, end)
        if byte != null_byte:
            raise make_branch_error(read_varint(data, pos)[0], pos)
        append(0)
        return pos + 1

    return step


def _make_union_step(data: bytes, steps: list[Step], chosen: array[int] | bytearray) -> Step:
    append = chosen.append
    count = len(steps)

    def step(pos: int, end: int) -> int:
        branch, start = read_varint(data, pos)
        if not 0 <= branch < count:
            raise make_branch_error(branch, pos)
        append(branch)
        return steps[branch](start, end)

    return step


def _make_blocks_step(data: bytes, min_size: int, item: Step, ends: array[int]) -> Step:
    """Return the step over the blocks of an array or map, each with its count, up to the empty one."""
    append = ends.append

    def step(pos: int, end: int) -> int:
        total = ends[-1]
        while True:
            count, pos = read_count(data, pos, end, min_size)
            if count == 0:
                append(total)
                return pos
            for _ in range(count):
                pos = item(pos, end)
            total += count

    return step


def make_optional_column(data: bytes, node: Primitive, null_byte: int) -> Column | None:
    """Return the column of a union of null and a primitive type; None if the type has no such column.

    Most columns of Hudi tables are such unions. They could consist of a column of the type and one of nulls, but one
    step for both takes half the Python calls, which dominate for blocks of few records. ``null_byte`` is the encoded
    number of the null branch, 0 or 2.
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
        if byte >= 0x80 or byte & 1 or stop > end:  # read_span reads longer lengths and refuses invalid ones
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
    """Step over a null; raise an error for any other branch."""
    if data[pos] != null_byte:
        raise make_branch_error(read_varint(data, pos)[0], pos)
    valid.append(0)
    return pos + 1
