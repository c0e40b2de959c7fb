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

from hoodie_py.formats.arrays import from_numpy, join_chunks, to_booleans, to_numbers
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.bucket_index import make_bucket_file_id, parse_bucket
from hoodie_py.writer.compaction_strategy import GroupKey
from hoodie_py.writer.small_files import fill_small_files
from hoodie_py.writer.write_conflicts import iterate_pending_clusterings
from hoodie_py.writer.write_records import TaggedRecords, WriteRecords

_FILE_BYTES_A_BYTE = 0.4
"""Bytes in a base file for a byte in memory, about."""


@dataclass(frozen=True, slots=True)
class FileAssignment:
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
class AssignedRecords:
    """Records in the order of the files they go into.

    Attributes:
        records: all that go somewhere.
        positions: row number of each in its base file, -1 where it is not known.
        assignments: which go where, in the order of ``records``.
    """

    records: WriteRecords
    positions: np.ndarray
    assignments: tuple[FileAssignment, ...]

    def get_records(self, assignment: FileAssignment) -> WriteRecords:
        """Return the records of one assignment, without a copy."""
        return slice_records(self.records, assignment.start, len(assignment))

    def get_positions(self, assignment: FileAssignment) -> np.ndarray:
        """Return their row numbers."""
        return self.positions[assignment.start : assignment.stop]


def assign_files(tagged: TaggedRecords, snapshot: Snapshot, file_bytes: int, small_bytes: int = 0) -> AssignedRecords:
    """Decide where records go.

    Args:
        tagged: the records, with partition paths; those of one key stay in their order.
        snapshot: the table that they were tagged by.
        file_bytes: about how large a new base file gets.
        small_bytes: base files of COPY_ON_WRITE tables below this size are filled up with new records; 0 for none.
    """
    paths = [path for path in _require_partition_paths(tagged.records).unique().to_pylist() if path is not None]
    slices = snapshot.view.list_slices(None, paths) if paths else []
    if not snapshot.config.is_merge_on_read:
        held = {key for _, groups in iterate_pending_clusterings(snapshot) for key in groups}
        tagged = fill_small_files(
            tagged,
            slices,
            row_bytes=estimate_row_bytes(tagged.records),
            file_bytes=file_bytes,
            small_bytes=small_bytes,
            held=held,
        )
    return _assign(tagged, {(each.partition_path, each.file_id): each for each in slices}, file_bytes)


def assign_new_files(records: WriteRecords, file_bytes: int) -> AssignedRecords:
    """Give all records that do not delete new file groups, in their order within each partition.

    Args:
        records: with partition paths.
        file_bytes: about how large a new base file gets.
    """
    none = pa.nulls(len(records), pa.string())
    return _assign(TaggedRecords(records, none, none, np.full(len(records), -1, np.int64)), {}, file_bytes)


def assign_new_bucket_files(tagged: TaggedRecords, file_bytes: int) -> AssignedRecords:
    """Give records new file groups of the buckets that they are tagged with.

    Args:
        tagged: by a bucket index.
        file_bytes: as for ``assign_new_files``.
    """
    encoded = tagged.file_ids.dictionary_encode()
    buckets = [parse_bucket(each) for each in encoded.dictionary.to_pylist()]
    fresh = pa.array([None if each is None else make_bucket_file_id(each) for each in buckets], pa.string())
    none = pa.nulls(len(tagged), pa.string())
    return _assign(TaggedRecords(tagged.records, fresh.take(encoded.indices), none, tagged.positions), {}, file_bytes)


def slice_records(records: WriteRecords, start: int, count: int) -> WriteRecords:
    """Return records that lie side by side, without a copy."""
    return WriteRecords(
        rows=records.rows.slice(start, count) if records.rows.num_columns else records.rows,
        keys=records.keys.slice(start, count),
        partition_paths=None if records.partition_paths is None else records.partition_paths.slice(start, count),
        deletes=None if records.deletes is None else records.deletes.slice(start, count),
        ordering=tuple(each.slice(start, count) for each in records.ordering),
    )


def make_file_id() -> str:
    """Return an id for a new file group, of Java's form."""
    return f"{uuid.uuid4()}-0"


@dataclass(frozen=True, slots=True)
class _Run:
    """Records of one partition and file group, or of one partition without group, side by side."""

    key: tuple[str, str | None]
    start: int
    stop: int


