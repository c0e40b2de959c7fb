"""The records of ``column_stats``: the range of each indexed column in each data file (Hudi
``HoodieTableMetadataUtil.convertMetadataToColumnStatsRecords``, ``readColumnRangeMetadataFrom``,
``getLogFileColumnRangeMetadata``).

The options and the definition choose the columns. Tasks measure what they write; the rest is measured from the files
before the lock, base files by their footers and log files by their records. A file's records count as they are stored,
including records that a rollback or a later version hides: ranges may be wider than what a reader sees, never narrower.
A file whose types have no ranges gets no records, and readers open it. The records of deleted files are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, repeat_value
from hoodie_py.arrow.compute import take
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.schema import Record, parse_record
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes.definitions import (
    COLUMN_STATS,
    META_COLUMNS,
    PARTITION_STATS,
    IndexDefinitions,
    IndexedColumns,
    choose_columns,
    choose_first_columns,
    choose_index_version,
    find_index_version,
)
from hoodie_py.formats.indexes.keys import (
    COLUMN_STATS_TYPE,
    encode_file_names,
    encode_names,
    encode_partitions,
    make_column_keys,
)
from hoodie_py.formats.indexes.measure import RecordRanges, find_kinds, read_footer_ranges
from hoodie_py.formats.indexes.ranges import (
    ColumnRange,
    FileRanges,
    make_avro_key,
    make_empty_range,
    make_statistics,
    merge_ranges,
)
from hoodie_py.formats.indexes.record_schema import STATISTICS_COLUMN
from hoodie_py.formats.log.blocks import decode_records
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.options.write import STATISTICS_COLUMNS, STATISTICS_MOST_COLUMNS
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.table.indexes.view import MetadataView, read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes.index import MetadataCommit, PartitionRecords

_PARQUET = ".parquet"
_BATCH_ROWS = 64 * 1024
_AT_ONCE = 16


def measure_files(
    files: TableFiles, paths: Iterable[str], indexed: IndexedColumns, *, as_java: bool = False
) -> Iterator[tuple[str, FileRanges | None]]:
    """Yield each path with the ranges of its file, in order; files are read in parallel. Errors as ``measure_file``."""
    measure = carry_span(lambda path: measure_file(files, path, indexed, as_java=as_java))
    with ThreadPoolExecutor(_AT_ONCE, "hoodie-statistics") as pool:
        remaining = iter(paths)
        while some := list(islice(remaining, 4 * _AT_ONCE)):
            yield from zip(some, pool.map(measure, some), strict=True)


def measure_file(files: TableFiles, path: str, indexed: IndexedColumns, *, as_java: bool = False) -> FileRanges | None:
    """Return the ranges of the indexed columns in a base or log file; None if its format or types have no ranges.

    ``as_java``: the ranges that Java 1.2.0 writes, even where they are wrong (``formats/indexes/ranges.py``).

    Raises:
        CorruptFileError: the file is damaged.
        FileMissingError: the file is missing.
        StorageError: the store refused.
    """
    name = path.rpartition("/")[2]
    if name.startswith("."):
        return _measure_log(files, path, indexed)
    if not name.endswith(_PARQUET):
        return None
    reader = BaseFileReader(files, BaseFile(path, 0, "", ""))
    if reader.footer is None:
        return None
    found = read_footer_ranges(reader.footer, indexed.names, indexed.version, as_java=as_java)
    if found is None or not found.incomplete:
        return found
    return found.complete(_measure_columns(reader, found))


def complete_ranges(files: TableFiles, path: str, found: FileRanges) -> FileRanges:
    """Return the ranges of a base file, reading the incomplete columns from the file. Errors as ``measure_file``."""
    if not found.incomplete:
        return found
    return found.complete(_measure_columns(BaseFileReader(files, BaseFile(path, 0, "", "")), found))


def _measure_columns(reader: BaseFileReader, found: FileRanges) -> Mapping[str, ColumnRange]:
    """Read the incomplete columns."""
    kinds = {each.column: each.kind for each in found.ranges if each.column in found.incomplete}
    collected = RecordRanges(kinds)
    schema = reader.schema
    names = list(dict.fromkeys(column.split(".")[0] for column in kinds))
    wanted = pa.schema([schema.field(name) for name in names if name in schema.names])
    for batch in reader.read_batches(wanted, _BATCH_ROWS):
        collected.add(batch)
    return {each.column: each for each in collected.finish() if each.values}


def _measure_log(files: TableFiles, path: str, indexed: IndexedColumns) -> FileRanges | None:
    ranges: dict[str, list[ColumnRange]] = {}
    for block in iterate_blocks(files.read(path)):
        if not isinstance(block, LogBlock) or not block.is_data:
            continue  # readers leave corrupt blocks out, too
        collected = RecordRanges(find_kinds(indexed.names, parse_record(block.schema_text or "")))
        collected.add(decode_records(block))
        for each in collected.finish():
            ranges.setdefault(each.column, []).append(each)
    if not ranges:
        return FileRanges(tuple(make_empty_range(name) for name in indexed.names))
    try:
        return FileRanges(tuple(merge_ranges(each, key=make_avro_key) for each in ranges.values()))
    except UnsupportedFeatureError:  # the file's blocks have different types
        return None


def find_indexed_columns(snapshot: Snapshot, avro_schema: str, options: Mapping[str, str]) -> IndexedColumns | None:
    """Return the columns that a write measures; None if the table has no statistics.

    ``avro_schema`` is the schema of the write (JSON, meta columns first).

    Raises:
        CorruptFileError, InvalidTableError, StorageError, UnsupportedFeatureError: as ``read_definitions``.
    """
    config = snapshot.config
    if not {COLUMN_STATS, PARTITION_STATS} & {*config.metadata_partitions, *config.metadata_partitions_inflight}:
        return None
    definitions = read_definitions(snapshot.files, config)
    return choose_indexed_columns(config, definitions, avro_schema, options, _read_schema(snapshot))


def choose_indexed_columns(
    config: TableConfig,
    definitions: IndexDefinitions,
    avro_schema: str,
    options: Mapping[str, str],
    before: Record | None = None,
) -> IndexedColumns:
    """Return the columns that options and definitions choose; ``before`` as for ``choose_columns``."""
    version = find_index_version(COLUMN_STATS, definitions, config.version)
    defined = definitions.get(COLUMN_STATS)
    names = choose_columns(
        parse_record(avro_schema),
        version,
        meta_columns=config.populate_meta_fields,
        listed=STATISTICS_COLUMNS.read(options),
        most=STATISTICS_MOST_COLUMNS.read(options),
        defined=None if defined is None else defined.columns,
        before=before,
    )
    return IndexedColumns(names, version)


def list_known_columns(snapshot: Snapshot) -> tuple[str, ...]:
    """Return all columns that files may have records of: the columns of the definition, and the first of the schema.

    Raises as ``find_indexed_columns``.
    """
    defined = read_definitions(snapshot.files, snapshot.config).get(COLUMN_STATS)
    first = _choose_by_schema(snapshot)
    return tuple(dict.fromkeys((*META_COLUMNS, *(() if defined is None else defined.columns), *first)))


def _choose_by_schema(snapshot: Snapshot) -> tuple[str, ...]:
    before = _read_schema(snapshot)
    version = choose_index_version(COLUMN_STATS, snapshot.config.version)
    return () if before is None else choose_first_columns(before, version)


def _read_schema(snapshot: Snapshot) -> Record | None:
    """Return the schema of the table's newest commit, None if it has none."""
    text = snapshot.schema.text
    return None if text is None else parse_record(text)


