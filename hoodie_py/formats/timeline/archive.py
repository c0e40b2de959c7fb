"""Read the archived timeline: instants that have left the active one.

Layout 1, in ``.hoodie/archived/`` (or the folder that the table names): ``.commits_.archive.N_1-0-1`` are log-format
files. Their Avro blocks have one HoodieArchivedMetaEntry for each *state* of an instant. Files with a greater N are
newer, and an instant may occur in several files (Hudi ArchivedTimelineV1).

Layout 2, in ``.hoodie/timeline/history/``: ``_version_`` names the current manifest ``manifest_N`` (JSON), which lists
the Parquet files ``{min}_{max}_{level}.parquet``; other files do not count. One row is one completed instant with the
bytes of its completed file and its requested file (Hudi LSMTimeline, ArchivedTimelineV2).

The Avro schema of entries in archive files of timeline layout 1 (Hudi ``HoodieArchivedMetaEntry``).

Its parts are the schemas of the timeline's files. Avro allows one definition of a name; further uses are the name.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.avro.container import VettedSchema, decode_record, vet_schema
from hoodie_py.formats.limits import get_limits, raise_limit_error
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from hoodie_py.formats.parquet.decoder import check_footer
from hoodie_py.formats.parquet.parquet_file import ParquetFile
from hoodie_py.formats.timeline import records
from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, parse_json
from hoodie_py.formats.timeline.instants import COMMIT, COMPLETED, COMPLETED_ACTION, DELTA_COMMIT, REPLACE_COMMIT
from hoodie_py.formats.timeline.records import Fields, expect_text

if TYPE_CHECKING:
    from hoodie_py.formats.timeline.plans import CleanMetadata


VERSION_FILE = "_version_"
HISTORY_ROW_VERSION = 1

_ARCHIVE_FILE = re.compile(r"\.commits_\.archive\.([0-9]{1,9})(?:_[0-9]+-[0-9]+-[0-9]+)?")
_MANIFEST_FILE = re.compile(r"manifest_([0-9]{1,9})")
_HISTORY_FILE = re.compile(r"([0-9]{1,32})_([0-9]{1,32})_([0-9]{1,9})\.parquet")
_TIME = re.compile(r"[0-9]{1,32}")
_INT = struct.Struct(">i")
_WRITES = frozenset({COMMIT, DELTA_COMMIT, REPLACE_COMMIT})
_TIMES, _CONTENTS = ("instantTime", "completionTime", "action", "version"), ("metadata", "plan")
_METADATA_FIELDS = ("hoodieCommitMetadata", "hoodieReplaceCommitMetadata", "hoodieCleanMetadata")


@dataclass(frozen=True, slots=True)
class ArchivedInstant:
    """A completed instant from the archive.

    ``action`` is that of the completed state (a compaction is a ``commit``). In layout 2, ``metadata`` and ``plan`` are
    the bytes of its completed and its requested file. In layout 1, ``record`` is the decoded metadata; that layout has
    no completion times, so the request time takes its place.
    """

    request_time: str
    completion_time: str
    action: str
    metadata: bytes | None = None
    plan: bytes | None = None
    record: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def is_write(self) -> bool:
        """Whether the instant wrote rows, or replaced files."""
        return self.action in _WRITES

    @property
    def has_metadata(self) -> bool:
        """Whether the archive kept the metadata."""
        return self.record is not None or self.metadata is not None

    def parse_commit_metadata(self) -> CommitMetadata:
        """Parse the instant's commit metadata; empty metadata when the archive did not keep it.

        Raises CorruptFileError if the archived bytes are not commit metadata.
        """
        if self.record is not None:
            return CommitMetadata.from_record(self.record)
        return CommitMetadata.from_bytes(self.metadata or b"")

    def parse_clean_metadata(self) -> CleanMetadata:
        """Parse what a clean removed; nothing when the archive did not keep it.

        Raises CorruptFileError if the archived bytes are not that.
        """
        from hoodie_py.formats.timeline.plans import CleanMetadata

        if self.record is not None:
            return CleanMetadata.from_fields(Fields(self.record))
        return CleanMetadata.from_bytes(self.metadata or b"")


# Layout 1 ------------------------------------------------------------------------------------------------------------


def parse_archive_file_name(name: str) -> int | None:
    """Return N of ``.commits_.archive.N_1-0-1``; None for other names."""
    match = _ARCHIVE_FILE.fullmatch(name)
    return int(match[1]) if match else None


def iterate_archive_entries(data: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of an archive file of layout 1, one for each state of an instant; errors as
    ``parse_archived_log``.
    """
    for block in iterate_blocks(data):
        if isinstance(block, LogBlock):
            yield from _read_block_records(block)


