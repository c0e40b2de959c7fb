"""Bring rows to a table's columns: widen types, add new columns to the schema, refuse all other differences.

These are Hudi's rules for schema evolution on write (``HoodieSchemaUtils.deduceWriterSchema``) with one difference: a
column of the table never changes its type because rows have a wider one. A column that the rows lack is an error unless
the options fill it with null. Meta columns in the rows are ignored.

Add the columns that rows bring and a table lacks to the table's schema, at every depth.

New columns come last and are nullable, so that older files read as null. A write makes no other change to the schema
(Hudi ``AvroSchemaEvolutionUtils``, schema evolution on write). The stored Avro schema of the other columns is kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.fields import is_any_list
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.from_arrow import make_field, make_schema_text
from hoodie_py.formats.avro.schema import AvroType, Enum, Fixed, Record, Union
from hoodie_py.formats.avro.shared_names import name_repeated, write_in_full
from hoodie_py.formats.column_names import fold_case
from hoodie_py.formats.logical_types import RECORD_TYPES
from hoodie_py.formats.names import META_FIELDS, OPERATION_FIELD
from hoodie_py.formats.parquet.base_schema import make_stored_schema
from hoodie_py.options.write import NULL_FOR_MISSING, RECONCILE_SCHEMA
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.input.value_fit import check_cast, check_vectors, fit_column
from hoodie_py.writer.output_schema import (
    NOT_DATA,
    OutputSchema,
    load_output_schema,
    parse_output_schema,
    select_data_columns,
    select_user_columns,
)
from hoodie_py.writer.row_errors import refuse_rows


def find_write_schema(snapshot: Snapshot) -> OutputSchema | None:
    """Return the schema of a table's files; None if the table has no commit and no schema among its properties.

    Raises:
        UnsupportedFeatureError: the schema is not handled, or files leave out columns or keep operations.
        CorruptFileError: the recorded schema is no record.
    """
    config = snapshot.config
    if config.drop_partition_columns:
        raise UnsupportedFeatureError("Writing to a table whose files leave out partition columns.", table=config.name)
    if not config.create_schema and not snapshot.timeline.list_completed_writes():
        return None
    schema = load_output_schema(snapshot)
    if OPERATION_FIELD in schema.arrow.names:
        raise UnsupportedFeatureError("Writing to a table whose files keep operations.", table=config.name)
    return schema


def conform_input(
    table: pa.Table, snapshot: Snapshot, known: OutputSchema | None, options: Mapping[str, str]
) -> tuple[pa.Table, OutputSchema]:
    """Return rows in the columns and types of the table's files, without meta columns, and the schema to write with.

    ``known`` is the result of ``find_write_schema``.

    Raises:
        InvalidQueryError: a column is missing, has another type, or has values that do not fit; names the column, both
            types and the first rows.
        UnsupportedFeatureError: a type or schema is not handled.
    """
    check_names(table.schema)
    columns = select_user_columns(table.schema)
    if known is None:
        text, populated = make_schema_text(columns, snapshot.config.name), snapshot.config.populate_meta_fields
        schema = parse_output_schema(text, META_FIELDS if populated else (), () if populated else META_FIELDS)
    else:
        meta = [name for name in known.arrow.names if name in NOT_DATA]
        schema = replace(
            parse_output_schema(evolve_schema(known.table, columns), meta, known.empty), latest=known.latest
        )
        if known.latest is not None and schema.table != known.table:
            raise UnsupportedFeatureError(
                "New or wider columns in a write to a table with schema-on-read.",
                hint="Alter the table first (ALTER TABLE of Spark SQL with hoodie.schema.on.read.enable).",
                table=snapshot.config.name,
            )
    fill = NULL_FOR_MISSING.read(options) or RECONCILE_SCHEMA.read(options)
    target = select_data_columns(schema.arrow)
    _refuse_missing(target, columns, schema, fill_missing=fill)
    arrays = [_make_column(table, field, schema, fill_missing=fill) for field in target]
    found = pa.Table.from_arrays(arrays, schema=target)
    refuse_unstorable(found, schema)
    return found, schema


def conform_columns(table: pa.Table, names: Sequence[str], schema: OutputSchema) -> pa.Table:
    """Return some columns of rows in the table's types; errors as for ``conform_input``."""
    check_names(table.schema)
    fields = [schema.arrow.field(name) for name in names]
    arrays = [fit_column(table.column(field.name), field.with_nullable(True), fill_missing=True) for field in fields]
    return pa.table(dict(zip(names, arrays, strict=True)))


def check_names(schema: pa.Schema) -> None:
    """Refuse rows with two columns of one name.

    Raises:
        InvalidQueryError: names the column.
    """
    names = schema.names
    twice = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
    if twice:
        raise InvalidQueryError(f"The rows have the column {twice[0]!r} more than once.", column=twice[0])


def _refuse_missing(target: pa.Schema, columns: pa.Schema, schema: OutputSchema, *, fill_missing: bool) -> None:
    missing = [field for field in target if columns.get_field_index(field.name) < 0]
    if not fill_missing and missing:
        names = ", ".join(field.name for field in missing[:20])
        raise InvalidQueryError(
            f"The rows lack columns of the table: {names}.",
            hint=f"Add them, or set {NULL_FOR_MISSING} for null in their place.",
            column=missing[0].name,
        )
    for field in missing:
        if not field.nullable and field.name not in schema.defaults:
            raise InvalidQueryError(
                f"The rows lack the column {field.name!r}, which the table requires.", column=field.name
            )


