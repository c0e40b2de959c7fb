"""Entries that Java Hudi 1.2.0 made in a Hive Metastore, and ours for the same schemas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoodie_py import UnsupportedFeatureError
from hoodie_py.formats.avro.schema import Field, parse_record
from hoodie_py.metastore.description import _NULLABLE_STRING, make_hive_type, make_spark_properties, may_become

JAVA = json.loads((Path(__file__).parents[1] / "data" / "metastore" / "java_entries.json").read_text())
META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)


def list_fields(entry: dict) -> list[Field]:
    fields = [Field(name, _NULLABLE_STRING, True, None) for name in META]
    stored = [each for each in parse_record(json.dumps(entry["avro"])).fields if each.name not in META]
    parts = entry["partition_fields"]
    by_name = {each.name: each for each in stored}
    last = [by_name.get(name, Field(name, _NULLABLE_STRING, True, None)) for name in parts]
    return [*fields, *(each for each in stored if each.name not in parts), *last]


@pytest.mark.parametrize("name", JAVA)
def test_columns_are_javas(name) -> None:
    entry = JAVA[name]
    made = [
        (each.name.lower(), make_hive_type(each.type, timestamps=entry["timestamps"])) for each in list_fields(entry)
    ]
    assert made == [tuple(each) for each in (*entry["columns"], *entry["partition_columns"])]


@pytest.mark.parametrize("name", JAVA)
def test_sparks_schema_is_javas_to_the_letter(name) -> None:
    entry = JAVA[name]
    made = make_spark_properties(list_fields(entry), entry["partition_fields"], 4000, "3.5.9")
    assert made == entry["spark"]


def test_a_long_schema_is_cut() -> None:
    entry = JAVA["cow_two"]
    made = make_spark_properties(list_fields(entry), entry["partition_fields"], 100, None)
    parts = [
        made[f"spark.sql.sources.schema.part.{number}"]
        for number in range(int(made["spark.sql.sources.schema.numParts"]))
    ]
    assert {len(each) for each in parts[:-1]} == {100}
    assert "".join(parts) == entry["spark"]["spark.sql.sources.schema.part.0"]
    assert "spark.sql.create.version" not in made


def test_a_variant_has_no_place_in_sparks_schema() -> None:
    variant = {
        "type": "record", "name": "v", "logicalType": "variant",
        "fields": [{"name": "metadata", "type": "bytes"}, {"name": "value", "type": "bytes"}],
    }  # fmt: skip
    record = parse_record(json.dumps({"type": "record", "name": "r", "fields": [{"name": "v", "type": variant}]}))
    assert make_hive_type(record.fields[0].type, timestamps=False) == "struct<metadata:binary,value:binary>"
    with pytest.raises(UnsupportedFeatureError, match="VARIANT") as caught:
        make_spark_properties(record.fields, (), 4000, None)
    assert "sync_as_datasource=false" in caught.value.hint


@pytest.mark.parametrize(
    ("before", "after", "may"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("float", "double", True),
        ("bigint", "string", True),
        ("array<int>", "string", False),
        ("struct<a:int>", "struct<a:int,b:int>", True),
        ("struct<a:int>", "array<int>", False),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(10,4)", False),
        ("string", "binary", False),
    ],
)
def test_which_types_may_become_others(before, after, may) -> None:
    assert may_become(before, after) is may
