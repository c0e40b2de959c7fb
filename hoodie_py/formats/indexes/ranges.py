"""The range of one column's values in a file or a partition, and the records of column statistics made of ranges (Hudi
``HoodieColumnRangeMetadata``, ``HoodieMetadataColumnStats``).

Ranges merge as in Java: counts and sizes are added, and values compare as in Java: texts by UTF-16 units, bytes as
signed ones, floats with NaN last and -0.0 before 0.0. Java also writes statistics that do not hold;
``read_trusted_ranges`` returns only what a reader may conclude.
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import call, from_numpy, from_texts, repeat_value, take, to_booleans, to_numbers
from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.indexes import bounds as stored_bounds
from hoodie_py.formats.indexes.bounds import RawValue, ValueKind, ValueType

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
    ValueKind(ValueType.DECIMAL, stored_bounds.DECIMAL_PRECISION, stored_bounds.DECIMAL_SCALE),
    ValueKind(ValueType.LONG),
    ValueKind(ValueType.LONG),
    ValueKind(ValueType.DATE),
)


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """Statistics of one column in a file or a partition; ``column`` is a path with dots. Sizes are in bytes."""

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
    """The ranges of the columns of one file.

    ``incomplete`` are columns whose range is unknown although the file may contain values: the file must be read.
    """

    ranges: tuple[ColumnRange, ...]
    incomplete: tuple[str, ...] = ()

    def complete(self, read: Mapping[str, ColumnRange]) -> FileRanges:
        """Return these ranges with bounds and null counts of some columns replaced by the records' ones.

        Bounds of base files hold for both zeros, like parquet-mr's.
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
    return ColumnRange(column, stored_bounds.NO_VALUES)


def make_java_key(value: Any, kind: ValueKind) -> Any:
    """Return a key that compares as Java compares the value."""
    return value.encode("utf-16-be", "surrogatepass") if kind.type == ValueType.STRING else make_avro_key(value, kind)


def make_avro_key(value: Any, kind: ValueKind) -> Any:
    """Return a key that compares as Avro for Java compares the value: texts by their bytes, all else as Java does."""
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
    """Merge one or more ranges of one column; ``key`` makes keys that compare as the values do.

    Raises:
        UnsupportedFeatureError: the ranges have values of different kinds.
    """
    kinds = {each.kind for each in ranges} - {stored_bounds.NO_VALUES}
    if len(kinds) > 1:
        raise UnsupportedFeatureError("Merging column statistics of different value types.", column=ranges[0].column)
    kind = kinds.pop() if kinds else stored_bounds.NO_VALUES

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
    """Return a range with its values promoted to another kind, the kind of the table's column, which was widened.

    Returns None if the two kinds order values differently. So do floats and doubles: Java converts them through a text.
    """
    if kind in (found.kind, stored_bounds.NO_VALUES):
        return found
    if found.kind == stored_bounds.NO_VALUES or found.least is None or found.greatest is None:
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
    """Return the kind in which statistics of an index version can be merged: in version 1 the wrapper's."""
    if version != stored_bounds.V1 or kind.type in (ValueType.DATE, ValueType.NULL):
        return kind
    if kind.type == ValueType.DECIMAL:
        return ValueKind(ValueType.DECIMAL, stored_bounds.DECIMAL_PRECISION, stored_bounds.DECIMAL_SCALE)
    return ValueKind(_PLAIN_KINDS[stored_bounds.find_member(kind, stored_bounds.V2)])


def simplify_range(found: ColumnRange, version: int) -> ColumnRange:
    """Return a range in its simplified kind (``simplify_kind``)."""
    kind = simplify_kind(found.kind, version)
    scaled = promote_range(found, kind) if kind.type == ValueType.DECIMAL else None
    return scaled or replace(found, kind=kind)


def read_statistics(statistics: pa.Array, version: int) -> list[ColumnRange]:
    """Return the ranges in column statistics."""
    return [_read_row(row, version) for row in statistics.to_pylist()]


