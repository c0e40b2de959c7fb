"""Makes the records of ``column_stats``: the range of each indexed column in each data file (Hudi
``HoodieTableMetadataUtil.convertMetadataToColumnStatsRecords``).

Tasks measure what they write. What they did not measure is read before the lock: by a task of a table that had no
statistics when the write began, or of columns whose range only the file itself tells. Files that are deleted lose
their records. A file whose types have no ranges has no records, and readers take it as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, repeat_value
from hoodie_py.arrow.compute import take
from hoodie_py.files import TableFiles
from hoodie_py.formats.metadata_table.column_ranges import ColumnRange, FileRanges, make_statistics
from hoodie_py.formats.metadata_table.indexed_columns import IndexedColumns
from hoodie_py.formats.metadata_table.keys import (
    COLUMN_STATS_TYPE,
    encode_file_names,
    encode_names,
    encode_partitions,
    make_column_keys,
)
from hoodie_py.table.metadata_table.view import MetadataView
from hoodie_py.writer.metadata_table.file_ranges import complete_ranges, measure_file
from hoodie_py.writer.metadata_table.indexed import find_indexed_columns, list_known_columns
from hoodie_py.writer.metadata_table.update import MetadataCommit, PartitionRecords

_SCHEMA = ("key", "type", "ColumnStatsMetadata")


@dataclass(frozen=True, slots=True)
class MeasuredFile:
    """The ranges of the columns of one data file."""

    partition_path: str
    name: str
    ranges: Sequence[ColumnRange]


@dataclass(frozen=True, slots=True)
class MeasuredCommit:
    """The columns that count, and what an instant's new files have of them; ``bare`` are the files without ranges."""

    indexed: IndexedColumns
    files: tuple[MeasuredFile, ...]
    bare: tuple[tuple[str, str], ...] = ()


def measure_commit(commit: MetadataCommit, _partition: str) -> MeasuredCommit | None:
    """Find the ranges of an instant's new files; None where the instant writes no records of a schema.

    Raises:
        CorruptFileError, FileMissingError: a new file cannot be read.
        StorageError: the store refused.
    """
    if commit.schema is None:
        return None
    indexed = find_indexed_columns(commit.snapshot, commit.schema, commit.session.settings.options)
    if indexed is None:
        return None
    files: list[MeasuredFile] = []
    bare: list[tuple[str, str]] = []
    for result in commit.results:
        name, path = result.path.rpartition("/")[2], result.stat.partition_path
        found = _find_ranges(commit.session.files, result.path, result.ranges, indexed)
        if found is None:
            bare.append((path, name))
        else:
            files.append(MeasuredFile(path, name, found.ranges))
    return MeasuredCommit(indexed, tuple(files), tuple(bare))


def _find_ranges(files: TableFiles, path: str, ranges: FileRanges | None, indexed: IndexedColumns) -> FileRanges | None:
    if ranges is None:
        return measure_file(files, path, indexed)
    return complete_ranges(files, path, ranges)


def make_column_statistics(commit: MetadataCommit, partition: str, _view: MetadataView) -> PartitionRecords:
    """Make the records of an instant: of its new files, and deletes of those of files that go."""
    measured = commit.prepared.get(partition)
    files = measured.files if isinstance(measured, MeasuredCommit) else ()
    version = measured.indexed.version if isinstance(measured, MeasuredCommit) else 1
    deleted = list_deleted_keys(commit.deleted, list_known_columns(commit.snapshot)) if commit.deleted else None
    return PartitionRecords(partition, make_file_records(files, version), deleted)


def make_file_records(files: Iterable[MeasuredFile], version: int) -> pa.Table:
    """Make the records of files."""
    rows = [(file, each) for file in files for each in file.ranges]
    names = [file.name for file, _ in rows]
    keys = make_column_keys(
        _encode_each([each.column for _, each in rows], encode_names),
        _encode_each([file.partition_path for file, _ in rows], encode_partitions),
        _encode_each(names, encode_file_names),
    )
    statistics = make_statistics(names, [each for _, each in rows], version)
    return make_records(keys, COLUMN_STATS_TYPE, statistics)


def make_records(keys: pa.Array, kind: int, statistics: pa.Array) -> pa.Table:
    """Put keys and statistics together as records of the metadata table of a type."""
    return pa.table(dict(zip(_SCHEMA, (keys, repeat_value(kind, pa.int32(), len(keys)), statistics), strict=True)))


def list_deleted_keys(deleted: Mapping[str, Sequence[str]], columns: Sequence[str]) -> pa.Array:
    """Return the keys of all records of files, given by partition path."""
    pairs = [(path, name) for path, names in deleted.items() for name in names]
    some = np.arange(len(pairs)).repeat(len(columns))
    return make_column_keys(
        take(encode_names(columns), from_numpy(np.tile(np.arange(len(columns)), len(pairs)))),
        take(_encode_each([path for path, _ in pairs], encode_partitions), from_numpy(some)),
        take(encode_file_names([name for _, name in pairs]), from_numpy(some)),
    )


def _encode_each(values: Sequence[str], encode: Callable[[Iterable[str]], pa.Array]) -> pa.Array:
    """Encode values, each distinct one once."""
    numbers = {value: at for at, value in enumerate(dict.fromkeys(values))}
    return take(encode(numbers), from_numpy(np.array([numbers[value] for value in values], np.int64)))
