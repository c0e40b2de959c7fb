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

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Self

import pyarrow as pa

from hoodie_py.arrow.arrays import join_chunks
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.indexes import definitions as index_definitions
from hoodie_py.formats.indexes import ranges as column_ranges
from hoodie_py.formats.indexes.bounds import NO_VALUES, ValueKind
from hoodie_py.formats.indexes.definitions import IndexDefinition
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
from hoodie_py.formats.indexes.ranges import ColumnRange
from hoodie_py.formats.indexes.record_schema import STATISTICS_COLUMN
from hoodie_py.formats.names import parse_base_file_name, parse_log_file_name
from hoodie_py.formats.parquet.bloom import SIMPLE, BloomBuilder, BloomFilter, BloomSettings
from hoodie_py.options.indexes import EXPRESSION_GROUPS
from hoodie_py.table.indexes.view import MetadataView, read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.writer.indexes import expression_values
from hoodie_py.writer.indexes.blooms import FileBloom, make_bloom_records
from hoodie_py.writer.indexes.blooms import list_deleted_keys as list_bloom_keys
from hoodie_py.writer.indexes.column_ranges import list_deleted_keys, make_records
from hoodie_py.writer.indexes.group_changes import find_files_after
from hoodie_py.writer.indexes.index import GroupPlan, Index, MetadataCommit, PartitionRecords, Portion, place_records
from hoodie_py.writer.indexes.partition_ranges import StoredRange, find_overlap, read_stored_ranges, tighten
from hoodie_py.writer.indexes.table_source import IndexSource
from hoodie_py.writer.indexes.verify_report import OnEntries, PartReport
from hoodie_py.writer.output_schema import load_output_schema

_WHOLE = BloomFilter.make_open()
_AT_ONCE = 4  # columns of files that are read side by side
_BLOOMS_AT_ONCE = 32