def parse_archived_log(data: bytes) -> list[ArchivedInstant]:
    """Read an archive file of layout 1: its completed instants in the order they were archived.

    Blocks that were not completely written are skipped, as in any log file.

    Raises:
        CorruptFileError: blocks or records that do not belong into an archive.
        UnsupportedFeatureError: blocks other than Avro.
    """
    found = map(_to_archived_instant, iterate_archive_entries(data))
    return [instant for instant in found if instant is not None]


def _read_block_records(block: LogBlock) -> Iterator[Mapping[str, Any]]:
    if block.type is not BlockType.AVRO_DATA:
        raise UnsupportedFeatureError(
            f"Archive blocks of type {block.type.name} are not supported.", offset=block.offset
        )
    schema = _read_entry_schema(block)
    content = block.content
    if len(content) < 8 or _INT.unpack_from(content, 0)[0] < 1:
        raise CorruptFileError("An archive block has an unknown version.", offset=block.offset)
    (count,) = _INT.unpack_from(content, 4)
    at = 8
    for _ in range(count):
        if at + 4 > len(content):
            raise CorruptFileError("An archive block is cut short.", offset=block.offset)
        (length,) = _INT.unpack_from(content, at)
        at += 4
        if length < 0 or length > len(content) - at:
            raise CorruptFileError("An archive block is cut short.", offset=block.offset)
        yield decode_record(bytes(content[at : at + length]), schema)
        at += length
    if count < 0 or at != len(content):
        raise CorruptFileError("An archive block holds other bytes than its records.", offset=block.offset)


def _read_entry_schema(block: LogBlock) -> VettedSchema:
    schema = vet_schema(block.schema_text or "")
    if schema.name != "HoodieArchivedMetaEntry":
        raise CorruptFileError(f"An archive block holds {schema.name[:100]}.", offset=block.offset)
    return schema


def _to_archived_instant(record: Mapping[str, Any]) -> ArchivedInstant | None:
    entry = Fields(record)
    if (entry.get_text("actionState") or COMPLETED).lower() != COMPLETED:
        return None
    time = _check_time(entry.get_text("commitTime"))
    action = entry.get_text("actionType") or ""
    known = next((entry.get(name) for name in _METADATA_FIELDS if entry.has(name)), None)
    return ArchivedInstant(time, time, COMPLETED_ACTION.get(action, action), record=known)


def keep_newest_entries(files: Iterable[Iterable[ArchivedInstant]]) -> dict[tuple[str, str], ArchivedInstant]:
    """Combine archive files, newest first: of each (request time, action) the entry that completed last, and among
    equal ones the newest file's.

    A metadata table has several of one request time: each partition that is built anew begins with the same few.
    """
    found: dict[tuple[str, str], ArchivedInstant] = {}
    for instants in files:
        for instant in instants:
            known = found.get((instant.request_time, instant.action))
            if known is None or known.completion_time < instant.completion_time:
                found[instant.request_time, instant.action] = instant
    return found


# Layout 2 ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A Parquet file of the history: its range of request times, its merge level and its size in bytes."""

    name: str
    min_time: str
    max_time: str
    level: int
    size: int | None = None


def parse_history_file_name(name: str, size: int | None = None) -> HistoryFile | None:
    """Parse the name of a history file; None for other names."""
    match = _HISTORY_FILE.fullmatch(name)
    return HistoryFile(name, match[1], match[2], int(match[3]), size) if match else None


