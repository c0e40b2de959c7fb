"""BufferedBatch: many BufferedRecords as columns.

Row data stays in the row store until a column is read, so a merge moves integer handles, not rows. A record means the
same here as in Hudi's BufferedRecord.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import call, cast, from_numpy, take, to_booleans
from hoodie_py.arrow.fields import find_top_level_name, read_field_values
from hoodie_py.arrow.layouts import make_plain_array
from hoodie_py.errors import MergeError
from hoodie_py.reader.record.arrow_context import ArrowRecordContext, Row
from hoodie_py.reader.record.ordering import OrderingColumn
from hoodie_py.reader.record.record import (
    DEFAULT_ORDERING,
    DELETE,
    NO_OPERATION,
    BufferedRecord,
    decode_operation,
    encode_operation,
    is_delete_code,
    make_operation_array,
)
from hoodie_py.reader.record.row_store import NO_ROW
from hoodie_py.reader.record.table_context import make_fitting_array


class LazyKeys:
    """Record keys that are gathered, from the indices ``at``, on first use; a merge by row position never uses them."""

    __slots__ = ("_at", "_keys")

    def __init__(self, keys: pa.Array, at: np.ndarray | None = None) -> None:
        self._keys = keys
        self._at = at

    @property
    def array(self) -> pa.Array:
        """The keys, a string array; gathered once."""
        if self._at is not None:
            self._keys, self._at = take(self._keys, _to_indices(self._at)), None
        return self._keys

    def take(self, at: np.ndarray) -> LazyKeys:
        """Return the keys at the indices, not yet gathered."""
        return LazyKeys(self._keys, at if self._at is None else self._at[at])


@dataclass(frozen=True, eq=False, repr=False)
class BufferedBatch:
    """Columns of BufferedRecords of one file group; immutable.

    Args:
        context: reads the rows; all batches of one merge share it.
        late_keys: string array of record keys, or what gathers it on first use.
        rows: int64 handles in the row store; -1 for a delete without data.
        order: the ordering values.
        codes: int8 operation codes (``HoodieOperation.code``); -1 for none.

    Examples:
        >>> import pyarrow.compute as pc
        >>> class Cheapest(RecordMerger):
        ...     strategy_id = "6a7c0a2e-5b1d-4f0e-9a35-0d6f2c1b7e11"
        ...
        ...     def merge(self, older, newer, context, props):
        ...         return min(older, newer, key=lambda record: context.get_value(record, "price"))
        ...
        ...     def merge_batch(self, older: BufferedBatch, newer: BufferedBatch, context, props) -> BufferedBatch:
        ...         return newer.where(pc.less(newer.column("price"), older.column("price")), older)
        >>> trips.scan(["id", "price"], filter="id = 'a'", merger=Cheapest).to_arrow().to_pylist()
        [{'id': 'a', 'price': 10.0}]
    """

    context: ArrowRecordContext
    late_keys: pa.Array | LazyKeys
    rows: np.ndarray
    order: OrderingColumn
    codes: np.ndarray

    def __post_init__(self) -> None:
        self.rows.flags.writeable = self.codes.flags.writeable = False  # batches share these arrays

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"BufferedBatch({len(self)} records, {int(self.deletes.sum())} deletes)"

    @property
    def keys(self) -> pa.Array:
        """The record keys, a string array."""
        return self.late_keys.array if isinstance(self.late_keys, LazyKeys) else self.late_keys

    @property
    def deletes(self) -> np.ndarray:
        """A NumPy bool per record: whether it is a delete."""
        return is_delete_code(self.codes)

    @property
    def is_delete(self) -> pa.Array:
        """An Arrow bool per record: whether it is a delete."""
        return from_numpy(self.deletes)

    @property
    def commit_time_deletes(self) -> np.ndarray:
        """A NumPy bool per record: whether it is a delete that commit time orders."""
        return np.asarray(self.deletes & self.order.default)

    @property
    def operation(self) -> pa.Array:
        """The operation of each record: the text I, -U, U or D, or null."""
        return make_operation_array(self.codes)

    @property
    def ordering(self) -> pa.Array:
        """The ordering values in the field's type (a struct for several fields); null for the default."""
        return self.order.to_arrow()

    def column(self, name: str) -> pa.Array:
        """Return one column of the data; null for records without data.

        Raises:
            MergeError: this read did not load the column, or the table does not have it.
        """
        self.context.check_loaded(name)
        return self.context.store.column(self.rows, name)

    def has_values(self, name: str) -> np.ndarray:
        """Return for each record whether its data has the column.

        False for records without data, for absent values of partial rows, and for columns that the table does not have.
        """
        if name not in self.context.schema.names:
            return np.zeros(len(self), bool)
        return ~self.context.store.find_absent(self.rows, name)

    def slice(self, start: int, stop: int) -> BufferedBatch:
        """Return the records from one index up to another, without a copy."""
        return BufferedBatch(
            self.context,
            self.keys.slice(start, stop - start),
            self.rows[start:stop],
            self.order.slice(start, stop),
            self.codes[start:stop],
        )

    def take(self, indices: np.ndarray | pa.Array) -> BufferedBatch:
        """Return the records at the indices."""
        at = np.asarray(indices)
        keys = self.late_keys if isinstance(self.late_keys, LazyKeys) else LazyKeys(self.late_keys)
        return BufferedBatch(self.context, keys.take(at), self.rows[at], self.order.take(at), self.codes[at])

    def where(self, mask: np.ndarray | pa.Array, other: BufferedBatch) -> BufferedBatch:
        """Return this batch's records where the mask is true, the other batch's elsewhere; keys stay."""
        chosen = _to_numpy_mask(mask, len(self))
        return BufferedBatch(
            self.context,
            self.late_keys,
            np.where(chosen, self.rows, other.rows),
            self.order.where(chosen, other.order),
            np.where(chosen, self.codes, other.codes),
        )

    def deleted(self, mask: np.ndarray | pa.Array) -> BufferedBatch:
        """Return the records with those in the mask as DELETE; they keep their data."""
        chosen = _to_numpy_mask(mask, len(self))
        return BufferedBatch(
            self.context, self.late_keys, self.rows, self.order, np.where(chosen, np.int8(DELETE), self.codes)
        )

    def with_operations(self, codes: np.ndarray) -> BufferedBatch:
        """Return the records with new operation codes; deletes keep their own code."""
        codes = np.where(self.deletes, self.codes, codes)
        return BufferedBatch(self.context, self.late_keys, self.rows, self.order, codes)

    def with_columns(self, /, **columns: Any) -> BufferedBatch:
        """Return the records with whole columns replaced.

        The ordering values follow their fields. Records without data stay without data.

        Args:
            columns: Arrow arrays or sequences, one value per record.

        Raises:
            MergeError: a value does not fit its column, a column has another length or is not loaded, or a key changed.
        """
        context = self.context
        at = np.flatnonzero(self.rows != NO_ROW)
        batch = context.store.take(self.rows[at])
        for name, values in columns.items():
            context.check_loaded(name)
            field = context.schema.field(name)
            array = _fit_values(values, field)
            if len(array) != len(self):
                raise MergeError(f"A merger set a column of {len(array)} values on {len(self)} records.", column=name)
            batch = batch.set_column(
                context.schema.get_field_index(name), field.with_nullable(True), array.take(_to_indices(at))
            )
        self._check_keys(batch, at, columns)
        rows = self.rows.copy()  # records without data keep the handle -1
        first = context.store.add(batch, context.store.list_absent(self.rows[at], columns))
        rows[at] = np.arange(first, first + len(at))
        order = self.order
        if set(columns) & {find_top_level_name(context.schema, name) for name in context.ordering_fields}:
            mask = self.rows != NO_ROW
            changed = context.store.take(rows)
            fresh = OrderingColumn.from_columns(
                [read_field_values(changed, f) for f in context.ordering_fields], len(self)
            )
            order = fresh.where(mask, self.order)
        return BufferedBatch(context, self.late_keys, rows, order, self.codes)

    def _check_keys(self, batch: pa.RecordBatch, at: np.ndarray, columns: Collection[str]) -> None:
        """Raise MergeError where new values of key columns change a record key."""
        keys = self.context.keys
        if not any(find_top_level_name(batch.schema, name) in columns for name in keys.columns):
            return
        made, own = keys.read_keys(batch), self.keys.take(_to_indices(at))
        if not made.equals(own):
            wrong = int(np.flatnonzero(~to_booleans(call("equal", made, own)))[0])
            raise MergeError(f"A merger made a row whose key is {made[wrong].as_py()!r}.", key=own[wrong].as_py())

    def to_records(self) -> list[BufferedRecord[Row]]:
        """Return every record as a BufferedRecord."""
        orders = self.order.to_pylist()
        types = self.context.ordering_types
        if len(types) == 1 and types[0] is not None and pa.types.is_int32(types[0]):
            orders = [  # Hudi's default is the int 0. In an int column that is an ordinary value, except on deletes.
                0 if value is DEFAULT_ORDERING and not deleted else value
                for value, deleted in zip(orders, self.deletes.tolist(), strict=True)
            ]
        columns = (self.keys.to_pylist(), orders, self.rows.tolist(), self.context.find_schema_ids(self.rows))
        return [
            BufferedRecord(key, order, None if row == NO_ROW else Row(row), schema_id, decode_operation(code))
            for key, order, row, schema_id, code in zip(*columns, self.codes.tolist(), strict=True)
        ]

    @classmethod
    def from_records(cls, context: ArrowRecordContext, records: Sequence[BufferedRecord[Row]]) -> BufferedBatch:
        """Build a batch of records; data that a merger changed becomes new rows of the store.

        Raises:
            MergeError: a value does not fit its column, an ordering value does not fit its field, or the data belongs
                to another context.
        """
        rows = context.store_rows([Row(NO_ROW) if record.record is None else record.record for record in records])
        order = _make_ordering([record.ordering_value for record in records], context)
        codes = np.fromiter((encode_operation(record.operation) for record in records), np.int8, len(records))
        return cls(context, pa.array([record.record_key for record in records], pa.string()), rows, order, codes)

    @classmethod
    def of_rows(
        cls,
        context: ArrowRecordContext,
        first: int,
        batch: pa.RecordBatch,
        codes: np.ndarray | None,
        keys: pa.Array | LazyKeys | None = None,
    ) -> BufferedBatch:
        """Make a batch of rows that the store holds from the handle ``first`` on.

        ``codes``: None for rows without operations, such as base rows. ``keys``: None to read them from the rows.
        """
        fields = [read_field_values(batch, name) for name in context.ordering_fields]
        order = OrderingColumn.from_columns(fields, batch.num_rows)
        rows = np.arange(first, first + batch.num_rows)
        codes = np.full(batch.num_rows, NO_OPERATION, np.int8) if codes is None else codes
        return cls(context, context.keys.read_keys(batch) if keys is None else keys, rows, order, codes)

    @classmethod
    def of_deletes(
        cls, context: ArrowRecordContext, keys: pa.Array, ordering: OrderingColumn | Sequence[Any]
    ) -> BufferedBatch:
        """Make a batch of a delete block's entries: no data, operation DELETE."""
        count = len(keys)
        if isinstance(ordering, OrderingColumn):
            order = ordering
        elif context.ordering_types:
            order = OrderingColumn.from_values(ordering, context.ordering_types)
        else:
            order = OrderingColumn.from_columns([], count)
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


