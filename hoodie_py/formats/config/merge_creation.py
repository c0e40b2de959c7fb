"""Merge configuration of writers: what a new table stores, and what a payload class in a write's options means.

Version 9 tables store a merge mode instead of a payload class if a mode can replace the class, which is then kept only
under the legacy key. A class that no mode replaces stays the payload class of a CUSTOM table. The rules must agree with
Hudi's HoodieTableConfig.inferMergingConfigsForV9TableCreation and HoodieReaderContext.initRecordMergerForIngestion:

* A built-in payload class becomes a mode. Some also set a partial update mode, a delete marker or ordering fields. An
  explicit mode beside a built-in class is ignored.
* Everything else is inferred as for version 8, so contradictions are errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.config import merge_config as merging
from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.merge_config import MergeConfig, MergeMode, infer_merge, replace_old_package
from hoodie_py.formats.config.table_config import TableConfig

_BUILT_IN_STRATEGIES = (
    merging.COMMIT_TIME_STRATEGY_ID,
    merging.CUSTOM_STRATEGY_ID,
    merging.EVENT_TIME_STRATEGY_ID,
    merging.PAYLOAD_STRATEGY_ID,
)
DEBEZIUM_UNAVAILABLE = "__debezium_unavailable_value"
_DEBEZIUM_DELETES = {merging.DELETE_FIELD: "_change_operation_type", merging.DELETE_MARKER: "d"}


@dataclass(frozen=True, slots=True)
class _Replacement:
    """The settings that version 9 stores instead of a payload class."""

    mode: MergeMode
    partial_update_mode: str | None = None
    merge_properties: Mapping[str, str] = field(default_factory=dict)
    ordering_fields: str | None = None


_EVENT_TIME, _COMMIT_TIME = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING
_REPLACEMENTS = {
    merging.DEFAULT_PAYLOAD: _Replacement(_EVENT_TIME),
    merging.EVENT_TIME_PAYLOAD: _Replacement(_EVENT_TIME),
    merging.OVERWRITE_WITH_LATEST_PAYLOAD: _Replacement(_COMMIT_TIME),
    merging.OVERWRITE_NON_DEFAULTS_PAYLOAD: _Replacement(_COMMIT_TIME, "IGNORE_DEFAULTS"),
    merging.PARTIAL_UPDATE_PAYLOAD: _Replacement(_EVENT_TIME, "IGNORE_DEFAULTS"),
    merging.POSTGRES_DEBEZIUM_PAYLOAD: _Replacement(
        _EVENT_TIME,
        "FILL_UNAVAILABLE",
        {merging.UNAVAILABLE_VALUE: DEBEZIUM_UNAVAILABLE, **_DEBEZIUM_DELETES},
        "_event_lsn",
    ),
    merging.MYSQL_DEBEZIUM_PAYLOAD: _Replacement(
        _EVENT_TIME, merge_properties=_DEBEZIUM_DELETES, ordering_fields="_event_bin_file,_event_pos"
    ),
    merging.AWS_DMS_PAYLOAD: _Replacement(
        _COMMIT_TIME, merge_properties={merging.DELETE_FIELD: "Op", merging.DELETE_MARKER: "D"}
    ),
}


def make_creation_properties(
    mode: MergeMode | None, payload: str | None, strategy: str | None, ordering_fields: Sequence[str], version: int = 9
) -> dict[str, str]:
    """Return the merge properties of a new table.

    Mode, payload class, strategy id and ordering fields are the requested ones, if any; of the fields it only matters
    whether there are any. The version must be at least 9.

    Raises:
        InvalidTableError: the values contradict each other, or CUSTOM names neither a payload class nor a strategy.
    """
    if version < 9:
        raise InvalidTableError(f"Tables of version {version} do not replace payload classes by merge modes.")
    replaced = _REPLACEMENTS.get(payload) if payload else None
    asked = None if replaced is not None else mode
    merge = infer_merge(version, asked, payload or None, strategy or None, has_ordering=bool(ordering_fields))
    if merge.strategy_id not in _BUILT_IN_STRATEGIES or (not payload and merge.mode is MergeMode.CUSTOM):
        return {keys.MERGE_MODE: merge.mode.value, keys.MERGE_STRATEGY_ID: merge.strategy_id or ""}
    if not payload:
        return {keys.MERGE_MODE: merge.mode.value}
    if replaced is None:
        return {
            keys.MERGE_MODE: MergeMode.CUSTOM.value,
            keys.PAYLOAD_CLASS: payload,
            keys.MERGE_STRATEGY_ID: merging.PAYLOAD_STRATEGY_ID,
        }
    return make_replacement_properties(payload)


def make_replacement_properties(payload: str) -> dict[str, str]:
    """Return the properties that version 9 stores instead of a payload class that ``is_replaced``."""
    replacement = _REPLACEMENTS[payload]
    stored = {keys.MERGE_MODE: replacement.mode.value, keys.LEGACY_PAYLOAD_CLASS: payload}
    if replacement.partial_update_mode is not None:
        stored[keys.PARTIAL_UPDATE_MODE] = replacement.partial_update_mode
    stored |= {keys.MERGE_PROPERTY_PREFIX + key: value for key, value in replacement.merge_properties.items()}
    if replacement.ordering_fields is not None:
        stored[keys.ORDERING_FIELDS] = replacement.ordering_fields
    return stored


def find_payload_class(properties: Mapping[str, str]) -> str | None:
    """Return the payload class in the properties of a table or a write (Hudi HoodieRecordPayload).

    The table's key counts first, then the writers' option. A commit-time table without both has the class that
    overwrites with the latest. Returns None for other properties; callers then assume the default payload class.
    """
    for key in (keys.PAYLOAD_CLASS, keys.WRITER_PAYLOAD_CLASS):
        value = properties.get(key, "").strip()
        if value:
            return replace_old_package(value)
    if properties.get(keys.MERGE_MODE, "").strip() == MergeMode.COMMIT_TIME_ORDERING:
        return merging.OVERWRITE_WITH_LATEST_PAYLOAD
    return None


def resolve_merge_for_write(config: TableConfig, options: Mapping[str, str]) -> MergeConfig:
    """Resolve how a write merges: as the table does, unless the write's options name another payload class.

    Raises InvalidTableError if the payload class contradicts other values.
    """
    payload = _find_writer_payload(options)
    if payload is None or payload == _find_table_payload(config):
        return MergeConfig(config.merge_mode, config.merge_strategy_id, config.payload_class)
    if config.version < 9:
        return infer_merge(config.version, None, payload, None, has_ordering=bool(config.ordering_fields))
    stored = make_creation_properties(None, payload, None, config.ordering_fields, config.version)
    return MergeConfig(
        MergeMode(stored[keys.MERGE_MODE]), stored.get(keys.MERGE_STRATEGY_ID), stored.get(keys.PAYLOAD_CLASS)
    )


def resolve_config_for_write(config: TableConfig, options: Mapping[str, str], *, batch: bool) -> TableConfig:
    """Return the table config for the merges of one write (Hudi's BaseWriteHelper and merge handles).

    ``batch``: for merging the rows of one batch with each other, otherwise for merging them with the table's rows. If
    payload classes decide, the first merge uses the write's class, the second one the table's.

    Raises InvalidTableError if the payload class contradicts other values.
    """
    if _find_writer_payload(options) is None:
        return config
    merge = resolve_merge_for_write(config, options)
    classes = find_payload_classes(config, merge, options)
    payload = merge.payload_class if classes is None else classes[1 if batch else 0]
    return replace(config, merge_mode=merge.mode, merge_strategy_id=merge.strategy_id, payload_class=payload)


def is_replaced(payload: str) -> bool:
    """Say whether version 9 replaces a payload class by a merge mode."""
    return payload in _REPLACEMENTS


def find_payload_classes(config: TableConfig, merge: MergeConfig, options: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the payload classes of stored and of incoming records; None if no payload class decides the merge.

    ``merge`` is the resolved configuration of this read or write, ``options`` are its options.
    """
    if not merge.is_payload_based:
        return None
    stored = _find_table_payload(config)
    return stored, _find_writer_payload(options) or stored


def _find_table_payload(config: TableConfig) -> str:
    """Return a table's payload class, or the class that its merge mode replaces."""
    commit_time = config.merge_mode is MergeMode.COMMIT_TIME_ORDERING
    return config.payload_class or (merging.OVERWRITE_WITH_LATEST_PAYLOAD if commit_time else merging.DEFAULT_PAYLOAD)


def _find_writer_payload(options: Mapping[str, str]) -> str | None:
    value = options.get(keys.WRITER_PAYLOAD_CLASS, "").strip()
    return replace_old_package(value) if value else None
