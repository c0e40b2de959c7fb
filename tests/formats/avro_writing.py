"""Writes Avro containers byte by byte, so that tests can write broken ones too."""

from __future__ import annotations

import io
import json
import zlib
from typing import Any

import fastavro

SYNC = bytes(range(16))
NULLABLE_TEXTS = ["null", {"type": "map", "values": "string"}]


def record_schema(name: str, **fields: Any) -> dict[str, Any]:
    declared = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "namespace": "org.apache.hudi.avro.model", "fields": declared}


def encode(schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), record)
    return stream.getvalue()


def long(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def sized(data: bytes) -> bytes:
    return long(len(data)) + data


def container(
    schema: Any,
    *records: bytes,
    codec: str | None = "null",
    count: int = 1,
    sync: bytes = SYNC,
    entries: list[tuple[str, bytes]] | None = None,
) -> bytes:
    """A container file with a block for each of ``records`` that claims to hold ``count`` of them."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    if entries is None:
        entries = [("avro.schema", text.encode())]
        if codec is not None:
            entries.append(("avro.codec", codec.encode()))
    header = long(len(entries)) + b"".join(sized(key.encode()) + sized(value) for key, value in entries) + long(0)
    blocks = b"".join(long(count) + sized(_coded(record, codec)) + sync for record in records)
    return b"Obj\x01" + header + SYNC + blocks


def _coded(record: bytes, codec: str | None) -> bytes:
    if codec != "deflate":
        return record
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(record) + stream.flush()
