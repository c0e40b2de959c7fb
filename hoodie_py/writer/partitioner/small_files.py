"""Fill small base files with new records before creating new files (Hudi ``UpsertPartitioner``,
``SparkUpsertDeltaCommitPartitioner``).

Otherwise every write would add a file to each partition. The smallest files come first. On MERGE_ON_READ tables a file
is filled only if its slice has no log files and no pending compaction includes it. Only few files of a partition are
filled there: the commit rewrites each of them, and would otherwise write logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from operator import attrgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_chunks, to_booleans, to_numbers
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.records import TaggedRecords
from hoodie_py.writer.settings import WriteSettings
from hoodie_py.writer.transaction.pending import iterate_pending_clusterings


def choose_small_files(snapshot: Snapshot, slices: Iterable[FileSlice], settings: WriteSettings) -> list[FileSlice]:
    """Return the newest slices whose base file new records may fill, by partition, the smallest file first."""
    most = settings.small_file_bytes
    small = [each for each in slices if each.base_file is not None and each.base_file.whole_size < most]
    if not small:
        return []
    small.sort(key=lambda each: (each.partition_path, _get_size(each), each.file_id))
    if snapshot.config.is_merge_on_read:
        small = list(_limit(_without_logs(snapshot, small), settings.small_file_candidates))
    # After the limit, as in Java: slices of a pending clustering count for it.
    held = {key for _, groups in iterate_pending_clusterings(snapshot) for key in groups}
    return [each for each in small if (each.partition_path, each.file_id) not in held]


def fill_small_files(
    tagged: TaggedRecords, small: Sequence[FileSlice], *, row_bytes: float, file_bytes: int
) -> tuple[TaggedRecords, set[GroupKey]]:
    """Tag new records with file groups whose base file is small, in the order of ``small``; return these groups, too.

    ``row_bytes`` and ``file_bytes`` are estimates for a record and a base file.
    """
    room = compute_free_rows(small, row_bytes, file_bytes)
    if not room or not tagged.file_ids.null_count:
        return tagged, set()
    records = tagged.records
    assert records.partition_paths is not None
    at = np.flatnonzero(to_booleans(tagged.file_ids.is_null()) & ~records.delete_mask)
    paths = join_chunks(records.partition_paths).dictionary_encode()
    codes = to_numbers(paths.indices)[at]
    at = at[np.argsort(codes, kind="stable")]  # by partition; records keep their order within it
    ids = np.full(len(tagged), -1, np.int64)
    chosen: list[GroupKey] = []
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(paths.dictionary)))])
    for code, path in enumerate(paths.dictionary.to_pylist()):
        start, stop = int(starts[code]), int(starts[code + 1])
        for file_slice, rows in room.get(path, ()):
            if start == stop:
                break
            ids[at[start : min(start + rows, stop)]] = len(chosen)
            chosen.append((path, file_slice.file_id))
            start = min(start + rows, stop)
    filled = pa.array([file_id for _, file_id in chosen], pa.string()).take(from_numpy(ids, ids < 0))
    return replace(tagged, file_ids=pc.coalesce(tagged.file_ids, filled)), set(chosen)


def compute_free_rows(
    small: Iterable[FileSlice], row_bytes: float, file_bytes: int
) -> Mapping[str, list[tuple[FileSlice, int]]]:
    """Return slices with the number of rows that fit into the base file of each, by partition path, in their order."""
    found: dict[str, list[tuple[FileSlice, int]]] = {}
    for each in small:
        rows = int((file_bytes - _get_size(each)) / row_bytes)
        if rows > 0:
            found.setdefault(each.partition_path, []).append((each, rows))
    return found


def _get_size(file_slice: FileSlice) -> int:
    return 0 if file_slice.base_file is None else file_slice.base_file.whole_size


def _without_logs(snapshot: Snapshot, slices: Sequence[FileSlice]) -> Iterator[FileSlice]:
    """Yield the slices without log files that no pending compaction includes."""
    view, by_slice = snapshot.view, not snapshot.config.has_logs_named_by_commit
    bare = [each for each in slices if not each.log_files]
    logged: set[tuple[str, str, str]] = set()
    if by_slice:  # the log files of uncommitted writes belong to the slice, and would be lost with it
        groups = view.list_file_groups(sorted({each.partition_path for each in bare}))
        logged = {(*group.key, log.name.instant) for group in groups for log in group.log_files}
    for each in bare:
        key = each.partition_path, each.file_id
        if view.visibility.find_pending_compaction(key) is None and (*key, each.base_instant) not in logged:
            yield each


def _limit(slices: Iterator[FileSlice], most: int) -> Iterator[FileSlice]:
    for _, some in groupby(slices, attrgetter("partition_path")):
        yield from islice(some, most)
