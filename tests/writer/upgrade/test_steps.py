"""What steps change in the properties; the expected ones are those that Java's own upgrades left."""

from __future__ import annotations

from typing import Any

import pytest

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes.definitions import (
    IndexDefinition,
    IndexDefinitions,
    define_column_stats,
    define_record_index,
)
from hoodie_py.writer.upgrade import eight_to_nine, eight_to_six, nine_to_eight, six_to_eight
from hoodie_py.writer.upgrade.step import Facts, apply_changes, check_key_generator

_MODEL = "org.apache.hudi.common.model"
DEFAULT, LATEST = f"{_MODEL}.DefaultHoodieRecordPayload", f"{_MODEL}.OverwriteWithLatestAvroPayload"
EVENT_TIME = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
COMMIT_TIME = "ce9acb64-bde0-424c-9b91-f6ebba25356d"
PAYLOAD = "00000000-0000-0000-0000-000000000000"
STEPS = {(6, 8): six_to_eight, (8, 9): eight_to_nine, (9, 8): nine_to_eight, (8, 6): eight_to_six}


def properties(version: int, **more: str) -> dict[str, str]:
    """Properties of a table; dots are written as ``__``."""
    return {
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(version),
        "hoodie.timeline.layout.version": "1" if version < 8 else "2",
        "hoodie.table.recordkey.fields": "id",
        **{key.replace("__", "."): value for key, value in more.items()},
    }


def take(before: dict[str, str], to: int, *definitions: IndexDefinition) -> tuple[TableConfig, Any]:
    config = TableConfig.from_properties(before)
    step = STEPS[config.version, to].plan_step(Facts(config, IndexDefinitions.of(definitions)))
    return TableConfig.from_properties(apply_changes(before, step.changes)), step


ORDERING = {"hoodie__table__ordering__fields": "ts"}


@pytest.mark.parametrize(
    ("payload", "mode", "strategy"),
    [
        (DEFAULT, "EVENT_TIME_ORDERING", EVENT_TIME),
        (LATEST, "COMMIT_TIME_ORDERING", COMMIT_TIME),
        ("org.example.Mine", "CUSTOM", PAYLOAD),
        (f"{_MODEL}.PartialUpdateAvroPayload", "CUSTOM", PAYLOAD),
    ],
)
def test_the_mode_by_which_a_table_is_read_stays(payload: str, mode: str, strategy: str) -> None:
    before = properties(6, hoodie__compaction__payload__class=payload, **ORDERING)
    eight, step = take(before, 8)
    assert (step.changes["hoodie.record.merge.mode"], step.changes["hoodie.record.merge.strategy.id"]) == (
        mode,
        strategy,
    )
    assert step.changes["hoodie.table.initial.version"] == "6"
    assert (eight.merge_mode, eight.payload_class) == (TableConfig.from_properties(before).merge_mode, payload)
    six, _ = take(dict(eight.properties), 6)
    assert (six.merge_mode, six.payload_class) == (eight.merge_mode, payload)
    assert six.timeline_layout == 1


@pytest.mark.parametrize(
    "payload",
    [
        DEFAULT, LATEST, f"{_MODEL}.EventTimeAvroPayload", f"{_MODEL}.AWSDmsAvroPayload",
        f"{_MODEL}.PartialUpdateAvroPayload", f"{_MODEL}.OverwriteNonDefaultsWithLatestAvroPayload",
        f"{_MODEL}.debezium.PostgresDebeziumAvroPayload", f"{_MODEL}.debezium.MySqlDebeziumAvroPayload",
    ],
)  # fmt: skip
def test_a_payload_class_becomes_a_mode_and_comes_back(payload: str) -> None:
    before = properties(6, hoodie__compaction__payload__class=payload, hoodie__table__precombine__field="ts")
    eight, _ = take(before, 8)
    nine, step = take(dict(eight.properties), 9)
    assert (nine.payload_class, nine.legacy_payload_class) == (None, payload)
    assert "hoodie.table.precombine.field" not in nine.properties
    assert step.changes["hoodie.compaction.payload.class"] is None
    back, _ = take(dict(nine.properties), 8)
    assert (back.merge_mode, back.merge_strategy_id, back.payload_class) == (
        eight.merge_mode, eight.merge_strategy_id, eight.payload_class,
    )  # fmt: skip
    assert not [key for key in back.properties if key.startswith("hoodie.record.merge.property.")]
    assert back.partial_update_mode is None
    assert back.legacy_payload_class is None


