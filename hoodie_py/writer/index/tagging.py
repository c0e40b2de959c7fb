"""Tag each record of a write with the file group that contains its key; a new record gets none.

Agrees with Hudi's indexes (``HoodieSimpleIndex``, ``HoodieBloomIndex``, ``HoodieSimpleBucketIndex``,
``HoodieIndexUtils``):

* SIMPLE, BLOOM: a key is looked up in the record's partition.
* GLOBAL_SIMPLE, GLOBAL_BLOOM: a key is looked up in all partitions. A record found in another partition is merged with
  the table's record. If it wins it moves: the old partition gets a delete that is ordered by commit time, the new one
  an insert. If records do not move, it goes to the old partition.
* RECORD_LEVEL_INDEX: as SIMPLE, but the metadata table locates the keys; GLOBAL_RECORD_LEVEL_INDEX (RECORD_INDEX): as
  GLOBAL_SIMPLE.
* BUCKET: the hash of the key determines the file group, whether or not the group contains the key yet.

If base files of two groups contain a key, it belongs to the group in which a merged read returns it: a log may have
deleted it in the other, as a move between partitions does. If a key lives in several groups, as after inserts without a
look-up, its record goes to all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, number_strings
from hoodie_py.errors import ConflictError
from hoodie_py.options.clustering import ROLLBACK_ON_CONFLICT
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.index.bucket_locations import (
    find_slices_by_partition,
    group_by_partition,
    group_slices,
    tag_by_bucket,
    take_keys,
)
from hoodie_py.writer.index.key_lookup import UNKNOWN_ROW, KeyLookup, KeyLookupRequest, KeyLookupResult
from hoodie_py.writer.index.partition_moves import PartitionPaths, merge_partition_updates
from hoodie_py.writer.index.record_index_lookup import (
    has_record_index,
    look_up_everywhere,
    look_up_in_partitions,
    tag_everywhere,
)
from hoodie_py.writer.index.record_locations import NOWHERE, RecordLocations, choose_live_locations
from hoodie_py.writer.index_settings import IndexSettings
from hoodie_py.writer.records import TaggedRecords, WriteRecords
from hoodie_py.writer.settings import WriteSettings

_Look = Callable[[Snapshot, WriteRecords, KeyLookup], RecordLocations]


class PlannedForClusteringError(ConflictError):
    """Records belong to a file group that a pending clustering replaces; ``where`` contains its ``instant``."""


def tag(
    snapshot: Snapshot,
    records: WriteRecords,
    settings: WriteSettings,
    merger: Merger | None = None,
    partition_paths: PartitionPaths | None = None,
    lookup: KeyLookup | None = None,
) -> TaggedRecords:
    """Find the file group of each record.

    The records are the result of ``combine``, and keep their order. ``partition_paths`` computes the paths of rows that
    a merge makes while a record moves. If ``lookup`` is None, the table's files are read.

    Returns:
        The records with their locations, in their order.

        With a global index, records that lost against the record of another partition are dropped, and deletes in old
        partitions come last. Deletes without a partition are repeated for each location of their key, and dropped if it
        has none. With a bucket index, a new record is tagged with the file group of its bucket, or with a new file id.

    Raises:
        InvalidTableError: two file groups have one bucket.
        InvalidQueryError: the file groups do not fit the options' bucket index.
        PlannedForClusteringError: a pending clustering replaces a file group of the records.
        UnsupportedFeatureError: the index is not handled.
    """
    index = settings.index
    if index.is_bucket and records.partition_paths is not None:
        tagged = tag_by_bucket(snapshot, records, index)
    else:
        keys = KeyLookup(snapshot, settings, merger) if lookup is None else lookup
        by_index = lookup is None and index.is_record_index and has_record_index(snapshot, index)
        if records.partition_paths is None:
            tagged = tag_everywhere(snapshot, records) if by_index else _tag_everywhere(snapshot, records, keys, index)
        elif index.is_global:
            look: _Look = look_up_everywhere if by_index else _look_up_globally
            repeated, locations = _look_up_in_passes(look, snapshot, records, keys).expand(records)
            tagged = merge_partition_updates(snapshot, repeated, locations, keys, settings, merger, partition_paths)
        else:
            look = look_up_in_partitions if by_index else _look_up_in_partitions
            tagged = _look_up_in_passes(look, snapshot, records, keys).tag_records(records)
    _check_clustering(snapshot, tagged)
    return tagged


def _look_up_in_passes(look: _Look, snapshot: Snapshot, records: WriteRecords, lookup: KeyLookup) -> RecordLocations:
    """Find locations of as many records at a time as the memory budget allows."""
    step = lookup.keys_at_once
    if len(records) <= step:
        return look(snapshot, records, lookup)
    runs = [np.arange(start, min(start + step, len(records))) for start in range(0, len(records), step)]
    parts = [look(snapshot, _select_keys(records, run), lookup) for run in runs]
    return RecordLocations.concatenate(parts, [len(run) for run in runs])


def _select_keys(records: WriteRecords, run: np.ndarray) -> WriteRecords:
    """Return a run of records without their data."""
    first, count = int(run[0]), len(run)
    paths = None if records.partition_paths is None else records.partition_paths.slice(first, count)
    return WriteRecords(pa.table({}), records.keys.slice(first, count), paths)


def _look_up_in_partitions(snapshot: Snapshot, records: WriteRecords, lookup: KeyLookup) -> RecordLocations:
    """Find each record in its partition."""
    assert records.partition_paths is not None
    members = group_by_partition(records.partition_paths)
    slices = find_slices_by_partition(snapshot, members)
    wanted, groups = [], []
    for partition, at in members.items():
        if partition in slices:
            keys, codes = number_strings(take_keys(records, at))
            wanted.append(KeyLookupRequest(keys, slices[partition]))
            groups.append((at, codes))
    found = choose_live_locations(
        lookup.find(wanted), wanted, lookup, only_alive=False, every_row=lookup.writes_positions
    )
    at, rows = np.full(len(records), NOWHERE), np.full(len(records), UNKNOWN_ROW)
    cuts = np.searchsorted(found.groups, np.arange(len(wanted) + 1))
    copies, first = [], 0
    for group, (group_members, codes) in enumerate(groups):
        here = found.take(np.arange(cuts[group], cuts[group + 1]))
        at[group_members], rows[group_members] = _spread_locations(here, codes, len(wanted[group].keys), first)
        copies.append(_find_copies(here, codes, group_members, first))
        first += len(wanted[group].slices)
    looked_in = tuple(itertools.chain.from_iterable(each.slices for each in wanted))
    return _add_copies(RecordLocations(looked_in, at, rows), copies)


def _look_up_globally(snapshot: Snapshot, records: WriteRecords, lookup: KeyLookup) -> RecordLocations:
    """Find each record in any partition where it is alive."""
    keys, codes = number_strings(records.keys)
    wanted = KeyLookupRequest(keys, snapshot.view.list_slices())
    found = choose_live_locations(lookup.find([wanted]), [wanted], lookup, only_alive=True)
    at, rows = _spread_locations(found, codes, len(keys), 0)
    copies = _find_copies(found, codes, np.arange(len(records)), 0)
    return _add_copies(RecordLocations(tuple(wanted.slices), at, rows), [copies])


def _tag_everywhere(
    snapshot: Snapshot, records: WriteRecords, lookup: KeyLookup, index: IndexSettings
) -> TaggedRecords:
    """Tag records without a partition, once for every partition that contains their key."""
    keys, codes = number_strings(records.keys)
    last = np.empty(len(keys), np.int64)
    last[codes] = np.arange(len(codes))
    slices = snapshot.view.list_slices()
    if index.is_global:
        wanted = [KeyLookupRequest(keys, slices)]
    else:
        wanted = [KeyLookupRequest(keys, each) for each in group_slices(slices).values()]
    every_row = lookup.writes_positions and not index.is_global
    found = choose_live_locations(lookup.find(wanted), wanted, lookup, only_alive=index.is_global, every_row=every_row)
    starts = np.cumsum([0, *(len(each.slices) for each in wanted)])
    everywhere = tuple(itertools.chain.from_iterable(each.slices for each in wanted))
    at = starts[found.groups] + found.slices
    homes = pa.array([each.partition_path for each in everywhere], pa.string()).take(from_numpy(at))
    placed = replace(records.take(from_numpy(last[found.keys])), partition_paths=pa.chunked_array([homes]))
    return RecordLocations(everywhere, at, found.rows).tag_records(placed)


def _spread_locations(
    found: KeyLookupResult, codes: np.ndarray, count: int, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return slice and row of each record; slices are numbered from ``first`` on."""
    at, rows = np.full(count, NOWHERE), np.full(count, UNKNOWN_ROW)
    at[found.keys], rows[found.keys] = first + found.slices, found.rows
    return at[codes], rows[codes]


