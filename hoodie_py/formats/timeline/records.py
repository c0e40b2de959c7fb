"""Avro schemas to write the timeline's metadata records with (Hudi's org.apache.hudi.avro.model).

Field order, types, the order of union branches and defaults are those of the files that Java Hudi 1.2.0 writes.
Documentation and Java-only properties are left out; readers ignore them.

Typed access to the fields of a metadata record, decoded from Avro or JSON.

Each getter says what it returns for a missing or null field. A field of another type is an error. Paths are checked:
partitions must be under the table, and files become bare names even where Hudi wrote an absolute URI.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.names import check_bare, check_partition, find_file_name

_NAMESPACE = "org.apache.hudi.avro.model"
_REQUIRED: Final = object()


def _make_field(name: str, kind: Any, default: Any = _REQUIRED) -> dict[str, Any]:
    field = {"name": name, "type": kind}
    return field if default is _REQUIRED else field | {"default": default}


def _make_nullable(name: str, kind: Any) -> dict[str, Any]:
    return _make_field(name, ["null", kind], None)


def _make_nullables(kind: Any, *names: str) -> list[dict[str, Any]]:
    return [_make_nullable(name, kind) for name in names]


def _make_record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _make_array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _make_map(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


def _to_text(record: dict[str, Any]) -> str:
    return json.dumps({"namespace": _NAMESPACE} | record, separators=(",", ":"))


_VERSION = _make_field("version", ["int", "null"], 1)
_EXTRA_METADATA = _make_nullable("extraMetadata", _make_map("string"))

# Commits -------------------------------------------------------------------------------------------------------------

_WRITE_STAT = _make_record(
    "HoodieWriteStat",
    *_make_nullables("string", "fileId", "path", "prevCommit"),
    *_make_nullables("long", "numWrites", "numDeletes", "numUpdateWrites", "totalWriteBytes", "totalWriteErrors"),
    _make_nullable("partitionPath", "string"),
    *_make_nullables("long", "totalLogRecords", "totalLogFiles", "totalUpdatedRecordsCompacted", "numInserts"),
    *_make_nullables("long", "totalLogBlocks", "totalCorruptLogBlock", "totalRollbackBlocks", "fileSizeInBytes"),
    _make_nullable("logVersion", "int"),
    _make_nullable("logOffset", "long"),
    _make_nullable("baseFile", "string"),
    _make_nullable("logFiles", _make_array("string")),
    _make_nullable("cdcStats", _make_map("long")),
    _make_nullable("prevBaseFile", "string"),
    *_make_nullables("long", "minEventTime", "maxEventTime"),
    _make_nullable(
        "runtimeStats",
        _make_record(
            "HoodieRuntimeStats", *_make_nullables("long", "totalScanTime", "totalCreateTime", "totalUpsertTime")
        ),
    ),
    *_make_nullables("long", "totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted"),
    _make_nullable("tempPath", "string"),
    _make_nullable("numUpdates", "long"),
)
_COMMIT_FIELDS = (
    _make_nullable("partitionToWriteStats", _make_map(_make_array(_WRITE_STAT))),
    _make_nullable("compacted", "boolean"),
    _EXTRA_METADATA,
    _VERSION,
    _make_nullable("operationType", "string"),
)
COMMIT = _to_text(_make_record("HoodieCommitMetadata", *_COMMIT_FIELDS))
REPLACE_COMMIT = _to_text(
    _make_record(
        "HoodieReplaceCommitMetadata",
        *_COMMIT_FIELDS,
        _make_nullable("partitionToReplaceFileIds", _make_map(_make_array("string"))),
    )
)

REQUESTED_REPLACE = _to_text(
    _make_record("HoodieRequestedReplaceMetadata", _make_nullable("operationType", "string"), _EXTRA_METADATA, _VERSION)
)

# Clustering ----------------------------------------------------------------------------------------------------------

_CLUSTERING_SLICE = _make_record(
    "HoodieSliceInfo",
    _make_nullable("dataFilePath", "string"),
    _make_nullable("deltaFilePaths", _make_array("string")),
    _make_field("fileId", ["null", "string"]),
    *_make_nullables("string", "partitionPath", "bootstrapFilePath"),
    _VERSION,
)
_CLUSTERING_GROUP = _make_record(
    "HoodieClusteringGroup",
    _make_nullable("slices", _make_array(_CLUSTERING_SLICE)),
    _make_nullable("metrics", _make_map("double")),
    _make_field("numOutputFileGroups", ["int", "null"], 1),
    _EXTRA_METADATA,
    _VERSION,
)
_CLUSTERING_STRATEGY = _make_record(
    "HoodieClusteringStrategy",
    _make_nullable("strategyClassName", "string"),
    _make_nullable("strategyParams", _make_map("string")),
    _VERSION,
)
CLUSTERING_PLAN = _to_text(
    _make_record(
        "HoodieRequestedReplaceMetadata",
        _make_nullable("operationType", "string"),
        _make_nullable(
            "clusteringPlan",
            _make_record(
                "HoodieClusteringPlan",
                _make_nullable("inputGroups", _make_array(_CLUSTERING_GROUP)),
                _make_nullable("strategy", _CLUSTERING_STRATEGY),
                _EXTRA_METADATA,
                _VERSION,
                _make_nullable("preserveHoodieMetadata", "boolean"),
                _make_nullable("missingSchedulePartitions", _make_array("string")),
            ),
        ),
        _EXTRA_METADATA,
        _VERSION,
    )
)

# Compaction ----------------------------------------------------------------------------------------------------------

_COMPACTION_OPERATION = _make_record(
    "HoodieCompactionOperation",
    _make_field("baseInstantTime", ["null", "string"]),
    _make_nullable("deltaFilePaths", _make_array("string")),
    _make_nullable("dataFilePath", "string"),
    _make_field("fileId", ["null", "string"]),
    _make_nullable("partitionPath", "string"),
    _make_nullable("metrics", _make_map("double")),
    _make_nullable("bootstrapFilePath", "string"),
)
_COMPACTION_STRATEGY = _make_record(
    "HoodieCompactionStrategy",
    _make_nullable("compactorClassName", "string"),
    _make_nullable("strategyParams", _make_map("string")),
    _VERSION,
)
COMPACTION_PLAN = _to_text(
    _make_record(
        "HoodieCompactionPlan",
        _make_nullable("operations", _make_array(_COMPACTION_OPERATION)),
        _EXTRA_METADATA,
        _VERSION,
        _make_nullable("strategy", _COMPACTION_STRATEGY),
        _make_field("preserveHoodieMetadata", ["boolean", "null"], default=False),
        _make_nullable("missingSchedulePartitions", _make_array("string")),
    )
)

# Clean ---------------------------------------------------------------------------------------------------------------

_CLEAN_INSTANT = _make_record(
    "HoodieActionInstant",
    _make_field("timestamp", "string"),
    _make_field("action", "string"),
    _make_field("state", "string"),
)
_CLEAN_FILE = _make_record(
    "HoodieCleanFileInfo", _make_nullable("filePath", "string"), _make_nullable("isBootstrapBaseFile", "boolean")
)
CLEAN_PLAN = _to_text(
    _make_record(
        "HoodieCleanerPlan",
        _make_nullable("earliestInstantToRetain", _CLEAN_INSTANT),
        _make_field("lastCompletedCommitTimestamp", "string", ""),
        _make_field("policy", "string"),
        _make_nullable("filesToBeDeletedPerPartition", _make_map(_make_array("string"))),
        _VERSION,
        _make_nullable("filePathsToBeDeletedPerPartition", _make_map(_make_array(_CLEAN_FILE))),
        _make_nullable("partitionsToBeDeleted", _make_array("string")),
        _EXTRA_METADATA,
    )
)
_CLEANED_PARTITION = _make_record(
    "HoodieCleanPartitionMetadata",
    _make_field("partitionPath", "string"),
    _make_field("policy", "string"),
    _make_field("deletePathPatterns", _make_array("string")),
    _make_field("successDeleteFiles", _make_array("string")),
    _make_field("failedDeleteFiles", _make_array("string")),
    _make_nullable("isPartitionDeleted", "boolean"),
)
CLEAN_METADATA = _to_text(
    _make_record(
        "HoodieCleanMetadata",
        _make_field("startCleanTime", "string"),
        _make_field("timeTakenInMillis", "long"),
        _make_field("totalFilesDeleted", "int"),
        _make_field("earliestCommitToRetain", "string"),
        _make_field("lastCompletedCommitTimestamp", "string", ""),
        _make_field("partitionMetadata", _make_map(_CLEANED_PARTITION)),
        _VERSION,
        _make_nullable("bootstrapPartitionMetadata", _make_map("HoodieCleanPartitionMetadata")),
        _EXTRA_METADATA,
    )
)

# Rollback ------------------------------------------------------------------------------------------------------------

_ROLLED_BACK_INSTANT = _make_record(
    "HoodieInstantInfo", _make_field("commitTime", "string"), _make_field("action", "string")
)
_ROLLBACK_REQUEST = _make_record(
    "HoodieRollbackRequest",
    _make_field("partitionPath", "string"),
    *_make_nullables("string", "fileId", "latestBaseInstant"),
    _make_field("filesToBeDeleted", _make_array("string"), []),
    _make_nullable("logBlocksToBeDeleted", _make_map("long")),
)
ROLLBACK_PLAN = _to_text(
    _make_record(
        "HoodieRollbackPlan",
        _make_nullable("instantToRollback", _ROLLED_BACK_INSTANT),
        _make_nullable("RollbackRequests", _make_array(_ROLLBACK_REQUEST)),
        _VERSION,
    )
)
_ROLLED_BACK_PARTITION = _make_record(
    "HoodieRollbackPartitionMetadata",
    _make_field("partitionPath", "string"),
    _make_field("successDeleteFiles", _make_array("string")),
    _make_field("failedDeleteFiles", _make_array("string")),
    *_make_nullables(_make_map("long"), "rollbackLogFiles", "logFilesFromFailedCommit"),
)
ROLLBACK_METADATA = _to_text(
    _make_record(
        "HoodieRollbackMetadata",
        _make_field("startRollbackTime", "string"),
        _make_field("timeTakenInMillis", "long"),
        _make_field("totalFilesDeleted", "int"),
        _make_field("commitsRollback", _make_array("string")),
        _make_field("partitionMetadata", _make_map(_ROLLED_BACK_PARTITION)),
        _VERSION,
        _make_field("instantsRollback", _make_array(_ROLLED_BACK_INSTANT), []),
    )
)

# Savepoint, restore --------------------------------------------------------------------------------------------------

_SAVED_PARTITION = _make_record(
    "HoodieSavepointPartitionMetadata",
    _make_field("partitionPath", "string"),
    _make_field("savepointDataFile", _make_array("string")),
)
SAVEPOINT_METADATA = _to_text(
    _make_record(
        "HoodieSavepointMetadata",
        _make_field("savepointedBy", "string"),
        _make_field("savepointedAt", "long"),
        _make_field("comments", "string"),
        _make_field("partitionMetadata", _make_map(_SAVED_PARTITION)),
        _VERSION,
    )
)
RESTORE_PLAN = _to_text(
    _make_record(
        "HoodieRestorePlan",
        _make_field("instantsToRollback", _make_array(_ROLLED_BACK_INSTANT), []),
        _make_field("version", ["int", "null"], 2),
        _make_nullable("savepointToRestoreTimestamp", "string"),
    )
)
_RESTORED_BY = json.loads(ROLLBACK_METADATA)
del _RESTORED_BY["namespace"]
RESTORE_METADATA = _to_text(
    _make_record(
        "HoodieRestoreMetadata",
        _make_field("startRestoreTime", "string"),
        _make_field("timeTakenInMillis", "long"),
        _make_field("instantsToRollback", _make_array("string")),
        _make_field("hoodieRestoreMetadata", _make_map(_make_array(["null", _RESTORED_BY]))),
        _VERSION,
        _make_field("restoreInstantInfo", _make_array("HoodieInstantInfo"), []),
    )
)


T = TypeVar("T")


class Fields:
    """A record's fields by name."""

    __slots__ = ("_record",)

    def __init__(self, record: Any) -> None:
        if not isinstance(record, Mapping):
            raise CorruptFileError("A metadata value should be a record.")
        self._record = record

    def _get_typed(self, name: str, kind: type[T] | tuple[type[T], ...]) -> T | None:
        value = self._record.get(name)
        if value is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise CorruptFileError(f"Metadata field {name} has an unexpected type.", type=type(value).__name__)
        return value

    def has(self, name: str) -> bool:
        """Return whether the record has the field and it is not null."""
        return self._record.get(name) is not None

    def get(self, name: str) -> Any:
        """Return the field unchanged; None when missing."""
        return self._record.get(name)

    def get_text(self, name: str) -> str | None:
        """Return a string field; None when missing."""
        return self._get_typed(name, str)

    def get_bytes(self, name: str) -> bytes | None:
        """Return a field of bytes; None when missing."""
        return self._get_typed(name, bytes)

    def get_number(self, name: str) -> int | None:
        """Return a whole-number field; None when missing."""
        return self._get_typed(name, int)

    def get_count(self, name: str) -> int:
        """Return a whole-number field; 0 when missing."""
        return self._get_typed(name, int) or 0

    def get_flag(self, name: str) -> bool:
        """Return a boolean field; false when missing."""
        return self._get_typed(name, bool) or False

    def get_partition(self, name: str = "partitionPath") -> str:
        """Return a partition path; "" when missing."""
        return check_partition(self.get_text(name) or "")

    def get_file_id(self) -> str:
        """Return the id of a file group; "" when missing."""
        return check_bare(self.get_text("fileId") or "")

    def get_file_name(self, name: str) -> str | None:
        """Return the file name of a path or URI; None when missing or empty."""
        value = self.get_text(name)
        return find_file_name(value) if value else None

    def get_record(self, name: str) -> Fields | None:
        """Return a nested record; None when missing."""
        return Fields(self._record[name]) if self.has(name) else None

    def get_items(self, name: str, convert: Callable[[Any], T]) -> tuple[T, ...]:
        """Return an array field with its items converted; empty when missing."""
        return tuple(convert(item) for item in self._get_typed(name, list) or ())

    def get_texts(self, name: str) -> tuple[str, ...]:
        """Return an array of strings; empty when missing."""
        return self.get_items(name, expect_text)

    def get_file_names(self, name: str) -> tuple[str, ...]:
        """Return the file names of an array of paths or URIs; empty when missing."""
        return self.get_items(name, _expect_file_name)

    def get_mapping(self, name: str, convert: Callable[[Any], T]) -> dict[str, T]:
        """Return a map field with its values converted; empty when missing."""
        found = self._get_typed(name, dict) or {}
        return {expect_text(key): convert(value) for key, value in found.items()}

    def get_by_partition(self, name: str, convert: Callable[[Any], T]) -> dict[str, T]:
        """Return a map field whose keys are paths relative to the table's base path, mostly of partitions."""
        return {check_partition(key): value for key, value in self.get_mapping(name, convert).items()}


def expect_text(value: Any) -> str:
    """Return ``value`` if it is a string."""
    if not isinstance(value, str):
        raise CorruptFileError("A metadata value should be a string.", type=type(value).__name__)
    return value


def expect_file_id(value: Any) -> str:
    """Return ``value`` if it is a string that can be the id of a file group."""
    return check_bare(expect_text(value))


def _expect_file_name(value: Any) -> str:
    return find_file_name(expect_text(value))


def expect_file_names(value: Any) -> tuple[str, ...]:
    """Return the file names of a list of paths or URIs; null counts as an empty one."""
    return tuple(map(_expect_file_name, expect_list(value)))


def expect_number(value: Any) -> int:
    """Return ``value`` if it is a whole number."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise CorruptFileError("A metadata value should be a whole number.", type=type(value).__name__)
    return value


def expect_list(value: Any) -> list[Any]:
    """Return ``value`` if it is a list; null counts as an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise CorruptFileError("A metadata value should be a list.", type=type(value).__name__)
    return value
