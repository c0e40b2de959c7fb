from __future__ import annotations

import json
from typing import Any

import pytest

from hoodie_py.errors import CorruptFileError, HoodieError, InvalidTableError
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat
from hoodie_py.formats.timeline.timeline import Timeline
from tests.formats.avro_writing import NULLABLE_TEXTS, container, encode, record_schema
from tests.formats.zipped_tables import MetaFile, meta_files

STAT = {
    "fileId": "f-0", "path": "p0/.f-0_2.log.1_0-1-2", "prevCommit": "1", "numWrites": 3, "numDeletes": 1,
    "numUpdateWrites": 2, "totalWriteBytes": 900, "totalWriteErrors": 0, "tempPath": None, "partitionPath": "p0",
    "totalLogRecords": 0, "fileSizeInBytes": 901, "logVersion": 1, "logOffset": 0, "baseFile": "f-0_0-0-0_1.parquet",
    "logFiles": [".f-0_2.log.1_0-1-2"], "recordsStats": {"x": {"min": 1}}, "numInserts": 1, "numUpdates": 2,
    "cdcStats": {"p0/.f-0_2.log.1_0-1-2.cdc": 77}, "prevBaseFile": "f-0_0-0-0_0.parquet", "minEventTime": 5,
    "maxEventTime": None, "runtimeStats": {"totalScanTime": 1, "totalUpsertTime": 2, "totalCreateTime": 3},
    "totalLogSizeCompacted": 11, "totalLogReadTimeMs": 12, "totalLogFilesCompacted": 13, "someFutureField": [1],
}  # fmt: skip
TYPED = WriteStat(
    file_id="f-0", path="p0/.f-0_2.log.1_0-1-2", prev_commit="1", num_writes=3, num_deletes=1, num_update_writes=2,
    num_inserts=1, num_updates=2, total_write_bytes=900, partition_path="p0", file_size_in_bytes=901, log_version=1,
    log_offset=0, base_file="f-0_0-0-0_1.parquet", log_files=(".f-0_2.log.1_0-1-2",),
    cdc_stats={"p0/.f-0_2.log.1_0-1-2.cdc": 77}, prev_base_file="f-0_0-0-0_0.parquet", min_event_time=5,
    runtime_stats={"total_scan_time": 1, "total_create_time": 3, "total_upsert_time": 2},
    total_log_size_compacted=11, total_log_read_time_ms=12, total_log_files_compacted=13,
)  # fmt: skip
COMMIT = {
    "partitionToWriteStats": {"p0": [STAT], "": []}, "compacted": True, "operationType": "CLUSTER", "version": 1,
    "extraMetadata": {"schema": "{}", "latest_schema": "[]", "gone": None},
    "partitionToReplaceFileIds": {"p0": ["f-1", "f-2"]}, "writePartitionPaths": ["p0"], "totalCreateTime": 9,
}  # fmt: skip
REPLACE_SCHEMA = record_schema(
    "HoodieReplaceCommitMetadata",
    partitionToWriteStats=["null", {"type": "map", "values": {"type": "array", "items": record_schema(
        "HoodieWriteStat", fileId=["null", "string"], path=["null", "string"], numWrites=["null", "long"],
        logFiles=["null", {"type": "array", "items": "string"}], logVersion=["null", "int"])}}],
    compacted=["null", "boolean"],
    extraMetadata=NULLABLE_TEXTS,
    operationType=["null", "string"],
    partitionToReplaceFileIds=["null", {"type": "map", "values": {"type": "array", "items": "string"}}],
)  # fmt: skip


def from_json(commit: Any) -> CommitMetadata:
    return CommitMetadata.from_bytes(json.dumps(commit).encode())


def test_json_metadata_is_typed_and_unknown_keys_are_left_aside() -> None:
    assert from_json(COMMIT) == CommitMetadata(
        operation_type="CLUSTER",
        extra_metadata={"schema": "{}", "latest_schema": "[]"},
        compacted=True,
        write_stats={"p0": (TYPED,), "": ()},
        replaced_file_ids={"p0": ("f-1", "f-2")},
    )
    assert (from_json(COMMIT).schema, from_json(COMMIT).latest_schema) == ("{}", "[]")
    assert list(from_json(COMMIT).iterate_stats()) == [TYPED]
    assert TYPED.file_name == ".f-0_2.log.1_0-1-2"


def test_avro_metadata_gives_the_same_values() -> None:
    record = {
        "partitionToWriteStats": {"p0": [{"fileId": "f-0", "path": "p0/x", "numWrites": 2, "logFiles": ["x"],
                                          "logVersion": None}]},
        "compacted": None, "extraMetadata": {"schema": ""}, "operationType": "INSERT_OVERWRITE",
        "partitionToReplaceFileIds": {"p0": ["f-1"]},
    }  # fmt: skip
    found = CommitMetadata.from_bytes(container(REPLACE_SCHEMA, encode(REPLACE_SCHEMA, record)))
    assert found == from_json(record)
    assert found.write_stats["p0"] == (WriteStat("f-0", "p0/x", num_writes=2, log_files=("x",)),)
    assert found.replaced_file_ids == {"p0": ("f-1",)}
    assert found.schema is None


