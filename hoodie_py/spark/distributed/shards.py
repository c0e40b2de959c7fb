"""The first steps of a distributed write, on workers: divides rows and the table's keys among shards.

A shard has all records whose keys hash to it, and all of the table's entries of these keys. So the task of a shard can
do what one process does with all records: merge records with the same key, and find out whether the table has a key.
With a bucket index a shard has whole buckets.

By a sketch of the write's keys, one megabyte large, the tasks that list the table's keys drop most other keys. It is a
Bloom filter with one hash function; false positives only cost time.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext

from hoodie_py.arrow.arrays import from_numpy, join_chunks
from hoodie_py.arrow.hashes import compute_java_hashes
from hoodie_py.errors import HoodieError
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.spark.attempts import iterate_numbers, pack_error, run_step, unpack
from hoodie_py.spark.distributed.payloads import PayloadFormat
from hoodie_py.spark.mergers import load_mergers
from hoodie_py.spark.pin import Pin
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.timeline.loader import TableTimeline
from hoodie_py.writer.index.key_lookup import UNKNOWN_ROW, KeyLookup
from hoodie_py.writer.index.shards import find_shards, mix_hashes, spread_over_shards
from hoodie_py.writer.input.to_records import make_records
from hoodie_py.writer.keygen.generator import GeneratedKeys
from hoodie_py.writer.pipeline.assign import slice_records
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.settings import WriteSettings

if TYPE_CHECKING:
    from hoodie_py.reader.merge.merger import Merger

RECORDS, ENTRIES, SKETCH = 0, 1, 2
"""Kinds of payloads: records of the write, keys of the table, or a packed sketch of some records' keys.

``at`` is the order of payloads; for a sketch it is the number of its bytes.
"""

SHARDED = pa.schema(
    [
        ("shard", pa.int32()), ("kind", pa.int32()), ("at", pa.int64()), ("payload", pa.binary()),
        ("paths", pa.list_(pa.string())), ("failed", pa.binary()),
    ]
)  # fmt: skip
ENTRY = pa.schema([("key", pa.string()), ("slice", pa.int32()), ("row", pa.int64())])

_GATHERED_BYTES = 64 << 20  # rows divided at a time, so that a shard's payloads are worth their overhead
_ENTRY_ROWS = 1 << 20  # keys of a file that are divided at a time
_PLACES_OF_A_TASK = 1 << 40  # more than a task has payloads, so that places of different tasks differ
_BITS = 23  # of a hash: if a write has a million keys, an eighth of all other keys pass


@dataclass(frozen=True, slots=True, repr=False)
class WriteFacts:
    """Facts that all tasks of a distributed write need; its repr shows no storage options.

    ``packed_merger``: replaces the table's merge mode (empty for none). ``shards``: each shard's label. ``attempts``:
    how often Spark tries a task that fails.
    """

    pin: Pin
    timezone: str | None
    settings: WriteSettings
    operation: WriteOperation
    payload_format: PayloadFormat
    packed_merger: bytes
    shards: tuple[int, ...]
    attempts: int
    keys: GeneratedKeys = field(default_factory=GeneratedKeys.begin)  # for tables without key fields

    @property
    def is_bucket(self) -> bool:
        """Whether the table has a bucket index."""
        return self.settings.index.is_bucket

    @property
    def merger(self) -> Merger | None:
        """The merger, unpacked."""
        return next(iter(load_mergers(self.packed_merger)), None)


@dataclass(frozen=True, slots=True)
class OpenedFacts:
    """Facts on a worker, with the table's snapshot."""

    facts: WriteFacts
    snapshot: Snapshot


@lru_cache(maxsize=2)
def open_facts(packed: bytes) -> OpenedFacts:
    """Unpack facts; the cache does it once per worker."""
    facts: WriteFacts = unpack(packed)
    pin = facts.pin
    timeline = TableTimeline(pin.timeline, pin.files, pin.config)
    return OpenedFacts(facts, Snapshot(pin.files, pin.config, timeline, timezone=facts.timezone))


