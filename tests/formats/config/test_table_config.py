from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import HoodieError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.config.merge_config import EVENT_TIME_STRATEGY_ID, PAYLOAD_STRATEGY_ID, MergeMode
from hoodie_py.formats.config.properties import format_properties
from hoodie_py.formats.config.table_config import TableConfig, compute_table_checksum
from tests.corpus import load_case
from tests.formats.zipped_tables import all_meta_files

MINIMAL = {
    "hoodie.table.name": "trips",
    "hoodie.table.version": "9",
    "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
}


def config(**changes: str | None) -> TableConfig:
    """A config of the minimal properties with changes; ``__`` in a name stands for a dot, None removes the key."""
    named = {f"hoodie.{key.replace('__', '.')}": value for key, value in changes.items()}
    properties = {key: value for key, value in (MINIMAL | named).items() if value is not None}
    return TableConfig.from_bytes(format_properties(properties))


def test_defaults_are_hudis() -> None:
    found = config()
    assert (found.name, found.database, found.type, found.version) == ("trips", "", "COPY_ON_WRITE", 9)
    assert (found.find_timeline_folder(), found.find_history_folder()) == (
        ".hoodie/timeline",
        ".hoodie/timeline/history",
    )
    assert found.populate_meta_fields
    assert not any((found.is_partitioned, found.is_merge_on_read, found.cdc_enabled, found.hive_style_partitioning))
    assert (found.base_file_format, found.cdc_mode, found.timezone) == ("PARQUET", "DATA_BEFORE_AFTER", "LOCAL")
    assert (found.merge_mode, found.merge_strategy_id) == (MergeMode.EVENT_TIME_ORDERING, EVENT_TIME_STRATEGY_ID)
    assert found.key_generator is None
    assert found.create_schema is None


def test_a_config_pickles_and_keeps_unknown_keys() -> None:
    found = config(some__future__key="x", record__merge__property__a="1")
    assert found.properties["hoodie.some.future.key"] == "x"
    assert found.merge_properties == {"a": "1"}
    assert pickle.loads(pickle.dumps(found)) == found


def test_checksum_is_crc32_of_database_and_name() -> None:
    assert compute_table_checksum("archived_timeline_cow_v6") == 2906205469
    assert config(table__checksum=str(compute_table_checksum("trips"))).name == "trips"
    assert config(table__checksum=str(compute_table_checksum("trips", "db")), database__name="db").database == "db"
    with pytest.raises(InvalidTableError, match="checksum"):
        config(table__checksum=str(compute_table_checksum("trips")), database__name="db")


@pytest.mark.parametrize("version", ["7", "10", "0"])
def test_other_table_versions_are_refused(version: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"version {version}") as caught:
        config(table__version=version)
    assert caught.value.where["table"] == "trips"


@pytest.mark.parametrize(
    "changes",
    [
        {"table__name": None},
        {"table__version": None},
        {"table__version": "nine"},
        {"table__version": "٩"},
        {"table__type": "MERGE_ON_WRITE"},
        {"record__merge__mode": "NEWEST"},
        {"timeline__layout__version": "1"},
        {"timeline__path": "../elsewhere"},
        {"timeline__history__path": "s3://elsewhere"},
        {"table__timeline__timezone": "CET"},
        {"table__partial__update__mode": "KEEP_VALUES"},
        {"table__cdc__supplemental__logging__mode": "ALL"},
        {"record__merge__mode": "CUSTOM"},
        {"record__merge__strategy__id": PAYLOAD_STRATEGY_ID},
    ],
)
def test_broken_and_contradictory_properties_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidTableError):
        config(**changes)


def test_a_foreign_table_format_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="iceberg"):
        config(table__format="iceberg")
    assert config(table__format="native").table_format == "native"


def test_layout_1_has_its_folders_elsewhere() -> None:
    changes: dict[str, Any] = {"table__version": "6", "record__merge__mode": None}
    assert config(**changes).find_timeline_folder() == ".hoodie"
    assert config(**changes).find_history_folder() == ".hoodie/archived"
    assert config(**changes, archivelog__folder="history").find_history_folder() == ".hoodie/history"
    # From version 8 on that key is a leftover.
    assert config(archivelog__folder="archived").find_history_folder() == ".hoodie/timeline/history"


def test_ordering_fields_have_two_names_and_no_say_in_commit_time_ordering() -> None:
    assert config(table__ordering__fields="a,, b ").ordering_fields == ("a", "b")
    assert config(table__precombine__field="ts").ordering_fields == ("ts",)
    assert config(table__precombine__field="old", table__ordering__fields="new").ordering_fields == ("new",)
    by_commit = config(table__ordering__fields="ts", record__merge__mode="COMMIT_TIME_ORDERING")
    assert by_commit.ordering_fields == ("ts",)
    assert by_commit.merge_ordering_fields == ()
    assert config(table__ordering__fields="ts").merge_ordering_fields == ("ts",)


