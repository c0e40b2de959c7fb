"""Convert rows to a table's columns: extend the schema where Hudi does, convert values, refuse all other differences.

These are Hudi's rules for schema evolution on write (``HoodieSchemaUtils.deduceWriterSchema``); ``evolution`` defines
how a schema grows. A column that the rows lack is an error unless the options fill it with null. Meta columns in the
rows are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.from_arrow import make_schema_text
from hoodie_py.formats.avro.schema import AvroType, Enum, Fixed, Record, Union
from hoodie_py.formats.names import META_FIELDS, OPERATION_FIELD
from hoodie_py.formats.parquet.base_schema import make_stored_schema
from hoodie_py.options import write as write_keys
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.column_ids import TableColumns
from hoodie_py.writer.input.evolution import Growth, check_protected, evolve_schema
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
from hoodie_py.writer.schema_changes import check_changes, list_changes


def find_write_schema(snapshot: Snapshot) -> OutputSchema | None:
    """Return the schema of a table's files; None if the table has no commit and no schema in its properties.

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
        InvalidQueryError: a column is missing, has another type, or contains values that do not fit; names the column,
            both types and the first rows.
        UnsupportedFeatureError: a type or schema is not handled.
    """
    check_names(table.schema)
    columns = select_user_columns(table.schema)
    if known is None:
        text, populated = make_schema_text(columns, snapshot.config.name), snapshot.config.populate_meta_fields
        schema = parse_output_schema(text, META_FIELDS if populated else (), () if populated else META_FIELDS)
    else:
        schema = _grow(known, columns, snapshot, options)
    fill = write_keys.NULL_FOR_MISSING.read(options) or write_keys.RECONCILE_SCHEMA.read(options)
    target = select_data_columns(schema.arrow)
    _refuse_missing(target, columns, schema, fill_missing=fill)
    exact = write_keys.SCHEMA_CHANGES.read(options) != write_keys.LOSSY
    arrays = [_make_column(table, field, schema, fill_missing=fill, exact=exact) for field in target]
    found = pa.Table.from_arrays(arrays, schema=target)
    refuse_unstorable(found, schema)
    return found, schema


def _grow(known: OutputSchema, columns: pa.Schema, snapshot: Snapshot, options: Mapping[str, str]) -> OutputSchema:
    """Return the table's schema, extended by the columns of rows."""
    fill, reconcile = write_keys.NULL_FOR_MISSING.read(options), write_keys.RECONCILE_SCHEMA.read(options)
    growth = Growth(
        fill_missing=fill,
        drop_missing=write_keys.DROP_MISSING.read(options) and not fill and not reconcile,
        order_of_rows=reconcile and not write_keys.SCHEMA_ON_READ.read(options) and known.latest is None,
        keys=snapshot.config.record_key_fields,
    )
    text = evolve_schema(known.table, columns, growth)
    if text == known.table:
        return known
    meta = [name for name in known.arrow.names if name in NOT_DATA]
    grown = parse_output_schema(text, meta, known.empty)
    check_protected(snapshot.config, known.arrow, grown.arrow)
    changes = list_changes(known.table, text)
    check_changes(changes, options)
    if known.latest is None:
        return replace(grown, base=known.base, changes=changes)
    return replace(TableColumns(known).follow(grown), changes=changes)


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
            hint=f"Add them, or set {write_keys.NULL_FOR_MISSING} for null in their place.",
            column=missing[0].name,
        )
    for field in missing:
        if not field.nullable and field.name not in schema.defaults:
            raise InvalidQueryError(
                f"The rows lack the column {field.name!r}, which the table requires.", column=field.name
            )


def _make_column(
    table: pa.Table, field: pa.Field, schema: OutputSchema, *, fill_missing: bool, exact: bool
) -> pa.ChunkedArray:
    if field.name in table.column_names:
        return fit_column(table.column(field.name), field, fill_missing=fill_missing, exact=exact)
    value = schema.defaults.get(field.name)
    scalar = pa.scalar(None, field.type) if value is None else pa.scalar(value, field.type)
    return pa.chunked_array([pa.repeat(scalar, table.num_rows)])


def refuse_unstorable(rows: pa.Table, schema: OutputSchema) -> None:
    """Refuse values that fit Arrow's type but not the file's type, such as vectors of another length.

    Rows may lack columns.

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
    """Refuse values inside a struct that are not among an enum's symbols, such as the type of a blob."""
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
