"""Which columns a merge has to read beside those asked for (Hudi's FileGroupReaderSchemaHandler).

Without log files: those asked for.  With log files: also the record key, the ordering fields (event time only), and the
delete columns.  A custom merger gets what its ``mandatory_fields`` names if it is projection compatible, else every
column
of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from hoodie_py.errors import HoodieError, InvalidTableError, MergeError
from hoodie_py.formats.table_config import TableConfig
from hoodie_py.reader.delete_rules import DeleteRules
from hoodie_py.reader.fields import has_field, top_level
from hoodie_py.reader.merger import RecordMerger
from hoodie_py.reader.record_key import RecordKeys


def merge_schema(
    table_schema: pa.Schema,
    requested: Sequence[str],
    keys: RecordKeys,
    ordering_fields: Sequence[str],
    deletes: DeleteRules,
    custom: tuple[RecordMerger, TableConfig, Mapping[str, str]] | None,
) -> pa.Schema:
    """Return the schema rows have while they are merged, in table order.

    Args:
        table_schema: all columns of the table.
        requested: columns the caller wants.
        keys: where record keys are.
        ordering_fields: fields that order versions; none under commit-time ordering.
        deletes: the delete columns.
        custom: a user's merger with the table's config and the merge properties, if one decides.

    Raises:
        InvalidTableError: a key or ordering field that the table does not have.
        MergeError: a merger's mandatory field that the table does not have.
    """
    _require(table_schema, keys.columns, "record key")
    _require(table_schema, ordering_fields, "ordering")
    wanted: set[str] = {*requested, *deletes.columns}
    wanted.update(top_level(table_schema, name) for name in (*keys.columns, *ordering_fields))
    if custom is not None:
        merger, config, props = custom
        wanted.update(_merger_columns(merger, table_schema, config, props))
    return pa.schema([field.with_nullable(True) for field in table_schema if field.name in wanted])


def _merger_columns(
    merger: RecordMerger, schema: pa.Schema, config: TableConfig, props: Mapping[str, str]
) -> Iterable[str]:
    if not merger.projection_compatible:
        return list(schema.names)
    name = type(merger).__name__
    try:
        named = merger.mandatory_fields(schema, config, props)
    except HoodieError:
        raise
    except Exception as error:
        raise MergeError(f"{name}.mandatory_fields failed: {type(error).__name__}: {error}", merger=name) from error
    if isinstance(named, str) or not all(isinstance(field, str) for field in named):
        raise MergeError(f"{name}.mandatory_fields must return a list of column names, not {named!r}.", merger=name)
    fields = [top_level(schema, field) for field in named]
    unknown = sorted(set(fields) - set(schema.names))
    if unknown:
        raise MergeError(
            f"{name}.mandatory_fields names columns that the table lacks: {', '.join(unknown)}.", merger=name
        )
    return fields


def _require(schema: pa.Schema, names: Sequence[str], role: str) -> None:
    for name in names:
        if not has_field(schema, name):
            raise InvalidTableError(f"The {role} field {name!r} is not a column of the table.", column=name)
