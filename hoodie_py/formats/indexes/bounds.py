"""The least and greatest values in column statistics: wrapped for the metadata table, and unwrapped for a reader.

Java wraps a value into one branch of a union by its type (Hudi ``HoodieAvroWrapperUtils``). Read as Arrow, the union is
a struct whose members are the wrappers in this order:

    0 boolean    1 int     2 long       3 float      4 double       5 bytes
    6 string     7 date    8 decimal    9 time, us   10 timestamp, us   11 local date

Statistics of version 1 wrap the primitive type that the file stores, except that dates and decimals have wrappers of
their own; a long does not say the unit of a time. Statistics of version 2 (tables of version 9 on) store dates as int,
times as int or long, and decimals as the bytes of the unscaled integer. Their ``valueType`` names the kind of the
values by its number, and precision and scale of decimals (Hudi ``ValueType``, ``ValueMetadata``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import cast, from_numpy, from_texts, is_valid, make_bitmap, take, to_numbers
from hoodie_py.formats.avro.schema import AvroType, Decimal, Fixed, Primitive, Union

V1: Final = 1
V2: Final = 2

_PLAIN_BYTES = 16  # of a UUID in a Parquet file


class ValueType(IntEnum):
    """Hudi's kinds of values, numbered as in ``valueType.typeOrdinal``."""

    V1 = 0
    NULL = 1
    BOOLEAN = 2
    INT = 3
    LONG = 4
    FLOAT = 5
    DOUBLE = 6
    STRING = 7
    BYTES = 8
    FIXED = 9
    DECIMAL = 10
    UUID = 11
    DATE = 12
    TIME_MILLIS = 13
    TIME_MICROS = 14
    TIMESTAMP_MILLIS = 15
    TIMESTAMP_MICROS = 16
    TIMESTAMP_NANOS = 17
    LOCAL_TIMESTAMP_MILLIS = 18
    LOCAL_TIMESTAMP_MICROS = 19
    LOCAL_TIMESTAMP_NANOS = 20


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A kind of values; precision and scale are only for decimals."""

    type: ValueType
    precision: int = 0
    scale: int = 0

    @property
    def info(self) -> str | None:
        """The text of ``valueType.additionalInfo``."""
        return f"{self.precision},{self.scale}" if self.type == ValueType.DECIMAL else None


NO_VALUES: Final = ValueKind(ValueType.NULL)

_OF_AVRO = {
    ("boolean", None): ValueType.BOOLEAN,
    ("int", None): ValueType.INT,
    ("int", "date"): ValueType.DATE,
    ("int", "time-millis"): ValueType.TIME_MILLIS,
    ("long", None): ValueType.LONG,
    ("long", "time-micros"): ValueType.TIME_MICROS,
    ("long", "timestamp-millis"): ValueType.TIMESTAMP_MILLIS,
    ("long", "timestamp-micros"): ValueType.TIMESTAMP_MICROS,
    ("long", "local-timestamp-millis"): ValueType.LOCAL_TIMESTAMP_MILLIS,
    ("long", "local-timestamp-micros"): ValueType.LOCAL_TIMESTAMP_MICROS,
    ("float", None): ValueType.FLOAT,
    ("double", None): ValueType.DOUBLE,
    ("bytes", None): ValueType.BYTES,
    ("string", None): ValueType.STRING,
    ("string", "uuid"): ValueType.UUID,
}


def find_avro_kind(node: AvroType) -> ValueKind | None:
    """Return the kind of a column's values by its Avro type; None for records, lists, maps, enumerations, vectors."""
    match node:
        case Union() if len(node.members) == 1:
            return find_avro_kind(node.members[0])
        case Decimal():
            return ValueKind(ValueType.DECIMAL, node.precision, node.scale)
        case Fixed(vector=None):
            return ValueKind(ValueType.FIXED)
        case Primitive():
            found = _OF_AVRO.get((node.kind, node.logical))
            return None if found is None else ValueKind(found)
    return None


RawValue = bool | int | float | str | bytes
"""A value as Hudi wraps it: a date or time as a number of days or units, a decimal as its unscaled integer."""

_BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES, _STRING, _DATE, _DECIMAL, _TIME, _TIMESTAMP, _LOCAL_DATE = range(12)
DECIMAL_PRECISION: Final = 30  # of the wrapper of decimals in version 1
DECIMAL_SCALE: Final = 15
_PRIMITIVE_OF: Final = {
    ValueType.BOOLEAN: _BOOLEAN,
    ValueType.INT: _INT,
    ValueType.LONG: _LONG,
    ValueType.FLOAT: _FLOAT,
    ValueType.DOUBLE: _DOUBLE,
    ValueType.STRING: _STRING,
    ValueType.BYTES: _BYTES,
    ValueType.FIXED: _BYTES,
    ValueType.DECIMAL: _BYTES,
    ValueType.UUID: _STRING,
    ValueType.DATE: _INT,
    ValueType.TIME_MILLIS: _INT,
    ValueType.TIME_MICROS: _LONG,
    ValueType.TIMESTAMP_MILLIS: _LONG,
    ValueType.TIMESTAMP_MICROS: _LONG,
    ValueType.TIMESTAMP_NANOS: _LONG,
    ValueType.LOCAL_TIMESTAMP_MILLIS: _LONG,
    ValueType.LOCAL_TIMESTAMP_MICROS: _LONG,
    ValueType.LOCAL_TIMESTAMP_NANOS: _LONG,
}
_MILLIS = frozenset({ValueType.TIMESTAMP_MILLIS, ValueType.LOCAL_TIMESTAMP_MILLIS})
_NANOS = frozenset({ValueType.TIMESTAMP_NANOS, ValueType.LOCAL_TIMESTAMP_NANOS})
_DTYPES: Final = {_INT: np.int32, _LONG: np.int64, _FLOAT: np.float32, _DOUBLE: np.float64, _DATE: np.int32}
_TIMES = frozenset({ValueType.TIMESTAMP_MICROS, ValueType.LOCAL_TIMESTAMP_MICROS}) | _MILLIS | _NANOS
_REALS: Final = {_FLOAT: pa.float32(), _DOUBLE: pa.float64()}
_INFO = re.compile(r"([0-9]{1,2}),(-?[0-9]{1,2})")
_PER_MILLI, _PER_MICRO = 1000, 1000
_MILLIS_LIMIT = (1 << 63) // _PER_MILLI
_MAX_PRECISION, _DECIMAL_BYTES = 38, 16
_FIRST_AMBIGUOUS = 0xEE  # from this byte on, UTF-16 orders texts differently than UTF-8
_KIND_TYPE: Final = pa.struct([("typeOrdinal", pa.int32()), ("additionalInfo", pa.string())])


class Bounds(NamedTuple):
    """Least or greatest values in the type of a column, null if there is none.

    ``known`` is false where the statistics contain a bound that cannot be used.
    """

    values: pa.Array
    known: npt.NDArray[np.bool_]


def wrap_values(
    values: Sequence[RawValue | None], kinds: Sequence[ValueKind], version: int, type_: pa.StructType
) -> pa.Array:
    """Wrap values, each None or of its kind in ``kinds``, as the union ``type_`` of a metadata table."""
    places: dict[int, list[int]] = {}
    for at, (value, kind) in enumerate(zip(values, kinds, strict=True)):
        if value is not None:
            places.setdefault(find_member(kind, version), []).append(at)
    valid = np.zeros(len(values), np.bool_)
    arrays = []
    for number, field in enumerate(type_):
        rows = places.get(number)
        if rows is None:
            arrays.append(pa.nulls(len(values), field.type))
            continue
        inner = _make_inner([(values[i], kinds[i]) for i in rows], number)
        index = np.zeros(len(values), np.int64)
        index[rows] = np.arange(len(rows))
        missing = np.ones(len(values), np.bool_)
        missing[rows] = False
        valid[rows] = True
        spread = take(inner, from_numpy(index, missing))
        arrays.append(pa.StructArray.from_arrays([spread], fields=list(field.type), mask=from_numpy(missing)))
    return pa.StructArray.from_arrays(arrays, fields=list(type_), mask=from_numpy(~valid))


def make_value_types(kinds: Sequence[ValueKind], version: int) -> pa.Array:
    """Return ``valueType`` of each kind; nulls in version 1, whose statistics do not contain it."""
    if version == V1:
        return pa.nulls(len(kinds), _KIND_TYPE)
    ordinals = from_numpy(np.array([int(kind.type) for kind in kinds], np.int32))
    infos = from_texts([kind.info for kind in kinds], pa.string())
    return pa.StructArray.from_arrays([ordinals, infos], fields=list(_KIND_TYPE))


