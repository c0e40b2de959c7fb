"""Tag each record of a write with the file group that contains its key; a new record gets none.

Agrees with Hudi's indexes (``HoodieSimpleIndex``, ``HoodieBloomIndex``, ``HoodieSimpleBucketIndex``,
``HoodieIndexUtils``):

* SIMPLE, BLOOM: a key is looked up in the record's partition.
* GLOBAL_SIMPLE, GLOBAL_BLOOM: a key is looked up in all partitions. A record found in another partition moves, or goes
  to the old partition (``_merge_partition_updates``).
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
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_chunks, number_strings, repeat_value, to_booleans
from hoodie_py.arrow.fields import read_field_values
from hoodie_py.errors import ConflictError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.options.clustering import ROLLBACK_ON_CONFLICT
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.schema_evolution.by_name import conform_batch
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.index.bucket_locations import (
    find_slices_by_partition,
    group_by_partition,
    group_slices,
    tag_by_bucket,
    take_keys,
)
from hoodie_py.writer.index.key_lookup import UNKNOWN_ROW, KeyLookup, KeyLookupRequest, KeyLookupResult
from hoodie_py.writer.index.record_index_lookup import (
    has_record_index,
    look_up_everywhere,
    look_up_in_partitions,
    tag_everywhere,
)
from hoodie_py.writer.index.record_locations import NOWHERE, RecordLocations, choose_live_locations
from hoodie_py.writer.index_settings import IndexSettings
from hoodie_py.writer.precombine.versions import MergedVersions, RecordVersions
from hoodie_py.writer.records import TaggedRecords, WriteRecords
from hoodie_py.writer.settings import WriteSettings

_Look = Callable[[Snapshot, WriteRecords, KeyLookup], RecordLocations]

_PartitionPaths = Callable[[pa.Table], pa.ChunkedArray]


class PlannedForClusteringError(ConflictError):
    """Records belong to a file group that a pending clustering replaces; ``where`` contains its ``instant``."""


def tag(
    snapshot: Snapshot,
    records: WriteRecords,
    settings: WriteSettings,
    merger: Merger | None = None,
    partition_paths: _PartitionPaths | None = None,
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
            tagged = _merge_partition_updates(snapshot, repeated, locations, keys, settings, merger, partition_paths)
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


def _merge_partition_updates(
    snapshot: Snapshot,
    records: WriteRecords,
    locations: RecordLocations,
    lookup: KeyLookup,
    settings: WriteSettings,
    merger: Merger | None,
    partition_paths: _PartitionPaths | None,
) -> TaggedRecords:
    """Tag records; records that the table has in other partitions move, or stay in the old partition.

    If records may move, the table's record is read and merged with the new one (Hudi ``HoodieIndexUtils``):

    * If the table's record wins, nothing is written.
    * If the result is a delete, it is a delete in the old partition.
    * Else the result is a new record of the new partition, and the old partition gets a delete that is ordered by
      commit time.

    If records do not move, they go to the partition that contains their key.

    Each key occurs once; locations are in any partition. ``partition_paths`` computes the paths of rows that a merge
    makes.

    Raises:
        MergeError: merging failed.
        InvalidTableError: the record index is wrong.
        UnsupportedFeatureError: a merge made a new row, and ``partition_paths`` is missing.
    """
    assert records.partition_paths is not None
    homes = pa.array([each.partition_path for each in locations.slices], pa.string())
    missing = locations.slice_numbers == NOWHERE
    home = homes.take(from_numpy(np.where(missing, 0, locations.slice_numbers), missing))
    own = join_chunks(records.partition_paths)
    elsewhere = ~missing & ~to_booleans(pc.equal(home, own).fill_null(True))
    if not elsewhere.any():
        return locations.tag_records(records)
    stay = elsewhere.copy()
    if settings.index.update_partition and snapshot.config.partition_fields:
        stay &= records.delete_mask
    paths = pc.if_else(from_numpy(stay), home, own)
    moved = _replace_paths(records, paths)
    moving = np.flatnonzero(elsewhere & ~stay)
    if not len(moving):
        return locations.tag_records(moved)
    existing, which = _read_existing(snapshot, moved, locations.take(moving), moving, lookup)
    versions = RecordVersions(moved, snapshot, settings, merger, existing)
    met = versions.merge_with_existing(moving, which)
    return _split_moves(moved, locations, home, versions, met, partition_paths)


def _read_existing(
    snapshot: Snapshot, records: WriteRecords, locations: RecordLocations, moving: np.ndarray, lookup: KeyLookup
) -> tuple[WriteRecords, np.ndarray]:
    """Read the table's records of moving keys; also return the number of the existing record for each moving one."""
    keys = join_chunks(records.keys.take(from_numpy(moving)))
    tables, paths, which, read = [], [], np.full(len(moving), NOWHERE), 0
    for number in np.unique(locations.slice_numbers).tolist():
        here = np.flatnonzero(locations.slice_numbers == number)
        rows, key_numbers = lookup.read_rows(locations.slices[number], keys.take(from_numpy(here)))
        which[here[key_numbers]] = read + np.arange(len(key_numbers))
        read += len(key_numbers)
        tables.append(rows)
        paths.append(repeat_value(locations.slices[number].partition_path, pa.string(), len(rows)))
    lost = np.flatnonzero(which == NOWHERE)
    if len(lost):  # only an index can name such keys: a look-up in files finds only keys that a merged read returns
        raise InvalidTableError(
            "The record index has a key where the table has no record.",
            hint="Drop the record index, and build it again.",
            key=keys[int(lost[0])].as_py(),
        )
    table = pa.concat_tables(tables)
    batches = [conform_batch(batch, records.rows.schema) for batch in table.to_batches()]
    fields = snapshot.config.ordering_fields if records.ordering else ()
    ordering = tuple(
        pa.chunked_array([read_field_values(batch, name) for batch in table.to_batches()]).cast(column.type)
        for name, column in zip(fields, records.ordering, strict=True)
    )
    own_keys = [lookup.record_keys.read_keys(batch) for batch in table.to_batches()]
    found = WriteRecords(
        pa.Table.from_batches(batches, records.rows.schema),
        pa.chunked_array(own_keys, pa.string()),
        pa.chunked_array(paths, pa.string()),
        None,
        ordering,
    )
    return found, which


