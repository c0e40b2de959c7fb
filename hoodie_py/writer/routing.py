"""Where records go: one new file for each file group they touch, new file groups for new keys (Hudi
``UpsertPartitioner``).

* A known key goes where it is: into a log file on MERGE_ON_READ tables, into a rewritten base file on COPY_ON_WRITE.
* A new key goes into a new base file - never into a log file, where indexes would not find it - unless its index gave
  it a group that is there (buckets).
* A delete of a new key goes nowhere.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.formats.arrays import booleans, from_numpy, numbers
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.bucket_index import bucket_of_file_id, new_bucket_file_id
from hoodie_py.writer.compaction_strategy import GroupKey
from hoodie_py.writer.meta_columns import whole
from hoodie_py.writer.small_files import fill_small_files
from hoodie_py.writer.write_conflicts import iterate_pending_clusterings
from hoodie_py.writer.write_records import TaggedRecords, WriteRecords

_FILE_BYTES_A_BYTE = 0.4
"""Bytes in a base file for a byte in memory, about."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The records that go into one new file.

    Attributes:
        partition_path, file_id: the file group.
        file_slice: what is there; None for a new group.
        start, stop: which of the routed records.
        inserts, updates, deletes: how many of them have new keys, have known ones, and delete known ones.
        positions_of: instant of the base file that has all their keys; None where not all are in one.
    """

    partition_path: str
    file_id: str
    file_slice: FileSlice | None
    start: int
    stop: int
    inserts: int
    updates: int
    deletes: int
    positions_of: str | None = None

    @property
    def group(self) -> GroupKey:
        """Partition path and file id."""
        return self.partition_path, self.file_id

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Routed:
    """Records in the order of the files they go into.

    Attributes:
        records: all that go somewhere.
        positions: row number of each in its base file, -1 where it is not known.
        placements: which go where, in the order of ``records``.
    """

    records: WriteRecords
    positions: np.ndarray
    placements: tuple[Placement, ...]

    def of(self, placement: Placement) -> WriteRecords:
        """Return the records of one placement, without a copy."""
        return sliced(self.records, placement.start, len(placement))

    def positions_of(self, placement: Placement) -> np.ndarray:
        """Return their row numbers."""
        return self.positions[placement.start : placement.stop]


def route(tagged: TaggedRecords, snapshot: Snapshot, file_bytes: int, small_bytes: int = 0) -> Routed:
    """Decide where records go.

    Args:
        tagged: the records, with partition paths; those of one key stay in their order.
        snapshot: the table that they were tagged by.
        file_bytes: about how large a new base file gets.
        small_bytes: base files of COPY_ON_WRITE tables below this size are filled up with new records; 0 for none.
    """
    paths = [path for path in _partition_paths(tagged.records).unique().to_pylist() if path is not None]
    slices = snapshot.view.slices(None, paths) if paths else []
    if not snapshot.config.is_merge_on_read:
        held = {key for _, groups in iterate_pending_clusterings(snapshot) for key in groups}
        tagged = fill_small_files(
            tagged,
            slices,
            row_bytes=row_bytes(tagged.records),
            file_bytes=file_bytes,
            small_bytes=small_bytes,
            held=held,
        )
    return _route(tagged, {(each.partition_path, each.file_id): each for each in slices}, file_bytes)


def route_new(records: WriteRecords, file_bytes: int) -> Routed:
    """Give all records that do not delete new file groups, in their order within each partition.

    Args:
        records: with partition paths.
        file_bytes: about how large a new base file gets.
    """
    none = pa.nulls(len(records), pa.string())
    return _route(TaggedRecords(records, none, none, np.full(len(records), -1, np.int64)), {}, file_bytes)


def route_to_new_buckets(tagged: TaggedRecords, file_bytes: int) -> Routed:
    """Give records new file groups of the buckets that they are tagged with.

    Args:
        tagged: by a bucket index.
        file_bytes: as for ``route_new``.
    """
    encoded = tagged.file_ids.dictionary_encode()
    buckets = [bucket_of_file_id(each) for each in encoded.dictionary.to_pylist()]
    fresh = pa.array([None if each is None else new_bucket_file_id(each) for each in buckets], pa.string())
    none = pa.nulls(len(tagged), pa.string())
    return _route(TaggedRecords(tagged.records, fresh.take(encoded.indices), none, tagged.positions), {}, file_bytes)


def sliced(records: WriteRecords, start: int, count: int) -> WriteRecords:
    """Return records that lie side by side, without a copy."""
    return WriteRecords(
        rows=records.rows.slice(start, count) if records.rows.num_columns else records.rows,
        keys=records.keys.slice(start, count),
        partition_paths=None if records.partition_paths is None else records.partition_paths.slice(start, count),
        deletes=None if records.deletes is None else records.deletes.slice(start, count),
        ordering=tuple(each.slice(start, count) for each in records.ordering),
    )


def new_file_id() -> str:
    """Return an id for a new file group, of Java's form."""
    return f"{uuid.uuid4()}-0"


