"""Handle records of a global index that the table has in another partition (Hudi ``HoodieIndexUtils``).

If records may move, the table's record is read and merged with the new one:

* If the table's record wins, nothing is written.
* If the result is a delete, it is a delete in the old partition.
* Else the result is a new record of the new partition, and the old partition gets a delete that is ordered by commit
  time.

If records do not move, they go to the partition that contains their key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_chunks, repeat_value, to_booleans
from hoodie_py.arrow.fields import read_field_values
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.schema_evolution.by_name import conform_batch
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.index.key_lookup import UNKNOWN_ROW, KeyLookup
from hoodie_py.writer.index.record_locations import NOWHERE, RecordLocations
from hoodie_py.writer.precombine.combine import MergedVersions, RecordVersions
from hoodie_py.writer.records import TaggedRecords, WriteRecords
from hoodie_py.writer.settings import WriteSettings

PartitionPaths = Callable[[pa.Table], pa.ChunkedArray]


def merge_partition_updates(
    snapshot: Snapshot,
    records: WriteRecords,
    locations: RecordLocations,
    lookup: KeyLookup,
    settings: WriteSettings,
    merger: Merger | None,
    partition_paths: PartitionPaths | None,
) -> TaggedRecords:
    """Tag records; records that the table has in other partitions move, or stay in the old partition.

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
    partition_paths: PartitionPaths | None,
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
    records: WriteRecords, paths: pa.Array, at: np.ndarray, partition_paths: PartitionPaths | None
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
