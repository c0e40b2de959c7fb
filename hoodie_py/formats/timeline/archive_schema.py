"""The Avro schema of entries in archive files of timeline layout 1 (Hudi ``HoodieArchivedMetaEntry``).

Its parts are the schemas of the timeline's files. Avro allows one definition of a name; further uses are the name.
"""

from __future__ import annotations

import json
from typing import Any

from hoodie_py.formats.timeline import schemas

_JAVA_STRING = {"avro.java.string": "String"}
_STRINGS = {"type": "map", "values": "string"}


def _make_record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_make_field(*each) for each in fields.items()]}


def _make_field(name: str, kind: Any) -> dict[str, Any]:
    """Return a field; a list of a type and a default is a required field."""
    if isinstance(kind, list):
        return {"name": name, "type": kind[0], **({"default": kind[1]} if len(kind) > 1 else {})}
    if name == "version":
        return {"name": name, "type": ["int", "null"], "default": 1}
    return {"name": name, "type": ["null", kind], "default": None}


def _make_array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_COMPACTION_STAT = _make_record(
    "HoodieCompactionWriteStat",
    partitionPath="string",
    totalLogRecords="long",
    totalLogFiles="long",
    totalUpdatedRecordsCompacted="long",
    hoodieWriteStat="HoodieWriteStat",
)
_COMPACTION_METADATA = _make_record(
    "HoodieCompactionMetadata",
    partitionToCompactionWriteStats=[["null", {"type": "map", "values": _make_array(_COMPACTION_STAT)}]],
)
_SAVEPOINT_PARTITION = _make_record(
    "HoodieSavepointPartitionMetadata", partitionPath=["string"], savepointDataFile=[_make_array("string")]
)
_SAVEPOINT = _make_record(
    "HoodieSavepointMetadata",
    savepointedBy=["string"],
    savepointedAt=["long"],
    comments=["string"],
    partitionMetadata=[{"type": "map", "values": _SAVEPOINT_PARTITION}],
    version="int",
)
_SLICE = _make_record(
    "HoodieSliceInfo",
    dataFilePath="string",
    deltaFilePaths=_make_array("string"),
    fileId=[["null", "string"]],
    partitionPath="string",
    bootstrapFilePath="string",
    version="int",
)
_GROUP = _make_record(
    "HoodieClusteringGroup",
    slices=_make_array(_SLICE),
    metrics={"type": "map", "values": "double"},
    numOutputFileGroups=[["int", "null"], 1],
    extraMetadata=_STRINGS,
    version="int",
)
_CLUSTERING_STRATEGY = _make_record(
    "HoodieClusteringStrategy", strategyClassName="string", strategyParams=_STRINGS, version="int"
)
_CLUSTERING_PLAN = _make_record(
    "HoodieClusteringPlan",
    inputGroups=_make_array(_GROUP),
    strategy=_CLUSTERING_STRATEGY,
    extraMetadata=_STRINGS,
    version="int",
    preserveHoodieMetadata="boolean",
    missingSchedulePartitions=_make_array("string"),
)
_REQUESTED_REPLACE = _make_record(
    "HoodieRequestedReplaceMetadata",
    operationType="string",
    clusteringPlan=_CLUSTERING_PLAN,
    extraMetadata=_STRINGS,
    version="int",
)
_INDEX_PARTITION = _make_record(
    "HoodieIndexPartitionInfo",
    version="int",
    metadataPartitionPath="string",
    indexUptoInstant="string",
    extraMetadata=_STRINGS,
)
_INDEX_COMMIT = _make_record(
    "HoodieIndexCommitMetadata",
    version="int",
    operationType="string",
    indexPartitionInfos=_make_array(_INDEX_PARTITION),
)

_FIELDS: dict[str, Any] = {
    "hoodieCommitMetadata": json.loads(schemas.COMMIT),
    "hoodieCleanMetadata": json.loads(schemas.CLEAN_METADATA),
    "hoodieCompactionMetadata": _COMPACTION_METADATA,
    "hoodieRollbackMetadata": json.loads(schemas.ROLLBACK_METADATA),
    "hoodieSavePointMetadata": _SAVEPOINT,
    "commitTime": "string",
    "actionType": "string",
    "version": None,
    "hoodieCompactionPlan": json.loads(schemas.COMPACTION_PLAN),
    "hoodieCleanerPlan": json.loads(schemas.CLEAN_PLAN),
    "actionState": "string",
    "hoodieReplaceCommitMetadata": json.loads(schemas.REPLACE_COMMIT),
    "hoodieRequestedReplaceMetadata": _REQUESTED_REPLACE,
    "HoodieInflightReplaceMetadata": "HoodieCommitMetadata",
    "hoodieIndexCommitMetadata": _INDEX_COMMIT,
    "stateTransitionTime": "string",
}


def _make_entry() -> dict[str, Any]:
    fields = [
        {"name": name, "type": ["int", "null"], "default": 1}
        if kind is None
        else {"name": name, "type": ["null", kind], "default": None}
        for name, kind in _FIELDS.items()
    ]
    record = {"type": "record", "name": "HoodieArchivedMetaEntry", "namespace": "org.apache.hudi.avro.model"}
    known: set[str] = set()
    return {**record, "fields": [each | {"type": _define_once(each["type"], known)} for each in fields]}


def _define_once(kind: Any, known: set[str]) -> Any:
    """Return a type whose repeated records are names; all records are of one namespace."""
    if isinstance(kind, list):
        return [_define_once(each, known) for each in kind]
    if not isinstance(kind, dict):
        return kind
    if kind["type"] != "record":
        return {key: _define_once(each, known) if key in ("items", "values") else each for key, each in kind.items()}
    if kind["name"] in known:
        return kind["name"]
    known.add(kind["name"])
    fields = [each | {"type": _define_once(each["type"], known)} for each in kind["fields"]]
    return {"type": "record", "name": kind["name"], "fields": fields}


def _to_java(kind: Any) -> Any:
    """Return a type whose texts are Java's: without that property Java reads another class, and fails."""
    if isinstance(kind, list):
        return [_to_java(each) for each in kind]
    if isinstance(kind, str):
        return {"type": "string"} | _JAVA_STRING if kind == "string" else kind
    if kind["type"] == "record":
        return kind | {"fields": [each | {"type": _to_java(each["type"])} for each in kind["fields"]]}
    found = {key: _to_java(each) if key in ("items", "values") else each for key, each in kind.items()}
    return found | _JAVA_STRING if kind["type"] == "map" else found


ENTRY: dict[str, Any] = _make_entry()
ENTRY_TEXT = json.dumps(_to_java(ENTRY), separators=(",", ":"))
