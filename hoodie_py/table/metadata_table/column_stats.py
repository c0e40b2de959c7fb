"""column_stats: leaves out file slices by the ranges of their columns (Hudi ``ColumnStatsIndexSupport``).

These columns may have any value, whatever the statistics say:

* partition columns, as their values come from the path;
* columns whose default is not null, as files without the column have the default;
* all columns of tables whose columns were renamed or retyped by schema-on-read, of bootstrapped files, and of slices
  with log files whose merger may compute new values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from hoodie_py.formats.metadata_table.index_definitions import COLUMN_STATS
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.filter.bounds import find_candidates
from hoodie_py.table.filter.predicate import Column, iterate_nodes
from hoodie_py.table.metadata_table.file_ranges import list_files, read_bounds
from hoodie_py.table.metadata_table.footer_check import check_footers
from hoodie_py.table.metadata_table.slice_filter import FilterRequest, Mask, SliceFilter
from hoodie_py.table.view.partition_values import is_formatted_time


@dataclass(frozen=True, slots=True)
class ColumnStatsFilter:
    """Leaves out slices by ``columns``, given with their types."""

    request: FilterRequest
    columns: Mapping[str, pa.DataType]

    name: ClassVar[str] = COLUMN_STATS

    @property
    def least_slices(self) -> int:
        """From how many slices on it pays to ask the index."""
        return self.request.least_slices

    def choose(self, slices: Sequence[FileSlice]) -> Mask | None:
        """Return for each slice whether it may hold rows that pass."""
        request = self.request
        trusted = np.array([may_be_judged(request, each) for each in slices], np.bool_)
        some = [each for each, is_trusted in zip(slices, trusted.tolist(), strict=True) if is_trusted]
        if not some:
            return None
        millis = find_millis(request)
        bounds = read_bounds(request.view, COLUMN_STATS, list_files(some), self.columns, len(some), millis)
        keep = np.ones(len(slices), np.bool_)
        found = find_candidates(request.predicate, bounds, len(some))
        if request.strict:
            check_footers(
                request.files, ((some[at], at) for at in np.flatnonzero(~found).tolist()), bounds, COLUMN_STATS
            )
        keep[trusted] = found
        return keep


def make_column_stats_filters(request: FilterRequest) -> list[SliceFilter]:
    """Return the filter of a scan; none where the table has no such index, or no column counts."""
    if not request.view.has(COLUMN_STATS):
        return []
    columns = find_ranged_columns(request)
    return [ColumnStatsFilter(request, columns)] if columns else []


def find_ranged_columns(request: FilterRequest) -> dict[str, pa.DataType]:
    """Return the columns of the filter whose statistics count, nested ones with dots, and the types of their values."""
    if request.columns.mappings is not None:
        return {}
    excluded = {*request.config.partition_fields, *request.columns.defaults}
    excluded |= {name for name in request.columns.data_columns if is_formatted_time(request.config, name)}
    return {
        ".".join(node.path): node.type
        for node in iterate_nodes(request.predicate.root)
        if isinstance(node, Column) and node.path[0] not in excluded and not pa.types.is_nested(node.type)
    }


def find_millis(request: FilterRequest) -> Iterable[str]:
    """Return the columns that the table declares as times in milliseconds."""
    times = request.columns.times
    return () if times is None else [each.name for each in times if getattr(each.type, "unit", None) == "ms"]


def may_be_judged(request: FilterRequest, file_slice: FileSlice) -> bool:
    """Say whether every value of the slice's rows is in one of its files, which have statistics of their own."""
    base = file_slice.base_file
    if base is not None and base.source is not None:
        return False
    return request.merges_values or not file_slice.log_files
