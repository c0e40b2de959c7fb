"""Arrow types and defaults for Avro schemas."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from tests.formats.real_logs import real_blocks


def logical(kind: str, logical_type: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


def schema_of(tree: Any, **field: Any) -> AvroSchema:
    return AvroSchema.parse(
        json.dumps({"type": "record", "name": "r", "fields": [{"name": "f", "type": tree, **field}]})
    )


POINT = {
    "type": "record",
    "name": "p",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "int"]}],
}
UTC, NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")

TYPES = [
    ("null", pa.null()),
    ("boolean", pa.bool_()),
    ("int", pa.int32()),
    ("long", pa.int64()),
    ("float", pa.float32()),
    ("double", pa.float64()),
    ("bytes", pa.binary()),
    ("string", pa.string()),
    ({"type": "string", "avro.java.string": "String"}, pa.string()),
    (logical("string", "uuid"), pa.string()),
    (logical("int", "date"), pa.date32()),
    (logical("int", "time-millis"), pa.int32()),
    (logical("long", "time-micros"), pa.int64()),
    (logical("long", "timestamp-millis"), UTC),
    (logical("long", "timestamp-micros"), UTC),
    (logical("long", "timestamp-nanos"), pa.int64()),
    (logical("long", "local-timestamp-millis"), NTZ),
    (logical("long", "local-timestamp-micros"), NTZ),
    (logical("bytes", "decimal", precision=9, scale=2), pa.decimal128(9, 2)),
    (logical("fixed", "decimal", name="d", size=16, precision=38, scale=38), pa.decimal128(38, 38)),
    (logical("fixed", "uuid", name="u", size=16), pa.binary()),
    ({"type": "fixed", "name": "x", "size": 5}, pa.binary()),
    ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.string()),
    ({"type": "array", "items": "int"}, pa.list_(pa.field("element", pa.int32(), nullable=False))),
    ({"type": "array", "items": ["null", "int"]}, pa.list_(pa.field("element", pa.int32()))),
    ({"type": "map", "values": "int"}, pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False))),
    ({"type": "map", "values": ["int", "null"]}, pa.map_(pa.string(), pa.int32())),
    (POINT, pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.int32())])),
    (["int"], pa.int32()),
    (["int", "long"], pa.int64()),
    (["double", "null", "float"], pa.float64()),
    (["int", "string"], pa.struct([("member0", pa.int32()), ("member1", pa.string())])),
    (["int", "null", "double"], pa.struct([("member0", pa.int32()), ("member1", pa.float64())])),
]


@pytest.mark.parametrize(("tree", "expected"), TYPES, ids=lambda value: str(value)[:60])
def test_types(tree: Any, expected: pa.DataType) -> None:
    (field,) = schema_of(tree).arrow
    assert field.type == expected
    assert str(field.type) == str(expected)
    assert field.nullable == (tree == "null" or (isinstance(tree, list) and "null" in tree))


DEFAULTS = [
    ("int", 7, 7),
    ("float", 1, 1),
    ("string", "x", "x"),
    (["null", "int"], None, None),
    (["int", "null"], 0, 0),
    (["null", "string"], "late", "late"),
    ("bytes", "\u00ff\u0001", b"\xff\x01"),
    (logical("int", "date"), 19_000, 19_000),
    (logical("long", "timestamp-millis"), 5, 5000),
    (logical("bytes", "decimal", precision=5, scale=2), "\u00ff\u0085", Decimal("-1.23")),
    ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
    ({"type": "map", "values": "int"}, {"a": 1}, [("a", 1)]),
    (POINT, {"x": 1, "y": None}, {"x": 1, "y": None}),
    (["int", "string"], "text", {"member1": "text"}),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", "B"),
]


@pytest.mark.parametrize(("tree", "default", "expected"), DEFAULTS, ids=lambda value: str(value)[:60])
def test_defaults_are_values_of_their_column(tree: Any, default: Any, expected: Any) -> None:
    schema = schema_of(tree, default=default)
    assert dict(schema.defaults) == ({} if expected is None else {"f": expected})
    if expected is not None:
        assert pa.scalar(schema.defaults["f"], schema.arrow.field("f").type).is_valid


def test_fields_without_default_have_none() -> None:
    assert not schema_of("int").defaults


@pytest.mark.parametrize(
    ("tree", "default"), [("int", "x"), ("int", 1 << 40), ("bytes", 3), ("bytes", "\u1234"), (POINT, 3), ("string", [])]
)
def test_defaults_of_another_type_are_errors(tree: Any, default: Any) -> None:
    with pytest.raises(CorruptFileError, match="default"):
        schema_of(tree, default=default)


def test_a_schema_is_parsed_once_and_survives_pickling() -> None:
    schema = schema_of("int", default=3)
    assert AvroSchema.parse(schema.text) is schema
    assert pickle.loads(pickle.dumps(schema)) is schema
    assert {schema: 1}[schema] == 1


def test_schemas_of_real_blocks() -> None:
    texts = {block.schema_text for block in real_blocks() if block.schema_text}
    assert all(len(AvroSchema.parse(text).arrow) for text in texts)
