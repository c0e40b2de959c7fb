"""The records of a write between its steps: rows with their keys, later with their locations (Hudi ``HoodieRecord``).

All columns have one entry for each record, in the original order of the records. For records of one key, that is the
order of their versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, join_chunks, to_booleans, to_numbers
from hoodie_py.errors import HoodieError

_KEY, _PATH, _DELETE, _POSITION = "key", "path", "delete", "position"


class WriteOperation(StrEnum):
    """The operations of a write (Hudi ``WriteOperationType``): names as in commits, values as in Hudi's option.

    Examples:
        >>> trips.insert([{"id": "d", "city": "la", "price": 5.0, "ts": 1}]).operation is WriteOperation.INSERT
        True
    """

    UPSERT = "upsert"
    INSERT = "insert"
    BULK_INSERT = "bulk_insert"
    DELETE = "delete"
    INSERT_OVERWRITE = "insert_overwrite"
    INSERT_OVERWRITE_TABLE = "insert_overwrite_table"
    DELETE_PARTITION = "delete_partition"
    ALTER_SCHEMA = "alter_schema"  # changes columns, and writes no rows


@dataclass(frozen=True, slots=True)
class WriteRecords:
    """Records to write or to delete.

    Attributes:
        rows: data columns, in the order and types of files, without meta columns. Deletes by key have only key,
            partition and ordering columns, or no columns at all.
        keys: string; record keys.
        partition_paths: string; relative partition paths as on disk, "" in a table without partitions. None for deletes
            by bare keys, whose keys are looked up in all partitions.
        deletes: bool, no nulls; a mask of the deletes. None if there are no deletes.
        ordering: values of the table's ordering fields, one column per field, in its types. Empty if commit time
            decides, or if deletes have no values.
        made_of: the fields that keys and partition paths were made from; empty if the caller gave keys and paths.
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

    @property
    def delete_mask(self) -> np.ndarray:
        """A mask of the deletes; a new array that the caller may change."""
        if self.deletes is None:
            return np.zeros(len(self), bool)
        return to_booleans(join_chunks(self.deletes))

    def take(self, indices: pa.Array | pa.ChunkedArray | np.ndarray) -> WriteRecords:
        """Return the records at some positions, in their order. Indices have no nulls; repeats are allowed."""
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
    """Records with their locations in the table.

    Attributes:
        records: the records.
        file_ids: string; file group of each record's key, null if the key is new.
        base_instants: string; instant of the base file that contains the key, null if no base file does.
        positions: int64; row number in that base file, below 0 if it is unknown or there are several.
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


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """The form of records as record batches, for files and shuffles.

    ``schema``: data columns (``rows``), ``orders`` ordering fields, then the facts of a record. ``has_paths``: whether
    records have their partition path.
    """

    schema: pa.Schema
    rows: pa.Schema
    orders: int
    has_paths: bool

    @classmethod
    def from_records(cls, records: WriteRecords) -> Self:
        """Return the format for records like these."""
        fields = [pa.field(f"row.{at}", field.type) for at, field in enumerate(records.rows.schema)]
        fields += [pa.field(f"order.{at}", column.type) for at, column in enumerate(records.ordering)]
        fields += [(_KEY, pa.string()), (_PATH, pa.string()), (_DELETE, pa.bool_()), (_POSITION, pa.int64())]
        rows = records.rows.schema.remove_metadata()
        return cls(pa.schema(fields), rows, len(records.ordering), records.partition_paths is not None)

    def as_located(self) -> Self:
        """Return the format for records that have their partition path."""
        return replace(self, has_paths=True)

    def to_batch(self, records: WriteRecords, positions: np.ndarray | None = None) -> pa.RecordBatch:
        """Return records as one batch. ``positions``: row numbers in base files, -1 for unknown.

        Raises:
            HoodieError: the records do not have this format.
        """
        if records.rows.schema.remove_metadata() != self.rows or len(records.ordering) != self.orders:
            raise HoodieError(
                "Parts of the rows have different columns.",
                hint="The table may have changed while they were read: try again.",
            )
        count = len(records)
        paths = (
            pa.nulls(count, pa.string()) if records.partition_paths is None else join_chunks(records.partition_paths)
        )
        if self.has_paths and paths.null_count:
            raise HoodieError("Some rows have a partition path, others do not.")
        deletes = from_numpy(np.zeros(count, bool)) if records.deletes is None else join_chunks(records.deletes)
        places = from_numpy(np.full(count, -1, np.int64) if positions is None else positions.astype(np.int64))
        arrays = [join_chunks(column) for column in (*records.rows.columns, *records.ordering)]
        arrays += [join_chunks(records.keys), paths, deletes, places]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def from_batches(self, batches: Sequence[pa.RecordBatch]) -> tuple[WriteRecords, np.ndarray]:
        """Return the records of batches in order, and their row numbers in base files (-1 for unknown)."""
        table = pa.Table.from_batches(batches, self.schema)
        width = len(self.rows)
        deletes = table.column(_DELETE)
        marked = to_booleans(join_chunks(deletes)).any()
        paths = table.column(_PATH)
        records = WriteRecords(
            rows=pa.table(table.columns[:width], schema=self.rows) if width else pa.table({}),
            keys=table.column(_KEY),
            partition_paths=None if paths.null_count and not self.has_paths else paths,
            deletes=deletes if marked else None,
            ordering=tuple(table.columns[width : width + self.orders]),
        )
        return records, to_numbers(join_chunks(table.column(_POSITION)))


def _as_chunked(values: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
