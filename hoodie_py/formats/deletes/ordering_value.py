"""Reads typed ordering values of delete blocks one at a time (the union ``orderingVal`` of ``decoder``).

Each reader takes the payload and the offset of a value. It returns the kind, the value and the offset after it. Reading
past the payload raises IndexError or struct.error.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.avro.binary import make_branch_error, read_count, read_span, read_varint

DECIMAL_SCALE = 15

_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")
_MAX_DECIMAL_BYTES = 64
_INT_LIMIT = 1 << 31
_ARRAY_BRANCH = 12


class OrderingKind(IntEnum):
    """The type of an ordering value.

    INT, LONG, FLOAT, DOUBLE, STRING, BOOLEAN and BYTES are values of the Python type, DECIMAL is a ``decimal.Decimal``.
    DATE is an int of days since 1970, TIME_MICROS of microseconds since midnight, TIMESTAMP_MICROS of microseconds
    since 1970. ARRAY is a tuple of (kind, value).
    """

    NONE = 0
    INT = 1
    LONG = 2
    FLOAT = 3
    DOUBLE = 4
    STRING = 5
    DECIMAL = 6
    BOOLEAN = 7
    BYTES = 8
    DATE = 9
    TIME_MICROS = 10
    TIMESTAMP_MICROS = 11
    ARRAY = 12


def read_is_present(payload: bytes, pos: int) -> int:
    """Read the branch of a union of null and one other type, always a single byte."""
    byte = payload[pos]
    if byte not in (0, 2):
        raise make_branch_error(read_varint(payload, pos)[0], pos)
    return byte >> 1


_Value = tuple[OrderingKind, Any, int]


def read_ordering(payload: bytes, pos: int) -> _Value:
    """Read a value of any kind; an int 0 is returned as 0, not as "no value"."""
    branch, pos = read_varint(payload, pos)
    if branch == _ARRAY_BRANCH:
        return _read_array(payload, pos)
    if not 0 <= branch < _ARRAY_BRANCH:
        raise _make_branch_error(branch, pos)
    return _READERS[branch](payload, pos)


def _make_branch_error(branch: int, pos: int) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"Delete ordering values of type number {branch} are not known.", offset=pos)


def _read_array(payload: bytes, pos: int) -> _Value:
    present = read_is_present(payload, pos)
    pos += 1
    if not present:
        return OrderingKind.NONE, None, pos
    items: list[tuple[OrderingKind, Any]] = []
    while True:
        count, pos = read_count(payload, pos, len(payload), 1)
        if count == 0:
            return OrderingKind.ARRAY, tuple(items), pos
        for _ in range(count):
            branch, pos = read_varint(payload, pos)
            if not 0 <= branch <= _ARRAY_BRANCH:
                raise _make_branch_error(branch, pos)
            kind, value, pos = _read_date(payload, pos) if branch == _ARRAY_BRANCH else _READERS[branch](payload, pos)
            items.append((kind, value))


def _read_boolean(payload: bytes, pos: int) -> _Value:
    byte = payload[pos]
    if byte > 1:
        raise CorruptFileError(f"An Avro boolean cannot be {byte}.", offset=pos)
    return OrderingKind.BOOLEAN, byte == 1, pos + 1


def _read_int32(payload: bytes, pos: int) -> tuple[int, int]:
    value, stop = read_varint(payload, pos)
    if not -_INT_LIMIT <= value < _INT_LIMIT:
        raise CorruptFileError("A number is too large for its type.", offset=pos)
    return value, stop


def _make_reader(kind: OrderingKind, read: Callable[[bytes, int], tuple[int, int]]) -> Callable[[bytes, int], _Value]:
    return lambda payload, pos: (kind, *read(payload, pos))


def _read_float(payload: bytes, pos: int) -> _Value:
    return OrderingKind.FLOAT, _FLOAT.unpack_from(payload, pos)[0], pos + _FLOAT.size


def _read_double(payload: bytes, pos: int) -> _Value:
    return OrderingKind.DOUBLE, _DOUBLE.unpack_from(payload, pos)[0], pos + _DOUBLE.size


def _read_bytes(payload: bytes, pos: int) -> _Value:
    start, stop = read_span(payload, pos, len(payload))
    return OrderingKind.BYTES, payload[start:stop], stop


def _read_string(payload: bytes, pos: int) -> _Value:
    start, stop = read_span(payload, pos, len(payload))
    try:
        return OrderingKind.STRING, payload[start:stop].decode(), stop
    except UnicodeDecodeError:
        raise CorruptFileError("An ordering value is not UTF-8.", offset=start) from None


def _read_decimal(payload: bytes, pos: int) -> _Value:
    start, stop = read_span(payload, pos, len(payload))
    if not 0 < stop - start <= _MAX_DECIMAL_BYTES:
        raise CorruptFileError(f"A decimal cannot have {stop - start} bytes.", offset=pos)
    unscaled = int.from_bytes(payload[start:stop], "big", signed=True)
    return OrderingKind.DECIMAL, decimal.Decimal(f"{unscaled}e-{DECIMAL_SCALE}"), stop


_read_date = _make_reader(OrderingKind.DATE, _read_int32)
_READERS: tuple[Callable[[bytes, int], _Value], ...] = (
    lambda _, pos: (OrderingKind.NONE, None, pos),
    _read_boolean,
    _make_reader(OrderingKind.INT, _read_int32),
    _make_reader(OrderingKind.LONG, read_varint),
    _read_float,
    _read_double,
    _read_bytes,
    _read_string,
    _read_date,
    _read_decimal,
    _make_reader(OrderingKind.TIME_MICROS, read_varint),
    _make_reader(OrderingKind.TIMESTAMP_MICROS, read_varint),
)
