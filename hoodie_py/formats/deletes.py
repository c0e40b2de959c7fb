"""Delete blocks: the deleted keys with their typed ordering values (Hudi HoodieDeleteBlock).

Content: block version int32, payload length int32, payload. Version 3 is the Avro binary form of
HoodieDeleteRecordList, whose schema is part of Hudi and not of the file; versions 1 and 2 are Kryo objects (``kryo``).

    HoodieDeleteRecordList   deleteRecordList: array of HoodieDeleteRecord
    HoodieDeleteRecord       recordKey: null or string; partitionPath: null or string; orderingVal: union
    orderingVal              0 null, 1 boolean, 2 int, 3 long, 4 float, 5 double, 6 bytes, 7 string, 8 date (int days),
                             9 decimal(30,15) (bytes), 10 time (long micros), 11 timestamp (long micros), 12 array:
                             null or array of the same, with 12 a local date (int days) in place of the array

Null and **int 0** both mean "no ordering value: the delete counts by its arrival", whatever the ordering column's type
is. Inside an array they do not.
"""

from __future__ import annotations

import decimal
import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.avro_bytes import bad_branch, read_count, read_span, read_varint
from hoodie_py.formats.kryo import read_deletes

AVRO_VERSION = 3
KRYO_VERSIONS = (1, 2)
DECIMAL_SCALE = 15

_HEADER = struct.Struct(">ii")
_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")
_SMALLEST_DELETE = 3
_MAX_DECIMAL_BYTES = 64
_INT_LIMIT = 1 << 31
_ARRAY_BRANCH = 12


