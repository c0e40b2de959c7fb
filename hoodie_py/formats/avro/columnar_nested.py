"""Read records, arrays, maps and unions of many records at once, and choose the reader of a type.

As in ``columnar_values``, a lane without a value becomes null at every level below it.

The blocks of arrays and maps of many records are walked together. Items of varying size are found in rounds: round k
steps over item k of every lane that has one. Lanes are sorted by their number of items, so that the lanes of a round
come first. Once few lanes are left, the steps of ``binary`` walk them one by one, which costs less than NumPy's rounds.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import call, cast, make_bitmap
from hoodie_py.formats.avro.arrow_types import find_wider_type, to_arrow_type
from hoodie_py.formats.avro.binary import Data, Step, make_entry_step, make_skip_step
from hoodie_py.formats.avro.columnar_cursor import Mask, Misfit, Places, Source, find_largest, find_smallest
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

_FEW_LANES = 48

Skip = Callable[[Source, Places, Mask], None]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ItemShape:
    """How to step over items."""

    skip: Skip  # steps over one item in many lanes
    step: Callable[[Data], Step]  # returns, for some data, the step over a single item
    min_size: int  # in bytes
    size: int | None  # in bytes; None if it varies


class TooManyItems(Misfit):
    """There are more items than ``source.most_items``; the caller may try fewer records at a time."""


@dataclass(frozen=True, slots=True)
class _FoundItems:
    """Items of some lanes.

    Without ``counts``: one item per lane, with its number in the lane. With ``counts``: that many items per lane,
    ``size`` bytes apart; ``numbers`` and ``places`` describe the first one.
    """

    lanes: npt.NDArray[np.intp]
    numbers: Numbers
    places: Places
    counts: Numbers | None = None
    size: int = 0

    def put(self, starts: Numbers, items: Places) -> None:
        """Write the places into ``items``; ``starts`` is the index there of each lane's first item."""
        spots = starts[self.lanes] + self.numbers
        if self.counts is None:
            items[spots] = self.places
            return
        within = np.arange(int(self.counts.sum())) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        items[np.repeat(spots, self.counts) + within] = np.repeat(self.places, self.counts) + within * self.size


def find_items(source: Source, places: Places, shape: ItemShape, keep: bool) -> tuple[Numbers, Places]:
    """Walk the blocks of the array or map at each place, and advance past them.

    Return the number of items of each lane, and, if ``keep``, their places: lane by lane, in order.

    Raises:
        TooManyItems: there are more than ``source.most_items``.
        Misfit: the data is damaged.
    """
    totals = np.zeros(len(places), np.int64)
    found: list[_FoundItems] = []
    lanes = np.arange(len(places))
    current = places.copy()
    items = 0
    while True:
        counts = source.counts(current)
        if not counts.any():
            places[lanes] = current
            break
        if not counts.all():
            ended = counts == 0
            places[lanes[ended]] = current[ended]
            going = ~ended
            lanes, current, counts = lanes[going], current[going], counts[going]
        total = int(counts.sum())
        # Bounds the work: no block has more items than the data has bytes for.
        if total * shape.min_size > source.content:
            raise Misfit
        items += total
        if keep and items > source.most_items:
            raise TooManyItems
        block = _BlockWalk(source, shape, lanes, totals[lanes], found if keep else None)
        lanes, current = block.walk(current, counts)
        totals[block.lanes] += block.counts
    return totals, _sort_by_lane(totals, found)


class _BlockWalk:
    """One block of items in each of some lanes, walked once."""

    def __init__(
        self,
        source: Source,
        shape: ItemShape,
        lanes: npt.NDArray[np.intp],
        numbers: Numbers,
        found: list[_FoundItems] | None,
    ) -> None:
        self._source = source
        self._shape = shape
        self._found = found
        self._numbers = numbers
        self.lanes = lanes
        self.counts = numbers

    def walk(self, places: Places, counts: Numbers) -> tuple[npt.NDArray[np.intp], Places]:
        """Find the items; return the lanes, perhaps in another order, and the places after their blocks."""
        self.counts = counts
        if self._shape.size is not None:
            return self.lanes, self._walk_fixed_sizes(places, self._shape.size)
        if len(places) < _FEW_LANES:
            self._walk_one_by_one(places, 0, len(places))
            return self.lanes, places
        if int(counts.min()) != int(counts.max()):
            order = _sort_descending(counts)
            self.lanes, self._numbers, self.counts = self.lanes[order], self._numbers[order], counts[order]
            places = places[order]
        return self.lanes, self._walk_in_rounds(places)

    def _walk_fixed_sizes(self, places: Places, size: int) -> Places:
        if self._found is not None:
            self._found.append(_FoundItems(self.lanes, self._numbers, places, self.counts, size))
        return places + self.counts * size

    def _walk_in_rounds(self, places: Places) -> Places:
        most = int(self.counts[0])
        active = len(places) - np.cumsum(np.bincount(self.counts, minlength=most))
        for number in range(most):
            lanes = int(active[number])
            if lanes < _FEW_LANES:
                self._walk_one_by_one(places, number, lanes)
                break
            going = places[:lanes]
            if self._found is not None:
                self._found.append(_FoundItems(self.lanes[:lanes], self._numbers[:lanes] + number, going.copy()))
            self._shape.skip(self._source, going, None)
        return places

    def _walk_one_by_one(self, places: Places, number: int, lanes: int) -> None:
        step = self._shape.step(self._source.raw)
        end = self._source.size
        left = self.counts[:lanes] - number
        items = array("q")
        for lane, (pos, count) in enumerate(zip(places[:lanes].tolist(), left.tolist(), strict=True)):
            for _ in range(count):
                items.append(pos)
                pos = step(pos, end)
            places[lane] = pos
        if self._found is not None and items:
            firsts = np.cumsum(left) - left
            numbers = np.arange(len(items)) - np.repeat(firsts - number - self._numbers[:lanes], left)
            self._found.append(_FoundItems(np.repeat(self.lanes[:lanes], left), numbers, np.asarray(items)))


def _sort_descending(counts: Numbers) -> npt.NDArray[np.intp]:
    """Sort lanes by falling number of items; NumPy's radix sort of single bytes is several times as fast."""
    if int(counts.max()) < 0x100:
        return np.argsort(np.uint8(0xFF) - counts.astype(np.uint8), kind="stable")
    return np.argsort(-counts, kind="stable")


def _sort_by_lane(totals: Numbers, found: list[_FoundItems]) -> Places:
    starts = np.cumsum(totals) - totals
    items = np.empty(int(totals.sum()) if found else 0, np.int64)
    for part in found:
        part.put(starts, items)
    return items


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