def _to_indices(at: np.ndarray) -> pa.Array:
    return from_numpy(at.astype(np.int64, copy=False))


def _fit_values(values: Any, field: pa.Field) -> pa.Array:
    """Return the values of a whole column as an array of the column's type."""
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        return make_fitting_array(values, field)
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    try:
        return cast(make_plain_array(array), field.type)
    except pa.ArrowException as error:
        raise MergeError(f"A merged value does not fit its column: {error}", column=field.name) from error


def _make_ordering(values: Sequence[Any], context: ArrowRecordContext) -> OrderingColumn:
    if not context.ordering_types:
        return OrderingColumn.from_columns([], len(values))
    try:
        return OrderingColumn.from_values(values, context.ordering_types)
    except (pa.ArrowException, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise MergeError(
            f"An ordering value does not fit the ordering fields: {error}",
            ordering_fields=",".join(context.ordering_fields),
            hint="Let context.replace set the ordering value.",
        ) from error


def _to_numpy_mask(mask: np.ndarray | pa.Array, length: int) -> np.ndarray:
    if isinstance(mask, pa.ChunkedArray):
        mask = mask.combine_chunks()
    if not isinstance(mask, np.ndarray):
        mask = make_plain_array(mask)
    chosen = mask if isinstance(mask, np.ndarray) or not pa.types.is_boolean(mask.type) else to_booleans(mask)
    if len(chosen) != length or chosen.dtype != bool:
        raise MergeError(f"A mask must be {length} booleans, not {len(chosen)} of {chosen.dtype}.")
    return chosen
