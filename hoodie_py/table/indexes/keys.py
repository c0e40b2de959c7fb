"""Indexes of record keys: where records are, and the only file groups with rows of some keys.

The record index maps record keys to locations (Hudi ``HoodieBackedTableMetadata``). A global index has a key once, in
the file group that its hash names. A partitioned index has file groups for each partition of the table, and a key once
in each partition that has it. Deleted keys have no location. A secondary index maps the values of another column to
record keys (``SecondaryIndexKeyUtils``), which are then looked up in the record index. So a filter on keys or such
values finds its file groups before any file is listed (``RecordLevelIndexSupport``, ``SecondaryIndexSupport``).

* Both kinds know the newest state of the table, with all logs merged. They say nothing of the past, nor of what base
  files still have.
* Record keys are unique: in the whole table if the index is global, else in each partition. Hudi's writers ensure that,
  and the index has at most one location for a key.
* A record of a secondary index that the record index lacks is a contradiction, and so is a location without a file
  group. Then neither index is used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_chunks, take
from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.indexes import definitions as index_definitions
from hoodie_py.formats.indexes import keys as index_keys
from hoodie_py.formats.indexes.definitions import IndexDefinition, IndexDefinitions
from hoodie_py.formats.indexes.record_schema import RECORD_INDEX_COLUMN
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.runtime.telemetry import carry_span
from hoodie_py.table.bounded import read_bounded
from hoodie_py.table.indexes.soundness import check_index_files, make_lost_groups, may_have_no_groups
from hoodie_py.table.indexes.view import KEY, MetadataView

if TYPE_CHECKING:  # writes look up locations of records, and need no filters
    from hoodie_py.table.filter.predicate import Predicate
    from hoodie_py.table.indexes.index import FilterRequest

LOCATIONS = pa.schema([
    ("key", pa.string()), ("partition_path", pa.string()), ("file_id", pa.string()), ("instant", pa.int64()),
])  # fmt: skip
"""A row for each location: ``instant`` is the time of the commit that added the key, in milliseconds since 1970."""

# Most keys of one file group that are looked up in the blocks that may have them; for more, the whole file group is
# read and its keys are compared.
_FEW = 1_000
_THREADS = 16
_Job = tuple[FileSlice, pa.Array]


def find_record_locations(
    view: MetadataView, keys: pa.Array | Sequence[str], partition_paths: Collection[str] | None = None
) -> pa.Table:
    """Return the locations of record keys, in no order, with the columns of ``LOCATIONS``.

    A key that the table does not have is left out; a key in several partitions comes once for each.
    ``partition_paths``: the only partitions of interest; None for all.

    Raises:
        InvalidTableError: there is no record index, or its file groups or records are invalid.
        CorruptFileError, FileMissingError: the metadata table is damaged.
        StorageError: the store refused.
    """
    if not view.has(index_definitions.RECORD_INDEX):
        raise InvalidTableError("The table has no record index.")
    wanted = pc.unique(pa.array(keys, pa.string()) if not isinstance(keys, pa.Array) else keys)
    jobs = [job for groups in _list_groups(view, partition_paths) for job in _divide(wanted, groups)]
    parts = _run(view, lambda job: _read_group(view, *job), jobs)
    found = pa.concat_tables([LOCATIONS.empty_table(), *parts])
    if partition_paths is not None and found.num_rows:
        found = found.filter(pc.is_in(found["partition_path"], pa.array(list(partition_paths), pa.string())))
    return found


def _list_groups(view: MetadataView, partition_paths: Collection[str] | None) -> Iterable[list[FileSlice]]:
    """Return the lists of file groups in which a key's hash chooses one.

    A global index has one list, others have one per partition.
    """
    by_partition: dict[str | None, list[FileSlice]] = {}
    for group in view.list_groups(index_definitions.RECORD_INDEX):
        partition, number = index_keys.parse_group_id(group.file_id)
        members = by_partition.setdefault(partition, [])
        if number != len(members):
            raise InvalidTableError("The record index lacks a file group.", file_group=group.file_id)
        members.append(group)
    if not by_partition and not may_have_no_groups(view, index_definitions.RECORD_INDEX):
        raise make_lost_groups(view, index_definitions.RECORD_INDEX)
    if None in by_partition and len(by_partition) > 1:
        raise InvalidTableError("The file groups of the record index are not those of one index.")
    if partition_paths is None or None in by_partition:
        return by_partition.values()
    return [groups for path, groups in by_partition.items() if path in set(partition_paths)]


def _divide(keys: pa.Array, groups: Sequence[FileSlice]) -> list[_Job]:
    """Give each file group the keys whose hash is its number."""
    if len(groups) == 1:
        return [(groups[0], keys)] if len(keys) else []
    numbers = index_keys.find_file_groups(keys, len(groups))
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(len(groups) + 1))
    parts = [order[ends[each] : ends[each + 1]] for each in range(len(groups))]
    return [(group, take(keys, from_numpy(at))) for group, at in zip(groups, parts, strict=True) if len(at)]


def _run(view: MetadataView, read: Callable[[_Job], pa.Table], jobs: Sequence[_Job]) -> list[pa.Table]:
    """Read the file groups of jobs; those of a remote table in parallel."""
    if len(jobs) < 2 or view.is_local:
        return [read(job) for job in jobs]
    with ThreadPoolExecutor(min(_THREADS, len(jobs)), "hoodie-record-index") as pool:
        return list(pool.map(carry_span(read), jobs))


def _read_group(view: MetadataView, group: FileSlice, keys: pa.Array) -> pa.Table:
    """Return the locations of some keys in a file group."""
    columns = [RECORD_INDEX_COLUMN]
    if len(keys) <= _FEW:
        return _make_locations(
            view.read_keys(index_definitions.RECORD_INDEX, keys.to_pylist(), columns, [group]), group
        )
    parts = []
    for batch in view.read_all(index_definitions.RECORD_INDEX, columns, [group]):
        kept = batch.filter(pc.is_in(batch.column(KEY), keys))
        if kept.num_rows:
            parts.append(_make_locations(pa.Table.from_batches([kept]), group))
    return pa.concat_tables([LOCATIONS.empty_table(), *parts])


def _make_locations(records: pa.Table, group: FileSlice) -> pa.Table:
    """Return the locations in records of the index."""
    if not records.num_rows:
        return LOCATIONS.empty_table()
    stored = join_chunks(records[RECORD_INDEX_COLUMN])
    if stored.null_count:
        raise InvalidTableError("A record of the record index has no location.", file_group=group.file_id)
    names, numbers = index_keys.read_file_ids(stored)
    partitions, instants = stored.field("partitionName"), stored.field("instantTime")
    if partitions.null_count or instants.null_count:
        raise InvalidTableError("A record of the record index has no partition or time.", file_group=group.file_id)
    file_ids = take(pa.array(names, pa.string()), from_numpy(numbers))
    columns = [join_chunks(records[KEY]), partitions, file_ids, instants]
    return pa.Table.from_arrays(
        [each.cast(field.type) for each, field in zip(columns, LOCATIONS, strict=True)], schema=LOCATIONS
    )


_MOST_VALUES = 1_000  # values to look up in a secondary index
_MOST_KEYS = 100_000  # beyond, rows are likely to be in most file groups
_UNESCAPED = r"[\\$\x00]"  # characters that early writers of secondary indexes may have left unescaped


@dataclass(frozen=True, slots=True)
class KeysByValue:
    """The distinct record keys that a secondary index has for the values that a filter allows."""

    index: str
    keys: pa.Array


def find_keys_by_value(request: FilterRequest) -> KeysByValue | None:
    """Look up the values that a filter allows, in the first secondary index that can answer; None if none can.

    Raises:
        InvalidTableError: the keys of the index are invalid.
        CorruptFileError, FileMissingError: the metadata table, or the file of index definitions, is damaged.
        StorageError: the store refused.
    """
    for definition, texts in _list_indexes(request):
        keys = _read_keys(request.view, definition, texts)
        if keys is not None:
            return KeysByValue(definition.name, keys)
    return None


def _list_indexes(request: FilterRequest) -> Iterator[tuple[IndexDefinition, pa.Array]]:
    """Yield the definitions of usable indexes, with the texts of all values of their column that can pass."""
    path = index_definitions.find_definitions_path(request.config)
    if path is None:
        return
    definitions = IndexDefinitions.from_bytes(read_bounded(request.files, path))
    for name in request.view.partitions:
        definition = definitions.get(name) if name.startswith(index_definitions.SECONDARY_PREFIX) else None
        if definition is None or len(definition.columns) != 1 or definition.columns[0] not in request.predicate.columns:
            continue
        texts = _list_texts(request, definition.columns[0])
        if texts is not None and _are_certain(texts, definition):
            yield definition, texts


def _list_texts(request: FilterRequest, column: str) -> pa.Array | None:
    """Return the texts of the only values of a column that can pass; None if that is not certain."""
    from hoodie_py.table.filter.allowed_values import find_allowed_values, spell_value

    values = find_allowed_values(request.predicate, column)
    if values is None or len(values) > _MOST_VALUES:
        return None
    type_ = request.columns.arrow.field(column).type
    texts: dict[str, None] = {}
    for value in values:
        spelt = spell_value(value, type_)
        if spelt is None:
            return None
        texts.update(dict.fromkeys(spelt))
    return pa.array(list(texts), pa.string())


def _are_certain(texts: pa.Array, definition: IndexDefinition) -> bool:
    """Whether the keys of an index spell the texts as here; a definition without version comes from an early writer."""
    return definition.version is not None or not pc.any(pc.match_substring_regex(texts, _UNESCAPED)).as_py()


def _read_keys(view: MetadataView, definition: IndexDefinition, texts: pa.Array) -> pa.Array | None:
    """Return the distinct record keys of values; None if they are too many."""
    prefixes = pc.binary_join_element_wise(index_keys.escape_secondary_values(texts), "", "$")
    groups = view.list_groups(definition.name)
    numbers = index_keys.find_file_groups(prefixes, len(groups))
    # Keys begin with the value. From version 2 on all keys of a value are in one file group, in version 1 in any.
    by_value = (definition.version or 1) > 1
    found: list[pa.Array] = []
    count = 0
    for number, group in enumerate(groups):
        chosen = take(prefixes, from_numpy(np.flatnonzero(numbers == number))) if by_value else prefixes
        if not len(chosen):
            continue
        keys = view.read_prefixes(definition.name, chosen.to_pylist(), [], [group])[KEY]
        count += len(keys)
        if count > _MOST_KEYS:
            return None
        found += [index_keys.split_secondary_keys(chunk)[1] for chunk in keys.chunks]
    return pc.unique(pa.chunked_array(found, pa.string()))


GroupId = tuple[str, str]
"""Partition path and file id."""


@dataclass(frozen=True, slots=True)
class LocatedGroups:
    """The only file groups that may have rows that pass; ``index`` is the metadata table's partition that was asked."""

    index: str
    groups: frozenset[GroupId]

    @property
    def partitions(self) -> list[str]:
        """The partition paths of the groups."""
        return sorted({path for path, _ in self.groups})

    def select(self, slices: Iterable[FileSlice]) -> list[FileSlice]:
        """Return the slices of these groups, from all slices of ``partitions``.

        Raises InvalidTableError if a group has no slice.
        """
        found = {(each.partition_path, each.file_id): each for each in slices}
        strange = min(self.groups - found.keys(), default=None)
        if strange is not None:
            raise InvalidTableError(
                "The record index has a key in a file group that the table does not have.",
                partition=strange[0],
                file_group=strange[1],
            )
        return [each for group, each in found.items() if group in self.groups]


