"""The range of one column's values in a file or a partition, and the records of column statistics made of ranges (Hudi
``HoodieColumnRangeMetadata``, ``HoodieMetadataColumnStats``).

Ranges merge as Java merges them: counts and sizes add up, and values compare as Java's do, texts by UTF-16 units, bytes
as signed ones, floats with NaN last and -0.0 before 0.0.
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, from_texts, repeat_value
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.metadata_table.stat_values import (
    DECIMAL_PRECISION,
    DECIMAL_SCALE,
    RawValue,
    find_member,
    make_value_types,
    wrap_values,
)
from hoodie_py.formats.metadata_table.value_kinds import NO_VALUES, V1, V2, ValueKind, ValueType

_MEMBERS = (
    pa.bool_(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.binary(),
    pa.string(),
    pa.int32(),
    pa.decimal128(30, 15),
    pa.int64(),
    pa.int64(),
    pa.int32(),
)
_WRAPPERS = [pa.field(f"member{at}", pa.struct([("value", type_)])) for at, type_ in enumerate(_MEMBERS)]
_LISTED = pa.field("member12", pa.struct([("wrappedValues", pa.list_(pa.struct(_WRAPPERS)))]))
BOUND_TYPE: Final = pa.struct([*_WRAPPERS, _LISTED])
_KIND_TYPE = pa.struct([("typeOrdinal", pa.int32()), ("additionalInfo", pa.string())])
STATISTICS_TYPE: Final = pa.struct(
    [
        ("fileName", pa.string()),
        ("columnName", pa.string()),
        ("minValue", BOUND_TYPE),
        ("maxValue", BOUND_TYPE),
        ("valueCount", pa.int64()),
        ("nullCount", pa.int64()),
        ("totalSize", pa.int64()),
        ("totalUncompressedSize", pa.int64()),
        ("isDeleted", pa.bool_()),
        ("isTightBound", pa.bool_()),
        ("valueType", _KIND_TYPE),
    ]
)
"""``ColumnStatsMetadata`` as Arrow reads it from a metadata table of Java 1.2.0."""

_FLOATS = frozenset({ValueType.FLOAT, ValueType.DOUBLE})
_BYTES = frozenset({ValueType.BYTES, ValueType.FIXED})
_SIGN = 1 << 63
_MILLIS_TO_MICROS = frozenset(
    {
        (ValueType.TIMESTAMP_MILLIS, ValueType.TIMESTAMP_MICROS),
        (ValueType.LOCAL_TIMESTAMP_MILLIS, ValueType.LOCAL_TIMESTAMP_MICROS),
    }
)
_PLAIN_KINDS: Final = (
    ValueType.BOOLEAN,
    ValueType.INT,
    ValueType.LONG,
    ValueType.FLOAT,
    ValueType.DOUBLE,
    ValueType.BYTES,
    ValueType.STRING,
)
_KINDS_OF_WRAPPERS: Final = (
    *(ValueKind(each) for each in _PLAIN_KINDS),
    ValueKind(ValueType.DATE),
    ValueKind(ValueType.DECIMAL, DECIMAL_PRECISION, DECIMAL_SCALE),
    ValueKind(ValueType.LONG),
    ValueKind(ValueType.LONG),
    ValueKind(ValueType.DATE),
)


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """What a file, or a partition, has of one column; ``column`` is a path with dots. Sizes are bytes."""

    column: str
    kind: ValueKind
    least: RawValue | None = None
    greatest: RawValue | None = None
    nulls: int = 0
    values: int = 0
    size: int = 0
    uncompressed: int = 0


@dataclass(frozen=True, slots=True)
class FileRanges:
    """The ranges of the columns of one file. ``incomplete`` are columns whose range is not known, though the file may
    have values of them: the file has to be read.
    """

    ranges: tuple[ColumnRange, ...]
    incomplete: tuple[str, ...] = ()

    def complete(self, read: Mapping[str, ColumnRange]) -> FileRanges:
        """Return these ranges, with bounds and null counts of some columns replaced by those of the records. Bounds of
        base files hold for either zero, as parquet-mr's.
        """
        ranges = (
            replace(each, least=_order_zero(new.least, -0.0), greatest=_order_zero(new.greatest, 0.0), nulls=new.nulls)
            if new is not None
            else each
            for each, new in ((each, read.get(each.column)) for each in self.ranges)
        )
        return FileRanges(tuple(ranges), tuple(name for name in self.incomplete if name not in read))


def _order_zero(value: RawValue | None, zero: float) -> RawValue | None:
    return zero if isinstance(value, float) and value == 0 else value


def make_empty_range(column: str) -> ColumnRange:
    """Return the range of a column in a file without records."""
    return ColumnRange(column, NO_VALUES)


def make_java_key(value: Any, kind: ValueKind) -> Any:
    """Return what compares as Java compares the value."""
    return value.encode("utf-16-be", "surrogatepass") if kind.type == ValueType.STRING else make_avro_key(value, kind)


def make_avro_key(value: Any, kind: ValueKind) -> Any:
    """Return what compares as Avro for Java compares the value: texts by their bytes, all else as Java does."""
    if kind.type == ValueType.STRING:
        return value.encode("utf-8", "surrogatepass")
    if kind.type in _BYTES:
        return bytes(each ^ 0x80 for each in value)
    if kind.type in _FLOATS:
        (bits,) = struct.unpack(">q", struct.pack(">d", math.nan if math.isnan(value) else value))
        return bits if bits >= 0 else bits ^ (_SIGN - 1)
    if kind.type == ValueType.UUID:
        number = uuid.UUID(value).int
        return (number >> 64) ^ _SIGN, (number & (2 * _SIGN - 1)) ^ _SIGN
    return value


def merge_ranges(ranges: Sequence[ColumnRange], *, key: Callable[[Any, ValueKind], Any] = make_java_key) -> ColumnRange:
    """Merge ranges of one column, at least one; ``key`` says how values compare.

    Raises:
        UnsupportedFeatureError: they have values of different kinds.
    """
    kinds = {each.kind for each in ranges} - {NO_VALUES}
    if len(kinds) > 1:
        raise UnsupportedFeatureError("Merging column statistics of different value types.", column=ranges[0].column)
    kind = kinds.pop() if kinds else NO_VALUES

    def order(value: RawValue) -> Any:
        return key(value, kind)

    return ColumnRange(
        ranges[0].column,
        kind,
        min((each.least for each in ranges if each.least is not None), key=order, default=None),
        max((each.greatest for each in ranges if each.greatest is not None), key=order, default=None),
        sum(each.nulls for each in ranges),
        sum(each.values for each in ranges),
        sum(each.size for each in ranges),
        sum(each.uncompressed for each in ranges),
    )


def promote_range(found: ColumnRange, kind: ValueKind) -> ColumnRange | None:
    """Return a range with values of another kind, that of the table's column, which may have been widened; None where
    the values of the one are not ordered as those of the other. Floats become doubles through a text in Java: None.
    """
    if kind in (found.kind, NO_VALUES):
        return found
    if found.kind == NO_VALUES or found.least is None or found.greatest is None:
        return replace(found, kind=kind, least=None, greatest=None)
    convert = _find_promotion(found.kind, kind)
    if convert is None:
        return None
    return replace(found, kind=kind, least=convert(found.least), greatest=convert(found.greatest))


def _find_promotion(old: ValueKind, new: ValueKind) -> Callable[[Any], Any] | None:
    if old.type == ValueType.INT and new.type == ValueType.LONG:
        return int
    if old.type in (ValueType.INT, ValueType.LONG) and new.type in _FLOATS:
        return float
    if old.type == ValueType.DECIMAL and new.type == ValueType.DECIMAL and new.scale >= old.scale:
        factor = 10 ** (new.scale - old.scale)
        return lambda value: value * factor
    if (old.type, new.type) in _MILLIS_TO_MICROS:
        return lambda value: value * 1000
    return None


def simplify_kind(kind: ValueKind, version: int) -> ValueKind:
    """Return the kind by which statistics of an index version can be merged: the wrapper's, in version 1."""
    if version != V1 or kind.type in (ValueType.DATE, ValueType.NULL):
        return kind
    if kind.type == ValueType.DECIMAL:
        return ValueKind(ValueType.DECIMAL, DECIMAL_PRECISION, DECIMAL_SCALE)
    return ValueKind(_PLAIN_KINDS[find_member(kind, V2)])


