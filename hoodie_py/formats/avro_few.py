"""Decoding a few records: values as plain Python objects, and arrays made of them.

What the exact decoder (``avro_rows``) and the one for many records (``avro_lanes``) make for each block costs more than
a few records do. Here everything that depends on the schema alone is made once. Whatever is not plainly right raises
``Misfit``, and the exact decoder, which knows how to say what is wrong and where, reads the block instead.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any, NamedTuple

import pyarrow as pa

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro_bytes import read_varint
from hoodie_py.formats.avro_schema import (
    Array,
    AvroType,
    Decimal,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Union,
    is_null,
)
from hoodie_py.formats.avro_types import MICROS_PER_MILLI, MILLIS, to_arrow_schema, to_arrow_type

MOST_BYTES = 1 << 16  # of a block: items of arrays may unfold to so many times ``_WIDEST_ITEM`` values

_WIDEST_ITEM = 16
_DECIMAL_BYTES = 16
_LENGTH = struct.Struct(">i")

Read = Callable[[bytes, int, int], tuple[Any, int]]
"""Takes the data, where a value starts and where its record ends; returns the value and the place behind it."""
Make = Callable[[Sequence[Any]], pa.Array]
"""Makes an array of values, None for null."""


class Misfit(Exception):
    """The data is damaged, or of a rare form that only the exact decoder reads."""


class _UnfitType(Exception):
    """A type that is left to the exact decoder."""


class _Values(NamedTuple):
    read: Read
    make: Make


class _Plan(NamedTuple):
    columns: tuple[tuple[_Values, bool], ...]
    schema: pa.Schema


def decode_few(
    data: bytes, start: int, count: int, record: Record, names: frozenset[str] | None
) -> pa.RecordBatch | None:
    """Decode records; None where only the exact decoder can, or may say what is wrong.

    Args:
        data: the whole content of a block, at most ``MOST_BYTES``.
        start: where the first record's length is.
        count: how many records there are, at least one; they fill the rest of the data.
        record: their type.
        names: columns to decode, None for all.
    """
    plan = _plan(record, names)
    if plan is None:
        return None
    try:
        rows = list(_records(data, start, count, [column.read for column, _ in plan.columns]))
        columns = zip(zip(*rows, strict=True), plan.columns, strict=True)
        arrays = [column.make(values) for values, (column, wanted) in columns if wanted]
    except (Misfit, CorruptFileError, IndexError, OverflowError, struct.error, pa.ArrowInvalid):
        return None
    return pa.RecordBatch.from_arrays(arrays, schema=plan.schema) if arrays else None


@lru_cache(maxsize=64)
def _plan(record: Record, names: frozenset[str] | None) -> _Plan | None:
    try:
        values = [_values_of(field.type) for field in record.fields]
    except _UnfitType:
        return None
    wanted = [names is None or field.name in names for field in record.fields]
    fields = [field for field, want in zip(to_arrow_schema(record), wanted, strict=True) if want]
    return _Plan(tuple(zip(values, wanted, strict=True)), pa.schema(fields))


def _records(data: bytes, pos: int, count: int, reads: Sequence[Read]) -> Any:
    size = len(data)
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(data, pos)
        pos += _LENGTH.size
        end = pos + length
        if length < 0 or end > size:
            raise Misfit
        row = []
        for read in reads:
            value, pos = read(data, pos, end)
            row.append(value)
        if pos != end:
            raise Misfit
        yield row
    if pos != size:
        raise Misfit


def _values_of(node: AvroType) -> _Values:
    match node:
        case Primitive():
            return _primitive(node)
        case Decimal():
            return _Values(_decimal_reader(node), _decimal_maker(node))
        case Fixed():
            return _Values(_bytes_reader(node.size), _text_maker(pa.binary()))
        case Enum():
            return _Values(_enum_reader(node), _text_maker(pa.string()))
        case Record():
            return _record(node)
        case Array():
            return _array(node)
        case Map():
            return _map(node)
        case Union() if len(node.branches) == 2 and len(node.members) == 1:
            return _nullable(node)
    raise _UnfitType


def _primitive(node: Primitive) -> _Values:
    arrow = to_arrow_type(node)
    match node.kind:
        case "null":
            return _Values(lambda _, pos, __: (None, pos), lambda values: pa.nulls(len(values)))
        case "boolean":
            return _Values(_read_boolean, _make_booleans)
        case "int" | "long":
            scale = MICROS_PER_MILLI if node.logical in MILLIS else 1
            return _Values(_read_integer, _integer_maker(arrow, "i" if node.kind == "int" else "q", scale))
        case "float":
            return _Values(_bytes_reader(4), _bytes_maker(arrow, 4))
        case "double":
            return _Values(_bytes_reader(8), _bytes_maker(arrow, 8))
    return _Values(_read_text, _text_maker(arrow))


def _read_boolean(data: bytes, pos: int, _: int) -> tuple[bool, int]:
    byte = data[pos]
    if byte > 1:
        raise Misfit
    return byte == 1, pos + 1


def _read_integer(data: bytes, pos: int, _: int) -> tuple[int, int]:
    byte = data[pos]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), pos + 1
    return read_varint(data, pos)


def _read_text(data: bytes, pos: int, end: int) -> tuple[bytes, int]:
    byte = data[pos]
    if byte < 0x80:
        length, start = (byte >> 1) ^ -(byte & 1), pos + 1
    else:
        length, start = read_varint(data, pos)
    stop = start + length
    if length < 0 or stop > end:
        raise Misfit
    return data[start:stop], stop


def _bytes_reader(size: int) -> Read:
    def read(data: bytes, pos: int, end: int) -> tuple[bytes, int]:
        stop = pos + size
        if stop > end:
            raise Misfit
        return data[pos:stop], stop

    return read


def _decimal_reader(node: Decimal) -> Read:
    raw = _read_text if node.size is None else _bytes_reader(node.size)
    limit = 10**node.precision

    def read(data: bytes, pos: int, end: int) -> tuple[bytes, int]:
        digits, pos = raw(data, pos, end)
        number = int.from_bytes(digits, "big", signed=True)
        if not digits or not -limit < number < limit:
            raise Misfit
        return number.to_bytes(_DECIMAL_BYTES, "little", signed=True), pos

    return read


def _decimal_maker(node: Decimal) -> Make:
    return _bytes_maker(to_arrow_type(node), _DECIMAL_BYTES)


def _enum_reader(node: Enum) -> Read:
    symbols = [symbol.encode() for symbol in node.symbols]

    def read(data: bytes, pos: int, end: int) -> tuple[bytes, int]:
        number, pos = _read_integer(data, pos, end)
        if number < 0:
            raise Misfit
        return symbols[number], pos

    return read


def _record(node: Record) -> _Values:
    fields = [_values_of(field.type) for field in node.fields]
    reads = [each.read for each in fields]
    absent = (None,) * len(fields)
    arrow = to_arrow_type(node)

    def read(data: bytes, pos: int, end: int) -> tuple[list[Any], int]:
        values = []
        for each in reads:
            value, pos = each(data, pos, end)
            values.append(value)
        return values, pos

    def make(values: Sequence[Any]) -> pa.Array:
        rows = [absent if value is None else value for value in values]
        columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
        children = [each.make(column) for each, column in zip(fields, columns, strict=True)]
        return pa.Array.from_buffers(arrow, len(values), [_validity(values)], children=children)

    return _Values(read, make)


def _array(node: Array) -> _Values:
    items = _values_of(node.items)
    _check_width(node.items)
    return _Values(_items_reader(items.read, node.items.min_size), _list_maker(to_arrow_type(node), items.make))


def _map(node: Map) -> _Values:
    values = _values_of(node.values)
    _check_width(node.values)
    map_type = to_arrow_type(node)
    entry_type = pa.struct([map_type.key_field, map_type.item_field])
    make_keys = _text_maker(pa.string())

    def read(data: bytes, pos: int, end: int) -> tuple[tuple[bytes, Any], int]:
        key, pos = _read_text(data, pos, end)
        value, pos = values.read(data, pos, end)
        return (key, value), pos

    def make(entries: Sequence[Any]) -> pa.Array:
        children = [make_keys([key for key, _ in entries]), values.make([value for _, value in entries])]
        return pa.Array.from_buffers(entry_type, len(entries), [None], children=children)

    return _Values(_items_reader(read, 1 + node.values.min_size), _list_maker(map_type, make))


def _check_width(item: AvroType) -> None:
    if item.width > _WIDEST_ITEM:
        raise _UnfitType


def _items_reader(item: Read, min_size: int) -> Read:
    """Read the blocks of an array or map, up to the empty one."""

    def read(data: bytes, pos: int, end: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            count, pos = _read_integer(data, pos, end)
            if count <= 0:
                if count:  # the bytes of the block follow: the exact decoder knows about these
                    raise Misfit
                return items, pos
            if count * min_size > end - pos:
                raise Misfit
            for _ in range(count):
                value, pos = item(data, pos, end)
                items.append(value)

    return read


def _nullable(node: Union) -> _Values:
    (member,) = node.members
    inner = _values_of(member)
    read_member = inner.read
    null_byte, value_byte = (2, 0) if is_null(node.branches[1]) else (0, 2)
    if read_member is _read_integer:
        return _Values(_nullable_integer_reader(null_byte, value_byte), inner.make)
    if read_member is _read_text:
        return _Values(_nullable_text_reader(null_byte, value_byte), inner.make)

    def read(data: bytes, pos: int, end: int) -> tuple[Any, int]:
        byte = data[pos]
        if byte == value_byte:
            return read_member(data, pos + 1, end)
        if byte != null_byte:
            raise Misfit
        return None, pos + 1

    return _Values(read, inner.make)


def _nullable_integer_reader(null_byte: int, value_byte: int) -> Read:
    """Read what is frequent without a call more."""

    def read(data: bytes, pos: int, _: int) -> tuple[int | None, int]:
        byte = data[pos]
        if byte == value_byte:
            byte = data[pos + 1]
            return ((byte >> 1) ^ -(byte & 1), pos + 2) if byte < 0x80 else read_varint(data, pos + 1)
        if byte != null_byte:
            raise Misfit
        return None, pos + 1

    return read


def _nullable_text_reader(null_byte: int, value_byte: int) -> Read:
    """As ``_nullable_integer_reader``."""

    def read(data: bytes, pos: int, end: int) -> tuple[bytes | None, int]:
        byte = data[pos]
        if byte == value_byte:
            byte = data[pos + 1]
            start = pos + 2
            stop = start + (byte >> 1)
            if byte >= 0x80 or byte & 1 or stop > end:
                return _read_text(data, pos + 1, end)
            return data[start:stop], stop
        if byte != null_byte:
            raise Misfit
        return None, pos + 1

    return read


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    """Make Arrow's validity bitmap; None where no value is null."""
    valid = [value is not None for value in values]
    return None if all(valid) else _bitmap(valid)


