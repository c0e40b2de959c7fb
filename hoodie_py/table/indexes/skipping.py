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
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, from_texts, index_in, join_chunks, take, to_numbers
from hoodie_py.errors import CorruptFileError, HoodieError, HoodieWarning, UnsupportedFeatureError
from hoodie_py.formats.indexes.definitions import BLOOM_FILTERS, COLUMN_STATS
from hoodie_py.formats.indexes.keys import encode_file_names, encode_partitions, make_bloom_keys
from hoodie_py.formats.indexes.record_schema import BLOOM_COLUMN
from hoodie_py.formats.parquet.bloom import BloomFilter
from hoodie_py.options.read import DATA_SKIPPING
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.filter.allowed_values import find_allowed_keys, find_allowed_values
from hoodie_py.table.indexes.index import FilterRequest, FilterStep, MakeFilters, Mask, SliceFilter
from hoodie_py.table.indexes.ranges import (
    find_expression,
    list_expression_indexes,
    make_column_stats_filters,
    make_expression_filters,
    make_partition_stats_filters,
    may_be_judged,
)
from hoodie_py.table.indexes.soundness import check_index_files
from hoodie_py.table.indexes.view import KEY

_STRANGE = (pa.ArrowException, KeyError, IndexError, TypeError, ValueError, OverflowError)
"""What reading raises if records do not have the shape of an index's records."""

_MOST = 1_000  # values to look up in filters
_AT_ONCE = 64  # filters, as each may have half a megabyte


def _make_bloom_filters(request: FilterRequest) -> list[SliceFilter]:
    """Return the filters of those bloom filter indexes that can use a scan's filter."""
    found: list[SliceFilter] = []
    keys = None
    if request.view.has(BLOOM_FILTERS):
        keys = find_allowed_keys(request.config, request.columns.arrow, request.predicate)
    if keys is not None and len(keys) <= _MOST:
        found.append(_BloomFilters(request, BLOOM_FILTERS, keys))
    for index in list_expression_indexes(request):
        expression = find_expression(request, index) if index.kind == BLOOM_FILTERS else None
        if expression is not None and pa.types.is_string(expression[0]):
            values = find_allowed_values(request.predicate, expression[1])
            if values is not None and len(values) <= _MOST:
                found.append(_BloomFilters(request, index.name, values))
    return found


MAKERS: Final[tuple[MakeFilters, ...]] = (
    make_partition_stats_filters,
    make_column_stats_filters,
    make_expression_filters,
    _make_bloom_filters,
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


@dataclass(frozen=True, slots=True)
class _BloomFilters:
    """Leaves out slices whose base file has none of ``texts``, by bloom filters (bloom_filters, some expr_index_*).

    The bloom filter of a base file has its record keys (Hudi ``BloomFiltersIndexSupport``), or the values of an
    expression. Log files have no filter, so slices with log files are kept. A file that the index does not know may
    have any value.
    """

    request: FilterRequest
    name: str
    texts: Sequence[str]

    @property
    def least_slices(self) -> int:
        """The number of slices from which asking the index pays."""
        return self.request.least_slices

    def choose(self, slices: Sequence[FileSlice]) -> Mask | None:
        """Return for each slice whether it may hold rows that pass."""
        keep = np.ones(len(slices), np.bool_)
        bases = [(at, each.base_file) for at, each in enumerate(slices) if self._may_be_judged(each)]
        if not bases:
            return None
        for start in range(0, len(bases), _AT_ONCE):
            some = bases[start : start + _AT_ONCE]
            found = self._look_up([slices[at] for at, _ in some])
            keep[[at for at, _ in some]] = found
        return keep

    def _may_be_judged(self, file_slice: FileSlice) -> bool:
        return file_slice.base_file is not None and not file_slice.log_files and may_be_judged(self.request, file_slice)

    def _look_up(self, slices: Sequence[FileSlice]) -> Mask:
        """Return which base files may have one of the texts."""
        partitions = list(dict.fromkeys(each.partition_path for each in slices))
        number = {path: at for at, path in enumerate(partitions)}
        places = from_numpy(np.array([number[each.partition_path] for each in slices], np.int64))
        names = [each.base_file.name for each in slices if each.base_file is not None]
        keys = make_bloom_keys(take(encode_partitions(partitions), places), encode_file_names(names))
        found = self.request.view.read_keys(self.name, keys.to_pylist(), [BLOOM_COLUMN])
        at = to_numbers(index_in(join_chunks(found[KEY]), value_set=keys)).tolist()
        texts, keep = from_texts(list(self.texts), pa.string()), np.ones(len(slices), np.bool_)
        for place, bloom in zip(at, found[BLOOM_COLUMN].to_pylist(), strict=True):
            keep[place] = _may_contain(bloom["bloomFilter"], bloom["type"], texts)
        return keep


def _may_contain(bloom: bytes, kind: str, texts: pa.Array) -> bool:
    """Say whether a filter may have one of the texts; a filter of an unknown kind may."""
    try:
        return bool(BloomFilter.from_text(bloom.decode("latin-1"), kind).may_contain(texts).any())
    except UnsupportedFeatureError:
        return True
