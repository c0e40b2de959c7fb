"""Tests of record keys and partition paths: those that Java stored, the rules one by one, and refusals."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError, InvalidTableError, MergeError, UnsupportedFeatureError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.options.write import COMPLEX_KEY_VALUE_ONLY
from hoodie_py.reader.file_group import FileGroupReader
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.read_info import ReadInfo
from hoodie_py.writer.keygen.generator import KeyGenerator, format_java_timestamps
from hoodie_py.writer.output_schema import load_output_schema
from tests.corpus import corpus_names, unpack


def _config(
    keys: str = "id", partitions: str = "", generator: str = "SIMPLE", version: int = 9, **properties: str
) -> TableConfig:
    named = {name.replace("__", "."): value for name, value in properties.items()}
    return TableConfig.from_properties(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": str(version),
            "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
            "hoodie.table.recordkey.fields": keys,
            "hoodie.table.partition.fields": partitions,
            "hoodie.table.keygenerator.type": generator,
            **named,
        }
    )


def _keys(rows: dict[str, Any], keys: str, generator: str = "SIMPLE", **more: Any) -> list[Any]:
    return list(
        KeyGenerator.from_config(_config(keys, generator=generator, **more)).make_keys(pa.table(rows)).to_pylist()
    )


def _paths(rows: dict[str, Any], partitions: str, generator: str = "SIMPLE", **more: Any) -> list[Any]:
    generated = KeyGenerator.from_config(_config("id", partitions, generator, **more))
    return list(generated.make_partition_paths(pa.table(rows)).to_pylist())


_NOT_FROM_COLUMNS = {
    "bootstrap_metadata_only_cow_v9": "sources lack the partition column",
    "bootstrap_metadata_only_mor_v9": "sources lack the partition column",
    "flink_part_timestamp": "the table does not say how its generator spells times",
    "nometa_cow_v9": "keys are not stored",
    "nometa_mor_v6": "keys are not stored",
    "partition_equals_sign_mor_v6": "a value with = is not written",
}
_VALUE_ONLY = {COMPLEX_KEY_VALUE_ONLY: "false"}


@pytest.mark.filterwarnings("ignore:Skipped a corrupt log block")
@pytest.mark.parametrize("name", [name for name in corpus_names() if name not in _NOT_FROM_COLUMNS])
def test_java_stored_the_same(name: str, tmp_path: Path) -> None:
    table = HoodieTable.open(unpack(name, tmp_path))
    columns = load_output_schema(table._snapshot).arrow
    generator = KeyGenerator.from_config(table.config, _VALUE_ONLY)
    for file_slice in table.file_slices():
        rows = _stored_rows(file_slice, replace(table.read_info(file_slice), schema=columns))
        assert generator.make_keys(rows).to_pylist() == rows.column("_hoodie_record_key").to_pylist()
        if not table.config.drop_partition_columns:
            assert generator.make_partition_paths(rows).to_pylist() == rows.column("_hoodie_partition_path").to_pylist()


def _stored_rows(file_slice: FileSlice, info: ReadInfo) -> pa.Table:
    """Rows of a slice with the values that files have; of the base file alone where logs cannot be merged here."""
    plain = replace(info, constants={}, fallbacks={}, defaults={})
    try:
        batches = list(FileGroupReader(file_slice, plain).to_batches())
    except (MergeError, UnsupportedFeatureError):
        base = replace(file_slice, log_files=())
        batches = list(FileGroupReader(base, plain).to_batches()) if base.base_file else []
    return pa.Table.from_batches(batches) if batches else info.schema.empty_table()


def test_one_field_gives_its_text() -> None:
    assert _keys({"id": ["a", "b:c,d", "é"]}, "id") == ["a", "b:c,d", "é"]
    assert _keys({"id": [1, -20]}, "id") == ["1", "-20"]
    assert _keys({"id": [True, False]}, "id") == ["true", "false"]
    assert _keys({"id": [dt.date(2026, 1, 31)]}, "id") == ["2026-01-31"]
    assert _keys({"id": pa.array([Decimal("1.5"), Decimal("-0.05")], pa.decimal128(9, 3))}, "id") == ["1.500", "-0.050"]
    assert _keys({"id": pa.array([1_700_000_000_000_001], pa.timestamp("us", "UTC"))}, "id") == ["1700000000000001"]


def test_nested_fields_give_keys_too() -> None:
    assert _keys({"st": [{"a": "x"}, {"a": "y"}]}, "st.a") == ["x", "y"]


def test_several_fields_are_named() -> None:
    rows = {"a": ["x", "", None], "b": pa.array([1, 2, 3])}
    assert _keys(rows, "a,b", "COMPLEX") == ["a:x,b:1", "a:__empty__,b:2", "a:__null__,b:3"]
    assert _keys(rows, "a,b", "NON_PARTITION") == ["a:x,b:1", "a:__empty__,b:2", "a:__null__,b:3"]


def test_a_complex_key_of_one_field_is_named_from_version_9_on() -> None:
    assert _keys({"id": ["x"]}, "id", "COMPLEX") == ["id:x"]
    config = _config("id", "p", "COMPLEX", 8)
    with pytest.raises(InvalidQueryError, match="encode differently"):
        KeyGenerator.from_config(config)
    for said, want in (("false", "id:x"), ("true", "x")):
        told = KeyGenerator.from_config(config, {COMPLEX_KEY_VALUE_ONLY: said})
        assert told.make_keys(pa.table({"id": ["x"]})).to_pylist() == [want]


@pytest.mark.parametrize("generator", ["SIMPLE", "COMPLEX", "NON_PARTITION"])
def test_rows_without_a_key_are_named(generator: str) -> None:
    with pytest.raises(InvalidQueryError, match="null or empty") as raised:
        _keys({"id": pa.chunked_array([["a", None], ["", "b"]])}, "id", generator)
    assert (raised.value.where["rows"], raised.value.where["bad_rows"]) == ([1, 2], 2)
    with pytest.raises(InvalidQueryError, match="null or empty"):
        _keys({"a": ["x", None], "b": ["y", ""]}, "a,b", "COMPLEX")


def test_a_missing_field_is_named() -> None:
    with pytest.raises(InvalidQueryError, match="record key field 'id' is not in the rows"):
        _keys({"other": ["a"]}, "id")
    with pytest.raises(InvalidQueryError, match="partition field 'p' is not in the rows"):
        _paths({"id": ["a"]}, "p")


def test_null_and_empty_values_go_to_the_default_partition() -> None:
    default = "__HIVE_DEFAULT_PARTITION__"
    assert _paths({"p": ["sf", None, ""]}, "p") == ["sf", default, default]
    hive = {"hoodie__datasource__write__hive_style_partitioning": "true"}
    assert _paths({"p": ["sf", None], "q": [1, 2]}, "p,q", "COMPLEX", **hive) == ["p=sf/q=1", f"p={default}/q=2"]


def test_values_are_encoded_where_the_table_says_so() -> None:
    encoded = {"hoodie__datasource__write__partitionpath__urlencode": "true"}
    assert _paths({"p": ["a/b:c", "ü %"]}, "p", **encoded) == ["a%2Fb%3Ac", "ü %25"]


def test_a_slash_makes_folders_where_it_is_not_encoded() -> None:
    assert _paths({"p": ["a/b", "2026-01-31"]}, "p") == ["a/b", "2026-01-31"]
    slashed = {"hoodie__datasource__write__slash__separated__date__partitioning": "true"}
    assert _paths({"p": ["2026-01-31", "-5"]}, "p", **slashed) == ["2026/01/31", "-5"]


@pytest.mark.parametrize(
    "value", ["/a", "a/", "a//b", "..", "a/../b", ".", "a\\..\\b", "a:b", "a\0", ".hoodie", ".hoodie/x"]
)
def test_values_that_cannot_be_a_path_are_named(value: str) -> None:
    with pytest.raises(InvalidQueryError, match="cannot be part of a partition path") as raised:
        _paths({"p": ["sf", value]}, "p")
    assert raised.value.where["rows"] == [1]


def test_an_equals_sign_is_a_value_where_the_path_says_what_it_is() -> None:
    with pytest.raises(InvalidQueryError, match="'=' in a table whose paths are not in hive style") as raised:
        _paths({"p": ["sf", "a=b"]}, "p")
    assert raised.value.where["rows"] == [1]
    hive = {"hoodie__datasource__write__hive_style_partitioning": "true"}
    assert _paths({"p": ["a=b"]}, "p", **hive) == ["p=a=b"]
    encoded = {"hoodie__datasource__write__partitionpath__urlencode": "true"}
    assert _paths({"p": ["a=b"]}, "p", **encoded) == ["a%3Db"]


def test_settings_of_times_that_the_table_lacks_are_options() -> None:
    config = _config("id", "t", "TIMESTAMP")
    with pytest.raises(InvalidTableError, match="does not say how") as raised:
        KeyGenerator.from_config(config)
    assert "hoodie.keygen.timebased.timestamp.type" in str(raised.value)
    options = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyyMMdd",
    }
    generator = KeyGenerator.from_config(config, options)
    assert generator.make_partition_paths(pa.table({"t": [1_700_000_000_000]})).to_pylist() == ["20231114"]
    told = _config("id", "t", "TIMESTAMP", hoodie__keygen__timebased__timestamp__type="UNIX_TIMESTAMP")
    stored = KeyGenerator.from_config(told, options)  # what the table says counts
    assert stored.make_partition_paths(pa.table({"t": [1_700_000_000]})).to_pylist() == ["20231114"]


def test_a_table_without_partitions_has_one_path() -> None:
    assert _paths({"id": ["a", "b"]}, "", "NON_PARTITION") == ["", ""]


def test_a_custom_generator_mixes_values_and_times() -> None:
    timed = {
        "hoodie__keygen__timebased__timestamp__type": "EPOCHMILLISECONDS",
        "hoodie__keygen__timebased__output__dateformat": "yyyy/MM/dd",
    }
    rows = {"p": ["sf", None], "t": [1_700_000_000_000, None]}
    assert _paths(rows, "p:simple,t:timestamp", "CUSTOM", **timed) == [
        "sf/2023/11/14", "__HIVE_DEFAULT_PARTITION__/1970/01/01",
    ]  # fmt: skip
    with pytest.raises(UnsupportedFeatureError, match="does not record"):
        KeyGenerator.from_config(_config("id", "p,t", "CUSTOM", 6))


TYPES = "hoodie.datasource.write.partitionpath.field"


@pytest.mark.parametrize("version", [6, 8, 9])
def test_types_that_the_table_lacks_are_taken_from_the_option(version: int) -> None:
    options = {
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        TYPES: "t:timestamp, p:SIMPLE",
    }
    made = KeyGenerator.from_config(_config("id", "t,p", "CUSTOM", version), options)
    rows = pa.table({"t": [1_700_000_000_000], "p": ["sf"]})
    assert made.make_partition_paths(rows).to_pylist() == ["2023/11/14/sf"]
    told = _config("id", "t:TIMESTAMP,p:SIMPLE", "CUSTOM", version)
    assert KeyGenerator.from_config(told, options).make_partition_paths(rows).to_pylist() == ["2023/11/14/sf"]


@pytest.mark.parametrize(
    ("fields", "given", "problem"),
    [
        ("t,p", "p:SIMPLE,t:TIMESTAMP", "the table's fields are t,p"),
        ("t,p", "t:TIMESTAMP", "the table's fields are t,p"),
        ("t,p", "t:TIMESTAMP,p", "each field needs a type"),
        ("t,p", "t:DATE,p:SIMPLE", "each field needs a type"),
        ("t:SIMPLE,p:SIMPLE", "t:TIMESTAMP,p:SIMPLE", "the table has other types"),
    ],
)
def test_types_that_do_not_fit_the_table_are_refused(fields: str, given: str, problem: str) -> None:
    with pytest.raises(InvalidQueryError, match=problem):
        KeyGenerator.from_config(_config("id", fields, "CUSTOM", 6), {TYPES: given})


@pytest.mark.parametrize(
    "config",
    [
        _config("", generator="AUTO_RECORD"),
        _config("id", generator="GLOBAL_DELETE"),
        _config("id", hoodie__table__keygenerator__class="org.acme.Keys"),
    ],
)
def test_other_generators_are_refused(config: TableConfig) -> None:
    with pytest.raises(UnsupportedFeatureError, match="Writing"):
        KeyGenerator.from_config(config)


def test_two_key_fields_contradict_a_simple_generator() -> None:
    with pytest.raises(InvalidTableError, match="takes one key field"):
        KeyGenerator.from_config(_config("a,b"))


@pytest.mark.parametrize("values", [pa.array([1.5]), pa.array([b"x"]), pa.array([[1]])])
def test_types_without_a_text_are_refused(values: pa.Array) -> None:
    with pytest.raises(UnsupportedFeatureError, match="type"):
        _keys({"id": values}, "id")


@given(st.lists(st.tuples(st.one_of(st.none(), st.text(max_size=3)), st.one_of(st.none(), st.integers(0, 5)))))
def test_named_keys_are_what_they_are_row_by_row(rows: list[tuple[str | None, int | None]]) -> None:
    rows = [row for row in rows if row[0] or row[1] is not None]
    columns = {
        "a": pa.array([row[0] for row in rows], pa.string()),
        "b": pa.array([row[1] for row in rows], pa.int32()),
    }

    def text(value: object) -> str:
        return "__null__" if value is None else str(value) or "__empty__"

    assert _keys(columns, "a,b", "COMPLEX") == [f"a:{text(a)},b:{text(b)}" for a, b in rows]


# Those that Java Hudi 1.2.0 wrote, in a JVM whose zone is UTC.
_TIMES = {
    dt.datetime(2020, 1, 2, 3, 4, 5, 678901): "2020-01-02 03:04:05.678",
    dt.datetime(2020, 1, 2, 3, 4, 5, 100): "2020-01-02 03:04:05.0",
    dt.datetime(2020, 1, 2, 3, 4, 5): "2020-01-02 03:04:05.0",
    dt.datetime(2020, 1, 2): "2020-01-02 00:00:00.0",
    dt.datetime(1900, 1, 2, 3, 4, 5, 500000): "1900-01-02 03:04:05.5",
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999): "1970-01-01 00:00:00.0",
    dt.datetime(1969, 12, 31, 23, 59, 59, 998500): "1969-12-31 23:59:59.999",
    dt.datetime(9999, 1, 1): "9999-01-01 00:00:00.0",
}


@pytest.mark.parametrize("unit", ["us", "ms", "s"])
def test_texts_are_javas(unit: str) -> None:
    fit = {time: text for time, text in _TIMES.items() if unit == "us" or not time.microsecond}
    values = pa.chunked_array([pa.array([*fit, None], pa.timestamp(unit, "UTC"))])
    assert format_java_timestamps(values, "at", "UTC").to_pylist() == [*fit.values(), None]


def test_a_text_is_in_the_writers_zone_whatever_the_columns() -> None:
    summer = dt.datetime(2020, 7, 2, 3, 4, 5, 10000)
    for zone in ("UTC", "Europe/Berlin", "+03:00"):
        values = pa.chunked_array([pa.array([summer], pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))])
        assert format_java_timestamps(values, "at", "America/New_York").to_pylist() == ["2020-07-01 23:04:05.01"]


@pytest.mark.parametrize("micros", [-12_219_292_800_000_001 - 1000, 253_402_300_800_000_000])
def test_times_that_java_spells_by_another_calendar_are_refused(micros: int) -> None:
    values = pa.chunked_array([pa.array([0, micros], pa.int64()).cast(pa.timestamp("us", "UTC"))])
    with pytest.raises(InvalidQueryError, match="1582 to 9999") as caught:
        format_java_timestamps(values, "at", "UTC")
    assert caught.value.where["rows"] == [1]


NO_META = {"hoodie__populate__meta__fields": "false"}


def test_keys_without_meta_fields_are_those_that_readers_compute() -> None:
    day = {"id": [dt.date(1970, 1, 11)], "part": ["p"], "other": ["q"]}
    assert _keys(day, "id", **NO_META) == ["10"]
    assert _keys(day, "id", "COMPLEX", partitions="part,other", **NO_META) == ["10"]  # Java's writers would name it
    assert _keys(day, "id,part", "COMPLEX", **NO_META) == ["id:10,part:p"]
    assert _keys({"id": pa.array([0.1], pa.float32())}, "id", **NO_META) == ["0.1"]
    assert _keys({"id": [b"\x01"]}, "id", **NO_META) == ["01"]
    with pytest.raises(InvalidQueryError, match="null or empty"):
        _keys({"id": ["a", ""]}, "id", **NO_META)


@pytest.mark.parametrize("generator", ["TIMESTAMP", "CUSTOM"])
def test_key_generators_that_java_refuses_without_meta_fields(generator: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=f"without meta fields with the key generator {generator}"):
        _keys({"id": ["a"]}, "id", generator, **NO_META)
