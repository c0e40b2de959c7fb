"""Avro schemas of the timeline's metadata records (Hudi's org.apache.hudi.avro.model), to write them with.

Field order, types, the order of union branches and defaults are those of the files that Java Hudi 1.2.0 writes;
documentation and Java-only properties are left out, which no reader minds.
"""

from __future__ import annotations

import json
from typing import Any, Final

_NAMESPACE = "org.apache.hudi.avro.model"
_REQUIRED: Final = object()


def _field(name: str, kind: Any, default: Any = _REQUIRED) -> dict[str, Any]:
    field = {"name": name, "type": kind}
    return field if default is _REQUIRED else field | {"default": default}


def _nullable(name: str, kind: Any) -> dict[str, Any]:
    return _field(name, ["null", kind], None)


def _nullables(kind: Any, *names: str) -> list[dict[str, Any]]:
    return [_nullable(name, kind) for name in names]


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _map(values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values}


def _text(record: dict[str, Any]) -> str:
    return json.dumps({"namespace": _NAMESPACE} | record, separators=(",", ":"))


_VERSION = _field("version", ["int", "null"], 1)
_EXTRA_METADATA = _nullable("extraMetadata", _map("string"))

# Commits -------------------------------------------------------------------------------------------------------------

_WRITE_STAT = _record(
    "HoodieWriteStat",
    *_nullables("string", "fileId", "path", "prevCommit"),
    *_nullables("long", "numWrites", "numDeletes", "numUpdateWrites", "totalWriteBytes", "totalWriteErrors"),
    _nullable("partitionPath", "string"),
    *_nullables("long", "totalLogRecords", "totalLogFiles", "totalUpdatedRecordsCompacted", "numInserts"),
    *_nullables("long", "totalLogBlocks", "totalCorruptLogBlock", "totalRollbackBlocks", "fileSizeInBytes"),
    _nullable("logVersion", "int"),
    _nullable("logOffset", "long"),
    _nullable("baseFile", "string"),
    _nullable("logFiles", _array("string")),
    _nullable("cdcStats", _map("long")),
    _nullable("prevBaseFile", "string"),
    *_nullables("long", "minEventTime", "maxEventTime"),
    _nullable(
        "runtimeStats",
        _record("HoodieRuntimeStats", *_nullables("long", "totalScanTime", "totalCreateTime", "totalUpsertTime")),
    ),
    *_nullables("long", "totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted"),
    _nullable("tempPath", "string"),
    _nullable("numUpdates", "long"),
)
_COMMIT_FIELDS = (
    _nullable("partitionToWriteStats", _map(_array(_WRITE_STAT))),
    _nullable("compacted", "boolean"),
    _EXTRA_METADATA,
    _VERSION,
    _nullable("operationType", "string"),
)
COMMIT = _text(_record("HoodieCommitMetadata", *_COMMIT_FIELDS))
REPLACE_COMMIT = _text(
    _record(
        "HoodieReplaceCommitMetadata",
        *_COMMIT_FIELDS,
        _nullable("partitionToReplaceFileIds", _map(_array("string"))),
    )
)

REQUESTED_REPLACE = _text(
    _record("HoodieRequestedReplaceMetadata", _nullable("operationType", "string"), _EXTRA_METADATA, _VERSION)
)

# Compaction ----------------------------------------------------------------------------------------------------------

_COMPACTION_OPERATION = _record(
    "HoodieCompactionOperation",
    _field("baseInstantTime", ["null", "string"]),
    _nullable("deltaFilePaths", _array("string")),
    _nullable("dataFilePath", "string"),
    _field("fileId", ["null", "string"]),
    _nullable("partitionPath", "string"),
    _nullable("metrics", _map("double")),
    _nullable("bootstrapFilePath", "string"),
)
_COMPACTION_STRATEGY = _record(
    "HoodieCompactionStrategy",
    _nullable("compactorClassName", "string"),
    _nullable("strategyParams", _map("string")),
    _VERSION,
)
COMPACTION_PLAN = _text(
    _record(
        "HoodieCompactionPlan",
        _nullable("operations", _array(_COMPACTION_OPERATION)),
        _EXTRA_METADATA,
        _VERSION,
        _nullable("strategy", _COMPACTION_STRATEGY),
        _field("preserveHoodieMetadata", ["boolean", "null"], default=False),
        _nullable("missingSchedulePartitions", _array("string")),
    )
)