def parse_manifest_name(name: str) -> int | None:
    """Return N of ``manifest_N``; None for other names, such as those still being written (``.tmp``)."""
    match = _MANIFEST_FILE.fullmatch(name)
    return int(match[1]) if match else None


def parse_history_version(data: bytes) -> int | None:
    """Read ``_version_``: the number of the current manifest. None when unreadable: then the greatest number counts."""
    text = data.strip()
    return int(text) if text.isdigit() and len(text) < 10 else None


def parse_history_manifest(data: bytes) -> tuple[HistoryFile, ...]:
    """Read a manifest: the history files of the timeline, each once.

    Raises CorruptFileError: not a manifest, or it names files that are not history files.
    """
    files = Fields(parse_json(data)).get_items("files", Fields)
    found: dict[str, HistoryFile] = {}
    for entry in files:
        name = expect_text(entry.get("fileName"))
        parsed = parse_history_file_name(name, entry.get_number("fileLen"))
        if parsed is None:
            raise CorruptFileError("The manifest of the archived timeline names an unknown file.", file=name[:200])
        found.setdefault(name, parsed)
    return tuple(found.values())


def parse_history_parquet(data: bytes, *, contents: bool = True) -> list[ArchivedInstant]:
    """Read a history file.

    Without ``contents`` only times and actions are read, no metadata and no plan.

    Raises:
        CorruptFileError: not Parquet, missing columns, or values that are not instants.
        UnsupportedFeatureError: a row version other than 1.
    """
    columns = [*_TIMES, *(_CONTENTS if contents else ())]
    file = open_history(data, columns)
    try:
        rows = file.read(columns).to_pylist()
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise CorruptFileError("A file of the archived timeline is not a Parquet file of instants.") from error
    return [_to_history_instant(row) for row in rows]


def open_history(data: bytes, columns: Sequence[str] = (*_TIMES, *_CONTENTS)) -> ParquetFile:
    """Open a history file that has some columns; errors as ``parse_history_parquet``."""
    try:
        file = ParquetFile(pa.BufferReader(data))
        _check_history(file, columns)
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise CorruptFileError("A file of the archived timeline is not a Parquet file of instants.") from error
    return file


def _check_history(file: ParquetFile, columns: Sequence[str]) -> None:
    rows = file.metadata.num_rows
    if rows > get_limits().history_rows:
        raise_limit_error(CorruptFileError, f"A file of the archived timeline has {rows} rows", "history_rows")
    check_footer(file)
    missing = [column for column in columns if column not in file.schema_arrow.names]
    if missing:
        raise CorruptFileError(f"A file of the archived timeline lacks the column {missing[0]}.")


def _to_history_instant(row: Mapping[str, Any]) -> ArchivedInstant:
    fields = Fields(row)
    if fields.get_number("version") != HISTORY_ROW_VERSION:
        raise UnsupportedFeatureError(f"Archived timeline rows of version {row['version']} are not supported.")
    return ArchivedInstant(
        request_time=_check_time(fields.get_text("instantTime")),
        completion_time=_check_time(fields.get_text("completionTime")),
        action=fields.get_text("action") or "",
        metadata=fields.get_bytes("metadata"),
        plan=fields.get_bytes("plan"),
    )


def _check_time(text: str | None) -> str:
    if text is None or _TIME.fullmatch(text) is None:
        raise CorruptFileError("An archived instant has no valid time.", value=(text or "")[:100])
    return text


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
    "hoodieCommitMetadata": json.loads(records.COMMIT),
    "hoodieCleanMetadata": json.loads(records.CLEAN_METADATA),
    "hoodieCompactionMetadata": _COMPACTION_METADATA,
    "hoodieRollbackMetadata": json.loads(records.ROLLBACK_METADATA),
    "hoodieSavePointMetadata": _SAVEPOINT,
    "commitTime": "string",
    "actionType": "string",
    "version": None,
    "hoodieCompactionPlan": json.loads(records.COMPACTION_PLAN),
    "hoodieCleanerPlan": json.loads(records.CLEAN_PLAN),
    "actionState": "string",
    "hoodieReplaceCommitMetadata": json.loads(records.REPLACE_COMMIT),
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