class OrderingKind(IntEnum):
    """The type of an ordering value, and how it is held.

    INT, LONG, FLOAT, DOUBLE, STRING, BOOLEAN and BYTES as the Python type; DECIMAL as ``decimal.Decimal``; DATE as days
    since 1970, TIME_MICROS since midnight and TIMESTAMP_MICROS since 1970 as int; ARRAY as a tuple of (kind, value).
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


@dataclass(frozen=True, slots=True, eq=False)
class DeleteRecords:
    """The deletes of one block in their order; ``values[i]`` is of ``kinds[i]``, and None where that is NONE."""

    keys: pa.StringArray
    kinds: npt.NDArray[np.int8]
    values: list[Any]

    def __len__(self) -> int:
        return len(self.values)


def decode_deletes(content: memoryview | bytes) -> DeleteRecords:
    """Decode the content of a DELETE block of version 1, 2 or 3.

    Raises:
        CorruptFileError: the bytes are not such a block; ``where`` has the offset in the payload.
        UnsupportedFeatureError: an unknown version, or an ordering value of an unknown type.

    """
    data = bytes(content)
    if len(data) < _HEADER.size:
        raise CorruptFileError(f"A delete block of {len(data)} bytes is too short.")
    version, length = _HEADER.unpack_from(data)
    if version != AVRO_VERSION and version not in KRYO_VERSIONS:
        raise UnsupportedFeatureError(f"Delete block version {version} is not known.")
    if length != len(data) - _HEADER.size:
        raise CorruptFileError(f"A delete block of {len(data)} bytes cannot have a payload of {length}.")
    payload = data[_HEADER.size :]
    return _decode_avro(payload) if version == AVRO_VERSION else _decode_kryo(payload)


_JAVA_KINDS = {
    "int": OrderingKind.INT,
    "byte": OrderingKind.INT,
    "short": OrderingKind.INT,
    "long": OrderingKind.LONG,
    "float": OrderingKind.FLOAT,
    "double": OrderingKind.DOUBLE,
    "boolean": OrderingKind.BOOLEAN,
    "String": OrderingKind.STRING,
    "decimal": OrderingKind.DECIMAL,
    None: OrderingKind.NONE,
}


def _decode_kryo(payload: bytes) -> DeleteRecords:
    deletes = read_deletes(payload)
    pairs = [_without_default(_JAVA_KINDS[delete.kind], delete.value) for delete in deletes]
    try:
        keys = pa.array([delete.key for delete in deletes], pa.string())
    except (pa.ArrowException, UnicodeEncodeError):
        raise CorruptFileError("A deleted key is not valid Unicode.") from None
    kinds = np.array([kind for kind, _ in pairs], np.int8)
    return DeleteRecords(keys, kinds, [value for _, value in pairs])


def _without_default(kind: OrderingKind, value: Any) -> tuple[OrderingKind, Any]:
    if kind is OrderingKind.INT and value == 0:
        return OrderingKind.NONE, None
    return kind, value


def _decode_avro(payload: bytes) -> DeleteRecords:
    bounds = array("q")
    kinds = bytearray()
    values: list[Any] = []
    pos, end = 0, len(payload)
    try:
        while True:
            count, pos = read_count(payload, pos, end, _SMALLEST_DELETE)
            if count == 0:
                break
            for _ in range(count):
                pos = _read_delete(payload, pos, bounds, kinds, values)
    except (IndexError, struct.error):
        raise CorruptFileError("A delete block ends within a record.", offset=len(payload)) from None
    if pos != end:
        raise CorruptFileError(f"{end - pos} bytes are left over after the last delete.", offset=pos)
    return DeleteRecords(_keys(payload, bounds), np.frombuffer(bytes(kinds), np.int8), values)


def _read_delete(payload: bytes, pos: int, bounds: array[int], kinds: bytearray, values: list[Any]) -> int:
    end = len(payload)
    if _read_branch(payload, pos) == 0:
        raise CorruptFileError("A delete block has a record without a key.", offset=pos)
    start, stop = read_span(payload, pos + 1, end)
    bounds.append(start)
    bounds.append(stop)
    pos = stop + 1
    if _read_branch(payload, stop):
        pos = read_span(payload, pos, end)[1]
    kind, value, pos = _read_ordering(payload, pos)
    if kind is OrderingKind.INT and value == 0:
        kind, value = OrderingKind.NONE, None
    kinds.append(kind)
    values.append(value)
    return pos


def _read_branch(payload: bytes, pos: int) -> int:
    """Read the branch of a union of null and one other type, always a single byte."""
    byte = payload[pos]
    if byte not in (0, 2):
        raise bad_branch(read_varint(payload, pos)[0], pos)
    return byte >> 1


_Value = tuple[OrderingKind, Any, int]


def _read_ordering(payload: bytes, pos: int) -> _Value:
    branch, pos = read_varint(payload, pos)
    if branch == _ARRAY_BRANCH:
        return _read_array(payload, pos)
    if not 0 <= branch < _ARRAY_BRANCH:
        raise _unknown_branch(branch, pos)
    return _READERS[branch](payload, pos)


def _unknown_branch(branch: int, pos: int) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"Delete ordering values of type number {branch} are not known.", offset=pos)


def _read_array(payload: bytes, pos: int) -> _Value:
    present = _read_branch(payload, pos)
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
                raise _unknown_branch(branch, pos)
            kind, value, pos = _read_date(payload, pos) if branch == _ARRAY_BRANCH else _READERS[branch](payload, pos)
            items.append((kind, value))


def _read_none(_: bytes, pos: int) -> _Value:
    return OrderingKind.NONE, None, pos


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


def _read_int(payload: bytes, pos: int) -> _Value:
    return OrderingKind.INT, *_read_int32(payload, pos)


def _read_date(payload: bytes, pos: int) -> _Value:
    return OrderingKind.DATE, *_read_int32(payload, pos)


def _read_long(payload: bytes, pos: int) -> _Value:
    return OrderingKind.LONG, *read_varint(payload, pos)


def _read_time(payload: bytes, pos: int) -> _Value:
    return OrderingKind.TIME_MICROS, *read_varint(payload, pos)


def _read_timestamp(payload: bytes, pos: int) -> _Value:
    return OrderingKind.TIMESTAMP_MICROS, *read_varint(payload, pos)


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


_READERS: tuple[Callable[[bytes, int], _Value], ...] = (
    _read_none,
    _read_boolean,
    _read_int,
    _read_long,
    _read_float,
    _read_double,
    _read_bytes,
    _read_string,
    _read_date,
    _read_decimal,
    _read_time,
    _read_timestamp,
)


def _keys(payload: bytes, bounds: array[int]) -> pa.StringArray:
    """Gather the keys from the payload, given where each starts and stops."""
    count = len(bounds) // 2
    offsets = np.zeros(2 * count + 1, np.int64)
    offsets[:-1] = np.asarray(bounds)
    offsets[-1] = bounds[-1] if count else 0
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(payload)]
    pieces = pa.Array.from_buffers(pa.large_string(), 2 * count, buffers)
    keys = pieces.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int64)))
    try:
        keys.validate(full=True)
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        raise CorruptFileError("A deleted key is not UTF-8.") from None