def _find_copies(found: KeyLookupResult, codes: np.ndarray, members: np.ndarray, first: int) -> np.ndarray:
    """Return the further locations of records whose key is in several slices: rows of record, slice and row number."""
    again = np.flatnonzero(np.diff(found.keys) == 0)  # ``_spread_locations`` has taken the last location of each key
    if not len(again):
        return np.empty((3, 0), np.int64)
    at, slices, rows = found.keys[again], first + found.slices[again], found.rows[again]
    # Several records may have one key: ``starts`` and ``counts`` find them in the order by key.
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], at, side="left")
    counts = np.searchsorted(codes[order], at, side="right") - starts
    copy = np.repeat(np.arange(len(at)), counts)
    within = np.arange(len(copy)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([members[order[starts[copy] + within]], slices[copy], rows[copy]])


def _add_copies(locations: RecordLocations, copies: Sequence[np.ndarray]) -> RecordLocations:
    """Return locations with the further locations of some records, in the order of the records."""
    of, at, rows = np.concatenate([np.empty((3, 0), np.int64), *copies], axis=1)
    if not len(of):
        return locations
    of = np.concatenate([np.arange(len(locations.slice_numbers)), of])
    order = np.argsort(of, kind="stable")
    at, rows = np.concatenate([locations.slice_numbers, at])[order], np.concatenate([locations.rows, rows])[order]
    return RecordLocations(locations.slices, at, rows, of[order])


def _check_clustering(snapshot: Snapshot, tagged: TaggedRecords) -> None:
    """Refuse records in file groups that a pending clustering replaces, as Java Hudi does by default."""
    pending = snapshot.timeline.select_pending_replacements()
    if not pending:
        return
    held: dict[str, str] = {}
    for instant in pending:
        plan = snapshot.timeline.read_replace_plan(instant)
        held.update((file_id, instant.request_time) for _, file_id in plan.iterate_file_groups())
    touched = set(tagged.file_ids.unique().to_pylist()) & held.keys()
    if touched:
        first = min(touched)
        raise PlannedForClusteringError(
            "A pending clustering replaces a file group that records belong to.",
            file_group=first,
            instant=held[first],
            hint="Let the clustering finish, or roll it back. With SparkAllowUpdateStrategy and "
            f"{ROLLBACK_ON_CONFLICT}=true the write does that.",
        )
