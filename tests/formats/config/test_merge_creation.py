"""What a new table stores about merging, and what a payload class of a write's own means."""

from __future__ import annotations

from typing import Any

import pytest

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.config.merge_config import (
    AWS_DMS_PAYLOAD,
    COMMIT_TIME_STRATEGY_ID,
    DEFAULT_PAYLOAD,
    EVENT_TIME_STRATEGY_ID,
    MYSQL_DEBEZIUM_PAYLOAD,
    OVERWRITE_WITH_LATEST_PAYLOAD,
    PAYLOAD_STRATEGY_ID,
    POSTGRES_DEBEZIUM_PAYLOAD,
    MergeConfig,
    MergeMode,
)
from hoodie_py.formats.config.merge_creation import (
    find_payload_class,
    find_payload_classes,
    make_creation_properties,
    resolve_merge_for_write,
)
from hoodie_py.formats.config.table_config import TableConfig

OWN = "com.example.Payload"
WRITER = {"hoodie.datasource.write.payload.class": OWN}


def table(**properties: str) -> TableConfig:
    named = {f"hoodie.{key.replace('_', '.')}": value for key, value in properties.items()}
    return TableConfig.from_properties({"hoodie.table.name": "t", "hoodie.table.version": "9", **named})


@pytest.mark.parametrize(
    "payload", [DEFAULT_PAYLOAD, MYSQL_DEBEZIUM_PAYLOAD, POSTGRES_DEBEZIUM_PAYLOAD, AWS_DMS_PAYLOAD]
)
def test_what_is_stored_for_a_built_in_payload_reads_back_as_a_mode(payload: str) -> None:
    stored = make_creation_properties(None, payload, None, ("ts",))
    config = TableConfig.from_properties({"hoodie.table.name": "t", "hoodie.table.version": "9", **stored})
    assert config.merge_mode is not MergeMode.CUSTOM
    assert (config.payload_class, config.legacy_payload_class) == (None, payload)


def test_a_mode_beside_a_built_in_payload_is_not_looked_at() -> None:
    stored = make_creation_properties(MergeMode.CUSTOM, DEFAULT_PAYLOAD, None, ())
    assert stored["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"


@pytest.mark.parametrize(
    ("mode", "payload", "strategy"),
    [
        (MergeMode.EVENT_TIME_ORDERING, OWN, None),
        (MergeMode.CUSTOM, None, EVENT_TIME_STRATEGY_ID),
        (None, DEFAULT_PAYLOAD, COMMIT_TIME_STRATEGY_ID),
        (MergeMode.CUSTOM, None, None),
    ],
)
def test_contradictions_are_errors(mode: MergeMode | None, payload: str | None, strategy: str | None) -> None:
    with pytest.raises(InvalidTableError):
        make_creation_properties(mode, payload, strategy, ())


def test_a_strategy_of_the_users_own_beats_the_payload() -> None:
    stored = make_creation_properties(None, DEFAULT_PAYLOAD, "mine", ("ts",))
    assert stored == {"hoodie.record.merge.mode": "CUSTOM", "hoodie.record.merge.strategy.id": "mine"}


@pytest.mark.parametrize(
    ("properties", "payload"),
    [
        ({}, None),
        (WRITER, OWN),
        ({**WRITER, "hoodie.compaction.payload.class": "com.uber.hoodie.X"}, "org.apache.hudi.X"),
        ({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, OVERWRITE_WITH_LATEST_PAYLOAD),
        ({"hoodie.table.legacy.payload.class": OWN}, None),
    ],
)
def test_payload_class_of_properties(properties: dict[str, str], payload: str | None) -> None:
    assert find_payload_class(properties) == payload


def test_a_write_merges_as_the_table_says_unless_it_brings_another_payload_class() -> None:
    plain = table(record_merge_mode="EVENT_TIME_ORDERING")
    assert resolve_merge_for_write(plain, {}).mode is MergeMode.EVENT_TIME_ORDERING
    assert resolve_merge_for_write(plain, {"hoodie.datasource.write.payload.class": DEFAULT_PAYLOAD}).strategy_id == (
        EVENT_TIME_STRATEGY_ID
    )
    assert resolve_merge_for_write(plain, WRITER) == MergeConfig(MergeMode.CUSTOM, PAYLOAD_STRATEGY_ID, OWN)


@pytest.mark.parametrize("version", ["6", "8"])
def test_a_write_to_an_older_table_infers_as_that_version_does(version: str) -> None:
    older = table(table_version=version, compaction_payload_class=DEFAULT_PAYLOAD)
    options = {"hoodie.datasource.write.payload.class": AWS_DMS_PAYLOAD}
    assert resolve_merge_for_write(older, options) == MergeConfig(
        MergeMode.CUSTOM, PAYLOAD_STRATEGY_ID, AWS_DMS_PAYLOAD
    )


@pytest.mark.parametrize(
    ("options", "pair"),
    [({}, (OWN, OWN)), (WRITER, (OWN, OWN)), ({"hoodie.datasource.write.payload.class": "b.C"}, (OWN, "b.C"))],
)
def test_payload_classes_of_stored_and_incoming_records(options: dict[str, str], pair: Any) -> None:
    custom = table(record_merge_mode="CUSTOM", compaction_payload_class=OWN)
    assert find_payload_classes(custom, MergeConfig(MergeMode.CUSTOM, PAYLOAD_STRATEGY_ID, OWN), options) == pair
    assert find_payload_classes(custom, MergeConfig(MergeMode.CUSTOM, "mine", None), options) is None
