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
from dataclasses import dataclass, replace
from itertools import islice
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, from_texts, repeat_value, take, to_booleans
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.schema import Record, parse_record
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes import keys as index_keys
from hoodie_py.formats.indexes import ranges as column_ranges
from hoodie_py.formats.indexes.definitions import (
    COLUMN_STATS,
    META_COLUMNS,
    PARTITION_STATS,
    IndexDefinition,
    IndexDefinitions,
    IndexedColumns,
    choose_columns,
    choose_first_columns,
    choose_index_version,
    find_index_version,
)
from hoodie_py.formats.indexes.measure import RecordRanges, find_field, find_kinds, read_footer_ranges
from hoodie_py.formats.indexes.ranges import ColumnRange, FileRanges
from hoodie_py.formats.indexes.record_schema import STATISTICS_COLUMN
from hoodie_py.formats.log.blocks import decode_records
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.options.indexes import COLUMN_STATS_GROUPS
from hoodie_py.options.write import STATISTICS_COLUMNS, STATISTICS_MOST_COLUMNS
from hoodie_py.reader.base.base_file import BaseFileReader
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.table.indexes.view import MetadataView, read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes.index import GroupPlan, Index, MetadataCommit, PartitionRecords, Portion, place_records
from hoodie_py.writer.indexes.range_checks import check_range, read_ranges
from hoodie_py.writer.indexes.table_source import FilePlace, IndexSource
from hoodie_py.writer.indexes.verify_report import OnEntries, PartReport
from hoodie_py.writer.output_schema import load_output_schema

_PARQUET = ".parquet"
_BATCH_ROWS = 64 * 1024
_AT_ONCE = 16
_FILES_AT_ONCE = 256
_CHECKED_AT_ONCE = 128


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
        return FileRanges(tuple(column_ranges.make_empty_range(name) for name in indexed.names))
    try:
        return FileRanges(
            tuple(column_ranges.merge_ranges(each, key=column_ranges.make_avro_key) for each in ranges.values())
        )
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


def choose_new_columns(snapshot: Snapshot, options: dict[str, str] | None = None) -> IndexedColumns:
    """Return the columns of a new index of column statistics, by the options.

    Raises InvalidQueryError if an option is bad.
    """
    schema = load_output_schema(snapshot).avro
    return choose_indexed_columns(snapshot.config, IndexDefinitions(), schema, options or {})


def read_indexed_columns(source: IndexSource) -> IndexedColumns:
    """Return the columns of the table's column statistics, existing or being built."""
    definition = source.definition or read_definitions(source.snapshot.files, source.snapshot.config).get(COLUMN_STATS)
    if definition is None:
        return choose_new_columns(source.snapshot, dict(source.options))
    return IndexedColumns(definition.columns, definition.version or 1)


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