class Expressions(Index):
    """A partition ``expr_index_*``: by its definition an index of ranges, or of bloom filters."""

    def prepare(self, change: MetadataCommit) -> Index:
        """Find the ranges, or the bloom filters, of an instant's new files.

        Raises:
            InvalidTableError: the index has no definition.
            UnsupportedFeatureError: the index's function is not handled.
            CorruptFileError, FileMissingError: a new file cannot be read.
            StorageError: the store refused.
        """
        return self._choose(_read_definition(change.snapshot, self.partition)).prepare(change)

    def records(self, change: MetadataCommit, view: MetadataView) -> PartitionRecords:
        """Make the records of an instant without new files: deletes for removed files."""
        return self._choose(_read_definition(change.snapshot, self.partition)).records(change, view)

    def portions(self, source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
        """Yield the records of the files that readers see, as Java.

        Raises:
            InvalidTableError: the index has no definition, or nothing can be computed by it.
            CorruptFileError, FileMissingError: a file cannot be read.
        """
        return self._choose(expression_values.find_definition(source)).portions(source, groups)

    def count_groups(self, options: Mapping[str, str]) -> int:
        """Return the number that the options say."""
        return EXPRESSION_GROUPS.read(options)

    def check(self, source: IndexSource, view: MetadataView, on_entries: OnEntries | None = None) -> PartReport:
        """Compare each range or bloom filter with the files' values; errors as ``check_expression_index``."""
        return expression_values.check_expression_index(source, self.partition, view, on_entries)

    def _choose(self, definition: IndexDefinition) -> Index:
        kind = _Blooms if definition.kind == index_definitions.BLOOM_FILTERS else _Ranges
        return kind(self.partition, definition)


def find_expression_problem(snapshot: Snapshot) -> str | None:
    """Return why an expression index of a table cannot be kept up; None if all can. Raises as ``read_definitions``."""
    names = [
        name for name in snapshot.config.metadata_partitions if name.startswith(index_definitions.EXPRESSION_PREFIX)
    ]
    if not names:
        return None
    definitions = read_definitions(snapshot.files, snapshot.config)
    for name in names:
        definition = definitions.get(name)
        if definition is None or len(definition.columns) != 1:
            return f"its partition {name!r} has no definition"
        if definition.kind not in (index_definitions.COLUMN_STATS, index_definitions.BLOOM_FILTERS):
            return f"the type {definition.kind[:40]!r} of its partition {name!r} is not handled"
        text = snapshot.schema.text
        if definition.kind == index_definitions.COLUMN_STATS and (
            text is None or expression_values.find_kind(definition, text) is None
        ):
            return f"the function {definition.function[:40]!r} of its partition {name!r} is not handled"
    return None


def _read_definition(snapshot: Snapshot, partition: str) -> IndexDefinition:
    definition = read_definitions(snapshot.files, snapshot.config).get(partition)
    if definition is None or len(definition.columns) != 1:
        raise InvalidTableError("An expression index has no definition.", index=partition)
    return definition


@dataclass(frozen=True, slots=True)
class _Blooms(Index):
    """An index of bloom filters of base files; log files have none."""

    definition: IndexDefinition
    blooms: tuple[FileBloom, ...] = ()

    def prepare(self, change: MetadataCommit) -> Self:
        """Make the filters of an instant's new base files."""
        if change.schema is None:
            return self
        places = ((each.stat.partition_path, each.path.rpartition("/")[2]) for each in change.results)
        make = partial(_make_file_bloom, change.session.files, self.definition)
        return replace(self, blooms=tuple(make(place) for place in places if not place[1].startswith(".")))

    def records(self, change: MetadataCommit, view: MetadataView) -> PartitionRecords:
        """Make the records of an instant: filters of its new base files, and deletes for the files that it removes."""
        del view
        gone = list_bloom_keys(change.deleted)
        made = make_bloom_records(self.blooms, change.instant)
        return PartitionRecords(self.partition, made, gone if len(gone) else None)

    def portions(self, source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
        """Yield the filters of the base files that readers see."""
        every = (path.rpartition("/") for files in source.visible_files.values() for path in files)
        bases = ((folder, name) for folder, _, name in every if not name.startswith("."))
        make = partial(_make_file_bloom, source.snapshot.files, self.definition)
        with ThreadPoolExecutor(_AT_ONCE, "hoodie-expressions") as pool:
            while some := list(islice(bases, _BLOOMS_AT_ONCE)):
                made = make_bloom_records(list(pool.map(make, some)), source.last_instant)
                yield place_records(made, groups)


def _make_file_bloom(files: TableFiles, definition: IndexDefinition, place: tuple[str, str]) -> FileBloom:
    """Make the filter of a base file, given its partition path and name. Errors as for ``iterate_results``."""
    partition_path, name = place
    path = f"{partition_path}/{name}" if partition_path else name
    return FileBloom(partition_path, name, SIMPLE, _make_bloom(files, path, definition).to_text().encode())


def _make_bloom(files: TableFiles, path: str, definition: IndexDefinition) -> BloomFilter:
    """Make the filter of a base file. Errors as for ``iterate_results``."""
    builder = BloomBuilder(BloomSettings(dynamic=False, fitted=True))
    for results in expression_values.iterate_results(files, path, definition):
        texts = None if results is None else expression_values.make_texts(results)
        if texts is None:
            return _WHOLE
        builder.add(texts)
    return builder.finish()


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
class _Ranges(Index):
    """An index of the ranges of files and partitions."""

    definition: IndexDefinition
    kind: ValueKind = NO_VALUES
    measured: tuple[FileRange, ...] = ()

    def prepare(self, change: MetadataCommit) -> Self:
        """Find the ranges of an instant's new files."""
        if change.schema is None or not change.results:
            return self
        kind = expression_values.find_kind(self.definition, change.schema)
        if kind is None:
            raise UnsupportedFeatureError(
                f"Expression indexes of the function {self.definition.function[:40]!r}.",
                hint="Drop the index with Java Hudi; it can be made again later.",
                index=self.partition,
            )
        files = change.session.files
        measured = (
            FileRange(
                each.stat.partition_path,
                each.path.rpartition("/")[2],
                _measure_results(files, each.path, each.stat.file_size_in_bytes, self.definition, kind),
            )
            for each in change.results
        )
        return replace(self, kind=kind, measured=tuple(each for each in measured if each.has_rows))

    def records(self, change: MetadataCommit, view: MetadataView) -> PartitionRecords:
        """Make the records of an instant: for its new files and their partitions, and deletes for removed files."""
        deleted = list_deleted_keys(change.deleted, self.definition.columns) if change.deleted else None
        made = _make_range_records(self.measured, self._merge_partitions(change, view), self.definition)
        return PartitionRecords(self.partition, made, deleted)

    def portions(self, source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
        """Yield the ranges of the files that readers see, and of each partition."""
        definition, files = self.definition, source.snapshot.files
        kind = expression_values.find_kind(definition, load_output_schema(source.snapshot).avro)
        if kind is None:
            raise InvalidTableError("An expression index has values that have no order.", index=definition.name)

        def measure(path: str) -> FileRange:
            folder, _, name = path.rpartition("/")
            return FileRange(folder, name, _measure_results(files, path, source.files[folder][name], definition, kind))

        with ThreadPoolExecutor(_AT_ONCE, "hoodie-expressions") as pool:
            for path, paths in source.visible_files.items():
                found: list[FileRange] = []
                remaining = iter(paths)
                while some := list(islice(remaining, 4 * _AT_ONCE)):
                    found += (each for each in pool.map(measure, some) if each.has_rows)
                partitions = {path: whole} if (whole := _join_files(found, definition)) is not None else {}
                yield place_records(_make_range_records(found, tighten(partitions), definition), groups)

    def _merge_partitions(self, change: MetadataCommit, view: MetadataView) -> Mapping[str, StoredRange]:
        """Return the range of each partition that the instant changes, from the records of its files."""
        new: dict[str, list[ColumnRange]] = {}
        for each in self.measured:
            new.setdefault(each.partition_path, []).append(each.range)
        if not new:
            return {}
        definition = self.definition
        version = definition.version or 1
        after = find_files_after(change, sorted(new))
        overlap = find_overlap(change)
        known = self._read_partitions(view, sorted(new)) if overlap.has_older or overlap.later else {}
        merged: dict[str, StoredRange] = {}
        for path, ranges in new.items():
            records = view.read_prefixes(self.partition, make_column_partition_prefixes(definition.columns, [path]))
            rows = join_chunks(records[STATISTICS_COLUMN])
            stored = zip(rows.to_pylist(), column_ranges.read_statistics(rows, version), strict=True)
            old = {row["fileName"]: found for row, found in stored if row["fileName"] in after[path]}
            # A file without rows has no record. If one is missing for another reason, the range is not known.
            is_whole = all(_has_no_rows(change.snapshot.timeline, path, name) for name in after[path] - old.keys())
            whole = expression_values.merge_file_ranges((*ranges, *old.values()), definition) if is_whole else None
            whole = whole or column_ranges.make_widest_range(definition.columns[0], self.kind)
            if whole is not None:
                merged |= overlap.settle(path, {path: whole}, known)
        return merged

    def _read_partitions(self, view: MetadataView, paths: Sequence[str]) -> dict[str, StoredRange]:
        """Read the records of partitions, by path."""
        keys = _make_partition_keys(self.definition, paths).to_pylist()
        records = view.read_keys(self.partition, keys)
        stored = read_stored_ranges(join_chunks(records[STATISTICS_COLUMN]), self.definition.version or 1)
        by_key = dict(zip(records["key"].to_pylist(), stored, strict=True))
        return {path: by_key[key] for path, key in zip(paths, keys, strict=True) if key in by_key}


def _measure_results(
    files: TableFiles, path: str, size: int, definition: IndexDefinition, kind: ValueKind
) -> ColumnRange:
    """Return the range of a data file of ``size`` bytes. Errors as for ``iterate_results``."""
    found = expression_values.find_exact_range(files, path, definition, kind)
    if found is None:
        found = column_ranges.make_widest_range(definition.columns[0], kind)
    if found is None:
        raise InvalidTableError("An expression index has values that have no order.", index=definition.name)
    # As in Java: ranges of one kind, which it needs to merge them; nulls do not count as values; sizes are the file's.
    return replace(found, kind=kind, values=found.values - found.nulls, size=size, uncompressed=2 * size)


def _join_files(found: Sequence[FileRange], definition: IndexDefinition) -> ColumnRange | None:
    """Return the common range of the files of a partition; None without files."""
    if not found:
        return None
    ranges = [each.range for each in found]
    return expression_values.merge_file_ranges(ranges, definition) or column_ranges.make_widest_range(
        definition.columns[0], ranges[0].kind
    )


def _make_range_records(
    files: Sequence[FileRange], partitions: Mapping[str, StoredRange], definition: IndexDefinition
) -> pa.Table:
    """Make the records of files and, by path, of partitions."""
    version, column = definition.version or 1, encode_names(definition.columns)[0]
    names = [each.name for each in files]
    folders, hashes = encode_partitions(each.partition_path for each in files), encode_file_names(names)
    keys = make_column_keys(pa.repeat(column, len(files)), folders, hashes)
    ranges = column_ranges.make_statistics(names, [each.range for each in files], version)
    parts = _make_partition_keys(definition, partitions)
    stored = partitions.values()
    statistics = column_ranges.make_statistics(
        list(partitions), [each.range for each in stored], version, tight=[each.is_tight for each in stored]
    )
    records = [make_records(keys, COLUMN_STATS_TYPE, ranges), make_records(parts, PARTITION_STATS_TYPE, statistics)]
    return pa.concat_tables(records)


def _make_partition_keys(definition: IndexDefinition, paths: Collection[str]) -> pa.Array:
    column = encode_names(definition.columns)[0]
    return make_expression_partition_keys(pa.repeat(column, len(paths)), encode_partitions(paths))


def _has_no_rows(timeline: TableTimeline, partition_path: str, name: str) -> bool:
    """Whether the commit that wrote a file recorded that the file has no rows, or only deletes."""
    parsed = parse_base_file_name(name) or parse_log_file_name(name)
    writes = (each for each in timeline.list_completed_writes() if parsed and each.request_time == parsed.instant)
    path = f"{partition_path}/{name}" if partition_path else name
    stats = [stat for each in writes for stat in timeline.read_metadata(each).iterate_stats() if stat.path == path]
    return bool(stats) and not any(stat.num_writes or stat.num_inserts or stat.num_update_writes for stat in stats)
