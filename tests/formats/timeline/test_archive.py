"""The schema of archive entries is that of Java's archive files.

Files of the history: what is written is read back, and has Java's form.
"""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.timeline import archive_entries
from hoodie_py.formats.timeline.archive import (
    HISTORY_SCHEMA,
    ArchivedInstant,
    HistoryFile,
    encode_manifest,
    keep_newest_entries,
    make_history_file_name,
    make_history_rows,
    make_manifest_name,
    parse_archive_file_name,
    parse_archived_log,
    parse_history_file_name,
    parse_history_manifest,
    parse_history_parquet,
    parse_history_version,
    parse_manifest_name,
    read_history_batches,
    write_history,
)
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata
from hoodie_py.formats.timeline.timeline import Timeline
from tests.formats.avro_writing import NULLABLE_TEXTS, encode, record_schema
from tests.formats.zipped_tables import MetaFile, meta_files

TEXT = ["null", "string"]
COMMIT = record_schema("HoodieCommitMetadata", operationType=TEXT, extraMetadata=NULLABLE_TEXTS)
ENTRY = record_schema(
    "HoodieArchivedMetaEntry", hoodieCommitMetadata=["null", COMMIT], commitTime=TEXT, actionType=TEXT, actionState=TEXT
)


def entry(time: str, action: str, state: str | None, commit: Any = None) -> dict[str, Any]:
    return {"hoodieCommitMetadata": commit, "commitTime": time, "actionType": action, "actionState": state}


def block(*records: bytes, schema: Any = ENTRY, kind: int = 3, count: int | None = None, tail: bytes = b"") -> bytes:
    """A log block of Avro records, as the archiver writes it."""
    text = json.dumps(schema).encode()
    content = struct.pack(">ii", 3, len(records) if count is None else count)
    content += b"".join(struct.pack(">i", len(record)) + record for record in records) + tail
    body = struct.pack(">iiiii", 1, kind, 1, 2, len(text)) + text + struct.pack(">q", len(content)) + content
    body += struct.pack(">i", 0)
    size = len(body) + 8
    return b"#HUDI#" + struct.pack(">q", size) + body + struct.pack(">q", size + 6)


def archived(*entries: dict[str, Any]) -> bytes:
    return block(*(encode(ENTRY, one) for one in entries))


def test_only_completed_states_of_an_archive_count() -> None:
    commit = {"operationType": "UPSERT", "extraMetadata": {"schema": "s"}}
    data = archived(
        entry("1", "commit", "REQUESTED"), entry("1", "commit", "INFLIGHT"), entry("1", "commit", "COMPLETED", commit)
    ) + archived(entry("2", "compaction", "COMPLETED"), entry("3", "deltacommit", "INFLIGHT"))
    first, second = parse_archived_log(data)
    assert (first.request_time, first.completion_time, first.action) == ("1", "1", "commit")
    assert first.parse_commit_metadata() == CommitMetadata("UPSERT", {"schema": "s"})
    assert (second.request_time, second.action, second.parse_commit_metadata()) == ("2", "commit", CommitMetadata())


@pytest.mark.parametrize("data", [b"", b"#HUDI#", archived(entry("1", "commit", "COMPLETED"))[:-1]])
def test_what_was_not_written_whole_is_skipped(data: bytes) -> None:
    assert parse_archived_log(data) == []


RECORD = encode(ENTRY, entry("1", "commit", "COMPLETED"))


@pytest.mark.parametrize(
    "data",
    [
        block(RECORD, schema=COMMIT),
        block(RECORD, schema="int"),
        block(RECORD, count=2),
        block(RECORD, count=0),
        block(RECORD, count=-1),
        block(RECORD, count=2**31 - 1),
        block(RECORD, tail=b"x"),
        block(RECORD + b"x"),
        block(RECORD[:-1]),
        block(kind=0),
        block(kind=5),
        block(encode(ENTRY, entry("yesterday", "commit", "COMPLETED"))),
        b"PAR1PAR1",
    ],
)
def test_broken_archives_are_refused(data: bytes) -> None:
    with pytest.raises((CorruptFileError, UnsupportedFeatureError)):
        parse_archived_log(data)


def test_the_newest_archive_file_has_the_last_word() -> None:
    older, newer = ArchivedInstant("1", "1", "commit", b"old"), ArchivedInstant("1", "1", "commit", b"new")
    other = ArchivedInstant("1", "1", "clean")
    found = keep_newest_entries([[newer], [older, other]])
    assert found == {("1", "commit"): newer, ("1", "clean"): other}


