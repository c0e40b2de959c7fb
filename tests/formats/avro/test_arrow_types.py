"""Arrow types and defaults for Avro schemas.

Times that files type otherwise than their table: which are taken for what the table declares, and which are not.
"""

from __future__ import annotations

import io
import json
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.arrow_types import find_mistyped_times, list_declared_times, retype_times
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.parquet.decoder import decode_parquet_data, decode_parquet_parts
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


MOMENT = 1_720_631_224_939
UTC_MILLIS, UTC_MICROS = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")
MILLIS, MICROS = pa.timestamp("ms"), pa.timestamp("us")


def long(logical: str | None) -> Any:
    """An Avro long, with a logical type."""
    return {"type": "long", "logicalType": logical} if logical else "long"


def schema(**fields: Any) -> AvroSchema:
    """A record of nullable fields."""
    entries = [{"name": name, "type": ["null", type_], "default": None} for name, type_ in fields.items()]
    return AvroSchema.parse(json.dumps({"type": "record", "name": "r", "fields": entries}))


@pytest.mark.parametrize(
    ("stored", "declared", "read"),
    [
        (UTC_MICROS, "timestamp-millis", UTC_MILLIS),
        (MICROS, "local-timestamp-millis", MICROS),
        (MICROS, "timestamp-millis", MICROS),
        (UTC_MICROS, "local-timestamp-millis", UTC_MICROS),
        (pa.int64(), "local-timestamp-millis", MILLIS),
        (pa.int64(), "local-timestamp-micros", MICROS),
        (pa.int64(), "timestamp-micros", UTC_MICROS),
        (pa.int64(), "timestamp-millis", pa.int64()),  # Java takes it for one thing in base files, another in logs
        (pa.int64(), "time-micros", pa.int64()),
        (pa.int64(), None, pa.int64()),
        (UTC_MICROS, None, UTC_MICROS),
        (UTC_MICROS, "timestamp-micros", UTC_MICROS),
        (UTC_MILLIS, "timestamp-micros", UTC_MILLIS),
        (UTC_MILLIS, "timestamp-millis", UTC_MILLIS),
        (MILLIS, "local-timestamp-micros", MILLIS),
        (pa.timestamp("ns"), "timestamp-millis", pa.timestamp("ns")),
        (pa.int32(), "timestamp-millis", pa.int32()),
        (pa.string(), "local-timestamp-millis", pa.string()),
    ],
    ids=str,
)
def test_the_table_tells_the_unit_of_a_column(stored: pa.DataType, declared: str | None, read: pa.DataType) -> None:
    times = list_declared_times(schema(c=long(declared)).record)
    assert find_mistyped_times(pa.schema([("c", stored)]), times).get("c", stored) == read


def nested(kind: str, logical: str | None) -> Any:
    """A time within another type."""
    inner = ["null", long(logical)]
    return {
        "list": {"type": "array", "items": inner},
        "map": {"type": "map", "values": inner},
        "struct": {
            "type": "record",
            "name": "s",
            "fields": [{"name": "n", "type": ["null", "string"]}, {"name": "x", "type": inner}],
        },
    }[kind]


def values(kind: str, time: pa.DataType) -> pa.Array:
    """Two values of the type that ``nested`` declares, and a null."""
    if kind == "list":
        plain = pa.array([[MOMENT, None], [MOMENT], None], pa.list_(pa.int64()))
        return plain.view(pa.list_(time))
    if kind == "map":
        pairs = pa.array([[("a", MOMENT)], [("b", None)], None], pa.map_(pa.string(), pa.int64()))
        return pairs.view(pa.map_(pa.string(), time))
    rows = [{"n": "a", "x": MOMENT}, {"n": "b", "x": None}, None]
    return pa.array(rows, pa.struct([("n", pa.string()), ("x", pa.int64())])).view(
        pa.struct([("n", pa.string()), ("x", time)])
    )


