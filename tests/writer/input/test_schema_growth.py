"""Tests of new columns in a table's schema."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.from_arrow import make_schema_text
from hoodie_py.writer.input.conform import evolve_schema

_COLUMNS = pa.schema([
    ("id", pa.string()),
    ("st", pa.struct([("a", pa.int32())])),
    ("li", pa.list_(pa.field("element", pa.struct([("x", pa.int64())])))),
    ("ma", pa.map_(pa.string(), pa.struct([("p", pa.decimal128(5, 2))]))),
])  # fmt: skip
_TEXT = make_schema_text(_COLUMNS, "t")


def test_the_text_stays_where_nothing_is_new() -> None:
    spaced = json.dumps(json.loads(_TEXT), indent=2)
    assert evolve_schema(spaced, _COLUMNS) is spaced
    assert evolve_schema(spaced, pa.schema([("id", pa.large_string())])) is spaced


def test_new_columns_come_last_and_may_be_null() -> None:
    columns = pa.schema([pa.field("n", pa.int64(), nullable=False), ("id", pa.string())])
    grown = AvroSchema.parse(evolve_schema(_TEXT, columns))
    assert grown.arrow.names == ["id", "st", "li", "ma", "n"]
    assert grown.arrow.field("n").nullable


def test_fields_grow_at_every_depth() -> None:
    deeper = pa.schema([
        ("st", pa.struct([("b", pa.struct([("c", pa.decimal128(9, 1))]))])),
        ("li", pa.large_list(pa.struct([("y", pa.string())]))),
        ("ma", pa.map_(pa.string(), pa.struct([("q", pa.decimal128(5, 2))]))),
    ])  # fmt: skip
    text = evolve_schema(_TEXT, deeper)
    arrow = AvroSchema.parse(text).arrow
    assert [each.name for each in arrow.field("st").type] == ["a", "b"]
    assert [each.name for each in arrow.field("li").type.value_type] == ["x", "y"]
    assert [each.name for each in arrow.field("ma").type.item_type] == ["p", "q"]
    assert '"name":"b","namespace":"hoodie.t.t_record.st"' in text
    assert evolve_schema(text, deeper) is text


def test_columns_of_nulls_are_not_new() -> None:
    assert evolve_schema(_TEXT, pa.schema([("n", pa.null())])) is _TEXT


def test_names_that_differ_in_case_only_are_refused() -> None:
    with pytest.raises(InvalidQueryError, match="'ID', the table 'id'"):
        evolve_schema(_TEXT, pa.schema([("ID", pa.string())]))
    with pytest.raises(InvalidQueryError, match=r"'st\.A', the table 'a'"):
        evolve_schema(_TEXT, pa.schema([("st", pa.struct([("A", pa.int32())]))]))


def test_types_that_tables_do_not_have_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="time64"):
        evolve_schema(_TEXT, pa.schema([("n", pa.time64("us"))]))
    struct = {"type": "record", "name": "s", "fields": [{"name": "x", "type": "int"}]}
    fields = [{"name": "a", "type": struct}, {"name": "b", "type": "s"}]
    named = json.dumps({"type": "record", "name": "r", "fields": fields})
    with pytest.raises(UnsupportedFeatureError, match="by name"):
        evolve_schema(named, pa.schema([("b", pa.struct([("x", pa.int32()), ("y", pa.int32())]))]))
