"""Makes the records of expression indexes: of a function's results in each data file (Hudi
``SparkMetadataWriterUtils``).

* Type ``column_stats``: the range of each file and of each partition. Sizes are as Java has them: that of the file, and
  twice that. A partition's record is made anew from those of the files that stay.
* Type ``bloom_filters``: a bloom filter of each base file.

Results that cannot be told as Spark would (``formats/metadata_table/expressions``) have the widest range, or a filter
that has all keys: readers then open these files, and Java's records are narrower once it rewrites them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import join_chunks
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.log.blocks import decode_records
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.metadata_table.column_ranges import (
    ColumnRange,
    make_statistics,
    merge_ranges,
    read_statistics,
    simplify_range,
)
from hoodie_py.formats.metadata_table.expressions import apply_function, find_result_kind
from hoodie_py.formats.metadata_table.index_definitions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_PREFIX,
    IndexDefinition,
)
from hoodie_py.formats.metadata_table.keys import (
    COLUMN_STATS_TYPE,
    PARTITION_STATS_TYPE,
    encode_file_names,
    encode_names,
    encode_partitions,
    make_column_keys,
    make_column_partition_prefixes,
    make_expression_partition_keys,
)
from hoodie_py.formats.metadata_table.record_ranges import RecordRanges, find_kinds
from hoodie_py.formats.metadata_table.value_kinds import NO_VALUES, ValueKind
from hoodie_py.formats.metadata_table.widest_ranges import make_widest_range
from hoodie_py.formats.parquet.bloom import SIMPLE, BloomBuilder, BloomFilter, BloomSettings
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.table.metadata_table.definitions import read_definitions
from hoodie_py.table.metadata_table.view import MetadataView
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.metadata_table.bloom_filters import FileBloom, make_bloom_records
from hoodie_py.writer.metadata_table.bloom_filters import list_deleted_keys as list_bloom_keys
from hoodie_py.writer.metadata_table.column_statistics import list_deleted_keys, make_records
from hoodie_py.writer.metadata_table.files_after import find_files_after
from hoodie_py.writer.metadata_table.update import MetadataCommit, PartitionRecords

_STATISTICS = "ColumnStatsMetadata"
_BATCH_ROWS = 64 * 1024

_WHOLE = BloomFilter(8, 1, [np.full(1, 0xFF, np.uint8)], per_row=None, in_last_row=0)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The definition of an index, and what the instant's new files have: ranges, or bloom filters."""

    definition: IndexDefinition
    kind: ValueKind = NO_VALUES
    measured: tuple[tuple[TaskResult, ColumnRange], ...] = ()
    blooms: tuple[FileBloom, ...] = ()


def find_expression_problem(snapshot: Snapshot) -> str | None:
    """Return why an expression index of a table cannot be kept up, None if all can. Raises as ``read_definitions``."""
    names = [name for name in snapshot.config.metadata_partitions if name.startswith(EXPRESSION_PREFIX)]
    if not names:
        return None
    definitions = read_definitions(snapshot.files, snapshot.config)
    for name in names:
        definition = definitions.get(name)
        if definition is None or len(definition.columns) != 1:
            return f"its partition {name!r} has no definition"
        if definition.kind not in (COLUMN_STATS, BLOOM_FILTERS):
            return f"the type {definition.kind[:40]!r} of its partition {name!r} is not handled"
        text = snapshot.schema.text
        if definition.kind == COLUMN_STATS and (text is None or _find_kind(definition, text) is None):
            return f"the function {definition.function[:40]!r} of its partition {name!r} is not handled"
    return None


def _find_definition(snapshot: Snapshot, partition: str) -> IndexDefinition:
    definition = read_definitions(snapshot.files, snapshot.config).get(partition)
    if definition is None or len(definition.columns) != 1:
        raise InvalidTableError("An expression index has no definition.", index=partition)
    return definition


def _find_kind(definition: IndexDefinition, schema: str) -> ValueKind | None:
    kinds = find_kinds(definition.columns, parse_record(schema))
    kind = find_result_kind(definition, kinds.get(definition.columns[0]))
    if kind is None or make_widest_range("", kind) is None:
        return None
    return kind


def measure_expression(commit: MetadataCommit, partition: str) -> Prepared:
    """Find the ranges, or the bloom filters, of an instant's new files.

    Raises:
        UnsupportedFeatureError: the index's function is not handled.
        CorruptFileError, FileMissingError: a new file cannot be read.
        StorageError: the store refused.
    """
    definition = _find_definition(commit.snapshot, partition)
    if commit.schema is None or not commit.results:
        return Prepared(definition)
    files = commit.session.files
    if definition.kind == BLOOM_FILTERS:
        return Prepared(definition, blooms=tuple(_iterate_blooms(files, commit.results, definition)))
    kind = _find_kind(definition, commit.schema)
    if kind is None:
        raise UnsupportedFeatureError(
            f"Expression indexes of the function {definition.function[:40]!r}.",
            hint="Drop the index with Java Hudi; it can be made again later.",
            index=partition,
        )
    measured = ((result, _measure(files, result, definition, kind)) for result in commit.results)
    return Prepared(definition, kind, tuple((result, found) for result, found in measured if found is not None))


