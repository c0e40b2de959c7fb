"""The file groups of one partition of a metadata table, for a writer (Hudi ``HoodieTableMetadataUtil``,
``HoodieAppendHandle``).

A new log file is named as in any table: from version 8 on after the instant that writes it, before that after the base
instant of the group's newest slice. A pending compaction begins a new slice.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable

from hoodie_py.errors import FileMissingError
from hoodie_py.files import TableFiles
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.hfile.reader import read_info
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import make_log_file_name
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.view.file_groups import FileGroup, group_files


class PartitionFiles:
    """The current files of one partition.

    ``groups``: its file groups; None: list them. ``pending``: the metadata table's pending compaction, as its request
    time and the file ids that it compacts; None without one.

    A partition may have no files: a killed build leaves a folder without files, and a partitioned record index gets its
    first file group with the first partition of the table.

    Raises:
        FileMissingError: the partition is missing.
    """

    def __init__(
        self,
        files: TableFiles,
        config: TableConfig,
        partition: str,
        groups: Iterable[FileGroup] | None = None,
        pending: tuple[str, Collection[str]] | None = None,
    ) -> None:
        self._files = files
        self._own_names = config.has_logs_named_by_commit
        self.partition = partition
        known = group_files(partition, files.list(partition)) if groups is None else groups
        self._groups = {group.file_id: group for group in known}
        self._pending = pending

    @property
    def file_ids(self) -> list[str]:
        """File ids of all groups, sorted: the number of a group is its position here."""
        return sorted(self._groups)

    def find_base_instant(self, file_id: str) -> str:
        """Return the base instant of a group's newest slice; "" for a missing group."""
        group = self._groups.get(file_id)
        if group is None:
            return ""
        times = [base.instant for base in group.base_files]
        times += [] if self._own_names else [log.name.instant for log in group.log_files]
        if self._pending is not None and file_id in self._pending[1]:
            times.append(self._pending[0])
        return max(times, default="")

    def name_next_log(self, file_id: str, instant: str) -> str:
        """Return a name for a new log file of a group, written by an instant."""
        time = instant if self._own_names else self.find_base_instant(file_id) or instant
        logs = () if file_id not in self._groups else self._groups[file_id].log_files
        versions = [log.name.version for log in logs if log.name.instant == time]
        return make_log_file_name(file_id, time, max(versions, default=0) + 1, f"0-0-{secrets.randbits(31)}")

    def list_logs_of(self, instant: str) -> list[str]:
        """Return paths of the log files that the instant wrote; none before version 8, where names do not show that."""
        if not self._own_names:
            return []
        logs = (log for group in self._groups.values() for log in group.log_files)
        return [log.path for log in logs if log.name.instant == instant]

    def list_base_files_of(self, instant: str) -> list[str]:
        """Return paths of the base files of an instant."""
        return [base.path for group in self._groups.values() for base in group.base_files if base.instant == instant]

    def read_schema(self) -> str | None:
        """Return the Avro schema (JSON) of the newest records, meta columns first; None if no file contains one."""
        groups: list[FileGroup] = list(self._groups.values())
        logs = sorted((log for each in groups for log in each.log_files), key=lambda log: log.name.sort_key)
        for log in reversed(logs):
            for block in iterate_blocks(read_bounded(self._files, log.path, "log_bytes")):
                if isinstance(block, LogBlock) and block.schema_text:
                    return block.schema_text
        bases = sorted((base for each in groups for base in each.base_files), key=lambda base: base.instant)
        for base in reversed(bases):
            text = read_info(read_bounded(self._files, base.path, "log_bytes")).get("schema")
            if text:
                return text.decode()
        return None

    def make_stat(self, file_id: str, name: str, instant: str, size: int, records: int, deletes: int) -> WriteStat:
        """Return the write statistics of a new log file (Hudi ``HoodieDeltaWriteStat``)."""
        group = self._groups.get(file_id)
        since = self.find_base_instant(file_id)
        base = None if group is None else max(group.base_files, key=lambda each: each.instant, default=None)
        logs = () if group is None else group.log_files
        slice_logs = [log.name.name for log in reversed(logs) if log.name.instant == since]
        return WriteStat(
            file_id=file_id,
            path=f"{self.partition}/{name}",
            prev_commit=instant if self._own_names else since or instant,
            num_writes=records,
            num_update_writes=records,
            num_deletes=deletes,
            total_write_bytes=size,
            partition_path=self.partition,
            file_size_in_bytes=size,
            log_version=int(name.split(".log.", 1)[1].partition("_")[0]),
            log_offset=0,
            base_file=None if self._own_names or base is None else base.name,
            log_files=(name,) if self._own_names else (*slice_logs, name),
        )


def list_partition_folders(files: TableFiles) -> list[str]:
    """Return the names of the folders of the metadata table's partitions; none if the metadata table is gone."""
    try:
        return sorted(info.name for info in files.list("") if info.is_dir and not info.name.startswith("."))
    except FileMissingError:
        return []
