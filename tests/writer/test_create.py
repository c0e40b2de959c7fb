"""Creation of tables, and the properties of new tables: as Java Hudi makes them, and refusals."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import HoodieTable, RecordMerger
from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.names import META_FIELDS
from hoodie_py.testing import local_s3
from hoodie_py.writer.create import NewTable
from tests.corpus import unpack

_COLUMNS = pa.schema([
    ("id", pa.string()), ("qty", pa.int32()), ("ts", pa.int64()), ("part", pa.string()), ("grp", pa.string()),
    ("pi", pa.int32()), ("pd", pa.date32()), ("day", pa.int64()), ("x", pa.float64()), ("raw", pa.binary()),
    ("st", pa.struct([("a", pa.string()), ("n", pa.int64())])),
])  # fmt: skip
_OURS = {"hoodie.table.create.schema", "hoodie.table.timeline.timezone"}
_TIMEBASED = "hoodie.keygen.timebased"
_STRATEGY = "6b1f0c52-3a5e-4d0b-9d57-0c4f7a1e0003"


def _new(**changes: Any) -> NewTable:
    arguments: dict[str, Any] = {
        "name": "t", "schema": _COLUMNS, "record_key": ("id",), "ordering": ("ts",), "partition_by": ("part",),
    }  # fmt: skip
    return NewTable(**arguments | changes)


_LIKE_JAVA: Mapping[str, dict[str, Any]] = {
    "basic_mor_v9_part": {},
    "basic_cow_v9_part": {"table_type": "cow"},
    "basic_mor_v8_nonpart": {"version": 8, "partition_by": ()},
    "basic_mor_v6_part": {"version": 6, "table_type": "MOR"},
    "basic_cow_v6_nonpart": {"version": 6, "table_type": "COPY_ON_WRITE", "partition_by": ()},
    "commit_time_no_ordering_mor_v9": {"ordering": ()},
    "commit_time_deletes_mor_v8": {"version": 8, "merge_mode": "COMMIT_TIME_ORDERING"},
    "commit_time_updates_mor_v6": {"version": 6, "merge_mode": "COMMIT_TIME_ORDERING"},
    "custom_accumulate_updates_mor_v9": {"merge_strategy_id": _STRATEGY},
    "custom_accumulate_compaction_mor_v8": {"merge_strategy_id": _STRATEGY, "version": 8},
    "two_ordering_fields_mor_v9": {"ordering": ("ts", "qty")},
    "keys_two_fields_mor_v9": {"record_key": ("id", "qty")},
    "keys_two_fields_nonpart_mor_v6": {"record_key": ("id", "qty"), "partition_by": (), "version": 6},
    "keys_two_fields_two_parts_cow_v6": {
        "record_key": ("id", "qty"), "partition_by": ("part", "grp"), "version": 6, "table_type": "COW",
    },
    "part_types_int_date_mor_v9": {
        "partition_by": ("pi", "pd"), "properties": {"hoodie.datasource.write.hive_style_partitioning": "true"},
    },
    "urlenc_partitions_mor_v9": {"properties": {"hoodie.datasource.write.partitionpath.urlencode": "true"}},
    "payload_partial_update_mor_v9": {
        "properties": {
            "hoodie.compaction.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload",
        },
    },
    "payload_event_time_mor_v9": {
        "properties": {
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.EventTimeAvroPayload",
        },
    },
    "ts_keygen_epochmillis_cow_v9": {
        "partition_by": ("day",), "table_type": "COW", "key_generator": "timestamp",
        "properties": {
            f"{_TIMEBASED}.timestamp.type": "EPOCHMILLISECONDS", f"{_TIMEBASED}.output.dateformat": "yyyy/MM/dd",
            f"{_TIMEBASED}.timezone": "UTC",
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("name", _LIKE_JAVA)
def test_java_stores_the_same(name: str, tmp_path: Path) -> None:
    theirs = dict(HoodieTable.open(unpack(name, tmp_path)).config.properties)
    ours = _new(**_LIKE_JAVA[name], name=name).make_properties()
    differ = {key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)}
    assert differ == _OURS


def test_a_custom_merger_counts_on_every_version() -> None:
    for version in (6, 8, 9):
        config = TableConfig.from_properties(_new(version=version, merge_strategy_id=_STRATEGY).make_properties())
        assert (config.merge_mode, config.merge_strategy_id) == (MergeMode.CUSTOM, _STRATEGY)
        assert not config.is_payload_based


def test_types_of_partition_fields_ask_for_a_custom_key_generator() -> None:
    properties = {f"{_TIMEBASED}.timestamp.type": "EPOCHMILLISECONDS", f"{_TIMEBASED}.output.dateformat": "yyyy"}
    stored = _new(partition_by=("part:SIMPLE", "day:timestamp"), properties=properties).make_properties()
    config = TableConfig.from_properties(stored)
    assert config.key_generator == "CUSTOM"
    assert (config.partition_fields, config.partition_field_types) == (("part", "day"), ("SIMPLE", "TIMESTAMP"))


def test_nested_fields_may_serve() -> None:
    config = TableConfig.from_properties(
        _new(record_key=("st.a",), ordering=("st.n",), partition_by=()).make_properties()
    )
    assert (config.record_key_fields, config.ordering_fields) == (("st.a",), ("st.n",))


def test_the_meta_columns_of_a_scan_are_left_out() -> None:
    meta = [(name, pa.string()) for name in META_FIELDS]
    with_meta = pa.schema([*meta, *_COLUMNS, ("_hoodie_operation", pa.string())])
    assert _new(schema=with_meta).make_properties() == _new().make_properties()


def test_old_readers_may_be_told_the_ordering_field() -> None:
    told = {"hoodie.table.precombine.field": "ts"}
    assert _new(version=6, properties=told).make_properties().items() >= told.items()
    for wrong in ({"properties": told}, {"version": 6, "properties": told, "ordering": ("qty",)}):
        with pytest.raises(InvalidQueryError, match="argument of its own"):
            _new(**wrong).make_properties()


_WRONG: list[tuple[dict[str, Any], str]] = [
    ({"record_key": ("nope",)}, "record_key names 'nope'"),
    ({"ordering": ("nope",)}, "ordering names 'nope'"),
    ({"partition_by": ("nope",)}, "partition_by names 'nope'"),
    ({"record_key": ("id", "id")}, "more than once"),
    ({"name": ""}, "cannot be a table's name"),
    ({"name": "a/b"}, "cannot be a table's name"),
    ({"table_type": "HEAP"}, "no table type"),
    ({"merge_mode": "NEWEST"}, "no merge mode"),
    ({"merge_mode": "CUSTOM"}, "needs a merge strategy id"),
    ({"merge_mode": "EVENT_TIME_ORDERING", "ordering": ()}, "needs ordering fields"),
    ({"merge_mode": "COMMIT_TIME_ORDERING", "merge_strategy_id": _STRATEGY}, "contradicts"),
    ({"merge_mode": "COMMIT_TIME_ORDERING", "merge_strategy_id": _STRATEGY, "version": 6}, "contradicts"),
    ({"key_generator": "NON_PARTITION"}, "contradicts the partition fields"),
    ({"key_generator": "SIMPLE", "record_key": ("id", "qty")}, "one key field"),
    ({"key_generator": "TIMESTAMP", "partition_by": ("day",)}, "timestamp.type"),
    ({"key_generator": "SIMPLE", "partition_by": ("part:SIMPLE",)}, "names a type"),
    ({"partition_by": ("part:SIMPLE", "grp")}, "no partition field of a custom"),
    ({"partition_by": ("part:YEARLY",)}, "no partition field of a custom"),
    ({"properties": {"hoodie.table.recordkey.fields": "qty"}}, "an argument of its own"),
    ({"properties": {"hoodie.table.checksum": "1"}}, "cannot be chosen"),
    ({"properties": {"hoodie.table.timeline.timezone": "MARS"}}, "do not fit"),
]


@pytest.mark.parametrize(("changes", "message"), _WRONG)
def test_wrong_arguments_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidQueryError, match=message):
        _new(**changes).make_properties()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 5}, "version 5"),
        ({"record_key": (), "properties": {"hoodie.populate.meta.fields": "false"}}, "without record key"),
        ({"record_key": ("x",)}, "type double"),
        ({"record_key": ("raw",)}, "type binary"),
        ({"partition_by": ("x",)}, "type double"),
        ({"ordering": ("st",)}, "type struct"),
        ({"key_generator": "org.acme.Keys"}, "key generator"),
        ({"version": 6, "partition_by": ("part:SIMPLE",)}, "table version 6"),
        ({"properties": {"hoodie.datasource.write.drop.partition.columns": "true"}}, "leave out partition columns"),
    ],
)
def test_what_is_not_handled_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=message):
        _new(**changes).make_properties()


SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("price", pa.float64())])


class Oldest(RecordMerger):
    strategy_id = "0b6d7c1e-6d1c-4f2e-9a57-3c1d5e8f0a42"

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return older


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_a_new_table_is_empty_and_has_its_columns(version: int, table_type: str, tmp_path: Path) -> None:
    made = HoodieTable.create(
        tmp_path / "trips", SCHEMA, record_key="id", ordering="ts", partition_by=["city"], table_type=table_type,
        table_version=version,
    )  # fmt: skip
    for table in (made, HoodieTable.open(tmp_path / "trips")):
        assert table.scan().to_arrow().select(SCHEMA.names).schema.equals(SCHEMA)
        assert table.scan().count() == 0
        assert (table.config.name, table.config.version, table.config.table_type) == ("trips", version, table_type)
        assert (table.file_slices(), list(table.timeline)) == ([], [])


def test_names_may_be_given_in_one_text(tmp_path: Path) -> None:
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id, city", ordering="ts,price", name="other")
    assert table.config.record_key_fields == ("id", "city")
    assert table.config.ordering_fields == ("ts", "price")
    assert table.config.name == "other"


def test_a_merger_names_its_strategy(tmp_path: Path) -> None:
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts", merger=Oldest)
    assert table.config.merge_strategy_id == Oldest.strategy_id
    with pytest.raises(InvalidQueryError, match="different mergers"):
        HoodieTable.create(tmp_path / "u", SCHEMA, record_key="id", merger=Oldest, merge_strategy_id="another")


def test_properties_of_any_type_are_stored_as_text(tmp_path: Path) -> None:
    properties: dict[str, Any] = {"hoodie.datasource.write.hive_style_partitioning": True}
    table = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", partition_by="city", properties=properties)
    assert table.config.hive_style_partitioning


def test_a_table_is_not_made_twice(tmp_path: Path) -> None:
    made = HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", ordering="ts")
    with pytest.raises(ConflictError, match="There is a Hudi table already"):
        HoodieTable.create(tmp_path / "t", SCHEMA, record_key="city")
    assert HoodieTable.open(tmp_path / "t").config == made.config


def test_wrong_arguments_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(InvalidQueryError):
        HoodieTable.create(tmp_path / "t", SCHEMA, record_key="nope")
    with pytest.raises(InvalidQueryError, match="must be an Arrow schema"):
        HoodieTable.create(tmp_path / "t", {"id": "string"}, record_key="id")
    assert not (tmp_path / "t").exists()


def test_of_many_at_once_one_makes_the_table(tmp_path: Path) -> None:
    outcomes: list[str] = []
    start = threading.Barrier(8)

    def make(number: int) -> None:
        start.wait()
        try:
            HoodieTable.create(tmp_path / "t", SCHEMA, record_key="id", name=f"maker{number}")
        except ConflictError:
            outcomes.append("")
        else:
            outcomes.append(f"maker{number}")

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(outcomes)[:-1] == [""] * 7
    assert HoodieTable.open(tmp_path / "t").config.name == max(outcomes)


def test_a_table_on_an_object_store() -> None:
    with local_s3() as s3:
        uri = f"{s3.uri}/lake/trips"
        options = s3.storage_options
        made = HoodieTable.create(uri, SCHEMA, record_key="id", ordering="ts", storage_options=options)
        assert HoodieTable.open(uri, options).config == made.config
        assert made.scan().count() == 0
        with pytest.raises(ConflictError):
            HoodieTable.create(uri, SCHEMA, record_key="id", storage_options=options)
