"""Ordering values of delete blocks, brought to the types of the table's ordering fields.

Hudi's DeleteRecord and OrderingValues: null and the int 0 mean "no ordering".  Delete blocks keep timestamps as
micros in
a long, decimals rescaled to 15 digits after the point and dates as days; such values take the column's type.  A value
of
another class than the column's stays what it is: it compares with nothing but values of its own class.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.formats.arrays import from_numpy
from hoodie_py.formats.delete_values import OrderingKind
from hoodie_py.formats.deletes import DeleteRecords
from hoodie_py.formats.kernels import cast
from hoodie_py.reader.ordering import Foreign, OrderingColumn
from hoodie_py.reader.records import DEFAULT_ORDERING

_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_DATE = datetime.date(1970, 1, 1)
_INT_BITS = 32
_PLAIN: tuple[tuple[Callable[[pa.DataType], bool], tuple[OrderingKind, ...]], ...] = (
    (pa.types.is_int32, (OrderingKind.INT,)),
    (pa.types.is_int64, (OrderingKind.LONG,)),
    (pa.types.is_date32, (OrderingKind.DATE, OrderingKind.INT)),
    (pa.types.is_timestamp, (OrderingKind.LONG, OrderingKind.TIMESTAMP_MICROS)),
)


def delete_ordering(deleted: DeleteRecords, types: Sequence[pa.DataType]) -> list[Any]:
    """Return one ordering value per delete: a value of the type, a tuple for several fields, Foreign or
    DEFAULT_ORDERING.
    """
    if len(types) == 1:
        type_ = types[0]
        return [_single(kind, value, type_) for kind, value in zip(deleted.kinds.tolist(), deleted.values, strict=True)]
    return [_several(kind, value, types) for kind, value in zip(deleted.kinds.tolist(), deleted.values, strict=True)]


def delete_order_column(deleted: DeleteRecords, types: Sequence[pa.DataType]) -> OrderingColumn:
    """Return the ordering values of deletes as a column, without a step in Python for each where all have the
    column's own class.
    """
    plain = plain_order_column(deleted, types)
    return OrderingColumn.from_values(delete_ordering(deleted, types), types) if plain is None else plain


def plain_order_column(deleted: DeleteRecords, types: Sequence[pa.DataType]) -> OrderingColumn | None:
    """Return the ordering values of deletes as a column; None unless all have the column's own class and are
    integers.
    """
    if not types:
        return OrderingColumn.of_deletes([], len(deleted))
    if len(types) > 1 or deleted.numbers is None:
        return None
    column = _plain_column(deleted.kinds, deleted.numbers, types[0])
    return None if column is None else OrderingColumn.from_columns([column], len(deleted))


def _plain_column(kinds: np.ndarray, numbers: np.ndarray, type_: pa.DataType) -> pa.Array | None:
    """Return integers of kinds that the type takes as they are, null where there is no ordering; None if some are of
    another class.
    """
    missing = kinds == OrderingKind.NONE
    plain = missing.copy()
    if missing.all():
        return pa.nulls(len(kinds), type_)
    for kind in next((kinds_of for is_type, kinds_of in _PLAIN if is_type(type_)), ()):
        plain |= kinds == kind
    if not plain.all():
        return None
    storage = pa.int32() if type_.bit_width == _INT_BITS else pa.int64()
    return cast(from_numpy(numbers, missing), storage).view(type_)


def _single(kind: int, value: Any, type_: pa.DataType) -> Any:
    if kind == OrderingKind.NONE:
        return DEFAULT_ORDERING
    converted = _converted(kind, value, type_)
    return Foreign(OrderingKind(kind).name.lower(), value) if converted is None else converted


def _several(kind: int, value: Any, types: Sequence[pa.DataType]) -> Any:
    if kind == OrderingKind.NONE:
        return DEFAULT_ORDERING
    if kind != OrderingKind.ARRAY or len(value) != len(types):
        return Foreign(OrderingKind(kind).name.lower(), value)
    parts = tuple(_part(part_kind, part, type_) for (part_kind, part), type_ in zip(value, types, strict=True))
    return Foreign("array", parts) if any(isinstance(part, Foreign) for part in parts) else parts


def _part(kind: int, value: Any, type_: pa.DataType) -> Any:
    return DEFAULT_ORDERING if kind == OrderingKind.INT and value == 0 else _single(kind, value, type_)


def _converted(kind: int, value: Any, type_: pa.DataType) -> Any:
    """Return the value in the column's Python type; None where the classes differ."""
    if kind == OrderingKind.INT and pa.types.is_int32(type_):
        return value
    if kind == OrderingKind.LONG and pa.types.is_int64(type_):
        return value
    if kind == OrderingKind.FLOAT and pa.types.is_float32(type_):
        return value
    if kind == OrderingKind.DOUBLE and pa.types.is_float64(type_):
        return value
    if kind == OrderingKind.STRING and pa.types.is_string(type_):
        return value
    if kind == OrderingKind.BOOLEAN and pa.types.is_boolean(type_):
        return value
    if kind == OrderingKind.BYTES and pa.types.is_binary(type_):
        return value
    if kind == OrderingKind.DECIMAL and pa.types.is_decimal(type_):
        return _rescaled(value, type_.scale)
    if kind in (OrderingKind.DATE, OrderingKind.INT) and pa.types.is_date32(type_):
        return _EPOCH_DATE + datetime.timedelta(days=value)
    if kind in (OrderingKind.LONG, OrderingKind.TIMESTAMP_MICROS) and pa.types.is_timestamp(type_):
        moment = _EPOCH_UTC + datetime.timedelta(microseconds=value)
        return moment if type_.tz else moment.replace(tzinfo=None)
    return None


def _rescaled(value: Decimal, scale: int) -> Decimal | None:
    """Return the decimal with the column's scale; None where digits would be lost (the value is not one of the
    column).
    """
    scaled = value.quantize(Decimal(1).scaleb(-scale))
    return scaled if scaled == value else None
