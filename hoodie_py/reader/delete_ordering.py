"""Ordering values of delete blocks, brought to the types of the table's ordering fields.

Hudi's DeleteRecord, OrderingValues and OrderingValueEngineTypeConverter: null and the int 0 mean "no ordering". Of the
rest a value has the class of its column, as Spark's rows have it, or compares with nothing but values of its own class:

    int, date                       int; a date of its own (DateWrapper) is of another class
    long, timestamp                 long, in microseconds; a timestamp of its own is of another class
    timestamp that the table        long; up to 9,999,999,999,999 (the year 2286) in milliseconds, as Flink writes it,
    declares in milliseconds (UTC)  beyond that in microseconds, as Spark does
    float, double, string, boolean, the same; decimals have 15 digits after the point
    bytes, decimal
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.arrays import from_numpy
from hoodie_py.formats.avro_types import MICROS_PER_MILLI
from hoodie_py.formats.delete_values import OrderingKind
from hoodie_py.formats.deletes import DeleteRecords
from hoodie_py.formats.kernels import cast
from hoodie_py.reader.ordering import ForeignValue, OrderingColumn
from hoodie_py.reader.records import DEFAULT_ORDERING

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
    """Return one ordering value per delete: a value of the type, a tuple for several fields, ForeignValue or
    DEFAULT_ORDERING.

    Args:
        deleted: the deletes.
        types: of the ordering fields, as the table declares them: milliseconds in UTC are timestamp[ms, UTC].

    Raises:
        UnsupportedFeatureError: a decimal that its column cannot hold.
    """
    if len(types) == 1:
        type_ = types[0]
        return [
            _convert_single(kind, value, type_)
            for kind, value in zip(deleted.kinds.tolist(), deleted.values, strict=True)
        ]
    return [
        _convert_several(kind, value, types) for kind, value in zip(deleted.kinds.tolist(), deleted.values, strict=True)
    ]


def make_delete_ordering_column(deleted: DeleteRecords, types: Sequence[pa.DataType]) -> OrderingColumn:
    """Return the ordering values of deletes as a column, without a step in Python for each where all have the
    column's own class; arguments and errors as for ``convert_delete_ordering``.
    """
    plain = make_plain_ordering_column(deleted, types)
    if plain is not None:
        return plain
    return OrderingColumn.from_values(
        convert_delete_ordering(deleted, types), [_to_merge_type(type_) for type_ in types]
    )


def make_plain_ordering_column(deleted: DeleteRecords, types: Sequence[pa.DataType]) -> OrderingColumn | None:
    """Return the ordering values of deletes as a column; None unless all have the column's own class and are
    integers.
    """
    if not types:
        return OrderingColumn.of_deletes([], len(deleted))
    if len(types) > 1 or deleted.numbers is None:
        return None
    column = _make_integer_column(deleted.kinds, deleted.numbers, types[0])
    return None if column is None else OrderingColumn.from_columns([column], len(deleted))


def _make_integer_column(kinds: np.ndarray, numbers: np.ndarray, type_: pa.DataType) -> pa.Array | None:
    """Return integers of kinds that the type takes as they are, null where there is no ordering; None if some are of
    another class.
    """
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
    """Return the value as the column takes it, times as the numbers they are; None where the classes differ."""
    if not any(is_type(type_) for is_type in _CLASSES.get(kind, ())):
        return None
    if kind == OrderingKind.DECIMAL:
        return _rescale(value, type_)
    return _to_micros(np.array([value], np.int64))[0].item() if _is_millis(type_) else value


def _is_millis(type_: pa.DataType) -> bool:
    """Whether a column is declared as milliseconds in UTC; Java compares local times as they are."""
    return bool(pa.types.is_timestamp(type_) and type_.unit == "ms" and type_.tz is not None)


def _to_micros(numbers: np.ndarray) -> np.ndarray:
    """Return points in time as microseconds, which large numbers are already; what overflows does so as in Java."""
    return np.where(numbers <= _LAST_MILLIS, numbers * MICROS_PER_MILLI, numbers)


def _to_merge_type(type_: pa.DataType) -> pa.DataType:
    """Return the type in which a merge holds an ordering field that the table declares as a type."""
    return pa.timestamp("us", type_.tz) if pa.types.is_timestamp(type_) else type_


def _rescale(value: Decimal, type_: pa.Decimal128Type) -> Decimal:
    with localcontext(prec=_DIGITS):
        scaled = value.quantize(Decimal(1).scaleb(-type_.scale))
        if scaled == value and scaled.adjusted() < type_.precision - type_.scale:
            return scaled
    raise UnsupportedFeatureError(f"A delete's ordering value {value} does not fit into {type_}.")
