"""Ordering values of delete blocks, brought to the types of the table's ordering fields.

Hudi's DeleteRecord and OrderingValues: null and the int 0 mean "no ordering".  Delete blocks keep timestamps as
micros in
a long, decimals rescaled to 15 digits after the point and dates as days; such values take the column's type.  A value
of
another class than the column's stays what it is: it compares with nothing but values of its own class.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from hoodie_py.formats.deletes import DeleteRecords, OrderingKind
from hoodie_py.reader.ordering import Foreign
from hoodie_py.reader.records import DEFAULT_ORDERING

_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_DATE = datetime.date(1970, 1, 1)
_MAX_MILLIS = 9_999_999_999_999  # Hudi reads longs up to here as milliseconds where the field is timestamp-millis


def delete_ordering(deleted: DeleteRecords, types: Sequence[pa.DataType]) -> list[Any]:
    """Return one ordering value per delete: a value of the type, a tuple for several fields, Foreign or
    DEFAULT_ORDERING.
    """
    if len(types) == 1:
        type_ = types[0]
        return [_single(kind, value, type_) for kind, value in zip(deleted.kinds.tolist(), deleted.values, strict=True)]
    return [_several(kind, value, types) for kind, value in zip(deleted.kinds.tolist(), deleted.values, strict=True)]


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
    parts = tuple(_single(part_kind, part, type_) for (part_kind, part), type_ in zip(value, types, strict=True))
    return Foreign("array", parts) if any(isinstance(part, Foreign) for part in parts) else parts


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
