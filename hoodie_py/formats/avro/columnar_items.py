"""Find the items of arrays and maps: the blocks of many records are walked together.

Items of varying size are found in rounds: round k steps over item k of every lane that has one. Lanes are sorted by
their number of items, so that the lanes of a round come first. Once few lanes are left, the steps of ``binary`` walk
them one by one, which costs less than NumPy's rounds.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hoodie_py.formats.avro.binary import Data, Step
from hoodie_py.formats.avro.columnar_cursor import Mask, Misfit, Places, Source

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
