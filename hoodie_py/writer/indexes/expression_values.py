"""The values of an expression index, a function's results in a data file, and the check of the index against them.

A range is right if it holds for the data (``range_checks``), a filter if it contains all values. Results that cannot be
computed as Spark does (``formats/indexes/expressions``) are not known; the report gives the number of entries not
checked for that reason. Agrees with Hudi's ``ExpressionIndexRecordGenerationUtils`` and
``HoodieMetadataTableValidator``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import join_chunks, to_booleans
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.indexes import keys as index_keys
from hoodie_py.formats.indexes import ranges as column_ranges
from hoodie_py.formats.indexes.bounds import NO_VALUES, ValueKind
from hoodie_py.formats.indexes.definitions import BLOOM_FILTERS, NO_PARTITION, IndexDefinition
from hoodie_py.formats.indexes.expressions import apply_function, find_result_kind
from hoodie_py.formats.indexes.measure import RecordRanges, find_kinds
from hoodie_py.formats.indexes.ranges import ColumnRange
from hoodie_py.formats.indexes.record_schema import BLOOM_COLUMN, STATISTICS_COLUMN
from hoodie_py.formats.log.blocks import decode_records
from hoodie_py.formats.log.framing import LogBlock, iterate_blocks
from hoodie_py.formats.parquet.bloom import BloomFilter
from hoodie_py.reader.base.file_formats import open_by_extension
from hoodie_py.reader.file_slice import BaseFile
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.writer.indexes.range_checks import format_range, holds, holds_shifted, note_wrong_range
from hoodie_py.writer.indexes.table_source import IndexSource
from hoodie_py.writer.indexes.verify_report import OnEntries, PartReport
from hoodie_py.writer.output_schema import load_output_schema

_BATCH_ROWS = 64 * 1024

_AT_ONCE = 128


def find_definition(source: IndexSource) -> IndexDefinition:
    """Return the definition of the source's index. Raises InvalidTableError if it names no column."""
    definition = source.definition
    if definition is None or len(definition.columns) != 1:
        raise InvalidTableError("An expression index needs the definition that names its column.")
    return definition


def find_kind(definition: IndexDefinition, schema: str) -> ValueKind | None:
    """Return the kind of an index's values on a table with a schema (Avro, JSON); None if they can have no ranges."""
    kinds = find_kinds(definition.columns, parse_record(schema))
    kind = find_result_kind(definition, kinds.get(definition.columns[0]))
    if kind is None or column_ranges.make_widest_range("", kind) is None:
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


def make_texts(results: pa.Array) -> pa.Array | None:
    """Return results as Java adds them to a bloom filter, without nulls; None for types whose texts are unknown."""
    if not (pa.types.is_string(results.type) or pa.types.is_integer(results.type)):
        return None
    return results.drop_null().cast(pa.string())


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


def merge_file_ranges(ranges: Iterable[ColumnRange], definition: IndexDefinition) -> ColumnRange | None:
    """Return the common range of one or more files; None if their values are of different kinds."""
    every = [column_ranges.simplify_range(each, definition.version or 1) for each in ranges]
    return column_ranges.merge_ranges(every) if len({each.kind for each in every} - {NO_VALUES}) <= 1 else None


def check_expression_index(
    source: IndexSource, partition: str, view: MetadataView, on_entries: OnEntries | None = None
) -> PartReport:
    """Check each range or bloom filter of an expression index against the files' values.

    Raises:
        HoodieError: a file cannot be read.
        UnsupportedFeatureError: the function is not known, or its results cannot be computed here.
    """
    report = PartReport(partition)
    check = _Check(source, partition, view, find_definition(source), report)
    for path, files in source.visible_files.items():
        if check.definition.kind == BLOOM_FILTERS:
            check.check_blooms(path, files)
        else:
            check.check_ranges(path, files)
        if on_entries is not None:
            on_entries(partition, report.checked, None)
    check.check_keys()
    if check.untold:
        function = check.definition.function
        text = f"{check.untold:,} entries: what {function!r} gives there depends on Spark"
        if not report.checked:
            raise UnsupportedFeatureError(text)
        report.untold = text
    return report