def _iterate_blooms(
    files: TableFiles, results: Sequence[TaskResult], definition: IndexDefinition
) -> Iterator[FileBloom]:
    """Yield the filters of base files; log files have none."""
    for result in results:
        name = result.path.rpartition("/")[2]
        if not name.startswith("."):
            text = _make_bloom(files, result.path, definition).to_text()
            yield FileBloom(result.stat.partition_path, name, SIMPLE, text.encode())


def _make_bloom(files: TableFiles, path: str, definition: IndexDefinition) -> BloomFilter:
    builder = BloomBuilder(BloomSettings(dynamic=False, fitted=True))
    for batch in _read_column(files, path, definition.columns[0]):
        place = batch.schema.get_field_index(definition.columns[0])
        values = None if place < 0 else apply_function(definition, batch.column(place))
        if values is None or not (pa.types.is_string(values.type) or pa.types.is_integer(values.type)):
            return _WHOLE
        builder.add(values.drop_null().cast(pa.string()))
    return builder.finish()


def _measure(files: TableFiles, result: TaskResult, definition: IndexDefinition, kind: ValueKind) -> ColumnRange | None:
    """Return the range of one file."""
    [column] = definition.columns
    collected = RecordRanges({column: kind})
    for batch in _read_column(files, result.path, column):
        place = batch.schema.get_field_index(column)
        values = None if place < 0 else apply_function(definition, batch.column(place))
        if values is None:
            return _size(make_widest_range(column, kind), result)
        collected.add(pa.RecordBatch.from_arrays([values], names=[column]))
    return _size(collected.finish()[0], result)


def _size(found: ColumnRange | None, result: TaskResult) -> ColumnRange | None:
    size = result.stat.file_size_in_bytes
    return None if found is None else replace(found, size=size, uncompressed=2 * size)


def _read_column(files: TableFiles, path: str, column: str) -> Iterator[pa.RecordBatch]:
    if path.rpartition("/")[2].startswith("."):
        for block in iterate_blocks(files.read(path)):
            if isinstance(block, LogBlock) and block.is_data:
                yield decode_records(block, [column])
        return
    reader = open_by_extension(files, BaseFile(path, 0, "", ""))
    yield from reader.read_batches(pa.schema([f for f in reader.schema if f.name == column]), _BATCH_ROWS)


def make_expression_records(commit: MetadataCommit, partition: str, view: MetadataView) -> PartitionRecords:
    """Make the records of an instant: of its new files and their partitions, and deletes of those of files that go.

    Raises:
        CorruptFileError: the metadata table is damaged.
        StorageError: the store refused.
    """
    found = commit.prepared.get(partition)
    prepared = found if isinstance(found, Prepared) else Prepared(_find_definition(commit.snapshot, partition))
    definition = prepared.definition
    if definition.kind == BLOOM_FILTERS:
        gone = list_bloom_keys(commit.deleted)
        return PartitionRecords(
            partition, make_bloom_records(prepared.blooms, commit.instant), gone if len(gone) else None
        )
    version = definition.version or 1
    deleted = list_deleted_keys(commit.deleted, definition.columns) if commit.deleted else None
    names = [result.path.rpartition("/")[2] for result, _ in prepared.measured]
    paths = [result.stat.partition_path for result, _ in prepared.measured]
    column = encode_names(definition.columns)[0]
    keys = make_column_keys(pa.repeat(column, len(names)), encode_partitions(paths), encode_file_names(names))
    ranges = make_statistics(names, [each for _, each in prepared.measured], version)
    merged = _merge_partitions(commit, partition, view, prepared)
    statistics = make_statistics(list(merged), list(merged.values()), version, tight=True)
    parts = make_expression_partition_keys(pa.repeat(column, len(merged)), encode_partitions(merged))
    records = [make_records(keys, COLUMN_STATS_TYPE, ranges), make_records(parts, PARTITION_STATS_TYPE, statistics)]
    return PartitionRecords(partition, pa.concat_tables(records), deleted)


def _merge_partitions(
    commit: MetadataCommit, partition: str, view: MetadataView, prepared: Prepared
) -> Mapping[str, ColumnRange]:
    """Return the range of each partition that the instant changes, from the records of its files."""
    new: dict[str, list[ColumnRange]] = {}
    for result, found in prepared.measured:
        new.setdefault(result.stat.partition_path, []).append(found)
    if not new:
        return {}
    definition = prepared.definition
    version = definition.version or 1
    after = find_files_after(commit, sorted(new))
    merged = {}
    for path, ranges in new.items():
        records = view.read_prefixes(partition, make_column_partition_prefixes(definition.columns, [path]))
        rows = join_chunks(records[_STATISTICS])
        stored = zip(rows.to_pylist(), read_statistics(rows, version), strict=True)
        old = {row["fileName"]: each for row, each in stored if row["fileName"] in after[path]}
        every = [simplify_range(each, version) for each in (*ranges, *old.values())]
        known = len(old) == len(after[path]) and len({each.kind for each in every} - {NO_VALUES}) <= 1
        whole = merge_ranges(every) if known else make_widest_range(definition.columns[0], prepared.kind)
        if whole is not None:
            merged[path] = whole
    return merged
