"""Vetting of Avro schemas.

Tests of named types that several columns share.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.schema import Decimal, Fixed, Primitive, Record, name_repeated, parse_record, write_in_full
from hoodie_py.formats.limits import Limits
from hoodie_py.formats.logical_types.blob import write_blob
from hoodie_py.formats.logical_types.vector import Vector, write_vector


def record(*types: Any, name: str = "r", **more: Any) -> dict[str, Any]:
    fields = [{"name": f"f{i}", "type": t} for i, t in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields, **more}


def parse(tree: Any) -> Record:
    return parse_record(json.dumps(tree))


def only(tree: Any) -> Any:
    return parse(record(tree)).fields[0].type


def nested(depth: int, kind: str) -> Any:
    tree: Any = "int"
    for i in range(depth):
        if kind == "record":
            tree = record(tree, name=f"r{i}")
        else:
            tree = {"type": kind, {"array": "items", "map": "values"}[kind]: tree}
    return tree


@pytest.mark.parametrize(
    "tree",
    [
        record("r"),
        record(["null", "r"]),
        record({"type": "array", "items": "r"}),
        record(record({"type": "map", "values": "r"}, name="inner")),
        record("ns.r", namespace="ns"),
    ],
)
def test_recursion_is_refused(tree: Any) -> None:
    with pytest.raises(UnsupportedFeatureError, match="contains itself"):
        parse(tree)


@pytest.mark.parametrize("kind", ["array", "map", "record"])
def test_depth_is_limited(kind: str) -> None:
    parse(record(nested(Limits().schema_depth - 1, kind), name="top"))
    for depth in (Limits().schema_depth, 200):
        with pytest.raises(UnsupportedFeatureError, match="nested too deeply"):
            parse(record(nested(depth, kind), name="top"))


def test_json_deeper_than_the_parser_goes_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="nested too deeply"):
        parse_record("[" * 200_000)


def test_wrapped_types_are_limited_in_depth() -> None:
    tree: Any = "int"
    for _ in range(200):
        tree = {"type": tree}
    with pytest.raises(UnsupportedFeatureError, match="nested too deeply"):
        only({"type": tree})


def test_width_counts_every_use_of_a_named_type() -> None:
    """Ten levels of ten fields are 60 definitions and ten billion columns."""
    definitions = record(*["int"] * 10, name="n0")
    for level in range(1, 10):
        definitions = record(definitions, *[f"n{level - 1}"] * 9, name=f"n{level}")
    started = time.process_time()
    with pytest.raises(UnsupportedFeatureError, match="too many"):
        parse(definitions)
    assert time.process_time() - started < 2


def test_a_hundred_thousand_columns_are_refused_and_ten_thousand_are_not() -> None:
    with pytest.raises(UnsupportedFeatureError, match="too many"):
        parse(record(*["int"] * 100_000))
    assert len(parse(record(*["int"] * 10_000)).fields) == 10_000 < Limits().schema_types


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "3",
        '"string"',
        '"nosuch"',
        "[]",
        "{}",
        '{"type": "array", "items": "int"}',
        '{"type": "record", "name": "r"}',
        '{"type": "record", "name": "r", "fields": []}',
        '{"type": "record", "name": "r", "fields": {}}',
        '{"type": "record", "name": "r", "fields": [1]}',
        '{"type": "record", "name": "r", "fields": [{"type": "int"}]}',
        '{"type": "record", "name": "r", "fields": [{"name": "a"}]}',
        '{"type": "record", "name": "", "fields": [{"name": "a", "type": "int"}]}',
        '{"type": "record", "fields": [{"name": "a", "type": "int"}]}',
        '{"type": "record", "name": "r", "namespace": 1, "fields": [{"name": "a", "type": "int"}]}',
        '{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}',
        "[" + "9" * 5000 + "]",
    ],
)
def test_what_is_no_schema_of_a_record(text: str) -> None:
    with pytest.raises(CorruptFileError):
        parse_record(text)


@pytest.mark.parametrize(
    "tree",
    [
        "nosuch",
        [],
        ["null"],
        ["null", ["int"]],
        {"type": "array"},
        {"type": "map"},
        {"type": "array", "items": "nosuch"},
        {"type": "enum", "name": "e"},
        {"type": "enum", "name": "e", "symbols": []},
        {"type": "enum", "name": "e", "symbols": [1]},
        {"type": "fixed", "name": "f"},
        {"type": "fixed", "name": "f", "size": 0},
        {"type": "fixed", "name": "f", "size": -1},
        {"type": "fixed", "name": "f", "size": True},
        {"type": "fixed", "name": "f", "size": 1 << 40},
        {"type": "fixed", "name": "f", "size": "3"},
        {"type": "enum", "name": "r", "symbols": ["A"]},  # the record's own name
    ],
)
def test_types_that_are_not_valid(tree: Any) -> None:
    with pytest.raises(CorruptFileError):
        only(tree)


@pytest.mark.parametrize(
    "tree",
    [
        {"type": "array", "items": "null"},
        {"type": "array", "items": record("null", name="hollow")},
        {"type": "array", "items": record(name="empty")},
        {"type": "fixed", "name": "f", "size": 12, "logicalType": "duration"},
        {"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 2},
        {"type": "fixed", "name": "f", "size": 20, "logicalType": "decimal", "precision": 39},
    ],
)
def test_types_that_no_column_can_have(tree: Any) -> None:
    with pytest.raises(UnsupportedFeatureError):
        only(tree)


def test_names_are_found_in_their_namespace() -> None:
    inner = {"type": "fixed", "name": "f", "size": 4}
    other = {"type": "fixed", "name": "f", "namespace": "b", "size": 5}
    dotted = {"type": "fixed", "name": "c.f", "size": 6}
    tree = record(inner, other, dotted, "f", "a.f", "b.f", "c.f", namespace="a")
    assert [f.type.min_size for f in parse(tree).fields] == [4, 5, 6, 4, 4, 5, 6]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"type": "fixed", "size": 3, "precision": 5, "scale": 2}, (5, 2)),
        ({"type": "fixed", "size": 3, "precision": 6}, (6, 0)),
        ({"type": "fixed", "size": 3, "precision": 7}, None),  # 2^23 - 1 has only six full digits
        ({"type": "fixed", "size": 16, "precision": 38, "scale": 38}, (38, 38)),
        ({"type": "fixed", "size": 3, "precision": 5, "scale": 6}, None),
        ({"type": "fixed", "size": 3, "precision": 0}, None),
        ({"type": "fixed", "size": 3}, None),
        ({"type": "fixed", "size": 3, "precision": "5"}, None),
        ({"type": "fixed", "size": 3, "precision": True}, None),
        ({"type": "bytes", "precision": 38, "scale": 10}, (38, 10)),
        ({"type": "bytes", "precision": 5, "scale": -1}, None),
    ],
)
def test_decimals_that_do_not_fit_are_bytes(tree: dict[str, Any], expected: tuple[int, int] | None) -> None:
    found = only({**tree, "name": "d", "logicalType": "decimal"})
    if expected is None:
        assert isinstance(found, (Fixed, Primitive))
    else:
        assert isinstance(found, Decimal)
        assert (found.precision, found.scale) == expected


def test_logical_types_that_do_not_fit_are_ignored() -> None:
    for kind, logical in [("long", "date"), ("int", "timestamp-micros"), ("string", "nosuch"), ("double", ["date"])]:
        assert only({"type": kind, "logicalType": logical}).logical is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["null", "int", "record", "array", "decimal", "r", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "name", "fields", "items", "values", "symbols", "size", "logicalType", "precision"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_a_schema_or_a_typed_error(tree: Any) -> None:
    try:
        parse(record(tree))
    except HoodieError:
        return


@pytest.mark.parametrize("text", [r'"\ud800"', '"\ud800"'], ids=["escaped", "as it is"])
@pytest.mark.parametrize("place", ["name", "symbol", "default"])
def test_half_a_character_is_refused(place: str, text: str) -> None:
    name = text if place == "name" else '"f"'
    kind = f'{{"type": "enum", "name": "e", "symbols": [{text}]}}' if place == "symbol" else '"string"'
    default = text if place == "default" else '"x"'
    with pytest.raises(CorruptFileError, match="not Unicode"):
        parse_record(
            f'{{"type": "record", "name": "r", "fields": [{{"name": {name}, "type": {kind}, "default": {default}}}]}}'
        )


def test_characters_of_all_planes_are_names() -> None:
    tree = {"type": "record", "name": "r", "fields": [{"name": "é\U0001f600", "type": "int"}]}
    assert parse(tree).fields[0].name == "é\U0001f600"  # json.dumps writes pairs of escapes
    assert parse_record(json.dumps(tree, ensure_ascii=False)).fields[0].name == "é\U0001f600"


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
