"""The records of the partitions ``secondary_index_*``: the record keys of each value of a column (Hudi
``SecondaryIndexRecordGenerationUtils``, ``SecondaryIndexStreamingTracker``).

A file group's rows are compared as they were and as they are, read before the lock:

    a new row                     a record for its value
    a row that is gone            its record is deleted
    a row with another value      the old record is deleted, the new value gets one
    compactions                   nothing, but for rows that come back (``returning_keys``)
    cleans                        nothing

For a new log file only its keys are compared. A row that moves to another file group with the same value keeps its
record. Null is a value, too. Java refuses to replace file groups of a table with a secondary index; here the records of
their rows are deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.errors import InvalidTableError
from hoodie_py.formats.indexes import keys as index_keys
from hoodie_py.formats.indexes.definitions import find_index_version
from hoodie_py.formats.indexes.record_schema import SECONDARY_INDEX_COLUMN
from hoodie_py.table.indexes.soundness import make_lost_groups
from hoodie_py.table.indexes.view import MetadataView, read_definitions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.indexes import group_changes
from hoodie_py.writer.indexes.group_changes import GroupChange
from hoodie_py.writer.indexes.index import GroupPlan, Groups, Index, MetadataCommit, PartitionRecords, Portion
from hoodie_py.writer.indexes.returning_keys import KeyComparison, compare_compaction, compare_write
from hoodie_py.writer.indexes.slice_rows import KEY, VALUE, SliceRows
from hoodie_py.writer.indexes.table_source import IndexSource


@dataclass(frozen=True, slots=True)
class SecondaryKeys(Index):
    """A partition ``secondary_index_*``. A check compares each value with its record key."""

    compared: KeyComparison | None = None
    """The values that an instant adds and removes; None if it changes no values, as a rollback."""

    def prepare(self, change: MetadataCommit) -> Self:
        """Find the values that a commit of records changes.

        Raises:
            InvalidTableError: the index has no definition.
            UnsupportedFeatureError: the column's type cannot be indexed.
            HoodieError: a data file cannot be read, or a merger is missing.
        """
        if change.kind not in ("compaction", "write"):
            return self
        column = find_column(change.snapshot, self.partition)
        if change.kind == "compaction":
            return replace(self, compared=compare_compaction(change, find_value_changes, column))
        return replace(
            self, compared=compare_write(change, find_value_changes, group_changes.list_group_changes(change), column)
        )

    def records(self, change: MetadataCommit, view: MetadataView) -> PartitionRecords:
        """Make the records of a commit.

        Raises:
            InvalidTableError: the index has lost its file groups.
        """
        if self.compared is None:
            return PartitionRecords(self.partition, make_records(group_changes.join_keys([])))
        compared = self.compared.bring_up_to_date(change)
        new = pc.unique(group_changes.join_keys([each for each, _ in compared.found]))
        deleted = group_changes.subtract(pc.unique(group_changes.join_keys([each for _, each in compared.found])), new)
        config = change.snapshot.config
        version = find_index_version(self.partition, read_definitions(change.snapshot.files, config), config.version)
        count = view.count_groups(self.partition)
        if not count:
            raise make_lost_groups(view, self.partition)
        groups = index_keys.find_secondary_groups(group_changes.join_keys([new, deleted]), count, version)
        return PartitionRecords(self.partition, make_records(new), deleted, groups)

    def portions(self, source: IndexSource, groups: GroupPlan) -> Iterator[Portion]:
        """Yield the column's value and the key of each record of the newest slices.

        Raises:
            InvalidTableError: the index has no definition.
            UnsupportedFeatureError: the column's type cannot be indexed.
        """
        definition = source.definition
        if definition is None or len(definition.columns) != 1:
            raise InvalidTableError("A secondary index needs the definition that names its column.")
        for _, batch in source.read_records(definition.columns[0]):
            found = make_index_keys(pa.Table.from_batches([batch]))
            yield Portion(make_records(found), self.find_groups(source, found, len(groups.file_ids)))

    def find_groups(self, source: IndexSource, keys: pa.Array, count: int) -> Groups:
        """Return, for each key, which of ``count`` file groups a look-up reads."""
        version = 1 if source.definition is None else source.definition.version or 1
        return index_keys.find_secondary_groups(keys, count, version)


def find_column(snapshot: Snapshot, partition: str) -> str:
    """Return the column of a secondary index.

    Raises:
        InvalidTableError: the table has no definition of the index, or the definition names no column.
    """
    definition = read_definitions(snapshot.files, snapshot.config).get(partition)
    if definition is None or len(definition.columns) != 1:
        raise InvalidTableError(
            "The metadata table has a secondary index whose column is not known.",
            hint="Drop the index, and create it again.",
            index=partition,
        )
    return definition.columns[0]


def find_value_changes(rows: SliceRows, change: GroupChange) -> tuple[pa.Array, pa.Array]:
    """Return the new and the removed keys of the index in one file group."""
    touched = None if change.log is None else rows.read_log_keys(change.log)
    before = make_index_keys(rows.read_table(change.before, touched))
    after = make_index_keys(rows.read_table(change.after, touched))
    return group_changes.subtract(after, before), group_changes.subtract(before, after)


def make_index_keys(rows: pa.Table) -> pa.Array:
    """Return the index's keys of rows with the columns ``key`` and ``value``."""
    return group_changes.join_keys(
        [
            index_keys.make_secondary_keys(index_keys.format_secondary_values(batch.column(VALUE)), batch.column(KEY))
            for batch in rows.to_batches()
        ]
    )


def make_records(keys: pa.Array) -> pa.Table:
    """Make the records of the index's keys."""
    kinds = from_numpy(np.full(len(keys), index_keys.SECONDARY_INDEX_TYPE, np.int32))
    flags = index_keys.make_deletion_column(np.zeros(len(keys), np.bool_))
    return pa.table({KEY: keys, "type": kinds, SECONDARY_INDEX_COLUMN: flags})
