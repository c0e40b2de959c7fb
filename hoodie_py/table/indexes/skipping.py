"""Leaves out file slices that hold no wanted row, by the indexes of the metadata table (Hudi data skipping).

Indexes are asked one after another, the most selective first, each about the slices that are left. Asking an index
costs some requests, and footers exclude row groups anyway. So indexes of statistics are asked only if there are enough
slices (``least_slices``), unless the option ``hoodie.enable.data.skipping`` is given.

If an index cannot be read, the scan goes on without it, with a warning; with ``strict`` that is an error. A strict scan
leaves out only what it can check: base files without log files, whose footers agree with ``column_stats``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Final, Self

import numpy as np
import pyarrow as pa

from hoodie_py.errors import CorruptFileError, HoodieError, HoodieWarning
from hoodie_py.formats.indexes.definitions import COLUMN_STATS
from hoodie_py.options.read import DATA_SKIPPING
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.indexes.blooms import make_bloom_filters
from hoodie_py.table.indexes.index import FilterRequest, FilterStep, MakeFilters, Mask, SliceFilter
from hoodie_py.table.indexes.ranges import (
    make_column_stats_filters,
    make_expression_filters,
    make_partition_stats_filters,
)
from hoodie_py.table.indexes.soundness import check_index_files

MAKERS: Final[tuple[MakeFilters, ...]] = (
    make_partition_stats_filters,
    make_column_stats_filters,
    make_expression_filters,
    make_bloom_filters,
)
"""The indexes, in the order in which they are asked."""

_STRANGE = (pa.ArrowException, KeyError, IndexError, TypeError, ValueError, OverflowError)
"""What reading raises if records do not have the shape of an index's records."""


def skip_slices(
    request: FilterRequest, slices: Sequence[FileSlice], makers: Sequence[MakeFilters] = MAKERS
) -> tuple[list[FileSlice], list[FilterStep]]:
    """Return the slices that may hold rows that pass, and what each index did.

    Raises:
        HoodieError: with ``strict``: the metadata table is damaged, or contradicts a file.
    """
    left, steps = list(slices), []
    for make in makers:
        with _Attempt(request, "a definition of an index") as attempt:
            attempt.indexes = make(request)
        for index in attempt.indexes:
            if left:
                left, step = _ask(index, request, left)
                steps.append(step)
    return left, steps


class _Attempt:
    """One use of an index. Without ``strict`` an error becomes a warning, and ``problem`` has its text."""

    def __init__(self, request: FilterRequest, name: str) -> None:
        self._strict = request.strict
        self._name = name
        self.indexes: Sequence[SliceFilter] = ()
        self.problem: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, _STRANGE):
            error = CorruptFileError(f"Its records are not those of such an index: {error}")
        if not isinstance(error, HoodieError):
            return False
        if self._strict:
            raise error
        self.problem = str(error)
        text = f"The metadata table's {self._name} cannot be read, so it leaves out no file slice: {error}"
        warnings.warn(HoodieWarning(text), stacklevel=4)
        return True


def _cannot_be_checked(index: SliceFilter, slices: Sequence[FileSlice]) -> Mask:
    """Return which slices no footer can confirm."""
    return np.array([index.name != COLUMN_STATS or bool(each.log_files) for each in slices], np.bool_)


def _ask(index: SliceFilter, request: FilterRequest, slices: list[FileSlice]) -> tuple[list[FileSlice], FilterStep]:
    """Return the slices that an index keeps, and what it did."""
    if len(slices) < index.least_slices and DATA_SKIPPING.read_given(request.options) is None:
        few = f"Not asked: {len(slices)} file slices are few, and their files tell the same."
        return slices, FilterStep(index.name, len(slices), 0, note=few)
    view = request.view
    calls, size = view.calls, view.bytes
    chosen: Mask | None = None
    with _Attempt(request, index.name) as attempt:
        if view.has(index.name):
            check_index_files(view, index.name)
        chosen = index.choose(slices)
        if request.strict and chosen is not None:
            chosen = chosen | _cannot_be_checked(index, slices)
    left = slices if chosen is None else [each for each, keep in zip(slices, chosen.tolist(), strict=True) if keep]
    note: str | None = None if chosen is not None else "It knows nothing of what the filter asks."
    if attempt.problem is not None:
        note = f"It cannot be read: {attempt.problem}"
    skipped = len(slices) - len(left)
    return left, FilterStep(index.name, len(slices), skipped, view.calls - calls, view.bytes - size, note)