@pytest.mark.parametrize("kind", ["list", "map", "struct"])
@pytest.mark.parametrize(
    ("stored", "declared", "read"),
    [(UTC_MICROS, "timestamp-millis", UTC_MILLIS), (pa.int64(), "local-timestamp-millis", MILLIS)],
    ids=["micros", "long"],
)
def test_times_within_other_types(kind: str, stored: pa.DataType, declared: str, read: pa.DataType) -> None:
    times = list_declared_times(schema(c=nested(kind, declared), d="string").record)
    batch = pa.RecordBatch.from_arrays([values(kind, stored), pa.array(["x", "y", "z"])], ["c", "d"])
    types = find_mistyped_times(batch.schema, times)
    assert list(types) == ["c"]
    found = retype_times(batch.slice(1), types)
    assert found.column("c").equals(values(kind, read).slice(1))
    assert found.column("d").equals(batch.column("d").slice(1))


def test_a_field_that_the_table_does_not_have_stays_as_it_is() -> None:
    times = list_declared_times(schema(c=nested("struct", "timestamp-millis")).record)
    more = pa.struct([("z", UTC_MICROS), ("x", UTC_MICROS)])
    found = find_mistyped_times(pa.schema([("c", more), ("other", UTC_MICROS)]), times)
    assert found == {"c": pa.struct([("z", UTC_MICROS), ("x", UTC_MILLIS)])}


def test_a_table_without_times_declares_none() -> None:
    assert list_declared_times(schema(a="long", b={"type": "array", "items": "string"}).record) is None
    assert find_mistyped_times(pa.schema([("a", pa.int64())]), None) == {}


@pytest.mark.parametrize(
    ("written", "declared", "read"),
    [
        ("timestamp-micros", "timestamp-millis", "timestamp-millis"),
        ("local-timestamp-micros", "local-timestamp-millis", "local-timestamp-millis"),
        (None, "local-timestamp-millis", "local-timestamp-millis"),
        (None, "local-timestamp-micros", "local-timestamp-micros"),
        (None, "timestamp-millis", "timestamp-millis"),
        ("timestamp-millis", "timestamp-micros", "timestamp-millis"),
        ("time-micros", "timestamp-millis", "time-micros"),
    ],
)
def test_log_blocks_are_decoded_with_the_times_of_the_table(written: str | None, declared: str, read: str) -> None:
    kinds = ("list", "map", "struct")
    mine = schema(c=long(written), **{kind: nested(kind, written) for kind in kinds})
    times = list_declared_times(schema(c=long(declared), **{kind: nested(kind, declared) for kind in kinds}).record)
    expected = schema(c=long(read), **{kind: nested(kind, read) for kind in kinds})
    found = mine.apply_times(times)
    assert found.arrow == expected.arrow
    assert mine.apply_times(times) is found  # so that what is planned for a schema is planned once
    if written == read:
        assert found is mine


def test_parquet_blocks_are_read_with_the_times_of_the_table() -> None:
    times = list_declared_times(schema(c=long("timestamp-millis"), d=long("local-timestamp-millis"), e="long").record)
    rows = pa.table({"c": pa.array([MOMENT]).view(UTC_MICROS), "d": [MOMENT], "e": [MOMENT]})
    content = io.BytesIO()
    pq.write_table(rows, content)
    whole = decode_parquet_data(content.getvalue(), times=times)
    assert whole.schema.types == [UTC_MICROS, MICROS, pa.int64()]
    assert [column.cast(pa.int64())[0].as_py() for column in whole.columns] == [MOMENT * 1000, MOMENT * 1000, MOMENT]
    parts = pa.Table.from_batches(decode_parquet_parts(content.getvalue(), None, 1, times))
    assert parts.to_batches()[0].equals(whole)


def test_int96_is_no_number_of_microseconds() -> None:
    times = list_declared_times(schema(c=long("timestamp-millis")).record)
    content = io.BytesIO()
    pq.write_table(pa.table({"c": pa.array([MOMENT]).view(UTC_MILLIS)}), content, use_deprecated_int96_timestamps=True)
    found = decode_parquet_data(content.getvalue(), times=times)
    assert found.column("c").cast(pa.int64()).to_pylist() == [MOMENT * 1000]
