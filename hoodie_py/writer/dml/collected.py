"""The changed rows of each file group, held until all are known; on disk if they are many.

Nothing of a write may show before all its rows are known to fit the table. So the table is read to its end first. Then
each file group's task reads its own rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.grouped import GroupedRows
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.records import WriteRecords

_KEY, _DELETE = "\0key", "\0delete"  # no column of a table has such a name


@dataclass(slots=True)
class ChangedGroup:
    """How many rows of a file group change."""

    file_slice: FileSlice
    updates: int = 0
    deletes: int = 0


class CollectedChanges:
    """Changed rows by file group. ``close`` removes the files.

    Raises:
        StorageError: the disk is full or fails.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._rows = GroupedRows[GroupKey](budget, held=budget.rows_most)
        self.groups: dict[GroupKey, ChangedGroup] = {}

    def close(self) -> None:
        """Remove the files."""
        self._rows.close()

    def add(self, file_slice: FileSlice, rows: pa.Table, keys: pa.Array, deletes: pa.Array) -> None:
        """Add changed rows of a file group, with their keys and a mask of the deletes."""
        key = file_slice.partition_path, file_slice.file_id
        group = self.groups.setdefault(key, ChangedGroup(file_slice))
        dead = pc.sum(deletes).as_py() or 0
        group.deletes += dead
        group.updates += len(keys) - dead
        for batch in rows.append_column(_KEY, keys).append_column(_DELETE, deletes).combine_chunks().to_batches():
            self._rows.add(key, batch)

    def read(self, key: GroupKey, ordering: tuple[pa.DataType, ...]) -> WriteRecords:
        """Return the changed rows of a file group; errors as for ``make_changed_records``."""
        table = pa.Table.from_batches(self._rows.read(key))
        rows = table.drop_columns([_KEY, _DELETE])
        return make_changed_records(key, rows, table.column(_KEY), table.column(_DELETE), ordering)


def make_changed_records(
    key: GroupKey, rows: pa.Table, keys: pa.ChunkedArray, deletes: pa.ChunkedArray, ordering: tuple[pa.DataType, ...]
) -> WriteRecords:
    """Return changed rows of a file group as records.

    ``ordering``: the types of ordering values. The records have no ordering values, so that their deletes win over all
    versions in the table.

    Raises:
        UnsupportedFeatureError: two rows have one key: neither could be changed alone.
    """
    if pc.count_distinct(keys).as_py() < len(keys):
        raise UnsupportedFeatureError(
            "Changing rows of a file group that has several rows of one record key.",
            hint="Upsert or delete these keys first.",
            partition=key[0],
            file_group=key[1],
        )
    return WriteRecords(
        rows=rows,
        keys=keys,
        partition_paths=pa.chunked_array([pa.repeat(pa.scalar(key[0]), len(keys))]),
        deletes=deletes if pc.any(deletes).as_py() else None,
        ordering=tuple(pa.chunked_array([pa.nulls(len(keys), type_)]) for type_ in ordering),
    )