def test_partition_fields_lose_their_types() -> None:
    found = config(table__partition__fields="city:SIMPLE,day:timestamp,x")
    assert found.partition_fields == ("city", "day", "x")
    assert found.partition_field_types == ("SIMPLE", "TIMESTAMP", None)
    assert found.is_partitioned
    assert not config(table__partition__fields="").is_partitioned


@pytest.mark.parametrize(
    ("class_name", "kind", "expected"),
    [
        (None, "SIMPLE", "SIMPLE"),
        (None, "COMPLEX_AVRO", "COMPLEX"),
        (None, "NON_PARTITION_AVRO", "NON_PARTITION"),
        ("org.apache.hudi.keygen.TimestampBasedAvroKeyGenerator", None, "TIMESTAMP"),
        ("com.uber.hoodie.keygen.NonpartitionedKeyGenerator", None, "NON_PARTITION"),
        ("org.apache.hudi.keygen.GlobalAvroDeleteKeyGenerator", None, "GLOBAL_DELETE"),
        ("my.KeyGenerator", "SIMPLE", "my.KeyGenerator"),
        ("org.apache.hudi.keygen.ComplexKeyGenerator", "USER_PROVIDED", "COMPLEX"),
        (None, None, None),
    ],
)
def test_key_generators_are_named_by_type(class_name: str | None, kind: str | None, expected: str | None) -> None:
    found = config(table__keygenerator__class=class_name, table__keygenerator__type=kind)
    assert found.key_generator == expected


def test_timestamp_generator_settings_have_two_prefixes() -> None:
    found = config(
        **{
            "keygen__timebased__timestamp.type": "SCALAR",
            "deltastreamer__keygen__timebased__timestamp.type": "MIXED",
            "deltastreamer__keygen__timebased__timezone": "UTC",
        }
    )
    assert found.timestamp_keygen == {"timestamp.type": "SCALAR", "timezone": "UTC"}


def test_aliases_of_merge_keys() -> None:
    found = config(
        table__version="8",
        record__merge__mode="CUSTOM",
        compaction__record__merger__strategy="own",
        compaction__payload__class="com.uber.hoodie.X",
    )
    assert (found.merge_strategy_id, found.payload_class) == ("own", "org.apache.hudi.X")
    assert not found.is_payload_based
    legacy = config(table__legacy__payload__class="org.apache.hudi.common.model.AWSDmsAvroPayload")
    assert legacy.payload_class is None
    assert not legacy.is_payload_based


def test_partial_update_modes_exist_from_version_9_on() -> None:
    assert config(table__partial__update__mode="IGNORE_DEFAULTS").partial_update_mode == "IGNORE_DEFAULTS"
    assert config(table__version="8", table__partial__update__mode="IGNORE_DEFAULTS").partial_update_mode is None


def test_metadata_partitions_and_flags() -> None:
    found = config(table__metadata__partitions="column_stats,files", populate__meta__fields="FALSE")
    assert found.metadata_partitions == ("column_stats", "files")
    assert not found.populate_meta_fields


def test_every_reference_table_resolves_to_the_facts_known_about_it() -> None:
    seen = 0
    for file in all_meta_files():
        if file.name != "hoodie.properties" or file.folder != ".hoodie":
            continue
        found = TableConfig.from_bytes(file.data)
        seen += 1
        assert found.is_payload_based or found.payload_class is None or found.version < 9
        if file.is_metadata_table:
            assert (found.base_file_format, found.populate_meta_fields) == ("HFILE", False)
            assert found.is_payload_based
            continue
        case = load_case(file.case)
        facts = {
            "table_version": found.version,
            "table_type": found.type,
            "record_key": ",".join(found.record_key_fields),
            "ordering_fields": ",".join(found.ordering_fields),
            "partition_fields": ",".join(found.partition_fields),
            "partial_update_mode": found.partial_update_mode or "",
            # Version 6 has no key for the mode.
            "merge_mode": str(found.merge_mode) if found.version > 6 else "",
        }
        assert {key: case[key] or "" for key in facts} == facts, file
        if case["payload"] and found.version == 6 and found.is_payload_based:
            assert found.payload_class == case["payload"]
    assert seen > 30


@given(st.dictionaries(st.sampled_from(sorted({
    "hoodie.table.name", "hoodie.table.version", "hoodie.record.merge.mode", "hoodie.table.type",
    "hoodie.record.merge.strategy.id", "hoodie.compaction.payload.class", "hoodie.table.ordering.fields",
    "hoodie.table.partition.fields", "hoodie.timeline.path", "hoodie.table.checksum", "hoodie.table.keygenerator.type",
})), st.sampled_from(["6", "8", "9", "x", "", ":", "CUSTOM", "EVENT_TIME_ORDERING", "..", "a,b:C", PAYLOAD_STRATEGY_ID])
    | st.text(max_size=20)))  # fmt: skip
def test_any_properties_resolve_or_are_refused(properties: dict[str, str]) -> None:
    try:
        found = TableConfig.from_properties(properties)
    except HoodieError:
        return
    assert found.name == properties["hoodie.table.name"]
    assert len(found.partition_fields) == len(found.partition_field_types)
