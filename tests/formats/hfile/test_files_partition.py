from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import fastavro
import pytest

from hoodie_py.errors import HoodieError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.hfile.entries import read_hfile
from hoodie_py.formats.hfile.files_partition import encode_commit_entries, encode_files_record, encode_partitions_record
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
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


def decode(value: bytes, text: str) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(value), fastavro.parse_schema(json.loads(text)), None)


NOTHING = dict.fromkeys([*META, "newerIndex"])


def test_a_commit_becomes_a_record_for_each_partition_and_one_for_all() -> None:
    entries = encode_commit_entries(schema(), {"p1": {"b": 5, "c": 6}, "": {"a": 1}}, {"p1": ["old"], "p0": ["gone"]})
    found = {key.decode(): decode(value, schema()) for key, value in entries}
    gone, none = {"size": 0, "isDeleted": True}, {"size": 0, "isDeleted": False}
    kept = [{"size": size, "isDeleted": False} for size in (1, 5, 6)]
    partition = NOTHING | {"key": "", "type": 2}
    assert found == {
        "__all_partitions__": partition | {"type": 1, "filesystemMetadata": {".": none, "p0": none, "p1": none}},
        ".": partition | {"filesystemMetadata": {"a": kept[0]}},
        "p0": partition | {"filesystemMetadata": {"gone": gone}},
        "p1": partition | {"filesystemMetadata": {"b": kept[1], "c": kept[2], "old": gone}},
    }


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
    for _, value in read_hfile(block.content):
        record = decode(value, text)
        files = record["filesystemMetadata"]
        if record["type"] == 1:
            again = encode_partitions_record(text, ["" if path == "." else path for path in files])
        else:
            sizes = {name: info["size"] for name, info in files.items() if not info["isDeleted"]}
            again = encode_files_record(text, sizes, [name for name, info in files.items() if info["isDeleted"]])
        assert decode(again, text) == record
        assert len(again) == len(value)
    return True


@pytest.mark.parametrize(
    ("added", "deleted"),
    [({"p": {"a": 0}}, {}), ({"p": {"x/a": 1}}, {}), ({"../p": {"a": 1}}, {}), ({}, {"p": ["../a"]}), ({}, {"/p": []})],
)
def test_wrong_files_are_refused(added: dict[str, dict[str, int]], deleted: dict[str, list[str]]) -> None:
    with pytest.raises(InvalidTableError):
        encode_commit_entries(schema(), added, deleted)


@pytest.mark.parametrize(
    "text",
    [schema(name="Other"), schema(fields=FIELDS[:7]), schema(fields=[*FIELDS, {"name": "must", "type": "string"}]),
     schema(fields=[*FIELDS[:7], {"name": "filesystemMetadata", "type": ["null", "string"]}])],
)  # fmt: skip
def test_unknown_schemas_are_refused(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError):
        encode_files_record(text, {"a": 1})


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(HoodieError):
        encode_files_record("[]", {"a": 1})
