"""Tests of how rows make a table's schema grow."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.from_arrow import make_schema_text
from hoodie_py.writer.input.evolution import Growth, evolve_schema

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


def _evolve(table: pa.DataType, rows: pa.DataType) -> pa.DataType:
    text = make_schema_text(pa.schema([("id", pa.string()), ("c", table)]), "t")
    return AvroSchema.parse(evolve_schema(text, pa.schema([("id", pa.string()), ("c", rows)]))).arrow.field("c").type


_INT, _LONG, _FLOAT, _DOUBLE, _TEXT_TYPE = pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string()
_WIDENED = [
    (_INT, _LONG), (_INT, _FLOAT), (_INT, _DOUBLE), (_INT, _TEXT_TYPE), (_LONG, _FLOAT), (_LONG, _DOUBLE),
    (_LONG, _TEXT_TYPE), (_FLOAT, _DOUBLE), (_FLOAT, _TEXT_TYPE), (_DOUBLE, _TEXT_TYPE),
    (pa.decimal128(10, 2), pa.decimal128(12, 2)), (pa.decimal128(10, 2), pa.decimal128(12, 4)),
]  # fmt: skip
_KEPT = [
    (_LONG, _INT), (_DOUBLE, _FLOAT), (_FLOAT, _LONG), (_TEXT_TYPE, _INT), (_TEXT_TYPE, pa.binary()),
    (_TEXT_TYPE, pa.date32()), (pa.binary(), _TEXT_TYPE), (pa.date32(), _TEXT_TYPE), (pa.bool_(), _INT),
    (pa.decimal128(12, 2), pa.decimal128(12, 4)), (pa.decimal128(12, 2), pa.decimal128(10, 2)),
    (pa.decimal128(12, 2), _TEXT_TYPE), (_LONG, pa.timestamp("us", "UTC")), (_INT, pa.uint64()),
]  # fmt: skip


@pytest.mark.parametrize(("table", "rows"), _WIDENED, ids=str)
def test_types_widen_as_in_java(table: pa.DataType, rows: pa.DataType) -> None:
    assert _evolve(table, rows) == rows
    assert _evolve(rows, table) == rows
    nested = _evolve(pa.list_(pa.struct([("a", table)])), pa.list_(pa.struct([("a", rows)])))
    assert nested.value_type.field("a").type == rows
    assert _evolve(pa.map_(pa.string(), table), pa.map_(pa.string(), rows)).item_type == rows


@pytest.mark.parametrize(("table", "rows"), _KEPT, ids=str)
def test_other_types_stay(table: pa.DataType, rows: pa.DataType) -> None:
    assert _evolve(table, rows) == table


def test_lacking_columns_may_become_nullable() -> None:
    fields = [pa.field(name, pa.int64(), nullable=False) for name in ("id", "a", "b")]
    text = make_schema_text(pa.schema(fields), "t")
    grown = AvroSchema.parse(evolve_schema(text, pa.schema(fields[1:2]), Growth(fill_missing=True, keys=("id",)))).arrow
    assert [field.nullable for field in grown] == [False, False, True]
    assert evolve_schema(text, pa.schema(fields[:1])) is text


def test_the_order_of_rows_counts_where_it_is_asked_for() -> None:
    first = pa.schema([("id", pa.string()), ("n", pa.int64()), *list(_COLUMNS)[1:]])
    grown = AvroSchema.parse(evolve_schema(_TEXT, first, Growth(order_of_rows=True))).arrow
    assert grown.names == ["id", "n", "st", "li", "ma"]
    lacking = pa.schema([("n", pa.int64()), ("id", pa.string())])
    assert AvroSchema.parse(evolve_schema(_TEXT, lacking, Growth(order_of_rows=True))).arrow.names[-1] == "n"


def test_lacking_columns_may_be_dropped() -> None:
    given = pa.schema([("id", pa.string()), ("st", pa.struct([("b", pa.int32())])), ("n", pa.int64())])
    grown = AvroSchema.parse(evolve_schema(_TEXT, given, Growth(drop_missing=True))).arrow
    assert grown.names == ["id", "st", "n"]
    assert [field.name for field in grown.field("st").type] == ["b"]
