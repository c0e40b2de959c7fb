"""Payloads: records as Arrow batches in a binary column, for the shuffles of a distributed write.

So types do not change, Spark moves a few large values instead of many small ones, and its shuffle, spill and retries
work as for all other rows. A payload has no schema, as both sides know it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import to_numbers
from hoodie_py.writer.records import RecordFormat, WriteRecords

PAYLOAD_BYTES = 16 << 20  # about the most bytes of a payload


class PayloadFormat(RecordFormat):
    """The format of payloads."""

    __slots__ = ()

    def split(self, records: WriteRecords, positions: np.ndarray | None = None) -> Iterator[tuple[int, bytes]]:
        """Yield records as payloads of a bounded size, each with its number of records.

        Later versions of a key come later. ``positions``: row numbers in base files, -1 for unknown.

        Raises:
            HoodieError: the records do not have this format.
        """
        batch = self.to_batch(records, positions)
        if not batch.num_rows:
            return
        step = max(1, batch.num_rows * PAYLOAD_BYTES // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, step):
            piece = batch.slice(start, step)
            yield piece.num_rows, piece.serialize().to_pybytes()

    def read(self, payloads: Sequence[pa.Buffer]) -> tuple[WriteRecords, np.ndarray]:
        """Return the records of payloads in order, and their row numbers in base files (-1 for unknown)."""
        return self.from_batches([pa.ipc.read_record_batch(each, self.schema) for each in payloads])


@dataclass(frozen=True, slots=True)
class LabelledPayloads:
    """The payloads of one label, in order."""

    label: int
    payloads: dict[int, list[pa.Buffer]]


def group_by_label(batches: Iterator[pa.RecordBatch]) -> Iterator[LabelledPayloads]:
    """Yield the payloads of each label. Rows are (label, kind, order, payload), sorted by the first three."""
    current: LabelledPayloads | None = None
    for batch in batches:
        labels, kinds = (to_numbers(batch.column(at)).tolist() for at in (0, 1))
        values = batch.column(3)
        for at, (label, kind) in enumerate(zip(labels, kinds, strict=True)):
            if current is None or current.label != label:
                if current is not None:
                    yield current
                current = LabelledPayloads(label, {})
            current.payloads.setdefault(kind, []).append(values[at].as_buffer())
    if current is not None:
        yield current


def choose_labels(count: int) -> list[int]:
    """Return ``count`` integers that Spark's hash partitioning puts into ``count`` different partitions.

    Spark chooses a partition by the Murmur3 hash (32 bits, seed 42) of the column. With another hash the result would
    still be right, but some tasks would have more work than others.
    """
    found = np.full(count, -1, np.int64)
    start = 0
    while (found < 0).any():
        tried = np.arange(start, start + 4 * count + 16, dtype=np.int64)
        places = _hash_murmur3(tried.astype(np.uint32)).astype(np.int32).astype(np.int64) % count
        new, first = np.unique(places, return_index=True)
        empty = found[new] < 0
        found[new[empty]] = tried[first[empty]]
        start += len(tried)
    return [int(each) for each in found]


def _hash_murmur3(values: np.ndarray) -> np.ndarray:
    """Hash integers as Spark hashes a column of type INT."""
    mixed = _rotate_left(values * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    hashes = _rotate_left(np.uint32(42) ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    hashes ^= np.uint32(4)
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return np.asarray(hashes ^ (hashes >> np.uint32(16)))


def _rotate_left(values: np.ndarray, by: int) -> np.ndarray:
    return np.asarray((values << np.uint32(by)) | (values >> np.uint32(32 - by)))
