"""Decoding of Avro records: a table of values and bytes, fastavro as second opinion, and hostile input."""

from __future__ import annotations

import io
import json
import re
import struct
import time
import tracemalloc
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema, decode_avro_data, decode_avro_values
from hoodie_py.formats.log.framing import BlockType
from tests.formats.log_writer import avro_data, raw_data, varint
from tests.formats.real_logs import real_blocks


def schema_text(*types: Any) -> str:
    fields = [{"name": f"f{i}", "type": t} for i, t in enumerate(types)]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def decode(types: list[Any], *records: bytes, columns: list[str] | None = None) -> pa.RecordBatch:
    """Decode a few records, and see that they fare the same when there are many of each."""
    schema = AvroSchema.parse(schema_text(*types))
    many = memoryview(raw_data([record for record in records for _ in range(35)]))
    try:
        batch = decode_avro_data(memoryview(raw_data(records)), schema, columns)
    except HoodieError as error:
        with pytest.raises(type(error)):
            decode_avro_data(many, schema, columns)
        raise
    batch.validate(full=True)
    every = decode_avro_data(many, schema, columns)
    every.validate(full=True)
    assert every.schema == batch.schema
    assert every.to_pylist() == [row for row in batch.to_pylist() for _ in range(35)]
    return batch


def logical(kind: str, logical_type: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical_type, **more}


POINT = {
    "type": "record",
    "name": "p",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "int"]}],
}
FIXED_DECIMAL = logical("fixed", "decimal", name="d", size=3, precision=5, scale=2)
WIDE_DECIMAL = logical("fixed", "decimal", name="d", size=20, precision=38, scale=0)
BYTES_DECIMAL = logical("bytes", "decimal", precision=38, scale=2)

