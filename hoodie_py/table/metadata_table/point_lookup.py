"""Find the only file groups that have rows of some keys, before any file is listed (Hudi ``RecordLevelIndexSupport``,
``SecondaryIndexSupport``).

Record keys that a filter lists are looked up in the record index. Values of another column are looked up in a secondary
index, which has the record keys of each value. The rules:

* Both know the newest state of the table, with all logs merged. They say nothing of the past, nor of what base files
  still have.
* Record keys are unique: in the whole table where the index is global, else in each partition. Hudi's writers see to
  that, and the index has no more than one location for a key.
* A record of a secondary index that the record index lacks is a contradiction, and so is a location without a file
  group. Then neither is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.metadata_table.index_definitions import RECORD_INDEX, SECONDARY_PREFIX
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.table.filter.allowed_values import find_allowed_keys, find_allowed_values
from hoodie_py.table.filter.predicate import Predicate
from hoodie_py.table.metadata_table.record_locations import find_record_locations
from hoodie_py.table.metadata_table.secondary_lookup import find_keys_by_value
from hoodie_py.table.metadata_table.slice_filter import FilterRequest
from hoodie_py.table.metadata_table.soundness import check_index_files

GroupId = tuple[str, str]
"""Partition path and file id."""


@dataclass(frozen=True, slots=True)
class LocatedGroups:
    """The only file groups that may have rows that pass; ``index`` is the metadata table's partition that tells."""

    index: str
    groups: frozenset[GroupId]

    @property
    def partitions(self) -> list[str]:
        """The partition paths of the groups."""
        return sorted({path for path, _ in self.groups})

    def select(self, slices: Iterable[FileSlice]) -> list[FileSlice]:
        """Return those of all slices of ``partitions`` that are of the groups.

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
    """Say whether a table has an index of records that may tell about a filter."""
    if RECORD_INDEX not in config.metadata_partitions:
        return False
    if find_allowed_keys(config, schema, predicate) is not None:
        return True
    if not any(name.startswith(SECONDARY_PREFIX) for name in config.metadata_partitions):
        return False
    return any(find_allowed_values(predicate, name) is not None for name in predicate.columns)


def locate_groups(request: FilterRequest) -> LocatedGroups | None:
    """Return the only file groups that may have rows that pass a filter; None if no index of records tells.

    Raises:
        InvalidTableError: the indexes contradict each other, or are not what they should be.
        CorruptFileError, FileMissingError: the metadata table is damaged.
        StorageError: the store refused.
    """
    view = request.view
    if not view.has(RECORD_INDEX):
        return None
    check_index_files(view, RECORD_INDEX)
    keys = find_allowed_keys(request.config, request.columns.arrow, request.predicate)
    if keys is not None:
        return _locate(RECORD_INDEX, find_record_locations(view, pa.array(keys, pa.string())))
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
