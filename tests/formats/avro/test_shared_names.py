"""Tests of named types that several columns share."""

from __future__ import annotations

import json

from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.shared_names import name_repeated, write_in_full
from hoodie_py.formats.logical_types.blob import write_blob
from hoodie_py.formats.logical_types.vector import Vector, write_vector

_VECTOR = write_vector(Vector(2, "FLOAT"))
_INNER = {"type": "record", "name": "s", "fields": [{"name": "b", "type": ["null", write_blob()], "default": None}]}
_FULL = {
    "type": "record", "name": "r", "namespace": "n",
    "fields": [
        {"name": "v", "type": _VECTOR, "default": "\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000"},
        {"name": "s", "type": _INNER},
        {"name": "w", "type": ["null", _VECTOR], "default": None},
        {"name": "l", "type": {"type": "array", "items": write_blob()}},
        {"name": "m", "type": {"type": "map", "values": _VECTOR}},
    ],
}  # fmt: skip


def test_definitions_come_once_and_are_found_again() -> None:
    short = name_repeated(_FULL)
    types = [field["type"] for field in short["fields"]]
    assert types[0] == _VECTOR
    assert types[2] == ["null", "vector_float_2"]
    assert types[3]["items"] == "blob"
    assert types[4]["values"] == "vector_float_2"
    assert write_in_full(short) == _FULL
    assert AvroSchema.parse(json.dumps(short)).arrow.names == ["v", "s", "w", "l", "m"]


def test_other_names_stay() -> None:
    record = {"type": "record", "name": "r", "fields": [{"name": "blob", "type": "string"}]}
    assert name_repeated(record) == record
    assert write_in_full(record) == record