def _split_moves(
    records: WriteRecords,
    locations: RecordLocations,
    home: pa.Array,
    versions: RecordVersions,
    met: MergedVersions,
    partition_paths: _PartitionPaths | None,
) -> TaggedRecords:
    """Return the records that stay, the new records of moving ones, and deletes in the old partitions."""
    lost, dies = versions.find_lost(met), met.result.deletes
    kept = np.setdiff1d(np.arange(len(records)), met.at[lost])
    winners = np.flatnonzero(~lost)
    result = versions.replace_merged(
        np.setdiff1d(kept, met.at), MergedVersions(met.result.take(winners), met.at[winners])
    )
    made = np.zeros(len(records), bool)
    made[met.at] = versions.find_made_rows(met)
    dead = np.zeros(len(records), bool)
    dead[met.at] = dies
    goes = np.zeros(len(records), bool)
    goes[met.at] = True
    made, dead, goes = made[kept], dead[kept], goes[kept]
    homes = home.take(from_numpy(kept))
    assert result.partition_paths is not None
    paths = join_chunks(result.partition_paths)
    if made.any():
        paths = _recompute_paths(result, paths, np.flatnonzero(made & ~dead), partition_paths)
    stays = dead | (goes & to_booleans(pc.equal(homes, paths).fill_null(False)))
    result = _replace_paths(result, pc.if_else(from_numpy(dead), homes, paths))
    leaves = np.flatnonzero(goes & ~stays)
    here = locations.take(kept)
    at, rows = here.slice_numbers.copy(), here.rows.copy()
    at[leaves], rows[leaves] = NOWHERE, UNKNOWN_ROW
    old = _make_deletes(result.take(leaves), homes.take(from_numpy(leaves)))
    both = RecordLocations(
        locations.slices, np.concatenate([at, here.slice_numbers[leaves]]), np.concatenate([rows, here.rows[leaves]])
    )
    return both.tag_records(_concatenate(result, old))


def _recompute_paths(
    records: WriteRecords, paths: pa.Array, at: np.ndarray, partition_paths: _PartitionPaths | None
) -> pa.Array:
    """Return partition paths; the paths of rows that a merge made are computed from the row."""
    if not len(at):
        return paths
    if partition_paths is None:
        raise UnsupportedFeatureError("Merging records that move between partitions without their key generator.")
    fresh = join_chunks(partition_paths(records.rows.take(from_numpy(at))))
    back = np.arange(len(paths))  # Arrow cannot assign to places: append the new paths, then gather
    back[at] = len(paths) + np.arange(len(at))
    return pa.concat_arrays([paths, fresh]).take(from_numpy(back))


def _make_deletes(records: WriteRecords, paths: pa.Array) -> WriteRecords:
    """Make deletes of records in other partitions, ordered by commit time."""
    count = len(records)
    ordering = tuple(pa.chunked_array([pa.nulls(count, column.type)]) for column in records.ordering)
    deletes = pa.chunked_array([from_numpy(np.ones(count, bool))])
    return WriteRecords(records.rows, records.keys, pa.chunked_array([paths]), deletes, ordering)


def _concatenate(first: WriteRecords, second: WriteRecords) -> WriteRecords:
    assert first.partition_paths is not None
    assert second.partition_paths is not None
    return WriteRecords(
        pa.concat_tables([first.rows, second.rows]),
        _concatenate_chunks(first.keys, second.keys),
        _concatenate_chunks(first.partition_paths, second.partition_paths),
        pa.chunked_array([from_numpy(first.delete_mask), from_numpy(second.delete_mask)]),
        tuple(_concatenate_chunks(*pair) for pair in zip(first.ordering, second.ordering, strict=True)),
    )


def _concatenate_chunks(first: pa.ChunkedArray, second: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([*first.chunks, *second.chunks], first.type)


def _replace_paths(records: WriteRecords, paths: pa.Array) -> WriteRecords:
    return replace(records, partition_paths=pa.chunked_array([paths]))
