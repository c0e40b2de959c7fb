"""Read plans and results of table services: compaction, clean, rollback, restore, savepoint.

All are Avro containers of one record (Hudi's org.apache.hudi.avro.model). Partition paths must be under the table.
Files become bare names: compaction plans of version 2 store names, older ones paths, and clean and rollback plans
store absolute URIs of the table's location at that time; only the last segment is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie_py.formats.avro.container import read_single
from hoodie_py.formats.names import check_partition, find_file_name
from hoodie_py.formats.timeline.records import Fields, expect_file_names, expect_list, expect_number, expect_text


@dataclass(frozen=True, slots=True)
class CompactionOperation:
    """One file group of a compaction plan: the slice to merge.

    ``data_file`` is None for a slice of logs only. ``bootstrap_file`` is the path of a bootstrapped base file's source,
    unchanged; it is usually outside the table.
    """

    base_instant_time: str | None
    file_id: str
    partition_path: str
    data_file: str | None
    delta_files: tuple[str, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)
    bootstrap_file: str | None = None

    @classmethod
    def from_record(cls, record: Any) -> CompactionOperation:
        operation = Fields(record)
        return cls(
            base_instant_time=operation.get_text("baseInstantTime"),
            file_id=operation.get_file_id(),
            partition_path=operation.get_partition(),
            data_file=operation.get_file_name("dataFilePath"),
            delta_files=operation.get_file_names("deltaFilePaths"),
            metrics=operation.get_mapping("metrics", expect_metric),
            bootstrap_file=operation.get_text("bootstrapFilePath") or None,
        )


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A requested compaction or log compaction (Hudi HoodieCompactionPlan).

    ``strategy`` and ``strategy_params`` are those of the executor, which Hudi names for log compactions only.
    ``missing_partitions`` are partitions that the planner left out.
    """

    operations: tuple[CompactionOperation, ...] = ()
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    version: int | None = None
    strategy: str | None = None
    strategy_params: Mapping[str, str] = field(default_factory=dict)
    preserve_hoodie_metadata: bool = False
    missing_partitions: tuple[str, ...] = ()

    @classmethod
    def from_bytes(cls, data: bytes) -> CompactionPlan:
        """Parse a ``.compaction.requested`` or ``.logcompaction.requested`` file.

        Raises:
            CorruptFileError: not such a file.
            InvalidTableError: a partition path leads out of the table.
        """
        plan = Fields(read_single(data, "HoodieCompactionPlan"))
        strategy = plan.get_record("strategy")
        return cls(
            operations=plan.get_items("operations", CompactionOperation.from_record),
            extra_metadata=plan.get_mapping("extraMetadata", expect_text),
            version=plan.get_number("version"),
            strategy=strategy.get_text("compactorClassName") if strategy else None,
            strategy_params=strategy.get_mapping("strategyParams", expect_text) if strategy else {},
            preserve_hoodie_metadata=plan.get_flag("preserveHoodieMetadata"),
            missing_partitions=plan.get_items("missingSchedulePartitions", expect_partition),
        )


@dataclass(frozen=True, slots=True)
class CleanedPartition:
    """What a clean did in one partition."""

    deleted_files: tuple[str, ...]
    failed_files: tuple[str, ...]
    is_partition_deleted: bool
    policy: str = ""

    @classmethod
    def from_record(cls, record: Any) -> CleanedPartition:
        cleaned = Fields(record)
        return cls(
            cleaned.get_file_names("successDeleteFiles"),
            cleaned.get_file_names("failedDeleteFiles"),
            cleaned.get_flag("isPartitionDeleted"),
            cleaned.get_text("policy") or "",
        )