def test_version_6_tells_the_merge_mode_by_a_payload_class() -> None:
    for mode, payload in (("COMMIT_TIME_ORDERING", LATEST), ("EVENT_TIME_ORDERING", DEFAULT)):
        eight, _ = take(properties(9, hoodie__record__merge__mode=mode, **ORDERING), 8)
        assert eight.properties["hoodie.table.precombine.field"] == "ts"
        six, _ = take(dict(eight.properties), 6)
        assert six.properties["hoodie.compaction.payload.class"] == payload
        assert six.merge_mode == mode
        assert "hoodie.record.merge.strategy.id" not in six.properties


def test_the_archive_of_version_6_is_where_the_properties_say() -> None:
    before = properties(8, hoodie__archivelog__folder="history", hoodie__record__merge__mode="COMMIT_TIME_ORDERING")
    six, _ = take(before, 6)
    assert six.find_history_folder() == ".hoodie/archived"


def test_a_partial_update_mode_of_its_own_is_refused() -> None:
    more = {
        "hoodie__table__partial__update__mode": "IGNORE_DEFAULTS",
        "hoodie__record__merge__mode": "EVENT_TIME_ORDERING",
    }
    with pytest.raises(UnsupportedFeatureError, match="partial update mode IGNORE_DEFAULTS"):
        take(properties(9, **more, **ORDERING), 8)
    payload = f"{_MODEL}.PartialUpdateAvroPayload"
    eight, _ = take(properties(9, hoodie__table__legacy__payload__class=payload, **more, **ORDERING), 8)
    assert eight.payload_class == payload


def test_a_record_index_by_partition_does_not_go_to_version_6() -> None:
    more = {
        "hoodie__table__metadata__partitions": "files,partition_stats,record_index",
        "hoodie__record__merge__mode": "EVENT_TIME_ORDERING",
    }
    for partitioned in (True, False):
        _, step = take(properties(8, **more), 6, define_record_index(partitioned=partitioned))
        assert step.dropped == ("partition_stats", *(("record_index",) if partitioned else ()))


def test_indexes_in_the_encoding_of_version_9_do_not_go_to_8() -> None:
    more = {
        "hoodie__table__metadata__partitions": "files,column_stats,partition_stats,record_index",
        "hoodie__record__merge__mode": "EVENT_TIME_ORDERING",
    }
    second, first = (define_column_stats(("id",), version) for version in (9, 8))
    records = define_record_index(partitioned=False)
    _, step = take(properties(9, **more), 8, second, records)
    assert step.dropped == ("column_stats", "partition_stats")
    assert step.definitions == IndexDefinitions.of([records])
    _, step = take(properties(9, **more), 8, first, records)
    assert (step.dropped, step.definitions) == ((), None)


def test_definitions_without_a_version_are_of_the_first() -> None:
    old = IndexDefinition("column_stats", "column_stats", "column_stats", ("id",))
    _, step = take(properties(8, hoodie__record__merge__mode="EVENT_TIME_ORDERING"), 9, old)
    assert [each.version for each in step.definitions] == [1]


def test_the_key_generator_has_class_and_type() -> None:
    eight, _ = take(
        properties(6, hoodie__table__keygenerator__class="org.apache.hudi.keygen.SimpleAvroKeyGenerator"), 8
    )
    assert eight.properties["hoodie.table.keygenerator.type"] == "SIMPLE_AVRO"
    more = {"hoodie__table__keygenerator__type": "NON_PARTITION", "hoodie__record__merge__mode": "COMMIT_TIME_ORDERING"}
    six, _ = take(properties(8, **more), 6)
    assert six.properties["hoodie.table.keygenerator.class"].endswith(".NonpartitionedKeyGenerator")
    mine, _ = take(properties(6, hoodie__table__keygenerator__class="org.example.Mine"), 8)
    assert mine.properties["hoodie.table.keygenerator.type"] == "USER_PROVIDED"
    complex_ = TableConfig.from_properties(properties(8, hoodie__table__keygenerator__type="COMPLEX"))
    with pytest.raises(UnsupportedFeatureError, match="complex key generator with one field"):
        check_key_generator(complex_)
