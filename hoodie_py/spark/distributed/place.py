"""The middle step of a distributed write, on workers: merges a shard's records, looks up their keys, and places them.

It runs the same code as a write in one process, except that the table's keys come from the shuffle and not from files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import to_numbers
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.spark.attempts import pack_error, run_step
from hoodie_py.spark.distributed.payloads import LabelledPayloads, group_by_label
from hoodie_py.spark.distributed.shards import ENTRIES, ENTRY, RECORDS, OpenedFacts, open_facts
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.index.key_lookup import KeyLookup, KeyLookupRequest, KeyLookupResult, deduplicate
from hoodie_py.writer.pipeline.assign import AssignedRecords, FileAssignment
from hoodie_py.writer.pipeline.operations import assign_records
from hoodie_py.writer.precombine.combine import combine, needs_combining

if TYPE_CHECKING:
    from hoodie_py.table.view.file_system_view import FileSystemView

PLACED = pa.schema(
    [
        ("path", pa.string()), ("file_id", pa.string()), ("piece", pa.int32()), ("at", pa.int64()),
        ("rows", pa.int64()), ("inserts", pa.int64()), ("updates", pa.int64()), ("deletes", pa.int64()),
        ("in_base", pa.bool_()), ("bytes", pa.int64()), ("payload", pa.binary()), ("failed", pa.binary()),
    ]
)  # fmt: skip
NO_PIECE = -1
_PLACES_OF_A_SHARD = 1 << 32  # more than a shard has records, so that places of different shards differ


@dataclass(frozen=True, slots=True, repr=False)
class PlaceRecords:
    """Places the records of shards on a worker.

    ``packed``: the ``WriteFacts``. Entries refer to ``slices`` by number.
    """

    packed: bytes
    slices: Sequence[FileSlice]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        there = open_facts(self.packed)
        yield from run_step(
            self._place_all(there, batches), there.facts.attempts, lambda error: _make_failure(pack_error(error))
        )

    def _place_all(self, there: OpenedFacts, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        failures: list[bytes] = []
        for shard in group_by_label(_iterate_successes(batches, failures)):
            if not failures:
                yield from self._place(there, shard)
        yield from map(_make_failure, failures)

    def _place(self, there: OpenedFacts, shard: LabelledPayloads) -> Iterator[pa.RecordBatch]:
        payloads = shard.payloads.get(RECORDS)
        if not payloads:
            return
        facts = there.facts
        records, _ = facts.payload_format.read(payloads)
        snapshot, merger = _set_slices(there.snapshot, self.slices), facts.merger
        if needs_combining(facts.operation, facts.settings.options):
            records = combine(records, snapshot, facts.settings, merger)
        entries = pa.Table.from_batches(
            [pa.ipc.read_record_batch(each, ENTRY) for each in shard.payloads.get(ENTRIES, [])], ENTRY
        )
        lookup = _KnownKeys(there, snapshot, self.slices, entries)
        plan = replace(facts.settings.plan, max_file_size=sys.maxsize)  # new files are cut once all shards are known
        settings = replace(facts.settings, plan=plan, small_file_bytes=0)
        routed = assign_records(records, snapshot, facts.operation, settings, merger, lookup)
        payload_format = facts.payload_format.as_located()
        at = facts.shards.index(shard.label) * _PLACES_OF_A_SHARD
        for placement in routed.assignments:
            # A bucket has its own file id. Other new records get their file once the driver knows all shards.
            is_new = placement.file_slice is None and not facts.is_bucket
            rows = list(_iterate_rows(payload_format, routed, placement))
            for row in rows:
                row |= {"file_id": None, "piece": shard.label} if is_new else {}
                row["at"] = at
                at += 1
            yield pa.RecordBatch.from_pylist(rows, PLACED)


def _make_failure(packed: bytes) -> pa.RecordBatch:
    """Return a packed error as a row of the step's result."""
    return pa.RecordBatch.from_pylist([{"failed": packed}], PLACED)


def _iterate_successes(batches: Iterator[pa.RecordBatch], failures: list[bytes]) -> Iterator[pa.RecordBatch]:
    """Yield the rows with payloads, and collect the errors of earlier steps."""
    for batch in batches:
        failed = batch.column("failed")
        failures.extend(failed.drop_null().to_pylist())
        yield batch if failed.null_count == len(failed) else batch.filter(failed.is_null())


def _iterate_rows(payload_format: Any, routed: AssignedRecords, placement: FileAssignment) -> Iterator[dict[str, Any]]:
    """Yield a placement's records as rows of the step's result."""
    counts = {"inserts": placement.inserts, "updates": placement.updates, "deletes": placement.deletes}
    for count, payload in payload_format.split(routed.get_records(placement), routed.get_positions(placement)):
        yield {
            "path": placement.partition_path,
            "file_id": placement.file_id,
            "piece": NO_PIECE,
            "rows": count,
            **counts,
            "in_base": placement.positions_of is not None,
            "bytes": len(payload),
            "payload": payload,
        }
        # Only the first row has the counts, so that sums over rows are right.
        counts = dict.fromkeys(counts, 0)


class _KnownKeys(KeyLookup):
    """Finds keys among the table's keys that came with the shard."""

    def __init__(self, there: OpenedFacts, snapshot: Snapshot, slices: Sequence[FileSlice], entries: pa.Table) -> None:
        super().__init__(snapshot, there.facts.settings, there.facts.merger)
        self._slices = {(each.partition_path, each.file_id): number for number, each in enumerate(slices)}
        self._keys = entries.column("key")
        self._of = to_numbers(entries.column("slice").combine_chunks()) if len(entries) else np.empty(0, np.int32)
        self._rows_ = to_numbers(entries.column("row").combine_chunks()) if len(entries) else np.empty(0, np.int64)

    @property
    def keys_at_once(self) -> int:
        return sys.maxsize  # all keys are in memory

    def find(self, wanted: Sequence[KeyLookupRequest]) -> KeyLookupResult:
        """Find keys; see ``KeyLookup.find``."""
        hits: list[KeyLookupResult] = []
        for group, each in enumerate(wanted):
            places = np.full(len(self._slices) + 1, -1, np.int64)
            for number, file_slice in enumerate(each.slices):
                places[self._slices[file_slice.partition_path, file_slice.file_id]] = number
            index = pc.index_in(self._keys, value_set=each.keys)
            at = np.concatenate([np.empty(0, np.int32), *(to_numbers(chunk, -1) for chunk in index.chunks)])
            hit = np.flatnonzero((at >= 0) & (places[self._of] >= 0))
            hits.append(
                KeyLookupResult(
                    np.full(len(hit), group), at[hit].astype(np.int64), places[self._of[hit]], self._rows_[hit]
                )
            )
        return deduplicate(hits)


class _KnownSlices:
    """A file system view with the driver's file slices, which lists no files."""

    def __init__(self, slices: Sequence[FileSlice], view: Any) -> None:
        self._slices = slices
        self._view = view

    def list_slices(self, query_instant: str | None = None, partitions: Any = None) -> list[FileSlice]:
        if query_instant is not None:
            return list(self._view.list_slices(query_instant, partitions))
        wanted = None if partitions is None else set(partitions)
        return [each for each in self._slices if wanted is None or each.partition_path in wanted]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)


def _set_slices(snapshot: Snapshot, slices: Sequence[FileSlice]) -> Snapshot:
    """Return a copy of a snapshot that has the given file slices."""
    view = cast("FileSystemView", _KnownSlices(slices, snapshot.view))
    return snapshot.evolve(view=view, schema=snapshot.schema)
