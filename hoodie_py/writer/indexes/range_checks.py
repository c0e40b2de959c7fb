"""Check statistics of columns and expression indexes: each range or bloom filter against the files' values (Hudi
``HoodieMetadataTableValidator``).

A range is right if it holds for the data: its bounds include the file's values, it does not record "no nulls" for a
column with nulls, nor "only nulls" for one with values. It may be wider. If Java 1.2.0 itself writes a range that does
not hold (``formats/indexes/ranges.py``), that range counts as right: readers do not trust it. Dates that Java stores
ten days late are counted separately, as nothing else shows them. A filter is right if it contains all values.

Statistics of partitions must hold for all files that readers see. A file without any entry is always read, so it is
right: Java writes no entries for log files whose records were rolled back. A file with entries needs one for each
column, as Java reads a missing one as "only nulls". Entries of deleted files are stale.

Once schema-on-read has renamed or retyped columns, statistics of partitions describe other columns than the files', and
older files lack entries for new names. Readers use no statistics then, so partitions are not checked, and no entry
counts as missing. Expression results that depend on Spark cannot be computed here; the report gives the number of
entries not checked for that reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_texts, join_chunks, to_booleans
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.indexes.bounds import NO_VALUES, ValueKind, ValueType
from hoodie_py.formats.indexes.definitions import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    NO_PARTITION,
    PARTITION_STATS,
    IndexDefinition,
    IndexedColumns,
)
from hoodie_py.formats.indexes.keys import (
    encode_file_names,
    encode_names,
    encode_partitions,
    find_file_groups,
    make_bloom_keys,
    make_column_keys,
    make_expression_partition_keys,
    make_partition_keys,
)
from hoodie_py.formats.indexes.ranges import (
    ColumnRange,
    make_avro_key,
    make_java_key,
    make_widest_range,
    promote_range,
    read_statistics,
    shift_range,
    simplify_range,
)
from hoodie_py.formats.indexes.record_schema import BLOOM_COLUMN, STATISTICS_COLUMN
from hoodie_py.formats.parquet.bloom import BloomFilter
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.writer.indexes.column_ranges import measure_files
from hoodie_py.writer.indexes.expressions import (
    find_exact_range,
    find_kind,
    iterate_results,
    make_texts,
    merge_file_ranges,
)
from hoodie_py.writer.indexes.table_expressions import find_definition
from hoodie_py.writer.indexes.table_ranges import (
    FilePlace,
    find_indexed_columns,
    iterate_partition_ranges,
    list_file_places,
)
from hoodie_py.writer.indexes.table_source import IndexSource
from hoodie_py.writer.indexes.verify_report import OnEntries, PartReport
from hoodie_py.writer.output_schema import load_output_schema

_AT_ONCE = 128


def check_column_statistics(source: IndexSource, view: MetadataView, on_entries: OnEntries | None = None) -> PartReport:
    """Check ``column_stats``.

    Raises:
        HoodieError: a file cannot be read.
    """
    report = PartReport(COLUMN_STATS)
    altered = source.snapshot.schema.mappings is not None
    indexed = find_indexed_columns(source)
    remaining = list_file_places(source)
    while some := list(islice(remaining, _AT_ONCE)):
        true = _measure(source, some, indexed, as_java=False)
        java = _measure(source, some, indexed, as_java=True)
        keys, places = _make_file_keys(some, indexed)
        found = _read(view, COLUMN_STATS, keys, indexed.version)
        indexed_places = {place for key, (place, _) in zip(keys, places, strict=True) if key in found}
        for key, (place, column) in zip(keys, places, strict=True):
            measured = (true[place], java[place])
            if altered and key not in found:
                continue
            if measured[0] is not None and place in indexed_places:
                expected = [ranges[column] for ranges in measured if ranges is not None and column in ranges]
                _check(report, f"{place.path} {column}", found.get(key), expected, indexed.version)
        if on_entries is not None:
            on_entries(COLUMN_STATS, report.checked, None)
    report.stale = _count_stale(view, COLUMN_STATS, {name for _, name in list_file_places(source)})
    return report


def check_partition_statistics(
    source: IndexSource, view: MetadataView, on_entries: OnEntries | None = None
) -> PartReport:
    """Check ``partition_stats``; errors as for ``check_column_statistics``."""
    report = PartReport(PARTITION_STATS)
    if source.snapshot.schema.mappings is not None:
        return report
    indexed = find_indexed_columns(source)
    pairs = zip(
        iterate_partition_ranges(source, indexed),
        iterate_partition_ranges(source, indexed, as_java=True),
        strict=True,
    )
    for (path, true), (_, java) in pairs:
        parts = encode_names(indexed.names), encode_partitions([path] * len(indexed.names))
        keys = make_partition_keys(*parts).to_pylist()
        found = _read(view, PARTITION_STATS, keys, indexed.version)
        for key, column in zip(keys, indexed.names, strict=True):
            expected = [each for each in (true.get(column), java.get(column)) if each is not None and is_known(each)]
            _check(report, f"{path or NO_PARTITION} {column}", found.get(key), expected, indexed.version)
        if on_entries is not None:
            on_entries(PARTITION_STATS, report.checked, None)
    return report


def is_known(data: ColumnRange) -> bool:
    """Whether a range describes values.

    It does not if a file is from before its column was added or became one of doubles. Readers ignore the range of the
    partition then.
    """
    return data != make_widest_range(data.column, data.kind)


def holds(
    found: ColumnRange, data: ColumnRange, version: int, *, key: Callable[[Any, ValueKind], Any] = make_java_key
) -> bool:
    """Whether a stored range holds for the range of the data; ``key`` defines how values compare."""
    if found.kind != data.kind and data.kind.type is ValueType.STRING:
        return True  # the column has become a text, and readers use no bounds of another kind
    if data.nulls and not found.nulls and found.values:
        return False
    if data.values > data.nulls and found.values and found.nulls >= found.values:
        return False
    if data.least is None or data.greatest is None:
        return True
    if found.least is None or found.greatest is None:
        return False
    one, other = simplify_range(found, version), simplify_range(data, version)
    if one.kind != other.kind:
        promoted = _promote_either(one, other)
        if promoted is None:  # readers ignore ranges of floats if the column has become one of doubles
            return (found.kind.type, data.kind.type) == (ValueType.FLOAT, ValueType.DOUBLE)
        one, other = promoted
    least, greatest = (key(each, one.kind) for each in (one.least, one.greatest))
    low, high = (key(each, one.kind) for each in (other.least, other.greatest))
    return bool(least <= low and high <= greatest)


def _promote_either(one: ColumnRange, other: ColumnRange) -> tuple[ColumnRange, ColumnRange] | None:
    """Return two ranges of one kind; None if neither kind includes the other.

    Entries keep the type from before a column was widened until their partition is written again, and readers promote
    them.
    """
    for promoted, pair in (
        (promote_range(other, one.kind), lambda each: (one, each)),
        (promote_range(one, other.kind), lambda each: (each, other)),
    ):
        if promoted is not None and promoted.least is not None and promoted.greatest is not None:
            return pair(promoted)
    return None


def _check(
    report: PartReport, place: str, found: ColumnRange | None, expected: Sequence[ColumnRange], version: int
) -> None:
    if not expected:
        return
    report.checked += 1
    data = expected[0]
    if found is None:
        if data.values:
            report.note("missing", place, f"there is no entry; it should say {format_range(data)}")
    elif not any(holds(found, each, version) for each in expected):
        text = f"the metadata table says {format_range(found)}; the data has {format_range(data)}"
        note_wrong_range(report, place, text, is_shifted=any(holds_shifted(found, each, version) for each in expected))


def holds_shifted(
    found: ColumnRange, data: ColumnRange, version: int, *, key: Callable[[Any, ValueKind], Any] = make_java_key
) -> bool:
    """Whether a range holds for the data if its dates are shifted as Java stores them; ``key`` as for ``holds``."""
    shifted = shift_range(data, version)
    return shifted is not None and holds(found, shifted, version, key=key)


def note_wrong_range(report: PartReport, place: str, text: str, *, is_shifted: bool) -> None:
    """Note a range that does not hold. ``is_shifted``: whether it is one that Java writes."""
    if is_shifted:
        report.note_shifted(place, text)
    else:
        report.note("wrong", place, text)


def format_range(found: ColumnRange) -> str:
    """Return a range as findings show it."""
    return f"{str(found.least)[:60]} to {str(found.greatest)[:60]}, {found.nulls} nulls of {found.values} values"


def _measure(
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
    keys = make_column_keys(
        encode_names(column for _, column in pairs),
        encode_partitions(place.partition_path for place, _ in pairs),
        encode_file_names(place.name for place, _ in pairs),
    )
    return keys.to_pylist(), pairs


def _read(view: MetadataView, partition: str, keys: Iterable[str], version: int) -> dict[str, ColumnRange]:
    records = view.read_keys(partition, keys)
    ranges = read_statistics(join_chunks(records[STATISTICS_COLUMN]), version) if records.num_rows else []
    return dict(zip(records["key"].to_pylist(), ranges, strict=True))


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


def check_expression_index(
    source: IndexSource, partition: str, view: MetadataView, on_entries: OnEntries | None = None
) -> PartReport:
    """Check an expression index.

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
        if not holds(stored, exact, version, key=make_avro_key):
            text = f"the metadata table says {format_range(found)}; the data has {format_range(exact)}"
            is_shifted = holds_shifted(stored, exact, version, key=make_avro_key)
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
                for at in np.flatnonzero(find_file_groups(keys, len(groups)) != number).tolist():
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
        folders = pa.repeat(encode_partitions([path])[0], len(names))
        if self.definition.kind == BLOOM_FILTERS:
            return make_bloom_keys(folders, encode_file_names(names))
        column = pa.repeat(encode_names([self._column])[0], len(names))
        return make_column_keys(column, folders, encode_file_names(names))

    def _make_partition_keys(self, paths: Sequence[str]) -> pa.Array:
        column = pa.repeat(encode_names([self._column])[0], len(paths))
        return make_expression_partition_keys(column, encode_partitions(paths))

    def _read_ranges(self, keys: pa.Array) -> list[ColumnRange | None]:
        """Return the range stored for each key, None where there is none."""
        wanted = keys.to_pylist()
        records = self.view.read_keys(self.partition, wanted)
        version = self.definition.version or 1
        rows = read_statistics(join_chunks(records[STATISTICS_COLUMN]), version) if records.num_rows else []
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
