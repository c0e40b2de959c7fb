"""Every record of the timeline: its value, and the bytes of the file that holds it."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import fastavro
import pytest

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro.container import is_container
from hoodie_py.formats.timeline.commit_metadata import COMMIT, REPLACE_COMMIT, CommitMetadata, WriteStat
from hoodie_py.formats.timeline.plans import (
    CLEAN_METADATA,
    CLEAN_PLAN,
    COMPACTION_PLAN,
    ROLLBACK_METADATA,
    ROLLBACK_PLAN,
    CleanedPartition,
    CleanMetadata,
    CleanPlan,
    CompactionOperation,
    CompactionPlan,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RolledBackInstant,
    RolledBackPartition,
)
from hoodie_py.formats.timeline.records import Field, Record
from hoodie_py.formats.timeline.replace_plan import (
    CLUSTERING_PLAN,
    REQUESTED_REPLACE,
    ClusteringGroup,
    ClusteringSlice,
    RequestedReplace,
)
from hoodie_py.formats.timeline.savepoints import (
    RESTORE_METADATA,
    RESTORE_PLAN,
    SAVEPOINT_METADATA,
    RestoreMetadata,
    RestorePlan,
    SavepointMetadata,
)
from hoodie_py.formats.timeline.writers import write_commit_metadata
from tests.corpus import ROOT
from tests.formats.zipped_tables import all_meta_files

FILES = ROOT / "tests" / "data" / "timeline_records.jsonl"
LOCATION = "s3a://lake/trips"
BASE, LOG, INSTANT = "f-0_0-1-2_20260101000000000.parquet", ".f-0_20260101000000000.log.1_0-1-2", "20260101000000000"

BASE_STAT = WriteStat(
    file_id="f-0", path=f"p0/{BASE}", prev_commit="null", num_writes=1, num_deletes=2, num_update_writes=3,
    num_inserts=4, num_updates=5, total_write_bytes=6, total_write_errors=7, partition_path="p0",
    total_updated_records_compacted=8, file_size_in_bytes=9, cdc_stats={"p0/x.cdc": 10}, prev_base_file=BASE,
    min_event_time=11, max_event_time=12,
    runtime_stats={"total_scan_time": 13, "total_create_time": 14, "total_upsert_time": 15},
)  # fmt: skip
LOG_STAT = WriteStat(
    file_id="f-0", path=f"p0/{LOG}", prev_commit=INSTANT, partition_path="p0", total_log_records=1, total_log_files=2,
    total_log_blocks=3, total_corrupt_log_block=4, total_rollback_blocks=5, log_version=6, log_offset=1 << 40,
    base_file=BASE, log_files=(LOG,), total_log_files_compacted=7, total_log_read_time_ms=8,
    total_log_size_compacted=9,
)  # fmt: skip
STATS = {"p0": (BASE_STAT, LOG_STAT, WriteStat("f-1", None)), "": ()}
ROLLBACK = RollbackMetadata(
    INSTANT, 2, ("1",), (RolledBackInstant("1", "commit"),),
    {"p0": RolledBackPartition((BASE,), ("x.parquet",), {LOG: 3}, {".y.log.1_0-1-2": 4})}, 5,
)  # fmt: skip
# The record, and a value with something in every field.
VALUES: dict[str, tuple[Record[Any], Any]] = {
    "commit": (COMMIT, CommitMetadata("UPSERT", {"schema": "{}"}, True, STATS)),
    "replacecommit": (
        REPLACE_COMMIT, CommitMetadata("CLUSTER", {"schema": "ä"}, False, STATS, {"p0": ("f-2", "f-3")})
    ),
    "replacecommit.requested": (REQUESTED_REPLACE, RequestedReplace("DELETE_PARTITION")),
    "clustering.requested": (
        CLUSTERING_PLAN,
        RequestedReplace(
            "CLUSTER",
            (
                ClusteringGroup(
                    (ClusteringSlice("f-0", "p0", BASE, (LOG,), "hdfs:/s"), ClusteringSlice("f-1", "", None, ())), 2,
                    {"TOTAL_IO_MB": 1.5}, {"k": "v"},
                ),
                ClusteringGroup((), None),
            ),
            "a.Strategy", {"columns": "a,b"}, False, ("p1",), {"k": "v"},
        ),
    ),
    "compaction.requested": (
        COMPACTION_PLAN,
        CompactionPlan(
            (
                CompactionOperation(INSTANT, "f-0", "p0", BASE, (LOG,), {"TOTAL_LOG_FILES_SIZE": 2.0}, "hdfs:/source"),
                CompactionOperation(None, "f-1", "", None, (), {"TOTAL_LOG_FILES_SIZE": 0.5}),
            ),
            {"k": "v"}, 2, "a.Strategy", {"k": "v"}, True, ("p1",),
        ),
    ),
    "clean.requested": (
        CLEAN_PLAN,
        CleanPlan(
            INSTANT, "KEEP_LATEST_COMMITS", {"p0": (BASE, LOG), "": ("x.parquet",)}, ("p1",), "commit", "2", {"k": "v"},
            {"p0": ("hdfs:/source/a.parquet",)},
        ),
    ),
    "clean": (
        CLEAN_METADATA,
        CleanMetadata(
            INSTANT, 3, "1", "2", {"p0": CleanedPartition((BASE,), (LOG,), True, "KEEP_LATEST_COMMITS")}, 1 << 40,
            {"k": "v"}, {"p0": ("hdfs:/source/a.parquet",)},
        ),
    ),
    "rollback.requested": (
        ROLLBACK_PLAN,
        RollbackPlan(
            RolledBackInstant("1", "commit"),
            (RollbackRequest("p0", (BASE,), "f-0", "2", {LOG: 7}), RollbackRequest("", ("x.parquet",))),
        ),
    ),
    "rollback": (ROLLBACK_METADATA, ROLLBACK),
    "savepoint": (SAVEPOINT_METADATA, SavepointMetadata("me", 1 << 40, "why", {"p0": (BASE, LOG), "": ()})),
    "restore.requested": (
        RESTORE_PLAN, RestorePlan((RolledBackInstant("2", "commit"), RolledBackInstant("1", "clean")), INSTANT)
    ),
    "restore": (RESTORE_METADATA, RestoreMetadata(INSTANT, ("1",), (ROLLBACK,), 6)),
}  # fmt: skip
UNFILLED: dict[tuple[str, type], set[str]] = {
    ("commit", CommitMetadata): {"replaced_file_ids"},
    ("replacecommit", CommitMetadata): {"compacted"},
    ("clustering.requested", RequestedReplace): {"preserves_metadata"},
    ("replacecommit.requested", RequestedReplace): {each.name for each in fields(RequestedReplace)[1:]},
}  # what other files have, and flags that are false
WRONG: tuple[Any, ...] = (1, "x", True, 1.5, ["x"], {"x": "x"}, b"x")
UNREAD = {"preserveHoodieMetadata", "bootstrapPartitionMetadata"}  # whose values, or parts, may be of any type


@cache
def read_files() -> dict[str, bytes]:
    """The bytes of each file, as they were written before fields were declared."""
    rows = map(json.loads, FILES.read_text().splitlines())
    return {row["file"]: base64.b64decode(row["bytes"]) for row in rows}


@cache
def java_schemas() -> dict[str, Any]:
    """Schemas of Java Hudi 1.2.0's files, without documentation and Java's own properties, by the record's name."""
    found = {}
    for file in all_meta_files():
        if is_container(file.data) and not file.name.endswith(".avro") and ("_v8" in file.case or "_v9" in file.case):
            schema = fastavro.reader(io.BytesIO(file.data)).writer_schema
            assert isinstance(schema, dict)
            found[schema["name"].rpartition(".")[2]] = without_documentation(schema)
    return found


