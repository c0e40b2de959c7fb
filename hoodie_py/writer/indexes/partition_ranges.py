"""The records of ``partition_stats``: the range of each indexed column in each partition that an instant changes (Hudi
``HoodieTableMetadataUtil.convertMetadataToPartitionStatsRecords``).

A record must hold for all files that readers see once the instant is complete, so it is made under the lock:

* If files only come, the partition's record is merged with their ranges. Java gets the same from all files; merging
  costs no more in a partition with many files.
* If a base file replaces other files, the record is made anew from the records of ``column_stats`` of the files that
  stay, as in Java. A file without such records is measured.
* If the range of a file is not known, the record gets the widest range. Java leaves such files out, and its readers
  lose their rows.
* If all files of a partition are replaced, its records are deleted.

Java also counts the files that the instant itself replaces; the ranges here are narrower then. ``Overlap`` settles
which records hold if commits overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_texts, join_chunks, to_booleans
from hoodie_py.errors import ConflictError
from hoodie_py.formats.avro.schema import parse_record
from hoodie_py.formats.indexes import keys as index_keys
from hoodie_py.formats.indexes import ranges as column_ranges
from hoodie_py.formats.indexes.bounds import NO_VALUES, ValueKind
from hoodie_py.formats.indexes.definitions import COLUMN_STATS, NO_PARTITION, IndexedColumns
from hoodie_py.formats.indexes.measure import find_kinds
from hoodie_py.formats.indexes.ranges import ColumnRange
from hoodie_py.formats.indexes.record_schema import STATISTICS_COLUMN
from hoodie_py.formats.timeline.instants import CLEAN, INDEXING, RESTORE, ROLLBACK, SAVEPOINT
from hoodie_py.options.indexes import PARTITION_STATS_GROUPS
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.writer.indexes.column_ranges import (
    MeasuredCommit,
    make_records,
    measure_commit,
    measure_files,
    read_indexed_columns,
)
from hoodie_py.writer.indexes.group_changes import find_files_after
from hoodie_py.writer.indexes.index import GroupPlan, Index, MetadataCommit, PartitionRecords, Portion, place_records
from hoodie_py.writer.indexes.range_checks import check_range, is_known, read_ranges
from hoodie_py.writer.indexes.table_source import IndexSource
from hoodie_py.writer.indexes.verify_report import OnEntries, PartReport
from hoodie_py.writer.output_schema import load_output_schema

_WITHOUT_DATA = {CLEAN, ROLLBACK, RESTORE, SAVEPOINT, INDEXING}


@dataclass(frozen=True, slots=True)
class StoredRange:
    """A range stored, or to be stored, in the metadata table."""

    range: ColumnRange
    is_tight: bool


@dataclass(frozen=True, slots=True)
class Overlap:
    """The instants that overlap an instant which is about to complete: one began before the other and lands after it.

    The metadata table merges records in the order of request times, and a tight record replaces older ones (Hudi
    ``HoodieTableMetadataUtil.mergeColumnStatsRecords``). So the record of the commit that landed first would hide the
    record of the one that began first, and readers would lose its rows. Therefore:

    * Beside an older pending instant, whose record may still come, a record is not tight: it is merged with the records
      before it, whenever they come. If it cannot be merged, as the column's type changed, it gets the widest range.
    * An instant that lands after a later one refuses if the stored record hides its own and is narrower.

    Attributes:
        has_older: whether older writes, or services that write, are pending.
        later: partition paths that complete instants which began later have written to, or have replaced files of.
    """

    has_older: bool
    later: frozenset[str]

    def settle(
        self, path: str, found: Mapping[str, ColumnRange], stored: Mapping[str, StoredRange]
    ) -> dict[str, StoredRange]:
        """Return the records for the ranges of a partition by column; ``stored`` are the records in the metadata table.

        Raises:
            ConflictError: a record of a later instant, or its deletion, hides a range that is wider.
        """
        if path in self.later:
            for name, each in found.items():
                there = stored.get(name)
                # No record is a deleted one: a reader would take the partition for one without statistics, Java for
                # one without rows.
                if there is None or (there.is_tight and not _holds(there.range, each)):
                    raise ConflictError(
                        "A writer that began later has committed first, and its statistics of the partition would hide "
                        f"those of this write, of column {each.column!r}.",
                        hint="Write again; if it is a plan that is run, roll it back and make another.",
                        partition=path,
                    )
        if not self.has_older:
            return tighten(found)
        settled = {name: _loosen(each, stored.get(name)) for name, each in found.items()}
        return {name: each for name, each in settled.items() if each is not None}


def find_overlap(commit: MetadataCommit) -> Overlap:
    """Look for overlapping instants on the timeline. The caller holds the table's lock."""
    timeline = commit.snapshot.timeline
    has_older = any(
        each.request_time < commit.instant and each.action not in _WITHOUT_DATA for each in timeline.select_pending()
    )
    later = [each for each in timeline.list_completed_writes() if each.request_time > commit.instant]
    paths: set[str] = set()
    for metadata in timeline.read_all_metadata(later):
        paths.update(stat.partition_path for stat in metadata.iterate_stats())
        paths.update(metadata.replaced_file_ids)
    return Overlap(has_older, frozenset(paths))


