"""Find the locations of records in the record index of the metadata table (Hudi ``SparkMetadataTableRecordIndex``,
``SparkMetadataTableGlobalRecordLevelIndex``).

Only the index is read, no data file, so the row numbers in base files stay unknown. The index is trusted: a key that it
lacks is new. But a file group that it names must belong to the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_chunks, number_strings
from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.indexes.definitions import RECORD_INDEX
from hoodie_py.formats.indexes.keys import Numbers, parse_group_id
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.indexes.keys import find_record_locations
from hoodie_py.table.indexes.soundness import may_have_no_groups
from hoodie_py.table.indexes.source import open_metadata_view
from hoodie_py.table.indexes.view import MetadataView
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.index.bucket_locations import group_by_partition, take_keys
from hoodie_py.writer.index.key_lookup import UNKNOWN_ROW, KeyLookup
from hoodie_py.writer.index.record_locations import NOWHERE, RecordLocations
from hoodie_py.writer.index_settings import IndexSettings
from hoodie_py.writer.records import TaggedRecords, WriteRecords

_HINT = "Drop the record index, and build it again."


def has_record_index(snapshot: Snapshot, index: IndexSettings) -> bool:
    """Whether a table's metadata table has the record index that a write names, global or by partition.

    Raises:
        HoodieError: the metadata table is damaged.
    """
    if RECORD_INDEX not in snapshot.config.metadata_partitions:
        return False
    view = open_metadata_view(snapshot)
    if view is None:
        return False
    by_partition = [parse_group_id(each.file_id)[0] is not None for each in view.list_groups(RECORD_INDEX)]
    if not by_partition and may_have_no_groups(view, RECORD_INDEX):
        by_partition = [True]
    return bool(by_partition) and all(each != index.is_global for each in by_partition)


def look_up_everywhere(snapshot: Snapshot, records: WriteRecords, _lookup: KeyLookup) -> RecordLocations:
    """Find records in any partition of the table; each key has one location in a global index.

    Raises:
        InvalidTableError: the index names a missing file group, or contains a key twice.
        CorruptFileError, FileMissingError: the metadata table is damaged.
        StorageError: the store refused.
    """
    found = _Found.of(snapshot, find_record_locations(_open(snapshot), join_chunks(records.keys)))
    distinct, codes = number_strings(records.keys)
    at = np.full(len(distinct), NOWHERE)
    places = found.find_places(distinct)
    if len(np.unique(places)) < len(places):
        raise InvalidTableError("The record index has a key twice.", hint=_HINT)
    at[places] = found.slice_numbers
    return _locate(found.slices, at[codes])


def look_up_in_partitions(snapshot: Snapshot, records: WriteRecords, _lookup: KeyLookup) -> RecordLocations:
    """Find each record in its partition; errors as ``look_up_everywhere``."""
    assert records.partition_paths is not None
    view = _open(snapshot)
    slices: list[FileSlice] = []
    at = np.full(len(records), NOWHERE)
    for partition, members in group_by_partition(records.partition_paths).items():
        distinct, codes = number_strings(take_keys(records, members))
        found = _Found.of(snapshot, find_record_locations(view, distinct, [partition]))
        here = np.full(len(distinct), NOWHERE)
        here[found.find_places(distinct)] = found.slice_numbers + len(slices)
        at[members] = here[codes]
        slices += found.slices
    return _locate(slices, at)


def tag_everywhere(snapshot: Snapshot, records: WriteRecords) -> TaggedRecords:
    """Tag records without a partition, once for every partition that contains their key.

    Errors as ``look_up_everywhere``.
    """
    keys, codes = number_strings(records.keys)
    last = np.empty(len(keys), np.int64)
    last[codes] = np.arange(len(codes))
    found = _Found.of(snapshot, find_record_locations(_open(snapshot), keys))
    homes = pa.array([each.partition_path for each in found.slices], pa.string()).take(from_numpy(found.slice_numbers))
    placed = replace(records.take(from_numpy(last[found.find_places(keys)])), partition_paths=pa.chunked_array([homes]))
    return _locate(found.slices, found.slice_numbers).tag_records(placed)


def _open(snapshot: Snapshot) -> MetadataView:
    view = open_metadata_view(snapshot)
    if view is None:
        raise InvalidTableError("The table has no metadata table any more.")
    return view


def _locate(slices: list[FileSlice], at: Numbers) -> RecordLocations:
    return RecordLocations(tuple(slices), at, np.full(len(at), UNKNOWN_ROW))


@dataclass(frozen=True, slots=True)
class _Found:
    """Locations of keys: the slices, and for each found key the number of its slice."""

    keys: pa.Array
    slices: list[FileSlice]
    slice_numbers: Numbers

    @classmethod
    def of(cls, snapshot: Snapshot, locations: pa.Table) -> _Found:
        """Find the slices of locations.

        Raises:
            InvalidTableError: a file group does not belong to the table.
        """
        codes = [join_chunks(locations[name]).dictionary_encode() for name in ("partition_path", "file_id")]
        paths, ids = (each.dictionary.to_pylist() for each in codes)
        of_path, of_id = (each.indices.to_numpy(zero_copy_only=False).astype(np.int64) for each in codes)
        groups, numbers = np.unique(of_path * max(len(ids), 1) + of_id, return_inverse=True)
        known = {(each.partition_path, each.file_id): each for each in _list_slices(snapshot, paths)}
        slices = []
        for group in groups.tolist():
            key = paths[group // len(ids)], ids[group % len(ids)]
            if key not in known:
                raise InvalidTableError(
                    "The record index names a file group that is not there.",
                    hint=_HINT,
                    partition=key[0],
                    file_group=key[1],
                )
            slices.append(known[key])
        return cls(join_chunks(locations["key"]), slices, numbers.reshape(-1).astype(np.int64))

    def find_places(self, keys: pa.Array) -> Numbers:
        """Return the position of each found key among distinct keys."""
        return np.asarray(pc.index_in(self.keys, value_set=keys).to_numpy(zero_copy_only=False), np.int64)


def _list_slices(snapshot: Snapshot, paths: list[str]) -> Iterator[FileSlice]:
    return iter(snapshot.view.list_slices(None, paths)) if paths else iter(())
