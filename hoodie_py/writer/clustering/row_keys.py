"""The columns that rows are sorted by: the sort columns themselves, or places on a space-filling curve through them.

On a curve, rows that are near each other in several columns come near each other in a file. A value becomes a number of
64 bits that sorts as the values do (Hudi ``BinaryUtil``, ``SparkSortUtils``). The Z-order curve interleaves the bits of
these numbers; the Hilbert curve first turns the axes, so that neighbours on the curve are always neighbours in space
(J. Skilling, "Programming the Hilbert curve", 2004). Java's orders have the same locality and other bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, is_valid, to_booleans, to_numbers
from hoodie_py.arrow.fields import find_field_type, is_text, read_field_values
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.writer.clustering.settings import HILBERT, LINEAR, Layout

_SAMPLE_ROWS = 200_000
_RANK_BITS = 16
_SORT_KEY = "\0sort"  # no column of a table has such a name

Numbers = npt.NDArray[np.uint64]

_BITS = 64
MOST_COLUMNS = 8
_SIGN = np.uint64(1 << 63)
_ONE = np.uint64(1)


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
        if not _can_order(type_):
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


def _can_order(type_: pa.DataType) -> bool:
    """Whether values of a type have places on a curve."""
    return not pa.types.is_nested(type_) and not pa.types.is_dictionary(type_)


def make_numbers(values: pa.Array) -> Numbers:
    """Return a number for each value that sorts as the values do; texts count with their first 8 bytes, nulls as 0."""
    type_ = values.type
    if is_text(type_) or pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return _number_texts(values.cast(pa.binary()))
    if pa.types.is_fixed_size_binary(type_):
        return _number_texts(values.cast(pa.binary()))
    if pa.types.is_boolean(type_):
        return (to_booleans(values) & is_valid(values)).astype(np.uint64)
    if pa.types.is_decimal(type_):
        values = values.cast(pa.float64())
    if pa.types.is_floating(values.type):
        bits = to_numbers(values).astype(np.float64).view(np.uint64)
        numbers = np.where(bits & _SIGN != 0, ~bits, bits | _SIGN)
    else:
        width = pa.int32() if values.type.bit_width == 32 else pa.int64()
        whole = values if pa.types.is_integer(values.type) else values.view(width)
        numbers = to_numbers(whole).astype(np.int64).view(np.uint64) ^ _SIGN
    return np.where(is_valid(values), numbers, np.uint64(0))


def _number_texts(values: pa.Array) -> Numbers:
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1]
    starts, lengths = offsets[:-1].astype(np.int64), np.diff(offsets)
    data = values.buffers()[2]
    raw = np.frombuffer(data if data is not None and data.size else b"\0", np.uint8)
    first = np.zeros((len(values), 8), np.uint8)
    for place in range(8):
        at = np.flatnonzero(lengths > place)
        first[at, place] = raw[starts[at] + place]
    return np.where(is_valid(values), first.view(">u8")[:, 0].astype(np.uint64), np.uint64(0))


def interleave(axes: Sequence[Numbers], bits: int = _BITS) -> list[Numbers]:
    """Interleave the ``bits`` low bits of numbers, the highest bits first; a multiple of 8 and at most 8 axes.

    The places on the curve come as columns of 64 bits, the most significant first, so that rows sort by all of them.
    """
    count, width = len(axes), bits // 8
    found = np.zeros((len(axes[0]), -(-count * width // 8) * 8), np.uint8)
    for number in range(width):
        shift = np.uint64(8 * (width - 1 - number))
        word = np.zeros(len(axes[0]), np.uint64)
        for place, axis in enumerate(axes):
            low = ((axis >> shift) & np.uint64(0xFF)).astype(np.intp)
            word |= _make_spread(count)[low] << np.uint64(count - 1 - place)
        found[:, number * count : (number + 1) * count] = (
            word.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - count :]
        )
    words = found.view(">u8").astype(np.uint64)
    return [np.ascontiguousarray(words[:, number]) for number in range(words.shape[1])]


@lru_cache(maxsize=MOST_COLUMNS)
def _make_spread(count: int) -> Numbers:
    """Return each byte with ``count - 1`` zero bits put between its bits."""
    spread = [sum(((byte >> bit) & 1) << (bit * count) for bit in range(8)) for byte in range(256)]
    return np.array(spread, np.uint64)


def turn_axes(axes: Sequence[Numbers], bits: int = _BITS) -> list[Numbers]:
    """Turn coordinates into those whose interleaved bits are the place on the Hilbert curve."""
    turned = [np.array(axis, np.uint64) for axis in axes]
    first = turned[0]
    for bit in range(bits - 1, 0, -1):
        mask = np.uint64((1 << bit) - 1)
        for axis in turned:
            is_set = (axis >> np.uint64(bit)) & _ONE
            spread = (np.uint64(0) - is_set) & mask  # the low bits if the bit is set
            change = (first ^ axis) & (mask ^ spread)
            first ^= spread | change
            axis ^= change
    for number in range(1, len(turned)):
        turned[number] ^= turned[number - 1]
    last, flips = turned[-1], np.zeros(len(first), np.uint64)
    for bit in range(bits - 1, 0, -1):
        is_set = (last >> np.uint64(bit)) & _ONE
        flips ^= (np.uint64(0) - is_set) & np.uint64((1 << bit) - 1)
    for axis in turned:
        axis ^= flips
    return turned
