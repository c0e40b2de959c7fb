"""Table properties and reader options as a case's configuration gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hoodie_py.formats.config import table_config as keys
from hoodie_py.formats.config.merge_config import PAYLOAD_STRATEGY_ID
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options.read import CUSTOM_MERGER_CLASSES
from tests.reader.merge_cases.mergers import dotted, merger_of


def table_properties(config: Mapping[str, Any], **more: str) -> dict[str, str]:
    """``hoodie.properties`` of a case's table."""
    found = {
        keys.NAME: "cases",
        keys.TYPE: "MERGE_ON_READ",
        keys.VERSION: str(config.get("table_version", 9)),
        **more,
    }
    _put(found, keys.MERGE_MODE, config.get("merge_mode"))
    _put(found, keys.ORDERING_FIELDS, ",".join(config.get("ordering_fields") or ()))
    _put(found, keys.PAYLOAD_CLASS, config.get("payload_class"))
    _put(found, keys.MERGE_STRATEGY_ID, config.get("strategy_id") or _implied_strategy(config))
    _put(found, keys.PARTIAL_UPDATE_MODE, config.get("partial_update_mode"))
    given = (config.get("props") or {}).items()
    stored = {key: value for key, value in given if key.startswith(keys.MERGE_PROPERTY_PREFIX)}
    return {**found, **stored, **(config.get("table_props") or {})}


def table_config(config: Mapping[str, Any], record_keys: Sequence[str] | None = None) -> TableConfig:
    """The table of a case: with meta columns, unless key fields are given."""
    if record_keys is None:
        return TableConfig.from_properties(table_properties(config))
    virtual = {keys.POPULATE_META_FIELDS: "false", keys.RECORD_KEY_FIELDS: ",".join(record_keys)}
    return TableConfig.from_properties(table_properties(config, **virtual))


def read_options(config: Mapping[str, Any]) -> dict[str, str]:
    """The reader options of a case; merger classes by their Python paths."""
    options = dict(config.get("props") or {})
    for key in CUSTOM_MERGER_CLASSES.names:
        if key in options:
            options[key] = dotted(options[key])
    return options


def _implied_strategy(config: Mapping[str, Any]) -> str | None:
    """CUSTOM needs a strategy id where the case names only a merger or a payload class."""
    if config.get("merge_mode") != "CUSTOM":
        return None
    merger = merger_of(config)
    if merger is not None:
        return merger.strategy_id
    return PAYLOAD_STRATEGY_ID if config.get("payload_class") else None


def _put(properties: dict[str, str], key: str, value: str | None) -> None:
    if value:
        properties[key] = value
