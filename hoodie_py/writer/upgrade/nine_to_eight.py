"""From table version 9 to 8 (Hudi ``NineToEightDowngradeHandler``): payload classes replace merge modes.

* The legacy payload class becomes the payload class again. The properties that stood for it are removed: partial
  update mode, merge properties, ordering fields.
* Indexes whose records are encoded in the second version are dropped. If column statistics are dropped, so are
  statistics of partitions.

Hudi drops a partial update mode that does not follow from a payload class, so that later updates would overwrite the
values that they lack. Such a table is refused here.
"""

from __future__ import annotations

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.config import merge_config as merging
from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.merge_creation import is_replaced, make_replacement_properties
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes import definitions as names
from hoodie_py.writer.upgrade.step import Changes, Facts, Step, set_version

VERSION = 8
_MODES_ALONE = (merging.DEFAULT_PAYLOAD, merging.EVENT_TIME_PAYLOAD, merging.OVERWRITE_WITH_LATEST_PAYLOAD)
_STRATEGIES = {
    MergeMode.EVENT_TIME_ORDERING: merging.EVENT_TIME_STRATEGY_ID,
    MergeMode.COMMIT_TIME_ORDERING: merging.COMMIT_TIME_STRATEGY_ID,
}
_ORDERING_OF_MYSQL = "_event_seq"


def plan_step(facts: Facts) -> Step:
    """Return the step from version 9 to 8.

    Raises:
        UnsupportedFeatureError: the table has a partial update mode of its own.
    """
    _check_partial_updates(facts.config)
    dropped = tuple(_list_dropped(facts))
    definitions = facts.definitions
    for name in dropped:
        definitions = definitions.drop(name)
    return Step(
        to=VERSION,
        changes=set_version(VERSION) | _restore_payload(facts.config) | _rename_ordering(facts.config),
        metadata_changes=set_version(VERSION),
        dropped=dropped,
        definitions=None if definitions == facts.definitions else definitions,
    )


def _check_partial_updates(config: TableConfig) -> None:
    legacy = config.legacy_payload_class or ""
    implied = make_replacement_properties(legacy).get(keys.PARTIAL_UPDATE_MODE) if is_replaced(legacy) else None
    if config.partial_update_mode != implied:
        raise UnsupportedFeatureError(
            f"A table of version {VERSION} with the partial update mode {config.partial_update_mode}: updates would "
            "overwrite the values that they lack.",
            hint=f"Take {keys.PARTIAL_UPDATE_MODE} out of the table's properties first, if that is what you want.",
        )


def _list_dropped(facts: Facts) -> list[str]:
    """Return the partitions of the metadata table that version 8 cannot read."""
    there = {*facts.config.metadata_partitions, *facts.config.metadata_partitions_inflight}
    found = sorted(
        name
        for name in there
        if name != names.PARTITION_STATS
        and (facts.definitions.get(name) is not None)
        and names.find_index_version(name, facts.definitions, facts.config.version) > 1
    )
    if names.COLUMN_STATS in found and names.PARTITION_STATS in there:
        found.append(names.PARTITION_STATS)
    return found


def _restore_payload(config: TableConfig) -> Changes:
    changes: Changes = {keys.PARTIAL_UPDATE_MODE: None}
    if config.merge_mode in _STRATEGIES:
        changes[keys.MERGE_STRATEGY_ID] = _STRATEGIES[config.merge_mode]
    legacy = config.legacy_payload_class
    if legacy is None or not is_replaced(legacy):
        return changes
    changes |= {keys.LEGACY_PAYLOAD_CLASS: None, keys.PAYLOAD_CLASS: legacy}
    if legacy not in _MODES_ALONE:
        changes |= {keys.MERGE_STRATEGY_ID: merging.PAYLOAD_STRATEGY_ID, keys.MERGE_MODE: MergeMode.CUSTOM.value}
    stored = make_replacement_properties(legacy)
    changes |= dict.fromkeys(key for key in stored if key.startswith(keys.MERGE_PROPERTY_PREFIX))
    return changes


def _rename_ordering(config: TableConfig) -> Changes:
    fields = ",".join(config.ordering_fields)
    if config.legacy_payload_class == merging.MYSQL_DEBEZIUM_PAYLOAD:
        fields = _ORDERING_OF_MYSQL
    return {keys.PRECOMBINE_FIELD: fields, keys.ORDERING_FIELDS: None} if fields else {}
