"""Which log rows are deletes, and the ordering values of delete blocks in the types of the table's ordering fields.

The rules agree with Hudi's DeleteContext. A row is a delete if one of these holds:

* the boolean column ``_hoodie_is_deleted`` is true;
* the column ``_hoodie_operation`` is D or -U;
* the table's delete field, as text, equals the table's delete marker (case-sensitive).

Base rows are never deletes by these rules.

Ordering values agree with Hudi's DeleteRecord, OrderingValues and OrderingValueEngineTypeConverter. Null and the int 0
mean "no ordering". Any other value must have the class that its column has in Spark's rows; else it compares only with
values of its own class (``ForeignValue``):

    column                            class of a value that compares
    int, date                         int; a date (DateWrapper) is another class
    long, timestamp                   long, in microseconds; a timestamp is another class
    timestamp that the table          long: up to 9,999,999,999,999 (the year 2286) in milliseconds, as Flink writes it;
    declares in milliseconds (UTC)    above that in microseconds, as Spark writes it
    float, double, string, boolean,   the same type; decimals have 15 digits after the point
    bytes, decimal
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import call, cast, from_numpy, to_booleans, to_numbers
from hoodie_py.errors import InvalidQueryError, InvalidTableError, MergeError, UnsupportedFeatureError
from hoodie_py.formats.avro.arrow_types import MICROS_PER_MILLI
from hoodie_py.formats.deletes.decoder import DeleteRecords
from hoodie_py.formats.deletes.ordering_value import OrderingKind
from hoodie_py.formats.names import IS_DELETED_FIELD, OPERATION_FIELD
from hoodie_py.options.read import DELETE_FIELD, DELETE_MARKER
from hoodie_py.reader.record.ordering import ForeignValue, OrderingColumn
from hoodie_py.reader.record.record import DEFAULT_ORDERING, DELETE, NO_OPERATION, HoodieOperation

_CODES = {operation.value: operation.code for operation in HoodieOperation}


@dataclass(frozen=True, slots=True)
class DeleteRules:
    """The delete columns of one table: whether it has flag and operation column, and its delete field and marker."""

    flag: bool = False
    operation: bool = False
    marker_field: str | None = None
    marker: str | None = None

    @classmethod
    def of(cls, schema: pa.Schema, merge_properties: Mapping[str, str], options: Mapping[str, str]) -> DeleteRules:
        """Make the rules of a table from its schema, its merge properties and the reader's options.

        Raises:
            InvalidTableError: the flag column is not boolean.
            InvalidQueryError: only one of delete field and delete marker is set.
        """
        field = merge_properties.get(DELETE_FIELD) or options.get(DELETE_FIELD) or None
        marker = merge_properties.get(DELETE_MARKER) or options.get(DELETE_MARKER) or None
        if (field is None) != (marker is None):
            raise InvalidQueryError(
                f"Only one of {DELETE_FIELD} and {DELETE_MARKER} is set.", hint="Set both or neither."
            )
        flag = IS_DELETED_FIELD in schema.names
        if flag and not pa.types.is_boolean(schema.field(IS_DELETED_FIELD).type):
            raise InvalidTableError(f"{IS_DELETED_FIELD} must be boolean, not {schema.field(IS_DELETED_FIELD).type}.")
        return cls(flag, OPERATION_FIELD in schema.names, field, marker)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a merge must read for these rules; the table may lack its delete field."""
        named = (
            IS_DELETED_FIELD if self.flag else None,
            OPERATION_FIELD if self.operation else None,
            self.marker_field,
        )
        return tuple(name for name in named if name is not None)

    def read_operations(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the int8 operation codes of log rows: from the operation column, and DELETE for all other deletes.

        Raises:
            MergeError: the operation column holds an unknown text.
        """
        codes = np.full(batch.num_rows, NO_OPERATION, np.int8)
        if self.operation and OPERATION_FIELD in batch.schema.names:
            codes = _encode_operations(batch.column(OPERATION_FIELD))
        deleted = np.zeros(batch.num_rows, bool)
        if self.flag and IS_DELETED_FIELD in batch.schema.names:
            deleted |= to_booleans(batch.column(IS_DELETED_FIELD))
        if self.marker_field is not None and self.marker_field in batch.schema.names:
            deleted |= to_booleans(call("equal", _as_text(batch.column(self.marker_field)), pa.scalar(self.marker)))
        keeps = codes == HoodieOperation.UPDATE_BEFORE.code
        return np.where(deleted & ~keeps, np.int8(DELETE), codes).astype(np.int8)


def _encode_operations(column: pa.Array) -> np.ndarray:
    encoded = call("dictionary_encode", _as_text(column))
    codes = np.full(len(encoded.dictionary) + 1, NO_OPERATION, np.int8)  # the last code stands for a null text
    for i, text in enumerate(encoded.dictionary.to_pylist()):
        if text not in _CODES:
            raise MergeError(
                f"Unknown record operation {text!r}.", hint="Expected one of I, -U, U, D.", column=OPERATION_FIELD
            )
        codes[i] = _CODES[text]
    at = to_numbers(encoded.indices, len(encoded.dictionary))
    return np.asarray(codes[at])


def _as_text(column: pa.Array) -> pa.Array:
    return column if pa.types.is_string(column.type) else cast(column, pa.string())


_INT_BITS = 32
_DIGITS = 100
_LAST_MILLIS = 9_999_999_999_999
_CLASSES: dict[int, tuple[Callable[[pa.DataType], bool], ...]] = {
    OrderingKind.INT: (pa.types.is_int32, pa.types.is_date32),
    OrderingKind.LONG: (pa.types.is_int64, pa.types.is_timestamp),
    OrderingKind.FLOAT: (pa.types.is_float32,),
    OrderingKind.DOUBLE: (pa.types.is_float64,),
    OrderingKind.STRING: (pa.types.is_string,),
    OrderingKind.BOOLEAN: (pa.types.is_boolean,),
    OrderingKind.BYTES: (pa.types.is_binary,),
    OrderingKind.DECIMAL: (pa.types.is_decimal,),
}
_PLAIN = (OrderingKind.INT, OrderingKind.LONG)


def convert_delete_ordering(deleted: DeleteRecords, types: Sequence[pa.DataType]) -> list[Any]:
    """Return one ordering value per delete: a value, a tuple for several fields, ForeignValue or DEFAULT_ORDERING.

    ``types``: the types that the table declares; milliseconds in UTC are timestamp[ms, UTC].

    Raises:
        UnsupportedFeatureError: a column cannot hold a decimal.
    """
    pairs = zip(deleted.kinds.tolist(), deleted.values, strict=True)
    if len(types) == 1:
        return [_convert_single(kind, value, types[0]) for kind, value in pairs]
    return [_convert_several(kind, value, types) for kind, value in pairs]


def make_delete_ordering_column(deleted: DeleteRecords, types: Sequence[pa.DataType]) -> OrderingColumn:
    """Return the ordering values of deletes as a column; arguments and errors as for ``convert_delete_ordering``.

    Integers of the column's class are converted at once, without Python work for each delete.
    """
    plain = make_plain_ordering_column(deleted, types)
    if plain is not None:
        return plain
    return OrderingColumn.from_values(
        convert_delete_ordering(deleted, types), [_to_merge_type(type_) for type_ in types]
    )


def make_plain_ordering_column(deleted: DeleteRecords, types: Sequence[pa.DataType]) -> OrderingColumn | None:
    """Return the ordering values of deletes as a column; None unless all are integers of the column's class."""
    if not types:
        return OrderingColumn.of_deletes([], len(deleted))
    if len(types) > 1 or deleted.numbers is None:
        return None
    column = _make_integer_column(deleted.kinds, deleted.numbers, types[0])
    return None if column is None else OrderingColumn.from_columns([column], len(deleted))


def _make_integer_column(kinds: np.ndarray, numbers: np.ndarray, type_: pa.DataType) -> pa.Array | None:
    """Return integers as a column, null for no ordering; None if a value's class differs from the type's."""
    missing = kinds == OrderingKind.NONE
    plain = missing.copy()
    if missing.all():
        return pa.nulls(len(kinds), _to_merge_type(type_))
    for kind in _PLAIN:
        if any(is_type(type_) for is_type in _CLASSES[kind]):
            plain |= kinds == kind
    if not plain.all():
        return None
    storage = pa.int32() if type_.bit_width == _INT_BITS else pa.int64()
    values = _to_micros(numbers) if _is_millis(type_) else numbers
    return cast(from_numpy(values, missing), storage).view(_to_merge_type(type_))


def _convert_single(kind: int, value: Any, type_: pa.DataType) -> Any:
    if kind == OrderingKind.NONE:
        return DEFAULT_ORDERING
    converted = _convert_value(kind, value, type_)
    return ForeignValue(OrderingKind(kind).name.lower(), value) if converted is None else converted


def _convert_several(kind: int, value: Any, types: Sequence[pa.DataType]) -> Any:
    if kind == OrderingKind.NONE:
        return DEFAULT_ORDERING
    if kind != OrderingKind.ARRAY or len(value) != len(types):
        return ForeignValue(OrderingKind(kind).name.lower(), value)
    parts = tuple(_convert_part(part_kind, part, type_) for (part_kind, part), type_ in zip(value, types, strict=True))
    return ForeignValue("array", parts) if any(isinstance(part, ForeignValue) for part in parts) else parts


def _convert_part(kind: int, value: Any, type_: pa.DataType) -> Any:
    return DEFAULT_ORDERING if kind == OrderingKind.INT and value == 0 else _convert_single(kind, value, type_)


def _convert_value(kind: int, value: Any, type_: pa.DataType) -> Any:
    """Return the value for its column, times as microseconds; None if its class differs from the column's."""
    if not any(is_type(type_) for is_type in _CLASSES.get(kind, ())):
        return None
    if kind == OrderingKind.DECIMAL:
        return _rescale(value, type_)
    return _to_micros(np.array([value], np.int64))[0].item() if _is_millis(type_) else value


def _is_millis(type_: pa.DataType) -> bool:
    """Say whether a column is declared as milliseconds in UTC; Java does not convert local times."""
    return bool(pa.types.is_timestamp(type_) and type_.unit == "ms" and type_.tz is not None)


def _to_micros(numbers: np.ndarray) -> np.ndarray:
    """Return times as microseconds. Numbers above the limit are microseconds already; overflow is the same in Java."""
    return np.where(numbers <= _LAST_MILLIS, numbers * MICROS_PER_MILLI, numbers)


def _to_merge_type(type_: pa.DataType) -> pa.DataType:
    """Return the type that an ordering field of a declared type has in a merge: timestamps are microseconds."""
    return pa.timestamp("us", type_.tz) if pa.types.is_timestamp(type_) else type_


def _rescale(value: Decimal, type_: pa.Decimal128Type) -> Decimal:
    with localcontext(prec=_DIGITS):
        scaled = value.quantize(Decimal(1).scaleb(-type_.scale))
        if scaled == value and scaled.adjusted() < type_.precision - type_.scale:
            return scaled
    raise UnsupportedFeatureError(f"A delete's ordering value {value} does not fit into {type_}.")
