"""The ``files`` partition of a metadata table, as a writer needs it (Hudi ``HoodieBackedTableMetadataWriter``).

The partition has exactly one file group. The next log file is named as in any table: from version 8 on after the
instant that writes it, before after the base instant of the group's newest slice. Its records have the schema of the
newest block, so that all files keep the schema of the release of Hudi that made them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping

from hoodie_py.errors import InvalidTableError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.hfile.files_partition import FILES_FILE_ID, FILES_PARTITION
from hoodie_py.formats.hfile.reader import read_info
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import META_FIELDS, make_log_file_name
from hoodie_py.formats.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.view.file_groups import FileGroup, group_files

_OPERATION = "UPSERT_PREPPED"


class MetadataFiles:
    """The current ``files`` partition. ``pending_compaction`` is the request time of the metadata table's own;
    None if none is pending.

    Raises:
        FileMissingError: the partition is missing.
        InvalidTableError: it has no files.
    """

    def __init__(self, files: TableFiles, config: TableConfig, pending_compaction: str | None) -> None:
        self._files = files
        self._own_names = config.has_logs_named_by_commit
        groups = {group.file_id: group for group in group_files(FILES_PARTITION, files.list(FILES_PARTITION))}
        if FILES_FILE_ID not in groups:
            raise InvalidTableError("The metadata table lists no files.", path=f"{files.uri}/{FILES_PARTITION}")
        self._group: FileGroup = groups[FILES_FILE_ID]
        self._pending_compaction = pending_compaction

    @property
    def base_instant(self) -> str:
        """Base instant of the newest slice; a pending compaction begins a slice."""
        times = [base.instant for base in self._group.base_files]
        times += [] if self._own_names else [log.name.instant for log in self._group.log_files]
        return max([*times, self._pending_compaction or ""])

    def name_next_log(self, instant: str) -> str:
        """Return a name for the log file of an instant."""
        time = instant if self._own_names else self.base_instant
        versions = [log.name.version for log in self._group.log_files if log.name.instant == time]
        return make_log_file_name(FILES_FILE_ID, time, max(versions, default=0) + 1, f"0-0-{secrets.randbits(31)}")

    def list_logs_of(self, instant: str) -> list[str]:
        """Return paths of the log files that the instant wrote; none before version 8, where names do not tell."""
        return [log.path for log in self._group.log_files if log.name.instant == instant] if self._own_names else []

    def read_schema(self) -> str:
        """Return the Avro schema (JSON) of the newest records, meta columns first.

        Raises:
            InvalidTableError: no file has a schema.
        """
        for log in reversed(self._group.log_files):
            for block in iterate_blocks(read_bounded(self._files, log.path, "log_bytes")):
                if isinstance(block, LogBlock) and block.schema_text:
                    return block.schema_text
        for base in reversed(self._group.base_files):
            text = read_info(read_bounded(self._files, base.path, "log_bytes")).get("schema")
            if text:
                return text.decode()
        raise InvalidTableError(
            "No file of the metadata table has a schema.", path=f"{self._files.uri}/{FILES_PARTITION}"
        )

    def make_commit_metadata(self, name: str, instant: str, size: int, records: int, schema: str) -> CommitMetadata:
        """Return the commit metadata of the delta commit that adds the new log file."""
        base = max(self._group.base_files, key=lambda each: each.instant, default=None)
        slice_logs = [log.name.name for log in reversed(self._group.log_files) if log.name.instant == self.base_instant]
        stat = WriteStat(
            file_id=FILES_FILE_ID,
            path=f"{FILES_PARTITION}/{name}",
            prev_commit=instant if self._own_names else self.base_instant,
            num_writes=records,
            num_update_writes=records,
            total_write_bytes=size,
            partition_path=FILES_PARTITION,
            file_size_in_bytes=size,
            log_version=int(name.split(".log.", 1)[1].partition("_")[0]),
            log_offset=0,
            base_file=None if self._own_names or base is None else base.name,
            log_files=(name,) if self._own_names else (*slice_logs, name),
        )
        extra: Mapping[str, str] = {SCHEMA_KEY: _drop_meta_columns(schema)}
        return CommitMetadata(operation_type=_OPERATION, extra_metadata=extra, write_stats={FILES_PARTITION: (stat,)})


def _drop_meta_columns(schema: str) -> str:
    record = json.loads(schema)
    record["fields"] = [each for each in record["fields"] if each.get("name") not in META_FIELDS]
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)
