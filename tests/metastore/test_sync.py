from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie_py import ConflictError, HoodieTable, InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.formats.config.table_config import PARTITION_EXTRACTOR, TableConfig
from hoodie_py.metastore.entry import LAST_COMPLETION, LAST_INSTANT, Column
from hoodie_py.metastore.sync import choose_extractor, normalize_location
from tests.metastore.fake_metastore import FakeMetastore
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import SCHEMA, Kind, row

PREFIX = "hoodie.datasource.hive_sync."


@pytest.fixture
def fake() -> FakeMetastore:
    return FakeMetastore()


def make_table(base: Path, *, version: int = 9, merge_on_read: bool = False, partitioned: bool = True) -> HoodieTable:
    table = HoodieTable.open(Kind(version, merge_on_read, partitioned).create(base))
    table.upsert([row(1), row(2)], QUICK)
    return table


@pytest.mark.parametrize("version", [9, 6])
def test_a_second_sync_writes_nothing(fake, tmp_path, version) -> None:
    table = make_table(tmp_path / "trips", version=version, merge_on_read=True)
    first = table.sync(fake, "lake")
    assert str(first) == (
        "lake.trips_ro is new: 2 partitions added. lake.trips_rt is new: 2 partitions added. "
        "lake.trips is new: 2 partitions added."
    )
    fake.written.clear()
    second = table.sync(fake, "lake")
    assert (second.has_changed, fake.written) == (False, [])
    assert str(second).endswith("lake.trips is up to date.")
    assert fake.asked == []  # there was no commit, so no partition was asked for


def test_entries_are_those_of_javas_tools(fake, tmp_path) -> None:
    table = make_table(tmp_path / "trips", merge_on_read=True)
    table.sync(fake, "lake")
    shown = {
        each.name: (each.input_format.rpartition(".")[2], each.is_read_optimized) for each in fake.entries.values()
    }
    assert shown == {
        "trips_ro": ("HoodieParquetInputFormat", True),
        "trips_rt": ("HoodieParquetRealtimeInputFormat", False),
        "trips": ("HoodieParquetRealtimeInputFormat", False),
    }
    entry = fake.entries["lake.trips"]
    assert entry.serde_parameters == {
        "path": str(tmp_path / "trips"), "hoodie.query.as.ro.table": "false", "serialization.format": "1",
    }  # fmt: skip
    last = table.timeline.select_writes().last
    assert (entry.parameters[LAST_INSTANT], entry.parameters[LAST_COMPLETION]) == (
        last.request_time,
        last.completion_time,
    )
    assert [each.name for each in entry.columns][-3:] == ["id", "ts", "name"]
    assert "hudi_writer_version" not in entry.parameters
    assert entry.partition_columns == (Column("part", "string"),)


def test_a_formatted_partition_column_is_a_string(fake, tmp_path) -> None:
    schema = pa.schema([("id", pa.string()), ("at", pa.int64())])
    properties = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy/MM/dd"}
    table = HoodieTable.create(
        tmp_path / "t", schema, record_key="id", partition_by="at", key_generator="TIMESTAMP",
        properties={f"hoodie.keygen.timebased.{key}": value for key, value in properties.items()},
    )  # fmt: skip
    table.upsert([{"id": "a", "at": 1_767_225_600_000}], QUICK)
    table.sync(fake)
    assert fake.entries["default.t"].partition_columns == (Column("at", "string"),)
    assert list(fake.partitions["default.t"]) == [("2026/01/01",)]


def test_partitions_follow(fake, tmp_path) -> None:
    table = make_table(tmp_path / "t")
    table.sync(fake)
    table.upsert([{**row(7), "part": "p9"}], QUICK)
    fake.asked.clear()
    assert table.sync(fake).entries[0].added == ("p9",)
    assert fake.asked == [[("p9",)]]  # only what the commit wrote was asked for
    table.delete_partition("p0", options=QUICK)
    done = table.sync(fake).entries[0]
    assert (done.added, done.dropped) == ((), ("p0",))
    assert sorted(fake.partitions["default.t"]) == [("p1",), ("p9",)]


def test_a_partition_that_a_restore_undid_is_dropped(fake, tmp_path) -> None:
    table = make_table(tmp_path / "t")
    saved = table.savepoint(options=QUICK)
    table.upsert([{**row(7), "part": "p9"}], QUICK)
    table.sync(fake)
    table.restore(saved.instant, options=QUICK)
    assert table.sync(fake).entries[0].dropped == ("p9",)


