"""Choose the file that each tagged record goes into (Hudi ``UpsertPartitioner``).

* A known key goes to its file group: into a log file on MERGE_ON_READ tables; into a rewritten base file on
  COPY_ON_WRITE tables, or if new keys fill that file.
* A new key goes into a small base file, or a new one. It never goes into a log file, where indexes do not find it,
  unless its bucket index gave it an existing file group.
* A delete of a new key is dropped.

``small_files`` says which small base files new records fill first.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, to_numbers
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.index.bucket import make_bucket_file_id, parse_bucket
from hoodie_py.writer.pipeline.small_files import Fill, SmallFiles, fill_small_files
from hoodie_py.writer.records import TaggedRecords, WriteRecords

_FILE_BYTES_A_BYTE = 0.4
"""Estimated bytes in a base file for each byte in memory."""


@dataclass(frozen=True, slots=True)
class FileAssignment:
    """The records that go into one new file (Hudi ``BucketInfo``).

    Attributes:
        partition_path, file_id: the file group.
        file_slice: the group's newest slice; None for a new group.
        start, stop: the range of the assigned records.
        inserts, updates, deletes: number of records with new keys, with known keys, and of deletes of known keys.
        positions_of: instant of the base file that contains all the keys; None if no single one does.
        fill: how the new records get into the base file of the slice.
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
    fill: Fill = Fill.NONE

    @property
    def group(self) -> GroupKey:
        """Partition path and file id."""
        return self.partition_path, self.file_id

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class AssignedRecords:
    """Records in the order of the files that they go into.

    ``positions``: the row number of each record in its base file, -1 if unknown. ``assignments`` are in the order of
    ``records``.
    """

    records: WriteRecords
    positions: np.ndarray
    assignments: tuple[FileAssignment, ...]

    def get_records(self, assignment: FileAssignment) -> WriteRecords:
        """Return one file's records, without a copy."""
        return slice_records(self.records, assignment.start, len(assignment))

    def get_positions(self, assignment: FileAssignment) -> np.ndarray:
        """Return the row numbers of one file's records."""
        return self.positions[assignment.start : assignment.stop]


def assign_files(
    tagged: TaggedRecords,
    slices: Iterable[FileSlice],
    file_bytes: int,
    small: SmallFiles | None = None,
    *,
    only_logs: bool = False,
) -> AssignedRecords:
    """Assign tagged records to files. Records of one key keep their order.

    Args:
        tagged: the records.
        slices: the newest slices of their partitions.
        file_bytes: the estimated size of a new base file.
        small: the base files that new records may fill; None: none.
        only_logs: whether new file groups begin with a log file.
    """
    begun = {key: FileSlice(*key, "", None, ()) for key in _list_groups(tagged)} if only_logs else {}
    by_group = {(each.partition_path, each.file_id): each for each in slices}
    filled: set[GroupKey] = set()
    if small is not None and small.by_path:
        small = small.beside_updates(_list_groups(tagged))
        row_bytes = estimate_row_bytes(tagged.records)
        tagged, filled = fill_small_files(tagged, small, row_bytes=row_bytes, file_bytes=file_bytes)
    assigned = _assign(tagged, {**begun, **by_group}, file_bytes)
    if small is None or not filled:
        return assigned
    files = (replace(each, fill=small.fill) if each.group in filled else each for each in assigned.assignments)
    return replace(assigned, assignments=tuple(files))


def list_slices_of(records: WriteRecords, snapshot: Snapshot) -> list[FileSlice]:
    """Return the newest slices of the records' partitions."""
    paths = [path for path in _require_partition_paths(records).unique().to_pylist() if path is not None]
    return snapshot.view.list_slices(None, paths) if paths else []


def assign_new_files(records: WriteRecords, file_bytes: int, small: SmallFiles | None = None) -> AssignedRecords:
    """Assign all records to small files, then to new file groups, in their order within each partition.

    Deletes are dropped. Arguments as for ``assign_files``.
    """
    none = pa.nulls(len(records), pa.string())
    tagged = TaggedRecords(records, none, none, np.full(len(records), -1, np.int64))
    return assign_files(tagged, () if small is None else small.slices, file_bytes, small)


def assign_new_bucket_files(tagged: TaggedRecords, file_bytes: int) -> AssignedRecords:
    """Assign records to new file groups of the buckets that they are tagged with."""
    encoded = tagged.file_ids.dictionary_encode()
    buckets = [parse_bucket(each) for each in encoded.dictionary.to_pylist()]
    fresh = pa.array([None if each is None else make_bucket_file_id(each) for each in buckets], pa.string())
    none = pa.nulls(len(tagged), pa.string())
    return _assign(TaggedRecords(tagged.records, fresh.take(encoded.indices), none, tagged.positions), {}, file_bytes)


