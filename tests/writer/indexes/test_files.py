"""Records of the partition ``files``, and their encoding."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.hfile.bootstrap_index import read_hfile
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from hoodie_py.writer.indexes.commit import encode_entries
from hoodie_py.writer.indexes.files import list_files
from tests.corpus import WHOLE

INFO = {
    "type": "record", "name": "Info",
    "fields": [{"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}],
}  # fmt: skip
META = [
    "_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path", "_hoodie_file_name",
]  # fmt: skip
FIELDS: list[dict[str, Any]] = [
    *({"name": name, "type": ["null", "string"], "default": None} for name in META),
    {"name": "key", "type": "string"}, {"name": "type", "type": "int"},
    {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": INFO}]},
    {"name": "newerIndex", "type": ["null", "string"]},
]  # fmt: skip


def schema(**changes: Any) -> str:
    record = {"type": "record", "name": "HoodieMetadataRecord", "namespace": "org.apache.hudi.avro.model"}
    return json.dumps(record | {"fields": FIELDS} | changes)


def encode(rows: pa.Table, text: str) -> dict[str, bytes]:
    keys, values = encode_entries(rows, AvroSchema.parse(text))
    return dict(zip(keys.to_pylist(), values.to_pylist(), strict=True))


def decode(value: bytes, text: str) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(value), fastavro.parse_schema(json.loads(text)), None)


NOTHING = dict.fromkeys([*META, "newerIndex"])


def test_a_commit_becomes_a_record_for_each_partition_and_one_for_all() -> None:
    rows = list_files({"p1": {"b": 5, "c": 6}, "": {"a": 1}}, {"p1": ["old"], "p0": ["gone"]})
    found = {key: decode(value, schema()) for key, value in encode(rows, schema()).items()}
    gone, none = {"size": 0, "isDeleted": True}, {"size": 0, "isDeleted": False}
    kept = [{"size": size, "isDeleted": False} for size in (1, 5, 6)]
    partition = NOTHING | {"key": "", "type": 2}
    assert found == {
        "__all_partitions__": partition | {"type": 1, "filesystemMetadata": {".": none, "p0": none, "p1": none}},
        ".": partition | {"filesystemMetadata": {"a": kept[0]}},
        "p0": partition | {"filesystemMetadata": {"gone": gone}},
        "p1": partition | {"filesystemMetadata": {"b": kept[1], "c": kept[2], "old": gone}},
    }


def test_a_file_that_comes_and_goes_is_deleted() -> None:
    [_, record] = list_files({"p": {"a": 5}}, {"p": ["a"]}).to_pylist()
    assert record["filesystemMetadata"] == [("a", {"size": 0, "isDeleted": True})]


def test_records_of_java_come_out_the_same() -> None:
    checked = 0
    for place in sorted(WHOLE.glob("*m*d*t*/table.zip")):
        with zipfile.ZipFile(place) as archive:
            for path in archive.namelist():
                if "/.hoodie/metadata/files/" in path and ".log." in path:
                    checked += sum(same(block) for block in iterate_blocks(archive.read(path)))
    if not checked:
        pytest.skip(f"NOT TESTED: there are no reference tables with a metadata table in {WHOLE}")
    assert checked > 10


def same(block: Any) -> bool:
    if not isinstance(block, LogBlock) or block.type is not BlockType.HFILE_DATA:
        return False
    text = block.schema_text or ""
    told = {key.decode(): value for key, value in read_hfile(block.content)}
    records = {key: decode(value, text) for key, value in told.items()}
    every = records.pop("__all_partitions__", {}).get("filesystemMetadata", {})
    files = {key: record["filesystemMetadata"] for key, record in records.items()}
    added = {
        "" if key == "." else key: {name: info["size"] for name, info in each.items() if not info["isDeleted"]}
        for key, each in files.items()
    }
    deleted = {
        "" if key == "." else key: [name for name, info in each.items() if info["isDeleted"]]
        for key, each in files.items()
    }
    again = encode(list_files(added, deleted), text)
    for key, record in records.items():
        assert decode(again[key], text) == record
        assert len(again[key]) == len(told[key])
    return set(every) == set(files)


@pytest.mark.parametrize(
    ("added", "deleted"),
    [({"p": {"a": 0}}, {}), ({"p": {"x/a": 1}}, {}), ({"../p": {"a": 1}}, {}), ({}, {"p": ["../a"]}), ({}, {"/p": []})],
)
def test_wrong_files_are_refused(added: dict[str, dict[str, int]], deleted: dict[str, list[str]]) -> None:
    with pytest.raises(InvalidTableError):
        list_files(added, deleted)


@pytest.mark.parametrize(
    "text",
    [schema(fields=FIELDS[:7]), schema(fields=[*FIELDS, {"name": "must", "type": "string"}]),
     schema(fields=[*FIELDS[:7], {"name": "filesystemMetadata", "type": ["null", "string"]}])],
)  # fmt: skip
def test_schemas_that_do_not_have_the_columns_are_refused(text: str) -> None:
    with pytest.raises(InvalidTableError):
        encode(list_files({"p": {"a": 1}}, {}), text)