def _make_column(table: pa.Table, field: pa.Field, schema: OutputSchema, *, fill_missing: bool) -> pa.ChunkedArray:
    if field.name in table.column_names:
        return fit_column(table.column(field.name), field, fill_missing=fill_missing)
    value = schema.defaults.get(field.name)
    scalar = pa.scalar(None, field.type) if value is None else pa.scalar(value, field.type)
    return pa.chunked_array([pa.repeat(scalar, table.num_rows)])


def refuse_unstorable(rows: pa.Table, schema: OutputSchema) -> None:
    """Refuse values that Arrow's type holds and the file's type does not, such as vectors of another length. Rows may
    lack columns.

    Raises:
        InvalidQueryError: names the column and the first rows.
    """
    avro = AvroSchema.parse(schema.avro)
    for field, stored in zip(avro.record.fields, make_stored_schema(avro), strict=True):
        name, node = field.name, _unwrap_union(field.type)
        if name in NOT_DATA or name not in rows.column_names:
            continue
        column = rows.column(name)
        if isinstance(node, Enum):
            _refuse_other_symbols(column, node, name)
        elif isinstance(node, Record):
            _refuse_symbols_inside(column, node, name)
        elif isinstance(node, Fixed) and node.vector is not None:
            check_vectors(column, node.vector, name)
        elif not pa.types.is_nested(stored.type) and not stored.type.equals(column.type):
            check_cast(column, stored)


def _refuse_other_symbols(column: pa.ChunkedArray, node: Enum, name: str) -> None:
    bad = pc.invert(pc.is_in(column, pa.array([*node.symbols, None], pa.string())))
    refuse_rows(bad, f"Values that are none of {', '.join(node.symbols)}.", column=name, values=column)


def _refuse_symbols_inside(column: pa.ChunkedArray, record: Record, path: str) -> None:
    """Refuse values that no enum in a struct has, such as the type of a blob."""
    for field in record.fields:
        node, place = _unwrap_union(field.type), f"{path}.{field.name}"
        if isinstance(node, Enum | Record):
            inner = pc.struct_field(column, [field.name])
            if isinstance(node, Enum):
                _refuse_other_symbols(inner, node, place)
            else:
                _refuse_symbols_inside(inner, node, place)


def _unwrap_union(node: AvroType) -> AvroType:
    return node.members[0] if isinstance(node, Union) and len(node.members) == 1 else node


def evolve_schema(text: str, columns: pa.Schema) -> str:
    """Return a table's Avro schema (JSON) with the new columns; the same text if there are none. Neither schema has
    meta columns.

    Raises:
        InvalidQueryError: Avro does not allow a name, or it differs from another in case only.
        UnsupportedFeatureError: Hudi's tables do not have a type, or a struct's schema is defined elsewhere by name.
    """
    record = write_in_full(json.loads(text))
    grown = _evolve_record(record, columns, record.get("namespace", ""), "")
    return text if grown == record else json.dumps(name_repeated(grown), separators=(",", ":"), ensure_ascii=False)


def _evolve_record(record: dict[str, Any], fields: pa.Schema | pa.StructType, outer: str, path: str) -> dict[str, Any]:
    full_name = record["name"] if "." in record["name"] else f"{record.get('namespace', outer)}.{record['name']}"
    found = {each["name"]: each for each in record["fields"]}
    by_case = {fold_case(name): name for name in found}
    for field in fields:
        place = f"{path}{field.name}"
        known = found.get(field.name)
        if known is not None:
            found[field.name] = {**known, "type": _evolve_type(known["type"], field.type, full_name, place)}
        elif fold_case(field.name) in by_case:
            raise InvalidQueryError(
                f"The rows have the column {place!r}, the table {by_case[fold_case(field.name)]!r}.",
                hint="Spark cannot tell them apart; write the name as the table does.",
                column=place,
            )
        elif not pa.types.is_null(field.type):
            found[field.name] = make_field(field.with_nullable(True), full_name, top=not path)
            by_case[fold_case(field.name)] = field.name
    return {**record, "fields": list(found.values())}


def _evolve_type(node: Any, type_: pa.DataType, outer: str, path: str) -> Any:
    if isinstance(node, list):
        members = [each for each in node if each != "null"]
        if len(members) != 1:
            return node
        grown = _evolve_type(members[0], type_, outer, path)
        return ["null" if each == "null" else grown for each in node]
    if pa.types.is_struct(type_) and isinstance(node, str):
        raise UnsupportedFeatureError("Writing structs whose Avro schema is defined elsewhere by name.", column=path)
    if not isinstance(node, dict) or node.get("logicalType") in RECORD_TYPES:
        return node
    kind = node.get("type")
    if kind == "record" and pa.types.is_struct(type_):
        return _evolve_record(node, type_, outer, f"{path}.")
    if kind == "array" and is_any_list(type_):
        return {**node, "items": _evolve_type(node["items"], type_.value_type, outer, f"{path}.element")}
    if kind == "map" and pa.types.is_map(type_):
        return {**node, "values": _evolve_type(node["values"], type_.item_type, outer, f"{path}.value")}
    return node