@dataclass(frozen=True, slots=True)
class _Run:
    """Records of one partition and file group, or of one partition without group, side by side."""

    key: tuple[str, str | None]
    start: int
    stop: int


def _route(tagged: TaggedRecords, slices: Mapping[GroupKey, FileSlice], file_bytes: int) -> Routed:
    records = tagged.records
    names, codes = _places(tagged)
    deletes = _deletes(records)
    there = np.array([name in slices for name in names], bool)
    order = np.flatnonzero(there[codes] | ~deletes) if len(codes) else np.empty(0, np.int64)
    order = order[np.argsort(codes[order], kind="stable")]
    chosen = records if _is_all(order, len(records)) else records.take(from_numpy(order))
    routed = Routed(chosen, tagged.positions[order], ())
    base_instants = tagged.base_instants.take(from_numpy(order))
    record_bytes = row_bytes(chosen)
    placements: list[Placement] = []
    for run in _runs(names, codes[order]):
        path, file_id = run.key
        if file_id is None:
            placements += _new_groups(path, run, max(1, int(file_bytes / record_bytes)))
        else:
            dead = int(deletes[order[run.start : run.stop]].sum())
            base = base_instants.slice(run.start, run.stop - run.start)
            placements.append(_placement(path, file_id, run, slices.get((path, file_id)), dead, base))
    return replace(routed, placements=tuple(placements))


def row_bytes(records: WriteRecords) -> float:
    """About how much a record takes in a base file."""
    return max(1.0, float(records.rows.nbytes) * _FILE_BYTES_A_BYTE / max(1, len(records)))


def _places(tagged: TaggedRecords) -> tuple[list[tuple[str, str | None]], np.ndarray]:
    """Return the distinct partition paths with file ids, sorted, and the number of its place for each record."""
    paths = _partition_paths(tagged.records).combine_chunks().dictionary_encode()
    groups = tagged.file_ids.dictionary_encode()
    both = numbers(_codes(paths)) * (len(groups.dictionary) + 1) + numbers(_codes(groups), -1) + 1
    found, codes = np.unique(both, return_inverse=True)
    texts, ids = paths.dictionary.to_pylist(), [None, *groups.dictionary.to_pylist()]
    return [(texts[each // len(ids)], ids[each % len(ids)]) for each in found.tolist()], codes.reshape(-1)


def _codes(encoded: pa.DictionaryArray) -> pa.Array:
    return encoded.indices.cast(pa.int64())


def _partition_paths(records: WriteRecords) -> pa.ChunkedArray:
    if records.partition_paths is None or records.partition_paths.null_count:
        raise ValueError("records without partition paths cannot be routed")
    return records.partition_paths


def _deletes(records: WriteRecords) -> np.ndarray:
    return np.zeros(len(records), bool) if records.deletes is None else booleans(whole(records.deletes))


def _is_all(order: np.ndarray, count: int) -> bool:
    return len(order) == count and bool((order == np.arange(count)).all())


def _runs(names: Sequence[tuple[str, str | None]], codes: np.ndarray) -> Iterator[_Run]:
    bounds = np.flatnonzero(np.diff(codes)) + 1
    starts = [0, *bounds.tolist()] if len(codes) else []
    for start, stop in zip(starts, [*bounds.tolist(), len(codes)], strict=False):
        yield _Run(names[int(codes[start])], start, stop)


def _new_groups(path: str, run: _Run, most: int) -> Iterator[Placement]:
    """Cut new records into files of about the same size."""
    count = run.stop - run.start
    files = -(-count // most)
    for number in range(files):
        start, stop = run.start + count * number // files, run.start + count * (number + 1) // files
        yield Placement(path, new_file_id(), None, start, stop, stop - start, 0, 0)


def _placement(
    path: str, file_id: str, run: _Run, file_slice: FileSlice | None, deletes: int, base_instants: pa.Array
) -> Placement:
    inserts = base_instants.null_count
    updates = max(0, len(base_instants) - inserts - deletes)
    base = None if file_slice is None or file_slice.base_file is None else file_slice.base_file.instant
    in_base = base is not None and inserts == 0 and pc.all(pc.equal(base_instants, base)).as_py()
    return Placement(
        path, file_id, file_slice, run.start, run.stop, inserts, updates, deletes, base if in_base else None
    )
