"""Which columns one file slice is read with, and what has to happen to them on the way out.

Hudi's FileGroupReaderSchemaHandler and its position-based subclass:

* without log files: the columns asked for, plus the commit time when a range of instants filters rows.
* with log files and a built-in merge mode: also the record key, the ordering fields (none by commit time), the delete
  columns, the commit time for a range of instants.
* with log files and a merger of the user's: what it names as mandatory if it is projection compatible, else every
  column of the table.
* rows that pair by position carry their position, if the engine's Parquet reader gives one; this package counts rows.
* a bootstrap base file is two files, one with the meta columns and one with the data: where both are needed, the meta
  columns come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from hoodie_py.errors import HoodieError, InvalidTableError, MergeError
from hoodie_py.formats.table_config import TableConfig
from hoodie_py.reader.delete_rules import OPERATION_FIELD, DeleteRules
from hoodie_py.reader.fields import has_field, nullable, top_level
from hoodie_py.reader.merger import RecordMerger
from hoodie_py.reader.record_key import RECORD_KEY_FIELD, RecordKeys

COMMIT_TIME_FIELD = "_hoodie_commit_time"
ROW_INDEX_FIELD = "_tmp_metadata_row_index"
META_FIELDS = (
    COMMIT_TIME_FIELD,
    "_hoodie_commit_seqno",
    RECORD_KEY_FIELD,
    "_hoodie_partition_path",
    "_hoodie_file_name",
    OPERATION_FIELD,
)


@dataclass(frozen=True, slots=True)
class MergeNeeds:
    """What a merge looks at.

    Attributes:
        keys: where record keys are.
        ordering_fields: fields that order versions; none under commit-time ordering.
        deletes: the delete columns.
        custom: a user's merger with the table's config and the merge properties, if one decides.
    """

    keys: RecordKeys
    ordering_fields: Sequence[str]
    deletes: DeleteRules
    custom: tuple[RecordMerger, TableConfig, Mapping[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """Columns of one read.

    Attributes:
        required: columns rows have while they merge in Hudi: those asked for first, except where they are reordered.
        output_projection: whether rows have to be cut or reordered to what was asked for.
        bootstrap_meta, bootstrap_data: columns read from the two files of a bootstrap base file.
    """

    required: tuple[str, ...]
    output_projection: bool
    bootstrap_meta: tuple[str, ...] = ()
    bootstrap_data: tuple[str, ...] = ()

    @property
    def bootstrap_merge(self) -> bool:
        """Whether the two files of a bootstrap base file are read side by side."""
        return bool(self.bootstrap_meta and self.bootstrap_data)


def plan_read(
    table_schema: pa.Schema,
    requested: Sequence[str],
    needs: MergeNeeds | None,
    *,
    instant_range: bool = False,
    row_index: bool = False,
    use_positions: bool = False,
    bootstrap: bool = False,
) -> ReadPlan:
    """Return the columns to read.

    Args:
        table_schema: all columns of the table.
        requested: columns the caller wants, in order.
        needs: what the merge looks at; None for a slice without log files.
        instant_range: whether rows are filtered by the instant that wrote them.
        row_index: whether the engine's Parquet reader gives row positions as a column.
        use_positions: whether log rows pair by position.
        bootstrap: whether the base file is a bootstrap one.

    Raises:
        InvalidTableError: a key or ordering field that the table does not have.
        MergeError: a merger's mandatory field that the table does not have.
    """
    required = _required(table_schema, requested, needs, instant_range)
    if needs is not None and use_positions and row_index:
        required = (*required, ROW_INDEX_FIELD)
    meta: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    if bootstrap:
        meta = tuple(name for name in required if name in META_FIELDS)
        data = tuple(name for name in required if name not in META_FIELDS and name != ROW_INDEX_FIELD)
        if meta and data:
            required = (*meta, *data, *(name for name in required if name == ROW_INDEX_FIELD))
            if row_index:
                meta, data = (*meta, ROW_INDEX_FIELD), (*data, ROW_INDEX_FIELD)
    return ReadPlan(required, _differ(required, requested), meta, data)


def merge_schema(table_schema: pa.Schema, requested: Sequence[str], needs: MergeNeeds) -> pa.Schema:
    """Return the schema rows have while this package merges them, in table order.

    Keys, ordering and delete columns are always read, which Hudi leaves to the merger where a custom one decides.

    Raises:
        InvalidTableError: a key or ordering field that the table does not have.
        MergeError: a merger's mandatory field that the table does not have.
    """
    always = merge_columns(table_schema, replace(needs, custom=None))
    wanted = {*requested, *always, *merge_columns(table_schema, needs)}
    return nullable(field for field in table_schema if field.name in wanted)


def merge_columns(table_schema: pa.Schema, needs: MergeNeeds, *, instant_range: bool = False) -> tuple[str, ...]:
    """Return the columns that Hudi's merge reads whatever the caller wants.

    Raises:
        InvalidTableError: a key or ordering field that the table does not have.
        MergeError: a merger's mandatory field that the table does not have.
    """
    if needs.custom is not None:
        return tuple(_merger_columns(table_schema, *needs.custom))
    _require(table_schema, needs.keys.columns, "record key")
    _require(table_schema, needs.ordering_fields, "ordering")
    names = [COMMIT_TIME_FIELD] if instant_range else []
    names += [top_level(table_schema, name) for name in (*needs.keys.columns, *needs.ordering_fields)]
    deletes = (name for name in needs.deletes.columns if name in table_schema.names)
    return tuple(dict.fromkeys((*names, *deletes)))


def _required(
    table_schema: pa.Schema, requested: Sequence[str], needs: MergeNeeds | None, instant_range: bool
) -> tuple[str, ...]:
    if needs is None:
        added: tuple[str, ...] = (COMMIT_TIME_FIELD,) if instant_range else ()
    elif needs.custom is not None and not needs.custom[0].projection_compatible:
        return tuple(table_schema.names)
    else:
        added = merge_columns(table_schema, needs, instant_range=instant_range)
    return tuple(dict.fromkeys((*requested, *added)))


def _merger_columns(
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


def _differ(required: Sequence[str], requested: Sequence[str]) -> bool:
    """Say whether two lists of columns differ; letter case does not count."""
    return [name.lower() for name in required] != [name.lower() for name in requested]
