"""Plans and results of table services: compaction, clean, rollback.

All files are Avro containers of one record (Hudi's org.apache.hudi.avro.model). Partition paths must be under the
table. Values contain bare file names. Files contain names in compaction plans of version 2, paths in older ones, and
absolute URIs of the table's location at that time in clean and rollback plans; reading takes the last segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.names import find_file_name
from hoodie_py.formats.timeline import kinds
from hoodie_py.formats.timeline.kinds import Kind, Place
from hoodie_py.formats.timeline.records import (
    REQUIRED,
    Field,
    Record,
    fixed,
    nested,
    only,
    part,
    partition_of_key,
    take_attributes,
    version,
)

_PLAN_VERSION = 2
_CLEAN_VERSION = 2
_ROLLBACK_VERSION = 1

# Compaction ----------------------------------------------------------------------------------------------------------


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


def _compose_metrics(operation: CompactionOperation, place: Place) -> dict[str, float]:
    if "TOTAL_LOG_FILES_SIZE" not in operation.metrics:
        message = "A compaction plan needs the metric TOTAL_LOG_FILES_SIZE, without which Java Hudi fails."
        raise InvalidTableError(message, file_id=operation.file_id)
    found: dict[str, float] = kinds.METRICS.write_item(operation.metrics, place)
    return found


COMPACTION_OPERATION = Record(
    "HoodieCompactionOperation",
    CompactionOperation,
    Field("baseInstantTime", kinds.TEXT, default=REQUIRED),
    Field("deltaFilePaths", kinds.FILE_NAMES, "delta_files"),
    Field("dataFilePath", kinds.FILE_NAME_OR_NONE, "data_file"),
    Field("fileId", kinds.FILE_ID, needed="A compaction plan needs the file id of every file group.", default=REQUIRED),
    Field("partitionPath", kinds.PARTITION),
    Field("metrics", kinds.METRICS, compose=_compose_metrics),
    Field("bootstrapFilePath", kinds.TEXT_OR_NONE, "bootstrap_file"),
)
_COMPACTION_STRATEGY = Record(
    "HoodieCompactionStrategy",
    take_attributes,
    Field("compactorClassName", kinds.TEXT, "strategy"),
    Field("strategyParams", kinds.TEXT_MAP),
    version(1),
)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """A requested compaction or log compaction (Hudi HoodieCompactionPlan).

    ``strategy`` is the executor's class and ``strategy_params`` its options; Hudi sets them for log compactions only.
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
        from hoodie_py.formats.avro.container import read_single

        return COMPACTION_PLAN.read(read_single(data, COMPACTION_PLAN.name))


COMPACTION_PLAN = Record(
    "HoodieCompactionPlan",
    CompactionPlan,
    Field("operations", kinds.array(nested(COMPACTION_OPERATION))),
    Field("extraMetadata", kinds.TEXT_MAP),
    Field(
        "version", kinds.INT, default=1, compose=lambda plan, _: _PLAN_VERSION if plan.version is None else plan.version
    ),
    part("strategy", _COMPACTION_STRATEGY, lambda plan: plan.strategy is not None or plan.strategy_params),
    Field("preserveHoodieMetadata", kinds.FLAG, default=False),
    Field("missingSchedulePartitions", kinds.PARTITIONS, "missing_partitions"),
)


# Clean ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CleanedPartition:
    """What a clean did in one partition."""

    deleted_files: tuple[str, ...]
    failed_files: tuple[str, ...]
    is_partition_deleted: bool
    policy: str = ""


def _declare_cleaned(files: Kind) -> Record[CleanedPartition]:
    def compose_all(cleaned: CleanedPartition, place: Place) -> Any:
        return files.write_item((*cleaned.deleted_files, *cleaned.failed_files), place)

    return Record(
        "HoodieCleanPartitionMetadata",
        CleanedPartition,
        partition_of_key(),
        Field("policy", kinds.TEXT_OR_EMPTY, null=False),
        Field("deletePathPatterns", files, None, null=False, compose=compose_all),
        Field("successDeleteFiles", files, "deleted_files", null=False),
        Field("failedDeleteFiles", files, "failed_files", null=False),
        Field("isPartitionDeleted", kinds.FLAG),
    )


