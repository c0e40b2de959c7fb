"""FoldedLog: one record per key of a log, in one part in memory or in several parts in spill files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hoodie_py.reader.buffer.key_hash import KeyHash
from hoodie_py.reader.record.batch import BufferedBatch


@dataclass(frozen=True, slots=True)
class HashPartition:
    """How records were split into parts.

    Attributes:
        key_hash: assigns keys to parts.
        count: how many parts there are.
        numbers: the numbers of the parts that have records.
    """

    key_hash: KeyHash
    count: int
    numbers: Sequence[int]


class FoldedLog:
    """The folded records, numbered through all parts.

    Args:
        parts: the records; a key or position is in one part only.
        positions: for each part the int64 base row of each record; None where records match by key.
        partition: how keys were split; None for one part.

    Attributes:
        parts, positions, partition: as given.
        starts: the number of each part's first record.
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
        """Yield the records where a mask over all numbers has this value, at most ``at_once`` at a time."""
        for start, part in zip(self.starts.tolist(), self.parts, strict=False):
            wanted = np.flatnonzero(mask[start : start + len(part)] == value)
            for first in range(0, len(wanted), at_once):
                yield part.take(wanted[first : first + at_once])
