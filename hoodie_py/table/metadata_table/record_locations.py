"""Where records are, by the record index of a table's metadata table (Hudi ``HoodieBackedTableMetadata``).

A global index has a key once, in the file group that its hash names. A partitioned index has file groups for each
partition of the table, and a key once in each partition that has it. Deleted keys have no location.

Few keys are looked up in the blocks that may have them; for many, a file group is read whole and its keys compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_chunks
from hoodie_py.arrow.compute import take
from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.metadata_table.index_definitions import RECORD_INDEX
from hoodie_py.formats.metadata_table.record_index_keys import (
    RECORD_INDEX_COLUMN,
    find_file_groups,
    parse_group_id,
    read_file_ids,
)
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.table.metadata_table.no_groups import make_lost_groups, may_have_no_groups
from hoodie_py.table.metadata_table.view import KEY, MetadataView

LOCATIONS = pa.schema([
    ("key", pa.string()), ("partition_path", pa.string()), ("file_id", pa.string()), ("instant", pa.int64()),
])  # fmt: skip
"""A row for each location: ``instant`` is the time of the commit that added the key, in milliseconds since 1970."""

_FEW = 1_000  # keys of one file group that are looked up block by block
_THREADS = 16
_Job = tuple[FileSlice, pa.Array]


def find_record_locations(
    view: MetadataView, keys: pa.Array | Sequence[str], partition_paths: Collection[str] | None = None
) -> pa.Table:
    """Return the locations of record keys, in no order, with the columns of ``LOCATIONS``.

    A key that the table does not have is left out, one that several partitions have comes for each. ``partition_paths``
    are the only partitions of interest, None for all.

    Raises:
        InvalidTableError: there is no record index, or its file groups or records are not those of one.
        CorruptFileError, FileMissingError: the metadata table is damaged.
        StorageError: the store refused.
    """
    if not view.has(RECORD_INDEX):
        raise InvalidTableError("The table has no record index.")
    wanted = pc.unique(pa.array(keys, pa.string()) if not isinstance(keys, pa.Array) else keys)
    jobs = [job for groups in _list_groups(view, partition_paths) for job in _divide(wanted, groups)]
    parts = _run(view, lambda job: _read_group(view, *job), jobs)
    found = pa.concat_tables([LOCATIONS.empty_table(), *parts])
    if partition_paths is not None and found.num_rows:
        found = found.filter(pc.is_in(found["partition_path"], pa.array(list(partition_paths), pa.string())))
    return found


def _list_groups(view: MetadataView, partition_paths: Collection[str] | None) -> Iterable[list[FileSlice]]:
    """Return the file groups among which a key's hash chooses: all of a global index, or those of each partition."""
    by_partition: dict[str | None, list[FileSlice]] = {}
    for group in view.list_groups(RECORD_INDEX):
        partition, number = parse_group_id(group.file_id)
        members = by_partition.setdefault(partition, [])
        if number != len(members):
            raise InvalidTableError("The record index lacks a file group.", file_group=group.file_id)
        members.append(group)
    if not by_partition and not may_have_no_groups(view, RECORD_INDEX):
        raise make_lost_groups(view, RECORD_INDEX)
    if None in by_partition and len(by_partition) > 1:
        raise InvalidTableError("The file groups of the record index are not those of one index.")
    if partition_paths is None or None in by_partition:
        return by_partition.values()
    return [groups for path, groups in by_partition.items() if path in set(partition_paths)]


def _divide(keys: pa.Array, groups: Sequence[FileSlice]) -> list[_Job]:
    """Give each file group the keys that its number is the hash of."""
    if len(groups) == 1:
        return [(groups[0], keys)] if len(keys) else []
    numbers = find_file_groups(keys, len(groups))
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(len(groups) + 1))
    parts = [order[ends[each] : ends[each + 1]] for each in range(len(groups))]
    return [(group, take(keys, from_numpy(at))) for group, at in zip(groups, parts, strict=True) if len(at)]


def _run(view: MetadataView, read: Callable[[_Job], pa.Table], jobs: Sequence[_Job]) -> list[pa.Table]:
    """Read the file groups of jobs, those of a remote table at once."""
    if len(jobs) < 2 or view.is_local:
        return [read(job) for job in jobs]
    with ThreadPoolExecutor(min(_THREADS, len(jobs)), "hoodie-record-index") as pool:
        return list(pool.map(carry_span(read), jobs))


def _read_group(view: MetadataView, group: FileSlice, keys: pa.Array) -> pa.Table:
    """Return the locations of some keys in a file group."""
    columns = [RECORD_INDEX_COLUMN]
    if len(keys) <= _FEW:
        return _make_locations(view.read_keys(RECORD_INDEX, keys.to_pylist(), columns, [group]), group)
    parts = []
    for batch in view.read_all(RECORD_INDEX, columns, [group]):
        kept = batch.filter(pc.is_in(batch.column(KEY), keys))
        if kept.num_rows:
            parts.append(_make_locations(pa.Table.from_batches([kept]), group))
    return pa.concat_tables([LOCATIONS.empty_table(), *parts])


def _make_locations(records: pa.Table, group: FileSlice) -> pa.Table:
    """Return the locations that records of the index tell."""
    if not records.num_rows:
        return LOCATIONS.empty_table()
    stored = join_chunks(records[RECORD_INDEX_COLUMN])
    if stored.null_count:
        raise InvalidTableError("A record of the record index has no location.", file_group=group.file_id)
    names, numbers = read_file_ids(stored)
    partitions, instants = stored.field("partitionName"), stored.field("instantTime")
    if partitions.null_count or instants.null_count:
        raise InvalidTableError("A record of the record index has no partition or time.", file_group=group.file_id)
    file_ids = take(pa.array(names, pa.string()), from_numpy(numbers))
    columns = [join_chunks(records[KEY]), partitions, file_ids, instants]
    return pa.Table.from_arrays(
        [each.cast(field.type) for each, field in zip(columns, LOCATIONS, strict=True)], schema=LOCATIONS
    )
