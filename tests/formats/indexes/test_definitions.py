"""Definitions of indexes: Java's files byte for byte, damaged ones, and what follows from versions.

Which columns have statistics: by list, by order, by what the definition says.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from hoodie_py.errors import CorruptFileError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.schema import Record, parse_record
from hoodie_py.formats.config.table_config import INDEX_DEFINITIONS_PATH, TableConfig
from hoodie_py.formats.indexes.bounds import V1, V2
from hoodie_py.formats.indexes.definitions import (
    META_COLUMNS,
    IndexDefinition,
    IndexDefinitions,
    choose_columns,
    choose_first_columns,
    choose_index_version,
    define_column_stats,
    define_expression_index,
    define_record_index,
    define_secondary_index,
    find_definitions_path,
    find_index_version,
)
from hoodie_py.formats.limits import VARIABLE

# The file of a table that Java Hudi 1.2.0 gave a record index, statistics, a secondary and an expression index.
JAVA_FILE = """{
  "indexDefinitions" : {
    "record_index" : {
      "indexName" : "record_index",
      "indexType" : "record_index",
      "indexFunction" : "",
      "sourceFields" : [ ],
      "indexOptions" : {
        "isPartitioned" : "false"
      },
      "version" : "V1"
    },
    "column_stats" : {
      "indexName" : "column_stats",
      "indexType" : "column_stats",
      "indexFunction" : "column_stats",
      "sourceFields" : [ "_hoodie_commit_time", "id", "name" ],
      "indexOptions" : { },
      "version" : "V2"
    },
    "secondary_index_idx_name" : {
      "indexName" : "secondary_index_idx_name",
      "indexType" : "secondary_index",
      "indexFunction" : "identity",
      "sourceFields" : [ "name" ],
      "indexOptions" : { },
      "version" : "V2"
    },
    "expr_index_idx_ts" : {
      "indexName" : "expr_index_idx_ts",
      "indexType" : "column_stats",
      "indexFunction" : "from_unixtime",
      "sourceFields" : [ "ts" ],
      "indexOptions" : {
        "expr" : "from_unixtime",
        "format" : "yyyy-MM-dd"
      },
      "version" : "V2"
    }
  }
}"""


def test_a_file_of_java_is_written_as_java_writes_it() -> None:
    made = IndexDefinitions.of(
        [
            define_record_index(partitioned=False),
            define_column_stats(["_hoodie_commit_time", "id", "name"], 9),
            define_secondary_index("idx_name", "name", 9),
            define_expression_index(
                "idx_ts", "column_stats", "ts", {"expr": "from_unixtime", "format": "yyyy-MM-dd"}, 9
            ),
        ]
    )
    assert made.to_bytes().decode() == JAVA_FILE
    assert IndexDefinitions.from_bytes(JAVA_FILE.encode()) == made
    assert [each.is_expression for each in made] == [False, False, False, True]


def test_texts_are_quoted() -> None:
    name = 'expr_index_a"b\\\n\x01é'
    one = IndexDefinition(name, "column_stats", "identity", ('x"y',), {"k\t": '"'}, version=None)
    made = IndexDefinitions.of([one])
    assert IndexDefinitions.from_bytes(made.to_bytes()) == made
    assert IndexDefinitions().to_bytes() == b'{\n  "indexDefinitions" : { }\n}'
    assert len(IndexDefinitions.from_bytes(IndexDefinitions().to_bytes())) == 0
    assert len(IndexDefinitions.from_bytes(b"")) == 0


def test_definitions_are_put_and_dropped() -> None:
    before = IndexDefinitions.from_bytes(JAVA_FILE.encode())
    after = before.put(define_record_index(partitioned=True))
    assert [each.name for each in after] == [each.name for each in before]
    assert not before.by_name["record_index"].is_partitioned
    assert after.by_name["record_index"].is_partitioned
    assert after.drop("record_index").get("record_index") is None
    assert len(after.drop("record_index")) == 3


def _changed(name: str = "record_index", **changes: Any) -> bytes:
    content = json.loads(JAVA_FILE)
    content["indexDefinitions"][name] |= changes
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    "data",
    [
        JAVA_FILE.encode()[:-3], JAVA_FILE.encode()[:400], b"[]", b"1", b"{", b"\xff", b"[" * 100_000,
        b'{"indexDefinitions": []}', b'{"indexDefinitions": {"x": 1}}', b'{"indexDefinitions": {"x": {}}}',
        _changed(indexName="other"), _changed(indexName=None), _changed(indexType=None), _changed(indexType=1),
        _changed(sourceFields="id"), _changed(sourceFields=[1]), _changed(indexOptions=[]), _changed(version=2),
        _changed(indexOptions={"isPartitioned": True}), _changed(indexFunction=[]),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        IndexDefinitions.from_bytes(data)


def test_a_file_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "properties_bytes=100")
    with pytest.raises(CorruptFileError, match="properties_bytes=100"):
        IndexDefinitions.from_bytes(JAVA_FILE.encode())


def test_a_later_version_is_not_read() -> None:
    with pytest.raises(UnsupportedFeatureError, match="'V3'"):
        IndexDefinitions.from_bytes(_changed(version="V3"))


def test_statistics_of_files_and_partitions_have_one_version() -> None:
    partition_stats = IndexDefinition("partition_stats", "column_stats", version=1)
    with pytest.raises(InvalidTableError, match="different versions"):
        IndexDefinitions.from_bytes(JAVA_FILE.encode()).put(partition_stats)


def test_unknown_fields_and_null_definitions_are_passed_over() -> None:
    content = json.loads(JAVA_FILE)
    content["more"] = 1
    content["indexDefinitions"]["column_stats"]["more"] = []
    content["indexDefinitions"]["gone"] = None
    assert IndexDefinitions.from_bytes(json.dumps(content).encode()).to_bytes().decode() == JAVA_FILE


@pytest.mark.parametrize(
    ("partition", "versions"),
    [
        ("files", (1, 1, 1)), ("record_index", (1, 1, 1)), ("bloom_filters", (1, 1, 1)), ("column_stats", (1, 1, 2)),
        ("partition_stats", (1, 1, 2)), ("secondary_index_x", (1, 1, 2)), ("expr_index_x", (1, 1, 2)),
    ],
)  # fmt: skip
def test_new_indexes_have_the_version_of_the_table(partition: str, versions: tuple[int, ...]) -> None:
    assert tuple(choose_index_version(partition, each) for each in (6, 8, 9)) == versions
    assert find_index_version(partition, IndexDefinitions(), 9) == versions[2]


def test_the_version_of_a_partition_is_its_definitions() -> None:
    old = IndexDefinitions.of([define_column_stats(["id"], 8), IndexDefinition("expr_index_a", "column_stats")])
    assert find_index_version("column_stats", old, 9) == 1
    assert find_index_version("partition_stats", old, 9) == 1
    assert find_index_version("expr_index_a", old, 9) == 1


def _config(**properties: str) -> TableConfig:
    return TableConfig.from_properties({"hoodie.table.name": "t", "hoodie.table.version": "9", **properties})


def test_the_property_names_the_file() -> None:
    assert find_definitions_path(_config()) is None
    assert find_definitions_path(_config(**{INDEX_DEFINITIONS_PATH: ""})) is None
    path = ".hoodie/.index_defs/index.json"
    assert find_definitions_path(_config(**{INDEX_DEFINITIONS_PATH: path})) == path


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "file:///x", "a/../../b"])
def test_a_file_outside_the_table_is_refused(path: str) -> None:
    with pytest.raises(InvalidTableError):
        find_definitions_path(_config(**{INDEX_DEFINITIONS_PATH: path}))


def schema(**types: Any) -> Record:
    fields = [{"name": name, "type": type_} for name, type_ in types.items()]
    return parse_record(json.dumps({"type": "record", "name": "r", "fields": fields}))


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 10}
SMALL = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 4}
STRUCT = {"type": "record", "name": "s", "fields": [{"name": "x", "type": "int"}]}
MANY = schema(
    _hoodie_commit_time="string", a="int", l={"type": "array", "items": "int"}, st=STRUCT, d=DECIMAL, e=SMALL, b="bytes"
)


def test_the_first_columns_that_can_be_measured_are_chosen() -> None:
    assert choose_first_columns(MANY, V2) == ("a", "d", "e", "b")
    assert choose_first_columns(MANY, V1) == ("a", "e", "b")  # the other decimal has no room
    assert choose_first_columns(MANY, V2, 2) == ("a", "d")


def test_a_list_decides() -> None:
    listed = ("st.x", "_hoodie_record_key", "none", "l", "a")
    assert choose_columns(MANY, V2, meta_columns=True, listed=listed) == (*META_COLUMNS, "st.x", "a")
    assert choose_columns(MANY, V2, meta_columns=False, listed=("a",)) == ("a",)


def test_without_a_list_those_of_the_definition_stay() -> None:
    defined = (*META_COLUMNS, "b", "gone")
    assert choose_columns(MANY, V2, meta_columns=True, defined=defined) == (*META_COLUMNS, "b")


def test_new_columns_count_where_the_definition_had_the_first_ones() -> None:
    before = schema(a="int", b="bytes")
    whole = choose_columns(MANY, V2, meta_columns=False, defined=("a", "b"), before=before)
    assert set(whole) == {"a", "b", "d", "e"}
    assert choose_columns(MANY, V2, meta_columns=False, defined=("a",), before=before) == ("a",)
