from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.parquet.base_schema import convert_to_stored, make_stored_schema


def avro(**fields: Any) -> str:
    declared = [{"name": name, "type": kind} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "r", "fields": declared})


def stored(**fields: Any) -> pa.Schema:
    return make_stored_schema(AvroSchema.parse(avro(**fields)))


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name} | more


TYPES: list[tuple[Any, pa.DataType]] = [
    ("boolean", pa.bool_()), ("int", pa.int32()), ("long", pa.int64()), ("float", pa.float32()),
    ("double", pa.float64()), ("string", pa.string()), ("bytes", pa.binary()),
    (logical("int", "date"), pa.date32()),
    (logical("long", "timestamp-micros"), pa.timestamp("us", "UTC")),
    (logical("long", "timestamp-millis"), pa.timestamp("ms", "UTC")),
    (logical("long", "local-timestamp-micros"), pa.timestamp("us")),
    (logical("long", "local-timestamp-millis"), pa.timestamp("ms")),
    (logical("int", "time-millis"), pa.time32("ms")), (logical("long", "time-micros"), pa.time64("us")),
    (logical("string", "uuid"), pa.string()), ({"type": "enum", "name": "e", "symbols": ["A"]}, pa.string()),
    ({"type": "fixed", "name": "f", "size": 3}, pa.binary(3)),
    (logical("bytes", "decimal", precision=5, scale=2), pa.decimal128(5, 2)),
    ({"type": "array", "items": ["null", logical("long", "timestamp-millis")]},
     pa.list_(pa.field("element", pa.timestamp("ms", "UTC")))),
    ({"type": "map", "values": "int"}, pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False))),
    ({"type": "record", "name": "s", "fields": [{"name": "a", "type": ["int", "null"]}, {"name": "b", "type": "int"}]},
     pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.int32(), nullable=False)])),
    (["int", "long"], pa.int64()),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "expected"), TYPES)
def test_types_and_nullability_follow_the_avro_schema(kind: Any, expected: pa.DataType) -> None:
    assert stored(c=kind) == pa.schema([pa.field("c", expected, nullable=False)])
    branches = ["null", *(kind if isinstance(kind, list) else [kind])]
    assert stored(c=branches) == pa.schema([pa.field("c", expected)])


@pytest.mark.parametrize(
    "kind",
    ["null", ["int", "string"], ["null", "int", "string"], {"type": "record", "name": "e", "fields": []},
     {"type": "array", "items": "null"}],
)  # fmt: skip
def test_what_parquet_does_not_have_is_refused(kind: Any) -> None:
    with pytest.raises(UnsupportedFeatureError):
        stored(c=kind)


def nested() -> pa.Schema:
    moment = {"name": "t", "type": ["null", logical("long", "timestamp-millis")]}
    items = {"type": "record", "name": "item", "fields": [moment, {"name": "n", "type": "int"}]}
    return stored(
        l=["null", {"type": "array", "items": ["null", items]}],
        m=["null", {"type": "map", "values": ["null", logical("int", "time-millis")]}],
        s=["null", {"type": "record", "name": "outer", "fields": [{"name": "i", "type": ["null", "item"]}]}],
    )


item_type = pa.struct([("t", pa.timestamp("us", "UTC")), ("n", pa.int32())])
SPARK = pa.schema(
    [("s", pa.struct([("i", item_type)])), ("l", pa.list_(item_type)), ("m", pa.map_(pa.string(), pa.int32()))]
)
moments = st.none() | st.integers(0, 10**9).map(lambda millis: millis * 1000)
items = st.none() | st.fixed_dictionaries({"t": moments, "n": st.integers(0, 9)})
rows = st.fixed_dictionaries(
    {
        "l": st.none() | st.lists(items, max_size=3),
        "m": st.none() | st.dictionaries(st.text(max_size=2), st.none() | st.integers(0, 86_399_999), max_size=3),
        "s": st.none() | st.fixed_dictionaries({"i": items}),
    }
)


def plain(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return [{name: row[name] for name in sorted(row)} for row in batch.to_pylist()]


@given(st.lists(rows, max_size=8), st.integers(0, 4), st.integers(0, 4))
def test_values_keep_their_place_on_every_level(data: list[dict[str, Any]], start: int, stop: int) -> None:
    pairs = [row | {"m": None if row["m"] is None else list(row["m"].items())} for row in data]
    whole = pa.RecordBatch.from_pylist(pairs, SPARK)
    cut = whole.slice(start, max(len(data) - start - stop, 0))
    found = convert_to_stored(cut, nested())
    found.validate(full=True)
    assert found.schema == nested()
    assert [row | {"m": _as_numbers(row["m"])} for row in plain(found)] == plain(cut)


def _as_numbers(pairs: list[tuple[str, Any]] | None) -> list[tuple[str, int | None]] | None:
    """A map of times of the day with the integers that batches have in their place."""
    return None if pairs is None else [(key, _millis(value)) for key, value in pairs]


def _millis(value: Any) -> int | None:
    if value is None:
        return None
    return int(((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000)


def batch(**columns: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def test_a_batch_that_fits_is_not_copied() -> None:
    some = batch(a=pa.array([1, None]), b=pa.array([["x"]] * 2))
    schema = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.field("element", pa.string())))])
    found = convert_to_stored(some, schema)
    assert found.column(0).buffers()[1].address == some.column(0).buffers()[1].address


