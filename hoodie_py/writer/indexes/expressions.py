"""The records of expression indexes: a function's results in each data file (Hudi
``ExpressionIndexRecordGenerationUtils``).

* Type ``column_stats``: the range of each file and of each partition. A partition's record is made anew from the
  records of the files that stay. A file without rows, such as a log file of deletes, gets no record: Java merges only
  records that have values of one type.
* Type ``bloom_filters``: a bloom filter of each base file.

Results that cannot be computed as Spark does (``formats/indexes/expressions``) get the widest range, or a filter that
contains all keys: readers then open these files, and Java's records are narrower once it rewrites them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import join_chunks
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.indexes.bounds import NO_VALUES, ValueKind
from hoodie_py.formats.indexes.definitions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_PREFIX,
    IndexDefinition,
)
from hoodie_py.formats.indexes.expressions import apply_function, find_result_kind
from hoodie_py.formats.indexes.keys import (
    COLUMN_STATS_TYPE,
    PARTITION_STATS_TYPE,
    encode_file_names,
    encode_names,
    encode_partitions,
    make_column_keys,
    make_column_partition_prefixes,
    make_expression_partition_keys,
)
from hoodie_py.formats.indexes.measure import RecordRanges, find_kinds
from hoodie_py.formats.indexes.ranges import (
    ColumnRange,
    make_statistics,
    make_widest_range,
    merge_ranges,
    read_statistics,
    simplify_range,
)
from hoodie_py.formats.indexes.record_schema import STATISTICS_COLUMN
from hoodie_py.formats.log.blocks import decode_records
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.parquet.bloom import SIMPLE, BloomBuilder, BloomFilter, BloomSettings
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.table.indexes.view import MetadataView, read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.indexes.blooms import FileBloom, make_bloom_records
from hoodie_py.writer.indexes.blooms import list_deleted_keys as list_bloom_keys
from hoodie_py.writer.indexes.column_ranges import list_deleted_keys, make_records
from hoodie_py.writer.indexes.group_changes import find_files_after
from hoodie_py.writer.indexes.index import MetadataCommit, PartitionRecords
from hoodie_py.writer.indexes.partition_ranges import StoredRange, find_overlap, read_stored_ranges

_BATCH_ROWS = 64 * 1024

_WHOLE = BloomFilter(8, 1, [np.full(1, 0xFF, np.uint8)], per_row=None, in_last_row=0)


def find_kind(definition: IndexDefinition, schema: str) -> ValueKind | None:
    """Return the kind of an index's values on a table with a schema (Avro, JSON); None if they can have no ranges."""
    kinds = find_kinds(definition.columns, parse_record(schema))
    kind = find_result_kind(definition, kinds.get(definition.columns[0]))
    if kind is None or make_widest_range("", kind) is None:
        return None
    return kind


def iterate_results(files: TableFiles, path: str, definition: IndexDefinition) -> Iterator[pa.Array | None]:
    """Yield expression results per batch of a data file; None where they cannot be computed.

    Raises:
        CorruptFileError, FileMissingError: the file cannot be read.
        StorageError: the store refused.
    """
    [column] = definition.columns
    for batch in _read_column(files, path, column):
        place = batch.schema.get_field_index(column)
        yield None if place < 0 else apply_function(definition, batch.column(place))


def make_bloom(files: TableFiles, path: str, definition: IndexDefinition) -> BloomFilter:
    """Make the filter of a base file. Errors as for ``iterate_results``."""
    builder = BloomBuilder(BloomSettings(dynamic=False, fitted=True))
    for results in iterate_results(files, path, definition):
        texts = None if results is None else make_texts(results)
        if texts is None:
            return _WHOLE
        builder.add(texts)
    return builder.finish()


def make_texts(results: pa.Array) -> pa.Array | None:
    """Return results as Java adds them to a bloom filter, without nulls; None for types whose texts are unknown."""
    if not (pa.types.is_string(results.type) or pa.types.is_integer(results.type)):
        return None
    return results.drop_null().cast(pa.string())


def measure_results(
    files: TableFiles, path: str, size: int, definition: IndexDefinition, kind: ValueKind
) -> ColumnRange:
    """Return the range of a data file of ``size`` bytes. Errors as for ``iterate_results``."""
    found = find_exact_range(files, path, definition, kind)
    if found is None:
        found = make_widest_range(definition.columns[0], kind)
    if found is None:
        raise InvalidTableError("An expression index has values that have no order.", index=definition.name)
    # As in Java: ranges of one kind, which it needs to merge them; nulls do not count as values; sizes are the file's.
    return replace(found, kind=kind, values=found.values - found.nulls, size=size, uncompressed=2 * size)


