"""One Avro value as Python objects, beside fastavro."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.objects import make_object_reader
from hoodie_py.formats.avro.schema import parse_record
from tests.formats.avro_writing import encode, long, record_schema

ENUM = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "Four", "size": 4}
ITEM = record_schema("Item", n="int", text=["null", "string"])
SCHEMA = record_schema(
    "All",
    nothing="null",
    flag="boolean",
    small="int",
    large="long",
    single="float",
    double="double",
    octets="bytes",
    text="string",
    kind=ENUM,
    four=FIXED,
    price={"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
    items={"type": "array", "items": ITEM},
    named={"type": "map", "values": {"type": "array", "items": "long"}},
    any_of=["null", "string", "long", "boolean"],
)
VALUES = st.fixed_dictionaries({
    "nothing": st.none(),
    "flag": st.booleans(),
    "small": st.integers(-(2**31), 2**31 - 1),
    "large": st.integers(-(2**63), 2**63 - 1),
    "single": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "octets": st.binary(max_size=200),
    "text": st.text(max_size=200),
    "kind": st.sampled_from("AB"),
    "four": st.binary(min_size=4, max_size=4),
    "price": st.just(b"\x01\x02"),
    "items": st.lists(st.fixed_dictionaries({"n": st.integers(-9, 9), "text": st.none() | st.text(max_size=9)})),
    "named": st.dictionaries(st.text(max_size=9), st.lists(st.integers(-300, 300), max_size=3), max_size=4),
    "any_of": st.none() | st.text(max_size=9) | st.integers(-(2**63), 2**63 - 1) | st.booleans(),
})  # fmt: skip


def read(schema: Any, data: bytes) -> tuple[Any, int]:
    return make_object_reader(data, parse_record(json.dumps(schema)), lambda _: None)(0, len(data))


@given(VALUES)
def test_what_was_written_is_read(values: dict[str, Any]) -> None:
    data = encode(SCHEMA, values)
    assert read(SCHEMA, data) == (values, len(data))


@given(VALUES, st.data())
def test_damaged_bytes_are_read_within_their_end_or_refused(values: dict[str, Any], data: st.DataObject) -> None:
    whole = bytearray(encode(SCHEMA, values))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        _, stop = read(SCHEMA, cut)
    except (CorruptFileError, IndexError):
        return
    assert stop <= len(cut)


def test_special_floats_are_read() -> None:
    schema = record_schema("Floats", a="float", b="double")
    record, _ = read(schema, encode(schema, {"a": math.inf, "b": math.nan}))
    assert record["a"] == math.inf
    assert math.isnan(record["b"])


ODD = {
    "boolean": ("boolean", b"\x02"),
    "int of 33 bits": ("int", long(2**31)),
    "long of 65 bits": ("long", b"\xff" * 10),
    "float": ("float", b"\0\0\0"),
    "double": ("double", b"\0" * 7),
    "fixed": (FIXED, b"\0\0\0"),
    "symbol": (ENUM, long(2)),
    "symbol below": (ENUM, long(-1)),
    "branch": (["null", "int"], long(2)),
    "branch below": (["null", "int"], long(-1)),
    "long branch": (["null", "int"], long(300)),
    "negative length": ("string", long(-1)),
    "long text": ("string", long(3) + b"ab"),
    "no UTF-8": ("string", long(1) + b"\xff"),
    "items": ({"type": "array", "items": "int"}, long(5) + b"\0" * 4),
    "entries": ({"type": "map", "values": "int"}, long(3) + b"\0" * 4),
}


@pytest.mark.parametrize(("kind", "data"), ODD.values(), ids=ODD.keys())
def test_bytes_that_do_not_fit_their_type_are_refused(kind: Any, data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        read(record_schema("Odd", a=kind), data)


def test_blocks_of_items_may_say_their_bytes_and_all_are_charged() -> None:
    schema = record_schema("Blocks", a={"type": "array", "items": "int"}, m={"type": "map", "values": "int"})
    items = long(-2) + long(2) + long(1) + long(2) + long(1) + long(3) + long(0)
    body = items + encode(schema, {"a": [], "m": {"k": 4}})[1:]
    charged: list[int] = []
    record, stop = make_object_reader(body, parse_record(json.dumps(schema)), charged.append)(0, len(body))
    assert (record, stop) == ({"a": [1, 2, 3], "m": {"k": 4}}, len(body))
    assert charged == [2, 1, 1]