def tighten(found: Mapping[str, ColumnRange]) -> dict[str, StoredRange]:
    """Return ranges as records that replace the records before them."""
    return {name: StoredRange(each, True) for name, each in found.items()}


def read_stored_ranges(statistics: pa.Array, version: int) -> list[StoredRange]:
    """Return the ranges in records of partitions."""
    flags = to_booleans(pc.struct_field(statistics, "isTightBound")).tolist()
    return [StoredRange(*each) for each in zip(column_ranges.read_statistics(statistics, version), flags, strict=True)]


def _loosen(found: ColumnRange, stored: StoredRange | None) -> StoredRange | None:
    """Return a record that is merged with the records before it; None if that is not possible."""
    if stored is None or len({found.kind, stored.range.kind} - {NO_VALUES}) <= 1:
        return StoredRange(found, False)
    widest = column_ranges.make_widest_range(found.column, found.kind)
    return None if widest is None else StoredRange(widest, True)


def _holds(there: ColumnRange, found: ColumnRange) -> bool:
    """Whether the range ``there`` includes all values of the range ``found``."""
    if len({there.kind, found.kind} - {NO_VALUES}) > 1:
        return False
    both = column_ranges.merge_ranges([there, found])
    kept = replace(there, kind=both.kind, nulls=both.nulls, values=both.values, size=both.size)
    has_nulls = there.nulls > 0 or not found.nulls
    return replace(kept, uncompressed=both.uncompressed) == both and has_nulls


_AT_ONCE = 256  # partitions whose records are read together

Parts = dict[str, list[ColumnRange | None]]  # ranges to merge, by column; None: an unknown range


