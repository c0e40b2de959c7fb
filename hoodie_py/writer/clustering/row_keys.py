"""The columns that rows are sorted by: the sort columns themselves, or places on a curve through them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.arrow.fields import find_field_type, read_field_values
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.writer.clustering.curves import MOST_COLUMNS, Numbers, can_order, interleave, make_numbers, turn_axes
from hoodie_py.writer.clustering.settings import HILBERT, LINEAR, Layout

_SAMPLE_ROWS = 200_000
_RANK_BITS, _BITS = 16, 64
_SORT_KEY = "\0sort"  # no column of a table has such a name


def check_layout(layout: Layout, schema: pa.Schema) -> None:
    """Check that rows can be sorted by the columns of a layout.

    Raises:
        InvalidQueryError: a column is not in the table.
        UnsupportedFeatureError: a column has a type without an order, or a curve has too many columns.
    """
    for name in layout.columns:
        type_ = find_field_type(schema, name)
        if type_ is None:
            raise InvalidQueryError(f"The sort column {name[:200]!r} is not in the table.", column=name[:200])
        if not can_order(type_):
            raise UnsupportedFeatureError(f"Sorting by a column of type {type_}.", column=name)
    if layout.curve != LINEAR and len(layout.columns) > MOST_COLUMNS:
        raise UnsupportedFeatureError(
            f"A curve through {len(layout.columns)} columns.", hint=f"Name at most {MOST_COLUMNS} sort columns."
        )


@dataclass(frozen=True, slots=True)
class RowKeys:
    """Makes the columns to sort rows by. ``bounds``: sorted values of each column, for ranks; () for none."""

    layout: Layout
    bounds: tuple[Numbers, ...] = ()

    @classmethod
    def from_sample(cls, layout: Layout, batches: Iterable[pa.RecordBatch]) -> RowKeys:
        """Take the bounds from rows, of which the sort columns are enough. Rows are taken evenly."""
        sampled: list[list[Numbers]] = [[] for _ in layout.columns]
        step = held = 1
        for batch in batches:
            for values, name in zip(sampled, layout.columns, strict=True):
                values.append(make_numbers(read_field_values(batch, name))[::step])
            held += -(-batch.num_rows // step)
            if held > _SAMPLE_ROWS:
                step, held = step * 2, held // 2
                sampled = [[np.concatenate(values)[::2]] for values in sampled]
        joined = (np.sort(np.concatenate(values)) if values else np.zeros(0, np.uint64) for values in sampled)
        return cls(layout, tuple(map(_thin_out, joined)))

    @property
    def names(self) -> list[str]:
        """Names of the columns that rows are sorted by, the most important first."""
        count = len(self.layout.columns)
        if self.layout.curve != LINEAR:
            count = -(-count * self._bits // _BITS)
        return [f"{_SORT_KEY}{number}" for number in range(count)]

    def append_to(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with the columns ``names`` behind its own."""
        columns = [*batch.columns, *self._make_columns(batch)]
        return pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, *self.names])

    @property
    def _bits(self) -> int:
        return _RANK_BITS if self.bounds else _BITS

    def _make_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        values = [read_field_values(batch, name) for name in self.layout.columns]
        if self.layout.curve == LINEAR:
            return values
        numbers = [make_numbers(each) for each in values]
        if self.bounds:
            numbers = [_rank(each, bounds) for each, bounds in zip(numbers, self.bounds, strict=True)]
        turned = turn_axes(numbers, self._bits) if self.layout.curve == HILBERT else numbers
        return [from_numpy(each) for each in interleave(turned, self._bits)]


def _thin_out(values: Numbers) -> Numbers:
    """Return distinct values, at most as many as there are ranks, evenly spread over the rows."""
    most = (1 << _RANK_BITS) - 1
    if len(values) > most:
        values = values[np.linspace(0, len(values) - 1, most).astype(np.intp)]
    return np.unique(values)


def _rank(numbers: Numbers, bounds: Numbers) -> Numbers:
    """Return the places among the bounds, stretched over all bits of a rank."""
    scale = max(1, ((1 << _RANK_BITS) - 1) // max(1, len(bounds)))
    return np.searchsorted(bounds, numbers, side="right").astype(np.uint64) * np.uint64(scale)
