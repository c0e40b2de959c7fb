"""Bloom filter indexes (bloom_filters, some expr_index_*): leave out slices whose base file lacks the filter's values.

The bloom filter of a base file has its record keys (Hudi ``BloomFiltersIndexSupport``), or the values of an expression.
Log files have no filter, so slices with log files are kept. A file that the index does not know may have any value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, from_texts, index_in, join_chunks, take, to_numbers
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.indexes.definitions import BLOOM_FILTERS
from hoodie_py.formats.indexes.keys import encode_file_names, encode_partitions, make_bloom_keys
from hoodie_py.formats.indexes.record_schema import BLOOM_COLUMN
from hoodie_py.formats.parquet.bloom import BloomFilter
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.filter.allowed_values import find_allowed_keys, find_allowed_values
from hoodie_py.table.indexes.index import FilterRequest, Mask, SliceFilter
from hoodie_py.table.indexes.ranges import find_expression, list_expression_indexes, may_be_judged
from hoodie_py.table.indexes.view import KEY

_MOST = 1_000  # values to look up in filters
_AT_ONCE = 64  # filters, as each may have half a megabyte


@dataclass(frozen=True, slots=True)
class BloomFilters:
    """Leaves out slices whose base file has none of ``texts``, by an index of bloom filters."""

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


def make_bloom_filters(request: FilterRequest) -> list[SliceFilter]:
    """Return the filters of those bloom filter indexes that can use a scan's filter."""
    found: list[SliceFilter] = []
    keys = None
    if request.view.has(BLOOM_FILTERS):
        keys = find_allowed_keys(request.config, request.columns.arrow, request.predicate)
    if keys is not None and len(keys) <= _MOST:
        found.append(BloomFilters(request, BLOOM_FILTERS, keys))
    for index in list_expression_indexes(request):
        expression = find_expression(request, index) if index.kind == BLOOM_FILTERS else None
        if expression is not None and pa.types.is_string(expression[0]):
            values = find_allowed_values(request.predicate, expression[1])
            if values is not None and len(values) <= _MOST:
                found.append(BloomFilters(request, index.name, values))
    return found