def may_locate(config: TableConfig, schema: pa.Schema, predicate: Predicate) -> bool:
    """Say whether a table has an index of records that may be able to use a filter."""
    if index_definitions.RECORD_INDEX not in config.metadata_partitions:
        return False
    from hoodie_py.table.filter.allowed_values import find_allowed_keys, find_allowed_values

    if find_allowed_keys(config, schema, predicate) is not None:
        return True
    if not any(name.startswith(index_definitions.SECONDARY_PREFIX) for name in config.metadata_partitions):
        return False
    return any(find_allowed_values(predicate, name) is not None for name in predicate.columns)


def locate_groups(request: FilterRequest) -> LocatedGroups | None:
    """Return the only file groups that may have rows that pass a filter; None if no index of records can say.

    Raises:
        InvalidTableError: the indexes contradict each other, or are invalid.
        CorruptFileError, FileMissingError: the metadata table is damaged.
        StorageError: the store refused.
    """
    view = request.view
    if not view.has(index_definitions.RECORD_INDEX):
        return None
    from hoodie_py.table.filter.allowed_values import find_allowed_keys

    check_index_files(view, index_definitions.RECORD_INDEX)
    keys = find_allowed_keys(request.config, request.columns.arrow, request.predicate)
    if keys is not None:
        return _locate(index_definitions.RECORD_INDEX, find_record_locations(view, pa.array(keys, pa.string())))
    found = find_keys_by_value(request)
    if found is None:
        return None
    check_index_files(view, found.index)
    locations = find_record_locations(view, found.keys)
    if len(pc.unique(locations["key"])) < len(found.keys):
        raise InvalidTableError("A secondary index has a record that the record index lacks.", index=found.index)
    return _locate(found.index, locations)


def _locate(index: str, locations: pa.Table) -> LocatedGroups:
    places = locations.select(["partition_path", "file_id"]).group_by(["partition_path", "file_id"]).aggregate([])
    pairs = zip(places["partition_path"].to_pylist(), places["file_id"].to_pylist(), strict=True)
    return LocatedGroups(index, frozenset(pairs))
