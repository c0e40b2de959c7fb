"""Decides from footers which base files may hold some of the keys to look up (Hudi ``HoodieBloomIndex``).

A file is skipped if no key lies between its least and greatest key, in Java's order of strings, or if its bloom filter
has none of the keys in that range. A file whose footer lacks these facts is not skipped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from functools import cached_property
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, is_valid, take, to_numbers
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.parquet.bloom import BloomFilter
from hoodie_py.formats.parquet.key_range import (
    BLOOM_KEY,
    BLOOM_TYPE_KEY,
    MAX_KEY,
    MIN_KEY,
    make_comparable,
    make_one_comparable,
)

_SAMPLE = 64
_MIN, _MAX, _BLOOM, _BLOOM_TYPE = (each.encode() for each in (MIN_KEY, MAX_KEY, BLOOM_KEY, BLOOM_TYPE_KEY))
_ROWS_A_PROBE = 32  # reading 32 keys of a file takes as long as looking up one key in its bloom filter


class KeyFilter:
    """Finds the files that may hold some of the keys, which are distinct strings without nulls.

    Safe to use from several threads.
    """

    def __init__(self, keys: pa.Array) -> None:
        self._keys = keys
        self._lock = Lock()
        # A sample decides most files; all keys are sorted only where it finds none between a file's bounds.
        step = max(1, len(keys) // _SAMPLE)
        self._is_whole = step == 1  # the sample has all keys
        self._sample = make_comparable(keys.take(from_numpy(np.arange(0, len(keys), step))))
        self._sorted_sample: list[bytes] = sorted(self._sample.to_pylist())

    def __len__(self) -> int:
        return len(self._keys)

    def may_be_between(self, least: pa.Array, greatest: pa.Array) -> npt.NDArray[np.bool_]:
        """Return for each of many files whether a key lies between its least and greatest key.

        Bounds are strings; where one is null, the file may hold any key.
        """
        known = is_valid(least) & is_valid(greatest)
        at = from_numpy(np.flatnonzero(known))
        found = np.ones(len(least), bool)
        low, high = make_comparable(take(least, at)), make_comparable(take(greatest, at))
        sampled = _count_in_each(self._sample, low, high) > 0
        found[known] = sampled if sampled.all() else _count_in_each(self._comparable, low, high) > 0
        return found

    def may_hold(self, facts: Mapping[bytes, bytes], rows: int) -> bool:
        """Say whether a base file of ``rows`` rows may hold one of the keys, by its ``key_facts``; False is certain.

        Raises:
            CorruptFileError: a bloom filter that is damaged.
        """
        bounds = _read_bounds(facts)
        if bounds is None:
            return self._may_be_in_bloom(facts, rows, self._keys)
        sample = self._sorted_sample
        hits = bisect_right(sample, bounds[1]) - bisect_left(sample, bounds[0])
        if hits <= 0 and self._is_whole:
            return False
        share = max(hits, 0) / len(sample)
        if share and (_BLOOM not in facts or len(self._keys) * share * _ROWS_A_PROBE > rows):
            return True
        first, last = self._find_span(bounds)
        if first >= last:
            return False
        return self._may_be_in_bloom(facts, rows, self._keys.take(self._sorted[0].slice(first, last - first)))

    def _may_be_in_bloom(self, facts: Mapping[bytes, bytes], rows: int, keys: pa.Array) -> bool:
        """Ask the file's bloom filter, if its kind is known and probing all keys is faster than reading the file."""
        text, kind = facts.get(_BLOOM), facts.get(_BLOOM_TYPE)
        if text is None or len(keys) * _ROWS_A_PROBE > rows:
            return True
        try:
            bloom = BloomFilter.from_text(text.decode("latin-1"), None if kind is None else kind.decode("latin-1"))
        except UnsupportedFeatureError:
            return True
        return bool(bloom.may_contain(keys).any())

    @cached_property
    def _sorted(self) -> tuple[pa.Array, pa.Array]:
        order = pc.sort_indices(self._comparable)
        return order, self._comparable.take(order)

    @cached_property
    def _comparable(self) -> pa.Array:
        return make_comparable(self._keys)

    def _find_span(self, bounds: tuple[bytes, bytes]) -> tuple[int, int]:
        """Return where the keys between two bounds begin and end in sorted order."""
        with self._lock:  # one thread sorts, the others wait for its result
            ordered = self._sorted[1]
        return _bisect(ordered, bounds[0], after=False), _bisect(ordered, bounds[1], after=True)


def _read_bounds(facts: Mapping[bytes, bytes]) -> tuple[bytes, bytes] | None:
    """Read a file's least and greatest key, as bytes that compare as Java compares the strings."""
    least, greatest = facts.get(_MIN), facts.get(_MAX)
    if least is None or greatest is None:
        return None
    try:
        least.decode(), greatest.decode()
    except UnicodeDecodeError:  # a range that cannot be read leaves the file in
        return None
    return make_one_comparable(least), make_one_comparable(greatest)


def _count_in_each(keys: pa.Array, low: pa.Array, high: pa.Array) -> npt.NDArray[np.int64]:
    """Count the keys between two bounds, both included, for each pair of bounds; all compare as bytes."""
    ranks = to_numbers(pc.rank(pa.chunked_array([keys, low, high]), tiebreaker="dense"))
    ordered = np.sort(ranks[: len(keys)])
    first = np.searchsorted(ordered, ranks[len(keys) : len(keys) + len(low)], side="left")
    return np.searchsorted(ordered, ranks[len(keys) + len(low) :], side="right") - first


def _bisect(ordered: pa.Array, bound: bytes, *, after: bool) -> int:
    """Count the sorted keys before a bound; ``after`` counts keys equal to it, too."""
    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) // 2
        key = ordered[middle].as_py()
        if key < bound or (after and key == bound):
            low = middle + 1
        else:
            high = middle
    return low
