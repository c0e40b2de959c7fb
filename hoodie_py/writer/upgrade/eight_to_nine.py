"""From table version 8 to 9 (Hudi ``EightToNineUpgradeHandler``): merge modes replace payload classes.

* A built-in payload class becomes a merge mode, with a partial update mode, merge properties or ordering fields if
  needed. The class is kept under the legacy key.
* The strategy id is removed, unless the mode is CUSTOM.
* ``hoodie.table.precombine.field`` becomes ``hoodie.table.ordering.fields``.
* Index definitions without a version get the first one.
"""

from __future__ import annotations

from dataclasses import replace

from hoodie_py.formats.config import merge_config as merging
from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.merge_creation import is_replaced, make_replacement_properties
from hoodie_py.formats.indexes.definitions import IndexDefinitions
from hoodie_py.writer.upgrade.step import Changes, Facts, Step, set_version

VERSION = 9


def plan_step(facts: Facts) -> Step:
    """Return the step from version 8 to 9."""
    definitions = IndexDefinitions.of(replace(each, version=each.version or 1) for each in facts.definitions)
    return Step(
        to=VERSION,
        changes=set_version(VERSION) | _replace_payload(facts) | _rename_ordering(facts),
        metadata_changes=set_version(VERSION),
        definitions=None if definitions == facts.definitions else definitions,
    )


def _replace_payload(facts: Facts) -> Changes:
    config = facts.config
    payload = config.properties.get(keys.PAYLOAD_CLASS, "").strip()
    known = merging.replace_old_package(payload)
    changes: Changes = {}
    if config.merge_mode is not merging.MergeMode.CUSTOM or is_replaced(known):
        changes |= {keys.MERGE_STRATEGY_ID: None, keys.MERGE_STRATEGY_ID_ALIAS: None}
        changes[keys.MERGE_MODE] = config.merge_mode.value
    if is_replaced(known):
        changes |= {keys.PAYLOAD_CLASS: None, keys.WRITER_PAYLOAD_CLASS: None}
        changes |= make_replacement_properties(known)
    return changes


def _rename_ordering(facts: Facts) -> Changes:
    payload = facts.config.properties.get(keys.PAYLOAD_CLASS, "").strip()
    fields = ",".join(facts.config.ordering_fields)
    if is_replaced(payload):
        fields = make_replacement_properties(payload).get(keys.ORDERING_FIELDS, fields)
    return {keys.ORDERING_FIELDS: fields, keys.PRECOMBINE_FIELD: None} if fields else {}
