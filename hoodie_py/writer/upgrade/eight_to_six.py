"""From table version 8 to 6 (Hudi ``EightToSevenDowngradeHandler``, ``SevenToSixDowngradeHandler``): the timeline moves
back, and the payload class defines how records merge.

In the metadata table ``files``, ``column_stats``, ``bloom_filters`` and ``record_index`` stay. Hudi also keeps a
partitioned record index; no release for tables of version 6 can read one, so it is dropped here.

A custom merger has no payload class, and is refused as in Hudi. Hudi does not notice if the properties also name a
payload class, and would merge by it.
"""

from __future__ import annotations

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.config import merge_config as merging
from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import CLASS_OF_TYPE, TableConfig
from hoodie_py.formats.indexes import definitions as names
from hoodie_py.writer.upgrade.step import Changes, Facts, Step, set_version

VERSION = 6
ARCHIVE = "archived"
_KEPT = (names.FILES_PARTITION, names.COLUMN_STATS, names.BLOOM_FILTERS, names.RECORD_INDEX)


def plan_step(facts: Facts) -> Step:
    """Return the step from version 8 to 6.

    Raises:
        UnsupportedFeatureError: records are merged by a custom merger and not by a payload class.
    """
    config = facts.config
    dropped = tuple(_list_dropped(facts))
    definitions = facts.definitions
    for name in dropped:
        definitions = definitions.drop(name)
    moved: Changes = {**set_version(VERSION), keys.ARCHIVE_FOLDER: ARCHIVE}
    gone: Changes = dict.fromkeys((keys.MERGE_MODE, keys.MERGE_STRATEGY_ID, keys.MERGE_STRATEGY_ID_ALIAS))
    return Step(
        to=VERSION,
        changes=moved | gone | _name_payload(config) | _name_key_generator(config),
        metadata_changes=moved | gone,
        dropped=dropped,
        definitions=None if definitions == facts.definitions else definitions,
    )


def _name_payload(config: TableConfig) -> Changes:
    if config.merge_mode is MergeMode.EVENT_TIME_ORDERING:
        kept = config.payload_class or ""
        return {keys.PAYLOAD_CLASS: kept if kept == merging.EVENT_TIME_PAYLOAD else merging.DEFAULT_PAYLOAD}
    if config.merge_mode is MergeMode.COMMIT_TIME_ORDERING:
        return {keys.PAYLOAD_CLASS: merging.OVERWRITE_WITH_LATEST_PAYLOAD}
    if not config.is_payload_based or not config.payload_class:
        raise UnsupportedFeatureError(
            f"A table of version {VERSION} whose records are merged by a merger, {config.merge_strategy_id}: that "
            "version knows payload classes only.",
            hint="Stay with version 8 or later.",
        )
    return {keys.PAYLOAD_CLASS: config.payload_class}


def _name_key_generator(config: TableConfig) -> Changes:
    properties = config.properties
    if properties.get(keys.KEY_GENERATOR_CLASS, "").strip():
        return {}
    named = CLASS_OF_TYPE.get(properties.get(keys.KEY_GENERATOR_TYPE, "").strip())
    return {keys.KEY_GENERATOR_CLASS: named} if named else {}


def _list_dropped(facts: Facts) -> list[str]:
    there = {*facts.config.metadata_partitions, *facts.config.metadata_partitions_inflight}
    records = facts.definitions.get(names.RECORD_INDEX)
    by_partition = records is not None and records.is_partitioned
    return sorted(name for name in there if name not in _KEPT or (name == names.RECORD_INDEX and by_partition))