def without_documentation(kind: Any) -> Any:
    if isinstance(kind, list):
        return [without_documentation(each) for each in kind]
    if not isinstance(kind, dict):
        return kind.rpartition(".")[2] if isinstance(kind, str) else kind
    if set(kind) <= {"type", "avro.java.string"}:
        return kind["type"]
    names = ("type", "name", "fields", "items", "values", *(["default"] if "name" in kind else []))  # arrays have none
    return {key: without_documentation(kind[key]) for key in names if key in kind}


def find_record(avro: Any) -> Record[Any] | None:
    """The record in a type."""
    if isinstance(avro, dict):
        return find_record(avro.get("items", avro.get("values")))
    if isinstance(avro, list):
        return find_record(avro[-1])
    return avro if isinstance(avro, Record) else None


def is_read(field: Field) -> bool:
    """Whether a reader looks at a field, and at all that is in it."""
    return (field.attribute is not None or field.part is not None) and field.name not in UNREAD


def iterate_parts(record: Record[Any], decoded: dict[str, Any]) -> Iterator[tuple[Record[Any], dict[str, Any]]]:
    """A record, and each record in it, with its decoded form."""
    yield record, decoded
    for each in record.fields:
        inner = find_record(each.kind.avro)
        if inner is not None and is_read(each):
            for value in iterate_values(each.kind.avro, decoded[each.name]):
                yield from iterate_parts(inner, value)


