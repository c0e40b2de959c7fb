"""partition_stats: leaves out file slices by the ranges of their partitions (Hudi ``PartitionStatsIndexSupport``).

It saves looking up the statistics of many files. Java makes a partition's range from those files that have statistics
of the column. Files without them, as they were written before the column was indexed or lack the column, do not count.
So the range of a column is only used where it counts as many values as there are record keys: each file has
statistics of those.

The statistics are those of the table's newest state. A scan of the past does not use them. Nor does a scan whose
snapshot is older than the metadata table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, is_valid, join_chunks, to_numbers
from hoodie_py.arrow.compute import index_in, take
from hoodie_py.formats.metadata_table.index_definitions import PARTITION_STATS
from hoodie_py.formats.metadata_table.keys import encode_names, encode_partitions, make_partition_keys
from hoodie_py.formats.metadata_table.own_instants import is_own
from hoodie_py.formats.names import RECORD_KEY_FIELD
from hoodie_py.formats.timeline.instants import DELTA_COMMIT
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.filter.bounds import UNKNOWN, ColumnBounds, find_candidates
from hoodie_py.table.metadata_table.column_stats import find_millis, find_ranged_columns, may_be_judged
from hoodie_py.table.metadata_table.file_ranges import STATISTICS, read_ranges
from hoodie_py.table.metadata_table.slice_filter import FilterRequest, Mask, SliceFilter
from hoodie_py.table.metadata_table.view import KEY, MetadataView
from hoodie_py.table.timeline.loader import TableTimeline


@dataclass(frozen=True, slots=True)
class PartitionStatsFilter:
    """Leaves out the slices of partitions by ``columns``, given with their types."""

    request: FilterRequest
    columns: Mapping[str, pa.DataType]

    name: ClassVar[str] = PARTITION_STATS
    least_slices: ClassVar[int] = 64

    def choose(self, slices: Sequence[FileSlice]) -> Mask | None:
        """Return for each slice whether it may hold rows that pass."""
        request = self.request
        paths = list(dict.fromkeys(each.partition_path for each in slices))
        if is_ahead(request.view, request.timeline):
            return None
        candidates = find_candidates(request.predicate, self._read_bounds(paths), len(paths))
        wanted = {path for path, keep in zip(paths, candidates.tolist(), strict=True) if keep}
        return np.array(
            [each.partition_path in wanted or not may_be_judged(request, each) for each in slices], np.bool_
        )

    def _read_bounds(self, paths: Sequence[str]) -> dict[str, ColumnBounds]:
        """Return the bounds of each column in each partition."""
        names = [*dict.fromkeys([*self.columns, RECORD_KEY_FIELD])]
        partitions, parts = encode_partitions(paths), encode_names(names)
        keys = {
            name: make_partition_keys(take(parts, from_numpy(np.full(len(paths), at, np.int64))), partitions)
            for at, name in enumerate(names)
        }
        found = self.request.view.read_keys(
            PARTITION_STATS, [key for each in keys.values() for key in each.to_pylist()], [STATISTICS]
        )
        known, records = join_chunks(found[KEY]), join_chunks(found[STATISTICS])
        statistics = {name: take(records, index_in(keys[name], known)) for name in names}
        rows = _count_values(statistics[RECORD_KEY_FIELD])
        millis = set(find_millis(self.request))
        return {
            name: _make_bounds(statistics[name], type_, rows, millis=name in millis)
            for name, type_ in self.columns.items()
        }


def make_partition_stats_filters(request: FilterRequest) -> list[SliceFilter]:
    """Return the filter of a scan; none where the table has no such index, or it does not tell of this scan."""
    if not request.is_current or not request.view.has(PARTITION_STATS) or not request.config.populate_meta_fields:
        return []
    columns = find_ranged_columns(request)
    return [PartitionStatsFilter(request, columns)] if columns else []


def is_ahead(view: MetadataView, timeline: TableTimeline) -> bool:
    """Say whether a metadata table may tell of commits that a loaded timeline does not have, compacted ones among them.

    Indexes of the table's newest state do not serve such a scan.
    """
    known = {each.request_time for each in timeline.timeline.select_completed()}
    oldest = min(known, default="")
    return any(
        each.request_time not in known and each.request_time >= oldest
        for each in view.timeline.timeline.select_completed()
        if each.action == DELTA_COMMIT and not is_own(each.request_time)
    )


def _make_bounds(statistics: pa.Array, type_: pa.DataType, rows: np.ndarray, *, millis: bool) -> ColumnBounds:
    """Return the bounds of a column in each partition, unknown where it counts fewer values than there are rows."""
    covered = (_count_values(statistics) == rows) & (rows >= 0)
    ranges = read_ranges(statistics, type_, millis=millis, of_partitions=True)
    at = from_numpy(np.arange(len(statistics)), ~covered)
    all_null = covered & ranges.all_null
    nulls = np.where(covered & ranges.no_nulls, 0, np.where(all_null, 1, UNKNOWN)).astype(np.int64)
    counts = np.where(all_null, nulls, UNKNOWN).astype(np.int64)
    return ColumnBounds(take(ranges.least, at), take(ranges.greatest, at), nulls, counts)


def _count_values(statistics: pa.Array) -> np.ndarray:
    """Return the number of values, nulls among them; -1 where there are no statistics."""
    counts = to_numbers(statistics.field("valueCount"), UNKNOWN).astype(np.int64)
    return np.where(is_valid(statistics), counts, UNKNOWN)
