"""Write the files of the timeline: commit metadata, and the plans and results of table services.

This mirrors ``commit_metadata`` and ``plans``: they read what is written here back to an equal value. Layout 1 stores
commit metadata as JSON. Everything else is an Avro container of one record in both layouts. Values that Java Hudi
leaves null are null here, too, so a file of Java's that is read and written again has the same record.

Clean and rollback plans name files by location. The values have bare names, so the writers take the table's location in
the form in which Java's file system opens it (``s3a://lake/trips``, ``file:/data/trips``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.avro.container import write_single
from hoodie_py.formats.names import check_file_name, check_inside
from hoodie_py.formats.timeline import records
from hoodie_py.formats.timeline.commit_metadata import NUMBER_FIELDS, RUNTIME_FIELDS, CommitMetadata, WriteStat
from hoodie_py.formats.timeline.plans import (
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

COMPACTION_PLAN_VERSION = 2
CLEAN_VERSION = 2
ROLLBACK_VERSION = 1

_JSON_LAYOUT = 1
_COMPLETED = "COMPLETED"
_LOG_ONLY = ("logVersion", "logOffset", "baseFile", "logFiles")

# Commits -------------------------------------------------------------------------------------------------------------


def write_commit_metadata(commit: CommitMetadata, layout: int, *, replace: bool = False) -> bytes:
    """Encode a commit, delta commit or replace commit, completed or inflight (a workload profile).

    Java needs ``path``, ``file_id``, ``partition_path`` and ``file_size_in_bytes`` of every stat, the operation type
    and the schema in ``extra_metadata`` (Hudi HoodieCommitMetadata). Layout 1 of the timeline gives JSON (table version
    6), 2 an Avro container (8 and later). With ``replace`` it is the metadata of a replace commit even when no file
    group is replaced.

    Raises InvalidTableError if a path leads out of the table.
    """
    record: dict[str, Any] = {
        "partitionToWriteStats": {
            check_inside(partition): [_to_stat(stat) for stat in stats]
            for partition, stats in commit.write_stats.items()
        },
        "compacted": commit.compacted,
        "extraMetadata": dict(commit.extra_metadata),
        "version": None,
        "operationType": commit.operation_type,
    }
    schema = records.COMMIT
    if replace or commit.replaced_file_ids:
        schema = records.REPLACE_COMMIT
        record["partitionToReplaceFileIds"] = {
            check_inside(partition): list(ids) for partition, ids in commit.replaced_file_ids.items()
        }
    return _to_json(record) if layout == _JSON_LAYOUT else write_single(record, schema)


def _to_stat(stat: WriteStat) -> dict[str, Any]:
    is_log = stat.log_version is not None
    numbers: dict[str, int | None] = {name: getattr(stat, attribute) for name, attribute in NUMBER_FIELDS.items()}
    # Java 1.2.0 does not set this number.
    numbers["totalLogFiles"] = stat.total_log_files or None
    runtime = {name: stat.runtime_stats.get(attribute, 0) for name, attribute in RUNTIME_FIELDS.items()}
    return numbers | {
        "fileId": stat.file_id,
        "path": check_inside(stat.path) if stat.path is not None else None,
        "prevCommit": stat.prev_commit,
        "partitionPath": None if stat.path is None and not stat.partition_path else check_inside(stat.partition_path),
        "baseFile": stat.base_file or ("" if is_log else None),
        "logFiles": list(stat.log_files) if is_log or stat.log_files else None,
        "cdcStats": {check_inside(path): size for path, size in stat.cdc_stats.items()} or None,
        "prevBaseFile": stat.prev_base_file,
        "runtimeStats": runtime if stat.runtime_stats else None,
        "tempPath": None,
    }


def _to_json(record: dict[str, Any]) -> bytes:
    """Return the JSON form; there, stats have the fields of log files only where they have a value."""
    del record["version"]
    for stats in record["partitionToWriteStats"].values():
        for stat in stats:
            for name in ("totalLogFiles", *_LOG_ONLY):
                if stat[name] is None:
                    del stat[name]
    return json.dumps(record, indent=2, ensure_ascii=False).encode()


def write_requested_replace(operation: str | None = None) -> bytes:
    """Encode the ``.replacecommit.requested`` file of an insert overwrite (Hudi HoodieRequestedReplaceMetadata), or of
    a delete of partitions, which names its operation. It has no plan.
    """
    return write_single({"operationType": operation, "extraMetadata": None, "version": None}, records.REQUESTED_REPLACE)


# Compaction ----------------------------------------------------------------------------------------------------------


def write_compaction_plan(plan: CompactionPlan) -> bytes:
    """Encode a ``.compaction.requested`` file (Hudi HoodieCompactionPlan); a plan without version gets version 2.

    Raises InvalidTableError: an operation that Java could not run: no file id, no metric ``TOTAL_LOG_FILES_SIZE``, a
    path in place of a file name, or a partition outside the table.
    """
    strategy = None
    if plan.strategy is not None or plan.strategy_params:
        strategy = {"compactorClassName": plan.strategy, "strategyParams": dict(plan.strategy_params), "version": 1}
    record = {
        "operations": [_to_operation(operation) for operation in plan.operations],
        "extraMetadata": dict(plan.extra_metadata),
        "version": COMPACTION_PLAN_VERSION if plan.version is None else plan.version,
        "strategy": strategy,
        "preserveHoodieMetadata": plan.preserve_hoodie_metadata,
        "missingSchedulePartitions": [check_inside(partition) for partition in plan.missing_partitions],
    }
    return write_single(record, records.COMPACTION_PLAN)


def _to_operation(operation: CompactionOperation) -> dict[str, Any]:
    if not operation.file_id:
        raise InvalidTableError("A compaction plan needs the file id of every file group.")
    if "TOTAL_LOG_FILES_SIZE" not in operation.metrics:
        message = "A compaction plan needs the metric TOTAL_LOG_FILES_SIZE, without which Java Hudi fails."
        raise InvalidTableError(message, file_id=operation.file_id)
    return {
        "baseInstantTime": operation.base_instant_time,
        "deltaFilePaths": [check_file_name(name) for name in operation.delta_files],
        "dataFilePath": check_file_name(operation.data_file) if operation.data_file is not None else None,
        "fileId": operation.file_id,
        "partitionPath": check_inside(operation.partition_path),
        "metrics": {name: float(value) for name, value in operation.metrics.items()},
        "bootstrapFilePath": operation.bootstrap_file,
    }


# Clean ---------------------------------------------------------------------------------------------------------------


def write_clean_plan(plan: CleanPlan, table_location: str) -> bytes:
    """Encode a ``.clean.requested`` file (Hudi HoodieCleanerPlan, version 2).

    ``policy`` is required, and ``earliest_action`` where there is an earliest instant. Files are named below the
    table's location, sources as the plan has them.

    Raises InvalidTableError if a required field is missing, or a path leads out of the table.
    """
    earliest = None
    if plan.earliest_instant_to_retain is not None:
        if plan.earliest_action is None:
            raise InvalidTableError("A clean plan needs the action of the earliest instant to retain.")
        earliest = {
            "timestamp": plan.earliest_instant_to_retain, "action": plan.earliest_action, "state": _COMPLETED,
        }  # fmt: skip
    if plan.policy is None:
        raise InvalidTableError("A clean plan needs its policy.")
    record = {
        "earliestInstantToRetain": earliest,
        "lastCompletedCommitTimestamp": plan.last_completed_commit_timestamp or "",
        "policy": plan.policy,
        "filesToBeDeletedPerPartition": {},
        "version": CLEAN_VERSION,
        "filePathsToBeDeletedPerPartition": {
            partition: [
                *(_to_clean_file(path) for path in _locate_files(table_location, partition, files)),
                *(_to_clean_file(path, source=True) for path in plan.sources.get(partition, ())),
            ]
            for partition, files in plan.files.items()
        },
        "partitionsToBeDeleted": [check_inside(partition) for partition in plan.partitions_to_delete],
        "extraMetadata": dict(plan.extra_metadata),
    }
    return write_single(record, records.CLEAN_PLAN)


def _to_clean_file(path: str, *, source: bool = False) -> dict[str, Any]:
    return {"filePath": path, "isBootstrapBaseFile": source}


def write_clean_metadata(clean: CleanMetadata) -> bytes:
    """Encode a completed ``.clean`` file (Hudi HoodieCleanMetadata, version 2).

    Raises InvalidTableError if the start time is missing, or a path leads out of the table.
    """
    if clean.start_clean_time is None:
        raise InvalidTableError("A clean needs the instant at which it started.")
    record = {
        "startCleanTime": clean.start_clean_time,
        "timeTakenInMillis": clean.time_taken_ms,
        "totalFilesDeleted": clean.total_files_deleted,
        "earliestCommitToRetain": clean.earliest_commit_to_retain or "",
        "lastCompletedCommitTimestamp": clean.last_completed_commit_timestamp or "",
        "partitionMetadata": {
            check_inside(partition): _to_cleaned_partition(partition, cleaned)
            for partition, cleaned in clean.partitions.items()
        },
        "version": CLEAN_VERSION,
        "bootstrapPartitionMetadata": {
            check_inside(partition): _to_cleaned_sources(partition, paths, clean.partitions.get(partition))
            for partition, paths in clean.sources.items()
        },
        "extraMetadata": dict(clean.extra_metadata),
    }
    return write_single(record, records.CLEAN_METADATA)


def _to_cleaned_partition(partition: str, cleaned: CleanedPartition) -> dict[str, Any]:
    deleted, failed = [
        [check_file_name(name) for name in names] for names in (cleaned.deleted_files, cleaned.failed_files)
    ]
    return {
        "partitionPath": partition,
        "policy": cleaned.policy,
        "deletePathPatterns": deleted + failed,
        "successDeleteFiles": deleted,
        "failedDeleteFiles": failed,
        "isPartitionDeleted": cleaned.is_partition_deleted,
    }


def _to_cleaned_sources(partition: str, paths: Sequence[str], cleaned: CleanedPartition | None) -> dict[str, Any]:
    return {
        "partitionPath": partition,
        "policy": "" if cleaned is None else cleaned.policy,
        "deletePathPatterns": list(paths),
        "successDeleteFiles": list(paths),
        "failedDeleteFiles": [],
        "isPartitionDeleted": False,
    }


# Rollback ------------------------------------------------------------------------------------------------------------


def write_rollback_plan(plan: RollbackPlan, table_location: str) -> bytes:
    """Encode a ``.rollback.requested`` file (Hudi HoodieRollbackPlan).

    Files are named below the table's location.

    Raises InvalidTableError if the instant is missing, or a path leads out of the table.
    """
    if plan.instant is None:
        raise InvalidTableError("A rollback plan needs the instant that it rolls back.")
    record = {
        "instantToRollback": make_instant_record(plan.instant),
        "RollbackRequests": [_to_request(request, table_location) for request in plan.requests],
        "version": ROLLBACK_VERSION,
    }
    return write_single(record, records.ROLLBACK_PLAN)


def _to_request(request: RollbackRequest, location: str) -> dict[str, Any]:
    return {
        "partitionPath": check_inside(request.partition_path),
        "fileId": request.file_id,
        "latestBaseInstant": request.latest_base_instant,
        "filesToBeDeleted": _locate_files(location, request.partition_path, request.files),
        "logBlocksToBeDeleted": _locate_sizes(location, request.partition_path, request.log_files),
    }


def write_rollback_metadata(rollback: RollbackMetadata, table_location: str) -> bytes:
    """Encode a completed ``.rollback`` file (Hudi HoodieRollbackMetadata); arguments as ``write_rollback_plan``.

    Raises InvalidTableError if the start time is missing, or a path leads out of the table.
    """
    return write_single(make_rollback_record(rollback, table_location), records.ROLLBACK_METADATA)


def make_rollback_record(rollback: RollbackMetadata, table_location: str) -> dict[str, Any]:
    """Return the record of a completed rollback, as ``write_rollback_metadata`` encodes it."""
    if rollback.start_rollback_time is None:
        raise InvalidTableError("A rollback needs the instant at which it started.")
    return {
        "startRollbackTime": rollback.start_rollback_time,
        "timeTakenInMillis": rollback.time_taken_ms,
        "totalFilesDeleted": rollback.total_files_deleted,
        "commitsRollback": list(rollback.commits_rolled_back),
        "partitionMetadata": {
            check_inside(partition): _to_rolled_back_partition(partition, done, table_location)
            for partition, done in rollback.partitions.items()
        },
        "version": ROLLBACK_VERSION,
        "instantsRollback": [make_instant_record(instant) for instant in rollback.instants],
    }


def _to_rolled_back_partition(partition: str, done: RolledBackPartition, location: str) -> dict[str, Any]:
    return {
        "partitionPath": partition,
        "successDeleteFiles": _locate_files(location, partition, done.deleted_files),
        "failedDeleteFiles": _locate_files(location, partition, done.failed_files),
        "rollbackLogFiles": _locate_sizes(location, partition, done.rollback_log_files),
        "logFilesFromFailedCommit": _locate_sizes(location, partition, done.log_files_from_failed_commit),
    }


def make_instant_record(instant: RolledBackInstant) -> dict[str, str]:
    """Return the record of an instant that is undone."""
    return {"commitTime": instant.time, "action": instant.action}


def _locate_files(location: str, partition: str, names: Iterable[str]) -> list[str]:
    folder = "/".join(part for part in (location.rstrip("/"), check_inside(partition)) if part)
    return [f"{folder}/{check_file_name(name)}" for name in names]


def _locate_sizes(location: str, partition: str, sizes: Mapping[str, int]) -> dict[str, int]:
    return dict(zip(_locate_files(location, partition, sizes), sizes.values(), strict=True))