def _read_row(row: Mapping[str, Any], version: int) -> ColumnRange:
    least, greatest = (_unwrap(row[name]) for name in ("minValue", "maxValue"))
    member = next((each[0] for each in (least, greatest) if each is not None), None)
    stored = row.get("valueType")
    if version == stored_bounds.V1 or stored is None:
        kind = stored_bounds.NO_VALUES if member is None else _KINDS_OF_WRAPPERS[member]
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
    """Return column statistics: ``fileName`` and the range of each file.

    ``version``: version of the index. ``tight``: per range, whether its bounds are exact (default: no).
    """
    kinds = [each.kind for each in ranges]
    arrays = [
        from_texts(names, pa.string()),
        from_texts([each.column for each in ranges], pa.string()),
        stored_bounds.wrap_values([each.least for each in ranges], kinds, version, BOUND_TYPE),
        stored_bounds.wrap_values([each.greatest for each in ranges], kinds, version, BOUND_TYPE),
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
        stored_bounds.make_value_types(kinds, version),
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(STATISTICS_TYPE))


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
    """Return a range that holds for any values, for a file whose range is unknown; None for kinds without one.

    A partition's record cannot leave a file out, and cannot say that it knows nothing: Java takes a column without a
    record as all null once another column of the partition has one. So the range is that of two values, one of them
    null. Its bounds are the least and the greatest value of the kind: for texts one that is greater than all texts in
    practice, for times those of the years 1 to 9999, which Spark can show. Bytes and UUIDs have no such bounds, as
    readers and writers order them differently.
    """
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


Mask = npt.NDArray[np.bool_]

_SMALL = 2048  # bytes of a column that cannot contain two bounds of 4,096 bytes (parquet-mr's MAX_STATS_SIZE)


@dataclass(frozen=True, slots=True)
class TrustedRanges:
    """What is certain about the values of one column in files, or in partitions, with one entry for each.

    Attributes:
        least, greatest: bounds in the column's type, null if unknown.
        no_nulls: no value is null.
        all_null: every value is null, or there are no values.
        no_rows: there are no values, as in a log file that only deletes.
    """

    least: pa.Array
    greatest: pa.Array
    no_nulls: Mask
    all_null: Mask
    no_rows: Mask


def read_trusted_ranges(
    statistics: pa.Array, type_: pa.DataType, *, of_partitions: bool, millis: bool = False
) -> TrustedRanges:
    """Return what is certain by the statistics (``ColumnStatsMetadata``) of one column of a type.

    ``of_partitions``: the statistics are of partitions, not of files. ``millis``: see ``unwrap_values``. Deleted and
    null statistics say nothing.

    Java 1.2.0 takes the statistics of base files from their Parquet footers, which may lack some, and then writes
    statistics that do not hold (Hudi ``ParquetUtils``, ``Statistics`` of parquet-mr):

    * Texts and bytes: a row group whose two bounds have 4,096 bytes together has none. It counts as *all null*, and
    merged
      bounds ignore it.
    * Floats: a row group with a NaN has the bounds 0.0 and 0.0, which are merged like any others.
    * Times stored as INT96 have no bounds: *all null* in statistics of version 1.
    * Integers and dates that are all null have the bounds 0 and 0.
    * Decimals whose scale grew: a partition's bounds mix numbers of the old and the new scale as if they had one scale.

    Statistics of log files are made from the records and always hold.
    """
    fields = dict(zip((field.name for field in statistics.type), statistics.flatten(), strict=True))
    says = to_booleans(call("is_valid", statistics)) & ~to_booleans(fields["isDeleted"])
    values, nulls = to_numbers(fields["valueCount"], -1), to_numbers(fields["nullCount"], -1)
    kinds = fields.get("valueType")
    least, greatest = (
        stored_bounds.unwrap_values(fields[name], kinds, type_, millis=millis) for name in ("minValue", "maxValue")
    )
    unbounded = to_booleans(call("is_null", fields["minValue"]))
    no_nulls, all_null, no_rows = says & (nulls == 0), says & (nulls >= values) & (values >= 0), says & (values == 0)
    holds = says & ~all_null
    exact = np.zeros(len(statistics), np.bool_) if of_partitions else _are_logs(fields["fileName"])
    if pa.types.is_decimal(type_):
        # A file's bounds have the file's scale; only partitions mix scales.
        holds &= not of_partitions
    if _may_be_long(type_):
        # Bounds and null counts are certain if no value counts as null, or if the column is too small for long values.
        small = to_numbers(fields["totalUncompressedSize"], _SMALL) < _SMALL
        full = exact | small | (nulls == 0)
        holds &= full
        all_null &= full
    if pa.types.is_timestamp(type_):
        all_null &= exact | ~unbounded | _name_kinds(kinds, len(statistics))
    if pa.types.is_floating(type_):
        low, high = to_numbers(least.values, 0), to_numbers(greatest.values, 0)
        # Bounds that exclude 0 did not come from a row group with a NaN.
        holds &= exact | (low > 0) | (high < 0)
    return TrustedRanges(_keep(least.values, holds), _keep(greatest.values, holds), no_nulls, all_null, no_rows)


