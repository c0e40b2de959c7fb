"""Writes log blocks for tests: an encoder of its own, so that it shares no mistake with the readers."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any

import fastavro
import pyarrow as pa

from hoodie_py.formats.deletes.decoder import OrderingKind
from hoodie_py.formats.log.framing import BlockType, HeaderKey

MAGIC = b"#HUDI#"
DELETE_CLASS = "org.apache.hudi.common.model.DeleteRecord"
KEY_CLASS = "org.apache.hudi.common.model.HoodieKey"


def block(
    block_type: int,
    headers: Mapping[HeaderKey, str] | Mapping[int, str],
    content: bytes,
    *,
    version: int = 1,
    footers: int = 0,
) -> bytes:
    """One whole block; ``block_type`` and the header keys are numbers on disk or the enums."""
    body = struct.pack(">iii", version, block_type, len(headers))
    for key, text in headers.items():
        raw = text.encode()
        body += struct.pack(">ii", key, len(raw)) + raw
    body += struct.pack(">q", len(content)) + content + struct.pack(">i", footers)
    size = len(body) + 8
    return MAGIC + struct.pack(">q", size) + body + struct.pack(">q", size + 6)


def avro_data(schema_json: str | dict[str, Any], records: Iterable[Any], *, version: int = 3) -> bytes:
    """Content of an AVRO_DATA block. Records are what fastavro takes for the schema."""
    schema = fastavro.parse_schema(json.loads(schema_json) if isinstance(schema_json, str) else schema_json)
    encoded: list[bytes] = []
    for record in records:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, record)
        encoded.append(out.getvalue())
    return raw_data(encoded, version=version)


def raw_data(encoded: Sequence[bytes], *, version: int = 3) -> bytes:
    """Content of an AVRO_DATA block of records that are encoded already."""
    content = struct.pack(">ii", version, len(encoded))
    return content + b"".join(struct.pack(">i", len(record)) + record for record in encoded)


def data_block(
    instant: str, schema: str | dict[str, Any], records: Iterable[Any], headers: Mapping[HeaderKey, str] | None = None
) -> bytes:
    """A whole AVRO_DATA block."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    all_headers = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: text, **(headers or {})}
    return block(BlockType.AVRO_DATA, all_headers, avro_data(text, records))


def deletes(records: Iterable[tuple[str, str | None, Any]]) -> bytes:
    """Content of a DELETE block of version 3.

    Ordering values: None; (OrderingKind, value) with ARRAY holding a sequence of them; or a plain value, whose kind is
    then the obvious one (an int is INT where it fits in 32 bits and LONG elsewhere).
    """
    entries = list(records)
    payload = b"".join(_optional(key) + _optional(partition) + _ordering(value) for key, partition, value in entries)
    if entries:
        payload = varint(len(entries)) + payload
    return delete_content(3, payload + b"\0")


def delete_content(version: int, payload: bytes) -> bytes:
    """Content of a DELETE block with any payload."""
    return struct.pack(">ii", version, len(payload)) + payload


def delete_block(instant: str, records: Iterable[tuple[str, str | None, Any]]) -> bytes:
    """A whole DELETE block of version 3."""
    return block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, deletes(records))


def rollback(instant: str, target: str) -> bytes:
    """A whole COMMAND block that takes back the blocks of ``target``."""
    headers = {
        HeaderKey.INSTANT_TIME: instant,
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.COMMAND_BLOCK_TYPE: "0",
    }
    return block(BlockType.COMMAND, headers, b"")


def varint(value: int) -> bytes:
    """Avro's zig-zag integer."""
    return unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


def unsigned(value: int) -> bytes:
    """Seven bits a byte, lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(value: str) -> bytes:
    """Avro's string."""
    raw = value.encode()
    return varint(len(raw)) + raw


def _optional(value: str | None) -> bytes:
    return b"\0" if value is None else b"\2" + text(value)


_BRANCHES = {
    OrderingKind.NONE: 0,
    OrderingKind.BOOLEAN: 1,
    OrderingKind.INT: 2,
    OrderingKind.LONG: 3,
    OrderingKind.FLOAT: 4,
    OrderingKind.DOUBLE: 5,
    OrderingKind.BYTES: 6,
    OrderingKind.STRING: 7,
    OrderingKind.DATE: 8,
    OrderingKind.DECIMAL: 9,
    OrderingKind.TIME_MICROS: 10,
    OrderingKind.TIMESTAMP_MICROS: 11,
    OrderingKind.ARRAY: 12,
}


def _typed(value: Any) -> tuple[OrderingKind, Any]:
    match value:
        case None:
            return OrderingKind.NONE, None
        case (OrderingKind() as kind, inner):
            return kind, inner
        case bool():
            return OrderingKind.BOOLEAN, value
        case int():
            return (OrderingKind.INT if -(1 << 31) <= value < 1 << 31 else OrderingKind.LONG), value
        case float():
            return OrderingKind.DOUBLE, value
        case str():
            return OrderingKind.STRING, value
        case bytes():
            return OrderingKind.BYTES, value
        case Decimal():
            return OrderingKind.DECIMAL, value
        case _:
            return OrderingKind.ARRAY, value


