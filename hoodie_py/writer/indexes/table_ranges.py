"""The records of new partitions with statistics and bloom filters, portion by portion (Hudi
``HoodieTableMetadataUtil.convertFilesToColumnStatsRecords``, ``convertFilesToPartitionStatsRecords``,
``convertFilesToBloomFilterRecords``).

Column statistics and bloom filters describe all files, including old versions; statistics of partitions describe the
files that readers see.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import join_chunks
from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.indexes.definitions import COLUMN_STATS, IndexDefinitions, IndexedColumns
from hoodie_py.formats.indexes.keys import find_file_groups
from hoodie_py.formats.indexes.measure import find_kinds
from hoodie_py.formats.indexes.ranges import ColumnRange
from hoodie_py.table.indexes.view import read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes.blooms import make_bloom_records, read_blooms
from hoodie_py.writer.indexes.column_ranges import (
    MeasuredFile,
    choose_indexed_columns,
    make_file_records,
    measure_files,
)
from hoodie_py.writer.indexes.index import GroupPlan, Portion
from hoodie_py.writer.indexes.partition_ranges import Parts, add_file, make_partition_records, merge_parts, tighten
from hoodie_py.writer.indexes.table_source import IndexSource
from hoodie_py.writer.output_schema import load_output_schema

_FILES_AT_ONCE = 256
_BLOOMS_AT_ONCE = 32


class FilePlace(NamedTuple):
    """Partition path and name of a data file."""

    partition_path: str
    name: str

    @property
    def path(self) -> str:
        """Path relative to the table."""
        return f"{self.partition_path}/{self.name}" if self.partition_path else self.name


def choose_new_columns(snapshot: Snapshot, options: dict[str, str] | None = None) -> IndexedColumns:
    """Return the columns of a new index of column statistics, by the options.

    Raises InvalidQueryError if an option is bad.
    """
    schema = load_output_schema(snapshot).avro
    return choose_indexed_columns(snapshot.config, IndexDefinitions(), schema, options or {})


def find_indexed_columns(source: IndexSource) -> IndexedColumns:
    """Return the columns of the table's column statistics, existing or being built."""
    definition = source.definition or read_definitions(source.snapshot.files, source.snapshot.config).get(COLUMN_STATS)
    if definition is None:
        return choose_new_columns(source.snapshot, dict(source.options))
    return IndexedColumns(definition.columns, definition.version or 1)


def list_file_places(source: IndexSource) -> Iterator[FilePlace]:
    """Yield all data files of the table."""
    for path in sorted(source.files):
        yield from (FilePlace(path, name) for name in sorted(source.files[path]))


def make_column_ranges(source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
    """Yield the records of ``column_stats``: the range of each indexed column in each file.

    Raises:
        CorruptFileError, FileMissingError: a file cannot be read.
    """
    indexed = find_indexed_columns(source)
    remaining = list_file_places(source)
    while some := list(islice(remaining, _FILES_AT_ONCE)):
        measured = measure_files(source.snapshot.files, [each.path for each in some], indexed)
        files = [
            MeasuredFile(*place, found.ranges)
            for place, (_, found) in zip(some, measured, strict=True)
            if found is not None
        ]
        yield place_records(make_file_records(files, indexed.version), groups)


def make_partition_ranges(source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
    """Yield the records of ``partition_stats``: the range of each indexed column in each partition.

    Errors as ``make_column_ranges``.
    """
    indexed = find_indexed_columns(source)
    for path, ranges in iterate_partition_ranges(source, indexed):
        yield place_records(make_partition_records({path: tighten(ranges)}, indexed.version), groups)


def iterate_partition_ranges(
    source: IndexSource, indexed: IndexedColumns, *, as_java: bool = False
) -> Iterator[tuple[str, dict[str, ColumnRange]]]:
    """Yield each partition of the table with the ranges of the files that readers see."""
    kinds = find_kinds(indexed.names, parse_record(load_output_schema(source.snapshot).avro))
    for path, files in source.visible_files.items():
        parts: Parts = {}
        for _, found in measure_files(source.snapshot.files, files, indexed, as_java=as_java):
            add_file(parts, () if found is None else found.ranges, kinds, indexed.version)
        yield path, merge_parts(parts, kinds, indexed.version)


def make_blooms(source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
    """Yield the records of ``bloom_filters``: the filter in the footer of each base file.

    Errors as ``make_column_ranges``.
    """
    last = source.snapshot.timeline.select_completed().last
    instant = "" if last is None else last.request_time
    blooms = read_blooms(source.snapshot.files, list_file_places(source))
    while some := list(islice(blooms, _BLOOMS_AT_ONCE)):
        yield place_records(make_bloom_records(some, instant), groups)


def place_records(records: pa.Table, groups: GroupPlan) -> Portion:
    """Put records into the file groups that the hashes of their keys choose."""
    keys = join_chunks(records["key"])
    count = len(groups.file_ids)
    numbers: npt.NDArray[np.int64] = find_file_groups(keys, count) if len(keys) else np.empty(0, np.int64)
    return Portion(records, numbers)