@dataclass(frozen=True, slots=True)
class CleanMetadata:
    """A completed clean (Hudi HoodieCleanMetadata).

    Versions before ``earliest_commit_to_retain`` may be gone, so no query can ask for them. ``sources`` are the files
    of a bootstrap's source that it deleted, by partition.
    """

    start_clean_time: str | None = None
    total_files_deleted: int = 0
    earliest_commit_to_retain: str | None = None
    last_completed_commit_timestamp: str | None = None
    partitions: Mapping[str, CleanedPartition] = field(default_factory=dict)
    time_taken_ms: int = 0
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_bytes(cls, data: bytes) -> CleanMetadata:
        """Parse a ``.clean`` file; an empty one cleaned nothing."""
        return cls.from_fields(read_fields(data, "HoodieCleanMetadata"))

    @classmethod
    def from_fields(cls, clean: Fields) -> CleanMetadata:
        """Take the fields of a record."""
        return cls(
            start_clean_time=clean.get_text("startCleanTime"),
            total_files_deleted=clean.get_count("totalFilesDeleted"),
            earliest_commit_to_retain=clean.get_text("earliestCommitToRetain") or None,
            last_completed_commit_timestamp=clean.get_text("lastCompletedCommitTimestamp") or None,
            partitions=clean.get_by_partition("partitionMetadata", CleanedPartition.from_record),
            time_taken_ms=clean.get_count("timeTakenInMillis"),
            extra_metadata=clean.get_mapping("extraMetadata", expect_text),
            sources=clean.get_by_partition(
                "bootstrapPartitionMetadata", lambda partition: Fields(partition).get_texts("successDeleteFiles")
            ),
        )


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """A requested clean (Hudi HoodieCleanerPlan): file names to delete, by partition.

    ``earliest_action`` is the action of the earliest instant to retain. ``sources`` are places of files of a
    bootstrap's source to delete, unchanged; they are usually outside the table.
    """

    earliest_instant_to_retain: str | None = None
    policy: str | None = None
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partitions_to_delete: tuple[str, ...] = ()
    earliest_action: str | None = None
    last_completed_commit_timestamp: str | None = None
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def from_bytes(cls, data: bytes) -> CleanPlan:
        """Parse a ``.clean.requested`` file; an empty one plans nothing."""
        plan = read_fields(data, "HoodieCleanerPlan")
        earliest = plan.get_record("earliestInstantToRetain")
        files = plan.get_by_partition("filePathsToBeDeletedPerPartition", _expect_clean_files)
        sources = plan.get_by_partition("filePathsToBeDeletedPerPartition", _expect_clean_sources)
        return cls(
            earliest_instant_to_retain=earliest.get_text("timestamp") if earliest else None,
            policy=plan.get_text("policy"),
            files=files or plan.get_by_partition("filesToBeDeletedPerPartition", expect_file_names),
            partitions_to_delete=plan.get_items("partitionsToBeDeleted", expect_partition),
            earliest_action=earliest.get_text("action") if earliest else None,
            last_completed_commit_timestamp=plan.get_text("lastCompletedCommitTimestamp") or None,
            extra_metadata=plan.get_mapping("extraMetadata", expect_text),
            sources={partition: names for partition, names in sources.items() if names},
        )


@dataclass(frozen=True, slots=True)
class RolledBackInstant:
    """An instant that a rollback or restore undid."""

    time: str
    action: str

    @classmethod
    def from_record(cls, record: Any) -> RolledBackInstant:
        instant = Fields(record)
        return cls(instant.get_text("commitTime") or "", instant.get_text("action") or "")


@dataclass(frozen=True, slots=True)
class RolledBackPartition:
    """What a rollback did in one partition; log files with their sizes in bytes."""

    deleted_files: tuple[str, ...]
    failed_files: tuple[str, ...]
    rollback_log_files: Mapping[str, int] = field(default_factory=dict)
    log_files_from_failed_commit: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_record(cls, record: Any) -> RolledBackPartition:
        done = Fields(record)
        return cls(
            done.get_file_names("successDeleteFiles"),
            done.get_file_names("failedDeleteFiles"),
            _get_sizes(done, "rollbackLogFiles"),
            _get_sizes(done, "logFilesFromFailedCommit"),
        )


