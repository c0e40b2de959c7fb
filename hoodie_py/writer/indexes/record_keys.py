"""The records of the partition ``record_index``: where each record key is (Hudi ``RecordIndexMapper``,
``HoodieTableMetadataUtil.convertMetadataToRecordIndexRecords``, ``HoodieBackedTableMetadataWriter``).

    new keys of a base file       a record: partition path, file id, time of the instant
    keys that are gone            deleted, unless another file of the commit has them: a record that moves
    updates                       nothing, as the location stays
    replaced file groups          their keys are deleted, unless the commit writes them again
    clusterings                   a record for each key of the new files; no key goes
    compactions                   nothing, but for keys that come back (``returning_keys``)
    cleans                        nothing

The keys are read back from the new files, before the lock. A file is read only if its statistics show that keys came or
went; a log also if it may bring a key back that an older log deleted.

A partitioned index looks a key up in its partition, so the key has a record in each partition that contains it. New
partitions of the table get file groups here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, from_texts, join_chunks
from hoodie_py.errors import ConflictError, InvalidTableError
from hoodie_py.formats.deletes.decoder import decode_deletes
from hoodie_py.formats.indexes import keys as index_keys
from hoodie_py.formats.indexes.definitions import RECORD_INDEX
from hoodie_py.formats.indexes.keys import Numbers
from hoodie_py.formats.indexes.record_schema import RECORD_INDEX_COLUMN
from hoodie_py.formats.log.framing import BlockType, LogBlock, iterate_blocks
from hoodie_py.options.indexes import PARTITIONED_LEAST_GROUPS
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.indexes.keys import find_record_locations
from hoodie_py.table.indexes.soundness import make_lost_groups, may_have_no_groups
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.table.timeline.time_travel import parse_zone
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.indexes import group_changes
from hoodie_py.writer.indexes.entry_checks import Facts
from hoodie_py.writer.indexes.group_changes import GroupChange
from hoodie_py.writer.indexes.index import GroupPlan, Index, MetadataCommit, PartitionRecords, Portion
from hoodie_py.writer.indexes.returning_keys import (
    KeyComparison,
    LogDeletes,
    compare_compaction,
    compare_write,
    make_plan_conflict,
)
from hoodie_py.writer.indexes.slice_rows import KEY, SliceRows
from hoodie_py.writer.indexes.table_source import IndexSource

_TIME_FORMAT = "%Y%m%d%H%M%S"


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """Keys that came to file groups, and keys that went.

    Attributes:
        groups: the file groups.
        keys, numbers: the new keys, and for each the number of its file group.
        deleted, deleted_numbers: the keys that are gone, and for each the number of its former file group.
    """

    groups: tuple[GroupKey, ...]
    keys: pa.Array
    numbers: Numbers
    deleted: pa.Array
    deleted_numbers: Numbers

    @classmethod
    def collect(cls, groups: Sequence[GroupKey], found: Sequence[tuple[pa.Array, pa.Array]]) -> KeyChanges:
        """Collect the new and the deleted keys of some groups."""
        numbers = (np.repeat(np.arange(len(groups)), [len(each[i]) for each in found]) for i in range(2))
        new, gone = (group_changes.join_keys([each[i] for each in found]) for i in range(2))
        return cls(tuple(groups), new, next(numbers), gone, next(numbers))


@dataclass(frozen=True, slots=True)
class RecordKeys(Index):
    """The partition ``record_index``. A check compares the file group of each record key.

    A build numbers the file groups of a partitioned index across all partitions of the table.
    """

    _prefix = "record-index-"

    compared: KeyComparison | None = None
    """The keys that an instant adds and removes; None if it changes no keys, as a rollback."""

    def prepare(self, change: MetadataCommit) -> Self:
        """Find the keys that a commit of records adds and removes.

        Raises:
            HoodieError: a data file cannot be read, or a merger is missing.
        """
        return replace(self, compared=_compare_keys(change))

    def records(self, change: MetadataCommit, view: MetadataView) -> PartitionRecords:
        """Make the records of a commit.

        Raises:
            ConflictError: a compaction brings back a key that another file group has by now, or writes that overlap add
                and remove one key.
            InvalidTableError: a file id does not fit the table's index, or the index has no file groups.
        """
        changes = KeyChanges.collect((), ())
        owners = [index_keys.parse_group_id(each.file_id) for each in view.list_groups(self.partition)]
        if not owners and not may_have_no_groups(view, self.partition):
            raise make_lost_groups(view, self.partition)
        partitioned = not owners or any(owner is not None for owner, _ in owners)
        if self.compared is not None:
            compared = self.compared.bring_up_to_date(change)
            if change.kind == "compaction":
                _check_nowhere_else(change, compared, view, partitioned=partitioned)
            changes = KeyChanges.collect(compared.groups, compared.found)
            if change.kind == "write":
                paths = {path for path, _ in changes.groups} if partitioned else None
                _check_only_there(change, changes, view, paths)
                _check_not_hidden(change, changes, view, paths)
        if partitioned:
            return _PartitionedIndex.of(change, owners).place(changes)
        (keys, numbers), (deleted, _) = settle_keys(changes, by_partition=False)
        return PartitionRecords(self.partition, _make_commit_records(change, changes.groups, keys, numbers), deleted)

    def portions(self, source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
        """Yield the file group of each record key of the newest slices."""
        zone = parse_zone(source.snapshot.timezone, source.snapshot.config.timezone)
        for file_slice, batch in source.read_records():
            keys = batch.column(KEY)
            millis = np.array([_find_slice_millis(file_slice.base_instant, zone)], np.int64)
            places = [(file_slice.partition_path, file_slice.file_id)]
            records = make_records(keys, places, np.zeros(len(keys), np.int64), millis)
            first, count = groups.by_partition.get(file_slice.partition_path, (0, len(groups.file_ids)))
            yield Portion(records, first + index_keys.find_file_groups(keys, count))

    def find_owner(self, group: FileSlice) -> str | None:
        """Return the partition of the table that a file group of a partitioned index is for."""
        return index_keys.parse_group_id(group.file_id)[0]

    def describe(self, source: IndexSource, rows: pa.Table, owner: str | None) -> Facts:
        """Describe each record key by its partition and file id."""
        del source
        locations = join_chunks(rows[RECORD_INDEX_COLUMN])
        file_ids, numbers = index_keys.read_file_ids(locations)
        groups = from_texts(file_ids, pa.string()).take(from_numpy(numbers))
        paths = pc.fill_null(pc.struct_field(locations, "partitionName"), "")
        values = pc.binary_join_element_wise(paths, groups, "/")
        keys = join_chunks(rows["key"]).cast(pa.string())
        if owner is not None:
            keys = pc.binary_join_element_wise(owner, keys, "\0")
        return Facts(keys, values)


def _compare_keys(change: MetadataCommit) -> KeyComparison | None:
    if change.kind == "compaction":
        return compare_compaction(change, find_key_changes)
    if change.kind not in ("write", "clustering"):
        return None
    changes = group_changes.list_group_changes(change)
    if change.kind == "clustering":  # the new files have the same keys as the replaced ones
        changes = [each for each in changes if each.after is not None]
    deletes = LogDeletes(change.snapshot)
    in_buckets = change.session.settings.index.is_bucket
    chosen = [each for each in changes if _may_change_keys(deletes, each, in_buckets=in_buckets)]
    return compare_write(change, find_key_changes, chosen)


def _may_change_keys(deletes: LogDeletes, change: GroupChange, *, in_buckets: bool) -> bool:
    """Whether a change may add keys to a file group, or remove some."""
    # In a bucket a row counts as an update whether the group contains its key or not, so the counts prove nothing.
    if change.after is None or change.before is None or (in_buckets and change.log is not None):
        return True
    if change.inserts or change.deletes:
        return True
    return change.log is not None and (deletes.merger_decides or deletes.may_be_in(change.before))


def find_key_changes(rows: SliceRows, change: GroupChange) -> tuple[pa.Array, pa.Array]:
    """Return the keys that are new in one file group, and the keys that are gone from it."""
    touched = None if change.log is None else rows.read_log_keys(change.log)
    before = rows.read_table(change.before, touched)[KEY]
    after = group_changes.join_keys([]) if change.after is None else rows.read_table(change.after, touched)[KEY]
    return group_changes.subtract(after, before), group_changes.subtract(before, after)


def _check_nowhere_else(
    commit: MetadataCommit, compared: KeyComparison, view: MetadataView, *, partitioned: bool
) -> None:
    """Check that returning keys were not inserted elsewhere: a writer that looked them up did not find them."""
    returning = {}
    for group, (new, _) in zip(compared.groups, compared.found, strict=True):
        if len(new):
            elsewhere = find_record_locations(view, new, [group[0]] if partitioned else None)
            if elsewhere.num_rows:
                returning[group] = join_chunks(elsewhere["key"].unique())
    if not returning:
        return
    group, keys = next(iter(returning.items()))
    text = f"The compaction brings back a key that another file group has by now: {keys[0].as_py()[:100]!r}."
    way_out = "services (`hoodie service --run`) delete the key there, which no read sees, and run it"
    raise make_plan_conflict(text, commit, group, way_out, returning)


def _check_only_there(
    change: MetadataCommit, changes: KeyChanges, view: MetadataView, paths: Collection[str] | None
) -> None:
    """Check that no writer has put a key that goes into another file group since the look: it would be left out.

    Only replaced partitions can have such groups: other writes that remove keys look up every new group.
    """
    slices = change.snapshot.view.list_slices(None, list(change.replaced)) if change.replaced else ()
    if all(each.file_id in change.replaced[each.partition_path] for each in slices) or not len(changes.deleted):
        return
    found = find_record_locations(view, changes.deleted, paths)
    own = set(changes.groups)
    places = found.group_by(["partition_path", "file_id"]).aggregate([("key", "min")])
    for place in places.to_pylist():
        if (place["partition_path"], place["file_id"]) not in own:
            raise _make_overlap(change, place["key_min"])


def _check_not_hidden(
    change: MetadataCommit, changes: KeyChanges, view: MetadataView, paths: Collection[str] | None
) -> None:
    """Check that no instant that began later has deleted a new key: records count in the order of request times."""
    writes = change.snapshot.timeline.select_writes()
    later = {each.request_time for each in writes if each.request_time > change.instant}
    if not later or not len(changes.keys):
        return
    for deleted in _iterate_deleted(view, later, paths):
        hidden = changes.keys.filter(pc.is_in(changes.keys, deleted))
        if len(hidden):
            raise _make_overlap(change, hidden[0].as_py())


def _iterate_deleted(view: MetadataView, times: Collection[str], paths: Collection[str] | None) -> Iterator[pa.Array]:
    """Yield the keys that instants have deleted from the record index, block by block."""
    by_commit = view.config.has_logs_named_by_commit
    for group in view.list_groups(RECORD_INDEX):
        owner, _ = index_keys.parse_group_id(group.file_id)
        if owner is not None and paths is not None and owner not in paths:
            continue
        for log in group.log_files:
            if by_commit and log.name.instant not in times:
                continue
            for block in iterate_blocks(read_bounded(view.files, log.path, "log_bytes")):
                if isinstance(block, LogBlock) and block.type is BlockType.DELETE and block.instant_time in times:
                    yield decode_deletes(block.content).keys


def _make_overlap(change: MetadataCommit, key: str) -> ConflictError:
    return ConflictError(
        f"Another writer removed or wrote the key {key[:100]!r} meanwhile, so the record index would lack it.",
        hint="Write again.",
        instant=change.instant,
    )


def settle_keys(
    changes: KeyChanges, *, by_partition: bool
) -> tuple[tuple[pa.Array, Numbers], tuple[pa.Array, Numbers]]:
    """Return each new key once with the number of its group, and each key once that is gone from the index.

    A key that is deleted in one file and new in another has moved. ``by_partition``: this holds only within a
    partition. If several new files contain one key, the last one counts.
    """
    paths = {path: number for number, path in enumerate(dict.fromkeys(path for path, _ in changes.groups))}
    owners = np.array([paths[path] if by_partition else 0 for path, _ in changes.groups], np.int64)
    every = group_changes.join_keys([changes.deleted, changes.keys])
    codes = every.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if by_partition:  # a key counts once for each partition
        codes = codes * len(paths) + owners[np.concatenate([changes.deleted_numbers, changes.numbers])]
    last = group_changes.take_last_of_each(from_numpy(codes))
    first_new = len(changes.deleted)
    kept, gone = last[last >= first_new] - first_new, last[last < first_new]
    return (
        (changes.keys.take(from_numpy(kept)), changes.numbers[kept]),
        (changes.deleted.take(from_numpy(gone)), changes.deleted_numbers[gone]),
    )


def make_records(keys: pa.Array, groups: Sequence[GroupKey], numbers: Numbers, millis: Numbers) -> pa.Table:
    """Make the records of keys.

    ``numbers``: for each key the number of its file group. ``millis``: the time of each group's instant
    (``find_epoch_millis``).
    """
    paths, file_ids = [path for path, _ in groups], [file_id for _, file_id in groups]
    kinds = from_numpy(np.full(len(keys), index_keys.RECORD_INDEX_TYPE, np.int32))
    locations = index_keys.make_locations(paths, file_ids, numbers, millis[numbers], None)
    return pa.table({KEY: keys, "type": kinds, RECORD_INDEX_COLUMN: locations})


def _make_commit_records(
    commit: MetadataCommit, groups: Sequence[GroupKey], keys: pa.Array, numbers: Numbers
) -> pa.Table:
    zone = parse_zone(commit.snapshot.timezone, commit.snapshot.config.timezone)
    millis = np.full(len(groups), find_epoch_millis(commit.instant, zone), np.int64)
    return make_records(keys, groups, numbers, millis)


def find_epoch_millis(instant: str, zone: tzinfo) -> int:
    """Return an instant's time in milliseconds since 1970; instants of 14 digits are seconds.

    Raises:
        InvalidTableError: the instant is no time.
    """
    try:
        seconds = datetime.strptime(instant[:14], _TIME_FORMAT).replace(tzinfo=zone)
        return int(seconds.astimezone(UTC).timestamp()) * 1000 + int(instant[14:17] or "999")
    except ValueError as error:
        raise InvalidTableError(f"The instant {instant[:30]!r} is no time.") from error


def _find_slice_millis(instant: str, zone: tzinfo) -> int:
    """Return a base instant in milliseconds since 1970; 0 if it is no time, such as a bootstrap's."""
    try:
        return find_epoch_millis(instant, zone)
    except InvalidTableError:
        return 0


