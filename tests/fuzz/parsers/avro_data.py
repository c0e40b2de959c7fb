"""Avro data blocks: a schema, then the content of a block.

The first byte chooses one of the schemas below, or says that the data brings its own; then the content. What the
decoder by columns gives must be what the decoder by records gives, and only where that gives something.
"""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from functools import cache
from typing import Any

import pyarrow as pa

from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro.columnar_cursor import Misfit
from hoodie_py.formats.avro.columnar_decoder import JoinedBlocks, decode_in_lanes, make_plan
from hoodie_py.formats.avro.data_blocks import AvroSchema, _parse_block, decode_avro_data
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from tests.formats.avro.one_by_one import decode_one_by_one
from tests.formats.log_writer import avro_data, surrounded
from tests.fuzz.seeds import all_files, is_log

OWN_SCHEMA = 0xFF
_LENGTH = struct.Struct(">H")


def _record(*types: Any) -> str:
    fields = [{"name": f"f{i}", "type": type_} for i, type_ in enumerate(types)]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


_INNER = {
    "type": "record",
    "name": "in",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": ["null", "string"]}],
}
_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}
_FIXED_DECIMAL = {"type": "fixed", "name": "fd", "size": 9, "logicalType": "decimal", "precision": 18, "scale": 2}
SCHEMAS: tuple[tuple[str, list[dict[str, Any]]], ...] = (
    (_record("string", "long", "int"), [{"f0": "key", "f1": 1 << 40, "f2": -5}]),
    (
        _record(["null", "string"], ["null", "double"], "float", "boolean"),
        [{"f0": "a", "f1": None, "f2": 1.5, "f3": True}],
    ),
    (
        _record({"type": "array", "items": "int"}, {"type": "map", "values": "string"}),
        [{"f0": [1, 2, 3], "f1": {"k": "v"}}],
    ),
    (_record(["null", {"type": "array", "items": ["null", "long"]}], "string"), [{"f0": [None, 7], "f1": "x"}]),
    (_record(["null", _INNER], "string"), [{"f0": {"a": 3, "b": "q"}, "f1": "x"}, {"f0": None, "f1": "y"}]),
    (_record(_DECIMAL, _FIXED_DECIMAL, "bytes"), [{"f0": b"\x01\x02", "f1": b"\0" * 9, "f2": b"zz"}]),
    (
        _record({"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "timestamp-millis"}),
        [{"f0": 19000, "f1": 99}],
    ),
    (
        _record({"type": "enum", "name": "e", "symbols": ["A", "B"]}, ["int", "string"], ["null", "int", "long"]),
        [{"f0": "B", "f1": "s", "f2": 8}],
    ),
    (_record({"type": "map", "values": {"type": "array", "items": _INNER}}), [{"f0": {"k": [{"a": 1, "b": None}]}}]),
    (_record("null", ["null", "long"]), [{"f0": None, "f1": 4}]),
)


def seeds() -> list[bytes]:
    """Blocks of few and of many records with the schemas above, and short real blocks with their own."""
    found = [
        bytes([number]) + avro_data(text, records * times)
        for number, (text, records) in enumerate(SCHEMAS)
        for times in (0, 1, 60)
    ]
    for _, _, data in all_files(is_log, 20_000):
        found += [
            bytes([OWN_SCHEMA]) + _LENGTH.pack(len(text)) + text.encode() + bytes(block.content)
            for block in iterate_blocks(data)
            if isinstance(block, LogBlock) and block.type is BlockType.AVRO_DATA
            if (text := block.schema_text) is not None and len(block.content) < 1500
        ][:2]
    return found[:90]


@cache
def _schema(number: int) -> AvroSchema:
    return AvroSchema.parse(SCHEMAS[number % len(SCHEMAS)][0])


def parse(data: bytes) -> None:
    """Decode by records and by columns."""
    with suppress(HoodieError):
        schema, content = _taken_apart(data)
        expected = _by_records(content, schema)
        for place in (content, surrounded([content], b"\xff")[0]):
            found = _by_columns(place, schema)
            if found is None:
                continue
            assert expected is not None, "the column decoder took what is damaged"
            assert found.schema.equals(expected.schema)
            assert _same(found, expected), "the decoders differ"
        names = schema.arrow.names[1::2]
        with suppress(HoodieError):
            decode_avro_data(content, schema, names)


def _taken_apart(data: bytes) -> tuple[AvroSchema, bytes]:
    if data[:1] == bytes([OWN_SCHEMA]) and len(data) >= 3:
        (length,) = _LENGTH.unpack_from(data, 1)
        return AvroSchema.parse(data[3 : 3 + length].decode("utf-8", "replace")), data[3 + length :]
    return _schema(data[0] if data else 0), data[1:]


def _by_records(content: bytes, schema: AvroSchema) -> pa.RecordBatch | None:
    _parse_block(content)
    try:
        return decode_one_by_one(content, schema)
    except HoodieError:
        return None


def _by_columns(content: bytes | memoryview, schema: AvroSchema) -> pa.RecordBatch | None:
    try:
        found = decode_in_lanes(JoinedBlocks([_parse_block(content)]), make_plan(schema.record, None))
    except Misfit:
        return None
    found.validate(full=True)
    return found


def _same(one: pa.RecordBatch, other: pa.RecordBatch) -> bool:
    """Whether two batches hold the same values; their text also tells NaN from NaN no more."""
    return one.equals(other) or repr(one.to_pylist()) == repr(other.to_pylist())
