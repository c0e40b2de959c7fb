"""BufferedBatch: a run of BufferedRecords as columns.

Row data stays behind handles until a column is asked for, so merging moves integers, not rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.errors import MergeError
from hoodie_py.reader.arrow_context import ArrowRecordContext, Row
from hoodie_py.reader.fields import field_values
from hoodie_py.reader.ordering import OrderingColumn
from hoodie_py.reader.records import (
    DEFAULT_ORDERING,
    DELETE,
    NO_OPERATION,
    BufferedRecord,
    code_of,
    is_delete_code,
    operation_array,
    operation_of,
)
from hoodie_py.reader.row_store import NO_ROW


class BufferedBatch:
    """Columns of BufferedRecords of one file group; immutable.

    Args:
        context: the door to the rows.
        keys: string array of record keys.
        rows: int64 handles, -1 for a delete without data.
        order: the ordering values.
        codes: int8 operation codes, -1 for none.
    """

    __slots__ = ("codes", "context", "keys", "order", "rows")

    def __init__(
        self, context: ArrowRecordContext, keys: pa.Array, rows: np.ndarray, order: OrderingColumn, codes: np.ndarray
    ) -> None:
        self.context = context
        self.keys = keys
        self.rows = rows
        self.order = order
        self.codes = codes

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"BufferedBatch({len(self)} records, {int(self.deletes.sum())} deletes)"

    @property
    def deletes(self) -> np.ndarray:
        """Bool per record, NumPy: is it a delete."""
        return is_delete_code(self.codes)

    @property
    def is_delete(self) -> pa.Array:
        """Bool per record, Arrow: is it a delete."""
        return pa.array(self.deletes)

    @property
    def commit_time_deletes(self) -> np.ndarray:
        """Bool per record, NumPy: is it a delete whose ordering value is the default."""
        return np.asarray(self.deletes & self.order.default)

    @property
    def operation(self) -> pa.Array:
        """I, -U, U, D or null per record, as strings."""
        return operation_array(self.codes)

    @property
    def ordering(self) -> pa.Array:
        """Ordering values in the field's type (a struct for several fields), null where the ordering is the default."""
        return self.order.to_arrow()

    def column(self, name: str) -> pa.Array:
        """Return one column of the data, null for records without data.

        Raises:
            MergeError: the column was not read.
        """
        if name not in self.context.schema.names:
            raise MergeError(
                "A merger asked for a column that this read did not load.",
                column=name,
                hint="Return it from the merger's mandatory_fields, or set projection_compatible = False.",
            )
        return self.context.store.column(self.rows, name)

    def present(self, name: str) -> np.ndarray:
        """Bool per record: does the data have the column; False for records without data and absent values of partial
        rows.
        """
        return ~self.context.store.absent(self.rows, name)

    def take(self, indices: np.ndarray | pa.Array) -> BufferedBatch:
        """Return the records at the indices."""
        at = np.asarray(indices)
        return BufferedBatch(
            self.context, self.keys.take(pa.array(at, pa.int64())), self.rows[at], self.order.take(at), self.codes[at]
        )

    def where(self, mask: np.ndarray | pa.Array, other: BufferedBatch) -> BufferedBatch:
        """Return own records where the mask is set, the other's elsewhere; keys stay."""
        chosen = _numpy_mask(mask, len(self))
        return BufferedBatch(
            self.context,
            self.keys,
            np.where(chosen, self.rows, other.rows),
            self.order.where(chosen, other.order),
            np.where(chosen, self.codes, other.codes),
        )

    def deleted(self, mask: np.ndarray | pa.Array) -> BufferedBatch:
        """Return the records, those in the mask marked DELETE with their data kept."""
        chosen = _numpy_mask(mask, len(self))
        return BufferedBatch(
            self.context, self.keys, self.rows, self.order, np.where(chosen, np.int8(DELETE), self.codes)
        )

    def with_operations(self, codes: np.ndarray) -> BufferedBatch:
        """Return the records, live ones with the given operation codes; deletes keep theirs."""
        return BufferedBatch(self.context, self.keys, self.rows, self.order, np.where(self.deletes, self.codes, codes))

    def with_columns(self, **columns: Any) -> BufferedBatch:
        """Return the records with whole columns replaced (Arrow arrays or sequences); ordering follows its fields.

        Records without data stay without data.
        """
        context = self.context
        at = np.flatnonzero(self.rows != NO_ROW)
        batch = context.store.take(self.rows[at])
        for name, values in columns.items():
            if name not in context.schema.names:
                raise MergeError("A merger set a column that this read did not load.", column=name)
            type_ = context.schema.field(name).type
            array = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values, type_)
            if len(array) != len(self):
                raise MergeError(f"A merger set a column of {len(array)} values on {len(self)} records.", column=name)
            array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
            try:
                array = array.cast(type_)
            except pa.ArrowInvalid as error:
                raise MergeError(f"A merged value does not fit its column: {error}", column=name) from error
            batch = batch.set_column(
                context.schema.get_field_index(name),
                context.schema.field(name).with_nullable(True),
                array.take(pa.array(at, pa.int64())),
            )
        rows = self.rows.copy()
        first = context.store.add(batch, absences(context, self.rows[at], columns))
        rows[at] = np.arange(first, first + len(at))
        order = self.order
        if set(columns) & set(context.ordering_fields):
            mask = self.rows != NO_ROW
            changed = context.store.take(rows)
            fresh = OrderingColumn.from_columns([field_values(changed, f) for f in context.ordering_fields], len(self))
            order = fresh.where(mask, self.order)
        return BufferedBatch(context, self.keys, rows, order, self.codes)

    def record(self, index: int) -> BufferedRecord[Row]:
        """Return one record."""
        return self.take(np.array([index])).records()[0]

    def records(self) -> list[BufferedRecord[Row]]:
        """Return every record, row by row."""
        schema_id = self.context.schema_id
        out: list[BufferedRecord[Row]] = []
        for key, row, value, code in zip(
            self.keys.to_pylist(), self.rows.tolist(), self.order.to_pylist(), self.codes.tolist(), strict=True
        ):
            data = None if row == NO_ROW else Row(row)
            out.append(BufferedRecord(key, value, data, None if data is None else schema_id, operation_of(code)))
        return out

    @classmethod
    def from_records(cls, context: ArrowRecordContext, records: Sequence[BufferedRecord[Row]]) -> BufferedBatch:
        """Build from records; data that a merger changed becomes new rows of the store."""
        rows = context.store_rows([Row(NO_ROW) if record.record is None else record.record for record in records])
        order = (
            OrderingColumn.from_values([record.ordering_value for record in records], context.ordering_types)
            if context.ordering_types
            else OrderingColumn.from_columns([], len(records))
        )
        codes = np.fromiter((code_of(record.operation) for record in records), np.int8, len(records))
        return cls(context, pa.array([record.record_key for record in records], pa.string()), rows, order, codes)

    @classmethod
    def of_rows(
        cls, context: ArrowRecordContext, first: int, batch: pa.RecordBatch, codes: np.ndarray | None
    ) -> BufferedBatch:
        """Wrap a batch that the store holds from the handle ``first`` on."""
        order = OrderingColumn.from_columns(
            [field_values(batch, name) for name in context.ordering_fields], batch.num_rows
        )
        rows = np.arange(first, first + batch.num_rows)
        codes = np.full(batch.num_rows, NO_OPERATION, np.int8) if codes is None else codes
        return cls(context, context.keys.keys_of_batch(batch), rows, order, codes)

    @classmethod
    def of_base(cls, context: ArrowRecordContext, first: int, batch: pa.RecordBatch, keys: pa.Array) -> BufferedBatch:
        """Wrap base rows that the store holds from the handle ``first`` on, whose keys are known; they are never
        deletes.
        """
        order = OrderingColumn.from_columns(
            [field_values(batch, name) for name in context.ordering_fields], batch.num_rows
        )
        rows = np.arange(first, first + batch.num_rows)
        return cls(context, keys, rows, order, np.full(batch.num_rows, NO_OPERATION, np.int8))

    @classmethod
    def of_deletes(cls, context: ArrowRecordContext, keys: pa.Array, ordering: Sequence[Any]) -> BufferedBatch:
        """Build the entries of a delete block: no data, operation DELETE."""
        count = len(keys)
        values = ordering if context.ordering_types else [DEFAULT_ORDERING] * count
        order = (
            OrderingColumn.from_values(values, context.ordering_types)
            if context.ordering_types
            else OrderingColumn.from_columns([], count)
        )
        return cls(context, keys, np.full(count, NO_ROW, np.int64), order, np.full(count, DELETE, np.int8))

    @classmethod
    def concat(cls, batches: Sequence[BufferedBatch]) -> BufferedBatch:
        """Join batches of one context end to end."""
        if len(batches) == 1:
            return batches[0]
        return cls(
            batches[0].context,
            pa.concat_arrays([batch.keys for batch in batches]),
            np.concatenate([batch.rows for batch in batches]),
            OrderingColumn.concat([batch.order for batch in batches]),
            np.concatenate([batch.codes for batch in batches]),
        )


def absences(context: ArrowRecordContext, rows: np.ndarray, but: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Return which columns rows lack, for rows that take their place; the columns in ``but`` they have."""
    if not context.store.partial:
        return {}
    found = ((name, context.store.absent(rows, name)) for name in context.schema.names if name not in but)
    return {name: mask for name, mask in found if mask.any()}


def _numpy_mask(mask: np.ndarray | pa.Array, length: int) -> np.ndarray:
    chosen = mask if isinstance(mask, np.ndarray) else np.asarray(mask.fill_null(False))
    if len(chosen) != length or chosen.dtype != bool:
        raise MergeError(f"A mask must be {length} booleans, not {len(chosen)} of {chosen.dtype}.")
    return chosen