def find_exact_range(files: TableFiles, path: str, definition: IndexDefinition, kind: ValueKind) -> ColumnRange | None:
    """Return the range of a file's results, nulls counted as values; None where they cannot be computed."""
    [column] = definition.columns
    collected = RecordRanges({column: kind})
    for results in iterate_results(files, path, definition):
        if results is None:
            return None
        collected.add(pa.RecordBatch.from_arrays([results], names=[column]))
    return collected.finish()[0]


def _read_column(files: TableFiles, path: str, column: str) -> Iterator[pa.RecordBatch]:
    if path.rpartition("/")[2].startswith("."):
        for block in iterate_blocks(files.read(path)):
            if isinstance(block, LogBlock) and block.is_data:
                yield decode_records(block, [column])
        return
    reader = open_by_extension(files, BaseFile(path, 0, "", ""))
    yield from reader.read_batches(pa.schema([f for f in reader.schema if f.name == column]), _BATCH_ROWS)


@dataclass(frozen=True, slots=True)
class FileRange:
    """The range of an expression in one data file."""

    partition_path: str
    name: str
    range: ColumnRange

    @property
    def has_rows(self) -> bool:
        """Whether the file has rows."""
        return self.range.values > 0 or self.range.nulls > 0


@dataclass(frozen=True, slots=True)
class Prepared:
    """The definition of an index, and the ranges or bloom filters of the instant's new files."""

    definition: IndexDefinition
    kind: ValueKind = NO_VALUES
    measured: tuple[FileRange, ...] = ()
    blooms: tuple[FileBloom, ...] = ()


def find_expression_problem(snapshot: Snapshot) -> str | None:
    """Return why an expression index of a table cannot be kept up; None if all can. Raises as ``read_definitions``."""
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
        if definition.kind == COLUMN_STATS and (text is None or find_kind(definition, text) is None):
            return f"the function {definition.function[:40]!r} of its partition {name!r} is not handled"
    return None


def _find_definition(snapshot: Snapshot, partition: str) -> IndexDefinition:
    definition = read_definitions(snapshot.files, snapshot.config).get(partition)
    if definition is None or len(definition.columns) != 1:
        raise InvalidTableError("An expression index has no definition.", index=partition)
    return definition


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
    kind = find_kind(definition, commit.schema)
    if kind is None:
        raise UnsupportedFeatureError(
            f"Expression indexes of the function {definition.function[:40]!r}.",
            hint="Drop the index with Java Hudi; it can be made again later.",
            index=partition,
        )
    measured = (
        FileRange(
            result.stat.partition_path,
            result.path.rpartition("/")[2],
            measure_results(files, result.path, result.stat.file_size_in_bytes, definition, kind),
        )
        for result in commit.results
    )
    return Prepared(definition, kind, tuple(each for each in measured if each.has_rows))


def _iterate_blooms(
    files: TableFiles, results: Sequence[TaskResult], definition: IndexDefinition
) -> Iterator[FileBloom]:
    """Yield the filters of base files; log files have none."""
    for result in results:
        name = result.path.rpartition("/")[2]
        if not name.startswith("."):
            yield make_file_bloom(files, result.stat.partition_path, name, definition)


def make_file_bloom(files: TableFiles, partition_path: str, name: str, definition: IndexDefinition) -> FileBloom:
    """Make the filter of a base file. Errors as for ``measure_expression``."""
    path = f"{partition_path}/{name}" if partition_path else name
    return FileBloom(partition_path, name, SIMPLE, make_bloom(files, path, definition).to_text().encode())


def make_expression_records(
    commit: MetadataCommit, partition: str, view: MetadataView, prepared: Prepared | None
) -> PartitionRecords:
    """Make the records of an instant: for its new files and their partitions, and deletes for removed files.

    Raises:
        CorruptFileError: the metadata table is damaged.
        StorageError: the store refused.
    """
    prepared = prepared or Prepared(_find_definition(commit.snapshot, partition))
    definition = prepared.definition
    if definition.kind == BLOOM_FILTERS:
        gone = list_bloom_keys(commit.deleted)
        return PartitionRecords(
            partition, make_bloom_records(prepared.blooms, commit.instant), gone if len(gone) else None
        )
    deleted = list_deleted_keys(commit.deleted, definition.columns) if commit.deleted else None
    merged = _merge_partitions(commit, partition, view, prepared)
    return PartitionRecords(partition, make_range_records(prepared.measured, merged, definition), deleted)


