"""Leave out file slices that hold no wanted row, by the indexes of the metadata table (Hudi data skipping).

The rule: indexes are asked one after the other, the most selective first, each about the slices that are left. Looking
into an index costs some requests, and row groups are left out by their footers anyway. So indexes of statistics are
asked only from some slices on (``least_slices``), unless the option ``hoodie.enable.data.skipping`` is given.

Where an index cannot be read, the scan goes on without it, with a warning; with ``strict`` that is an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Final

from hoodie_py.errors import HoodieError, HoodieWarning
from hoodie_py.options.read import DATA_SKIPPING
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.metadata_table.bloom_filters import make_bloom_filters
from hoodie_py.table.metadata_table.column_stats import make_column_stats_filters
from hoodie_py.table.metadata_table.expression_index import make_expression_filters
from hoodie_py.table.metadata_table.partition_stats import make_partition_stats_filters
from hoodie_py.table.metadata_table.slice_filter import FilterRequest, FilterStep, MakeFilters, Mask, SliceFilter

MAKERS: Final[tuple[MakeFilters, ...]] = (
    make_partition_stats_filters,
    make_column_stats_filters,
    make_expression_filters,
    make_bloom_filters,
)
"""The indexes, in the order in which they are asked."""


def skip_slices(
    request: FilterRequest, slices: Sequence[FileSlice], makers: Sequence[MakeFilters] = MAKERS
) -> tuple[list[FileSlice], list[FilterStep]]:
    """Return the slices that may hold rows that pass, and what each index did.

    Raises:
        HoodieError: with ``strict``: the metadata table is damaged, or contradicts a file.
    """
    left, steps = list(slices), []
    for index in _make_filters(request, makers):
        if not left:
            break
        if len(left) < index.least_slices and DATA_SKIPPING.read_given(request.options) is None:
            note = f"Not asked: {len(left)} file slices are few, and their files tell the same."
            steps.append(FilterStep(index.name, len(left), 0, note=note))
        else:
            left, step = _ask(index, request, left)
            steps.append(step)
    return left, steps


def _make_filters(request: FilterRequest, makers: Sequence[MakeFilters]) -> Iterator[SliceFilter]:
    """Yield the indexes that may know something of the filter."""
    for make in makers:
        try:
            yield from make(request)
        except HoodieError as error:
            if request.strict:
                raise
            text = f"Indexes of the metadata table cannot be read, so they leave out no file slice: {error}"
            warnings.warn(HoodieWarning(text), stacklevel=2)


def _ask(index: SliceFilter, request: FilterRequest, slices: list[FileSlice]) -> tuple[list[FileSlice], FilterStep]:
    view = request.view
    calls, size, note = view.calls, view.bytes, None
    chosen: Mask | None = None
    try:
        chosen = index.choose(slices)
        note = "It knows nothing of what the filter asks." if chosen is None else None
    except HoodieError as error:
        if request.strict:
            raise
        note = f"It cannot be read: {error}"
        text = f"The metadata table's {index.name} cannot be read, so it leaves out no file slice: {error}"
        warnings.warn(HoodieWarning(text), stacklevel=2)
    left = slices if chosen is None else [each for each, keep in zip(slices, chosen.tolist(), strict=True) if keep]
    skipped = len(slices) - len(left)
    return left, FilterStep(index.name, len(slices), skipped, view.calls - calls, view.bytes - size, note)