# (Avro type, bytes in hexadecimal, value)
TABLE: list[tuple[Any, str, Any]] = [
    ("null", "", None),
    ("boolean", "01", True),
    ("boolean", "00", False),
    ("int", "00", 0),
    ("int", "01", -1),
    ("int", "7f", -64),
    ("int", "8001", 64),
    ("int", "feffffff0f", 2**31 - 1),
    ("int", "ffffffff0f", -(2**31)),
    ("int", "8000", 0),  # longer than it need be
    ("long", "feffffffffffffffff01", 2**63 - 1),
    ("long", "ffffffffffffffffff01", -(2**63)),
    ("float", "0000c03f", 1.5),
    ("float", "000080ff", float("-inf")),
    ("double", "000000000000f8bf", -1.5),
    ("bytes", "0400ff", b"\x00\xff"),
    ("bytes", "00", b""),
    ("string", "0661c3a9", "a\u00e9"),
    ("string", "8201" + "61" * 65, "a" * 65),
    (logical("string", "uuid"), "0278", "x"),
    ({"type": "fixed", "name": "f", "size": 2}, "beef", b"\xbe\xef"),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "02", "B"),
    (logical("int", "date"), "01", date(1969, 12, 31)),
    (logical("int", "time-millis"), "02", 1),
    (logical("long", "time-micros"), "02", 1),
    (logical("long", "timestamp-micros"), "01", datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
    (logical("long", "timestamp-millis"), "01", datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
    (logical("long", "local-timestamp-micros"), "02", datetime(1970, 1, 1, 0, 0, 0, 1)),
    (logical("long", "local-timestamp-millis"), "02", datetime(1970, 1, 1, 0, 0, 0, 1000)),
    (FIXED_DECIMAL, "00007b", Decimal("1.23")),
    (FIXED_DECIMAL, "ffff85", Decimal("-1.23")),
    (WIDE_DECIMAL, "00" * 19 + "7b", Decimal(123)),
    (WIDE_DECIMAL, "ff" * 19 + "85", Decimal(-123)),
    (BYTES_DECIMAL, "027b", Decimal("1.23")),
    (BYTES_DECIMAL, "04ff85", Decimal("-1.23")),
    (BYTES_DECIMAL, "2800" + "00" * 18 + "7b", Decimal("1.23")),
    ({"type": "array", "items": "int"}, "00", []),
    ({"type": "array", "items": "int"}, "04020400", [1, 2]),
    ({"type": "array", "items": "int"}, "0202020400", [1, 2]),
    ({"type": "array", "items": "int"}, "0304020400", [1, 2]),  # negative count, length in bytes
    ({"type": "array", "items": ["null", "string"]}, "040002026100", [None, "a"]),
    ({"type": "map", "values": "int"}, "0202610600", [("a", 3)]),
    (
        {"type": "map", "values": ["null", POINT]},
        "040261020200026200" + "00",
        [("a", {"x": 1, "y": None}), ("b", None)],
    ),
    ({"type": "map", "values": "null"}, "02026100", [("a", None)]),
    (POINT, "020204", {"x": 1, "y": 2}),
    (POINT, "0200", {"x": 1, "y": None}),
    (["null", "int"], "00", None),
    (["null", "int"], "0206", 3),
    (["null", "int"], "8000", None),  # a branch number that is longer than it need be
    (["int", "null"], "0006", 3),
    (["int", "null"], "02", None),
    (["null", POINT], "00", None),
    (["int"], "0006", 3),
    (["int", "long"], "0006", 3),
    (["int", "long"], "0206", 3),
    ([logical("int", "date"), "null", logical("long", "timestamp-millis")], "0006", 3),  # Spark: a long as it is
    ([logical("int", "date"), "null", logical("long", "timestamp-millis")], "0406", 3),
    (["null", "float", "double"], "020000c03f", 1.5),
    (["null", "float", "double"], "00", None),
    (["int", "string"], "0006", {"member0": 3, "member1": None}),
    (["int", "string"], "020261", {"member0": None, "member1": "a"}),
    (["null", "int", POINT], "040200", {"member0": None, "member1": {"x": 1, "y": None}}),
    (["null", "int", POINT], "00", None),
]
NESTED = {"type": "array", "items": {"type": "array", "items": "int"}}


@pytest.mark.parametrize(("tree", "text", "value"), TABLE, ids=lambda value: str(value)[:50])
def test_bytes_of_a_value(tree: Any, text: str, value: Any) -> None:
    record = bytes.fromhex(text)
    batch = decode([tree], record)
    assert batch.to_pylist() == [{"f0": value}]
    # between other values, twice, and stepped over
    batch = decode(["int", tree, "string"], *[b"\x02" + record + b"\x02z"] * 2)
    assert batch.to_pylist() == [{"f0": 1, "f1": value, "f2": "z"}] * 2
    batch = decode(["int", tree, "string"], *[b"\x02" + record + b"\x02z"] * 2, columns=["f2", "nosuch"])
    assert batch.to_pylist() == [{"f2": "z"}] * 2


def test_nested_lists() -> None:
    assert decode([NESTED], bytes.fromhex("060202000004020200" + "00"), b"\0").to_pylist() == [
        {"f0": [[1], [], [1, 1]]},
        {"f0": []},
    ]


@pytest.mark.parametrize(("tree", "text", "value"), TABLE, ids=lambda value: str(value)[:50])
def test_every_truncation_of_a_value_is_an_error(tree: Any, text: str, value: Any) -> None:
    record = bytes.fromhex(text)
    choices: list[list[str] | None] = [None, []]
    for columns in choices:
        for length in range(len(record)):
            with pytest.raises(CorruptFileError):
                decode([tree], record[:length], columns=columns)
        with pytest.raises(CorruptFileError):
            decode([tree], record + b"\0", columns=columns)


def test_columns_keep_the_order_of_the_schema() -> None:
    record = bytes.fromhex("02 04 06")
    assert decode(["int"] * 3, record, columns=["f2", "f0"]).schema.names == ["f0", "f2"]
    assert decode(["int"] * 3, record, record, columns=[]).num_rows == 2
    assert decode(["int"] * 3, record, columns=["nosuch"]).num_columns == 0
    assert decode(["int"] * 3).num_rows == 0


def test_nulls_in_front_of_values_of_every_type() -> None:
    for tree, text, value in TABLE:
        if isinstance(tree, list) or tree == "null":
            continue
        rows = [b"\x00", b"\x02" + bytes.fromhex(text), b"\x00"]
        assert decode([["null", tree]], *rows).to_pylist() == [{"f0": None}, {"f0": value}, {"f0": None}]
        assert decode([["null", tree]], b"\x00").to_pylist() == [{"f0": None}]
        wrapped = {"type": "record", "name": "w", "fields": [{"name": "v", "type": ["null", tree]}]}
        rows = [b"\x00", b"\x02\x00", b"\x02\x02" + bytes.fromhex(text)]
        expected = [{"f0": None}, {"f0": {"v": None}}, {"f0": {"v": value}}]
        assert decode([["null", wrapped]], *rows).to_pylist() == expected


HOSTILE = [
    ("boolean", "02"),
    ("int", "8080808010"),  # 33 bits
    ("int", "ffffffffffffffffff01"),
    ("long", "ffffffffffffffffff02"),  # 65 bits
    ("long", "80" * 11 + "00"),  # 12 bytes
    ("string", "80" * 11 + "00"),
    ("string", "01"),  # length -1
    ("string", "feffffffffffffffff01"),
    ("bytes", "ffffffffffffffffff01"),
    ("string", "0461"),  # past the record
    ("string", "02ff"),  # not UTF-8
    ("string", "06eda080"),  # a lone surrogate
    (["null", "int"], "0100"),  # branch -1
    (["null", "int"], "0400"),  # branch 2
    (["null", "int"], "01"),
    (["null", "int"], "04"),
    (["null", "int", "string"], "0100"),
    (["null", "int", "string"], "0600"),
    (["int", "string"], "ffffffffffffffffff0100"),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "04"),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "01"),
    ({"type": "array", "items": "int"}, "feffffffffffffffff01"),
    ({"type": "array", "items": "int"}, "ffffffffffffffffff01" + "00"),  # -2^63
    ({"type": "array", "items": "int"}, "0402"),
    ({"type": "array", "items": "int"}, "0400"),
    ({"type": "map", "values": "null"}, "feffffffff0f"),
    ({"type": "map", "values": "int"}, "02feffffffff0f0200"),
    ({"type": "array", "items": {"type": "array", "items": "int"}}, "02feffffffff0f0000"),
    (BYTES_DECIMAL, "00"),
    (BYTES_DECIMAL, "22" + "7f" * 17),
    (BYTES_DECIMAL, "20" + "7f" * 16),  # more than 38 digits
    (FIXED_DECIMAL, "7fffff"),  # more than 5 digits
    (WIDE_DECIMAL, "01" + "00" * 19),
    (WIDE_DECIMAL, "ff" + "00" * 19),
    (logical("long", "timestamp-millis"), "feffffffffffffffff01"),
]