@dataclass(frozen=True, slots=True)
class _PartitionedIndex:
    """The file groups of a partitioned index: their number in each partition of the table, at least one."""

    commit: MetadataCommit
    counts: dict[str, int]

    @classmethod
    def of(cls, commit: MetadataCommit, owners: Sequence[tuple[str | None, int]]) -> _PartitionedIndex:
        """Count the groups of each partition."""
        counts: dict[str, int] = {}
        for owner, _ in owners:
            if owner is None:
                raise InvalidTableError("The record index has file groups of both kinds.")
            counts[owner] = counts.get(owner, 0) + 1
        return cls(commit, counts)

    def place(self, changes: KeyChanges) -> PartitionRecords:
        """Make the records, each in a group of its partition. New partitions get as many groups as the options say."""
        (keys, numbers), (deleted, deleted_numbers) = settle_keys(changes, by_partition=True)
        touched = list(dict.fromkeys(path for path, _ in changes.groups))
        least = max(PARTITIONED_LEAST_GROUPS.read(self.commit.session.settings.options), 1)
        counts = {path: self.counts.get(path, least) for path in touched}
        names = [index_keys.make_group_id(number, path) for path, count in counts.items() for number in range(count)]
        firsts = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
        owners = np.array([touched.index(path) for path, _ in changes.groups], np.int64)
        every = group_changes.join_keys([keys, deleted])
        of = owners[np.concatenate([numbers, deleted_numbers])]
        group_of = np.zeros(len(every), np.int64)
        for number, path in enumerate(touched):
            at = np.flatnonzero(of == number)
            group_of[at] = firsts[path] + index_keys.find_file_groups(every.take(from_numpy(at)), counts[path])
        records = _make_commit_records(self.commit, changes.groups, keys, numbers)
        return PartitionRecords(RECORD_INDEX, records, deleted, group_of, names)
