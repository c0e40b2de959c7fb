"""What a write carries from one step to the next: rows with their keys, later with the place of each.

Columns side by side, one entry a record, in the order in which the records came: for records of one key that order is
the order of commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa


class WriteOperation(StrEnum):
    """What a write does; the values are those of Hudi's option (Hudi WriteOperationType)."""

    UPSERT = "upsert"
    INSERT = "insert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
    INSERT_OVERWRITE = "insert_overwrite"
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"

    @property
    def recorded(self) -> str:
        """The operation as commit metadata names it."""
        return self.name


@dataclass(frozen=True, slots=True)
class WriteRecords:
    """Records to write or to delete.

    Attributes:
        rows: data columns, in the order and types that files will have, without meta columns. Deletes by key bring key,
            partition and ordering columns only, or no columns at all; the table then still has their number of rows.
        keys: string; record keys.
        partition_paths: string; relative partition paths as on disk, "" in a table without partitions. None where
            deletes by bare keys do not say: the keys are searched in all partitions.
        deletes: bool, no nulls; which records delete. None where none does.
        ordering: values of the table's ordering fields, one column a field, in its types. Empty when commit time
            decides, or when deletes bring none.
        made_of: of records as they came: the fields that keys and partition paths were made of, none where they were
            given as such.
    """

    rows: pa.Table
    keys: pa.ChunkedArray
    partition_paths: pa.ChunkedArray | None
    deletes: pa.ChunkedArray | None = None
    ordering: tuple[pa.ChunkedArray, ...] = ()
    made_of: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns = [self.keys, *self.ordering]
        columns += [each for each in (self.partition_paths, self.deletes) if each is not None]
        lengths = {len(each) for each in columns}
        if self.rows.num_columns:
            lengths.add(self.rows.num_rows)
        if len(lengths) != 1:
            raise ValueError(f"columns of different lengths: {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, indices: pa.Array | pa.ChunkedArray | np.ndarray) -> WriteRecords:
        """Return the records at these places, in that order.

        Args:
            indices: whole numbers from 0 to ``len(self)``, no nulls; a record may be named more than once.
        """
        at = indices if isinstance(indices, pa.Array | pa.ChunkedArray) else pa.array(indices, pa.int64())
        return WriteRecords(
            rows=self.rows.take(at) if self.rows.num_columns else self.rows,
            keys=_as_chunked(self.keys.take(at)),
            partition_paths=None if self.partition_paths is None else _as_chunked(self.partition_paths.take(at)),
            deletes=None if self.deletes is None else _as_chunked(self.deletes.take(at)),
            ordering=tuple(_as_chunked(each.take(at)) for each in self.ordering),
        )


@dataclass(frozen=True, slots=True)
class TaggedRecords:
    """Records, and where the table has them.

    Attributes:
        records: the records.
        file_ids: string; file group of each record's key, null where the key is new.
        base_instants: string; instant of the base file that has the key, null where none has.
        positions: int64; row number in that base file, below 0 where it is not known or there are several.
    """

    records: WriteRecords
    file_ids: pa.Array
    base_instants: pa.Array
    positions: np.ndarray

    def __post_init__(self) -> None:
        lengths = {len(self.records), len(self.file_ids), len(self.base_instants), len(self.positions)}
        if len(lengths) != 1:
            raise ValueError(f"columns of different lengths: {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.records)


def _as_chunked(values: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
