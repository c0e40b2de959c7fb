"""Tag the records of a bucket index with the file group of their bucket.

Agrees with Hudi's ``HoodieSimpleBucketIndex`` and ``HoodieConsistentBucketIndex``. A bucket is a number in the file id,
or one of the hash ranges that the table keeps for each partition. The first ranges of a partition follow from its path
and their number, so that two writers that begin a partition at the same time write the same file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, number_strings
from hoodie_py.errors import InvalidQueryError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.config.hashing_metadata import HashingMetadata
from hoodie_py.options.write import BUCKET_COUNT, BUCKET_EXPRESSIONS, BUCKET_HASH_FIELD
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.table.scan.threads import count_threads
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.index.bucket import (
    compute_buckets,
    find_hash_ranges,
    make_bucket_file_id,
    make_shared_file_id,
    parse_bucket,
)
from hoodie_py.writer.index.key_lookup import UNKNOWN_ROW, KeyLookup
from hoodie_py.writer.index.record_locations import RecordLocations
from hoodie_py.writer.index_settings import IndexSettings
from hoodie_py.writer.records import TaggedRecords, WriteRecords
from hoodie_py.writer.settings import WriteSettings
from hoodie_py.writer.transaction.hash_ranges import begin_hash_ranges

_MOST_KEYS, _CHECKED_SLICES = 4096, 4  # keys of a slice and slices of a partition that are checked


@dataclass(frozen=True, slots=True)
class PartitionBuckets:
    """The buckets of one partition's records.

    ``members``: the numbers of the partition's records, rising. ``numbers``: the bucket of each. ``ranges``: None for
    numbered buckets.
    """

    partition: str
    members: np.ndarray
    numbers: np.ndarray
    ranges: HashingMetadata | None


def assign_buckets(snapshot: Snapshot, records: WriteRecords, index: IndexSettings) -> Iterator[PartitionBuckets]:
    """Compute the bucket of each record, partition by partition.

    Raises:
        CorruptFileError: the table's hash ranges are damaged.
        UnsupportedFeatureError: it is unknown which ranges are in force.
    """
    assert records.partition_paths is not None
    fields = index.hash_fields or snapshot.config.record_key_fields
    for partition, members in group_by_partition(records.partition_paths).items():
        keys = take_keys(records, members)
        if index.consistent:
            ranges = begin_hash_ranges(snapshot, partition, index.buckets)
            yield PartitionBuckets(partition, members, find_hash_ranges(keys, fields, ranges.bounds), ranges)
        else:
            numbers = compute_buckets(keys, fields, index.count_buckets(partition))
            yield PartitionBuckets(partition, members, numbers, None)


def tag_by_bucket(snapshot: Snapshot, records: WriteRecords, index: IndexSettings) -> TaggedRecords:
    """Tag each record with the file group of its bucket; a bucket without a file group gets a new file id.

    Raises:
        InvalidTableError: two file groups have one bucket.
        InvalidQueryError: the table has file groups that are no buckets of the index.
        HoodieError: as ``assign_buckets``.
    """
    everywhere: list[FileSlice] = []
    at = np.empty(len(records), np.int64)
    parts = list(assign_buckets(snapshot, records, index))
    slices = find_slices_by_partition(snapshot, [each.partition for each in parts])
    for part in parts:
        numbers, inverse = np.unique(part.numbers, return_inverse=True)
        at[part.members] = len(everywhere) + inverse.reshape(-1)
        own = slices.get(part.partition, [])
        if part.ranges is None:
            everywhere += _find_bucket_slices(snapshot, part.partition, own, numbers.tolist(), index)
        else:
            everywhere += _find_range_slices(snapshot, own, numbers.tolist(), part.ranges)
    placed = RecordLocations(tuple(everywhere), at, np.full(len(records), UNKNOWN_ROW)).tag_records(records)
    bases = [None if each.base_file is None else each.base_file.instant for each in everywhere]
    return replace(placed, base_instants=pa.array(bases, pa.string()).take(from_numpy(at)))


def check_buckets(
    snapshot: Snapshot,
    settings: WriteSettings,
    partitions: Sequence[str],
    merger: Merger | None = None,
) -> None:
    """Refuse a write whose bucket index disagrees with keys of the table; some keys of each partition are read.

    Raises:
        InvalidQueryError: a key is in another bucket; names the file group, the key and the options to set.
        HoodieError: as ``tag_by_bucket``.
    """
    if not settings.index.is_bucket or not partitions:
        return
    lookup = KeyLookup(snapshot, settings, merger)
    slices = find_slices_by_partition(snapshot, partitions)
    check = carry_span(lambda each: _check_partition(snapshot, settings.index, lookup, each))
    with ThreadPoolExecutor(count_threads(settings.options), "hoodie-buckets") as pool:
        for _ in pool.map(check, slices.values()):
            pass


def _check_partition(snapshot: Snapshot, index: IndexSettings, lookup: KeyLookup, slices: list[FileSlice]) -> None:
    for file_slice in sample_slices(slices, _CHECKED_SLICES):
        keys = read_first_keys(lookup, file_slice)
        paths = pa.chunked_array([pa.repeat(pa.scalar(file_slice.partition_path, pa.string()), len(keys))])
        for part in assign_buckets(snapshot, WriteRecords(pa.table({}), keys, paths), index):
            own = _find_bucket(file_slice, part.ranges)
            astray = np.flatnonzero(part.numbers != own)
            if own is not None and len(astray):
                raise InvalidQueryError(
                    "The table does not have its keys where the bucket index of this write would put them.",
                    hint=f"Set {BUCKET_COUNT}, {BUCKET_HASH_FIELD} and {BUCKET_EXPRESSIONS} to what the table was "
                    "written with. Hudi before 1.0 puts keys with colons or commas elsewhere than later releases.",
                    key=keys[int(astray[0])].as_py()[:200],
                    file_group=file_slice.file_id,
                    partition=file_slice.partition_path or None,
                )


def _find_bucket(file_slice: FileSlice, ranges: HashingMetadata | None) -> int | None:
    if ranges is None:
        return parse_bucket(file_slice.file_id)
    return ranges.file_ids.index(file_slice.file_id) if file_slice.file_id in ranges.file_ids else None


def sample_slices(slices: Sequence[FileSlice], most: int) -> list[FileSlice]:
    """Return some slices, spread over all buckets.

    Slices with base files are preferred, as reading their keys is faster.
    """
    based = [each for each in slices if each.base_file is not None] or list(slices)
    ordered = sorted(based, key=lambda each: each.file_id)
    return ordered[:: max(1, -(-len(ordered) // most))]


def read_first_keys(lookup: KeyLookup, file_slice: FileSlice) -> pa.ChunkedArray:
    """Return the first keys of a file slice."""
    chunks, left = [], _MOST_KEYS
    with closing(lookup.iterate_keys(file_slice)) as found:
        for keys, _ in found:
            chunks.append(keys.slice(0, left))
            left -= len(chunks[-1])
            if not left:
                break
    return pa.chunked_array(chunks, pa.string())


def group_by_partition(paths: pa.ChunkedArray) -> dict[str, np.ndarray]:
    """Return the numbers of each partition's records, rising."""
    names, codes = number_strings(paths)
    order = np.argsort(codes, kind="stable")
    cuts = np.searchsorted(codes[order], np.arange(1, len(names)))
    return dict(zip(names.to_pylist(), np.split(order, cuts), strict=True)) if len(names) else {}