def unwrap_values(
    wrapped: pa.Array, value_types: pa.Array | None, type_: pa.DataType, *, millis: bool = False
) -> Bounds:
    """Return bounds (``minValue`` or ``maxValue``) as values of a column's type.

    ``value_types`` is the ``valueType`` of the same statistics, None if they lack the field. ``millis`` says that the
    table declares the column as a time in milliseconds, so the unit of a long in version 1 is uncertain.

    A bound helps a reader only if it holds in the reader's own order and type. So a value is *unknown* if it cannot be
    converted without loss, or another order may have put it there: bytes and UUIDs, which Java orders otherwise; texts
    with characters that UTF-16 orders otherwise; NaN; floats in a column of doubles, which Java widens through a text.
    """
    wanted = is_valid(wrapped)
    kinds, numbers = _number_kinds(value_types, len(wrapped))
    pieces: list[pa.Array] = [pa.nulls(1, type_)]
    index, count = np.zeros(len(wrapped), np.int64), 1
    for member, array in enumerate(wrapped.flatten()[: _LOCAL_DATE + 1]):
        inner = array.flatten()[0]
        present = is_valid(inner)
        for number in np.unique(numbers[present]).tolist():
            at = np.flatnonzero(present & (numbers == number))
            found = _convert(take(inner, from_numpy(at)), member, kinds[number], type_, millis=millis)
            if found is not None:
                index[at] = count + np.arange(len(at))
                pieces.append(found)
                count += len(at)
    values = take(pa.concat_arrays(pieces), from_numpy(index))
    return Bounds(values, is_valid(values) | ~wanted)


