"""Check statistics of columns: each range against the files (Hudi ``HoodieMetadataTableValidator``).

A range is right if it holds for the data: its bounds contain those of the file, it does not say "no nulls" of a column
with nulls, nor "only nulls" of one with values. It may be wider. Where Java 1.2.0 itself writes a range that does not
hold (``formats/metadata_table/trusted_ranges.py``), that range is right, too: readers do not trust it. Dates that Java
stores ten days late (``formats/metadata_table/julian_days.py``) are told apart, as nothing else shows that they are
there.

Statistics of partitions must hold for all files that readers see. A file without any entry is always read, so it is
right: Java has none of log files whose records were rolled back. A file with entries needs one of each column, as Java
takes a missing one for "only nulls". Entries of files that are gone are stale. Once columns were renamed or retyped by
schema-on-read, statistics of partitions are of other columns than the files', and older files lack those of new names.
Readers use none then; those of partitions are not checked, and none is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_texts, join_chunks, to_booleans
from hoodie_py.formats.hfile.files_partition import NO_PARTITION
from hoodie_py.formats.metadata_table.column_ranges import (
    ColumnRange,
    make_java_key,
    promote_range,
    read_statistics,
    simplify_range,
)
from hoodie_py.formats.metadata_table.index_definitions import COLUMN_STATS, PARTITION_STATS
from hoodie_py.formats.metadata_table.indexed_columns import IndexedColumns
from hoodie_py.formats.metadata_table.julian_days import shift_range
from hoodie_py.formats.metadata_table.keys import (
    encode_file_names,
    encode_names,
    encode_partitions,
    make_column_keys,
    make_partition_keys,
)
from hoodie_py.formats.metadata_table.value_kinds import ValueKind, ValueType
from hoodie_py.formats.metadata_table.widest_ranges import make_widest_range
from hoodie_py.table.metadata_table.view import MetadataView
from hoodie_py.writer.metadata_build.sources import IndexSource
from hoodie_py.writer.metadata_build.statistic_portions import (
    FilePlace,
    find_indexed_columns,
    iterate_partition_ranges,
    list_file_places,
)
from hoodie_py.writer.metadata_check.report import OnEntries, PartReport
from hoodie_py.writer.metadata_table.file_ranges import measure_files

_STATISTICS = "ColumnStatsMetadata"
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
    """Say whether a range tells of values. It does not where a file is from before its column was added, or became one
    of doubles: then readers take no range of the partition either.
    """
    return data != make_widest_range(data.column, data.kind)


def holds(
    found: ColumnRange, data: ColumnRange, version: int, *, key: Callable[[Any, ValueKind], Any] = make_java_key
) -> bool:
    """Say whether a range holds for that of the data; ``key`` says how values compare."""
    if found.kind != data.kind and data.kind.type is ValueType.STRING:
        return True  # the column became a text since, and readers take no bounds of another kind
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
        if promoted is None:  # readers leave out ranges of floats of a column that became one of doubles
            return (found.kind.type, data.kind.type) == (ValueType.FLOAT, ValueType.DOUBLE)
        one, other = promoted
    least, greatest = (key(each, one.kind) for each in (one.least, one.greatest))
    low, high = (key(each, one.kind) for each in (other.least, other.greatest))
    return bool(least <= low and high <= greatest)


def _promote_either(one: ColumnRange, other: ColumnRange) -> tuple[ColumnRange, ColumnRange] | None:
    """Return two ranges of one kind; None if neither kind holds the other. Entries keep the type from before a column
    became wider until their partition is written again, and readers promote them.
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
    """Say whether a range holds for the dates that Java stores for that of the data; ``key`` as for ``holds``."""
    shifted = shift_range(data, version)
    return shifted is not None and holds(found, shifted, version, key=key)


def note_wrong_range(report: PartReport, place: str, text: str, *, is_shifted: bool) -> None:
    """Note a range that does not hold; ``is_shifted`` says that it is one that Java makes."""
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
    ranges = read_statistics(join_chunks(records[_STATISTICS]), version) if records.num_rows else []
    return dict(zip(records["key"].to_pylist(), ranges, strict=True))


def _count_stale(view: MetadataView, partition: str, known: set[str]) -> int:
    """Count the entries of files that are gone."""
    names = from_texts(sorted(known), pa.string())
    stale = 0
    for batch in view.read_all(partition):
        statistics = batch.column(_STATISTICS)
        deleted = pc.fill_null(pc.struct_field(statistics, "isDeleted"), False)
        there = pc.is_in(pc.struct_field(statistics, "fileName"), names)
        stale += int((~(to_booleans(there) | to_booleans(deleted))).sum())
    return stale
