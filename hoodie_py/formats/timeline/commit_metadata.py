"""Read commit metadata: the files that a write made, and its statistics.

Layout 1 stores it as JSON, layout 2 as an Avro container of HoodieCommitMetadata or HoodieReplaceCommitMetadata; the
first bytes tell which. The field names are the same. JSON has a few more fields (``recordsStats`` ...), which are
ignored. A completed file may be empty after a crash; it gives empty metadata. Inflight files have the same record as a
workload profile: its stats have file id "" for inserts and ``prev_commit`` "null".

Every path must be under the table; parsing checks this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.limits import get_limits, raise_limit_error
from hoodie_py.formats.names import check_inside, find_file_name
from hoodie_py.formats.timeline.records import (
    Fields,
    expect_file_id,
    expect_file_names,
    expect_list,
    expect_number,
    expect_text,
)

SCHEMA_KEY = "schema"
LATEST_SCHEMA_KEY = "latest_schema"
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

    @classmethod
    def from_record(cls, record: Any) -> WriteStat:
        """Read the stat from its decoded Avro or JSON form."""
        if not isinstance(record, Mapping):
            raise CorruptFileError("A write stat is not a record.")
        values: dict[str, Any] = {}
        for name, value in record.items():
            known = _STAT_FIELDS.get(name)
            if known is not None and value is not None:
                values[known[0]] = known[1](value)
        return cls(**{"file_id": None, "path": None} | values)


def _expect_path(value: Any) -> str:
    return check_inside(expect_text(value))


def _expect_file_name(value: Any) -> str | None:
    return find_file_name(value) if expect_text(value) else None


def _expect_cdc_stats(value: Any) -> dict[str, int]:
    return Fields({"cdcStats": value}).get_by_partition("cdcStats", expect_number)


def _expect_runtime_stats(value: Any) -> dict[str, int]:
    runtime = Fields(value)
    return {snake: runtime.get_count(name) for name, snake in RUNTIME_FIELDS.items()}


# Name in the file -> name here.
RUNTIME_FIELDS = {
    "totalScanTime": "total_scan_time",
    "totalCreateTime": "total_create_time",
    "totalUpsertTime": "total_upsert_time",
}
_NUMBERS = (
    "numWrites", "numDeletes", "numUpdateWrites", "numInserts", "numUpdates", "totalWriteBytes", "totalWriteErrors",
    "totalLogRecords", "totalLogFiles", "totalUpdatedRecordsCompacted", "totalLogBlocks", "totalCorruptLogBlock",
    "totalRollbackBlocks", "fileSizeInBytes", "logVersion", "logOffset", "minEventTime", "maxEventTime",
    "totalLogFilesCompacted", "totalLogReadTimeMs", "totalLogSizeCompacted",
)  # fmt: skip
NUMBER_FIELDS = {name: re.sub(r"(?=[A-Z])", "_", name).lower() for name in _NUMBERS}
# Name in the file -> name here, and the function that converts the value.
_STAT_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "fileId": ("file_id", expect_file_id),
    "path": ("path", _expect_path),
    "prevCommit": ("prev_commit", expect_text),
    "partitionPath": ("partition_path", _expect_path),
    "baseFile": ("base_file", _expect_file_name),
    "logFiles": ("log_files", expect_file_names),
    "cdcStats": ("cdc_stats", _expect_cdc_stats),
    "prevBaseFile": ("prev_base_file", _expect_file_name),
    "runtimeStats": ("runtime_stats", _expect_runtime_stats),
} | {name: (snake, expect_number) for name, snake in NUMBER_FIELDS.items()}


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """What a completed commit, delta commit or replace commit says (Hudi HoodieCommitMetadata).

    ``write_stats`` and ``replaced_file_ids`` are keyed by partition path; the latter is empty unless the commit
    replaced file groups.
    """

    operation_type: str = "UNKNOWN"
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
            return cls.from_record(read_single(data, "HoodieCommitMetadata", "HoodieReplaceCommitMetadata"))
        return cls.from_record(parse_json(data))

    @classmethod
    def from_record(cls, record: Any) -> CommitMetadata:
        """Read the metadata from its decoded Avro or JSON form."""
        commit = Fields(record)
        extra = commit.get_mapping("extraMetadata", lambda value: value)
        return cls(
            operation_type=commit.get_text("operationType") or "UNKNOWN",
            extra_metadata={key: expect_text(value) for key, value in extra.items() if value is not None},
            compacted=commit.get_flag("compacted"),
            write_stats=commit.get_by_partition("partitionToWriteStats", _expect_stats),
            replaced_file_ids=commit.get_by_partition("partitionToReplaceFileIds", _expect_file_ids),
        )


def _expect_stats(value: Any) -> tuple[WriteStat, ...]:
    return tuple(WriteStat.from_record(stat) for stat in expect_list(value))


def _expect_file_ids(value: Any) -> tuple[str, ...]:
    return tuple(expect_file_id(file_id) for file_id in expect_list(value))


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