def slice_records(records: WriteRecords, start: int, count: int) -> WriteRecords:
    """Return a range of records, without a copy."""
    return WriteRecords(
        rows=records.rows.slice(start, count) if records.rows.num_columns else records.rows,
        keys=records.keys.slice(start, count),
        partition_paths=None if records.partition_paths is None else records.partition_paths.slice(start, count),
        deletes=None if records.deletes is None else records.deletes.slice(start, count),
        ordering=tuple(each.slice(start, count) for each in records.ordering),
    )


def make_file_id() -> str:
    """Make an id for a new file group, in Java's form."""
    return f"{uuid.uuid4()}-0"


def split_new_records(path: str, first: int, end: int, most: int) -> Iterator[FileAssignment]:
    """Split the new records of a partition, from number ``first`` on, into files of about the same size."""
    count = end - first
    files = -(-count // most)
    for number in range(files):
        start, stop = first + count * number // files, first + count * (number + 1) // files
        yield FileAssignment(path, make_file_id(), None, start, stop, stop - start, 0, 0)


def estimate_row_bytes(records: WriteRecords) -> float:
    """Estimate the bytes of a record in a base file."""
    return estimate_file_bytes(records.rows.nbytes, len(records))


def estimate_file_bytes(memory_bytes: int, rows: int) -> float:
    """Estimate the bytes of a row in a base file from the size of all rows in memory."""
    return max(1.0, float(memory_bytes) * _FILE_BYTES_A_BYTE / max(1, rows))


@dataclass(frozen=True, slots=True)
class _Run:
    """A range of records of one partition and file group, or of one partition without a group."""

    key: tuple[str, str | None]
    start: int
    stop: int


def _assign(tagged: TaggedRecords, slices: Mapping[GroupKey, FileSlice], file_bytes: int) -> AssignedRecords:
    records = tagged.records
    names, codes = _number_groups(tagged)
    deletes = records.delete_mask
    there = np.array([name in slices for name in names], bool)
    order = np.flatnonzero(there[codes] | ~deletes) if len(codes) else np.empty(0, np.int64)
    order = order[np.argsort(codes[order], kind="stable")]  # stable: versions of one key keep their order
    chosen = records if _is_all(order, len(records)) else records.take(from_numpy(order))
    routed = AssignedRecords(chosen, tagged.positions[order], ())
    base_instants = tagged.base_instants.take(from_numpy(order))
    record_bytes = estimate_row_bytes(chosen)
    assignments: list[FileAssignment] = []
    for run in _iterate_runs(names, codes[order]):
        path, file_id = run.key
        if file_id is None:
            assignments += split_new_records(path, run.start, run.stop, max(1, int(file_bytes / record_bytes)))
        else:
            dead = int(deletes[order[run.start : run.stop]].sum())
            base = base_instants.slice(run.start, run.stop - run.start)
            assignments.append(_make_assignment(path, file_id, run, slices.get((path, file_id)), dead, base))
    return replace(routed, assignments=tuple(assignments))


def _number_groups(tagged: TaggedRecords) -> tuple[list[tuple[str, str | None]], np.ndarray]:
    """Return the distinct pairs of partition path and file id, sorted, and the number of each record's pair."""
    paths = _require_partition_paths(tagged.records).combine_chunks().dictionary_encode()
    if len(paths.dictionary) == 1 and tagged.file_ids.null_count == len(tagged):  # an insert into one partition
        return [(paths.dictionary[0].as_py(), None)], np.zeros(len(tagged), np.int64)
    groups = tagged.file_ids.dictionary_encode()
    # One number for each pair: the code of the path times the number of file ids, plus the file id's, 0 for none.
    both = to_numbers(_to_codes(paths)) * (len(groups.dictionary) + 1) + to_numbers(_to_codes(groups), -1) + 1
    found, codes = np.unique(both, return_inverse=True)
    texts, ids = paths.dictionary.to_pylist(), [None, *groups.dictionary.to_pylist()]
    return [(texts[each // len(ids)], ids[each % len(ids)]) for each in found.tolist()], codes.reshape(-1)


def _list_groups(tagged: TaggedRecords) -> list[GroupKey]:
    return [(path, file_id) for path, file_id in _number_groups(tagged)[0] if file_id is not None]


def _to_codes(encoded: pa.DictionaryArray) -> pa.Array:
    return encoded.indices.cast(pa.int64())


def _require_partition_paths(records: WriteRecords) -> pa.ChunkedArray:
    if records.partition_paths is None or records.partition_paths.null_count:
        raise ValueError("Records without partition paths cannot be assigned to files.")
    return records.partition_paths


def _is_all(order: np.ndarray, count: int) -> bool:
    return len(order) == count and bool((order == np.arange(count)).all())


def _iterate_runs(names: Sequence[tuple[str, str | None]], codes: np.ndarray) -> Iterator[_Run]:
    bounds = np.flatnonzero(np.diff(codes)) + 1
    starts = [0, *bounds.tolist()] if len(codes) else []
    for start, stop in zip(starts, [*bounds.tolist(), len(codes)], strict=False):
        yield _Run(names[int(codes[start])], start, stop)


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
