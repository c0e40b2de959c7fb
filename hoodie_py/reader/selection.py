"""Chooses the strategy of a table's merges and the columns that they load, for reads, writes and compactions alike.

The strategy agrees with Hudi's BufferedRecordMergerFactory and HoodieRecordUtils. A merger argument decides first, then
the table's merge mode: commit time or event time, each with the table's partial update mode. CUSTOM takes a merger that
the user supplied, else the built-in merger of a payload class that Java Hudi ships.

The columns agree with Hudi's FileGroupReaderSchemaHandler:

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
from hoodie_py.formats.config.merge_config import POSTGRES_DEBEZIUM_PAYLOAD, MergeMode
from hoodie_py.formats.config.merge_creation import DEBEZIUM_UNAVAILABLE, resolve_config_for_write
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options.read import ORDERING_FIELD_PROPERTY, ORDERING_FIELDS_PROPERTY, UNAVAILABLE_VALUE
from hoodie_py.reader.merge.custom import CustomStrategy
from hoodie_py.reader.merge.merger import Merger, RecordMerger
from hoodie_py.reader.merge.partial_update import make_partial_update_handler
from hoodie_py.reader.merge.registry import as_merger, find_merger
from hoodie_py.reader.merge.strategies import (
    CommitTimeStrategy,
    EventTimeStrategy,
    MergeStrategy,
    OrderedStrategy,
    PartialUpdateStrategy,
)
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record_key import RecordKeys


@dataclass(frozen=True, slots=True)
class Selection:
    """The strategy of a table's merges, and its inputs."""

    strategy: MergeStrategy
    merger: RecordMerger | None  # that the strategy calls; None for a built-in mode
    ordering_fields: tuple[str, ...]  # none with commit-time ordering
    props: Mapping[str, str]  # that a merger sees: the user's options, overridden by the table's merge properties


def select_strategy(
    config: TableConfig,
    options: Mapping[str, str],
    merger: Merger | None = None,
    *,
    writing: bool = False,
    batch: bool = False,
) -> Selection:
    """Choose what decides the merges of a table; a given merger goes before the table's merge mode.

    ``writing``: the merge is part of a write, whose options may name a payload class. ``batch``: rows of one incoming
    batch merge with each other, not with the table's rows.

    Raises:
        MergeError: the table needs a merger and none was supplied.
        InvalidTableError: the partial update mode is unknown.
    """
    if writing:
        config = resolve_config_for_write(config, options, batch=batch)
    props = make_merge_props(config, options)
    custom = as_merger(merger) if merger is not None else None
    if custom is None and config.merge_mode is MergeMode.CUSTOM:
        custom = find_merger(config, options, _make_builtin_merger(config))
    if custom is not None:
        return Selection(CustomStrategy(custom, props), custom, config.ordering_fields, props)
    commit_time = config.merge_mode is MergeMode.COMMIT_TIME_ORDERING
    mode: OrderedStrategy = CommitTimeStrategy() if commit_time else EventTimeStrategy()
    handler = make_partial_update_handler(config, writing=writing)
    strategy: MergeStrategy = mode if handler is None else PartialUpdateStrategy(mode, handler)
    return Selection(strategy, None, () if commit_time else config.ordering_fields, props)


def make_merge_props(config: TableConfig, options: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that mergers see, with the ordering fields under Hudi's keys."""
    props = {**options, **config.merge_properties}
    fields = ",".join(config.ordering_fields)
    if fields:
        props.setdefault(ORDERING_FIELDS_PROPERTY, fields)
        props.setdefault(ORDERING_FIELD_PROPERTY, fields)
    if config.version >= 9 and config.is_payload_based and config.payload_class == POSTGRES_DEBEZIUM_PAYLOAD:
        props.setdefault(UNAVAILABLE_VALUE, DEBEZIUM_UNAVAILABLE)  # as version 9 stores for this class
    return props


def _make_builtin_merger(config: TableConfig) -> RecordMerger | None:
    """Make the built-in merger of a table's payload class; None if there is none."""
    if not config.is_payload_based or not config.payload_class:
        return None
    from hoodie_py.reader.payloads.classes import make_builtin_payload_merger

    return make_builtin_payload_merger(config.payload_class)


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
