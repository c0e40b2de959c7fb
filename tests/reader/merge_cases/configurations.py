"""payload_mapping and merger_selection: what properties and options mean for merging."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hoodie_py.formats.config.merge_config import PAYLOAD_STRATEGY_ID, MergeConfig, MergeMode, infer_merge
from hoodie_py.formats.config.merge_creation import (
    find_payload_class,
    find_payload_classes,
    make_creation_properties,
    resolve_merge_for_write,
)
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options.read import CUSTOM_MERGER_CLASSES
from hoodie_py.reader.merge.custom import CustomStrategy
from hoodie_py.reader.merge.strategies import (
    CommitTimeStrategy,
    EventTimeStrategy,
    KeepValuesStrategy,
    MergeStrategy,
    PartialUpdateStrategy,
)
from hoodie_py.reader.payloads.classes import make_builtin_payload_merger
from hoodie_py.reader.record_reader import choose_buffer_kind
from hoodie_py.reader.selection import select_strategy
from tests.reader.merge_cases.case import Case
from tests.reader.merge_cases.compare import check
from tests.reader.merge_cases.merge_rules import EXPRESSION_PAYLOAD, MergeRule, merge_rule
from tests.reader.merge_cases.mergers import MERGERS, StandIn, merger_of
from tests.reader.merge_cases.tables import read_options, table_config, table_properties

Config = Mapping[str, Any]


def run_payload_mapping(case: Case) -> None:
    """Ask the function that the case names and compare."""
    _answered(case, _MAPPINGS)


def run_merger_selection(case: Case) -> None:
    """The same for choices of mergers and buffers."""
    _answered(case, _SELECTIONS)


def _answered(case: Case, functions: Mapping[str, Callable[[Config], dict[str, Any]]]) -> None:
    actual = functions[case.config["function"]](case.config)
    assert "error" not in case.expected, f"expected {case.expected['error']}, got {actual}"
    check(case.expected, actual)


def _mode(config: Config) -> MergeMode | None:
    return MergeMode(config["merge_mode"]) if config.get("merge_mode") else None


def _created(config: Config) -> dict[str, Any]:
    """The properties of a new table; ordering fields only where they are not those asked for."""
    fields = tuple(config.get("ordering_fields") or ())
    asked = (_mode(config), config.get("payload_class"), config.get("strategy_id"))
    return {"table_props": make_creation_properties(*asked, fields, config["table_version"])}


def _inferred(config: Config) -> dict[str, Any]:
    merge = infer_merge(
        config["table_version"],
        _mode(config),
        config.get("payload_class"),
        config.get("strategy_id"),
        has_ordering=bool(config.get("ordering_fields")),
    )
    return _merge(merge)


def _merge(merge: MergeConfig) -> dict[str, Any]:
    return {"merge_mode": merge.mode.value, "payload_class": merge.payload_class, "strategy_id": merge.strategy_id}


def _of_table(config: Config) -> dict[str, Any]:
    table = table_config(config)
    return {"merge_props": dict(table.merge_properties), "partial_update_mode": table.partial_update_mode}


def _payload_class(config: Config) -> dict[str, Any]:
    found = find_payload_class({**table_properties({**config, "props": {}}), **(config.get("props") or {})})
    return {"payload_class": found}


_MAPPINGS: dict[str, Callable[[Config], dict[str, Any]]] = {
    "table_creation_v9": _created,
    "infer_pre_v9": _inferred,
    "infer_for_writes": _inferred,
    "table_merge_properties": _of_table,
    "partial_update_mode": _of_table,
    "payload_class_from_props": _payload_class,
}


def _buffered_merger(config: Config) -> dict[str, Any]:
    """The rule by configuration, checked against the strategy that a read with that configuration gets."""
    payloads: tuple[str, str] | None = tuple(config["payload_classes"]) if config.get("payload_classes") else None
    stored, incoming = payloads or (None, None)
    partial = bool(config.get("is_partial"))
    completes = config.get("partial_update_mode") is not None
    rule = merge_rule(
        MergeMode(config["merge_mode"]),
        completes=completes,
        partial_block=partial,
        payloads=payloads,
    )
    if incoming != EXPRESSION_PAYLOAD:  # lives only inside a write of Spark's MERGE INTO
        asked = _complete({**config, "payload_class": stored})
        merger = _StandIns.of(stored) if stored else merger_of(asked)
        selected = select_strategy(table_config(asked), read_options(config), merger)
        strategy = selected.strategy.switch_to_partial() if partial else selected.strategy
        assert _rule_of(strategy, payload=stored is not None) is rule
    return {"merger": rule.value}


def _complete(config: Config) -> Config:
    """CUSTOM without a word on what merges: some merger of the user's."""
    if config["merge_mode"] != MergeMode.CUSTOM or config.get("payload_class") or config.get("strategy_id"):
        return config
    return {"custom_merger": "overwrite_with_latest", **config}


