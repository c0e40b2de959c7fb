"""Turn a caller's data into records: conformed rows with keys, partition paths, delete marks and ordering values.

A row is a delete by the reader's rules (``DeleteRules``): by the flag column, by the table's delete marker, or by the
operations D and -U in a column ``_hoodie_operation``, which is not stored. A bulk insert looks at operations only, as
in Java.

The delete operation uses only keys and partition paths of its rows. Its deletes have no ordering values and win over
all versions in the table (Hudi ``HoodieDeleteHelper``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.fields import find_field_type, find_top_level_name, read_field_values
from hoodie_py.arrow.layouts import make_plain_array, make_plain_type
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.config.merge_creation import resolve_config_for_write
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import OPERATION_FIELD, PARTITION_PATH_FIELD, RECORD_KEY_FIELD
from hoodie_py.formats.parquet.base_schema import make_stored_schema
from hoodie_py.options.write import ROW_WRITER
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record import is_delete_code
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.input.conform import check_names, conform_columns, conform_input, find_write_schema
from hoodie_py.writer.input.input_data import read_input
from hoodie_py.writer.keygen.generator import GeneratedKeys, KeyGenerator
from hoodie_py.writer.output_schema import OutputSchema, select_data_columns
from hoodie_py.writer.precombine.merge_options import check_merge_options
from hoodie_py.writer.records import WriteOperation, WriteRecords
from hoodie_py.writer.row_errors import refuse_rows


def make_records(
    data: Any,
    snapshot: Snapshot,
    options: Mapping[str, str],
    operation: WriteOperation,
    generated: GeneratedKeys | None = None,
) -> tuple[WriteRecords, OutputSchema]:
    """Return the records of a write in their original order, and the schema of its files.

    For DELETE the data is rows with key fields, or keys alone. In a table without key fields, upserts and deletes take
    the record keys of a scan's rows. Other rows get new keys, from ``generated`` if it is given.

    Raises:
        InvalidQueryError: rows do not fit the table, or have no key; names the column and the first rows. Or the
            options ask for another merge than the table's.
        UnsupportedFeatureError: a table, key generator or type is not handled.
    """
    check_merge_options(snapshot.config, options)
    if operation is WriteOperation.DELETE:
        return _make_deletes(data, snapshot, options)
    generator = KeyGenerator.from_snapshot(snapshot, options)
    known = find_write_schema(snapshot)
    table = read_input(data, find_input_schema(snapshot), options).read_all()
    rows, schema = conform_input(table, snapshot, known, options)
    _refuse_millis(generator, schema)
    records = WriteRecords(
        rows=rows,
        keys=_find_keys(table, rows, generator, operation, generated),
        partition_paths=generator.make_partition_paths(rows),
        deletes=find_deletes(table, rows, snapshot.config, options, operation),
        ordering=_read_ordering_values(rows, snapshot.config, options),
        made_of=generator.columns,
    )
    return records, schema


def find_input_schema(snapshot: Snapshot) -> pa.Schema | None:
    """Return the types for plain Python values; None if the table does not have a schema yet."""
    known = find_write_schema(snapshot)
    return None if known is None else select_data_columns(known.arrow)


def _find_keys(
    table: pa.Table,
    rows: pa.Table,
    generator: KeyGenerator,
    operation: WriteOperation,
    generated: GeneratedKeys | None,
) -> pa.ChunkedArray:
    if generator.key_fields:
        return generator.make_keys(rows)
    if operation is WriteOperation.UPSERT and RECORD_KEY_FIELD in table.column_names:
        return _take_keys(table)
    return (generated or GeneratedKeys.begin()).make(rows.num_rows)


def _take_keys(table: pa.Table) -> pa.ChunkedArray:
    """Take the record keys of a scan's rows.

    Raises:
        InvalidQueryError: a row has no key, or the rows do not come from a scan.
    """
    if RECORD_KEY_FIELD not in table.column_names:
        raise InvalidQueryError(
            "The table has no record key fields, and the rows do not bring the keys of a scan.",
            hint=f"Give rows of a scan with {RECORD_KEY_FIELD}, a list of such keys, or a filter.",
            column=RECORD_KEY_FIELD,
        )
    keys = table.column(RECORD_KEY_FIELD).cast(pa.string())
    refuse_rows(
        pc.fill_null(pc.equal(keys, ""), True), "Rows whose record key is null or empty.", column=RECORD_KEY_FIELD
    )
    return keys


def choose_operation(operation: WriteOperation, config: TableConfig, names: Sequence[str]) -> WriteOperation:
    """Return the operation that a write runs on a table.

    In a table without key fields, rows without a scan's keys are inserted, not upserted (Hudi
    ``HoodieSparkSqlWriter.deduceOperation``).
    """
    inserts = operation is WriteOperation.UPSERT and not config.record_key_fields and RECORD_KEY_FIELD not in names
    return WriteOperation.INSERT if inserts else operation


def _refuse_millis(generator: KeyGenerator, schema: OutputSchema) -> None:
    """Refuse keys made of times that files store in milliseconds: Java would make other texts of them."""
    stored = make_stored_schema(AvroSchema.parse(schema.avro))
    for name in generator.columns:
        if name not in generator.key_fields and name in generator.times:
            continue
        type_ = find_field_type(stored, name)
        if type_ is not None and pa.types.is_timestamp(type_) and type_.unit == "ms":
            raise UnsupportedFeatureError(f"Keys and partition paths made of a column of type {type_}.", column=name)


def find_deletes(
    table: pa.Table, rows: pa.Table, config: TableConfig, options: Mapping[str, str], operation: WriteOperation
) -> pa.ChunkedArray | None:
    """Return a mask of the rows that are deletes; None if there are no deletes."""
    marked = rows
    if OPERATION_FIELD in table.column_names:
        marked = rows.append_column(OPERATION_FIELD, table.column(OPERATION_FIELD))
    rules = DeleteRules.of(marked.schema, config.merge_properties, options)
    # Java's row writer stores rows with a delete flag or marker, and readers show them, as in any base file.
    if operation is WriteOperation.BULK_INSERT and ROW_WRITER.read(options):
        rules = DeleteRules(operation=rules.operation)
    columns = [name for name in rules.columns if name in marked.column_names]
    if not columns:
        return None
    masks = [is_delete_code(rules.read_operations(batch)) for batch in marked.select(columns).to_batches()]
    mask = np.concatenate(masks) if masks else np.zeros(0, bool)
    return pa.chunked_array([pa.array(mask)]) if mask.any() else None


def _read_ordering_values(
    rows: pa.Table, config: TableConfig, options: Mapping[str, str]
) -> tuple[pa.ChunkedArray, ...]:
    """Return the values of the table's ordering fields, or of the fields that the options name for this write."""
    fields = (
        config.merge_ordering_fields or resolve_config_for_write(config, options, batch=False).merge_ordering_fields
    )
    missing = [name for name in fields if find_field_type(rows.schema, name) is None]
    if missing:
        raise InvalidQueryError(
            f"The ordering field {missing[0]!r} is neither in the rows nor in the table.", column=missing[0]
        )
    return tuple(read_field_values(rows, name) for name in fields)


