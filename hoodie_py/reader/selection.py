"""Chooses the strategy of a table's merges, for reads, writes and compactions alike.

It agrees with Hudi's BufferedRecordMergerFactory and HoodieRecordUtils. A merger argument decides first, then the
table's merge mode: commit time or event time, each with the table's partial update mode. CUSTOM takes a merger that the
user supplied, else the built-in merger of a payload class that Java Hudi ships.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
