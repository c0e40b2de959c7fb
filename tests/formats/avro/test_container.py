"""Container files of one record, and Avro values as Python objects beside fastavro."""

from __future__ import annotations

import io
import json
import math
import time
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.container import decode_record, is_container, make_object_reader, read_single, vet_schema
from hoodie_py.formats.avro.schema import parse_record
from tests.formats.avro_writing import container, encode, long, record_schema, sized

SCHEMA = record_schema("Note", text=["null", "string"], size="long", marks={"type": "array", "items": "int"})
NOTE = {"text": "hé", "size": -3, "marks": [1, 2]}
BODY = encode(SCHEMA, NOTE)


@pytest.mark.parametrize("codec", ["null", "deflate", None])
def test_the_one_record_is_decoded(codec: str | None) -> None:
    data = container(SCHEMA, BODY, codec=codec)
    assert is_container(data)
    assert read_single(data) == NOTE
    assert read_single(data, "Other", "Note") == NOTE


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_files_of_another_writer_are_read(codec: str) -> None:
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(SCHEMA), [NOTE], codec=codec)
    assert read_single(stream.getvalue(), "Note") == NOTE


def test_a_header_map_in_several_blocks_with_sizes_is_read() -> None:
    whole = container(SCHEMA, BODY)
    first = sized(b"k") + sized(b"v")
    rewritten = whole[:4] + long(-1) + long(len(first)) + first + whole[4:]
    assert read_single(rewritten) == NOTE


def test_an_empty_block_is_passed_over() -> None:
    whole = container(SCHEMA, BODY)
    assert read_single(whole + long(0) + long(0) + bytes(range(16))) == NOTE


BROKEN = {
    "no magic": b"PAR1" + container(SCHEMA, BODY)[4:],
    "no record": container(SCHEMA),
    "two records": container(SCHEMA, BODY, BODY),
    "two in a block": container(SCHEMA, BODY + BODY, count=2),
    "claims many": container(SCHEMA, BODY, count=2**40),
    "negative count": container(SCHEMA, BODY, count=-1),
    "wrong sync": container(SCHEMA, BODY, sync=bytes(16)),
    "left-over bytes": container(SCHEMA, BODY + b"\0"),
    "cut record": container(SCHEMA, BODY[:-1]),
    "not UTF-8": container(SCHEMA, BODY.replace("é".encode(), b"\xff\xff")),
    "not deflated": container(SCHEMA, BODY, codec="null").replace(sized(b"null"), sized(b"deflate")),
    "no schema": container(SCHEMA, BODY, entries=[]),
    "schema is no JSON": container("{", BODY),
    "schema of no record": container('"int"', long(1)),
    "schema without type": container({"type": "record", "name": "Note", "fields": [{"name": "a"}]}, BODY),
    "recursive schema": container(record_schema("Note", next=["null", "Note"]), long(0)),
    "unknown type": container(record_schema("Note", a="Nothing"), BODY),
    "deep schema": container('{"type":"array","items":' * 5000 + '"int"' + "}" * 5000, BODY),
    "huge header": b"Obj\x01" + long(2**40) + b"\0" * 64,
    "header length": b"Obj\x01" + long(1) + long(2**60) + b"x",
    "negative length": b"Obj\x01" + long(1) + long(-5) + b"x",
    "endless number": b"Obj\x01" + b"\xff" * 40,
    "block length": container(SCHEMA)[:] + long(1) + long(2**62),
    "many blocks": container(SCHEMA, BODY) + (long(0) + long(0) + bytes(range(16))) * 5000,
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_broken_files_are_refused(data: bytes) -> None:
    with pytest.raises((CorruptFileError, UnsupportedFeatureError)):
        read_single(data, "Note")


def test_a_record_of_another_type_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="Note"):
        read_single(container(SCHEMA, BODY), "HoodieCleanMetadata")


@pytest.mark.parametrize("codec", ["snappy", "zstandard", "nonsense"])
def test_other_codecs_are_named(codec: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=codec):
        read_single(container(SCHEMA, BODY, codec=codec))


NOTHING = {"type": "record", "name": "Nothing", "fields": [{"name": "n", "type": "null"}]}


@pytest.mark.parametrize("items", ["null", NOTHING, {"type": "fixed", "name": "F", "size": 0}])
def test_arrays_of_items_without_bytes_are_refused_before_they_are_counted(items: Any) -> None:
    bomb = container(record_schema("Note", a={"type": "array", "items": items}), long(2**50) + long(0))
    started = time.process_time()
    with pytest.raises(HoodieError):
        read_single(bomb)
    assert time.process_time() - started < 5


def test_an_array_cannot_claim_more_items_than_there_are_bytes() -> None:
    with pytest.raises(CorruptFileError):
        decode_record(long(0) + long(1) + long(2**50), vet_schema(json.dumps(SCHEMA)))


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    for candidate in (data, b"Obj\x01" + data, container(SCHEMA, data)):
        try:
            read_single(candidate)
        except HoodieError:
            continue


@given(st.fixed_dictionaries({
    "text": st.none() | st.text(), "size": st.integers(-(2**63), 2**63 - 1),
    "marks": st.lists(st.integers(-(2**31), 2**31 - 1)),
}), st.sampled_from(["null", "deflate"]))  # fmt: skip
def test_records_round_trip(note: dict[str, Any], codec: str) -> None:
    assert read_single(container(SCHEMA, encode(SCHEMA, note), codec=codec)) == note


ENUM = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "Four", "size": 4}
ITEM = record_schema("Item", n="int", text=["null", "string"])
EVERY_TYPE = record_schema(
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
    data = encode(EVERY_TYPE, values)
    assert read(EVERY_TYPE, data) == (values, len(data))


@given(VALUES, st.data())
def test_damaged_bytes_are_read_within_their_end_or_refused(values: dict[str, Any], data: st.DataObject) -> None:
    whole = bytearray(encode(EVERY_TYPE, values))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        _, stop = read(EVERY_TYPE, cut)
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
