"""Commit metadata: the files that a write made, and its statistics.

Layout 1 of the timeline stores it as JSON, layout 2 as an Avro container of HoodieCommitMetadata or
HoodieReplaceCommitMetadata; the first bytes show which. The field names are the same. JSON contains a few more fields
(``recordsStats`` ...), which are ignored. A completed file may be empty after a crash; it gives empty metadata.
Inflight files contain the same record as a workload profile: in its stats, inserts have the file id "" and
``prev_commit`` "null".

Every path must be under the table; parsing checks this.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.limits import get_limits, raise_limit_error
from hoodie_py.formats.names import check_inside
from hoodie_py.formats.timeline import kinds
from hoodie_py.formats.timeline.kinds import UNSET, Place
from hoodie_py.formats.timeline.records import Field, Record, fixed, nested, take_attributes, to_snake_case, version

SCHEMA_KEY = "schema"
LATEST_SCHEMA_KEY = "latest_schema"
_UNKNOWN = "UNKNOWN"
_LOG_COMPACT = "LOG_COMPACT"
_MOVING = frozenset({"COMPACT", _LOG_COMPACT, "CLUSTER"})  # Hudi WriteOperationType
NO_COMMIT = "null"  # ``prev_commit`` of a new file group (Hudi HoodieWriteStat.NULL_COMMIT)


@dataclass(frozen=True, slots=True)
class WriteStat:
    """What a write did to one file (Hudi HoodieWriteStat, HoodieDeltaWriteStat).

    ``path`` and the keys of ``cdc_stats`` are relative to the table's base path; ``base_file``, ``log_files`` and
    ``prev_base_file`` are file names. Sizes are bytes. Since table version 8, a log file's stat lists only the new
    file, unless CDC is on. In version 6 it lists the whole slice, and ``prev_commit`` is the slice's base instant.
    """

    file_id: str | None
    path: str | None
    prev_commit: str | None = None
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    num_updates: int = 0
    total_write_bytes: int = 0
    total_write_errors: int = 0
    partition_path: str = ""
    total_log_records: int = 0
    total_log_files: int = 0
    total_updated_records_compacted: int = 0
    total_log_blocks: int = 0
    total_corrupt_log_block: int = 0
    total_rollback_blocks: int = 0
    file_size_in_bytes: int = 0
    log_version: int | None = None
    log_offset: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] = ()
    cdc_stats: Mapping[str, int] = field(default_factory=dict)
    prev_base_file: str | None = None
    min_event_time: int | None = None
    max_event_time: int | None = None
    runtime_stats: Mapping[str, int] = field(default_factory=dict)
    total_log_files_compacted: int = 0
    total_log_read_time_ms: int = 0
    total_log_size_compacted: int = 0

    @property
    def file_name(self) -> str | None:
        """The last segment of ``path``."""
        return self.path.rsplit("/", 1)[-1] if self.path else None


def _make_runtime_field(name: str) -> Field:
    return Field(name, kinds.COUNT, compose=lambda stats, _: stats.get(to_snake_case(name), 0))


def _compose_partition(stat: WriteStat, _: Place) -> str | None:
    return None if stat.path is None and not stat.partition_path else check_inside(stat.partition_path)


def _compose_base_file(stat: WriteStat, _: Place) -> str | None:
    return stat.base_file or (None if stat.log_version is None else "")


def _compose_log_files(stat: WriteStat, _: Place) -> list[str] | None:
    return list(stat.log_files) if stat.log_files or stat.log_version is not None else None


RUNTIME_STATS = Record(
    "HoodieRuntimeStats",
    take_attributes,
    *map(_make_runtime_field, ("totalScanTime", "totalCreateTime", "totalUpsertTime")),
)
WRITE_STAT = Record(
    "HoodieWriteStat",
    WriteStat,
    Field("fileId", replace(kinds.FILE_ID, missing=None)),
    Field("path", kinds.PATH),
    Field("prevCommit", kinds.TEXT),
    Field("numWrites", kinds.COUNT),
    Field("numDeletes", kinds.COUNT),
    Field("numUpdateWrites", kinds.COUNT),
    Field("totalWriteBytes", kinds.COUNT),
    Field("totalWriteErrors", kinds.COUNT),
    Field("partitionPath", replace(kinds.PATH, missing=""), compose=_compose_partition),
    Field("totalLogRecords", kinds.COUNT),
    Field("totalLogFiles", kinds.COUNT, blank=None),  # Java 1.2.0 does not set it
    Field("totalUpdatedRecordsCompacted", kinds.COUNT),
    Field("numInserts", kinds.COUNT),
    Field("totalLogBlocks", kinds.COUNT),
    Field("totalCorruptLogBlock", kinds.COUNT),
    Field("totalRollbackBlocks", kinds.COUNT),
    Field("fileSizeInBytes", kinds.COUNT),
    Field("logVersion", kinds.INT),
    Field("logOffset", kinds.LONG),
    Field("baseFile", kinds.FILE_NAME_OR_NONE, compose=_compose_base_file),
    Field("logFiles", kinds.FILE_NAMES, compose=_compose_log_files),
    Field("cdcStats", kinds.by_partition(kinds.LONG), blank=None),
    Field("prevBaseFile", replace(kinds.FILE_NAME_OR_NONE, write=None)),
    Field("minEventTime", kinds.LONG),
    Field("maxEventTime", kinds.LONG),
    Field("runtimeStats", replace(nested(RUNTIME_STATS), missing=UNSET), blank=None),
    Field("totalLogFilesCompacted", kinds.COUNT),
    Field("totalLogReadTimeMs", kinds.COUNT),
    Field("totalLogSizeCompacted", kinds.COUNT),
    fixed("tempPath", kinds.TEXT, None),
    Field("numUpdates", kinds.COUNT),
)


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """What a completed commit, delta commit or replace commit says (Hudi HoodieCommitMetadata).

    ``write_stats`` and ``replaced_file_ids`` are keyed by partition path; the latter is empty unless the commit
    replaced file groups.
    """

    operation_type: str = _UNKNOWN
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    compacted: bool = False
    write_stats: Mapping[str, tuple[WriteStat, ...]] = field(default_factory=dict)
    replaced_file_ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def schema(self) -> str | None:
        """The Avro schema (JSON text) the commit wrote with; with or without the meta fields, None if not recorded."""
        return self.extra_metadata.get(SCHEMA_KEY) or None

    @property
    def latest_schema(self) -> str | None:
        """The InternalSchema (JSON text) of schema-on-read evolution, if the table uses that."""
        return self.extra_metadata.get(LATEST_SCHEMA_KEY) or None

    @property
    def moves_rows(self) -> bool:
        """Whether the write was a table service: it moved rows that other commits wrote, and added none."""
        return self.operation_type.upper() in _MOVING

    @property
    def is_log_compaction(self) -> bool:
        """Whether the write joined log files, whose rows have its commit time from then on."""
        return self.operation_type.upper() == _LOG_COMPACT

    def iterate_stats(self) -> Iterator[WriteStat]:
        """Yield all write stats, partition by partition."""
        for stats in self.write_stats.values():
            yield from stats

    @classmethod
    def from_bytes(cls, data: bytes) -> CommitMetadata:
        """Parse a completed or inflight commit file of either layout; an empty file gives empty metadata.

        Raises:
            CorruptFileError: neither JSON nor Avro, or fields of the wrong type.
            InvalidTableError: a path leads out of the table.
        """
        if not data or data.isspace():
            return cls()
        from hoodie_py.formats.avro.container import is_container, read_single

        if is_container(data):
            return cls.from_record(read_single(data, COMMIT.name, REPLACE_COMMIT.name))
        return cls.from_record(parse_json(data))

    @classmethod
    def from_record(cls, record: Any) -> CommitMetadata:
        """Read the metadata from its decoded Avro or JSON form."""
        return REPLACE_COMMIT.read(record)


def _read_extra_metadata(found: dict[str, Any]) -> dict[str, str]:
    return {key: kinds.TEXT.read_item(value) for key, value in found.items() if value is not None}  # Java allows null


_COMMIT_FIELDS = (
    Field("partitionToWriteStats", kinds.by_partition(kinds.array(nested(WRITE_STAT))), "write_stats"),
    Field("compacted", kinds.FLAG),
    Field("extraMetadata", replace(kinds.TEXT_MAP, read=_read_extra_metadata)),
    version(None),
    Field("operationType", replace(kinds.TEXT, missing=_UNKNOWN, read=lambda name: name or _UNKNOWN)),
)
COMMIT = Record("HoodieCommitMetadata", CommitMetadata, *_COMMIT_FIELDS)
REPLACE_COMMIT = Record(
    "HoodieReplaceCommitMetadata",
    CommitMetadata,
    *_COMMIT_FIELDS,
    Field("partitionToReplaceFileIds", kinds.by_partition(kinds.array(kinds.FILE_ID)), "replaced_file_ids"),
)


def parse_json(data: bytes) -> Any:
    """Parse JSON metadata. Raises CorruptFileError: not JSON, too large, or nested too deeply."""
    if len(data) > get_limits().metadata_bytes:
        raise_limit_error(CorruptFileError, f"A metadata file has {len(data)} bytes", "metadata_bytes")
    items = data.count(b"{") + data.count(b"[")  # each takes hundreds of bytes as a Python object
    if items > get_limits().metadata_items:
        raise_limit_error(CorruptFileError, f"A metadata file has {items} lists and objects", "metadata_items")
    if data.lstrip()[:1] not in (b"{", b"["):
        raise CorruptFileError("The metadata file is neither JSON nor Avro.", offset=0)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError("The metadata file is broken JSON.") from error
