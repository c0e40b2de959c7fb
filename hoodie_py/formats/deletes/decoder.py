"""Decodes delete blocks: the deleted keys with their typed ordering values (Hudi HoodieDeleteBlock).

Content: block version int32, payload length int32, payload. Version 3 is the Avro binary form of
HoodieDeleteRecordList, whose schema is part of Hudi and not of the file; versions 1 and 2 are Kryo objects (``kryo``).

    HoodieDeleteRecordList   deleteRecordList: array of HoodieDeleteRecord
    HoodieDeleteRecord       recordKey: null or string; partitionPath: null or string; orderingVal: union
    orderingVal              0 null, 1 boolean, 2 int, 3 long, 4 float, 5 double, 6 bytes, 7 string, 8 date (int days),
                             9 decimal(30,15) (bytes), 10 time (long micros), 11 timestamp (long micros), 12 array:
                             null or array of the same, with 12 a local date (int days) in place of the array

Null and **int 0** both mean "no ordering value: the delete counts by its arrival", whatever the type of the ordering
column. Inside an array they are values.

In most blocks all deletes have the same layout: keys of one length and integers of one width. NumPy decodes such a
block as a table of bytes, and checks every record against the layout of the first one. Deletes of other blocks are
stepped over one by one, and only the offsets of keys and integers are noted; NumPy and Arrow then read all of them at
once.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import cast, from_numpy, take
from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.binary import read_count, read_span, read_varint
from hoodie_py.formats.avro.columnar_cursor import FRONT, Budget, Misfit, Source, decode_zigzag
from hoodie_py.formats.deletes.ordering_value import OrderingKind, read_is_present, read_ordering
from hoodie_py.formats.limits import get_limits, raise_limit_error

PRESENT = 2  # the byte before a key or path that is not null
NOT_SHORT = 0x81  # bits set in the length of a text of 64 bytes or more, and in a negative length
INTEGER_TAGS = {
    4: OrderingKind.INT,
    6: OrderingKind.LONG,
    16: OrderingKind.DATE,
    20: OrderingKind.TIME_MICROS,
    22: OrderingKind.TIMESTAMP_MICROS,
}
INT_LIMIT = 1 << 31
SMALL_KINDS = (OrderingKind.INT, OrderingKind.DATE)

_ABSENT = 0
_MORE = 0x80  # set in every byte of an integer except the last
_WIDEST = 9  # bytes of the longest integer that cannot overflow
_MOST_KEY_BYTES = 1 << 31


@dataclass(frozen=True, slots=True, eq=False)
class DecodedDeletes:
    """Deletes in order: record keys, and the kinds (``OrderingKind``) and values of their ordering values."""

    keys: pa.StringArray
    kinds: npt.NDArray[np.int8]
    numbers: npt.NDArray[np.int64]  # integer values; 0 for other kinds and for none
    others: dict[int, Any] = field(default_factory=dict)  # other values, by the number of the delete


@dataclass(frozen=True, slots=True)
class _RecordShape:
    """The layout of a record: offsets of its parts from its start, in bytes."""

    key_bytes: int
    path: int
    tag: int
    kind: OrderingKind
    size: int

    @property
    def fixed(self) -> list[int]:
        """Offsets of the bytes that are equal in all records of this layout."""
        path = [self.path] if self.tag == self.path + 1 else [self.path, self.path + 1]
        return [0, 1, *path, self.tag]


def decode_uniform_deletes(payload: bytes, pos: int, count: int) -> DecodedDeletes | None:
    """Decode one or more deletes (``count``) of a version 3 payload that consists of one Avro array block.

    The first delete is at ``pos``. Returns None if a delete has another layout than the first one, or is damaged.
    """
    shape = _find_shape(payload, pos)
    if shape is None or pos + count * shape.size + 1 != len(payload) or payload[-1] != 0:
        return None
    # A table with one row of bytes for each delete, without a copy.
    rows = np.frombuffer(payload, np.uint8, count * shape.size, pos).reshape(count, shape.size)
    fixed = rows[:, shape.fixed]
    integers = rows[:, shape.tag + 1 :]
    if not (fixed == fixed[0]).all() or not _has_one_width(integers):
        return None
    numbers = _decode_numbers(integers)
    if shape.kind in SMALL_KINDS and len(numbers) and not -INT_LIMIT <= numbers.min() <= numbers.max() < INT_LIMIT:
        return None
    kinds = np.full(count, shape.kind, np.int8)
    # The int 0 means "no ordering value", see ``decoder``.
    if shape.kind is OrderingKind.INT:
        kinds[numbers == 0] = OrderingKind.NONE
    keys = _make_keys(rows[:, 2 : 2 + shape.key_bytes])
    return None if keys is None else DecodedDeletes(keys, kinds, numbers)


def _find_shape(payload: bytes, pos: int) -> _RecordShape | None:
    """Return the layout of the first record; None if it is not decoded here."""
    try:
        if payload[pos] != PRESENT or payload[pos + 1] & NOT_SHORT:
            return None
        key_bytes = payload[pos + 1] >> 1
        path = tag = 2 + key_bytes
        if payload[pos + path] == PRESENT and not payload[pos + path + 1] & NOT_SHORT:
            tag += 2 + (payload[pos + path + 1] >> 1)
        elif payload[pos + path] == _ABSENT:
            tag += 1
        else:
            return None
        kind = OrderingKind.NONE if payload[pos + tag] == _ABSENT else INTEGER_TAGS.get(payload[pos + tag])
        if kind is None:
            return None
        size = tag + 1
        if kind is not OrderingKind.NONE:
            while payload[pos + size] & _MORE:
                size += 1
            size += 1
    except IndexError:
        return None
    return _RecordShape(key_bytes, path, tag, kind, size) if size - tag - 1 <= _WIDEST else None


def _has_one_width(integers: npt.NDArray[np.uint8]) -> bool:
    more = integers >= _MORE  # the byte is not the last one of its integer
    return bool(more[:, :-1].all() and not more[:, -1:].any())


def _decode_numbers(integers: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    raw = np.zeros(len(integers), np.uint64)
    for place in range(integers.shape[1]):
        raw |= (integers[:, place] & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * place)
    return decode_zigzag(raw).astype(np.int64)


def _make_keys(texts: npt.NDArray[np.uint8]) -> pa.StringArray | None:
    count, width = texts.shape
    if count * width >= _MOST_KEY_BYTES:
        return None
    offsets = from_numpy(
        np.arange(0, count * width + 1, width, dtype=np.int32) if width else np.zeros(count + 1, np.int32)
    )
    data = np.ascontiguousarray(texts)
    keys = pa.Array.from_buffers(pa.string(), count, [None, offsets.buffers()[1], pa.py_buffer(data)])
    try:
        keys.validate(full=bool((data >= _MORE).any()))
    except pa.ArrowInvalid:
        return None
    return keys


_MANY = 48  # from this number of integers on, NumPy is faster than a loop
_IS_SMALL = np.array([kind in SMALL_KINDS for kind in OrderingKind])


class DeleteWalker:
    """Steps over the deletes of one or several payloads of version 3, and notes the offsets of keys and integers.

    ``finish`` reads the noted keys and integers.
    """

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self._bounds = array("q")
        self._kinds = bytearray()
        self._places = array("q")  # of integers; 0 for other kinds
        self._others: dict[int, Any] = {}

    def walk_deletes(self, pos: int, count: int) -> int:
        """Step over ``count`` deletes, starting at an offset, and return the offset after them.

        Raises:
            CorruptFileError: the bytes are not a delete.
            UnsupportedFeatureError: an ordering value has an unknown type.
            IndexError, struct.error: the payload ends within a delete.
        """
        # Bound methods, local names, and the usual one-byte lengths first: this loop runs once per delete.
        payload, end = self.payload, len(self.payload)
        note_bound, note_kind, note_place = self._bounds.append, self._kinds.append, self._places.append
        integers = INTEGER_TAGS
        for _ in range(count):
            stop = pos + 2 + (payload[pos + 1] >> 1)
            if payload[pos] != PRESENT or payload[pos + 1] & NOT_SHORT or stop >= end:
                start, stop = self._read_key(pos)
            else:
                start = pos + 2
            note_bound(start)
            note_bound(stop)
            if payload[stop] == 0:
                pos = stop + 1
            elif payload[stop] == PRESENT and not payload[stop + 1] & NOT_SHORT:
                pos = stop + 2 + (payload[stop + 1] >> 1)
            else:
                read_is_present(payload, stop)
                pos = read_span(payload, stop + 1, end)[1]
            kind = integers.get(payload[pos])
            if kind is None:
                pos = self._read_other_ordering(pos)
                continue
            pos += 1
            note_kind(kind)
            note_place(pos)
            while payload[pos] > 0x7F:
                pos += 1
            pos += 1
        return pos

    def _read_key(self, pos: int) -> tuple[int, int]:
        """Read a key whose length takes more than one byte."""
        if read_is_present(self.payload, pos) == 0:
            raise CorruptFileError("A delete block has a record without a key.", offset=pos)
        return read_span(self.payload, pos + 1, len(self.payload))

    def _read_other_ordering(self, pos: int) -> int:
        """Read an ordering value that is not an integer."""
        kind, value, pos = read_ordering(self.payload, pos)
        if kind is not OrderingKind.NONE:
            self._others[len(self._kinds)] = value
        self._kinds.append(kind)
        self._places.append(0)
        return pos

    def finish(self) -> DecodedDeletes:
        """Decode the noted deletes.

        Raises CorruptFileError if a key is not UTF-8, or a number is too large for its type.
        """
        kinds = np.frombuffer(self._kinds, np.int8).copy()
        places = np.asarray(self._places)
        numbers = np.zeros(len(kinds), np.int64)
        at = np.flatnonzero(places)
        numbers[at] = _read_integers(self.payload, places[at])
        small = np.flatnonzero(((numbers < -INT_LIMIT) | (numbers >= INT_LIMIT)) & _IS_SMALL[kinds])
        if len(small):
            raise CorruptFileError("A number is too large for its type.", offset=int(places[small[0]]))
        # The int 0 means "no ordering value", see ``decoder``.
        kinds[(kinds == OrderingKind.INT) & (numbers == 0)] = OrderingKind.NONE
        return DecodedDeletes(_gather_keys(self.payload, self._bounds), kinds, numbers, self._others)


def _read_integers(payload: bytes, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | list[int]:
    """Read the integers at some offsets."""
    if len(places) >= _MANY:
        source = Source([payload], Budget(0))
        try:
            return decode_zigzag(source.read_integers(places + FRONT, None)).astype(np.int64)
        except (Misfit, IndexError):
            pass  # the loop below finds the damaged integer and raises its error
    return [read_varint(payload, place)[0] for place in places.tolist()]


def _gather_keys(payload: bytes, bounds: array[int]) -> pa.StringArray:
    """Copy the keys out of the payload; ``bounds`` contains the start and the stop of each key."""
    # All bounds are the offsets of a string array whose even items are the keys, and whose odd items are the bytes
    # between them.
    count = len(bounds) // 2
    offsets = np.zeros(2 * count + 1, np.int64)
    offsets[:-1] = np.asarray(bounds)
    offsets[-1] = bounds[-1] if count else 0
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(payload)]
    pieces = pa.Array.from_buffers(pa.large_string(), 2 * count, buffers)
    keys = take(pieces, from_numpy(np.arange(0, 2 * count, 2, dtype=np.int64)))
    try:
        keys.validate(full=True)
        return cast(keys, pa.string())
    except pa.ArrowInvalid:
        raise CorruptFileError("A deleted key is not UTF-8.") from None


AVRO_VERSION = 3
KRYO_VERSIONS = (1, 2)

_HEADER = struct.Struct(">ii")
_SMALLEST_DELETE = 3


@dataclass(frozen=True, slots=True, eq=False)
class DeleteRecords:
    """The deletes of one block in order: record keys, and the kinds and values of their ordering values."""

    keys: pa.StringArray
    kinds: npt.NDArray[np.int8]  # ``OrderingKind``
    values: list[Any]  # None if the kind is NONE
    numbers: npt.NDArray[np.int64] | None = None  # if all are integers, dates or times; 0 if the kind is NONE

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True, eq=False)
class DeletesOfBlocks:
    """The deletes of several blocks, block by block, and the number of deletes of each block."""

    records: DeleteRecords
    counts: tuple[int, ...]


def decode_deletes(content: memoryview | bytes) -> DeleteRecords:
    """Decode the content of a DELETE block of version 1, 2 or 3.

    Raises:
        CorruptFileError: the bytes are not a delete block; ``where`` has the offset in the payload.
        UnsupportedFeatureError: the version, or the type of an ordering value, is unknown.
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