@pytest.mark.parametrize(
    ("name", "number"),
    [(".commits_.archive.12_1-0-1", 12), (".commits_.archive.3", 3), ("mergeArchivePlan", None),
     (".commits_.archive.12_1-0-1.crc", None), (".commits_.archive.x_1-0-1", None)],
)  # fmt: skip
def test_archive_file_names(name: str, number: int | None) -> None:
    assert parse_archive_file_name(name) == number


@pytest.mark.parametrize(("name", "number"), [("manifest_9", 9), ("manifest_10.tmp", None), ("_version_", None)])
def test_manifest_names(name: str, number: int | None) -> None:
    assert parse_manifest_name(name) == number


@pytest.mark.parametrize(("data", "version"), [(b"9", 9), (b" 12\n", 12), (b"", None), (b"x", None), (b"1" * 50, None)])
def test_version_file(data: bytes, version: int | None) -> None:
    assert parse_history_version(data) == version


FILE = HistoryFile("20260101000000000_20260102000000000_1.parquet", "20260101000000000", "20260102000000000", 1, 4492)


def test_manifests_list_history_files() -> None:
    data = b'{"files":[{"fileName":"%s","fileLen":4492,"more":1}]}' % FILE.name.encode()
    assert parse_history_manifest(data) == (FILE,)
    assert parse_history_manifest(b'{"files":[]}') == ()
    assert parse_history_file_name("x.parquet") is None


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b'{"files":{}}', b'{"files":[1]}', b'{"files":[{}]}', b'{"files":[{"fileName":1}]}',
     b'{"files":[{"fileName":"../1_2_0.parquet","fileLen":1}]}', b'{"files":[{"fileName":"/etc/passwd"}]}',
     b'{"files":[{"fileName":"1_2_0.parquet","fileLen":"1"}]}'],
)  # fmt: skip
def test_broken_manifests_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        parse_history_manifest(data)


def history(**changes: Any) -> bytes:
    columns = {
        "instantTime": ["1"], "completionTime": ["2"], "action": ["commit"], "metadata": pa.array([b"{}"], pa.binary()),
        "plan": pa.array([None], pa.binary()), "version": pa.array([1], pa.int32()),
    } | changes  # fmt: skip
    stream = io.BytesIO()
    pq.write_table(pa.table({name: values for name, values in columns.items() if values is not None}), stream)
    return stream.getvalue()


def test_history_rows_are_completed_instants() -> None:
    (instant,) = parse_history_parquet(history())
    assert instant == ArchivedInstant("1", "2", "commit", b"{}", None)
    assert instant.parse_commit_metadata() == CommitMetadata()
    assert parse_history_parquet(history(), contents=False) == [ArchivedInstant("1", "2", "commit")]
    assert parse_history_parquet(history(metadata=None, plan=None), contents=False)


@pytest.mark.parametrize(
    "data",
    [b"", b"PAR1", history()[:-1], history(instantTime=None), history(instantTime=[None]), history(instantTime=["x"]),
     history(instantTime=[1]), history(metadata=["text"]), history(version=pa.array([2], pa.int32())),
     history(version=["1"]), history(metadata=None)],
)  # fmt: skip
def test_broken_history_files_are_refused(data: bytes) -> None:
    with pytest.raises((CorruptFileError, UnsupportedFeatureError)):
        parse_history_parquet(data)


@settings(max_examples=30)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    for parse in (parse_archived_log, parse_history_manifest, parse_history_parquet):
        try:
            parse(data)
        except HoodieError:
            continue


def in_history(case: str) -> dict[str, MetaFile]:
    return {file.name: file for file in meta_files(case) if "/history/" in file.path and not file.is_metadata_table}


def test_the_history_of_a_reference_table_ends_where_its_timeline_begins() -> None:
    case = "archived_timeline_mor_v9"
    files = in_history(case)
    version = parse_history_version(files["_version_"].data)
    assert version == max(filter(None, map(parse_manifest_name, files)))
    manifest = parse_history_manifest(files[f"manifest_{version}"].data)
    found = []
    for listed in manifest:
        data = files[listed.name].data
        assert len(data) == listed.size
        instants = parse_history_parquet(data)
        assert min(one.request_time for one in instants) == listed.min_time
        assert max(one.request_time for one in instants) == listed.max_time
        found += instants
    names = [file.name for file in meta_files(case) if file.folder == ".hoodie/timeline"]
    first = Timeline.from_file_names(names, 2).first_active_time or ""
    writes = [one for one in found if one.action in ("commit", "deltacommit")]
    assert writes
    assert all(one.request_time < one.completion_time <= first for one in writes)
    for one in writes:
        assert (one.plan is None) == (one.action == "deltacommit")
        assert one.parse_commit_metadata().schema