# Clean ---------------------------------------------------------------------------------------------------------------

_CLEAN_INSTANT = _record(
    "HoodieActionInstant", _field("timestamp", "string"), _field("action", "string"), _field("state", "string")
)
_CLEAN_FILE = _record(
    "HoodieCleanFileInfo", _nullable("filePath", "string"), _nullable("isBootstrapBaseFile", "boolean")
)
CLEAN_PLAN = _text(
    _record(
        "HoodieCleanerPlan",
        _nullable("earliestInstantToRetain", _CLEAN_INSTANT),
        _field("lastCompletedCommitTimestamp", "string", ""),
        _field("policy", "string"),
        _nullable("filesToBeDeletedPerPartition", _map(_array("string"))),
        _VERSION,
        _nullable("filePathsToBeDeletedPerPartition", _map(_array(_CLEAN_FILE))),
        _nullable("partitionsToBeDeleted", _array("string")),
        _EXTRA_METADATA,
    )
)
_CLEANED_PARTITION = _record(
    "HoodieCleanPartitionMetadata",
    _field("partitionPath", "string"),
    _field("policy", "string"),
    _field("deletePathPatterns", _array("string")),
    _field("successDeleteFiles", _array("string")),
    _field("failedDeleteFiles", _array("string")),
    _nullable("isPartitionDeleted", "boolean"),
)
CLEAN_METADATA = _text(
    _record(
        "HoodieCleanMetadata",
        _field("startCleanTime", "string"),
        _field("timeTakenInMillis", "long"),
        _field("totalFilesDeleted", "int"),
        _field("earliestCommitToRetain", "string"),
        _field("lastCompletedCommitTimestamp", "string", ""),
        _field("partitionMetadata", _map(_CLEANED_PARTITION)),
        _VERSION,
        _nullable("bootstrapPartitionMetadata", _map("HoodieCleanPartitionMetadata")),
        _EXTRA_METADATA,
    )
)

# Rollback ------------------------------------------------------------------------------------------------------------

_ROLLED_BACK_INSTANT = _record("HoodieInstantInfo", _field("commitTime", "string"), _field("action", "string"))
_ROLLBACK_REQUEST = _record(
    "HoodieRollbackRequest",
    _field("partitionPath", "string"),
    *_nullables("string", "fileId", "latestBaseInstant"),
    _field("filesToBeDeleted", _array("string"), []),
    _nullable("logBlocksToBeDeleted", _map("long")),
)
ROLLBACK_PLAN = _text(
    _record(
        "HoodieRollbackPlan",
        _nullable("instantToRollback", _ROLLED_BACK_INSTANT),
        _nullable("RollbackRequests", _array(_ROLLBACK_REQUEST)),
        _VERSION,
    )
)
_ROLLED_BACK_PARTITION = _record(
    "HoodieRollbackPartitionMetadata",
    _field("partitionPath", "string"),
    _field("successDeleteFiles", _array("string")),
    _field("failedDeleteFiles", _array("string")),
    *_nullables(_map("long"), "rollbackLogFiles", "logFilesFromFailedCommit"),
)
ROLLBACK_METADATA = _text(
    _record(
        "HoodieRollbackMetadata",
        _field("startRollbackTime", "string"),
        _field("timeTakenInMillis", "long"),
        _field("totalFilesDeleted", "int"),
        _field("commitsRollback", _array("string")),
        _field("partitionMetadata", _map(_ROLLED_BACK_PARTITION)),
        _VERSION,
        _field("instantsRollback", _array(_ROLLED_BACK_INSTANT), []),
    )
)