def decode_deletes_together(contents: Sequence[memoryview | bytes]) -> DeletesOfBlocks | None:
    """Decode DELETE blocks of version 3 together, which is several times faster for small blocks.

    Returns None if one of them has another version or cannot be decoded; decoding each alone then shows which one.
    """
    if any(len(content) < _HEADER.size for content in contents):
        return None
    headers = [_HEADER.unpack_from(content) for content in contents]
    if any(version != AVRO_VERSION for version, _ in headers):
        return None
    payloads = [memoryview(content)[_HEADER.size :] for content in contents]
    if any(length != len(payload) for (_, length), payload in zip(headers, payloads, strict=True)):
        return None
    walk = DeleteWalker(b"".join(payloads))
    bounds = pairwise(accumulate(map(len, payloads), initial=0))
    try:  # a delete that crosses the end of its block is refused by _walk_runs
        counts = tuple(_walk_runs(walk, start, end) for start, end in bounds)
        return DeletesOfBlocks(_make_records(walk.finish()), counts)
    except HoodieError:
        return None


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
    from hoodie_py.formats.deletes.kryo import read_deletes

    deletes = read_deletes(payload)
    pairs = [_drop_default(_JAVA_KINDS[delete.kind], delete.value) for delete in deletes]
    try:
        keys = pa.array([delete.key for delete in deletes], pa.string())
    except (pa.ArrowException, UnicodeEncodeError):
        raise CorruptFileError("A deleted key is not valid Unicode.") from None
    kinds = np.array([kind for kind, _ in pairs], np.int8)
    return DeleteRecords(keys, kinds, [value for _, value in pairs])


