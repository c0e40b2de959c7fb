"""Tests of rows brought to the columns of a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.names import META_FIELDS
from hoodie_py.options.write import LOSSY, NULL_FOR_MISSING, RECONCILE_SCHEMA, SCHEMA_CHANGES
from hoodie_py.table.snapshot import Snapshot, open_snapshot
from hoodie_py.writer.input.conform import conform_input, find_write_schema
from hoodie_py.writer.output_schema import OutputSchema, load_output_schema
from tests.corpus import corpus_names, unpack

_SCHEMA = pa.schema([
    pa.field("id", pa.string(), nullable=False), ("ts", pa.int64()), ("city", pa.string()), ("price", pa.float64()),
])  # fmt: skip
_ROWS = pa.table({"id": ["a"], "ts": [1], "city": ["sf"], "price": [1.5]})


def conformed(rows: pa.Table, snapshot: Snapshot, options: dict[str, str]) -> tuple[pa.Table, OutputSchema]:
    return conform_input(rows, snapshot, find_write_schema(snapshot), options)


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    HoodieTable.create(tmp_path / "t", _SCHEMA, record_key="id", ordering="ts", partition_by="city")
    return open_snapshot(str(tmp_path / "t"))


def test_columns_come_in_the_order_and_types_of_the_table(snapshot: Snapshot) -> None:
    given = pa.table(
        {
            "price": pa.array([1.5], pa.float32()),
            **{name: ["x"] for name in META_FIELDS},
            "city": pa.array(["sf"]).dictionary_encode(),
            "ts": pa.array([1], pa.int16()),
            "id": pa.array(["a"], pa.large_string()),
        }
    )
    rows, schema = conformed(given, snapshot, {})
    assert rows.schema.equals(_SCHEMA)
    assert rows.to_pylist() == _ROWS.to_pylist()
    assert schema == load_output_schema(snapshot)


def test_new_columns_are_added_to_the_schema(snapshot: Snapshot) -> None:
    rows, schema = conformed(_ROWS.append_column("tip", pa.array([2])), snapshot, {})
    assert rows.column_names == schema.arrow.names[5:] == [*_SCHEMA.names, "tip"]
    assert [each["name"] for each in json.loads(schema.table)["fields"]] == rows.column_names


@pytest.mark.parametrize("option", [NULL_FOR_MISSING, RECONCILE_SCHEMA])
def test_missing_columns_are_refused_unless_they_may_be_null(snapshot: Snapshot, option: str) -> None:
    given = _ROWS.drop_columns(["price", "city"])
    with pytest.raises(InvalidQueryError, match="lack columns of the table: city, price"):
        conformed(given, snapshot, {})
    rows, _ = conformed(given, snapshot, {option: "true"})
    assert rows.to_pylist() == [{"id": "a", "ts": 1, "city": None, "price": None}]
    with pytest.raises(InvalidQueryError, match="'id', which the table requires"):
        conformed(_ROWS.drop_columns(["id"]), snapshot, {option: "true"})


def test_repeated_columns_are_refused(snapshot: Snapshot) -> None:
    with pytest.raises(InvalidQueryError, match="'ts' more than once"):
        conformed(_ROWS.append_column("ts", pa.array([2])), snapshot, {})


def test_other_types_are_refused_naming_both(snapshot: Snapshot) -> None:
    given = _ROWS.set_column(1, "ts", pa.array([True]))
    with pytest.raises(InvalidQueryError, match="'ts' has the type bool in the rows and int64 in the table"):
        conformed(given, snapshot, {})


def test_a_wider_type_of_the_rows_becomes_the_tables(snapshot: Snapshot) -> None:
    lossy = {SCHEMA_CHANGES: LOSSY}
    rows, schema = conformed(_ROWS.set_column(1, "ts", pa.array([1.5])), snapshot, lossy)
    assert rows.schema.field("ts").type == schema.arrow.field("ts").type == pa.float64()
    rows, schema = conformed(_ROWS.set_column(3, "price", pa.array(["dear"])), snapshot, lossy)
    assert (rows["price"][0].as_py(), schema.arrow.field("price").type) == ("dear", pa.string())


@pytest.mark.parametrize(("column", "value"), [("ts", "x"), ("id", 1.5), ("id", b"a")])
def test_columns_that_keys_or_order_are_made_of_keep_their_types(
    snapshot: Snapshot, column: str, value: object
) -> None:
    given = _ROWS.set_column(_ROWS.column_names.index(column), column, pa.array([value]))
    if column == "id":  # a text stays what it is, whatever the rows have
        rows, schema = conformed(given, snapshot, {})
        assert rows.schema.field("id").type == schema.arrow.field("id").type == pa.string()
        return
    with pytest.raises(InvalidQueryError, match="order of versions are made of it"):
        conformed(given, snapshot, {})


def _table_of(avro_type: Any, tmp_path: Path) -> Snapshot:
    """A table whose one column besides the key was defined by somebody else."""
    HoodieTable.create(tmp_path / "t", pa.schema([("id", pa.string()), ("c", pa.string())]), record_key="id")
    path = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    before, _, rest = path.read_text().partition("hoodie.table.create.schema=")
    fields = [{"name": "id", "type": "string"}, {"name": "c", "type": ["null", avro_type], "default": None}]
    text = json.dumps({"type": "record", "name": "r", "fields": fields}).replace(":", "\\:")
    path.write_text(f"{before}hoodie.table.create.schema={text}\n{rest.partition(chr(10))[2]}")
    return open_snapshot(str(tmp_path / "t"))


def test_values_that_files_cannot_hold_are_named(tmp_path: Path) -> None:
    millis = _table_of({"type": "long", "logicalType": "timestamp-millis"}, tmp_path / "millis")
    times = pa.array([1000, 1001], pa.timestamp("us", "UTC"))
    with pytest.raises(InvalidQueryError) as raised:
        conformed(pa.table({"id": ["a", "b"], "c": times}), millis, {})
    assert raised.value.where["rows"] == [1]
    enum = _table_of({"type": "enum", "name": "e", "symbols": ["UP", "DOWN"]}, tmp_path / "enum")
    conformed(pa.table({"id": ["a", "b"], "c": ["UP", None]}), enum, {})
    with pytest.raises(InvalidQueryError, match="none of UP, DOWN") as raised:
        conformed(pa.table({"id": ["a", "b"], "c": ["UP", "up"]}), enum, {})
    assert raised.value.where["rows"] == [1]


def test_the_first_rows_make_the_schema_of_a_table_that_has_none(tmp_path: Path) -> None:
    HoodieTable.create(tmp_path / "t", _SCHEMA, record_key="id", ordering="ts")
    path = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if not line.startswith("hoodie.table.create.schema")))
    rows, schema = conformed(_ROWS, open_snapshot(str(tmp_path / "t")), {})
    assert rows.equals(_ROWS)
    assert schema.arrow.names[5:] == _ROWS.column_names


@pytest.mark.parametrize("name", corpus_names())
def test_what_java_wrote_fits_its_table(name: str, tmp_path: Path) -> None:
    table = HoodieTable.open(unpack(name, tmp_path))
    config = table.config
    if config.drop_partition_columns or "_hoodie_operation" in table.schema.names:
        with pytest.raises(UnsupportedFeatureError):
            conformed(pa.table({}), table._snapshot, {})
        return
    schema = load_output_schema(table._snapshot)
    columns = pa.schema([field for field in schema.arrow if field.name not in META_FIELDS])
    rows, found = conformed(columns.empty_table(), table._snapshot, {})
    assert rows.schema.equals(columns)
    assert found == schema