@pytest.mark.parametrize(("tree", "text"), HOSTILE, ids=lambda value: str(value)[:50])
def test_hostile_values_are_errors_that_say_where(tree: Any, text: str) -> None:
    with pytest.raises(CorruptFileError) as caught:
        decode(["int", tree], b"\x02" + bytes.fromhex(text))
    assert caught.value.where.keys() & {"record", "column", "offset"}


WRONG_VALUES = [
    ("boolean", "00", "07", "cannot be 7"),
    ("int", "00", "8080808010", "32 bits"),
    ("string", "0261", "02ff", "not valid"),
    (FIXED_DECIMAL, "00007b", "7fffff", "not valid"),
    (BYTES_DECIMAL, "027b", "00", "no bytes"),
    (BYTES_DECIMAL, "027b", "22" + "7f" * 17, "more digits"),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "00", "04", "not one of the symbols"),
    ({"type": "map", "values": "string"}, "02" + "0261" + "0261" + "00", "02" + "0261" + "02ff" + "00", "not valid"),
]


@pytest.mark.parametrize(("tree", "right", "wrong", "message"), WRONG_VALUES, ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("place", [0, 13, 99])
def test_the_first_wrong_value_is_named(tree: Any, right: str, wrong: str, message: str, place: int) -> None:
    schema = AvroSchema.parse(schema_text("int", tree, "string"))
    records = [b"\x02" + bytes.fromhex(right) + b"\x02z"] * place
    records += [b"\x02" + bytes.fromhex(wrong) + b"\x02z", b"\x02" + bytes.fromhex(wrong), b""]
    with pytest.raises(CorruptFileError, match=message) as caught:
        decode_avro_data(raw_data(records), schema)
    assert caught.value.where == {"record": place, "column": "f1"}
    ends = np.cumsum([len(record) for record in records])
    starts = ends - [len(record) for record in records]
    with pytest.raises(CorruptFileError, match=message) as caught:
        decode_avro_values(b"".join(records), starts, ends, schema, ["f1"])
    assert caught.value.where == {"record": place, "column": "f1"}
    with pytest.raises(CorruptFileError) as caught:
        decode_avro_data(raw_data(records), schema, ["f0"])
    assert caught.value.where.keys() == {"record", "offset"}
    assert caught.value.where["record"] == place + 1


@pytest.mark.parametrize(
    ("tree", "text", "message"),
    [
        ("string", "01", "length -1"),
        ({"type": "array", "items": "string"}, "0401" + "0100", "length -1"),  # would go back and forth
        ("string", "ffffffffffffffffff02", "more than 64 bits"),
        ({"type": "array", "items": "int"}, "feffffffffffffffff01", "does not fit"),
        ({"type": "array", "items": "int"}, "0402", "2 items does not fit"),
        ({"type": "map", "values": "int"}, "060261", "3 items does not fit"),
        (["null", "int"], "01", "no branch -1"),
        (["null", "int", "long"], "08", "no branch 4"),
    ],
)
def test_what_could_loop_or_jump_is_refused_where_it_stands(tree: Any, text: str, message: str) -> None:
    for columns in (["f0"], ["nosuch"]):
        with pytest.raises(CorruptFileError, match=message):
            decode([tree], bytes.fromhex(text), columns=columns)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\0\3\0\0\0",
        struct.pack(">ii", 3, -1),
        struct.pack(">ii", 3, 1),
        struct.pack(">ii", 3, 2**31 - 1) + bytes(100),
        struct.pack(">iii", 3, 1, -1),
        struct.pack(">iii", 3, 1, 2**31 - 1) + b"\0",
        struct.pack(">ii", 3, 0) + b"\0",
        struct.pack(">iii", 3, 1, 1) + b"\2\2",
        struct.pack(">iii", 3, 1, 0) + b"\2",
    ],
)
def test_blocks_that_do_not_add_up(content: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_avro_data(content, AvroSchema.parse(schema_text("int")))


@pytest.mark.parametrize("version", [0, 4, -1])
def test_unknown_block_versions(version: int) -> None:
    with pytest.raises(UnsupportedFeatureError):
        decode_avro_data(raw_data([b"\2"], version=version), AvroSchema.parse(schema_text("int")))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_known_block_versions(version: int) -> None:
    content = raw_data([b"\2"], version=version)
    assert decode_avro_data(content, AvroSchema.parse(schema_text("int"))).to_pylist() == [{"f0": 1}]


WIDE_STRUCT = {
    "type": "record",
    "name": "w",
    "fields": [{"name": f"x{i}", "type": "long"} for i in range(10_000)],
}
BOMBS = {
    "nulls of a wide struct": (["null", WIDE_STRUCT], b"\0", 10_000),
    "branches of a wide union": (
        ["string", *({"type": "fixed", "name": f"f{i}", "size": 1} for i in range(10_000))],
        b"\0\0",
        10_000,
    ),
    "long symbols": ({"type": "enum", "name": "e", "symbols": ["A" * 100_000]}, b"\0", 10_000),
    "items": ({"type": "array", "items": "int"}, varint(1 << 20) + bytes(100), 1),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_go_off_in_bounded_time_and_memory(name: str) -> None:
    tree, record, rows = BOMBS[name]
    schema = AvroSchema.parse(schema_text(tree))
    content = raw_data([record] * rows)
    started = time.process_time()
    tracemalloc.start()
    try:
        with pytest.raises(HoodieError):
            decode_avro_data(content, schema)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 10
    assert peak < 100_000_000


PRIMITIVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=80)),
    ("string", st.text(st.characters(codec="utf-8"), max_size=80)),
]