@dataclass(frozen=True, slots=True)
class ColumnRanges(Index):
    """The partition ``column_stats``.

    A check finds a file without any entry right, as readers always read it: Java writes no entries for log files whose
    records were rolled back. A file with entries needs one for each column, as Java reads a missing one as "only
    nulls". Once schema-on-read has renamed or retyped columns, older files lack entries for new names; readers use no
    statistics then, so no entry counts as missing. Entries of deleted files are stale.
    """

    _prefix = "col-stats-"

    measured: MeasuredCommit | None = None
    """The ranges of an instant's new files; None if it writes no records."""

    def prepare(self, change: MetadataCommit) -> Self:
        """Find the ranges of an instant's new files; errors as ``measure_commit``."""
        return replace(self, measured=measure_commit(change))

    def records(self, change: MetadataCommit, view: MetadataView) -> PartitionRecords:
        """Make the records of an instant: ranges of its new files, and deletes for the files that it removes."""
        del view
        measured = self.measured
        files, version = ((), 1) if measured is None else (measured.files, measured.indexed.version)
        deleted = list_deleted_keys(change.deleted, list_known_columns(change.snapshot)) if change.deleted else None
        return PartitionRecords(self.partition, make_file_records(files, version), deleted)

    def redefine(self, change: MetadataCommit) -> IndexDefinition | None:
        """Return the definition with the new columns of a write that it has statistics of; None if there are none.

        By the definition the next write knows that no list chose the columns, so that it measures them as well.
        """
        before = change.snapshot.schema.text
        if self.measured is None or before is None:
            return None
        known = parse_record(before)
        names = (name for name in self.measured.indexed.names if name not in META_COLUMNS)
        new = [name for name in names if find_field(known, name) is None]
        if not new:
            return None
        defined = read_definitions(change.session.files, change.snapshot.config).get(COLUMN_STATS)
        if defined is None or set(new) <= set(defined.columns):
            return None
        return replace(defined, columns=tuple(dict.fromkeys((*defined.columns, *new))))

    def portions(self, source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
        """Yield the range of each indexed column in each file, including old versions; errors as ``measure_file``."""
        indexed = read_indexed_columns(source)
        remaining = source.list_places()
        while some := list(islice(remaining, _FILES_AT_ONCE)):
            measured = measure_files(source.snapshot.files, [each.path for each in some], indexed)
            files = [
                MeasuredFile(*place, found.ranges)
                for place, (_, found) in zip(some, measured, strict=True)
                if found is not None
            ]
            yield place_records(make_file_records(files, indexed.version), groups)

    def count_groups(self, options: Mapping[str, str]) -> int:
        """Return the number that the options say."""
        return COLUMN_STATS_GROUPS.read(options)

    def check(self, source: IndexSource, view: MetadataView, on_entries: OnEntries | None = None) -> PartReport:
        """Compare each range with the file's values.

        Raises:
            HoodieError: a file cannot be read.
        """
        report = PartReport(self.partition)
        altered = source.snapshot.schema.mappings is not None
        indexed = read_indexed_columns(source)
        remaining = source.list_places()
        while some := list(islice(remaining, _CHECKED_AT_ONCE)):
            true = _measure_by_column(source, some, indexed, as_java=False)
            java = _measure_by_column(source, some, indexed, as_java=True)
            keys, places = _make_file_keys(some, indexed)
            found = read_ranges(view, self.partition, keys, indexed.version)
            indexed_places = {place for key, (place, _) in zip(keys, places, strict=True) if key in found}
            for key, (place, column) in zip(keys, places, strict=True):
                measured = (true[place], java[place])
                if altered and key not in found:
                    continue
                if measured[0] is not None and place in indexed_places:
                    expected = [ranges[column] for ranges in measured if ranges is not None and column in ranges]
                    check_range(report, f"{place.path} {column}", found.get(key), expected, indexed.version)
            if on_entries is not None:
                on_entries(self.partition, report.checked, None)
        report.stale = _count_stale(view, self.partition, {name for _, name in source.list_places()})
        return report


def measure_commit(change: MetadataCommit) -> MeasuredCommit | None:
    """Find the ranges of an instant's new files; None if the instant writes no records.

    Raises:
        CorruptFileError, FileMissingError: a new file cannot be read.
        StorageError: the store refused.
    """
    if change.schema is None:
        return None
    indexed = find_indexed_columns(change.snapshot, change.schema, change.session.settings.options)
    if indexed is None:
        return None
    files: list[MeasuredFile] = []
    bare: list[tuple[str, str]] = []
    for result in change.results:
        name, path = result.path.rpartition("/")[2], result.stat.partition_path
        found = _find_ranges(change.session.files, result.path, result.ranges, indexed)
        if found is None:
            bare.append((path, name))
        else:
            files.append(MeasuredFile(path, name, found.ranges))
    return MeasuredCommit(indexed, tuple(files), tuple(bare))


def _find_ranges(files: TableFiles, path: str, ranges: FileRanges | None, indexed: IndexedColumns) -> FileRanges | None:
    if ranges is None:  # the table had no statistics when the write began
        return measure_file(files, path, indexed)
    return complete_ranges(files, path, ranges)


def make_file_records(files: Iterable[MeasuredFile], version: int) -> pa.Table:
    """Make the records of files."""
    rows = [(file, each) for file in files for each in file.ranges]
    names = [file.name for file, _ in rows]
    keys = index_keys.make_column_keys(
        _encode_each([each.column for _, each in rows], index_keys.encode_names),
        _encode_each([file.partition_path for file, _ in rows], index_keys.encode_partitions),
        _encode_each(names, index_keys.encode_file_names),
    )
    statistics = column_ranges.make_statistics(names, [each for _, each in rows], version)
    return make_records(keys, index_keys.COLUMN_STATS_TYPE, statistics)


def make_records(keys: pa.Array, kind: int, statistics: pa.Array) -> pa.Table:
    """Join keys and statistics to records of the metadata table. ``kind`` is the records' type."""
    return pa.table(dict(zip(_SCHEMA, (keys, repeat_value(kind, pa.int32(), len(keys)), statistics), strict=True)))


def list_deleted_keys(deleted: Mapping[str, Sequence[str]], columns: Sequence[str]) -> pa.Array:
    """Return the keys of all records of files. ``deleted``: file names by partition path."""
    pairs = [(path, name) for path, names in deleted.items() for name in names]
    some = np.arange(len(pairs)).repeat(len(columns))
    return index_keys.make_column_keys(
        take(index_keys.encode_names(columns), from_numpy(np.tile(np.arange(len(columns)), len(pairs)))),
        take(_encode_each([path for path, _ in pairs], index_keys.encode_partitions), from_numpy(some)),
        take(index_keys.encode_file_names([name for _, name in pairs]), from_numpy(some)),
    )


def _encode_each(values: Sequence[str], encode: Callable[[Iterable[str]], pa.Array]) -> pa.Array:
    """Encode values; each distinct value is encoded once."""
    numbers = {value: at for at, value in enumerate(dict.fromkeys(values))}
    return take(encode(numbers), from_numpy(np.array([numbers[value] for value in values], np.int64)))


def _measure_by_column(
    source: IndexSource, places: Sequence[FilePlace], indexed: IndexedColumns, *, as_java: bool
) -> Mapping[FilePlace, Mapping[str, ColumnRange] | None]:
    measured = measure_files(source.snapshot.files, [each.path for each in places], indexed, as_java=as_java)
    return {
        place: None if found is None else {each.column: each for each in found.ranges}
        for place, (_, found) in zip(places, measured, strict=True)
    }


def _make_file_keys(
    places: Sequence[FilePlace], indexed: IndexedColumns
) -> tuple[list[str], list[tuple[FilePlace, str]]]:
    pairs = [(place, column) for place in places for column in indexed.names]
    keys = index_keys.make_column_keys(
        index_keys.encode_names(column for _, column in pairs),
        index_keys.encode_partitions(place.partition_path for place, _ in pairs),
        index_keys.encode_file_names(place.name for place, _ in pairs),
    )
    return keys.to_pylist(), pairs


def _count_stale(view: MetadataView, partition: str, known: set[str]) -> int:
    """Count the entries of deleted files."""
    names = from_texts(sorted(known), pa.string())
    stale = 0
    for batch in view.read_all(partition):
        statistics = batch.column(STATISTICS_COLUMN)
        deleted = pc.fill_null(pc.struct_field(statistics, "isDeleted"), False)
        there = pc.is_in(pc.struct_field(statistics, "fileName"), names)
        stale += int((~(to_booleans(there) | to_booleans(deleted))).sum())
    return stale