def _bitmap(bits: Sequence[Any]) -> pa.Buffer:
    packed = sum(1 << at for at, bit in enumerate(bits) if bit)
    return pa.py_buffer(packed.to_bytes((len(bits) + 7) // 8, "little"))


def _make_booleans(values: Sequence[Any]) -> pa.Array:
    return pa.Array.from_buffers(pa.bool_(), len(values), [_validity(values), _bitmap(values)])


def _integer_maker(arrow: pa.DataType, code: str, scale: int) -> Make:
    def make(values: Sequence[Any]) -> pa.Array:
        valid = _validity(values)
        numbers = values if valid is None else [value or 0 for value in values]
        if scale != 1:
            numbers = [number * scale for number in numbers]
        return pa.Array.from_buffers(arrow, len(values), [valid, pa.py_buffer(array(code, numbers))])

    return make


def _bytes_maker(arrow: pa.DataType, size: int) -> Make:
    nothing = bytes(size)

    def make(values: Sequence[Any]) -> pa.Array:
        valid = _validity(values)
        data = b"".join(values if valid is None else [value or nothing for value in values])
        return pa.Array.from_buffers(arrow, len(values), [valid, pa.py_buffer(data)])

    return make


def _text_maker(arrow: pa.DataType) -> Make:
    checked = arrow == pa.string()

    def make(values: Sequence[Any]) -> pa.Array:
        valid = _validity(values)
        pieces = values if valid is None else [value or b"" for value in values]
        data = b"".join(pieces)
        offsets = array("i", accumulate(map(len, pieces), initial=0))
        texts = pa.Array.from_buffers(arrow, len(values), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])
        if checked and not data.isascii():
            texts.validate(full=True)
        return texts

    return make


def _list_maker(arrow: pa.DataType, make_items: Make) -> Make:
    def make(values: Sequence[Any]) -> pa.Array:
        valid = _validity(values)
        lists = values if valid is None else [value or () for value in values]
        offsets = array("i", accumulate(map(len, lists), initial=0))
        children = [make_items(list(chain.from_iterable(lists)))]
        return pa.Array.from_buffers(arrow, len(values), [valid, pa.py_buffer(offsets)], children=children)

    return make