def simplify_range(found: ColumnRange, version: int) -> ColumnRange:
    """Return a range in its simplified kind."""
    kind = simplify_kind(found.kind, version)
    scaled = promote_range(found, kind) if kind.type == ValueType.DECIMAL else None
    return scaled or replace(found, kind=kind)


def read_statistics(statistics: pa.Array, version: int) -> list[ColumnRange]:
    """Return the ranges that column statistics have."""
    return [_read_row(row, version) for row in statistics.to_pylist()]


def _read_row(row: Mapping[str, Any], version: int) -> ColumnRange:
    least, greatest = (_unwrap(row[name]) for name in ("minValue", "maxValue"))
    member = next((each[0] for each in (least, greatest) if each is not None), None)
    stored = row.get("valueType")
    if version == V1 or stored is None:
        kind = NO_VALUES if member is None else _KINDS_OF_WRAPPERS[member]
    else:
        precision, scale = map(int, (stored["additionalInfo"] or "0,0").split(","))
        kind = ValueKind(ValueType(stored["typeOrdinal"]), precision, scale)
    return ColumnRange(
        row["columnName"],
        kind,
        None if least is None else _to_raw(least[1], kind),
        None if greatest is None else _to_raw(greatest[1], kind),
        row["nullCount"],
        row["valueCount"],
        row["totalSize"],
        row["totalUncompressedSize"],
    )


def _unwrap(wrapped: Mapping[str, Any] | None) -> tuple[int, Any] | None:
    """Return the number of the wrapper, and the value."""
    for name, inner in (wrapped or {}).items():
        if inner is not None:
            return int(name.removeprefix("member")), inner.get("value")
    return None


def _to_raw(value: Any, kind: ValueKind) -> Any:
    if kind.type != ValueType.DECIMAL:
        return value
    if isinstance(value, bytes):
        return int.from_bytes(value, "big", signed=True)
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits))) * 10 ** (kind.scale + exponent)
    return -number if sign else number


def make_statistics(
    names: Sequence[str], ranges: Sequence[ColumnRange], version: int, *, tight: Sequence[bool] = ()
) -> pa.Array:
    """Return column statistics: ``fileName`` and the range of each. ``version`` is that of the index; ``tight`` says
    of each whether it is so, by default none is.
    """
    kinds = [each.kind for each in ranges]
    arrays = [
        from_texts(names, pa.string()),
        from_texts([each.column for each in ranges], pa.string()),
        wrap_values([each.least for each in ranges], kinds, version, BOUND_TYPE),
        wrap_values([each.greatest for each in ranges], kinds, version, BOUND_TYPE),
        *(
            from_numpy(np.array(numbers, np.int64))
            for numbers in (
                [each.values for each in ranges],
                [each.nulls for each in ranges],
                [each.size for each in ranges],
                [each.uncompressed for each in ranges],
            )
        ),
        repeat_value(False, pa.bool_(), len(ranges)),
        pa.array(tight or [False] * len(ranges), pa.bool_()),
        make_value_types(kinds, version),
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(STATISTICS_TYPE))
