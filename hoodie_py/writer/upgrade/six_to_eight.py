"""From table version 6 to 8 (Hudi ``SixToSevenUpgradeHandler``, ``SevenToEightUpgradeHandler``): the timeline moves to
a folder of its own, with completion times, and the properties name the merge mode.

* A payload class other than the three built-in ones becomes the mode CUSTOM, which keeps the class. The others become
  the mode by which the table is read already. (Hudi changes merge-on-read tables that overwrite with the latest commit
  to event-time ordering if they have ordering fields, so that their past reads differently.)
* The type of the key generator is stored beside its class, and the type of the bootstrap index as well.
"""

from __future__ import annotations

from hoodie_py.formats.config import merge_config as merging
from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import CLASS_OF_TYPE, TableConfig, find_type
from hoodie_py.writer.keygen.generator import parse_partition_types
from hoodie_py.writer.upgrade.step import Changes, Facts, Step, set_version

VERSION = 8
_BOOTSTRAP_TYPES = {
    "org.apache.hudi.common.bootstrap.index.hfile.HFileBootstrapIndex": "HFILE",
    "org.apache.hudi.common.bootstrap.index.NoOpBootstrapIndex": "NO_OP",
}


def plan_step(facts: Facts) -> Step:
    """Return the step from version 6 to 8."""
    config = facts.config
    changes = set_version(VERSION) | {keys.TIMELINE_PATH: "timeline", keys.INITIAL_VERSION: str(config.version)}
    return Step(
        to=VERSION,
        changes=changes
        | _name_merge(config)
        | _name_key_generator(config)
        | _name_partition_fields(facts)
        | _name_bootstrap(config),
        metadata_changes=set_version(VERSION)
        | {
            keys.TIMELINE_PATH: "timeline",
            keys.INITIAL_VERSION: str(config.version),
            keys.MERGE_MODE: MergeMode.CUSTOM.value,
            keys.MERGE_STRATEGY_ID: merging.PAYLOAD_STRATEGY_ID,
        },
    )


def _name_merge(config: TableConfig) -> Changes:
    mode, strategy = config.merge_mode, config.merge_strategy_id
    if mode is MergeMode.CUSTOM and not config.is_payload_based:  # a custom merger
        return {keys.MERGE_MODE: mode.value, keys.MERGE_STRATEGY_ID: strategy}
    if mode is MergeMode.COMMIT_TIME_ORDERING:
        payload: str | None = merging.OVERWRITE_WITH_LATEST_PAYLOAD
    else:
        payload = config.payload_class or merging.DEFAULT_PAYLOAD
    return {keys.PAYLOAD_CLASS: payload, keys.MERGE_MODE: mode.value, keys.MERGE_STRATEGY_ID: strategy}


def _name_key_generator(config: TableConfig) -> Changes:
    properties = config.properties
    named = properties.get(keys.KEY_GENERATOR_CLASS, "").strip()
    named = named or CLASS_OF_TYPE.get(properties.get(keys.KEY_GENERATOR_TYPE, "").strip(), "")
    return {keys.KEY_GENERATOR_CLASS: named, keys.KEY_GENERATOR_TYPE: find_type(named)} if named else {}


def _name_partition_fields(facts: Facts) -> Changes:
    """Return the partition fields with their types, ``day:TIMESTAMP``; {} unless the key generator is a custom one.

    Tables store the types from version 8 on. They come from the table if it has them already, else from the options.
    """
    config = facts.config
    if config.key_generator != "CUSTOM" or any(config.partition_field_types):
        return {}
    types = parse_partition_types(config, facts.options)
    if types is None:
        return {}
    pairs = zip(config.partition_fields, types, strict=True)
    return {keys.PARTITION_FIELDS: ",".join(f"{name}:{type_}" for name, type_ in pairs)}


def _name_bootstrap(config: TableConfig) -> Changes:
    named = config.properties.get(keys.BOOTSTRAP_INDEX_CLASS, "").strip()
    kind = _BOOTSTRAP_TYPES.get(named)
    return {keys.BOOTSTRAP_INDEX_TYPE: kind} if kind else {}
