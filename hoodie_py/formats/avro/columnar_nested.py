"""Read records, arrays, maps and unions of many records at once, and choose the reader of a type.

As in ``columnar_values``, a lane without a value becomes null at every level below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import make_bitmap
from hoodie_py.arrow.compute import call, cast
from hoodie_py.formats.avro.arrow_types import find_wider_type, to_arrow_type
from hoodie_py.formats.avro.binary import make_entry_step, make_skip_step
from hoodie_py.formats.avro.columnar_cursor import (
    Mask,
    Misfit,
    Places,
    Source,
    find_largest,
    find_smallest,
)
from hoodie_py.formats.avro.columnar_items import ItemShape, Numbers, find_items
from hoodie_py.formats.avro.columnar_values import (
    BooleanReader,
    DecimalReader,
    EnumReader,
    FixedReader,
    IntegerReader,
    LaneReader,
    NullReader,
    RealReader,
    TextReader,
)
from hoodie_py.formats.avro.schema import Array, AvroType, Decimal, Enum, Fixed, Map, Primitive, Record, Union, is_null

_ITEMS_AT_ONCE = 1 << 15
_REALS = {"float": ("<u4", pa.float32()), "double": ("<u8", pa.float64())}


def make_reader(node: AvroType) -> LaneReader:
    """Make the reader of a type."""
    match node:
        case Primitive():
            return _make_primitive_reader(node)
        case Decimal():
            return DecimalReader(node)
        case Fixed():
            return FixedReader(node)
        case Enum():
            return EnumReader(node)
        case Array():
            return _ArrayReader(node)
        case Map():
            return _MapReader(node)
        case Record():
            return _RecordReader(node)
        case Union():
            if len(node.branches) == 2 and len(node.members) == 1:
                return _NullableReader(node)
            return _UnionReader(node)
    raise TypeError(type(node).__name__)


def _make_primitive_reader(node: Primitive) -> LaneReader:
    match node.kind:
        case "null":
            return NullReader()
        case "boolean":
            return BooleanReader()
        case "int" | "long":
            return IntegerReader(node)
        case "float" | "double":
            return RealReader(*_REALS[node.kind])
    return TextReader(to_arrow_type(node))


def _find_fixed_size(node: AvroType) -> int | None:
    """Return the size of a value in bytes; None if it varies."""
    match node:
        case Primitive(kind="null" | "boolean" | "float" | "double") | Fixed():
            return node.min_size
        case Decimal():
            return node.size
        case Record():
            return node.min_size if all(_find_fixed_size(field.type) is not None for field in node.fields) else None
    return None


class _RecordReader:
    def __init__(self, node: Record) -> None:
        self._arrow = to_arrow_type(node)
        self._readers = [make_reader(field.type) for field in node.fields]

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        children = [reader.read(source, places, mask) for reader in self._readers]
        return pa.Array.from_buffers(self._arrow, len(places), [make_bitmap(mask)], children=children)

    def skip(self, source: Source, places: Places, mask: Mask) -> None:
        for reader in self._readers:
            reader.skip(source, places, mask)


class _ListReader:
    """The common part of array and map readers."""

    def __init__(self, arrow: pa.DataType, shape: ItemShape) -> None:
        self._arrow = arrow
        self._shape = shape

    def _find(self, source: Source, places: Places, mask: Mask, keep: bool) -> tuple[Numbers, Places]:
        if mask is None:
            return find_items(source, places, self._shape, keep)
        lanes = np.flatnonzero(mask)
        current = places[lanes]
        totals = np.zeros(len(places), np.int64)
        totals[lanes], items = find_items(source, current, self._shape, keep)
        places[lanes] = current
        return totals, items

    def _wrap(self, totals: Numbers, mask: Mask, items: pa.Array) -> pa.Array:
        offsets = np.zeros(len(totals) + 1, np.int32)
        np.cumsum(totals, out=offsets[1:])
        return pa.Array.from_buffers(
            self._arrow, len(totals), [make_bitmap(mask), pa.py_buffer(offsets)], children=[items]
        )

    def skip(self, source: Source, places: Places, mask: Mask) -> None:
        self._find(source, places, mask, keep=False)


def _read_in_parts(arrow: pa.DataType, items: Places, read: Callable[[Places], pa.Array]) -> pa.Array:
    """Read items in parts, so that little memory is needed besides the result."""
    if len(items) <= _ITEMS_AT_ONCE:
        return read(items) if len(items) else pa.nulls(0, arrow)
    starts = range(0, len(items), _ITEMS_AT_ONCE)
    return pa.concat_arrays([read(items[start : start + _ITEMS_AT_ONCE]) for start in starts])


class _ArrayReader(_ListReader):
    def __init__(self, node: Array) -> None:
        self._items = make_reader(node.items)
        self._item_type = to_arrow_type(node.items)
        step = partial(make_skip_step, node=node.items)
        shape = ItemShape(self._items.skip, step, node.items.min_size, _find_fixed_size(node.items))
        super().__init__(to_arrow_type(node), shape)

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        totals, items = self._find(source, places, mask, keep=True)
        values = _read_in_parts(self._item_type, items, lambda part: self._items.read(source, part, None))
        return self._wrap(totals, mask, values)


class _MapReader(_ListReader):
    def __init__(self, node: Map) -> None:
        map_type = to_arrow_type(node)
        self._keys = TextReader(pa.string())
        self._values = make_reader(node.values)
        self._entry_type = pa.struct([map_type.key_field, map_type.item_field])
        step = partial(make_entry_step, values=node.values)
        super().__init__(map_type, ItemShape(self._skip_entry, step, 1 + node.values.min_size, None))

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        totals, items = self._find(source, places, mask, keep=True)
        return self._wrap(
            totals, mask, _read_in_parts(self._entry_type, items, lambda part: self._read_entries(source, part))
        )

    def _read_entries(self, source: Source, places: Places) -> pa.Array:
        children = [self._keys.read(source, places, None), self._values.read(source, places, None)]
        return pa.Array.from_buffers(self._entry_type, len(places), [None], children=children)

    def _skip_entry(self, source: Source, places: Places, mask: Mask) -> None:
        self._keys.skip(source, places, mask)
        self._values.skip(source, places, mask)


class _NullableReader:
    """A union of null and one other type. Its branch number is mostly one byte, 0 or 2."""

    def __init__(self, node: Union) -> None:
        (member,) = node.members
        self._reader = make_reader(member)
        self._arrow = to_arrow_type(member)
        self._value_byte = 0 if is_null(node.branches[1]) else 2
        self._value_bytes = bytes([self._value_byte])
        self._hidden_cells = member.width - 1

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        rows = len(places)
        present, valid = self._read_presence(source, places, mask)
        source.budget.charge(self._hidden_cells * (rows - present))
        return self._reader.read(source, places, valid) if present else pa.nulls(rows, self._arrow)

    def skip(self, source: Source, places: Places, mask: Mask) -> None:
        present, valid = self._read_presence(source, places, mask)
        if present:
            self._reader.skip(source, places, valid)

    def _read_presence(self, source: Source, places: Places, mask: Mask) -> tuple[int, Mask]:
        """Read the branch numbers; return how many lanes have a value, and which ones (None for all)."""
        numbers = source.bytes.take(places)
        # The frequent case: every lane has a value. Comparing all bytes takes a fifth of the time of the code below.
        if mask is None and numbers.tobytes() == self._value_bytes * len(numbers):
            places += 1
            return len(numbers), None
        reached = numbers if mask is None else numbers[mask]
        bits = int(np.bitwise_or.reduce(reached))
        if bits & ~2:  # a longer number, or a branch that the union does not have
            branches = source.read_lengths(places, mask)
            if find_largest(branches) > 1:
                raise Misfit
            valid = branches == self._value_byte >> 1
        else:
            places += 1 if mask is None else mask
            if bits == self._value_byte == find_smallest(reached):
                return len(reached), mask
            valid = numbers == self._value_byte
        if mask is not None:
            valid &= mask
        return int(np.count_nonzero(valid)), valid


class _UnionReader:
    """Any other union: each member is read in the lanes whose branch number selects it."""

    def __init__(self, node: Union) -> None:
        self._node = node
        self._readers = [make_reader(branch) for branch in node.branches]
        self._arrow = to_arrow_type(node)
        self._wide = find_wider_type(node.members)

    def read(self, source: Source, places: Places, mask: Mask) -> pa.Array:
        source.budget.charge(self._node.width * len(places))
        chosen = self._read_branches(source, places, mask)
        valid = mask
        members: list[pa.Array] = []
        for reader, branch, lanes in zip(self._readers, self._node.branches, chosen, strict=True):
            if is_null(branch):
                valid = ~lanes if valid is None else valid & ~lanes
            elif lanes.any():
                members.append(reader.read(source, places, None if lanes.all() else lanes))
            else:
                members.append(pa.nulls(len(places), to_arrow_type(branch)))
        if self._wide is not None:
            return call("coalesce", *(cast(member, self._wide) for member in members))
        if len(members) == 1:
            return members[0]
        return pa.Array.from_buffers(self._arrow, len(places), [make_bitmap(valid)], children=members)

    def skip(self, source: Source, places: Places, mask: Mask) -> None:
        for reader, lanes in zip(self._readers, self._read_branches(source, places, mask), strict=True):
            if lanes.any():
                reader.skip(source, places, lanes)

    def _read_branches(self, source: Source, places: Places, mask: Mask) -> Sequence[np.ndarray]:
        """Return for each branch which lanes have it."""
        numbers = source.read_lengths(places, mask)
        if find_largest(numbers) >= len(self._readers):
            raise Misfit
        chosen = [numbers == branch for branch in range(len(self._readers))]
        return chosen if mask is None else [lanes & mask for lanes in chosen]