CLEANED_PARTITION = _declare_cleaned(kinds.FILE_NAMES)
_CLEANED_SOURCES = _declare_cleaned(kinds.TEXTS)  # files outside the table: their places stay as they are


def _compose_sources(clean: CleanMetadata, place: Place) -> dict[str, Any]:
    found = {}
    for partition, paths in clean.sources.items():
        cleaned = clean.partitions.get(partition)
        sources = CleanedPartition(tuple(paths), (), False, "" if cleaned is None else cleaned.policy)
        found[partition] = _CLEANED_SOURCES.write(sources, place.enter(partition))
    return found


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
        return CLEAN_METADATA.read_file(data)


CLEAN_METADATA = Record(
    "HoodieCleanMetadata",
    CleanMetadata,
    Field("startCleanTime", kinds.TEXT, null=False, needed="A clean needs the instant at which it started."),
    Field("timeTakenInMillis", kinds.COUNT, "time_taken_ms", null=False),
    Field("totalFilesDeleted", replace(kinds.COUNT, avro="int"), null=False),
    Field("earliestCommitToRetain", kinds.TEXT_OR_NONE, null=False, blank=""),
    Field("lastCompletedCommitTimestamp", kinds.TEXT_OR_NONE, null=False, default="", blank=""),
    Field("partitionMetadata", kinds.by_partition(nested(CLEANED_PARTITION)), "partitions", null=False),
    version(_CLEAN_VERSION),
    Field(
        "bootstrapPartitionMetadata",
        kinds.by_partition(only(_CLEANED_SOURCES, "deleted_files")),
        "sources",
        compose=_compose_sources,
    ),
    Field("extraMetadata", kinds.TEXT_MAP),
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
        return CLEAN_PLAN.read_file(data)


@dataclass(frozen=True, slots=True)
class _CleanFile:
    path: str | None
    is_source: bool = False


_EARLIEST_INSTANT = Record(
    "HoodieActionInstant",
    take_attributes,
    Field("timestamp", kinds.TEXT, "earliest_instant_to_retain", null=False),
    Field(
        "action",
        kinds.TEXT,
        "earliest_action",
        null=False,
        needed="A clean plan needs the action of the earliest instant to retain.",
    ),
    fixed("state", kinds.TEXT, "COMPLETED", null=False),
)
_CLEAN_FILE = Record(
    "HoodieCleanFileInfo",
    _CleanFile,
    Field("filePath", kinds.TEXT, "path"),
    Field("isBootstrapBaseFile", kinds.FLAG, "is_source"),
)


def _make_clean_plan(
    listed: Mapping[str, tuple[_CleanFile, ...]] | None = None,
    listed_by_name: Mapping[str, tuple[str, ...]] | None = None,
    **values: Any,
) -> CleanPlan:
    if not listed:
        return CleanPlan(files=listed_by_name or {}, **values)  # a plan of version 1, or one without files
    files, sources = {}, {}
    for partition, found in listed.items():
        files[partition] = tuple(find_file_name(each.path) for each in found if each.path and not each.is_source)
        if paths := tuple(each.path for each in found if each.path and each.is_source):
            sources[partition] = paths
    return CleanPlan(files=files, sources=sources, **values)


def _compose_clean_files(plan: CleanPlan, place: Place) -> dict[str, Any]:
    found = {}
    for partition, names in plan.files.items():
        inside = place.enter(partition)
        files = [_CleanFile(inside.locate(name)) for name in names]
        files += [_CleanFile(path, is_source=True) for path in plan.sources.get(partition, ())]
        found[partition] = [_CLEAN_FILE.write(each) for each in files]
    return found


CLEAN_PLAN = Record(
    "HoodieCleanerPlan",
    _make_clean_plan,
    part("earliestInstantToRetain", _EARLIEST_INSTANT, lambda plan: plan.earliest_instant_to_retain is not None),
    Field("lastCompletedCommitTimestamp", kinds.TEXT_OR_NONE, null=False, default="", blank=""),
    Field("policy", kinds.TEXT, null=False, needed="A clean plan needs its policy."),
    Field(
        "filesToBeDeletedPerPartition",
        kinds.by_partition(kinds.FILE_NAMES),
        "listed_by_name",
        compose=lambda *_: {},
    ),
    version(_CLEAN_VERSION),
    Field(
        "filePathsToBeDeletedPerPartition",
        kinds.by_partition(kinds.array(nested(_CLEAN_FILE))),
        "listed",
        compose=_compose_clean_files,
    ),
    Field("partitionsToBeDeleted", kinds.PARTITIONS, "partitions_to_delete"),
    Field("extraMetadata", kinds.TEXT_MAP),
)


# Rollback ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RolledBackInstant:
    """An instant that a rollback or restore undid."""

    time: str
    action: str


ROLLED_BACK_INSTANT = Record(
    "HoodieInstantInfo",
    RolledBackInstant,
    Field("commitTime", kinds.TEXT_OR_EMPTY, "time", null=False),
    Field("action", kinds.TEXT_OR_EMPTY, null=False),
)
ROLLED_BACK_INSTANTS = kinds.array(nested(ROLLED_BACK_INSTANT))


@dataclass(frozen=True, slots=True)
class RolledBackPartition:
    """What a rollback did in one partition; log files with their sizes in bytes."""

    deleted_files: tuple[str, ...]
    failed_files: tuple[str, ...]
    rollback_log_files: Mapping[str, int] = field(default_factory=dict)
    log_files_from_failed_commit: Mapping[str, int] = field(default_factory=dict)


ROLLED_BACK_PARTITION = Record(
    "HoodieRollbackPartitionMetadata",
    RolledBackPartition,
    partition_of_key(),
    Field("successDeleteFiles", kinds.LOCATED_FILES, "deleted_files", null=False),
    Field("failedDeleteFiles", kinds.LOCATED_FILES, "failed_files", null=False),
    Field("rollbackLogFiles", kinds.LOCATED_SIZES),
    Field("logFilesFromFailedCommit", kinds.LOCATED_SIZES),
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
        return ROLLBACK_METADATA.read_file(data)


ROLLBACK_METADATA = Record(
    "HoodieRollbackMetadata",
    RollbackMetadata,
    Field("startRollbackTime", kinds.TEXT, null=False, needed="A rollback needs the instant at which it started."),
    Field("timeTakenInMillis", kinds.COUNT, "time_taken_ms", null=False),
    Field("totalFilesDeleted", replace(kinds.COUNT, avro="int"), null=False),
    Field("commitsRollback", kinds.TEXTS, "commits_rolled_back", null=False),
    Field("partitionMetadata", kinds.by_partition(nested(ROLLED_BACK_PARTITION)), "partitions", null=False),
    version(_ROLLBACK_VERSION),
    Field("instantsRollback", ROLLED_BACK_INSTANTS, "instants", null=False, default=[]),
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


ROLLBACK_REQUEST = Record(
    "HoodieRollbackRequest",
    RollbackRequest,
    Field("partitionPath", kinds.PARTITION, null=False),
    Field("fileId", kinds.FILE_ID),
    Field("latestBaseInstant", kinds.TEXT_OR_EMPTY),
    Field("filesToBeDeleted", kinds.LOCATED_FILES, "files", null=False, default=[]),
    Field("logBlocksToBeDeleted", kinds.LOCATED_SIZES, "log_files"),
    inside="partition_path",
)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """A requested rollback (Hudi HoodieRollbackPlan): the instant it will undo, and how."""

    instant: RolledBackInstant | None = None
    requests: tuple[RollbackRequest, ...] = ()

    @classmethod
    def from_bytes(cls, data: bytes) -> RollbackPlan:
        """Parse a ``.rollback.requested`` file; an empty one says nothing."""
        return ROLLBACK_PLAN.read_file(data)


ROLLBACK_PLAN = Record(
    "HoodieRollbackPlan",
    RollbackPlan,
    Field(
        "instantToRollback",
        nested(ROLLED_BACK_INSTANT),
        "instant",
        needed="A rollback plan needs the instant that it rolls back.",
    ),
    Field("RollbackRequests", kinds.array(nested(ROLLBACK_REQUEST)), "requests"),
    version(_ROLLBACK_VERSION),
)
