"""The records of the partition ``files``: the table's partitions, and the files of each (Hudi
``HoodieMetadataPayload.createPartitionFilesRecord``, ``createPartitionListRecord``).

    key                   type   filesystemMetadata
    __all_partitions__    1      each partition that the instant touches, size 0; none for a clean or rollback
    partition path        2      each file's size, or that the file is deleted
    "."                   2      the same, for a table without partitions

Readers merge the maps of all records of a key, so a file that a record does not name stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from hoodie_py.errors import FileMissingError, InvalidTableError
from hoodie_py.formats.indexes.definitions import ALL_PARTITIONS, NO_PARTITION
from hoodie_py.formats.indexes.record_schema import FILES_COLUMN
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import check_file_name, check_inside, parse_log_file_name
from hoodie_py.formats.timeline.instants import CLUSTERING
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.indexes.file_lists import read_file_lists
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes.index import MetadataCommit, Names, PartitionRecords, Sizes

PARTITION_LIST, FILE_LIST = 1, 2
_FILE = pa.struct([pa.field("size", pa.int64(), nullable=False), pa.field("isDeleted", pa.bool_(), nullable=False)])
_SCHEMA = pa.schema(
    {"key": pa.string(), "type": pa.int32(), FILES_COLUMN: pa.map_(pa.string(), pa.field("value", _FILE))}
)

File = tuple[str, dict[str, Any]]


def make_file_lists(commit: MetadataCommit, partition: str, _view: MetadataView) -> PartitionRecords:
    """Make the records of an instant.

    Raises:
        InvalidTableError: a path leads out of the table, a file name is a path, or a size is not positive.
    """
    rows = list_files(commit.added, commit.deleted)
    # The first record lists all partitions, and these operations add none.
    return PartitionRecords(partition, rows.slice(1) if commit.kind in ("clean", "rollback", "restore") else rows)


def list_files(added: Sizes, deleted: Names) -> pa.Table:
    """Make the records of files that come and go, the record of all partitions first; errors as ``make_file_lists``."""
    partitions = sorted({*added, *deleted})
    keys = [check_inside(path) or NO_PARTITION for path in partitions]
    files = [list(_iterate_files(added, deleted, path)) for path in partitions]
    every: list[File] = [(key, _make_file(0)) for key in keys]
    columns = [
        pa.array([ALL_PARTITIONS, *keys], pa.string()),
        pa.array([PARTITION_LIST, *([FILE_LIST] * len(keys))], pa.int32()),
        pa.array([every, *files], _SCHEMA.field(FILES_COLUMN).type),
    ]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def _iterate_files(added: Sizes, deleted: Names, partition: str) -> Iterator[File]:
    gone = set(deleted.get(partition, ()))
    for name, size in added.get(partition, {}).items():
        if size <= 0:
            raise InvalidTableError("A file of the metadata table needs its size.", path=name)
        if name not in gone:
            yield check_file_name(name), _make_file(size)
    for name in sorted(gone):
        yield check_file_name(name), _make_file(0, deleted=True)


def _make_file(size: int, *, deleted: bool = False) -> dict[str, Any]:
    return {"size": size, "isDeleted": deleted}


def find_leftovers(snapshot: Snapshot, view: MetadataView) -> frozenset[str]:
    """Return the paths of log files that only pending instants wrote: what a failed write leaves until its rollback.

    From table version 8 on the names of log files show their instant, except in new buckets of a pending clustering,
    whose log files carry its time. Up to version 6 a log file is named after its slice's base file, so its blocks are
    read (spec F2.3). The metadata table has no entry for such a file, as it gets entries when a write completes.

    Raises:
        CorruptFileError: a log file is too large to look at, or the metadata table cannot be read.
        StorageError: the store refused.
    """
    timeline = snapshot.timeline
    pending = timeline.pending_times
    clusterings = timeline.select_pending().select_actions(CLUSTERING).pending_times
    named_by_commit = snapshot.config.has_logs_named_by_commit
    if not (clusterings if named_by_commit else pending):
        return frozenset()
    _, listed = read_file_lists(view, None)
    known = {each.path for files in listed.values() for each in files}
    unknown = [
        each.path
        for listing in snapshot.view.list_partitions()
        for each in listing.files
        if each.path not in known and _may_be_left(each.name, clusterings if named_by_commit else None)
    ]
    return frozenset(path for path in unknown if _is_of(snapshot, path, pending))


def _may_be_left(name: str, times: frozenset[str] | None) -> bool:
    """Whether a file is a log file named after one of some times; None: after any time."""
    parsed = parse_log_file_name(name)
    return parsed is not None and (times is None or parsed.instant in times)


def _is_of(snapshot: Snapshot, path: str, pending: frozenset[str]) -> bool:
    try:
        data = read_bounded(snapshot.files, path, "log_bytes")
    except FileMissingError:  # rolled back since the listing
        return True
    times = {block.instant_time for block in iterate_blocks(data) if isinstance(block, LogBlock)}
    return bool(times) and times <= pending
