"""Tests of Avro schemas made for Arrow columns."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.from_arrow import make_schema_text
from tests.corpus import unpack

_LEAVES = st.sampled_from([
    pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32(),
    pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.decimal128(1, 0), pa.decimal128(18, 3), pa.decimal128(38, 38),
])  # fmt: skip


def _structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    fields = st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3)
    return fields.map(lambda made: pa.struct([pa.field(f"f{i}", t, nullable=n) for i, (t, n) in enumerate(made)]))


_TYPES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.booleans()).map(lambda each: pa.list_(pa.field("element", each[0], nullable=each[1]))),
        st.tuples(inner, st.booleans()).map(lambda e: pa.map_(pa.string(), pa.field("value", e[0], nullable=e[1]))),
        _structs(inner),
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(_TYPES, st.booleans()), min_size=1, max_size=4))
def test_columns_come_back_as_they_were(columns: list[tuple[pa.DataType, bool]]) -> None:
    schema = pa.schema([pa.field(f"c{i}", type_, nullable=nulls) for i, (type_, nulls) in enumerate(columns)])
    assert AvroSchema.parse(make_schema_text(schema, "t")).arrow.equals(schema)


@pytest.mark.parametrize("name", ["types_mor_v9", "types_mor_v9_bulk", "types_cow_v6"])
def test_java_writes_the_same_text(name: str, tmp_path: Path) -> None:
    table = HoodieTable.open(unpack(name, tmp_path))
    [text] = {table._snapshot.schema.text}
    assert text is not None
    columns = pa.schema([field for field in table.schema if not field.name.startswith("_hoodie_")])
    assert json.loads(make_schema_text(columns, table.config.name)) == json.loads(text)


@pytest.mark.parametrize(
    ("given_type", "stored"),
    [
        (pa.int8(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.string()),
        (pa.binary(16), pa.binary()),
        (pa.decimal256(20, 2), pa.decimal128(20, 2)),
        (pa.date64(), pa.date32()),
        (pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.large_list(pa.int16()), pa.list_(pa.field("element", pa.int32()))),
        (pa.list_(pa.int16(), 3), pa.list_(pa.field("element", pa.int32()))),
        (pa.uuid(), pa.binary()),
    ],
)
def test_types_are_brought_to_those_of_spark(given_type: pa.DataType, stored: pa.DataType) -> None:
    schema = pa.schema([("c", given_type)])
    assert AvroSchema.parse(make_schema_text(schema, "t")).arrow.field("c").type.equals(stored)


@pytest.mark.parametrize(
    ("type_", "place"),
    [
        (pa.null(), "c"),
        (pa.uint64(), "c"),
        (pa.time64("us"), "c"),
        (pa.duration("s"), "c"),
        (pa.struct([]), "c"),
        (pa.decimal256(39, 0), "c"),
        (pa.decimal128(5, -2), "c"),
        (pa.map_(pa.int32(), pa.string()), "c"),
        (pa.struct([("a", pa.struct([("b", pa.null())]))]), "c.a.b"),
    ],
)
def test_other_types_are_refused_by_name(type_: pa.DataType, place: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as raised:
        make_schema_text(pa.schema([("c", type_)]), "t")
    assert raised.value.where["column"] == place


def test_bad_and_repeated_names_are_refused() -> None:
    with pytest.raises(InvalidQueryError, match="cannot be the name"):
        make_schema_text(pa.schema([("a-b", pa.string())]), "t")
    with pytest.raises(InvalidQueryError, match="more than once"):
        make_schema_text(pa.schema([("a", pa.string()), ("a", pa.string())]), "t")


def test_names_of_tables_become_names_of_records() -> None:
    record = json.loads(make_schema_text(pa.schema([("a", pa.string())]), "1 trips-2026"))
    assert (record["namespace"], record["name"]) == ("hoodie.____trips__2026", "____trips__2026_record")