def iterate_values(avro: Any, value: Any) -> Iterator[dict[str, Any]]:
    """The records in a value of a type."""
    if isinstance(avro, list):
        yield from iterate_values(avro[-1], value)
    elif isinstance(avro, dict):
        for each in value if "items" in avro else value.values():
            yield from iterate_values(avro.get("items", avro.get("values")), each)
    elif value is not None:
        yield value


def iterate_objects(value: Any) -> Iterator[Any]:
    """A value, and each value of a class in it."""
    if is_dataclass(value):
        yield value
        for each in fields(value):
            yield from iterate_objects(getattr(value, each.name))
    elif isinstance(value, tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from iterate_objects(each)


@pytest.mark.parametrize("name", VALUES)
class TestRecords:
    """What holds for every record: for its reader, its writer and the text of its schema."""

    def test_its_file_is_written(self, name: str) -> None:
        record, value = VALUES[name]
        assert record.write_file(value, LOCATION) == read_files()[name]

    def test_its_file_is_read(self, name: str) -> None:
        record, value = VALUES[name]
        assert record.read_file(read_files()[name]) == value

    def test_its_value_has_something_in_every_attribute(self, name: str) -> None:
        filled: dict[type, set[str]] = {}
        for each in iterate_objects(VALUES[name][1]):
            known = filled.setdefault(type(each), set())
            known |= {one.name for one in fields(each) if getattr(each, one.name) not in (None, "", 0, (), {}, False)}
        for kind, names in filled.items():
            assert {one.name for one in fields(kind)} - names <= UNFILLED.get((name, kind), set())

    def test_its_schema_is_javas(self, name: str) -> None:
        record, _ = VALUES[name]
        java = java_schemas().get(record.name)
        if java is None or record is REQUESTED_REPLACE:
            pytest.skip("none of the reference tables has a file with this schema of Java's")
        assert without_documentation(json.loads(record.text)) == java

    def test_a_missing_field_counts_as_null(self, name: str) -> None:
        record, value = VALUES[name]
        for field in record.fields:
            decoded = record.write(value)
            decoded["oneOfAFutureRelease"] = decoded.pop(field.name)
            assert record.read(decoded) == record.read(decoded | {field.name: None})

    def test_a_field_of_another_type_is_refused(self, name: str) -> None:
        record, value = VALUES[name]
        decoded = record.write(value)
        for inner, part in iterate_parts(record, decoded):
            for field in inner.fields:
                if not is_read(field):
                    continue
                original = part[field.name]
                for wrong in WRONG:
                    if type(wrong) not in (field.kind.types or (dict,)):
                        part[field.name] = wrong
                        with pytest.raises(CorruptFileError):
                            record.read(decoded)
                part[field.name] = original
        assert record.read(decoded) == value


@pytest.mark.parametrize("name", ["commit", "replacecommit"])
def test_commits_are_json_in_layout_1(name: str) -> None:
    _, value = VALUES[name]
    data = read_files()[f"{name}.json"]
    assert write_commit_metadata(value, 1) == data
    assert CommitMetadata.from_bytes(data) == value