def take_keys(records: WriteRecords, members: np.ndarray) -> pa.ChunkedArray:
    """Return the keys of some records, whose numbers rise. If they are all records, no copy is made."""
    return records.keys if len(members) == len(records) else records.keys.take(from_numpy(members))


def find_slices_by_partition(snapshot: Snapshot, partitions: Iterable[str]) -> dict[str, list[FileSlice]]:
    """Find the file slices of some partitions, by partition path."""
    return group_slices(snapshot.view.list_slices(None, list(partitions)))


def group_slices(slices: Iterable[FileSlice]) -> dict[str, list[FileSlice]]:
    """Group file slices by partition path."""
    found: dict[str, list[FileSlice]] = {}
    for each in slices:
        found.setdefault(each.partition_path, []).append(each)
    return found


def _find_bucket_slices(
    snapshot: Snapshot, partition: str, slices: Iterable[FileSlice], numbers: Iterable[int], index: IndexSettings
) -> list[FileSlice]:
    known = _index_by_bucket(slices, index.count_buckets(partition))
    make = make_shared_file_id if index.shared_ids else make_bucket_file_id
    found = [known.get(number) or FileSlice(partition, make(number), "", None, ()) for number in numbers]
    for each in found if index.shared_ids else ():
        if not each.base_instant and snapshot.view.visibility.is_replaced((partition, each.file_id), None):
            raise UnsupportedFeatureError(
                "A non-blocking write to a bucket whose file group was replaced: its file id cannot be used again.",
                hint="Write it once with optimistic concurrency control, which gives the bucket another file id.",
                partition=partition or None,
                file_group=each.file_id,
            )
    return found


def _index_by_bucket(slices: Iterable[FileSlice], buckets: int) -> dict[int, FileSlice]:
    found: dict[int, FileSlice] = {}
    for each in slices:
        place = {"partition": each.partition_path or None, "file_group": each.file_id}
        bucket = parse_bucket(each.file_id)
        if bucket is None or bucket >= buckets:
            raise InvalidQueryError(
                f"The table has a file group that is none of the {buckets} buckets of a bucket index.",
                hint="Give the index and the number of buckets that the table was written with.",
                **place,
            )
        if bucket in found:
            raise InvalidTableError(
                f"Two file groups have bucket {bucket}.", other_file_group=found[bucket].file_id, **place
            )
        found[bucket] = each
    return found


def _find_range_slices(
    snapshot: Snapshot, slices: Iterable[FileSlice], numbers: Iterable[int], ranges: HashingMetadata
) -> list[FileSlice]:
    known = {each.file_id: each for each in slices}
    strange = min(known.keys() - set(ranges.file_ids), default=None)
    if strange is not None:
        raise InvalidTableError(
            "A file group has none of the ranges of hashes of its partition, so Java Hudi would not find its keys.",
            partition=ranges.partition_path or None,
            file_group=strange,
        )
    found = []
    for number in numbers:
        group = ranges.partition_path, ranges.file_ids[number]
        if group[1] not in known and snapshot.view.visibility.is_replaced(group, None):
            raise UnsupportedFeatureError(
                "Writing to a range of hashes whose file group was replaced.", partition=group[0], file_group=group[1]
            )
        found.append(known.get(group[1]) or FileSlice(*group, "", None, ()))
    return found