def test_a_commit_that_completed_out_of_order_counts(fake, tmp_path) -> None:
    table = make_table(tmp_path / "t")
    table.upsert([{**row(7), "part": "p9"}], QUICK)
    table.sync(fake)
    entry = fake.entries["default.t"]
    first = table.timeline.select_writes().instants[0]
    del fake.partitions["default.t"]["p9",]  # as if the sync had known only of the commit that completed before
    parameters = {**entry.parameters, LAST_COMPLETION: first.completion_time}
    fake.entries["default.t"] = replace(entry, parameters=parameters)
    assert table.sync(fake).entries[0].added == ("p9",)


def test_a_schema_that_grew_is_updated(fake, tmp_path) -> None:
    table = make_table(tmp_path / "t")
    table.sync(fake)
    wider = SCHEMA.append(pa.field("extra", pa.int32()))
    table.upsert(pa.Table.from_pylist([{**row(1, 5), "extra": 3}], wider), QUICK)
    done = table.sync(fake).entries[0]
    assert done.columns
    assert "spark.sql.sources.schema.part.0" in done.properties
    assert fake.entries["default.t"].columns[-1] == Column("extra", "int")


def test_a_column_that_cannot_follow_is_an_error(fake, tmp_path) -> None:
    table = make_table(tmp_path / "t")
    table.sync(fake)
    entry = fake.entries["default.t"]
    columns = tuple(Column("ts", "string") if each.name == "ts" else each for each in entry.columns)
    fake.entries["default.t"] = replace(entry, columns=columns)
    fake.written.clear()
    with pytest.raises(InvalidQueryError, match="column ts is string and cannot become bigint"):
        table.sync(fake)
    assert fake.written == []


def test_other_partition_columns_are_an_error(fake, tmp_path) -> None:
    table = make_table(tmp_path / "t")
    table.sync(fake)
    fake.entries["default.t"] = replace(fake.entries["default.t"], partition_columns=())
    with pytest.raises(InvalidQueryError, match="other partition columns"):
        table.sync(fake)


def test_the_table_of_another_is_left_alone(fake, tmp_path) -> None:
    make_table(tmp_path / "a" / "t").sync(fake)
    other = make_table(tmp_path / "b" / "t")
    with pytest.raises(ConflictError, match="at another place"):
        other.sync(fake)
    fake.entries["default.t"] = replace(fake.entries["default.t"], parameters={}, input_format="org.apache.Text")
    with pytest.raises(ConflictError, match="no Hudi table"):
        other.sync(fake)
    assert other.sync(fake, name="t2").entries[0].is_new


def test_a_dry_run_writes_nothing(fake, tmp_path) -> None:
    table = make_table(tmp_path / "t")
    told = table.sync(fake, "lake", dry_run=True)
    assert (str(told), fake.written) == ("Dry run: lake.t is new: 2 partitions added.", [])


def test_a_table_without_commits_is_refused(fake, tmp_path) -> None:
    table = HoodieTable.open(Kind(9, False).create(tmp_path / "t"))
    with pytest.raises(InvalidTableError, match="no commits yet"):
        table.sync(fake)
    assert fake.written == []


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"table.strategy": "RO"}, ["t"]),
        ({"table.strategy": "rt"}, ["t"]),
        ({"skip_ro_suffix": "true"}, ["t", "t_rt"]),
        ({"table": "Other", "database": "D"}, ["other_ro", "other_rt", "other"]),
    ],
)
def test_names_of_entries(fake, tmp_path, options, names) -> None:
    table = make_table(tmp_path / "t", merge_on_read=True)
    table.sync(fake, options={f"{PREFIX}{key}": value for key, value in options.items()})
    assert [each.name for each in fake.entries.values()] == names