@dataclass(frozen=True, slots=True)
class PartitionRanges(Index):
    """The partition ``partition_stats``.

    A check requires ranges that hold for all files that readers see. Once schema-on-read has renamed or retyped
    columns, the ranges describe other columns than the files'; readers do not use them then, and nothing is checked.
    """

    _prefix = "partition-stats-"

    measured: MeasuredCommit | None = None
    """The ranges of an instant's new files; None if it writes no records."""

    def prepare(self, change: MetadataCommit) -> Self:
        """Find the ranges of an instant's new files; errors as ``measure_commit``."""
        return replace(self, measured=measure_commit(change))

    def records(self, change: MetadataCommit, view: MetadataView) -> PartitionRecords:
        """Make the records of an instant.

        Raises:
            ConflictError: a record of a later instant hides a range that is wider.
            CorruptFileError, FileMissingError: a file, or the metadata table, cannot be read.
            StorageError: the store refused.
        """
        measured = self.measured
        if measured is None or change.schema is None:
            return PartitionRecords(self.partition, make_partition_records({}, 1))
        kinds = find_kinds(measured.indexed.names, parse_record(change.schema))
        maker = _Maker(change, self.partition, view, measured, kinds, find_overlap(change))
        found = dict(maker.iterate_partitions())
        gone = [(path, name) for path in change.replaced if path not in found for name in kinds]
        gone += [(path, name) for path, ranges in found.items() for name in kinds if name not in ranges]
        made = make_partition_records(found, measured.indexed.version)
        return PartitionRecords(self.partition, made, _make_keys(gone) if gone else None)

    def portions(self, source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
        """Yield the range of each indexed column in each partition; errors as ``measure_file``."""
        indexed = read_indexed_columns(source)
        for path, ranges in _iterate_partition_ranges(source, indexed):
            yield place_records(make_partition_records({path: tighten(ranges)}, indexed.version), groups)

    def count_groups(self, options: Mapping[str, str]) -> int:
        """Return the number that the options say."""
        return PARTITION_STATS_GROUPS.read(options)

    def check(self, source: IndexSource, view: MetadataView, on_entries: OnEntries | None = None) -> PartReport:
        """Compare each range with the values of the partition's files.

        Raises:
            HoodieError: a file cannot be read.
        """
        report = PartReport(self.partition)
        if source.snapshot.schema.mappings is not None:
            return report
        indexed = read_indexed_columns(source)
        pairs = zip(
            _iterate_partition_ranges(source, indexed),
            _iterate_partition_ranges(source, indexed, as_java=True),
            strict=True,
        )
        for (path, true), (_, java) in pairs:
            parts = index_keys.encode_names(indexed.names), index_keys.encode_partitions([path] * len(indexed.names))
            keys = index_keys.make_partition_keys(*parts).to_pylist()
            found = read_ranges(view, self.partition, keys, indexed.version)
            for key, column in zip(keys, indexed.names, strict=True):
                expected = [
                    each for each in (true.get(column), java.get(column)) if each is not None and is_known(each)
                ]
                check_range(report, f"{path or NO_PARTITION} {column}", found.get(key), expected, indexed.version)
            if on_entries is not None:
                on_entries(self.partition, report.checked, None)
        return report


def _iterate_partition_ranges(
    source: IndexSource, indexed: IndexedColumns, *, as_java: bool = False
) -> Iterator[tuple[str, dict[str, ColumnRange]]]:
    """Yield each partition of the table with the ranges of the files that readers see."""
    kinds = find_kinds(indexed.names, parse_record(load_output_schema(source.snapshot).avro))
    for path, files in source.visible_files.items():
        parts: Parts = {}
        for _, found in measure_files(source.snapshot.files, files, indexed, as_java=as_java):
            add_file(parts, () if found is None else found.ranges, kinds, indexed.version)
        yield path, merge_parts(parts, kinds, indexed.version)


def merge_parts(parts: Parts, kinds: Mapping[str, ValueKind], version: int) -> dict[str, ColumnRange]:
    """Merge the ranges of files to the ranges of a partition, in the kinds of the table's columns.

    Columns whose range is not known get the widest one, or are left out.
    """
    merged = {}
    for name, kind in kinds.items():
        found = _merge_column(name, parts.get(name, []), column_ranges.simplify_kind(kind, version))
        if found is not None:
            merged[name] = found
    return merged


def _merge_column(name: str, ranges: Sequence[ColumnRange | None], kind: ValueKind) -> ColumnRange | None:
    promoted = [None if each is None else column_ranges.promote_range(each, kind) for each in ranges]
    known = [each for each in promoted if each is not None]
    if len(known) == len(promoted) and known:
        return column_ranges.merge_ranges(known)
    return column_ranges.make_widest_range(name, kind)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Finds the ranges of the partitions that an instant changes."""

    commit: MetadataCommit
    partition: str
    view: MetadataView
    measured: MeasuredCommit
    kinds: Mapping[str, ValueKind]
    overlap: Overlap

    def iterate_partitions(self) -> Iterator[tuple[str, dict[str, StoredRange]]]:
        """Yield each partition path with its ranges by column; no path without files."""
        new = self._collect_new()
        version = self.measured.indexed.version
        # Files that others wrote since the first look stay in a partition whose known file groups are all replaced.
        paths = sorted({*new, *self.commit.replaced})
        for at in range(0, len(paths), _AT_ONCE):
            some = paths[at : at + _AT_ONCE]
            known = self._read_known([path for path in some if self._only_adds(path) or self._overlaps(path)])
            whole = {path for path in some if self._only_adds(path) and len(known.get(path, ())) == len(self.kinds)}
            after = find_files_after(self.commit, [path for path in some if path not in whole])
            for path in some:
                if path not in new and not after[path]:
                    continue
                stored = known.get(path, {})
                parts = self._take_known(stored) if path in whole else self._read_files(path, after[path])
                for name in self.kinds if path in new else ():
                    parts.setdefault(name, []).extend(new[path].get(name, [None]))
                yield path, self.overlap.settle(path, merge_parts(parts, self.kinds, version), stored)

    def _overlaps(self, path: str) -> bool:
        return self.overlap.has_older or path in self.overlap.later

    def _take_known(self, stored: Mapping[str, StoredRange]) -> Parts:
        """Return the stored ranges to merge with the ranges of new files; none if the record will not be tight."""
        # Readers merge a record that is not tight with earlier ones, so it need not include them.
        return {} if self.overlap.has_older else {name: [each.range] for name, each in stored.items()}

    def _collect_new(self) -> dict[str, Parts]:
        """Return the ranges of the instant's own files, by partition path."""
        new: dict[str, Parts] = {}
        for file in self.measured.files:
            add_file(new.setdefault(file.partition_path, {}), file.ranges, self.kinds, self.measured.indexed.version)
        for path, _ in self.measured.bare:
            add_file(new.setdefault(path, {}), (), self.kinds, self.measured.indexed.version)
        return new

    def _only_adds(self, path: str) -> bool:
        """Whether the instant hides no file of the partition from readers."""
        if self.commit.kind != "write" or self.commit.replaced.get(path):
            return False
        stats = self.commit.stats.get(path, ())
        return all((stat.file_name or ".").startswith(".") or stat.prev_base_file is None for stat in stats)

    def _read_known(self, paths: Sequence[str]) -> dict[str, dict[str, StoredRange]]:
        """Read the records of partitions, by column."""
        if not paths:
            return {}
        pairs = [(path, name) for path in paths for name in self.kinds]
        keys = _make_keys(pairs)
        records = self.view.read_keys(self.partition, keys.to_pylist())
        places = {key: at for at, key in enumerate(keys.to_pylist())}
        found: dict[str, dict[str, StoredRange]] = {}
        stored = read_stored_ranges(join_chunks(records[STATISTICS_COLUMN]), self.measured.indexed.version)
        for key, each in zip(records["key"].to_pylist(), stored, strict=True):
            path, name = pairs[places[key]]
            found.setdefault(path, {})[name] = each
        return found

    def _read_files(self, path: str, names: frozenset[str]) -> Parts:
        """Return the ranges of files of a partition, from ``column_stats``, else from the files."""
        version = self.measured.indexed.version
        parts: Parts = {}
        by_file: dict[str, list[ColumnRange]] = {name: [] for name in names}
        if names:
            prefixes = index_keys.make_column_partition_prefixes(self.kinds, [path])
            records = self.view.read_prefixes(COLUMN_STATS, prefixes)
            statistics = join_chunks(records[STATISTICS_COLUMN])
            files = pc.struct_field(statistics, "fileName")
            kept = statistics.filter(pc.is_in(files, from_texts(sorted(names), pa.string())))
            for name, each in zip(
                pc.struct_field(kept, "fileName").to_pylist(), column_ranges.read_statistics(kept, version), strict=True
            ):
                by_file[name].append(each)
        bare = [f"{path}/{name}" if path else name for name, ranges in by_file.items() if not ranges]
        for place, measured in measure_files(self.commit.session.files, bare, self.measured.indexed):
            by_file[place.rpartition("/")[2]] = [] if measured is None else list(measured.ranges)
        for ranges in by_file.values():
            add_file(parts, ranges, self.kinds, version)
        return parts


def add_file(parts: Parts, ranges: Sequence[ColumnRange], kinds: Mapping[str, ValueKind], version: int) -> None:
    """Add the ranges of one file. Columns without statistics count as unknown."""
    by_column = {each.column: each for each in ranges}
    for name in kinds:
        found = by_column.get(name)
        parts.setdefault(name, []).append(None if found is None else column_ranges.simplify_range(found, version))


def _make_keys(pairs: Sequence[tuple[str, str]]) -> pa.Array:
    """Return the keys of partition paths and columns."""
    return index_keys.make_partition_keys(
        index_keys.encode_names(name for _, name in pairs), index_keys.encode_partitions(path for path, _ in pairs)
    )


def make_partition_records(found: Mapping[str, Mapping[str, StoredRange]], version: int) -> pa.Table:
    """Make the records of partitions."""
    rows = [(path, each) for path, ranges in found.items() for each in ranges.values()]
    ranges, tight = [each.range for _, each in rows], [each.is_tight for _, each in rows]
    statistics = column_ranges.make_statistics([path for path, _ in rows], ranges, version, tight=tight)
    keys = _make_keys([(path, each.range.column) for path, each in rows])
    return make_records(keys, index_keys.PARTITION_STATS_TYPE, statistics)