@dataclass(frozen=True, slots=True)
class RollbackMetadata:
    """A completed rollback (Hudi HoodieRollbackMetadata)."""

    start_rollback_time: str | None = None
    total_files_deleted: int = 0
    commits_rolled_back: tuple[str, ...] = ()
    instants: tuple[RolledBackInstant, ...] = ()
    partitions: Mapping[str, RolledBackPartition] = field(default_factory=dict)
    time_taken_ms: int = 0

    @classmethod
    def from_bytes(cls, data: bytes) -> RollbackMetadata:
        """Parse a ``.rollback`` file; an empty one says nothing."""
        return cls.from_record(read_single(data, "HoodieRollbackMetadata") if data else {})

    @classmethod
    def from_record(cls, record: Any) -> RollbackMetadata:
        rollback = Fields(record)
        return cls(
            start_rollback_time=rollback.get_text("startRollbackTime"),
            total_files_deleted=rollback.get_count("totalFilesDeleted"),
            commits_rolled_back=rollback.get_texts("commitsRollback"),
            instants=rollback.get_items("instantsRollback", RolledBackInstant.from_record),
            partitions=rollback.get_by_partition("partitionMetadata", RolledBackPartition.from_record),
            time_taken_ms=rollback.get_count("timeTakenInMillis"),
        )


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """What a rollback has to undo in a partition or file group (Hudi HoodieRollbackRequest).

    ``files`` are names of files to delete. ``log_files`` are log files with their sizes in bytes whose blocks a
    rollback block has to undo (table version 6); the file group is named then, else ``file_id`` is "".
    """

    partition_path: str
    files: tuple[str, ...] = ()
    file_id: str = ""
    latest_base_instant: str = ""
    log_files: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_record(cls, record: Any) -> RollbackRequest:
        request = Fields(record)
        return cls(
            partition_path=request.get_partition(),
            files=request.get_file_names("filesToBeDeleted"),
            file_id=request.get_file_id(),
            latest_base_instant=request.get_text("latestBaseInstant") or "",
            log_files=_get_sizes(request, "logBlocksToBeDeleted"),
        )


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """A requested rollback (Hudi HoodieRollbackPlan): the instant it will undo, and how."""

    instant: RolledBackInstant | None = None
    requests: tuple[RollbackRequest, ...] = ()

    @classmethod
    def from_bytes(cls, data: bytes) -> RollbackPlan:
        """Parse a ``.rollback.requested`` file; an empty one says nothing."""
        plan = read_fields(data, "HoodieRollbackPlan")
        instant = plan.get("instantToRollback")
        return cls(
            instant=RolledBackInstant.from_record(instant) if instant is not None else None,
            requests=plan.get_items("RollbackRequests", RollbackRequest.from_record),
        )


def read_fields(data: bytes, name: str) -> Fields:
    """Read the record in a file; an empty file has no fields."""
    return Fields(read_single(data, name) if data else {})


def expect_partition(value: Any) -> str:
    """Return a partition path that stays under the table."""
    return check_partition(expect_text(value))


def expect_metric(value: Any) -> float:
    """Return a number of a plan."""
    return float(value) if isinstance(value, float) else float(expect_number(value))


def _expect_clean_files(value: Any) -> tuple[str, ...]:
    files = (item.get_file_name("filePath") for item in map(Fields, expect_list(value)) if not _is_source(item))
    return tuple(name for name in files if name)


def _expect_clean_sources(value: Any) -> tuple[str, ...]:
    files = (item.get_text("filePath") for item in map(Fields, expect_list(value)) if _is_source(item))
    return tuple(name for name in files if name)


def _is_source(file: Fields) -> bool:
    return file.get_flag("isBootstrapBaseFile")


def _get_sizes(done: Fields, name: str) -> dict[str, int]:
    return {find_file_name(path): size for path, size in done.get_mapping(name, expect_number).items()}