@dataclass
class _Check:
    source: IndexSource
    partition: str
    view: MetadataView
    definition: IndexDefinition
    report: PartReport
    untold: int = 0

    @cached_property
    def _kind(self) -> ValueKind:
        kind = find_kind(self.definition, load_output_schema(self.source.snapshot).avro)
        if kind is None:
            raise UnsupportedFeatureError(f"The function {self.definition.function[:40]!r} is not known here.")
        return kind

    @property
    def _column(self) -> str:
        return self.definition.columns[0]

    def check_ranges(self, path: str, files: Sequence[str]) -> None:
        """Check the ranges of the files of a partition, and the range of the partition."""
        every: list[ColumnRange | None] = []
        remaining = iter(files)
        while some := list(islice(remaining, _AT_ONCE)):
            names = [each.rpartition("/")[2] for each in some]
            stored = self._read_ranges(self._make_file_keys(path, names))
            for file, found in zip(some, stored, strict=True):
                exact = find_exact_range(self.source.snapshot.files, file, self.definition, self._kind)
                every.append(exact)
                if found is not None:
                    self._compare(file, found, exact)
        told = [each for each in every if each is not None]
        whole = merge_file_ranges(told, self.definition) if told and len(told) == len(every) else None
        [stored_whole] = self._read_ranges(self._make_partition_keys([path]))
        self._compare(path or NO_PARTITION, stored_whole, whole)

    def _compare(self, place: str, found: ColumnRange | None, exact: ColumnRange | None) -> None:
        if exact is None:
            self.untold += 1
            return
        self.report.checked += 1
        if found is None:
            if exact.values:
                self.report.note("missing", place, f"there is no entry; it should say {format_range(exact)}")
            return
        version, stored = self.definition.version or 1, _count_nulls_too(found)
        if not holds(stored, exact, version, key=column_ranges.make_avro_key):
            text = f"the metadata table says {format_range(found)}; the data has {format_range(exact)}"
            is_shifted = holds_shifted(stored, exact, version, key=column_ranges.make_avro_key)
            note_wrong_range(self.report, place, text, is_shifted=is_shifted)

    def check_blooms(self, path: str, files: Sequence[str]) -> None:
        """Check the filters of the base files of a partition."""
        bases = iter([each for each in files if not each.rpartition("/")[2].startswith(".")])
        while some := list(islice(bases, _AT_ONCE)):
            keys = self._make_file_keys(path, [each.rpartition("/")[2] for each in some]).to_pylist()
            records = self.view.read_keys(self.partition, keys, [BLOOM_COLUMN])
            stored = dict(zip(records["key"].to_pylist(), records[BLOOM_COLUMN].to_pylist(), strict=True))
            for file, key in zip(some, keys, strict=True):
                if key in stored:
                    self._check_bloom(file, stored[key])

    def _check_bloom(self, file: str, stored: dict[str, object]) -> None:
        text = stored["bloomFilter"]
        bloom = BloomFilter.from_text(text.decode("latin-1") if isinstance(text, bytes) else "", str(stored["type"]))
        for results in iterate_results(self.source.snapshot.files, file, self.definition):
            texts = None if results is None else make_texts(results)
            if texts is None:
                self.untold += 1
                return
            lacking = int((~bloom.may_contain(texts)).sum())
            if lacking:
                self.report.note("wrong", file, f"the filter lacks {lacking:,} of {len(texts):,} values")
                break
        self.report.checked += 1

    def check_keys(self) -> None:
        """Check that look-ups find each entry in its file group, and count the entries of deleted files."""
        known = pa.concat_arrays([each.cast(pa.string()) for each in self._list_keys()])
        groups = self.view.list_groups(self.partition)
        for number, group in enumerate(groups):
            for batch in self.view.read_all(self.partition, groups=[group]):
                keys = batch.column(batch.schema.get_field_index("key")).cast(pa.string())
                for at in np.flatnonzero(index_keys.find_file_groups(keys, len(groups)) != number).tolist():
                    self.report.note("misplaced", keys[at].as_py(), f"look-ups do not read {group.file_id} for it")
                is_known = to_booleans(pc.is_in(keys, value_set=known))
                self.report.stale += int((~is_known & ~_are_deleted(batch)).sum())

    def _list_keys(self) -> Iterator[pa.Array]:
        """Yield the keys that entries can have."""
        paths = list(self.source.files)
        yield pa.array([], pa.string())
        if self.definition.kind != BLOOM_FILTERS and paths:
            yield self._make_partition_keys(paths)
        for path in paths:
            yield self._make_file_keys(path, list(self.source.files[path]))

    def _make_file_keys(self, path: str, names: Sequence[str]) -> pa.Array:
        folders = pa.repeat(index_keys.encode_partitions([path])[0], len(names))
        if self.definition.kind == BLOOM_FILTERS:
            return index_keys.make_bloom_keys(folders, index_keys.encode_file_names(names))
        column = pa.repeat(index_keys.encode_names([self._column])[0], len(names))
        return index_keys.make_column_keys(column, folders, index_keys.encode_file_names(names))

    def _make_partition_keys(self, paths: Sequence[str]) -> pa.Array:
        column = pa.repeat(index_keys.encode_names([self._column])[0], len(paths))
        return index_keys.make_expression_partition_keys(column, index_keys.encode_partitions(paths))

    def _read_ranges(self, keys: pa.Array) -> list[ColumnRange | None]:
        """Return the range stored for each key, None where there is none."""
        wanted = keys.to_pylist()
        records = self.view.read_keys(self.partition, wanted)
        version = self.definition.version or 1
        rows = (
            column_ranges.read_statistics(join_chunks(records[STATISTICS_COLUMN]), version) if records.num_rows else []
        )
        found = dict(zip(records["key"].to_pylist(), rows, strict=True))
        return [found.get(key) for key in wanted]


def _count_nulls_too(found: ColumnRange) -> ColumnRange:
    """Return a stored range that counts nulls as values, as Java does not, and whose bounds include both zeros.

    For Spark, -0.0 and 0.0 are equal.
    """
    values = found.nulls if found.least is None else found.values + found.nulls
    kind = found.kind if found.least is not None else NO_VALUES
    least = -0.0 if _is_zero(found.least) else found.least
    greatest = 0.0 if _is_zero(found.greatest) else found.greatest
    return replace(found, kind=kind, values=values, least=least, greatest=greatest)


def _is_zero(value: object) -> bool:
    return isinstance(value, float) and value == 0


def _are_deleted(batch: pa.RecordBatch) -> np.ndarray:
    """Return a mask of the entries that are marked as deleted."""
    found = np.zeros(batch.num_rows, np.bool_)
    for name in (STATISTICS_COLUMN, BLOOM_COLUMN):
        found |= to_booleans(pc.fill_null(pc.struct_field(batch.column(name), "isDeleted"), False))
    return found