def _rule_of(strategy: MergeStrategy, *, payload: bool) -> MergeRule:
    match strategy:
        case CustomStrategy() if strategy._partial:
            return MergeRule.KEEP_VALUES
        case CustomStrategy():
            return MergeRule.PAYLOAD if payload else MergeRule.CUSTOM
        case KeepValuesStrategy():
            return MergeRule.KEEP_VALUES
        case PartialUpdateStrategy():
            commit_time = isinstance(strategy._mode, CommitTimeStrategy)
            return MergeRule.COMMIT_TIME_COMPLETED if commit_time else MergeRule.EVENT_TIME_COMPLETED
        case EventTimeStrategy():
            return MergeRule.EVENT_TIME
    return MergeRule.COMMIT_TIME


def _initialised(config: Config) -> dict[str, Any]:
    """How a read, or a write with ``ingestion``, merges a table."""
    table = table_config(config)
    options = read_options(config)
    merge = MergeConfig(table.merge_mode, table.merge_strategy_id, table.payload_class)
    if config.get("ingestion"):
        merge = resolve_merge_for_write(table, options)
    payloads = find_payload_classes(table, merge, options)
    return {
        "merge_mode": merge.mode.value,
        "record_merger": _record_merger(table, merge, options, config),
        "payload_classes": list(payloads) if payloads else None,
    }


def _record_merger(table: TableConfig, merge: MergeConfig, options: dict[str, str], config: Config) -> str:
    """Hudi's name for what decides; a CUSTOM table must find a merger, which stands in for unknown payload classes."""
    spark = config.get("engine") == "spark"
    if merge.mode is MergeMode.COMMIT_TIME_ORDERING:
        return "OverwriteWithLatestSparkRecordMerger" if spark else "OverwriteWithLatestMerger"
    if merge.mode is MergeMode.EVENT_TIME_ORDERING:
        return "DefaultSparkRecordMerger" if spark else "HoodieAvroRecordMerger"
    if merge.strategy_id == PAYLOAD_STRATEGY_ID:
        payload = merge.payload_class or ""
        if make_builtin_payload_merger(payload) is None:
            options = {**options, CUSTOM_MERGER_CLASSES: _StandIns.path(payload)}
        if not config.get("ingestion"):
            assert select_strategy(table, options).merger is not None
        return "HoodieAvroRecordMerger"
    found = select_strategy(table, options).merger
    return next(name for name, cls in MERGERS.items() if type(found) is cls)


class _StandIns:
    """Mergers for payload classes that the package does not know, as a user would supply them."""

    @staticmethod
    def of(payload: str) -> type[StandIn]:
        name = "StandIn_" + "".join(c if c.isalnum() else "_" for c in payload)
        cls = type(name, (StandIn,), {"payload_classes": (payload,), "__module__": __name__})
        globals()[name] = cls
        return cls

    @classmethod
    def path(cls, payload: str) -> str:
        return f"{__name__}.{cls.of(payload).__name__}"


def _ordering_fields(config: Config) -> dict[str, Any]:
    table = table_config(_complete(config))
    return {"ordering_fields": list(table.merge_ordering_fields)}


def _buffer(config: Config) -> dict[str, Any]:
    kind = choose_buffer_kind(
        read_options(config),
        streaming=config["loader"] == "streaming",
        sort_output=bool(config.get("sort_output")),
        use_positions=bool(config.get("use_positions")),
        has_base_file=bool(config.get("has_base_file")),
    )
    return {"buffer": kind.value}


_SELECTIONS: dict[str, Callable[[Config], dict[str, Any]]] = {
    "buffered_merger": _buffered_merger,
    "reader_context_init": _initialised,
    "ordering_fields": _ordering_fields,
    "buffer_choice": _buffer,
}