@st.composite
def types_and_values(draw: st.DrawFn, depth: int = 3) -> tuple[Any, st.SearchStrategy[Any]]:
    kind = draw(st.sampled_from(["leaf", "leaf", "null", "array", "map", "record"] if depth else ["leaf"]))
    if kind == "leaf":
        name, values = draw(st.sampled_from(PRIMITIVES))
        return name, values
    tree, values = draw(types_and_values(depth=depth - 1))
    if kind == "null" and not isinstance(tree, list):
        return (["null", tree] if draw(st.booleans()) else [tree, "null"]), st.none() | values
    if kind == "map":
        keys = st.text("abc\u00e9", max_size=3)
        return {"type": "map", "values": tree}, st.dictionaries(keys, values, max_size=4)
    if kind == "record":
        other, others = draw(types_and_values(depth=depth - 1))
        fields = [{"name": "a", "type": tree}, {"name": "b", "type": other}]
        return {"type": "record", "name": "", "fields": fields}, st.fixed_dictionaries({"a": values, "b": others})
    return {"type": "array", "items": tree}, st.lists(values, max_size=4)


@st.composite
def schemas_and_records(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    columns = draw(st.lists(types_and_values(), min_size=1, max_size=4))
    values = st.fixed_dictionaries({f"f{i}": strategy for i, (_, strategy) in enumerate(columns)})
    number = count()
    named = re.sub('"name": ""', lambda _: f'"name": "r{next(number)}"', schema_text(*(tree for tree, _ in columns)))
    return named, draw(st.lists(values, max_size=6))


@given(schemas_and_records())
def test_decodes_what_fastavro_writes(case: tuple[str, list[dict[str, Any]]]) -> None:
    text, records = case
    schema = AvroSchema.parse(text)
    content = avro_data(text, records)
    batch = decode_avro_data(content, schema)
    batch.validate(full=True)
    assert batch.to_pylist(maps_as_pydicts="strict") == records
    assert batch.schema == schema.arrow
    some = schema.arrow.names[::2]
    assert decode_avro_data(content, schema, some) == batch.select(some)


@given(schemas_and_records(), st.data())
def test_damaged_records_are_errors_or_other_records(
    case: tuple[str, list[dict[str, Any]]], data: st.DataObject
) -> None:
    text, records = case
    content = bytearray(avro_data(text, records))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF]))
    schema = AvroSchema.parse(text)
    try:
        batch = decode_avro_data(bytes(content), schema)
    except HoodieError:
        return
    batch.validate(full=True)
    batch.to_pylist()