def count_nulls_too(statistics: pa.Array) -> pa.Array:
    """Return statistics of an expression index with the counts of ``column_stats``.

    Java counts only the non-null values of an expression, and has no bounds if there are none (Hudi
    ``ExpressionIndexRecordGenerationUtils``).
    """
    fields = dict(zip((field.name for field in statistics.type), statistics.flatten(), strict=True))
    values = call("add", fields["valueCount"], fields["nullCount"])
    all_null = call("is_null", fields["minValue"])
    fields["valueCount"] = call("if_else", all_null, fields["nullCount"], values)
    return pa.StructArray.from_arrays(
        list(fields.values()), fields=list(statistics.type), mask=call("is_null", statistics)
    )


def _may_be_long(type_: pa.DataType) -> bool:
    kinds = pa.types
    return any(test(type_) for test in (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary))


def _are_logs(names: pa.Array) -> Mask:
    """Return which names belong to log files."""
    import pyarrow.compute as pc

    return to_booleans(pc.starts_with(names, "."))


def _name_kinds(kinds: pa.Array | None, length: int) -> Mask:
    """Return which statistics name the kind of their values."""
    return np.zeros(length, np.bool_) if kinds is None else to_booleans(call("is_valid", kinds))


def _keep(values: pa.Array, mask: Mask) -> pa.Array:
    """Return values, null where the mask is False."""
    return values if mask.all() else take(values, from_numpy(np.arange(len(values)), ~mask))


FIRST_CERTAIN_DAY: Final = -141_417
"""1582-10-25 in days since 1970: from this day on, statistics of version 1 contain the day that was meant."""

_FIRST, _LAST, _LATE = -141_437, -141_428, 10  # 1582-10-05 and 1582-10-14


def shift_range(data: ColumnRange, version: int) -> ColumnRange | None:
    """Return the range that Java stores for a range of the data; None if it is the same.

    Java (``HoodieAvroWrapperUtils``) stores some dates ten days late in version 1. It makes a ``java.sql.Date`` of the
    days since 1970, and days of its year, month and day. That class uses the Julian calendar up to 1582-10-04, and the
    Gregorian one from 1582-10-15 on. It takes the days between as Julian: 1582-10-05 becomes 1582-10-15, and 1582-10-14
    becomes 1582-10-24. Earlier days do not change, so a stored day up to 1582-10-24 is ambiguous. Version 2 stores the
    days themselves.

    Java compares either the days of the data or the days that it stores. So its bounds hold for the returned range.
    """
    if version != stored_bounds.V1 or data.kind.type is not ValueType.DATE:
        return None
    shifted = replace(data, least=_shift(data.least), greatest=_shift(data.greatest))
    return None if shifted == data else shifted


def _shift(day: RawValue | None) -> RawValue | None:
    return day + _LATE if isinstance(day, int) and _FIRST <= day <= _LAST else day