@pytest.mark.parametrize("data", [b"", b" \n", b"{}"])
def test_an_empty_file_says_nothing(data: bytes) -> None:
    assert CommitMetadata.from_bytes(data) == CommitMetadata()


@pytest.mark.parametrize(
    "changes",
    [{"path": "../x"}, {"path": "/x"}, {"path": "p0/../../x"}, {"path": "s3://b/x"}, {"partitionPath": "/p0"},
     {"cdcStats": {"../x": 1}}, {"logFiles": ["a/.."]}, {"baseFile": ".."}],
)  # fmt: skip
def test_paths_out_of_the_table_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidTableError):
        from_json({"partitionToWriteStats": {"p0": [STAT | changes]}})


@pytest.mark.parametrize("key", ["partitionToWriteStats", "partitionToReplaceFileIds"])
def test_partitions_out_of_the_table_are_refused(key: str) -> None:
    with pytest.raises(InvalidTableError):
        from_json({key: {"../other": []}})


def test_file_names_are_bare_even_where_a_writer_gave_paths() -> None:
    stat = STAT | {"logFiles": ["s3://lake/t/p0/.f"], "baseFile": "/t/p0/b", "prevBaseFile": ""}
    (found,) = from_json({"partitionToWriteStats": {"p0": [stat]}}).iterate_stats()
    assert (found.log_files, found.base_file, found.prev_base_file) == ((".f",), "b", None)


@pytest.mark.parametrize(
    "data",
    [b"[", b"[]", b"{", b'{"a":}', b"\xff\xfe", b"null", b"hello", b"{" * 100_000, b"[" * 200_000, b'"x"',
     b'{"partitionToWriteStats": []}', b'{"partitionToWriteStats": {"p": {}}}',
     b'{"partitionToWriteStats": {"p": [1]}}', b'{"partitionToWriteStats": {"p": [{"path": 1}]}}',
     b'{"partitionToWriteStats": {"p": [{"path": "a", "numWrites": "1"}]}}',
     b'{"partitionToWriteStats": {"p": [{"path": "a", "numWrites": true}]}}',
     b'{"partitionToReplaceFileIds": {"p": "f"}}', b'{"extraMetadata": {"schema": 1}}', b'{"compacted": "yes"}',
     b'{"operationType": ' + b"9" * 10_000 + b"}"],
)  # fmt: skip
def test_broken_metadata_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        CommitMetadata.from_bytes(data)


def test_another_avro_record_is_refused() -> None:
    schema = record_schema("HoodieCleanMetadata", a="int")
    with pytest.raises(CorruptFileError, match="HoodieCleanMetadata"):
        CommitMetadata.from_bytes(container(schema, encode(schema, {"a": 1})))


def completed(case: str) -> list[tuple[MetaFile, CommitMetadata]]:
    files = {file.name: file for file in meta_files(case) if not file.is_metadata_table}
    layout = 2 if any("/timeline/" in file.path for file in files.values()) else 1
    return [
        (files[one.file_name(layout)], CommitMetadata.from_bytes(files[one.file_name(layout)].data))
        for one in Timeline.from_file_names(files, layout).select_writes()
    ]


OPERATIONS = ["INSERT", "UPSERT", "DELETE", "UPSERT"]


@pytest.mark.parametrize("case", ["basic_mor_v6_part", "basic_mor_v9_part"])
def test_commits_that_java_wrote(case: str) -> None:
    commits = [commit for _, commit in completed(case)]
    assert [commit.operation_type for commit in commits] == OPERATIONS
    for file, commit in completed(case):
        fields = [field["name"] for field in json.loads(commit.schema or "")["fields"]]
        assert {"id", "ts", "part"} <= set(fields)
        for partition, stats in commit.write_stats.items():
            for stat in stats:
                assert stat.partition_path == partition
                assert stat.path == f"{partition}/{stat.file_name}"
                assert (stat.file_id or "?") in (stat.path or "")
                assert stat.file_size_in_bytes > 0, file


def test_a_replaced_file_group_is_named() -> None:
    (commit,) = [commit for _, commit in completed("insert_overwrite_mor_v9") if commit.replaced_file_ids]
    assert commit.operation_type == "INSERT_OVERWRITE"
    assert set(commit.replaced_file_ids) == {"p1"}


def test_truncated_files_are_refused_quickly() -> None:
    for case in ("basic_mor_v6_part", "basic_mor_v9_part"):
        data = completed(case)[0][0].data
        for end in range(1, len(data), 7):
            with pytest.raises(HoodieError):
                CommitMetadata.from_bytes(data[:end])
