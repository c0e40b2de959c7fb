from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hoodie_py.errors import CorruptFileError, InvalidTableError
from hoodie_py.formats.timeline.plans import (
    CleanMetadata,
    CleanPlan,
    CompactionOperation,
    CompactionPlan,
    RollbackMetadata,
    RollbackPlan,
    RolledBackInstant,
)
from hoodie_py.formats.timeline.replace_plan import RequestedReplace
from hoodie_py.formats.timeline.savepoints import RestoreMetadata, SavepointMetadata
from tests.formats.avro_writing import NULLABLE_TEXTS, container, encode, record_schema
from tests.formats.zipped_tables import meta_files

TEXT, TEXTS = ["null", "string"], ["null", {"type": "array", "items": "string"}]
COMPACTION = record_schema(
    "HoodieCompactionPlan",
    operations=["null", {"type": "array", "items": record_schema(
        "HoodieCompactionOperation", baseInstantTime=TEXT, deltaFilePaths=TEXTS, dataFilePath=TEXT, fileId=TEXT,
        partitionPath=TEXT, metrics=["null", {"type": "map", "values": "double"}], bootstrapFilePath=TEXT)}],
    extraMetadata=NULLABLE_TEXTS,
    version=["null", "int"],
)  # fmt: skip


def compaction(**changes: Any) -> CompactionPlan:
    operation = {
        "baseInstantTime": "1", "deltaFilePaths": [".f-0_2.log.1_0-0-0"], "dataFilePath": "f-0_0-0-0_1.parquet",
        "fileId": "f-0", "partitionPath": "p0", "metrics": {"TOTAL_IO_MB": 0.5}, "bootstrapFilePath": None,
    } | changes  # fmt: skip
    record = {"operations": [operation], "extraMetadata": {}, "version": 2}
    return CompactionPlan.from_bytes(container(COMPACTION, encode(COMPACTION, record)))


OPERATION = CompactionOperation(
    "1", "f-0", "p0", "f-0_0-0-0_1.parquet", (".f-0_2.log.1_0-0-0",), {"TOTAL_IO_MB": 0.5}
)  # fmt: skip


def test_compaction_plans_name_bare_files() -> None:
    assert compaction() == CompactionPlan((OPERATION,), {}, 2, None)


def test_plans_of_older_releases_hold_paths() -> None:
    paths = {"deltaFilePaths": ["file:/t/p0/.f-0_2.log.1_0-0-0"], "dataFilePath": "p0/f-0_0-0-0_1.parquet"}
    assert compaction(**paths).operations == (OPERATION,)


@pytest.mark.parametrize("missing", [None, ""])
def test_a_slice_of_logs_only_has_no_data_file(missing: str | None) -> None:
    (operation,) = compaction(dataFilePath=missing, deltaFilePaths=None).operations
    assert (operation.data_file, operation.delta_files) == (None, ())


@pytest.mark.parametrize(
    "changes", [{"partitionPath": "../p"}, {"partitionPath": "/p"}, {"dataFilePath": "p/.."}, {"deltaFilePaths": [""]}]
)
def test_plans_cannot_lead_out_of_the_table(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidTableError):
        compaction(**changes)


Parser = Callable[[bytes], Any]
EMPTY: list[tuple[Parser, Any]] = [
    (RequestedReplace.from_bytes, RequestedReplace()), (CleanMetadata.from_bytes, CleanMetadata()),
    (CleanPlan.from_bytes, CleanPlan()), (RollbackMetadata.from_bytes, RollbackMetadata()),
    (RollbackPlan.from_bytes, RollbackPlan()), (RestoreMetadata.from_bytes, RestoreMetadata()),
    (SavepointMetadata.from_bytes, SavepointMetadata()),
]  # fmt: skip


@pytest.mark.parametrize(("parse", "expected"), EMPTY)
def test_empty_files_say_nothing(parse: Parser, expected: Any) -> None:
    assert parse(b"") == expected
    with pytest.raises(CorruptFileError):
        parse(b"not Avro")
    with pytest.raises(CorruptFileError, match="HoodieCompactionPlan"):
        parse(container(COMPACTION, encode(COMPACTION, {"operations": None, "extraMetadata": None, "version": 2})))