@given(schemas_and_records(), st.binary(max_size=60), st.integers(0, 3))
def test_junk_is_an_error_or_records(case: tuple[str, list[dict[str, Any]]], junk: bytes, rows: int) -> None:
    schema = AvroSchema.parse(case[0])
    try:
        decode_avro_data(raw_data([junk] * rows), schema).validate(full=True)
    except HoodieError:
        return


def plain(content: bytes, text: str) -> list[Any]:
    """The records as fastavro reads them."""
    schema = fastavro.parse_schema(json.loads(text))
    records: list[Any] = []
    stream = io.BytesIO(content)
    (rows,) = struct.unpack(">4xi", stream.read(8))
    for _ in range(rows):
        (length,) = struct.unpack(">i", stream.read(4))
        records.append(fastavro.schemaless_reader(io.BytesIO(stream.read(length)), schema, None))
    return records


def test_real_blocks_are_what_fastavro_reads() -> None:
    blocks = [b for b in real_blocks() if b.type in (BlockType.AVRO_DATA, BlockType.CDC_DATA)]
    compared = 0
    for block in blocks[::3]:
        assert block.schema_text
        if '"logicalType":"vector"' in block.schema_text:
            continue  # fastavro does not read a fixed whose name has no size
        schema = AvroSchema.parse(block.schema_text)
        batch = decode_avro_data(block.content, schema)
        assert batch.to_pylist(maps_as_pydicts="strict") == plain(bytes(block.content), block.schema_text)
        key = [name for name in batch.schema.names if name in ("_hoodie_record_key", "ts")]
        assert decode_avro_data(block.content, schema, key) == batch.select(key)
        compared += batch.num_rows
    assert compared


def test_every_truncation_and_flipped_bit_of_a_real_record() -> None:
    blocks = [b for b in real_blocks("types_mor_v9_bulk") if b.type is BlockType.AVRO_DATA]
    block = min(blocks, key=lambda b: len(b.content))
    assert block.schema_text
    schema = AvroSchema.parse(block.schema_text)
    content = bytes(block.content)
    for length in range(0, len(content), 2):
        with pytest.raises(CorruptFileError):
            decode_avro_data(content[:length], schema)
    for place in range(0, len(content), 2):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place // 2 % 8
        try:
            decode_avro_data(bytes(flipped), schema).validate(full=True)
        except HoodieError:
            continue
