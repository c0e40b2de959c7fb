"""Payloads: records as Arrow batches in a binary column, for the shuffles of a distributed write.

So types do not change, Spark moves a few large values instead of many small ones, and its shuffle, spill and retries
work as for all other rows. A payload has no schema, as both sides know it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, join_chunks, to_booleans, to_numbers
from hoodie_py.errors import HoodieError
from hoodie_py.writer.records import WriteRecords

PAYLOAD_BYTES = 16 << 20  # about the most bytes of a payload
_KEY, _PATH, _DELETE, _POSITION = "key", "path", "delete", "position"


@dataclass(frozen=True, slots=True)
class PayloadFormat:
    """The format of payloads.

    ``schema``: data columns (``rows``), ``orders`` ordering fields, then the facts of a record. ``has_paths``: whether
    records have their partition path.
    """

    schema: pa.Schema
    rows: pa.Schema
    orders: int
    has_paths: bool

    @classmethod
    def from_records(cls, records: WriteRecords) -> PayloadFormat:
        """Return the payload format for records like these."""
        fields = [pa.field(f"row.{at}", field.type) for at, field in enumerate(records.rows.schema)]
        fields += [pa.field(f"order.{at}", column.type) for at, column in enumerate(records.ordering)]
        fields += [(_KEY, pa.string()), (_PATH, pa.string()), (_DELETE, pa.bool_()), (_POSITION, pa.int64())]
        rows = records.rows.schema.remove_metadata()
        return cls(pa.schema(fields), rows, len(records.ordering), records.partition_paths is not None)

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

    def to_batch(self, records: WriteRecords, positions: np.ndarray | None = None) -> pa.RecordBatch:
        """Return records as one batch; arguments and errors as for ``split``."""
        if records.rows.schema.remove_metadata() != self.rows or len(records.ordering) != self.orders:
            raise HoodieError(
                "Rows of one DataFrame have different columns in different tasks.",
                hint="The table may have changed while they were read: try again.",
            )
        count = len(records)
        paths = (
            pa.nulls(count, pa.string()) if records.partition_paths is None else join_chunks(records.partition_paths)
        )
        if self.has_paths and paths.null_count:
            raise HoodieError("Some rows have a partition path, others do not.")
        deletes = from_numpy(np.zeros(count, bool)) if records.deletes is None else join_chunks(records.deletes)
        places = from_numpy(np.full(count, -1, np.int64) if positions is None else positions.astype(np.int64))
        arrays = [join_chunks(column) for column in (*records.rows.columns, *records.ordering)]
        arrays += [join_chunks(records.keys), paths, deletes, places]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def read(self, payloads: Sequence[pa.Buffer]) -> tuple[WriteRecords, np.ndarray]:
        """Return the records of payloads in order, and their row numbers in base files (-1 for unknown)."""
        batches = [pa.ipc.read_record_batch(each, self.schema) for each in payloads]
        table = pa.Table.from_batches(batches, self.schema)
        width = len(self.rows)
        deletes = table.column(_DELETE)
        marked = to_booleans(join_chunks(deletes)).any()
        paths = table.column(_PATH)
        records = WriteRecords(
            rows=pa.table(table.columns[:width], schema=self.rows) if width else pa.table({}),
            keys=table.column(_KEY),
            partition_paths=None if paths.null_count and not self.has_paths else paths,
            deletes=deletes if marked else None,
            ordering=tuple(table.columns[width : width + self.orders]),
        )
        return records, to_numbers(join_chunks(table.column(_POSITION)))

    def as_located(self) -> PayloadFormat:
        """Return the format for records that have their partition path."""
        return PayloadFormat(self.schema, self.rows, self.orders, has_paths=True)


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