def test_archives_of_a_version_6_reference_table_end_where_its_timeline_begins() -> None:
    case = "archived_timeline_mor_v6"
    numbered = {parse_archive_file_name(file.name): file for file in meta_files(case)}
    archives = [numbered[number] for number in sorted(filter(None, numbered), reverse=True)]
    found = keep_newest_entries(parse_archived_log(file.data) for file in archives).values()
    names = [file.name for file in meta_files(case) if file.folder == ".hoodie"]
    first = Timeline.from_file_names(names, 1).first_active_time or ""
    writes = [one for one in found if one.action in ("commit", "deltacommit")]
    assert writes
    for one in writes:
        assert one.request_time < first
        assert one.parse_commit_metadata().schema
        assert list(one.parse_commit_metadata().iterate_stats())


def test_it_is_javas() -> None:
    [file, *_] = [each for each in meta_files("archived_timeline_mor_v6") if ".commits_.archive." in each.name]
    block = next(iter(iterate_blocks(file.data)))
    assert isinstance(block, LogBlock)
    assert block.schema_text is not None
    assert plain(json.loads(archive_entries.ENTRY.java_text)) == plain(json.loads(block.schema_text))


def plain(kind: Any) -> Any:
    """A type without documentation, and without a default that Java has at a type, where it means nothing."""
    if isinstance(kind, list):
        return [plain(each) for each in kind]
    if isinstance(kind, dict):
        left_out = {"doc", "default"} if {"items", "values"} & kind.keys() else {"doc"}
        return {key: plain(each) for key, each in kind.items() if key not in left_out}
    return kind


INSTANT = st.builds(
    ArchivedInstant,
    st.integers(1, 10**17).map(str),
    st.integers(1, 10**17).map(str),
    st.sampled_from(["commit", "clean"]),
    st.none() | st.binary(min_size=1, max_size=5),
    st.none() | st.binary(min_size=1, max_size=5),
)


def encode_tables(*tables: pa.Table) -> bytes:
    sink = io.BytesIO()
    write_history(sink, tables)
    return sink.getvalue()


@given(st.lists(INSTANT, min_size=1, max_size=5))
@settings(max_examples=25)
def test_what_is_written_is_read(instants: list[ArchivedInstant]) -> None:
    data = encode_tables(make_history_rows(instants))
    assert parse_history_parquet(data) == instants
    assert (
        parse_history_parquet(encode_tables(*read_history_batches(data), make_history_rows(instants))) == instants * 2
    )


def test_the_form_is_javas() -> None:
    [java, *_] = [each for each in meta_files("archived_timeline_mor_v9") if each.name.endswith("_0.parquet")]
    theirs = pq.ParquetFile(io.BytesIO(java.data))
    ours = pq.ParquetFile(io.BytesIO(encode_tables(make_history_rows(parse_history_parquet(java.data)))))
    assert ours.schema_arrow.equals(theirs.schema_arrow)
    assert ours.metadata.metadata == theirs.metadata.metadata
    kinds = [
        [
            (each.physical_type, str(each.logical_type), each.max_definition_level)
            for each in map(file.schema.column, range(6))
        ]
        for file in (ours, theirs)
    ]
    assert kinds[0] == kinds[1]
    assert ours.metadata.row_group(0).column(3).compression == "GZIP"


def test_names_and_manifests() -> None:
    name = make_history_file_name(["3", "1", "2"], 4)
    assert parse_history_file_name(name) == HistoryFile("1_3_4.parquet", "1", "3", 4)
    files = (HistoryFile(name, "1", "3", 4, 77),)
    assert parse_history_manifest(encode_manifest(files)) == files
    assert parse_manifest_name(make_manifest_name(5)) == 5


def test_damaged_files_and_newer_rows_are_errors() -> None:
    with pytest.raises(CorruptFileError):
        list(read_history_batches(b"PAR1"))
    row = {"instantTime": "1", "completionTime": "2", "action": "commit", "version": 2}
    with pytest.raises(UnsupportedFeatureError):
        list(read_history_batches(encode_tables(pa.Table.from_pylist([row], HISTORY_SCHEMA))))
