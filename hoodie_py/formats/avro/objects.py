"""Read one Avro value as Python objects, for files of the timeline, which contain one record.

Records become dicts, arrays lists, maps dicts; enums their symbols; bytes, fixed and decimals bytes. Logical types are
ignored: records of the timeline have none. A reader, like the steps of ``binary``, takes the position where the value
starts and the end of the data. It returns the value and the position after it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.binary import make_branch_error, read_count, read_span, read_varint
from hoodie_py.formats.avro.schema import Array, AvroType, Decimal, Enum, Fixed, Map, Primitive, Record, Union, is_null

Reader = Callable[[int, int], tuple[Any, int]]
Charge = Callable[[int], None]

_ONE_BYTE = 0x80
_REALS = {"float": struct.Struct("<f"), "double": struct.Struct("<d")}
_INTS = 1 << 31


def make_object_reader(data: bytes, node: AvroType, charge: Charge) -> Reader:
    """Return the reader of a value of a type.

    ``charge`` is called with the item count of every block of an array or map, and may raise to stop reading. The
    reader raises CorruptFileError for bytes that do not fit the type, and IndexError past the end of the data.
    """
    match node:
        case Primitive():
            return _make_primitive(data, node.kind)
        case Enum():
            return _make_enum(data, node.symbols)
        case Fixed() | Decimal(size=int()):
            return _make_fixed(data, node.min_size)
        case Decimal():
            return _make_bytes(data)
        case Array():
            return _make_array(data, node.items.min_size, make_object_reader(data, node.items, charge), charge)
        case Map():
            return _make_map(data, 1 + node.values.min_size, make_object_reader(data, node.values, charge), charge)
        case Record():
            return _make_record([(field.name, make_object_reader(data, field.type, charge)) for field in node.fields])
        case Union():
            return _make_union(data, node, charge)
    raise TypeError(type(node).__name__)


def _make_primitive(data: bytes, kind: str) -> Reader:
    match kind:
        case "null":
            return lambda pos, _: (None, pos)
        case "boolean":
            return _make_boolean(data)
        case "int":
            return _make_int(data)
        case "long":
            return _make_long(data)
        case "float" | "double":
            return _make_real(data, _REALS[kind])
        case "string":
            return _make_string(data)
    return _make_bytes(data)


def _make_boolean(data: bytes) -> Reader:
    def read(pos: int, _: int) -> tuple[bool, int]:
        byte = data[pos]
        if byte > 1:
            raise CorruptFileError(f"An Avro boolean cannot be {byte}.", offset=pos)
        return byte == 1, pos + 1

    return read


def _make_long(data: bytes) -> Reader:
    def read(pos: int, _: int) -> tuple[int, int]:
        byte = data[pos]
        if byte < _ONE_BYTE:
            return (byte >> 1) ^ -(byte & 1), pos + 1
        return read_varint(data, pos)

    return read


def _make_int(data: bytes) -> Reader:
    def read(pos: int, _: int) -> tuple[int, int]:
        value, stop = read_varint(data, pos)
        if not -_INTS <= value < _INTS:
            raise CorruptFileError("An Avro int has more than 32 bits.", offset=pos)
        return value, stop

    return read


def _make_real(data: bytes, form: struct.Struct) -> Reader:
    def read(pos: int, end: int) -> tuple[float, int]:
        if pos + form.size > end:
            raise CorruptFileError("An Avro number is cut short.", offset=pos)
        value: float = form.unpack_from(data, pos)[0]
        return value, pos + form.size

    return read


def _make_bytes(data: bytes) -> Reader:
    def read(pos: int, end: int) -> tuple[bytes, int]:
        start, stop = read_span(data, pos, end)
        return data[start:stop], stop

    return read


def _make_string(data: bytes) -> Reader:
    def read(pos: int, end: int) -> tuple[str, int]:
        byte = data[pos]
        start = pos + 1
        stop = start + (byte >> 1)
        if byte >= _ONE_BYTE or byte & 1 or stop > end:  # read_span reads longer lengths and refuses invalid ones
            start, stop = read_span(data, pos, end)
        try:
            return data[start:stop].decode(), stop
        except UnicodeDecodeError:
            raise CorruptFileError("An Avro string is not UTF-8.", offset=pos) from None

    return read


def _make_fixed(data: bytes, size: int) -> Reader:
    def read(pos: int, end: int) -> tuple[bytes, int]:
        if pos + size > end:
            raise CorruptFileError("An Avro fixed value is cut short.", offset=pos)
        return data[pos : pos + size], pos + size

    return read


def _make_enum(data: bytes, symbols: tuple[str, ...]) -> Reader:
    def read(pos: int, _: int) -> tuple[str, int]:
        number, stop = read_varint(data, pos)
        if not 0 <= number < len(symbols):
            raise CorruptFileError(f"An Avro enum has no symbol {number}.", offset=pos)
        return symbols[number], stop

    return read


def _make_record(fields: list[tuple[str, Reader]]) -> Reader:
    def read(pos: int, end: int) -> tuple[dict[str, Any], int]:
        values = {}
        for name, field in fields:
            values[name], pos = field(pos, end)
        return values, pos

    return read


def _make_union(data: bytes, node: Union, charge: Charge) -> Reader:
    branches = [None if is_null(branch) else make_object_reader(data, branch, charge) for branch in node.branches]
    count = len(branches)

    def read(pos: int, end: int) -> tuple[Any, int]:
        byte = data[pos]
        if byte >= _ONE_BYTE or byte & 1 or byte >> 1 >= count:  # a longer number, or an invalid one
            number, start = read_varint(data, pos)
            if not 0 <= number < count:
                raise make_branch_error(number, pos)
        else:
            number, start = byte >> 1, pos + 1
        branch = branches[number]
        return (None, start) if branch is None else branch(start, end)

    return read


def _make_array(data: bytes, min_size: int, item: Reader, charge: Charge) -> Reader:
    def read(pos: int, end: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            count, pos = read_count(data, pos, end, min_size)
            if count == 0:
                return items, pos
            charge(count)
            for _ in range(count):
                value, pos = item(pos, end)
                items.append(value)

    return read


def _make_map(data: bytes, min_size: int, value: Reader, charge: Charge) -> Reader:
    key = _make_string(data)

    def read_entry(pos: int, end: int) -> tuple[tuple[str, Any], int]:
        name, pos = key(pos, end)
        found, pos = value(pos, end)
        return (name, found), pos

    entries = _make_array(data, min_size, read_entry, charge)

    def read(pos: int, end: int) -> tuple[dict[str, Any], int]:
        found, pos = entries(pos, end)
        return dict(found), pos

    return read
