"""The columns that a merging read of a file slice loads.

Agrees with Hudi's FileGroupReaderSchemaHandler:

* A built-in merge mode reads the requested columns, the record key, the ordering fields (none with commit-time
  ordering) and the delete columns.
* A user's merger reads its mandatory fields if it is projection compatible, else every column of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie_py.arrow.fields import find_top_level_name, has_field, make_nullable
from hoodie_py.errors import HoodieError, InvalidTableError, MergeError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.reader.merge.merger import RecordMerger
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record_key import RecordKeys


@dataclass(frozen=True, slots=True)
class MergeNeeds:
    """What decides which columns a merge reads."""

    keys: RecordKeys
    ordering_fields: Sequence[str]  # none with commit-time ordering
    deletes: DeleteRules
    custom: tuple[RecordMerger, TableConfig, Mapping[str, str]] | None = None  # with the merge properties


def make_merge_schema(table_schema: pa.Schema, requested: Sequence[str], needs: MergeNeeds) -> pa.Schema:
    """Return the schema that rows have during a merge, in table order.

    Key, ordering and delete columns are always read. Hudi leaves that to a custom merger.

    Raises:
        InvalidTableError: the table does not have a key or ordering field.
        MergeError: the table does not have a mandatory field of the merger.
    """
    always = list_merge_columns(table_schema, replace(needs, custom=None))
    wanted = {*requested, *always, *list_merge_columns(table_schema, needs)}
    return make_nullable(field for field in table_schema if field.name in wanted)


def list_merge_columns(table_schema: pa.Schema, needs: MergeNeeds) -> tuple[str, ...]:
    """List the columns that Hudi's merge reads in addition to the requested ones.

    Raises:
        InvalidTableError: the table does not have a key or ordering field.
        MergeError: the table does not have a mandatory field of the merger.
    """
    if needs.custom is not None:
        return tuple(_list_merger_columns(table_schema, *needs.custom))
    _check_fields(table_schema, needs.keys.columns, "record key")
    _check_fields(table_schema, needs.ordering_fields, "ordering")
    names = [find_top_level_name(table_schema, name) for name in (*needs.keys.columns, *needs.ordering_fields)]
    deletes = (name for name in needs.deletes.columns if name in table_schema.names)
    return tuple(dict.fromkeys((*names, *deletes)))


def _list_merger_columns(
    schema: pa.Schema, merger: RecordMerger, config: TableConfig, props: Mapping[str, str]
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
    fields = [find_top_level_name(schema, field) for field in named]
    unknown = sorted(set(fields) - set(schema.names))
    if unknown:
        raise MergeError(
            f"{name}.mandatory_fields names columns that the table lacks: {', '.join(unknown)}.", merger=name
        )
    return fields


def _check_fields(schema: pa.Schema, names: Sequence[str], role: str) -> None:
    for name in names:
        if not has_field(schema, name):
            raise InvalidTableError(f"The {role} field {name!r} is not a column of the table.", column=name)