def _assign(tagged: TaggedRecords, slices: Mapping[GroupKey, FileSlice], file_bytes: int) -> AssignedRecords:
    records = tagged.records
    names, codes = _number_groups(tagged)
    deletes = _deletes(records)
    there = np.array([name in slices for name in names], bool)
    order = np.flatnonzero(there[codes] | ~deletes) if len(codes) else np.empty(0, np.int64)
    order = order[np.argsort(codes[order], kind="stable")]
    chosen = records if _is_all(order, len(records)) else records.take(from_numpy(order))
    routed = AssignedRecords(chosen, tagged.positions[order], ())
    base_instants = tagged.base_instants.take(from_numpy(order))
    record_bytes = estimate_row_bytes(chosen)
    assignments: list[FileAssignment] = []
    for run in _iterate_runs(names, codes[order]):
        path, file_id = run.key
        if file_id is None:
            assignments += _split_new_records(path, run, max(1, int(file_bytes / record_bytes)))
        else:
            dead = int(deletes[order[run.start : run.stop]].sum())
            base = base_instants.slice(run.start, run.stop - run.start)
            assignments.append(_make_assignment(path, file_id, run, slices.get((path, file_id)), dead, base))
    return replace(routed, assignments=tuple(assignments))


def estimate_row_bytes(records: WriteRecords) -> float:
    """About how much a record takes in a base file."""
    return max(1.0, float(records.rows.nbytes) * _FILE_BYTES_A_BYTE / max(1, len(records)))


def _number_groups(tagged: TaggedRecords) -> tuple[list[tuple[str, str | None]], np.ndarray]:
    """Return the distinct partition paths with file ids, sorted, and the number of its place for each record."""
    paths = _require_partition_paths(tagged.records).combine_chunks().dictionary_encode()
    groups = tagged.file_ids.dictionary_encode()
    both = to_numbers(_to_codes(paths)) * (len(groups.dictionary) + 1) + to_numbers(_to_codes(groups), -1) + 1
    found, codes = np.unique(both, return_inverse=True)
    texts, ids = paths.dictionary.to_pylist(), [None, *groups.dictionary.to_pylist()]
    return [(texts[each // len(ids)], ids[each % len(ids)]) for each in found.tolist()], codes.reshape(-1)


def _to_codes(encoded: pa.DictionaryArray) -> pa.Array:
    return encoded.indices.cast(pa.int64())


def _require_partition_paths(records: WriteRecords) -> pa.ChunkedArray:
    if records.partition_paths is None or records.partition_paths.null_count:
        raise ValueError("records without partition paths cannot be routed")
    return records.partition_paths


def _deletes(records: WriteRecords) -> np.ndarray:
    return np.zeros(len(records), bool) if records.deletes is None else to_booleans(join_chunks(records.deletes))


def _is_all(order: np.ndarray, count: int) -> bool:
    return len(order) == count and bool((order == np.arange(count)).all())


def _iterate_runs(names: Sequence[tuple[str, str | None]], codes: np.ndarray) -> Iterator[_Run]:
    bounds = np.flatnonzero(np.diff(codes)) + 1
    starts = [0, *bounds.tolist()] if len(codes) else []
    for start, stop in zip(starts, [*bounds.tolist(), len(codes)], strict=False):
        yield _Run(names[int(codes[start])], start, stop)


def _split_new_records(path: str, run: _Run, most: int) -> Iterator[FileAssignment]:
    """Cut new records into files of about the same size."""
    count = run.stop - run.start
    files = -(-count // most)
    for number in range(files):
        start, stop = run.start + count * number // files, run.start + count * (number + 1) // files
        yield FileAssignment(path, make_file_id(), None, start, stop, stop - start, 0, 0)


def _make_assignment(
    path: str, file_id: str, run: _Run, file_slice: FileSlice | None, deletes: int, base_instants: pa.Array
) -> FileAssignment:
    inserts = base_instants.null_count
    updates = max(0, len(base_instants) - inserts - deletes)
    base = None if file_slice is None or file_slice.base_file is None else file_slice.base_file.instant
    in_base = base is not None and inserts == 0 and pc.all(pc.equal(base_instants, base)).as_py()
    return FileAssignment(
        path, file_id, file_slice, run.start, run.stop, inserts, updates, deletes, base if in_base else None
    )