_SCHEMA = ("key", "type", STATISTICS_COLUMN)


@dataclass(frozen=True, slots=True)
class MeasuredFile:
    """The ranges of the columns of one data file."""

    partition_path: str
    name: str
    ranges: Sequence[ColumnRange]


@dataclass(frozen=True, slots=True)
class MeasuredCommit:
    """The measured columns, and their ranges in an instant's new files. ``bare`` are the files without ranges."""

    indexed: IndexedColumns
    files: tuple[MeasuredFile, ...]
    bare: tuple[tuple[str, str], ...] = ()


def measure_commit(commit: MetadataCommit, _partition: str) -> MeasuredCommit | None:
    """Find the ranges of an instant's new files; None if the instant writes no records.

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
    if ranges is None:  # the table had no statistics when the write began
        return measure_file(files, path, indexed)
    return complete_ranges(files, path, ranges)


def make_column_statistics(commit: MetadataCommit, partition: str, _view: MetadataView) -> PartitionRecords:
    """Make the records of an instant: ranges of its new files, and deletes for the files that it removes."""
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
    """Join keys and statistics to records of the metadata table. ``kind`` is the records' type."""
    return pa.table(dict(zip(_SCHEMA, (keys, repeat_value(kind, pa.int32(), len(keys)), statistics), strict=True)))


def list_deleted_keys(deleted: Mapping[str, Sequence[str]], columns: Sequence[str]) -> pa.Array:
    """Return the keys of all records of files. ``deleted``: file names by partition path."""
    pairs = [(path, name) for path, names in deleted.items() for name in names]
    some = np.arange(len(pairs)).repeat(len(columns))
    return make_column_keys(
        take(encode_names(columns), from_numpy(np.tile(np.arange(len(columns)), len(pairs)))),
        take(_encode_each([path for path, _ in pairs], encode_partitions), from_numpy(some)),
        take(encode_file_names([name for _, name in pairs]), from_numpy(some)),
    )


def _encode_each(values: Sequence[str], encode: Callable[[Iterable[str]], pa.Array]) -> pa.Array:
    """Encode values; each distinct value is encoded once."""
    numbers = {value: at for at, value in enumerate(dict.fromkeys(values))}
    return take(encode(numbers), from_numpy(np.array([numbers[value] for value in values], np.int64)))
