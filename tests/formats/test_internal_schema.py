"""Schemas with ids: what is read of them, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.internal_schema import (
    Field,
    ListType,
    MapType,
    RecordType,
    parse_internal_schema,
    parse_schema_history,
)


def field(number: Any, name: Any, kind: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "optional": True, "type": kind}


def schema(*fields: Any, version: Any = 1) -> dict[str, Any]:
    return {"max_column_id": 9, "version_id": version, "type": "record", "fields": list(fields)}


ARRAY = {"type": "array", "element_id": 2, "element": "INT", "element_optional": True}
MAP = {"type": "map", "key_id": 3, "key": "string", "value_id": 4, "value": ARRAY, "value_optional": True}


def test_all_kinds_of_types() -> None:
    nested = {"type": "record", "fields": [field(6, "x", "decimal(9, 2)")]}
    found = parse_internal_schema(json.dumps(schema(field(1, "m", MAP), field(5, "s", nested), version=7)))
    inner = Field(6, "x", "decimal(9, 2)")
    assert found.version == 7
    assert found.record.by_name["m"].type == MapType(3, "string", 4, ListType(2, "int"))
    assert found.record.by_name["s"].type == RecordType((inner,))
    assert found.fields_by_id[6] == (inner, RecordType((inner,)))
    assert set(found.fields_by_id) == {1, 5, 6}


def test_a_history_comes_oldest_first() -> None:
    versions = [schema(field(1, name, "int"), version=number) for number, name in ((2, "b"), (0, "z"), (1, "a"))]
    found = parse_schema_history(json.dumps({"schemas": versions}))
    assert [(each.version, each.record.fields[0].name) for each in found] == [(0, "z"), (1, "a"), (2, "b")]


def deep(levels: int) -> Any:
    kind: Any = "int"
    for number in range(levels):
        kind = {"type": "array", "element_id": number + 10, "element": kind}
    return kind


WRONG = [
    "",
    "[]",
    "{}",
    "[" * 100_000,
    json.dumps(schema("x")),
    json.dumps(schema(field("1", "a", "int"))),
    json.dumps(schema(field(True, "a", "int"))),
    json.dumps(schema(field(-1, "a", "int"))),
    json.dumps(schema(field(2**31, "a", "int"))),
    json.dumps(schema(field(1, None, "int"))),
    json.dumps(schema(field(1, "a", None))),
    json.dumps(schema(field(1, "a", {"type": "union"}))),
    json.dumps(schema(field(1, "a", "int"), field(1, "b", "int"))),
    json.dumps(schema(field(1, "a", "int"), field(2, "a", "int"))),
    json.dumps(schema(field(2, "a", ARRAY))),
    json.dumps(schema(field(1, "a", "int"), version=-1)),
    json.dumps(schema(field(1, "a", "int"), version="20260101000000000")),
    json.dumps(schema(field(1, "a", deep(65)))),
]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(CorruptFileError):
        parse_internal_schema(text)
    with pytest.raises(CorruptFileError):
        parse_schema_history(f'{{"schemas": [{text}]}}' if text else text)


def test_many_levels_are_read() -> None:
    parse_internal_schema(json.dumps(schema(field(1, "a", deep(60)))))