def _make_deletes(data: Any, snapshot: Snapshot, options: Mapping[str, str]) -> tuple[WriteRecords, OutputSchema]:
    schema = find_write_schema(snapshot)
    if schema is None:
        raise InvalidQueryError("The table has no rows and no schema, so there is nothing to delete.")
    generator = KeyGenerator.from_snapshot(snapshot, options)
    _refuse_millis(generator, schema)
    keys = _read_bare_keys(data, generator, schema)
    if keys is not None:
        paths = None if generator.partition_fields else _make_empty_paths(len(keys))
        return WriteRecords(pa.table({}), keys, paths, _mark_all(len(keys))), schema
    table = read_input(data, select_data_columns(schema.arrow)).read_all()
    check_names(table.schema)
    has = {name for name in generator.columns if _is_known(table, schema, name)}
    rows = conform_columns(table, list(dict.fromkeys(find_top_level_name(schema.arrow, name) for name in has)), schema)
    records = WriteRecords(
        rows=pa.table({}),
        keys=_make_keys(table, rows, generator),
        partition_paths=_make_partition_paths(table, rows, generator, has),
        deletes=_mark_all(table.num_rows),
        made_of=tuple(has),
    )
    return records, schema


def _is_known(table: pa.Table, schema: OutputSchema, name: str) -> bool:
    return find_field_type(table.schema, name) is not None and find_field_type(schema.arrow, name) is not None


def _make_keys(table: pa.Table, rows: pa.Table, generator: KeyGenerator) -> pa.ChunkedArray:
    """Make the keys of rows, or take the record keys of a scan if the rows lack key fields."""
    absent = [name for name in generator.key_fields if find_field_type(rows.schema, name) is None]
    if generator.key_fields and (not absent or RECORD_KEY_FIELD not in table.column_names):
        return generator.make_keys(rows)
    return _take_keys(table)


def _make_partition_paths(
    table: pa.Table, rows: pa.Table, generator: KeyGenerator, has: set[str]
) -> pa.ChunkedArray | None:
    if not generator.partition_fields:
        return _make_empty_paths(table.num_rows)
    if has.issuperset(generator.partition_fields):
        return generator.make_partition_paths(rows)
    if PARTITION_PATH_FIELD in table.column_names and not table.column(PARTITION_PATH_FIELD).null_count:
        return table.column(PARTITION_PATH_FIELD).cast(pa.string())
    return None


def _read_bare_keys(data: Any, generator: KeyGenerator, schema: OutputSchema) -> pa.ChunkedArray | None:
    """Return the keys if the data is a list or an array of keys; None if it is rows.

    Raises:
        InvalidQueryError: values do not have the key field's type.
    """
    values = _list_keys(data)
    if values is None:
        return None
    if generator.named or not generator.key_fields:
        if not all(isinstance(value, str) for value in values):
            raise InvalidQueryError(
                f"Keys made of {', '.join(generator.key_fields) or 'no fields'} must be given as texts or as rows.",
                column=",".join(generator.key_fields),
            )
        return pa.chunked_array([pa.array(values, pa.string())])
    [name] = generator.key_fields
    type_ = find_field_type(schema.arrow, name)
    if type_ is None:
        raise UnsupportedFeatureError(f"The table's key field {name!r} is not in its schema.", column=name)
    rows = read_input([{name: value} for value in values], pa.schema([(name, type_)])).read_all()
    if not rows.num_rows:
        return pa.chunked_array([], pa.string())
    return replace(generator, key_fields=(name,)).make_keys(rows)


def _list_keys(data: Any) -> list[Any] | None:
    if isinstance(data, pa.Array | pa.ChunkedArray):
        chunks = data.chunks if isinstance(data, pa.ChunkedArray) else [data]
        if pa.types.is_struct(make_plain_type(data.type)):
            return None
        return [value for each in chunks for value in make_plain_array(each).to_pylist()]
    if not isinstance(data, Sequence) or isinstance(data, str | bytes):
        return None
    return None if any(isinstance(each, Mapping) for each in data) else list(data)


def _make_empty_paths(length: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.repeat(pa.scalar(""), length)])


def _mark_all(length: int) -> pa.ChunkedArray:
    return pa.chunked_array([pa.repeat(pa.scalar(True), length)])
