from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema, decode_avro_data
from hoodie_py.formats.avro.encoder import encode_records, encode_values
from hoodie_py.formats.log.blocks import parse_block_schema
from hoodie_py.formats.log.framing import BlockType
from tests.formats.avro_bytes_cases import Case, cases, content_of
from tests.formats.log_writer import avro_data
from tests.formats.real_logs import real_blocks


def schema_text(**fields: Any) -> str:
    declared = [{"name": name, "type": kind} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "r", "fields": declared})


PAIR_FIELDS = [{"name": "x", "type": ["int", "null"]}, {"name": "y", "type": "string"}]
PAIR = {"type": "record", "name": "pair", "fields": PAIR_FIELDS}
ALL = schema_text(
    b=["null", "boolean"], i="int", l=["long", "null"], f=["null", "float"], d="double", t=["null", "string"],
    e=["null", {"type": "enum", "name": "e", "symbols": ["A", "B"]}], y="bytes",
    x=["null", {"type": "fixed", "name": "x", "size": 3}],
    a=["null", {"type": "array", "items": ["null", "long"]}], m=["null", {"type": "map", "values": "double"}],
    p=["null", PAIR], ap={"type": "array", "items": ["null", "pair"]}, n="null",
    aa=["null", {"type": "array", "items": {"type": "array", "items": "string"}}],
)  # fmt: skip
numbers = st.integers(-70, 70) | st.integers(-(1 << 31), (1 << 31) - 1)
longs = numbers | st.integers(-(1 << 63), (1 << 63) - 1)
floats = st.floats(width=32, allow_nan=False)
texts = st.text(max_size=5) | st.text(min_size=60, max_size=140)
pairs = st.fixed_dictionaries({"x": st.none() | numbers, "y": texts})
rows = st.fixed_dictionaries(
    {
        "b": st.none() | st.booleans(), "i": numbers, "l": st.none() | longs, "f": st.none() | floats, "d": floats,
        "t": st.none() | texts, "y": st.binary(max_size=9), "e": st.sampled_from([None, "A", "B"]),
        "x": st.none() | st.binary(min_size=3, max_size=3), "a": st.none() | st.lists(st.none() | longs, max_size=70),
        "m": st.none() | st.dictionaries(texts, floats, max_size=3), "p": st.none() | pairs,
        "ap": st.lists(st.none() | pairs, max_size=3), "n": st.none(),
        "aa": st.none() | st.lists(st.lists(texts, max_size=2), max_size=3),
    }
)  # fmt: skip


def batch_of(records: list[dict[str, Any]], schema: AvroSchema) -> pa.RecordBatch:
    plain = [
        {key: list(value.items()) if key == "m" and value else value for key, value in row.items()} for row in records
    ]
    return pa.RecordBatch.from_pylist(plain, schema.arrow)


@given(st.lists(rows, max_size=5), st.integers(0, 2), st.integers(0, 2))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_bytes_are_those_of_fastavro(records: list[dict[str, Any]], start: int, stop: int) -> None:
    schema = AvroSchema.parse(ALL)
    batch = batch_of(records, schema).slice(start, max(len(records) - start - stop, 0))
    assert encode_records(batch, schema) == avro_data(ALL, records[start : max(len(records) - stop, start)])


@given(cases(), st.sampled_from([0, 1, 3, 40]), st.integers())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_records_of_any_schema_read_back(case: Case, number: int, seed: int) -> None:
    schema = AvroSchema.parse(case.schema)
    batch = decode_avro_data(content_of(case.rows(number, seed)), schema)
    assert decode_avro_data(encode_records(batch, schema), schema).equals(batch)


def test_records_of_java_come_out_byte_for_byte() -> None:
    checked = 0
    for block in real_blocks():
        if block.type is BlockType.AVRO_DATA:
            schema = parse_block_schema(block)
            batch = decode_avro_data(block.content, schema)
            assert encode_records(batch, schema) == bytes(block.content)
            checked += 1
    assert checked > 50


def test_columns_are_taken_by_name_and_cast() -> None:
    schema = AvroSchema.parse(schema_text(a="long", b=["null", "string"]))
    batch = pa.RecordBatch.from_pydict(
        {"b": pa.array(["x", None], pa.large_string()), "more": [1, 2], "a": pa.array([1, 2], pa.int16())}
    )
    assert encode_records(batch, schema) == avro_data(schema.text, [{"a": 1, "b": "x"}, {"a": 2, "b": None}])