def test_a_compaction_without_a_plan_is_refused() -> None:
    with pytest.raises(CorruptFileError):
        CompactionPlan.from_bytes(b"")


def only(case: str, suffix: str) -> bytes:
    """The one file of a reference table whose name ends so."""
    (data,) = [file.data for file in meta_files(case) if file.name.endswith(suffix) and not file.is_metadata_table]
    return data


def names(case: str, suffix: str) -> list[str]:
    return [file.name for file in meta_files(case) if file.name.endswith(suffix)]


def test_a_compaction_that_java_planned() -> None:
    plan = CompactionPlan.from_bytes(only("compaction_pending_mor_v9", ".compaction.requested"))
    assert plan.version == 2
    assert plan.operations
    for operation in plan.operations:
        assert operation.partition_path in ("p0", "p1")
        assert (operation.data_file or "").startswith(f"{operation.file_id}_")
        assert (operation.data_file or "").endswith(f"_{operation.base_instant_time}.parquet")
        assert all(name.startswith(f".{operation.file_id}_") for name in operation.delta_files)


def test_a_clustering_that_java_planned() -> None:
    plan = RequestedReplace.from_bytes(only("clustering_pending_cow_v9", ".clustering.requested"))
    assert plan.is_clustering
    assert plan.operation_type == "CLUSTER"
    pieces = [piece for group in plan.groups or () for piece in group.slices]
    assert len(set(plan.iterate_file_groups())) == len(pieces) == 4
    assert all((piece.data_file or "").startswith(f"{piece.file_id}_") for piece in pieces)


def test_an_insert_overwrite_plans_no_clustering() -> None:
    plan = RequestedReplace.from_bytes(only("insert_overwrite_mor_v9", ".replacecommit.requested"))
    assert (plan.is_clustering, list(plan.iterate_file_groups())) == (False, [])


def test_a_clean_that_java_did() -> None:
    clean = CleanMetadata.from_bytes(only("archived_timeline_mor_v9", ".clean"))
    plan = CleanPlan.from_bytes(only("archived_timeline_mor_v9", ".clean.requested"))
    deleted = {partition: sorted(done.deleted_files) for partition, done in clean.partitions.items()}
    assert deleted
    assert deleted == {partition: sorted(files) for partition, files in plan.files.items()}
    assert clean.total_files_deleted == sum(map(len, deleted.values()))
    assert clean.earliest_commit_to_retain == plan.earliest_instant_to_retain
    assert plan.policy == "KEEP_LATEST_COMMITS"


def test_a_rollback_that_java_did() -> None:
    rollback = RollbackMetadata.from_bytes(only("rollback_completed_mor_v6", ".rollback"))
    plan = RollbackPlan.from_bytes(only("rollback_completed_mor_v6", ".rollback.requested"))
    assert plan.instant is not None
    assert rollback.instants == (plan.instant,)
    assert rollback.commits_rolled_back == (plan.instant.time,)
    assert names("rollback_completed_mor_v6", f"{plan.instant.time}.{plan.instant.action}") == []
    for partition in rollback.partitions.values():
        assert all(name.startswith(".") and size > 0 for name, size in partition.rollback_log_files.items())


def test_a_savepoint_and_a_restore_that_java_did() -> None:
    savepoint = SavepointMetadata.from_bytes(only("savepoint_restore_cow_v8", ".savepoint"))
    assert set(savepoint.files) == {"p0", "p1"}
    assert all(name.endswith(".parquet") for files in savepoint.files.values() for name in files)
    restore = RestoreMetadata.from_bytes(only("savepoint_restore_cow_v8", ".restore"))
    assert len(restore.rollbacks) == len(restore.instants_rolled_back) == 2
    undone = {instant for rollback in restore.rollbacks for instant in rollback.instants}
    assert undone == {RolledBackInstant(time, "commit") for time in restore.instants_rolled_back}