def _drop_default(kind: OrderingKind, value: Any) -> tuple[OrderingKind, Any]:
    if kind is OrderingKind.INT and value == 0:
        return OrderingKind.NONE, None
    return kind, value


def _decode_avro(payload: bytes) -> DeleteRecords:
    even = _decode_uniform(payload)
    if even is not None:
        return _make_records(even)
    walk = DeleteWalker(payload)
    _walk_runs(walk, 0, len(payload))
    return _make_records(walk.finish())


def _decode_uniform(payload: bytes) -> DecodedDeletes | None:
    """Decode deletes that all have one layout; None for other payloads and for too many deletes."""
    try:
        count, pos = read_count(payload, 0, len(payload), _SMALLEST_DELETE)
    except (IndexError, CorruptFileError):
        return None
    return decode_uniform_deletes(payload, pos, count) if 0 < count <= get_limits().block_records else None


def _walk_runs(walk: DeleteWalker, pos: int, end: int) -> int:
    """Step over the deletes of a block whose payload is at ``pos`` to ``end``; return their number."""
    total = 0
    try:
        while True:
            count, pos = read_count(walk.payload, pos, end, _SMALLEST_DELETE)
            if count == 0:
                break
            total += count
            if total > get_limits().block_records:
                raise_limit_error(UnsupportedFeatureError, f"A block has at least {total} deletes", "block_records")
            pos = walk.walk_deletes(pos, count)
    except (IndexError, struct.error):
        raise CorruptFileError("A delete block ends within a record.", offset=end) from None
    if pos != end:
        raise CorruptFileError(f"{end - pos} bytes are left over after the last delete.", offset=pos)
    return total


def _make_records(found: DecodedDeletes) -> DeleteRecords:
    values: list[Any] = found.numbers.tolist()
    for i in np.flatnonzero(found.kinds == OrderingKind.NONE).tolist():
        values[i] = None
    for i, value in found.others.items():
        values[i] = value
    return DeleteRecords(found.keys, found.kinds, values, None if found.others else found.numbers)
