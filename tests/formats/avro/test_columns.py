"""The tree of columns and its two spellings: both are read back as they were; what is refused of schemas with ids."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.avro.columns import (
    Column,
    ColumnType,
    Elements,
    InternalSchema,
    Numbers,
    Plain,
    Struct,
    Values,
    iterate_columns,
    join_columns,
    make_avro_fields,
    number_columns,
    parse_internal_schema,
    parse_schema_history,
    read_avro_fields,
    write_internal_schema,
    write_schema_history,
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
    inner = Column("x", Plain(known_name="decimal(9, 2)"), 6)
    assert found.version == 7
    assert found.record.by_name["m"].type == Values(
        Elements(Plain(known_name="int"), id=2), key_id=3, id=4, key=Plain(known_name="string")
    )
    assert found.record.by_name["s"].type == Struct((inner,))
    assert found.fields_by_id[6] == (inner, Struct((inner,)))
    assert set(found.fields_by_id) == {1, 5, 6}


def test_a_history_comes_oldest_first() -> None:
    versions = [schema(field(1, name, "int"), version=number) for number, name in ((2, "b"), (0, "z"), (1, "a"))]
    found = parse_schema_history(json.dumps({"schemas": versions}))
    assert [(each.version, each.record.columns[0].name) for each in found] == [(0, "z"), (1, "a"), (2, "b")]


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


PLAIN = st.sampled_from([
    "int", "string", "bytes", {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-micros"}, {"type": "string", "avro.java.string": "String"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
]).map(Plain)  # fmt: skip


def columns_of(types: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[tuple[Column, ...]]:
    column = st.builds(
        Column,
        name=st.sampled_from("abcdef"),
        type=types,
        optional=st.booleans(),
        doc=st.none() | st.text(max_size=3),
        more=st.just({}) | st.just({"order": "ignore"}),
    )
    return st.lists(column, min_size=1, max_size=4, unique_by=lambda each: each.name).map(tuple)


TYPES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        columns_of(inner).map(Struct),
        st.builds(Elements, type=inner, optional=st.booleans()),
        st.builds(Values, type=inner, optional=st.booleans()),
    ),
    max_leaves=8,
)
COLUMNS = columns_of(TYPES)


def as_avro(columns: tuple[Column, ...]) -> str:
    return json.dumps(make_avro_fields(columns, "n.r"))


def all_ids(node: Any) -> list[int]:
    """Every id in a schema with ids (parsed JSON)."""
    if isinstance(node, list):
        return [number for each in node for number in all_ids(each)]
    if not isinstance(node, dict):
        return []
    own = [value for key, value in node.items() if key in ("id", "element_id", "key_id", "value_id")]
    return own + [number for value in node.values() for number in all_ids(value)]


@given(COLUMNS, st.integers(-1, 99))
def test_both_spellings_are_read_back_and_join_to_the_same_columns(columns: tuple[Column, ...], last: int) -> None:
    numbers = Numbers(last)
    numbered = number_columns(columns, numbers)
    text = write_internal_schema(InternalSchema(7, Struct(numbered), numbers.last))
    found = parse_internal_schema(text)
    assert write_internal_schema(found) == text
    assert sorted(all_ids(json.loads(text))) == list(range(last + 1, numbers.last + 1))
    read = read_avro_fields(json.loads(as_avro(columns)))
    assert as_avro(read) == as_avro(columns)
    joined = join_columns(read, found.record.columns)
    assert write_internal_schema(InternalSchema(7, Struct(joined), numbers.last)) == text
    assert parse_schema_history(write_schema_history(['{"fields":[]}'], write_schema_history([text])))[-1] == found


@given(COLUMNS, COLUMNS)
def test_known_columns_keep_their_ids_and_new_ones_get_new_ids(
    before: tuple[Column, ...], added: tuple[Column, ...]
) -> None:
    numbers = Numbers(-1)
    known = number_columns(before, numbers)
    names = {each.name for each in before}
    new = tuple(each for each in added if each.name not in names)
    first = numbers.last + 1
    joined = join_columns((*new, *before), known, numbers)
    assert joined[len(new) :] == known
    assert all(each.id is not None and each.id >= first for _, each in iterate_columns(joined[: len(new)]))
    if new:
        with pytest.raises(CorruptFileError, match="different columns"):
            join_columns((*new, *before), known)


def test_other_types_of_known_columns_are_contradictions() -> None:
    known = number_columns([Column("a", Plain("int"))], Numbers(-1))
    with pytest.raises(CorruptFileError, match="different types"):
        join_columns([Column("a", Elements(Plain("int")))], known)


@pytest.mark.parametrize("node", ["null", {"type": "fixed", "size": 2, "logicalType": "duration"}])
def test_types_that_schemas_with_ids_cannot_have(node: Any) -> None:
    with pytest.raises(UnsupportedFeatureError, match="Schemas with ids"):
        number_columns([Column("a", Plain(node))], Numbers(-1))
    with pytest.raises(UnsupportedFeatureError, match="Unions"):
        read_avro_fields([{"name": "a", "type": ["int", "string"]}])
