"""Decodes Avro blocks one value after the other into Python objects: what the columnar decoder must give."""

from __future__ import annotations

import struct
from collections.abc import Collection
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa

from hoodie_py.arrow.arrays import make_batch_without_columns
from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.arrow_types import MICROS_PER_MILLI, MILLIS, find_wider_type
from hoodie_py.formats.avro.binary import make_skip_step, read_count, read_span, read_varint
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.schema import Array, AvroType, Decimal, Enum, Fixed, Map, Primitive, Record, Union, is_null

REALS = {"float": "<f", "double": "<d"}


def decode_one_by_one(content: bytes, schema: AvroSchema, names: Collection[str] | None = None) -> pa.RecordBatch:
    """Decode the content of a block. Raises CorruptFileError for whatever is wrong, without saying where."""
    count = struct.unpack_from(">i", content, 4)[0]
    wanted = [field for field in schema.record.fields if names is None or field.name in names]
    lists: dict[str, list[Any]] = {field.name: [] for field in wanted}
    pos = 8
    try:
        for _ in range(count):
            (length,) = struct.unpack_from(">i", content, pos)
            pos += 4
            end = pos + length
            check(length >= 0 and end <= len(content))
            for field in schema.record.fields:
                if field.name in lists:
                    value, pos = read(field.type, content, pos, end)
                    lists[field.name].append(value)
                else:
                    pos = make_skip_step(content, field.type)(pos, end)
            check(pos == end)
        check(pos == len(content))
        arrays = [pa.array(lists[field.name], schema.arrow.field(field.name).type) for field in wanted]
    except (IndexError, struct.error, UnicodeDecodeError, pa.ArrowInvalid, OverflowError) as error:
        raise CorruptFileError(str(error)) from None
    if not arrays:
        return make_batch_without_columns(count)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([schema.arrow.field(field.name) for field in wanted]))


def check(right: bool) -> None:
    if not right:
        raise CorruptFileError("damaged")


def read(node: AvroType, data: bytes, pos: int, end: int) -> tuple[Any, int]:
    """Return a value as Arrow takes it, and the position after it."""
    match node:
        case Primitive():
            return read_primitive(node, data, pos, end)
        case Decimal():
            start, stop = read_span(data, pos, end) if node.size is None else (pos, pos + node.size)
            check(start < stop <= len(data))
            digits = int.from_bytes(data[start:stop], "big", signed=True)
            check(abs(digits) < 10**node.precision)
            return Number(f"{digits}e-{node.scale}"), stop
        case Fixed():
            raw = data[pos : pos + node.size]
            check(len(raw) == node.size)
            vectors = None if node.vector is None else node.vector.to_lists(pa.array([raw], pa.binary()))
            return raw if vectors is None else vectors[0].as_py(), pos + node.size
        case Enum():
            number, pos = read_varint(data, pos)
            check(0 <= number < len(node.symbols))
            return node.symbols[number], pos
        case Array():
            return read_items(node.items, None, data, pos, end)
        case Map():
            return read_items(node.values, Primitive(1, 1, "string"), data, pos, end)
        case Record():
            values = {}
            for field in node.fields:
                values[field.name], pos = read(field.type, data, pos, end)
            return values, pos
        case Union():
            number, pos = read_varint(data, pos)
            check(0 <= number < len(node.branches))
            branch = node.branches[number]
            value, pos = read(branch, data, pos, end)
            if is_null(branch) or len(node.members) == 1 or find_wider_type(node.members):
                return value, pos
            return {f"member{node.members.index(branch)}": value}, pos
    raise TypeError(node)


def read_primitive(node: Primitive, data: bytes, pos: int, end: int) -> tuple[Any, int]:
    if node.kind == "null":
        return None, pos
    if node.kind == "boolean":
        check(data[pos] < 2)
        return bool(data[pos]), pos + 1
    if node.kind in ("int", "long"):
        value, pos = read_varint(data, pos)
        check(node.kind == "long" or -(2**31) <= value < 2**31)
        value = value * MICROS_PER_MILLI if node.logical in MILLIS else value
        check(-(2**63) <= value < 2**63)
        return value, pos
    if node.kind in REALS:
        form = REALS[node.kind]
        return struct.unpack_from(form, data, pos)[0], pos + struct.calcsize(form)
    start, stop = read_span(data, pos, end)
    return data[start:stop].decode() if node.kind == "string" else data[start:stop], stop


def read_items(node: AvroType, key: Primitive | None, data: bytes, pos: int, end: int) -> tuple[list[Any], int]:
    """Read the blocks of an array, or the pairs of a map."""
    items: list[Any] = []
    while True:
        count, pos = read_count(data, pos, end, node.min_size + (key is not None))
        if count == 0:
            return items, pos
        for _ in range(count):
            name, pos = (None, pos) if key is None else read(key, data, pos, end)
            value, pos = read(node, data, pos, end)
            items.append(value if key is None else (name, value))
