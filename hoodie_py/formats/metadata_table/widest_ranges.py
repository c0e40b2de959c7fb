"""Ranges that hold for any values, where those of a file are not known.

A partition's record cannot leave a file out, and cannot say that it knows nothing: Java takes a column without a record
as all null once another column of the partition has one. So bounds are the least and the greatest value of the kind,
for texts one that is greater than all texts in practice, for times those of the years 1 to 9999, which Spark can show.
Bytes and UUIDs have no such bounds, as readers order them otherwise than writers.
"""

from __future__ import annotations

import math
from datetime import date
from typing import Final

from hoodie_py.formats.metadata_table.column_ranges import ColumnRange
from hoodie_py.formats.metadata_table.stat_values import RawValue
from hoodie_py.formats.metadata_table.value_kinds import ValueKind, ValueType

_EPOCH = date(1970, 1, 1).toordinal()
_FIRST_DAY, _LAST_DAY = date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH
_SECONDS = 24 * 60 * 60
_UNITS: Final = {
    ValueType.TIMESTAMP_MILLIS: 10**3,
    ValueType.TIMESTAMP_MICROS: 10**6,
    ValueType.LOCAL_TIMESTAMP_MILLIS: 10**3,
    ValueType.LOCAL_TIMESTAMP_MICROS: 10**6,
}
_BOUNDS: Final[dict[ValueType, tuple[RawValue, RawValue]]] = {
    ValueType.BOOLEAN: (False, True),
    ValueType.INT: (-(1 << 31), (1 << 31) - 1),
    ValueType.LONG: (-(1 << 63), (1 << 63) - 1),
    ValueType.FLOAT: (-math.inf, math.nan),
    ValueType.DOUBLE: (-math.inf, math.nan),
    ValueType.STRING: ("", "\U0010ffff" * 16),
    ValueType.DATE: (_FIRST_DAY, _LAST_DAY),
    ValueType.TIME_MILLIS: (0, _SECONDS * 10**3 - 1),
    ValueType.TIME_MICROS: (0, _SECONDS * 10**6 - 1),
}


def make_widest_range(column: str, kind: ValueKind) -> ColumnRange | None:
    """Return a range that holds for two values of which one is null, None for kinds that have none."""
    bounds = _find_bounds(kind)
    return None if bounds is None else ColumnRange(column, kind, *bounds, nulls=1, values=2)


def _find_bounds(kind: ValueKind) -> tuple[RawValue, RawValue] | None:
    if kind.type == ValueType.DECIMAL:
        most = 10**kind.precision - 1
        return -most, most
    if kind.type in _UNITS:
        unit = _UNITS[kind.type]
        return _FIRST_DAY * _SECONDS * unit, (_LAST_DAY + 1) * _SECONDS * unit - 1
    return _BOUNDS.get(kind.type)
