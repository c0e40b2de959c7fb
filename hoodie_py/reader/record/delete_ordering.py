"""Ordering values of delete blocks, converted to the types of the table's ordering fields.

Agrees with Hudi's DeleteRecord, OrderingValues and OrderingValueEngineTypeConverter. Null and the int 0 mean "no
ordering". Any other value must have the class that its column has in Spark's rows; else it compares only with values of
its own class (``ForeignValue``):

    column                            class of a value that compares
    int, date                         int; a date (DateWrapper) is another class
    long, timestamp                   long, in microseconds; a timestamp is another class
    timestamp that the table          long: up to 9,999,999,999,999 (the year 2286) in milliseconds, as Flink writes it;
    declares in milliseconds (UTC)    above that in microseconds, as Spark writes it
    float, double, string, boolean,   the same type; decimals have 15 digits after the point
    bytes, decimal
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import cast, from_numpy
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.avro.arrow_types import MICROS_PER_MILLI
from hoodie_py.formats.deletes.decoder import DeleteRecords
from hoodie_py.formats.deletes.ordering_value import OrderingKind
from hoodie_py.reader.record.ordering import ForeignValue, OrderingColumn
from hoodie_py.reader.record.record import DEFAULT_ORDERING

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