def test_garbage_under_nulls_is_not_written() -> None:
    schema = AvroSchema.parse(schema_text(t=["null", "string"], l=["null", {"type": "array", "items": "string"}]))
    mask = pa.py_buffer(np.packbits([1, 0], bitorder="little"))
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32))
    text = pa.Array.from_buffers(pa.string(), 2, [mask, offsets, pa.py_buffer(b"xy")])
    lists = pa.Array.from_buffers(pa.list_(pa.string()), 2, [mask, offsets], children=[pa.array(["a", "b"])])
    batch = pa.RecordBatch.from_arrays([text, lists], names=["t", "l"])
    assert encode_records(batch, schema) == avro_data(schema.text, [{"t": "x", "l": ["a"]}, {"t": None, "l": None}])


MISFITS: list[tuple[Any, pa.Array]] = [
    ("int", pa.array([None], pa.int32())), ("int", pa.array([1 << 40])), ("int", pa.array(["x"])),
    ("string", pa.array([[1]])), (PAIR, pa.array([{"x": 1}])), (PAIR, pa.array([{"x": 1, "y": None}])),
    ({"type": "array", "items": "int"}, pa.array([[1, None]])), ({"type": "array", "items": "int"}, pa.array([1])),
    ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.array(["B"])),
    ({"type": "fixed", "name": "x", "size": 2}, pa.array([b"abc"])),
    ({"type": "bytes", "logicalType": "decimal", "precision": 3}, pa.array([10**6], pa.decimal128(9, 0))),
    ({"type": "map", "values": "int"}, pa.array([1])),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "array"), MISFITS)
def test_values_that_do_not_fit_are_refused(kind: Any, array: pa.Array) -> None:
    with pytest.raises(InvalidTableError) as caught:
        encode_records(pa.RecordBatch.from_arrays([array], names=["c"]), AvroSchema.parse(schema_text(c=kind)))
    assert caught.value.where["column"] == "c"


def test_missing_columns_and_unions_are_refused() -> None:
    schema = AvroSchema.parse(schema_text(c=["null", "int", "string"]))
    with pytest.raises(InvalidTableError, match="lack"):
        encode_records(pa.RecordBatch.from_pydict({"d": [1]}), schema)
    with pytest.raises(UnsupportedFeatureError):
        encode_records(pa.RecordBatch.from_pydict({"c": [1]}), schema)
    two = pa.StructArray.from_arrays([pa.array([1]), pa.array(["x"])], names=["member0", "member1"])
    with pytest.raises(InvalidTableError, match="several members"):
        encode_records(pa.RecordBatch.from_arrays([two], names=["c"]), schema)


def test_unions_of_several_types_are_written_member_by_member() -> None:
    schema = AvroSchema.parse(schema_text(c=["int", "null", PAIR, "string"]))
    numbers, words = pa.array([None, 7, None, None], pa.int32()), pa.array(["x", None, None, None])
    pairs = pa.array([None, None, {"x": 1, "y": "z"}, None], schema.arrow.field("c").type.field(1).type)
    members = pa.StructArray.from_arrays([numbers, pairs, words], names=["member0", "member1", "member2"])
    rows = [{"c": "x"}, {"c": 7}, {"c": {"x": 1, "y": "z"}}, {"c": None}]
    assert encode_records(pa.RecordBatch.from_arrays([members], names=["c"]), schema) == avro_data(schema.text, rows)


@given(st.lists(st.none() | st.integers(0, 300)), st.permutations(["a", "b", "c", "d"]), st.integers(0, 4))
def test_columns_without_type_are_nulls(values: list[int | None], names: list[str], count: int) -> None:
    unions = {"a": ["null", "long"], "b": ["long", "null"], "c": ["null", {"type": "map", "values": "int"}, "string"]}
    fields = [{"name": name, "type": unions.get(name, ["null", "string"])} for name in sorted(names)]
    schema = AvroSchema.parse(json.dumps({"type": "record", "name": "R", "fields": fields}))
    types = {"a": pa.int64(), "b": pa.int64(), "c": schema.arrow.field("c").type, "d": pa.string()}
    typed = {name: pa.nulls(len(values), types[name]) for name in names}
    if "a" not in names[:count]:
        typed["a"] = pa.array(values, pa.int64())
    bare = typed | {name: pa.nulls(len(values)) for name in names[:count]}
    expected = encode_values(pa.RecordBatch.from_pydict(typed), schema)
    assert encode_values(pa.RecordBatch.from_pydict(bare), schema).to_pylist() == expected.to_pylist()
