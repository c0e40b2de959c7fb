"""Partitions, found by listing folders.

Rules (Hudi ``FileSystemBackedTableMetadata``): a folder that holds a partition metafile (text, Parquet or ORC) is a
partition and nothing below it is looked at; the base folder itself counts, as the one partition of a table without
partition fields; ``.hoodie`` is never entered. One round of parallel listings per level. The listing that shows the
metafile is also the partition's file listing, so it is kept and handed out with the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hoodie_py.errors import FileMissingError, InvalidTableError
from hoodie_py.files import FileInfo, TableFiles
from hoodie_py.formats.table_config import TableConfig
from hoodie_py.table.partition_values import may_hold_slash, partition_constants
from hoodie_py.table.timeline_loader import METADATA_FOLDER

PARTITION_METAFILES = frozenset({
    ".hoodie_partition_metadata", ".hoodie_partition_metadata.parquet", ".hoodie_partition_metadata.orc",
})  # fmt: skip
MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition's path and the values that its path fixes.

    ``fields`` names the partition columns whose value the path tells, ``values`` has them in that order (None is null).
    """

    path: str
    fields: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    @property
    def known(self) -> dict[str, Any]:
        """The values by column; a column that is not in it may have any value."""
        return dict(zip(self.fields, self.values, strict=True))


@dataclass(frozen=True, slots=True)
class PartitionListing:
    """A partition and what lies directly in its folder."""

    partition: Partition
    files: tuple[FileInfo, ...] = field(repr=False)


Keep = Callable[[Partition], bool]


def partition_of(config: TableConfig, schema: pa.Schema, path: str) -> Partition:
    """The partition at ``path`` with its typed values."""
    known = partition_constants(config, schema, path)
    return Partition(path, tuple(known), tuple(known.values()))


def discover(
    files: TableFiles, config: TableConfig, schema: pa.Schema, keep: Keep | None = None
) -> list[PartitionListing]:
    """List the partitions of a table, sorted by path.

    Args:
        files: the table's files.
        config: its properties.
        schema: its columns, which type the partition values.
        keep: says whether a partition may hold wanted rows. Where folder depth tells partitions from folders between,
            it saves their listing as well.

    Raises:
        InvalidTableError: folders nest deeper than any partition path does (a cycle of links, for instance).
        StorageError: a listing failed.
    """
    depth_tells = bool(config.partition_fields) and not may_hold_slash(config, schema)
    found: list[PartitionListing] = []
    level: list[str] = [""]
    for depth in range(MAX_DEPTH + 1):
        if depth_tells and keep is not None and depth == len(config.partition_fields):
            level = [path for path in level if keep(partition_of(config, schema, path))]
        folders: list[str] = []
        for path, listing in zip(level, list_folders(files, level), strict=True):
            if any(info.name in PARTITION_METAFILES for info in listing if not info.is_dir):
                partition = partition_of(config, schema, path)
                if keep is None or keep(partition):
                    found.append(PartitionListing(partition, tuple(info for info in listing if not info.is_dir)))
            else:
                folders.extend(info.path for info in listing if info.is_dir and info.name != METADATA_FOLDER)
        if not folders:
            return sorted(found, key=lambda each: each.partition.path)
        level = folders
    raise InvalidTableError(f"folders nest deeper than {MAX_DEPTH} levels", path=level[0][:500])


def list_folders(files: TableFiles, paths: Sequence[str]) -> list[list[FileInfo]]:
    """List folders in parallel, in their order; one that is gone meanwhile is empty.

    Raises:
        StorageError: a listing failed for another reason.
    """
    try:
        return files.list_many(paths)
    except FileMissingError:
        return [_list_or_empty(files, path) for path in paths]


def _list_or_empty(files: TableFiles, path: str) -> list[FileInfo]:
    try:
        return files.list(path)
    except FileMissingError:
        return []
