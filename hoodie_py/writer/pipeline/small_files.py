"""Fill small base files with new records; otherwise every write would add a file to each partition.

A file is small below ``hoodie.parquet.small.file.limit``. The smallest files come first. On MERGE_ON_READ tables a file
is filled only if its slice has no log files and no pending compaction includes it, and only few files of a partition
are: the commit rewrites each of them, and would otherwise write logs. Upserts merge such a file with all their records
for it. Inserts append their records below its rows, so keys may occur twice if the caller allows it
(``HoodieConcatHandle``). Bulk inserts, overwrites and writes into buckets never fill. All this agrees with Hudi's
``UpsertPartitioner`` and ``SparkUpsertDeltaCommitPartitioner``.

To fill a file is to write all its rows again, and Java does so for every small file: 10,000 rows more cost it up to
100 MB. Here a file is filled only if it has at most a megabyte, if the write rewrites it anyway (a COPY_ON_WRITE file
with updates), or if it has at most ``hoodie.parquet.small.file.rewrite.ratio`` times the bytes of the records that it
gets and at most 32 MB: one file less is not worth more. So a write rewrites at most that many times its own bytes, and
a megabyte a partition. As a new file is begun only where every small file is larger than that, writes of ``b`` bytes or
more leave a partition of ``n`` bytes with at most ``1 + n / max(1 MB, min(ratio * b, 32 MB))`` files. No rule of this
kind leaves fewer than in proportion to ``n / b``, because a write cannot join files; a clustering does. A limit that
the caller gave is an order to fill, so without a ratio beside it Java's rule holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby, islice
from operator import attrgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_chunks, to_booleans, to_numbers
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.merge.merger import Merger, RecordMerger
from hoodie_py.reader.selection import select_strategy
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.records import TaggedRecords, WriteOperation
from hoodie_py.writer.settings import WriteSettings
from hoodie_py.writer.transaction.pending import iterate_pending_clusterings

_CHEAP_BYTES = 1 << 20
"""A file of this size is always filled: to write it again costs about as much as all else that a small write does."""

_LARGE_BYTES = 32 << 20


class Fill(StrEnum):
    """How new records get into an existing base file."""

    NONE = "none"  # not at all
    MERGE = "merge"  # merged by key
    EXTEND = "extend"  # below its rows


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """The small base files that a write may fill.

    Attributes:
        fill: how the new records get into them.
        by_path: their slices by partition path, the smallest first.
        ratio: how many times the bytes of its new records a filled file may have; None: any number.
        updates_rewrite: whether updates of records in a base file rewrite it.
        rewritten: the file groups whose base file the write rewrites anyway.
    """

    fill: Fill = Fill.NONE
    by_path: Mapping[str, Sequence[FileSlice]] = field(default_factory=dict)
    ratio: float | None = None
    updates_rewrite: bool = False
    rewritten: frozenset[GroupKey] = frozenset()

    @property
    def slices(self) -> list[FileSlice]:
        """The slices of all partitions."""
        return [each for some in self.by_path.values() for each in some]

    def beside_updates(self, groups: Iterable[GroupKey]) -> SmallFiles:
        """Return the files for a write that also updates or deletes records of some file groups."""
        return replace(self, rewritten=frozenset(groups)) if self.updates_rewrite else self

    def list_free_rows(self, path: str, row_bytes: float, file_bytes: int) -> list[tuple[FileSlice, int]]:
        """Return a partition's slices, in the order in which they are filled, with the number of rows that fit into
        the base file of each. ``row_bytes`` and ``file_bytes`` are estimates for a record and for a base file.
        """
        here = self.by_path.get(path, ())
        if self.ratio is not None:
            here = sorted(here, key=lambda each: not self._is_rewritten(each))  # stable: the smallest first among them
        free = [(each, int((file_bytes - _get_size(each)) / row_bytes)) for each in here]
        return [(each, rows) for each, rows in free if rows > 0]

    def is_worth(self, file_slice: FileSlice, new_bytes: float) -> bool:
        """Whether records of so many bytes are worth the rewriting of a base file.

        If they are not, no later file of the partition is worth it: it is larger, and has no more room.
        """
        if self.ratio is None or self._is_rewritten(file_slice):
            return True
        return _get_size(file_slice) <= max(_CHEAP_BYTES, min(self.ratio * new_bytes, _LARGE_BYTES))

    def share_out(self, path: str, rows: int, row_bytes: float, file_bytes: int) -> Iterator[tuple[FileSlice, int]]:
        """Yield the slices that a partition's new rows fill, with the number of rows for each; arguments as for
        ``list_free_rows``.
        """
        for file_slice, free in self.list_free_rows(path, row_bytes, file_bytes):
            taken = min(rows, free)
            if not taken or not self.is_worth(file_slice, taken * row_bytes):
                return
            rows -= taken
            yield file_slice, taken

    def _is_rewritten(self, file_slice: FileSlice) -> bool:
        return (file_slice.partition_path, file_slice.file_id) in self.rewritten


def choose_filled(
    operation: WriteOperation,
    snapshot: Snapshot,
    settings: WriteSettings,
    merger: Merger | None,
    list_slices: Callable[[], Iterable[FileSlice]],
) -> SmallFiles:
    """Return the base files that a write's new records may fill; errors as for ``choose_fill``.

    ``list_slices`` lists the newest slices of the records' partitions, and is called only if files are filled.
    """
    fill = choose_fill(operation, snapshot, settings, merger)
    if fill is Fill.NONE:
        return SmallFiles()
    small = choose_small_files(snapshot, list_slices(), settings)
    by_path = {path: tuple(some) for path, some in groupby(small, attrgetter("partition_path"))}
    return SmallFiles(fill, by_path, settings.rewrite_ratio, not snapshot.config.is_merge_on_read)


def choose_fill(operation: WriteOperation, snapshot: Snapshot, settings: WriteSettings, merger: Merger | None) -> Fill:
    """Return how a write's new records fill small files.

    Raises:
        MergeError: the table needs a merger that was not supplied.
    """
    if settings.index.is_bucket or settings.small_file_bytes <= 0:
        return Fill.NONE
    if operation is WriteOperation.UPSERT:
        return Fill.MERGE
    # Never where changes are captured, unlike in Java: its appended rows have no change data, so that it cannot derive
    # the changes of such a commit.
    if operation is not WriteOperation.INSERT or snapshot.config.cdc_enabled:
        return Fill.NONE
    # Unlike in Java, a merger that decides about new records is always asked; to extend a file would pass it by.
    return Fill.NONE if is_merging_inserts(snapshot, settings, merger) else Fill.EXTEND


def find_custom_merger(snapshot: Snapshot, settings: WriteSettings, merger: Merger | None) -> RecordMerger | None:
    """Return the merger that replaces the built-in modes; None if they merge.

    Raises:
        MergeError: the table needs a merger that was not supplied.
    """
    return select_strategy(snapshot.config, settings.options, merger, writing=True).merger


def has_insert_hook(custom: RecordMerger | None) -> bool:
    """Whether a merger also decides about new records."""
    return custom is not None and type(custom).insert_batch is not RecordMerger.insert_batch


def is_merging_inserts(snapshot: Snapshot, settings: WriteSettings, merger: Merger | None) -> bool:
    """Whether a merger also decides about new records; errors as for ``find_custom_merger``."""
    return has_insert_hook(find_custom_merger(snapshot, settings, merger))


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
    tagged: TaggedRecords, small: SmallFiles, *, row_bytes: float, file_bytes: int
) -> tuple[TaggedRecords, set[GroupKey]]:
    """Tag new records with the file groups that they fill; return these groups, too.

    ``row_bytes`` and ``file_bytes`` are estimates for a record and a base file.
    """
    if not small.by_path or not tagged.file_ids.null_count:
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
        for file_slice, rows in small.share_out(path, stop - start, row_bytes, file_bytes):
            ids[at[start : start + rows]] = len(chosen)
            chosen.append((path, file_slice.file_id))
            start += rows
    filled = pa.array([file_id for _, file_id in chosen], pa.string()).take(from_numpy(ids, ids < 0))
    return replace(tagged, file_ids=pc.coalesce(tagged.file_ids, filled)), set(chosen)


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