def make_range_records(
    files: Sequence[FileRange], partitions: Mapping[str, StoredRange], definition: IndexDefinition
) -> pa.Table:
    """Make the records of files and, by path, of partitions."""
    version, column = definition.version or 1, encode_names(definition.columns)[0]
    names = [each.name for each in files]
    folders, hashes = encode_partitions(each.partition_path for each in files), encode_file_names(names)
    keys = make_column_keys(pa.repeat(column, len(files)), folders, hashes)
    ranges = make_statistics(names, [each.range for each in files], version)
    parts = _make_partition_keys(definition, partitions)
    stored = partitions.values()
    statistics = make_statistics(
        list(partitions), [each.range for each in stored], version, tight=[each.is_tight for each in stored]
    )
    records = [make_records(keys, COLUMN_STATS_TYPE, ranges), make_records(parts, PARTITION_STATS_TYPE, statistics)]
    return pa.concat_tables(records)


def _make_partition_keys(definition: IndexDefinition, paths: Collection[str]) -> pa.Array:
    column = encode_names(definition.columns)[0]
    return make_expression_partition_keys(pa.repeat(column, len(paths)), encode_partitions(paths))


def merge_file_ranges(ranges: Iterable[ColumnRange], definition: IndexDefinition) -> ColumnRange | None:
    """Return the common range of one or more files; None if their values are of different kinds."""
    every = [simplify_range(each, definition.version or 1) for each in ranges]
    return merge_ranges(every) if len({each.kind for each in every} - {NO_VALUES}) <= 1 else None


def _merge_partitions(
    commit: MetadataCommit, partition: str, view: MetadataView, prepared: Prepared
) -> Mapping[str, StoredRange]:
    """Return the range of each partition that the instant changes, from the records of its files."""
    new: dict[str, list[ColumnRange]] = {}
    for each in prepared.measured:
        new.setdefault(each.partition_path, []).append(each.range)
    if not new:
        return {}
    definition = prepared.definition
    version = definition.version or 1
    after = find_files_after(commit, sorted(new))
    overlap = find_overlap(commit)
    known = _read_partitions(view, partition, definition, sorted(new)) if overlap.has_older or overlap.later else {}
    merged: dict[str, StoredRange] = {}
    for path, ranges in new.items():
        records = view.read_prefixes(partition, make_column_partition_prefixes(definition.columns, [path]))
        rows = join_chunks(records[STATISTICS_COLUMN])
        stored = zip(rows.to_pylist(), read_statistics(rows, version), strict=True)
        old = {row["fileName"]: found for row, found in stored if row["fileName"] in after[path]}
        # A file without rows has no record. If one is missing for another reason, the range is not known.
        is_whole = all(_has_no_rows(commit.snapshot.timeline, path, name) for name in after[path] - old.keys())
        whole = merge_file_ranges((*ranges, *old.values()), definition) if is_whole else None
        whole = whole or make_widest_range(definition.columns[0], prepared.kind)
        if whole is not None:
            merged |= overlap.settle(path, {path: whole}, known)
    return merged


def _read_partitions(
    view: MetadataView, partition: str, definition: IndexDefinition, paths: Sequence[str]
) -> dict[str, StoredRange]:
    """Read the records of partitions, by path."""
    keys = _make_partition_keys(definition, paths).to_pylist()
    records = view.read_keys(partition, keys)
    stored = read_stored_ranges(join_chunks(records[STATISTICS_COLUMN]), definition.version or 1)
    by_key = dict(zip(records["key"].to_pylist(), stored, strict=True))
    return {path: by_key[key] for path, key in zip(paths, keys, strict=True) if key in by_key}


def _has_no_rows(timeline: TableTimeline, partition_path: str, name: str) -> bool:
    """Whether the commit that wrote a file recorded that the file has no rows, or only deletes."""
    parsed = parse_base_file_name(name) or parse_log_file_name(name)
    writes = (each for each in timeline.list_completed_writes() if parsed and each.request_time == parsed.instant)
    path = f"{partition_path}/{name}" if partition_path else name
    stats = [stat for each in writes for stat in timeline.read_metadata(each).iterate_stats() if stat.path == path]
    return bool(stats) and not any(stat.num_writes or stat.num_inserts or stat.num_update_writes for stat in stats)
