"""Write archive files of timeline layout 1: one entry for each state of an instant (Hudi
``MetadataConversionUtils.createMetaWrapper``, ``TimelineArchiverV1``).

``archive`` reads these files. An entry has the decoded content of the state's file in the field for its kind:

    action                state        field                            content
    commit, deltacommit   all          hoodieCommitMetadata             commit metadata; none of an empty file
    replacecommit         completed    hoodieReplaceCommitMetadata      the same
                          inflight     HoodieInflightReplaceMetadata    a workload profile
                          requested    hoodieRequestedReplaceMetadata   the plan of a clustering
    compaction            requested    hoodieCompactionPlan             the plan; ``logcompaction`` alike
    clean                 completed    hoodieCleanMetadata              what was removed
                          others       hoodieCleanerPlan                the plan
    rollback              completed    hoodieRollbackMetadata           what was undone
    savepoint             completed    hoodieSavePointMetadata          what stays

Instants are also converted between the layouts (Hudi ``LegacyArchivedMetaEntryReader``). Layout 1 stores an entry for
each state of an instant, with its decoded content. Layout 2 stores one row for an instant, with the bytes of its
completed file and of its plan. Hudi makes rows without plans; here they have plans.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.avro.container import encode_record, is_container, read_single, write_single
from hoodie_py.formats.log.framing import BlockType, HeaderKey, encode_block
from hoodie_py.formats.timeline import kinds
from hoodie_py.formats.timeline.archive import STATE_FIELDS, ArchivedInstant
from hoodie_py.formats.timeline.commit_metadata import COMMIT as COMMIT_METADATA
from hoodie_py.formats.timeline.commit_metadata import REPLACE_COMMIT as REPLACE_METADATA
from hoodie_py.formats.timeline.commit_metadata import WRITE_STAT, CommitMetadata, parse_json
from hoodie_py.formats.timeline.instants import (
    CLEAN,
    CLUSTERING,
    COMMIT,
    COMPACTION,
    COMPLETED,
    COMPLETED_ACTION,
    DELTA_COMMIT,
    INFLIGHT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    REQUESTED,
    ROLLBACK,
    SAVEPOINT,
    Instant,
)
from hoodie_py.formats.timeline.plans import CLEAN_METADATA, CLEAN_PLAN, COMPACTION_PLAN, ROLLBACK_METADATA
from hoodie_py.formats.timeline.records import REQUIRED, Field, Record, nested, take_attributes, version
from hoodie_py.formats.timeline.replace_plan import CLUSTERING_PLAN
from hoodie_py.formats.timeline.savepoints import SAVEPOINT_METADATA
from hoodie_py.formats.timeline.writers import write_commit_metadata

_BLOCK_VERSION = 3
_COMMIT_FIELD, _REPLACE_FIELD = "hoodieCommitMetadata", "hoodieReplaceCommitMetadata"
_FIELDS = {
    **{(action, state): _COMMIT_FIELD for action in (COMMIT, DELTA_COMMIT) for state in (INFLIGHT, COMPLETED)},
    **{(action, COMPLETED): _REPLACE_FIELD for action in (REPLACE_COMMIT, CLUSTERING)},
    **{(action, INFLIGHT): "HoodieInflightReplaceMetadata" for action in (REPLACE_COMMIT, CLUSTERING)},
    **{(action, REQUESTED): "hoodieRequestedReplaceMetadata" for action in (REPLACE_COMMIT, CLUSTERING)},
    **{(action, REQUESTED): "hoodieCompactionPlan" for action in (COMPACTION, LOG_COMPACTION)},
    (CLEAN, COMPLETED): "hoodieCleanMetadata",
    (CLEAN, INFLIGHT): "hoodieCleanerPlan",
    (CLEAN, REQUESTED): "hoodieCleanerPlan",
    (ROLLBACK, COMPLETED): "hoodieRollbackMetadata",
    (SAVEPOINT, COMPLETED): "hoodieSavePointMetadata",
}
_PLAIN: dict[str, tuple[type, ...]] = {
    "string": (str,), "int": (int,), "long": (int,), "double": (float, int), "boolean": (bool,), "bytes": (bytes,),
}  # fmt: skip


# Java's archives contain these records. They are declared for the schema alone: nothing here reads or writes them.
_COMPACTION_STAT = Record(
    "HoodieCompactionWriteStat",
    take_attributes,
    Field("partitionPath", kinds.TEXT),
    Field("totalLogRecords", kinds.LONG),
    Field("totalLogFiles", kinds.LONG),
    Field("totalUpdatedRecordsCompacted", kinds.LONG),
    Field("hoodieWriteStat", nested(WRITE_STAT)),
)
_COMPACTION_METADATA = Record(
    "HoodieCompactionMetadata",
    take_attributes,
    Field("partitionToCompactionWriteStats", kinds.mapping(kinds.array(nested(_COMPACTION_STAT))), default=REQUIRED),
)
_INDEX_PARTITION = Record(
    "HoodieIndexPartitionInfo",
    take_attributes,
    version(1),
    Field("metadataPartitionPath", kinds.TEXT),
    Field("indexUptoInstant", kinds.TEXT),
    Field("extraMetadata", kinds.TEXT_MAP),
)
_INDEX_COMMIT = Record(
    "HoodieIndexCommitMetadata",
    take_attributes,
    version(1),
    Field("operationType", kinds.TEXT),
    Field("indexPartitionInfos", kinds.array(nested(_INDEX_PARTITION))),
)
ENTRY = Record(
    "HoodieArchivedMetaEntry",
    take_attributes,
    Field(_COMMIT_FIELD, nested(COMMIT_METADATA)),
    Field("hoodieCleanMetadata", nested(CLEAN_METADATA)),
    Field("hoodieCompactionMetadata", nested(_COMPACTION_METADATA)),
    Field("hoodieRollbackMetadata", nested(ROLLBACK_METADATA)),
    Field("hoodieSavePointMetadata", nested(SAVEPOINT_METADATA)),
    STATE_FIELDS["commitTime"],
    STATE_FIELDS["actionType"],
    version(1),
    Field("hoodieCompactionPlan", nested(COMPACTION_PLAN)),
    Field("hoodieCleanerPlan", nested(CLEAN_PLAN)),
    STATE_FIELDS["actionState"],
    Field(_REPLACE_FIELD, nested(REPLACE_METADATA)),
    Field("hoodieRequestedReplaceMetadata", nested(CLUSTERING_PLAN)),
    Field("HoodieInflightReplaceMetadata", nested(COMMIT_METADATA)),
    Field("hoodieIndexCommitMetadata", nested(_INDEX_COMMIT)),
    Field("stateTransitionTime", kinds.TEXT),
)


def needs_content(instant: Instant) -> bool:
    """Whether the entry of a state has the content of a file."""
    return (instant.action, instant.state) in _FIELDS


def make_entry(instant: Instant, transition_time: str, content: bytes) -> dict[str, Any]:
    """Return the entry of a state of an instant.

    ``transition_time`` is when the state's file was written. ``content`` is that file, or the plan of a clean; empty
    for a state without content.

    Raises:
        CorruptFileError: the content is damaged, or of another kind.
    """
    entry = {each.name: each.default for each in ENTRY.fields}
    entry |= {
        "commitTime": instant.request_time,
        "actionType": instant.action,
        "actionState": instant.state.upper(),
        "stateTransitionTime": transition_time,
    }
    name = _FIELDS.get((instant.action, instant.state))
    if name is not None and content:
        record = read_single(content) if is_container(content) else parse_json(content)
        (declared,) = (each.kind.avro for each in ENTRY.fields if each.name == name)
        entry[name] = _fit(record, declared.schema, name)
    return entry


def fit_record(record: Any, declared: Record[Any]) -> Any:
    """Return a decoded record with exactly the declared fields; fields that older releases lack get their defaults.

    Raises:
        CorruptFileError: a value of another kind.
        UnsupportedFeatureError: null where the schema has none.
    """
    return _fit(record, declared.schema, declared.name)


def encode_archive_log(entries: Iterable[Mapping[str, Any]], block_records: int) -> bytes:
    """Encode an archive file; each block has ``block_records`` entries."""
    bodies = [encode_record(entry, ENTRY.java_text) for entry in entries]
    starts = range(0, len(bodies), block_records)
    return b"".join(_encode_entries(bodies[start : start + block_records]) for start in starts)


def make_archive_file_name(number: int) -> str:
    """Return the name of an archive file; a greater number is newer."""
    return f".commits_.archive.{number}_1-0-1"


def _encode_entries(bodies: Sequence[bytes]) -> bytes:
    content = struct.pack(">ii", _BLOCK_VERSION, len(bodies))
    content += b"".join(struct.pack(">i", len(body)) + body for body in bodies)
    return encode_block(BlockType.AVRO_DATA, {HeaderKey.SCHEMA: ENTRY.java_text}, content)


def _fit(value: Any, kind: Any, name: str) -> Any:
    """Return a value with exactly the fields of a type; fields that it lacks get their defaults.

    Raises:
        CorruptFileError: a value of another kind.
        UnsupportedFeatureError: null where the type has none.
    """
    if isinstance(kind, list):
        if value is None and "null" in kind:
            return None
        kind = next(each for each in kind if each != "null")
    if value is None:
        raise UnsupportedFeatureError(f"A timeline file has no value for {name}, and the archive needs one.")
    if isinstance(kind, str):
        if not isinstance(value, _PLAIN[kind]) or (isinstance(value, bool) and kind != "boolean"):
            raise CorruptFileError(f"Metadata field {name} has an unexpected type.", type=type(value).__name__)
        return value
    if kind["type"] == "array":
        if not isinstance(value, list | tuple):
            raise CorruptFileError(f"Metadata field {name} is not a list.")
        return [_fit(each, kind["items"], name) for each in value]
    if not isinstance(value, Mapping):
        raise CorruptFileError(f"Metadata field {name} is not a record.")
    if kind["type"] == "map":  # Java's maps may have null values, Avro's may not
        return {key: _fit(each, kind["values"], name) for key, each in value.items() if each is not None}
    return {
        each["name"]: _fit(value.get(each["name"], each.get("default")), each["type"], each["name"])
        for each in kind["fields"]
    }


_LAYOUT = 2
_COMMITS = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata")
_RESULTS: dict[str, Record[Any]] = {
    "hoodieCleanMetadata": CLEAN_METADATA,
    "hoodieRollbackMetadata": ROLLBACK_METADATA,
    "hoodieSavePointMetadata": SAVEPOINT_METADATA,
}
_PLANS: dict[str, Record[Any]] = {
    "hoodieCompactionPlan": COMPACTION_PLAN,
    "hoodieCleanerPlan": CLEAN_PLAN,
    "hoodieRequestedReplaceMetadata": CLUSTERING_PLAN,
}
_PLANNED = {COMMIT: COMPACTION, DELTA_COMMIT: LOG_COMPACTION}


def make_archived_instants(entries: Iterable[Mapping[str, Any]]) -> list[ArchivedInstant]:
    """Return the completed instants among entries of layout 1, oldest first, as rows of layout 2.

    Raises:
        CorruptFileError: an entry is damaged.
    """
    by_key: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for entry in entries:
        action = str(entry.get("actionType") or "")
        key = str(entry.get("commitTime") or ""), COMPLETED_ACTION.get(action, action)
        by_key.setdefault(key, []).append(entry)
    found = [_make_instant(*key, states) for key, states in sorted(by_key.items())]
    return [each for each in found if each is not None]


def _make_instant(time: str, action: str, states: list[Mapping[str, Any]]) -> ArchivedInstant | None:
    completed = next((each for each in states if _get_state(each) == COMPLETED), None)
    if completed is None:
        return None
    if not time.isascii() or not time.isdigit():
        raise CorruptFileError("An archived instant has no valid time.", value=time[:100])
    reached = str(completed.get("stateTransitionTime") or "")
    plan = next((found for each in states if (found := _encode(each, _PLANS)) is not None), None)
    return ArchivedInstant(time, max(time, reached), action, _encode_result(completed), plan)


def _get_state(entry: Mapping[str, Any]) -> str:
    return str(entry.get("actionState") or COMPLETED).lower()


def _encode_result(entry: Mapping[str, Any]) -> bytes | None:
    for name in _COMMITS:
        record = entry.get(name)
        if record is not None:
            commit = CommitMetadata.from_record(record)
            return write_commit_metadata(commit, _LAYOUT, replace=name == _COMMITS[1])
    return _encode(entry, _RESULTS)


def _encode(entry: Mapping[str, Any], known: Mapping[str, Record[Any]]) -> bytes | None:
    for name, declared in known.items():
        if entry.get(name) is not None:
            return write_single(fit_record(entry[name], declared), declared.text)
    return None


def make_entries(instants: Iterable[ArchivedInstant]) -> Iterator[dict[str, Any]]:
    """Yield the entries of layout 1 for rows of layout 2.

    Raises:
        CorruptFileError: the content of a row is damaged.
        UnsupportedFeatureError: it lacks what an entry needs.
    """
    for each in instants:
        action = _PLANNED.get(each.action, each.action)
        requested = Instant(each.request_time, None, action, REQUESTED)
        if each.plan and needs_content(requested) and (action != REPLACE_COMMIT or _is_plan_of_clustering(each.plan)):
            yield make_entry(requested, each.request_time, each.plan)
        completed = Instant(each.request_time, each.completion_time, each.action, COMPLETED)
        yield make_entry(completed, each.completion_time, each.metadata or b"")


def _is_plan_of_clustering(plan: bytes) -> bool:
    return b"HoodieRequestedReplaceMetadata" in plan[:4096]
