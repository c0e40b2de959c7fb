"""Facts about a table as Arrow tables: ``table.inspect.slices()`` and others.

This module only formats. The view decides about slices, the timeline about instants, the log format about blocks. Paths
are relative to the table's base path, sizes are in bytes, and times are instants as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from hoodie_py.errors import HoodieError, InvalidQueryError, locate_errors
from hoodie_py.formats.deletes.decoder import decode_deletes
from hoodie_py.formats.log.framing import BlockType, CorruptBlock, LogBlock, iterate_blocks
from hoodie_py.formats.names import check_inside, parse_log_file_name
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.timeline.pages import list_instants
from hoodie_py.table.view.file_system_view import FileSystemView

_AVRO_COUNT = slice(4, 8)

TIMELINE = pa.schema({
    "request_time": pa.string(), "completion_time": pa.string(), "action": pa.string(), "state": pa.string(),
    "archived": pa.bool_(),
})  # fmt: skip
FILES = pa.schema({
    "partition_path": pa.string(), "file_id": pa.string(), "kind": pa.string(), "path": pa.string(), "size": pa.int64(),
    "instant": pa.string(), "log_version": pa.int64(), "visible": pa.bool_(),
})  # fmt: skip
SLICES = pa.schema({
    "partition_path": pa.string(), "file_id": pa.string(), "base_instant": pa.string(), "base_file": pa.string(),
    "base_size": pa.int64(), "log_files": pa.list_(pa.string()), "log_size": pa.int64(),
})  # fmt: skip
STATS = pa.schema({
    "request_time": pa.string(), "operation": pa.string(), "partition_path": pa.string(), "file_id": pa.string(),
    "path": pa.string(), "size": pa.int64(), "num_writes": pa.int64(), "num_inserts": pa.int64(),
    "num_updates": pa.int64(), "num_deletes": pa.int64(), "prev_commit": pa.string(),
})  # fmt: skip
LOG_BLOCKS = pa.schema({
    "offset": pa.int64(), "size": pa.int64(), "type": pa.string(), "instant": pa.string(),
    "target_instant": pa.string(), "records": pa.int64(), "is_partial": pa.bool_(),
    "has_positions": pa.bool_(), "positions_instant": pa.string(),
    "compacted_instants": pa.list_(pa.string()), "schema": pa.string(), "problem": pa.string(),
})  # fmt: skip
COMPACTION_PLAN = pa.schema({
    "partition_path": pa.string(), "file_id": pa.string(), "base_instant": pa.string(), "base_file": pa.string(),
    "log_files": pa.list_(pa.string()), "metrics": pa.map_(pa.string(), pa.float64()),
})  # fmt: skip


class TableInspect:
    """Facts about one loaded table; every method returns a ``pyarrow.Table``.

    ``view`` shows what is in the folders. ``planned`` shows what reads plan from; None if that is the same.

    Examples:
        >>> trips.inspect.timeline().select(["action", "state"]).to_pylist()
        [{'action': 'deltacommit', 'state': 'completed'}, {'action': 'deltacommit', 'state': 'completed'}]
        >>> trips.inspect.slices().num_rows
        2
    """

    def __init__(self, view: FileSystemView, planned: FileSystemView | None = None) -> None:
        self._files = view.files
        self._timeline = view.timeline
        self._view = view
        self._planned = view if planned is None else planned

    def __repr__(self) -> str:
        return f"TableInspect({self._files.uri}: timeline, files, slices, log_blocks, stats, compaction_plan)"

    def timeline(self, *, archived: bool = False, limit: int | None = None, before: str | None = None) -> pa.Table:
        """Return the instants of the active timeline, oldest first; with ``archived`` also archived ones.

        ``limit`` keeps only the newest instants, and less of the archive is read. ``before``, a request time, keeps
        only instants requested before it; so the first row's time gives the previous page.

        Raises:
            CorruptFileError: the archive is damaged.
            InvalidTableError: the archive names files that do not exist.
        """
        page = list_instants(self._timeline, archived=archived, limit=limit, before=before)
        rows = [
            {"request_time": each.request_time, "completion_time": each.completion_time, "action": each.action,
             "state": each.state, "archived": each.is_archived}
            for each in page.instants
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, TIMELINE)

    def files(self) -> pa.Table:
        """Return the base and log files of the partitions, and whether a snapshot query reads them now."""
        read: set[str] = set()
        for each in self._planned.list_named_slices():
            read.update(log.path for log in each.log_files)
            if each.base_file is not None:
                read.add(each.base_file.path)
        rows: list[dict[str, Any]] = []
        for group in self._view.list_file_groups():
            owner = {"partition_path": group.partition_path, "file_id": group.file_id}
            rows.extend(
                {**owner, "kind": "base", "path": base.path, "size": base.size, "instant": base.instant,
                 "visible": base.path in read}
                for base in group.base_files
            )  # fmt: skip
            rows.extend(
                {**owner, "kind": "log", "path": log.path, "size": log.size, "instant": log.name.instant,
                 "log_version": log.name.version, "visible": log.path in read}
                for log in group.log_files
            )  # fmt: skip
        return pa.Table.from_pylist(rows, FILES)

    def slices(self, instant: str | None = None) -> pa.Table:
        """Return the file slices that a snapshot query reads, now or at a request time.

        For a request time, files that cleans have removed are missing.
        """
        rows = [
            {
                "partition_path": each.partition_path,
                "file_id": each.file_id,
                "base_instant": each.base_instant,
                "base_file": each.base_file.path if each.base_file is not None else None,
                "base_size": each.base_file.size if each.base_file is not None else None,
                "log_files": [log.path for log in each.log_files],
                "log_size": sum(log.size for log in each.log_files),
            }
            for each in self._planned.list_named_slices(instant)
        ]
        return pa.Table.from_pylist(rows, SLICES)

    def stats(self) -> pa.Table:
        """Return write statistics, oldest first: a row for each file that a completed write wrote.

        Only the active timeline counts.

        Raises:
            CorruptFileError: a commit's metadata is damaged.
        """
        instants = self._timeline.list_completed_writes()
        rows = [
            {
                "request_time": instant.request_time,
                "operation": metadata.operation_type,
                "partition_path": partition_path,
                "file_id": stat.file_id,
                "path": stat.path,
                "size": stat.file_size_in_bytes,
                "num_writes": stat.num_writes,
                "num_inserts": stat.num_inserts,
                "num_updates": stat.num_update_writes,
                "num_deletes": stat.num_deletes,
                "prev_commit": None if stat.prev_commit == "null" else stat.prev_commit,
            }
            for instant, metadata in zip(instants, self._timeline.read_all_metadata(instants), strict=True)
            for partition_path, stats in metadata.write_stats.items()
            for stat in stats
        ]
        return pa.Table.from_pylist(rows, STATS)

    def log_blocks(self, path: str) -> pa.Table:
        """Return the blocks of a log file, given by its path in the table; ``problem`` describes damage.

        Raises:
            InvalidQueryError: the path does not name a log file.
            CorruptFileError: the file does not consist of blocks.
            StorageError: the file cannot be read.
        """
        if parse_log_file_name(path.rpartition("/")[2]) is None:
            raise InvalidQueryError("The path is not that of a Hudi log file.", path=path)
        with locate_errors(path=path):
            return make_log_block_table(read_bounded(self._files, check_inside(path), "log_bytes"))

    def compaction_plan(self, instant: str) -> pa.Table:
        """Return the operations of a compaction or log compaction, pending or completed: a row for each file group.

        Raises:
            InvalidQueryError: the active timeline has no compaction requested at that time.
            CorruptFileError: the plan is damaged.
        """
        plan = self._timeline.find_compaction_plan(instant)
        if plan is None:
            raise InvalidQueryError("No compaction was requested at that time.", instant=instant)
        rows = [
            {
                "partition_path": each.partition_path,
                "file_id": each.file_id,
                "base_instant": each.base_instant_time,
                "base_file": each.data_file,
                "log_files": list(each.delta_files),
                "metrics": list(each.metrics.items()),
            }
            for each in plan.operations
        ]
        return pa.Table.from_pylist(rows, COMPACTION_PLAN)


def make_log_block_table(data: bytes) -> pa.Table:
    """Return the blocks in a log file's bytes, one row each; columns as in ``TableInspect.log_blocks``.

    Raises:
        CorruptFileError: the bytes do not consist of blocks.
        UnsupportedFeatureError: a log format version that is not handled.
    """
    return pa.Table.from_pylist(list(_iterate_block_rows(data)), LOG_BLOCKS)


def _iterate_block_rows(data: bytes) -> Iterator[Mapping[str, Any]]:
    for block in iterate_blocks(data):
        if isinstance(block, CorruptBlock):
            yield {"offset": block.offset, "size": block.end - block.offset, "type": "CORRUPT", "problem": block.reason}
            continue
        row = {
            "offset": block.offset,
            "size": block.size,
            "type": block.type.name,
            "instant": block.instant_time,
            "target_instant": block.target_instant_time,
            "is_partial": block.is_partial,
            "has_positions": block.record_positions is not None,
            "positions_instant": block.base_instant_of_positions,
            "compacted_instants": list(block.compacted_instants),
            "schema": block.schema_text,
        }
        try:
            row["records"] = count_records(block)
        except HoodieError as error:
            row["problem"] = error.message
        yield row


def count_records(block: LogBlock) -> int | None:
    """Count the records of Avro, HFile and delete blocks; None for other types, which must be decoded to count."""
    if block.type is BlockType.DELETE:
        return len(decode_deletes(block.content).keys)
    if block.type is BlockType.HFILE_DATA:
        from hoodie_py.formats.hfile.reader import HFile

        return HFile.from_bytes(block.content).entries
    if block.type in {BlockType.AVRO_DATA, BlockType.CDC_DATA} and len(block.content) >= _AVRO_COUNT.stop:
        return int.from_bytes(block.content[_AVRO_COUNT], "big", signed=True)
    return None