def _ordering(value: Any) -> bytes:
    kind: OrderingKind
    inner: Any
    kind, inner = _typed(value)
    out = varint(_BRANCHES[kind])
    match kind:
        case OrderingKind.NONE:
            return out
        case OrderingKind.BOOLEAN:
            return out + bytes([inner])
        case OrderingKind.FLOAT:
            return out + struct.pack("<f", inner)
        case OrderingKind.DOUBLE:
            return out + struct.pack("<d", inner)
        case OrderingKind.BYTES:
            return out + varint(len(inner)) + bytes(inner)
        case OrderingKind.STRING:
            return out + text(inner)
        case OrderingKind.DECIMAL:
            unscaled = int(inner.scaleb(15))
            raw = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
            return out + varint(len(raw)) + raw
        case OrderingKind.ARRAY:
            items = b"".join(_ordering(item) for item in inner)
            return out + b"\2" + (varint(len(inner)) + items if inner else b"") + b"\0"
    return out + varint(inner)


class KryoWriter:
    """Kryo 4 streams of delete blocks of versions 1 and 2, with references to strings that were written before."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._objects: list[Any] = []

    def keys(self, records: Sequence[tuple[str, str | None]]) -> bytes:
        """``HoodieKey[]``: the payload of version 1."""
        out = self._class(f"[L{KEY_CLASS};") + self._new() + unsigned(len(records) + 1)
        return out + b"".join(self._key(key, partition) for key, partition in records)

    def deletes(self, records: Sequence[tuple[str, str | None, Any]]) -> bytes:
        """``DeleteRecord[]``: the payload of version 2; ordering values are plain, or a pair ("long", 5)."""
        out = self._class(f"[L{DELETE_CLASS};") + self._new() + unsigned(len(records) + 1)
        for key, partition, value in records:
            out += self._class(DELETE_CLASS) + self._new() + self._key(key, partition) + self._value(value)
        return out

    def _new(self) -> bytes:
        self._objects.append(object())
        return b"\1"

    def _class(self, name: str) -> bytes:
        if name in self._names:
            return b"\1" + unsigned(self._names.index(name))
        self._names.append(name)
        return b"\1" + unsigned(len(self._names) - 1) + kryo_text(name)

    def _key(self, key: str, partition: str | None) -> bytes:
        return self._class(KEY_CLASS) + self._new() + self._string(partition) + self._string(key)

    def _string(self, value: str | None) -> bytes:
        if value is None:
            return b"\0"
        if value in self._objects:
            return unsigned(self._objects.index(value) + 2)
        self._objects.append(value)
        return b"\1" + kryo_text(value)

    def _value(self, value: Any) -> bytes:
        match value:
            case None:
                return b"\0"
            case bool():
                return unsigned(2 + 3) + bytes([value])
            case int():
                return unsigned(2) + varint(value)
            case float():
                return unsigned(2 + 8) + struct.pack(">d", value)
            case str():
                return unsigned(2 + 1) + self._string(value)
            case ("long", number):
                return unsigned(2 + 7) + _kryo_long(number)
            case ("float", number):
                return unsigned(2 + 2) + struct.pack(">f", number)
            case Decimal():
                sign, digits, exponent = value.as_tuple()
                unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
                raw = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
                out = self._class("java.math.BigDecimal") + self._new()
                return out + unsigned(len(raw) + 1) + raw + varint(-int(exponent))
        raise TypeError(value)


def kryo_text(value: str) -> bytes:
    """Kryo's string: short ASCII as it is, everything else as counted UTF-16 units."""
    if 1 < len(value) < 64 and value.isascii():
        raw = bytearray(value.encode())
        raw[-1] |= 0x80
        return bytes(raw)
    raw16 = value.encode("utf-16-be")
    units = struct.unpack(f">{len(raw16) // 2}H", raw16)
    length = len(units) + 1
    out = bytes([length | 0x80]) if length < 0x40 else bytes([length & 0x3F | 0xC0]) + unsigned(length >> 6)
    for unit in units:
        if unit < 0x80:
            out += bytes([unit])
        elif unit < 0x800:
            out += bytes([0xC0 | unit >> 6, 0x80 | unit & 0x3F])
        else:
            out += bytes([0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F])
    return out


def _kryo_long(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    raw &= (1 << 64) - 1
    if raw >> 56 == 0:
        return unsigned(raw)
    return bytes(raw >> shift & 0x7F | 0x80 for shift in range(0, 56, 7)) + bytes([raw >> 56])


def surrounded(contents: Sequence[bytes | memoryview], byte: bytes) -> list[memoryview]:
    """Return contents in one Arrow buffer, with many of a byte around each."""
    between = byte * 40
    whole = memoryview(pa.py_buffer(between + b"".join(bytes(content) + between for content in contents))).cast("B")
    ends = list(accumulate(len(between) + len(content) for content in contents))
    return [whole[end - len(content) : end] for end, content in zip(ends, contents, strict=True)]
