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

import struct
from array import array
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.arrays import from_numpy
from hoodie_py.formats.avro_bytes import read_count, read_span, read_varint
from hoodie_py.formats.avro_cursor import FRONT, Budget, Misfit, Source, zigzag
from hoodie_py.formats.delete_values import OrderingKind, read_null_or_value, read_ordering
from hoodie_py.formats.even_deletes import INT_LIMIT, INTEGER_TAGS, NOT_SHORT, PRESENT, SMALL_KINDS, even_deletes
from hoodie_py.formats.kryo import read_deletes
from hoodie_py.formats.limits import limits, refuse

AVRO_VERSION = 3
KRYO_VERSIONS = (1, 2)

_HEADER = struct.Struct(">ii")
_SMALLEST_DELETE = 3
_MANY = 48  # integers that are quicker read together
_IS_SMALL = np.array([kind in SMALL_KINDS for kind in OrderingKind])


@dataclass(frozen=True, slots=True, eq=False)
class DeleteRecords:
    """The deletes of one block in their order; ``values[i]`` is of ``kinds[i]``, and None where that is NONE.

    ``numbers`` are the values where all are integers (dates and times among them), 0 where there is none.
    """

    keys: pa.StringArray
    kinds: npt.NDArray[np.int8]
    values: list[Any]
    numbers: npt.NDArray[np.int64] | None = None

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
    walk = _Walk(payload)
    pos, end = 0, len(payload)
    total = 0
    try:
        while True:
            count, pos = read_count(payload, pos, end, _SMALLEST_DELETE)
            if count == 0:
                break
            total += count
            if total > limits().block_records:
                refuse(UnsupportedFeatureError, f"A block has at least {total} deletes", "block_records")
            even = even_deletes(payload, pos, count) if total == count else None
            if even is not None:
                return _records(even.keys, even.kinds, even.numbers)
            pos = walk.over(pos, count)
    except (IndexError, struct.error):
        raise CorruptFileError("A delete block ends within a record.", offset=len(payload)) from None
    if pos != end:
        raise CorruptFileError(f"{end - pos} bytes are left over after the last delete.", offset=pos)
    return walk.records()


class _Walk:
    """Steps over the deletes of a payload, noting where keys and integers lie: these are read together at the end."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._bounds = array("q")
        self._kinds = bytearray()
        self._places = array("q")  # of integers, zero for other kinds
        self._others: dict[int, Any] = {}

    def over(self, pos: int, count: int) -> int:
        """Step over deletes that follow each other from a place on, and return the place behind them."""
        payload, end = self._payload, len(self._payload)
        note_bound, note_kind, note_place = self._bounds.append, self._kinds.append, self._places.append
        integers = INTEGER_TAGS
        for _ in range(count):
            stop = pos + 2 + (payload[pos + 1] >> 1)
            if payload[pos] != PRESENT or payload[pos + 1] & NOT_SHORT or stop >= end:
                start, stop = self._key(pos)
            else:
                start = pos + 2
            note_bound(start)
            note_bound(stop)
            if payload[stop] == 0:
                pos = stop + 1
            elif payload[stop] == PRESENT and not payload[stop + 1] & NOT_SHORT:
                pos = stop + 2 + (payload[stop + 1] >> 1)
            else:
                read_null_or_value(payload, stop)
                pos = read_span(payload, stop + 1, end)[1]
            kind = integers.get(payload[pos])
            if kind is None:
                pos = self._other(pos)
                continue
            pos += 1
            note_kind(kind)
            note_place(pos)
            while payload[pos] > 0x7F:
                pos += 1
            pos += 1
        return pos

    def _key(self, pos: int) -> tuple[int, int]:
        """Read what is no short key."""
        if read_null_or_value(self._payload, pos) == 0:
            raise CorruptFileError("A delete block has a record without a key.", offset=pos)
        return read_span(self._payload, pos + 1, len(self._payload))

    def _other(self, pos: int) -> int:
        """Read an ordering value that is no integer."""
        kind, value, pos = read_ordering(self._payload, pos)
        if kind is not OrderingKind.NONE:
            self._others[len(self._kinds)] = value
        self._kinds.append(kind)
        self._places.append(0)
        return pos

    def records(self) -> DeleteRecords:
        """Return what was stepped over."""
        kinds = np.frombuffer(self._kinds, np.int8).copy()
        places = np.asarray(self._places)
        numbers = np.zeros(len(kinds), np.int64)
        at = np.flatnonzero(places)
        numbers[at] = _integers(self._payload, places[at])
        small = np.flatnonzero(((numbers < -INT_LIMIT) | (numbers >= INT_LIMIT)) & _IS_SMALL[kinds])
        if len(small):
            raise CorruptFileError("A number is too large for its type.", offset=int(places[small[0]]))
        kinds[(kinds == OrderingKind.INT) & (numbers == 0)] = OrderingKind.NONE
        records = _records(_keys(self._payload, self._bounds), kinds, numbers)
        if not self._others:
            return records
        for i, value in self._others.items():
            records.values[i] = value
        return replace(records, numbers=None)


def _records(keys: pa.StringArray, kinds: npt.NDArray[np.int8], numbers: npt.NDArray[np.int64]) -> DeleteRecords:
    """Put together deletes whose ordering values are integers."""
    values: list[Any] = numbers.tolist()
    for i in np.flatnonzero(kinds == OrderingKind.NONE).tolist():
        values[i] = None
    return DeleteRecords(keys, kinds, values, numbers)


def _integers(payload: bytes, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | list[int]:
    """Read the integers at some places."""
    if len(places) >= _MANY:
        source = Source([payload], Budget(0))
        try:
            return zigzag(source.integers(places + FRONT, None)).astype(np.int64)
        except (Misfit, IndexError):
            pass  # which one it is comes out below
    return [read_varint(payload, place)[0] for place in places.tolist()]


def _keys(payload: bytes, bounds: array[int]) -> pa.StringArray:
    """Gather the keys from the payload, given where each starts and stops."""
    count = len(bounds) // 2
    offsets = np.zeros(2 * count + 1, np.int64)
    offsets[:-1] = np.asarray(bounds)
    offsets[-1] = bounds[-1] if count else 0
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(payload)]
    pieces = pa.Array.from_buffers(pa.large_string(), 2 * count, buffers)
    keys = pieces.take(from_numpy(np.arange(0, 2 * count, 2, dtype=np.int64)))
    try:
        keys.validate(full=True)
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        raise CorruptFileError("A deleted key is not UTF-8.") from None