def test_narrow_numbers_and_large_strings_are_cast() -> None:
    schema = stored(a=["null", "long"], b=["null", "string"], f={"type": "fixed", "name": "f", "size": 2})
    some = batch(b=pa.array(["x"], pa.large_string()), f=pa.array([b"ab"]), a=pa.array([1], pa.int32()))
    assert convert_to_stored(some, schema).to_pylist() == [{"a": 1, "b": "x", "f": b"ab"}]


REQUIRED = {"type": "record", "name": "s", "fields": [{"name": "a", "type": "int"}]}
MISFITS: list[tuple[Any, pa.Array]] = [
    ("int", pa.array([1, None], pa.int32())),
    ("int", pa.array([1 << 40])),
    (logical("long", "timestamp-millis"), pa.array([1], pa.timestamp("us", "UTC"))),
    ({"type": "fixed", "name": "f", "size": 2}, pa.array([b"abc"])),
    ({"type": "array", "items": "int"}, pa.array([[1], [None]], pa.list_(pa.int32()))),
    ({"type": "map", "values": "int"}, pa.array([[("a", None)]], pa.map_(pa.string(), pa.int32()))),
    (["null", REQUIRED], pa.array([{"a": None}], pa.struct([("a", pa.int32())]))),
    (REQUIRED, pa.array([{"b": 1}])),
    (REQUIRED, pa.array([1])),
    ("string", pa.array([[1]])),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "array"), MISFITS)
def test_values_that_do_not_fit_are_refused(kind: Any, array: pa.Array) -> None:
    with pytest.raises(InvalidTableError) as caught:
        convert_to_stored(batch(c=array), stored(c=kind))
    assert caught.value.where["column"] == "c"


def test_a_required_field_may_be_null_where_its_record_is() -> None:
    schema = stored(c=["null", REQUIRED])
    found = convert_to_stored(batch(c=pa.array([None, {"a": 1}], pa.struct([("a", pa.int32())]))), schema)
    assert found.to_pylist() == [{"c": None}, {"c": {"a": 1}}]


@pytest.mark.parametrize("names", [["a"], ["a", "c"], ["a", "b", "c"], ["a", "a"]])
def test_other_columns_are_refused(names: list[str]) -> None:
    some = pa.RecordBatch.from_arrays([pa.array([1])] * len(names), names=names)
    with pytest.raises(InvalidTableError, match="columns"):
        convert_to_stored(some, stored(a="long", b="long"))


def test_required_fields_of_null_structs_may_be_null() -> None:
    inner = {"type": "record", "name": "q", "fields": [{"name": "c", "type": "long"}]}
    fields = [
        {"name": "a", "type": "string"},
        {"name": "q", "type": inner},
        {"name": "l", "type": {"type": "array", "items": "double"}},
        {"name": "m", "type": {"type": "map", "values": "int"}},
    ]
    record = {"type": "record", "name": "s", "fields": fields}
    text = json.dumps({"type": "record", "name": "r", "fields": [{"name": "s", "type": ["null", record]}]})
    schema = make_stored_schema(AvroSchema.parse(text))
    value = {"a": "x", "q": {"c": 1}, "l": [0.5], "m": [("k", 2)]}
    loose = pa.struct([
        ("a", pa.string()), ("q", pa.struct([("c", pa.int64())])), ("l", pa.list_(pa.float64())),
        ("m", pa.map_(pa.string(), pa.int32())),
    ])  # fmt: skip
    nothing = pa.nulls(1, loose)
    children = [pa.concat_arrays([nothing.field(i), pa.array([value], loose).field(i)]) for i in range(4)]
    column = pa.StructArray.from_arrays(children, fields=list(loose), mask=pa.array([True, False]))
    rows = convert_to_stored(
        pa.RecordBatch.from_arrays(
            [
                column,
            ],
            ["s"],
        ),
        schema,
    )
    rows.validate(full=True)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([rows]), sink)
    assert pq.read_table(pa.BufferReader(sink.getvalue())).to_pylist() == [{"s": None}, {"s": value}]
