"""FoldedLog: one record per key of a log, as one part in memory or several parts in spill files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.reader.record.batch import BufferedBatch

_BYTES_AT_ONCE = 1 << 17
_SHIFT = np.uint64(33)
_MIXING = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))


@dataclass(frozen=True, slots=True)
class HashPartition:
    """How records were split into parts: the hash, how many parts, and the numbers of the parts with records."""

    key_hash: KeyHash
    count: int
    numbers: Sequence[int]


class FoldedLog:
    """The folded records, numbered through all parts; a key or position is in one part only.

    ``positions``: for each part the int64 base row of each record; None if records match by key. ``starts``: the number
    of each part's first record.
    """

    def __init__(
        self,
        parts: Sequence[BufferedBatch],
        positions: Sequence[np.ndarray] | None,
        partition: HashPartition | None = None,
    ) -> None:
        self.parts = parts
        self.positions = positions
        self.partition = partition
        self.starts = np.cumsum([0, *(len(part) for part in parts)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def take(self, numbers: np.ndarray) -> BufferedBatch:
        """Return the records with these numbers, in the same order."""
        if len(self.parts) == 1 or not len(numbers):
            return self.parts[0].take(numbers)
        part_of = np.searchsorted(self.starts, numbers, side="right") - 1
        order = np.argsort(part_of, kind="stable")
        present, first = np.unique(part_of[order], return_index=True)
        pieces = [
            self.parts[part].take(numbers[where] - self.starts[part])
            for part, where in zip(present.tolist(), np.split(order, first[1:]), strict=True)
        ]
        back = np.empty(len(numbers), np.int64)
        back[order] = np.arange(len(numbers))
        return BufferedBatch.concat(pieces).take(back)

    def iterate_chosen(self, mask: np.ndarray, at_once: int, *, value: bool) -> Iterator[BufferedBatch]:
        """Yield the records where ``mask``, over all numbers, equals ``value``; at most ``at_once`` at a time."""
        for start, part in zip(self.starts.tolist(), self.parts, strict=False):
            wanted = np.flatnonzero(mask[start : start + len(part)] == value)
            for first in range(0, len(wanted), at_once):
                yield part.take(wanted[first : first + at_once])


class KeyHash:
    """A hash of record keys, to split keys into parts that fit into memory.

    It is drawn at random for each read, so that nobody can choose keys that all fall into one part. It sums the key's
    bytes, each multiplied by a random number for its place (multilinear hashing, whose upper bits are universal).
    """

    def __init__(self) -> None:
        seed = int.from_bytes(os.urandom(16), "little")  # the module secrets would bring OpenSSL
        self._random = np.random.default_rng(seed)
        self._weights = self._draw(64)

    def assign_keys(self, keys: pa.Array, parts: int) -> np.ndarray:
        """Return the part of each key of a string array, from 0 to ``parts`` - 1, as int64."""
        sums = [self._hash_keys(piece) for piece in _split_keys(keys)]
        return _assign_parts(np.concatenate(sums) if sums else np.empty(0, np.uint64), parts)

    def assign_numbers(self, numbers: np.ndarray, parts: int) -> np.ndarray:
        """Return the part of each integer, as int64."""
        return _assign_parts(numbers.astype(np.uint64) * self._weights[0], parts)

    def _hash_keys(self, keys: pa.Array) -> np.ndarray:
        offsets = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
        size = int(offsets[-1] - offsets[0])
        data = keys.buffers()[2]
        texts = np.frombuffer(data, np.uint8, size, int(offsets[0])) if size else np.empty(0, np.uint8)
        lengths = np.diff(offsets)
        starts = offsets[:-1] - offsets[0]
        longest = int(lengths.max(initial=0))
        if longest >= len(self._weights):
            self._weights = np.concatenate([self._weights, self._draw(longest + 1)])
        places = np.arange(size) - np.repeat(starts, lengths)
        # Bytes count from 1, so that trailing zeros change a sum. A difference of running sums is right even after an
        # overflow.
        total = np.zeros(size + 1, np.uint64)
        np.cumsum(self._weights[places] * (texts.astype(np.uint64) + np.uint64(1)), out=total[1:])
        return np.asarray(total[starts + lengths] - total[starts])

    def _draw(self, count: int) -> np.ndarray:
        # Odd numbers, because multiplying by them keeps different numbers different.
        return self._random.integers(1, 1 << 63, count, np.uint64) * np.uint64(2) + np.uint64(1)


def _assign_parts(sums: np.ndarray, parts: int) -> np.ndarray:
    # Sums of consecutive keys have equal distances, and some random numbers would put many of them into one part. So
    # sums are mixed with the steps of SplitMix64.
    for shift, factor in _MIXING:
        mixed = sums >> shift  # in place from here on, as sums may fill the memory budget
        mixed ^= sums
        mixed *= factor
        sums = mixed
    return ((sums >> _SHIFT) % np.uint64(parts)).astype(np.int64)


def _split_keys(keys: pa.Array) -> Iterator[pa.Array]:
    """Cut keys into pieces, as hashing takes some 30 bytes of memory per byte of keys."""
    if not len(keys):
        return
    rows = max(1, _BYTES_AT_ONCE * len(keys) // max(keys.nbytes, 1))
    for start in range(0, len(keys), rows):
        yield keys.slice(start, rows)