def test_what_options_add_and_leave_out(fake, tmp_path) -> None:
    options = {
        "omit_metadata_fields": True, "support_timestamp": True, "sync_as_datasource": False,
        "table_properties": "owner=me\nteam=data", "serde_properties": "a=b",
    }  # fmt: skip
    schema = pa.schema([("id", pa.string()), ("at", pa.timestamp("us", "UTC"))])
    table = HoodieTable.create(tmp_path / "t", schema, record_key="id")
    table.upsert([{"id": "a", "at": datetime(2026, 1, 1, tzinfo=UTC)}], QUICK)
    table.sync(fake, options={f"{PREFIX}{key}": value for key, value in options.items()})
    entry = fake.entries["default.t"]
    assert entry.columns == (Column("id", "string"), Column("at", "timestamp"))
    assert set(entry.parameters) == {"owner", "team", LAST_INSTANT, LAST_COMPLETION}
    assert entry.serde_parameters == {"a": "b", "serialization.format": "1"}


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"table": "my-table"}, InvalidQueryError, "cannot have the name 'my-table'"),
        ({"table.strategy": "SOME"}, InvalidQueryError, "table.strategy cannot be 'SOME'"),
        ({"table_properties": "novalue"}, InvalidQueryError, "a line without an equals sign"),
        ({"partition_extractor_class": "com.example.Mine"}, UnsupportedFeatureError, "only Java can run"),
        ({"partition_fields": "part,name"}, InvalidQueryError, "gives 1 values, but there are 2"),
        ({"auto_create_database": "false"}, InvalidQueryError, "has no database default"),
    ],
)
def test_wrong_options(fake, tmp_path, options, error, said) -> None:
    table = make_table(tmp_path / "t")
    with pytest.raises(error, match=said):
        table.sync(fake, options={f"{PREFIX}{key}": value for key, value in options.items()})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("file:/lake/t", "/lake/t/", True),
        ("file:///lake/t", "/lake/t", True),
        ("s3a://b/t", "s3://b/t", True),
        ("s3://b/t", "s3://c/t", False),
    ],
)
def test_places_that_are_the_same(one, other, same) -> None:
    assert (normalize_location(one) == normalize_location(other)) is same


CONFIG = TableConfig("t", 9, MergeMode.COMMIT_TIME_ORDERING, None, None)
JAVA = "org.apache.hudi.hive."


@pytest.mark.parametrize(
    ("name", "path", "values"),
    [
        ("MultiPartKeysValueExtractor", "city=sf/2026", ("sf", "2026")),
        ("MultiPartKeysValueExtractor", "", ()),
        ("HiveStylePartitionValueExtractor", "city=sf", ("sf",)),
        ("SinglePartPartitionValueExtractor", "a/b=c", ("a/b=c",)),
        ("SlashEncodedDayPartitionValueExtractor", "2026/1/02", ("2026-01-02",)),
        ("SlashEncodedDayPartitionValueExtractor", "year=2026/month=01/day=02", ("2026-01-02",)),
        ("SlashEncodedHourPartitionValueExtractor", "2026/01/02/3", ("2026-01-02-03",)),
        ("NonPartitionedExtractor", "any", ()),
    ],
)
def test_values_of_paths(name, path, values) -> None:
    assert choose_extractor(CONFIG, ("a",), JAVA + name)(path) == values


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("MultiPartKeysValueExtractor", "a=b=c"),
        ("HiveStylePartitionValueExtractor", "sf"),
        ("SlashEncodedDayPartitionValueExtractor", "2026-01-02"),
    ],
)
def test_paths_of_another_form(name, path) -> None:
    with pytest.raises(InvalidQueryError, match="not of the form"):
        choose_extractor(CONFIG, ("a",), JAVA + name)(path)


@pytest.mark.parametrize(
    ("config", "fields", "path", "values"),
    [
        (CONFIG, ("a",), "x/y", ("x/y",)),
        (replace(CONFIG, hive_style_partitioning=True), ("a",), "a=x", ("x",)),
        (replace(CONFIG, slash_separated_date_partitioning=True), ("a",), "2026/01/02", ("2026-01-02",)),
        (CONFIG, ("a", "b"), "x/b=y", ("x", "y")),
        (CONFIG, (), "", ()),
        (
            replace(CONFIG, properties={PARTITION_EXTRACTOR: f"{JAVA}MultiPartKeysValueExtractor"}),
            ("a",), "x", ("x",),
        ),
    ],
)  # fmt: skip
def test_the_table_tells_the_class(config, fields, path, values) -> None:
    assert choose_extractor(config, fields, None)(path) == values


def test_classes_of_users_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"com\.example\.Mine"):
        choose_extractor(CONFIG, ("a",), "com.example.Mine")