@dataclass(frozen=True, slots=True, repr=False)
class DivideRows:
    """Divides rows of the DataFrame among shards on a worker.

    ``packed``: the ``WriteFacts``. ``sketches``: whether to make sketches of the keys, too.
    """

    packed: bytes
    sketches: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        there = open_facts(self.packed)
        yield from run_step(self._divide_all(there, batches), there.facts.attempts, make_failure)

    def _divide_all(self, there: OpenedFacts, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        task, rows = 0 if context is None else context.partitionId(), 0
        at = task * _PLACES_OF_A_TASK
        for table in gather_batches(batches, _GATHERED_BYTES):
            for piece in self._divide(there, table, at, there.facts.keys.for_task(task, rows)):
                yield piece
                at += piece.num_rows
            rows += table.num_rows

    def _divide(
        self, there: OpenedFacts, table: pa.Table, at: int, generated: GeneratedKeys
    ) -> Iterator[pa.RecordBatch]:
        facts = there.facts
        records, _ = make_records(table, there.snapshot, facts.settings.options, facts.operation, generated)
        if self.sketches and len(records):
            sketch = KeySketch.from_keys(join_chunks(records.keys)).pack()
            row = {"shard": 0, "kind": SKETCH, "at": len(sketch), "payload": sketch}
            yield pa.RecordBatch.from_pylist([row], SHARDED)
        shards = find_shards(records, there.snapshot, facts.settings.index, len(facts.shards))
        order = np.argsort(shards, kind="stable")
        sorted_ = records.take(from_numpy(order))
        for shard, start, stop in iterate_runs(shards[order]):
            part = slice_records(sorted_, start, stop - start)
            known = part.partition_paths is not None and facts.payload_format.has_paths
            paths = part.partition_paths.unique().to_pylist() if known and part.partition_paths is not None else []
            payloads = [payload for _, payload in facts.payload_format.split(part)]
            rows = [
                {"shard": facts.shards[shard], "kind": RECORDS, "at": at + i, "payload": each, "paths": paths}
                for i, each in enumerate(payloads)
            ]
            at += len(rows)
            yield pa.RecordBatch.from_pylist(rows, SHARDED)


@dataclass(frozen=True, slots=True, repr=False)
class DivideKeys:
    """Divides the keys of file slices among shards on a worker: row i of the input stands for file slice i.

    ``packed``: the ``WriteFacts``. ``wanted``: a sketch of the write's keys; None to send all keys.
    """

    packed: bytes
    slices: Sequence[FileSlice]
    wanted: KeySketch | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        there = open_facts(self.packed)
        yield from run_step(self._read_keys(there, batches), there.facts.attempts, make_failure)

    def _read_keys(self, there: OpenedFacts, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        lookup = KeyLookup(there.snapshot, there.facts.settings, there.facts.merger)
        for number in iterate_numbers(batches):
            for keys, row in lookup.iterate_keys(self.slices[number]):
                for start in range(0, len(keys), _ENTRY_ROWS):
                    first = row if row == UNKNOWN_ROW else row + start
                    yield from self._iterate_entries(there.facts, keys.slice(start, _ENTRY_ROWS), number, first)

    def _iterate_entries(self, facts: WriteFacts, keys: pa.Array, number: int, row: int) -> Iterator[pa.RecordBatch]:
        """Yield keys of file slice ``number`` by shard; the first key is in row ``row`` of the base file."""
        at = np.arange(len(keys)) if self.wanted is None else self.wanted.find(keys)
        if not len(at):
            return
        keys = keys.take(from_numpy(at))
        shards = spread_over_shards(compute_java_hashes(keys), len(facts.shards))
        order = np.argsort(shards, kind="stable")
        rows = np.full(len(keys), UNKNOWN_ROW, np.int64) if row == UNKNOWN_ROW else row + at[order]
        slices = from_numpy(np.full(len(keys), number, np.int32))
        batch = pa.RecordBatch.from_arrays([keys.take(from_numpy(order)), slices, from_numpy(rows)], schema=ENTRY)
        found = [
            {"shard": facts.shards[shard], "kind": ENTRIES, "at": 0,
             "payload": batch.slice(start, stop - start).serialize().to_pybytes()}
            for shard, start, stop in iterate_runs(shards[order])
        ]  # fmt: skip
        yield pa.RecordBatch.from_pylist(found, SHARDED)


@dataclass(frozen=True, slots=True, repr=False)
class KeySketch:
    """A bit for the hash of each key.

    ``bits`` has 2^23 bits, 8 in a byte.
    """

    bits: bytes

    @classmethod
    def from_keys(cls, keys: pa.StringArray) -> KeySketch:
        """Return the sketch of some keys."""
        flags = np.zeros(1 << _BITS, np.bool_)
        flags[_find_bits(keys)] = True
        return cls(np.packbits(flags, bitorder="little").tobytes())

    @classmethod
    def unite(cls, sketches: Iterable[KeySketch]) -> KeySketch:
        """Return the sketch of all keys of several sketches."""
        bits = np.zeros((1 << _BITS) // 8, np.uint8)
        for sketch in sketches:
            bits |= np.frombuffer(sketch.bits, np.uint8)
        return cls(bits.tobytes())

    def pack(self) -> bytes:
        """Return the sketch as compressed bytes: a few thousand for few keys."""
        return zlib.compress(self.bits, 1)

    @classmethod
    def unpack(cls, packed: bytes) -> KeySketch:
        """Return a sketch from its packed bytes."""
        return cls(zlib.decompress(packed))

    def find(self, keys: pa.StringArray) -> npt.NDArray[np.int64]:
        """Return the positions of the keys that may be in the sketch: all that are in it, and a few others."""
        places = _find_bits(keys)
        found = np.frombuffer(self.bits, np.uint8)[places >> 3] >> (places & 7).astype(np.uint8) & np.uint8(1)
        return np.flatnonzero(found)


def _find_bits(keys: pa.StringArray) -> npt.NDArray[np.int64]:
    """Return the number of each key's bit."""
    return mix_hashes(compute_java_hashes(keys), _BITS).astype(np.int64)


def make_failure(error: HoodieError) -> pa.RecordBatch:
    """Return an error as a row of a step's result; the next step passes it on."""
    return pa.RecordBatch.from_pylist([{"shard": 0, "kind": RECORDS, "at": -1, "failed": pack_error(error)}], SHARDED)


def iterate_runs(numbers_: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Yield (number, start, stop) for each run of equal numbers."""
    if not len(numbers_):
        return
    cuts = (np.flatnonzero(np.diff(numbers_)) + 1).tolist()
    for start, stop in zip([0, *cuts], [*cuts, len(numbers_)], strict=True):
        yield int(numbers_[start]), start, stop


def gather_batches(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.Table]:
    """Join batches to tables of about ``limit`` bytes, as Spark's batches are small."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        size += batch.nbytes
        if size >= limit:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
