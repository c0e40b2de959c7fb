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

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.hfile.files_partition import ALL_PARTITIONS, NO_PARTITION
from hoodie_py.formats.names import check_file_name, check_inside
from hoodie_py.table.metadata_table.view import MetadataView
from hoodie_py.writer.metadata_table.update import MetadataCommit, Names, PartitionRecords, Sizes

PARTITION_LIST, FILE_LIST = 1, 2
_FILE = pa.struct([pa.field("size", pa.int64(), nullable=False), pa.field("isDeleted", pa.bool_(), nullable=False)])
_SCHEMA = pa.schema(
    {"key": pa.string(), "type": pa.int32(), "filesystemMetadata": pa.map_(pa.string(), pa.field("value", _FILE))}
)

File = tuple[str, dict[str, Any]]


def make_file_lists(commit: MetadataCommit, partition: str, _view: MetadataView) -> PartitionRecords:
    """Make the records of an instant.

    Raises:
        InvalidTableError: a path leads out of the table, a file name is a path, or a size is not positive.
    """
    rows = list_files(commit.added, commit.deleted)
    return PartitionRecords(partition, rows.slice(1) if commit.kind in ("clean", "rollback", "restore") else rows)


def list_files(added: Sizes, deleted: Names) -> pa.Table:
    """Make the records of files that come and go, that of all partitions first; errors as for ``make_file_lists``."""
    partitions = sorted({*added, *deleted})
    keys = [check_inside(path) or NO_PARTITION for path in partitions]
    files = [list(_iterate_files(added, deleted, path)) for path in partitions]
    every: list[File] = [(key, _make_file(0)) for key in keys]
    columns = [
        pa.array([ALL_PARTITIONS, *keys], pa.string()),
        pa.array([PARTITION_LIST, *([FILE_LIST] * len(keys))], pa.int32()),
        pa.array([every, *files], _SCHEMA.field("filesystemMetadata").type),
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