def _number_kinds(
    value_types: pa.Array | None, length: int
) -> tuple[list[tuple[int, str | None]], npt.NDArray[np.int64]]:
    """Return the distinct kinds (ordinal and info), and the number of each row's kind."""
    if value_types is None:
        return [(0, None)], np.zeros(length, np.int64)
    ordinals, infos = value_types.flatten()[:2]
    encoded = infos.dictionary_encode()
    texts = [*encoded.dictionary.to_pylist(), None]
    # Codes ordinal and text as one number, of which NumPy finds the distinct ones.
    pairs = to_numbers(ordinals).astype(np.int64) * len(texts) + to_numbers(encoded.indices, len(texts) - 1)
    distinct, numbers = np.unique(pairs, return_inverse=True)
    return [(pair // len(texts), texts[pair % len(texts)]) for pair in distinct.tolist()], numbers.reshape(-1)


def _convert(
    values: pa.Array, member: int, kind: tuple[int, str | None], type_: pa.DataType, *, millis: bool
) -> pa.Array | None:
    """Return values of one wrapper and kind as ``type_``, null where a value is unknown; None if all are."""
    ordinal, info = kind
    if ordinal != ValueType.V1:
        if ordinal not in _PRIMITIVE_OF or member != _PRIMITIVE_OF[ValueType(ordinal)]:
            return None
        return _convert_kind(values, ValueType(ordinal), info, type_)
    if member in (_DATE, _LOCAL_DATE):
        return values.view(pa.date32()) if pa.types.is_date32(type_) else None
    if member == _TIMESTAMP or (member == _LONG and pa.types.is_timestamp(type_) and not millis):
        return _to_times(values, type_)
    if member == _DECIMAL:
        return _cast(values, type_) if pa.types.is_decimal(type_) else None
    return _convert_plain(values, type_)


def _convert_kind(values: pa.Array, kind: ValueType, info: str | None, type_: pa.DataType) -> pa.Array | None:
    """Convert values of version 2, whose kind is named."""
    if kind in (ValueType.UUID, ValueType.BYTES, ValueType.FIXED):
        return None
    if kind == ValueType.DECIMAL:
        found = _INFO.fullmatch(info or "")
        if found is None or not pa.types.is_decimal(type_):
            return None
        return _to_decimals(values, int(found[2]), type_)
    if kind == ValueType.DATE:
        return values.view(pa.date32()) if pa.types.is_date32(type_) else None
    if kind in _TIMES:
        return _to_times(_scale(values, kind), type_)
    return _convert_plain(values, type_)


def _convert_plain(values: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """Convert values whose kind is their own type."""
    have = values.type
    if pa.types.is_string(have) and (pa.types.is_string(type_) or pa.types.is_large_string(type_)):
        return _cast(_forget_ambiguous(values), type_)
    if pa.types.is_floating(have):
        return _forget_nan(values) if have == type_ else None
    if pa.types.is_integer(have) and pa.types.is_floating(type_):
        # Rounds like a reader of an older file, and keeps the order of the integers.
        return from_floats(to_numbers(values).astype(type_.to_pandas_dtype()), type_)
    if pa.types.is_integer(have) and pa.types.is_integer(type_):
        return _cast(values, type_)
    return values if pa.types.is_boolean(have) and have == type_ else None


def _scale(values: pa.Array, kind: ValueType) -> pa.Array:
    """Return times in microseconds, null where a time has no such value."""
    numbers = to_numbers(values)
    if kind in _MILLIS:
        fits = np.abs(numbers // 2) < _MILLIS_LIMIT // 2
        return from_numpy(np.where(fits, numbers, 0) * _PER_MILLI, ~fits)
    if kind in _NANOS:
        return from_numpy(numbers // _PER_MICRO, numbers % _PER_MICRO != 0)
    return values


def _to_times(values: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """Return microseconds as a timestamp of any unit."""
    if not pa.types.is_timestamp(type_):
        return None
    return _cast(values.view(pa.timestamp("us", type_.tz)), type_)


def _to_decimals(values: pa.Array, scale: int, type_: pa.DataType) -> pa.Array | None:
    """Return big-endian unscaled integers as decimals."""
    texts = values.to_pylist()
    if any(len(text) > _DECIMAL_BYTES for text in texts):
        return None
    integers = [int.from_bytes(text, "big", signed=True) for text in texts]
    if any(abs(each) >= 10**_MAX_PRECISION for each in integers):
        return None
    return _cast(make_decimals(integers, scale), type_)


def make_decimals(integers: Sequence[int], scale: int) -> pa.Array:
    """Return unscaled integers of up to 38 digits as decimals of 38 digits."""
    data = b"".join(each.to_bytes(_DECIMAL_BYTES, "little", signed=True) for each in integers)
    type_ = pa.decimal128(_MAX_PRECISION, scale)
    return pa.Array.from_buffers(type_, len(integers), [None, pa.py_buffer(data)])


def from_floats(values: npt.NDArray[Any], type_: pa.DataType) -> pa.Array:
    """Return floats as an Arrow array; unlike ``pa.array`` without importing pandas."""
    return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _cast(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Convert values; a value that does not fit becomes null."""
    try:
        return cast(values, type_)
    except pa.ArrowInvalid:
        parts = [_cast(values.slice(at, 1), type_) for at in range(len(values))] if len(values) > 1 else []
        return pa.concat_arrays(parts) if parts else pa.nulls(len(values), type_)


def _forget_nan(values: pa.Array) -> pa.Array:
    numbers = to_numbers(values)
    return pa.Array.from_buffers(values.type, len(numbers), [make_bitmap(~np.isnan(numbers)), pa.py_buffer(numbers)])


def _forget_ambiguous(values: pa.Array) -> pa.Array:
    """Return texts, null where UTF-16 orders characters of the text differently than UTF-8."""
    _, offsets, data = values.buffers()
    # Counts such bytes up to the start of each text: a text without any adds none.
    starts = np.frombuffer(offsets, np.int32, len(values) + 1, 4 * values.offset).astype(np.int64)
    octets = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    before = np.concatenate([[0], np.cumsum(octets[: starts[-1]] >= _FIRST_AMBIGUOUS)])
    clean = before[starts[1:]] == before[starts[:-1]]
    return values if clean.all() else _null_where(values, ~clean)


def _null_where(values: pa.Array, mask: npt.NDArray[np.bool_]) -> pa.Array:
    return take(values, from_numpy(np.arange(len(values)), mask))


def find_member(kind: ValueKind, version: int) -> int:
    """Return the number of the wrapper for a kind."""
    if version == V1 and kind.type in (ValueType.DATE, ValueType.DECIMAL):
        return _DATE if kind.type == ValueType.DATE else _DECIMAL
    return _PRIMITIVE_OF[kind.type]


def _make_inner(values: Sequence[tuple[Any, ValueKind]], member: int) -> pa.Array:
    """Return values, without None, in the type of their wrapper."""
    if member == _DECIMAL:
        integers = [value * 10 ** (DECIMAL_SCALE - kind.scale) for value, kind in values]
        return cast(make_decimals(integers, DECIMAL_SCALE), pa.decimal128(DECIMAL_PRECISION, DECIMAL_SCALE))
    if member == _BYTES:
        return from_texts([_to_bytes(value) for value, _ in values], pa.binary())
    if member == _STRING:
        return from_texts([value for value, _ in values], pa.string())
    if member == _BOOLEAN:
        return from_numpy(np.array([value for value, _ in values], np.bool_))
    numbers = np.array([value for value, _ in values], _DTYPES[member])
    return from_floats(numbers, _REALS[member]) if member in _REALS else from_numpy(numbers)


def _to_bytes(value: RawValue) -> bytes:
    """Return bytes unchanged, and an unscaled integer as Java's ``BigInteger.toByteArray`` does."""
    if isinstance(value, bytes):
        return value
    number = int(value)
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
