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

Deletes that are alike are decoded at once (``alike``). Others are stepped over one by one, and only the offsets of keys
and integers are noted; NumPy and Arrow then read all of them at once.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.binary import read_count, read_span, read_varint
from hoodie_py.formats.avro.columnar_cursor import FRONT, Budget, Misfit, Source, decode_zigzag
from hoodie_py.formats.deletes.alike import (
    INTEGER_TAGS,
    NOT_SHORT,
    PRESENT,
    DecodedDeletes,
    DeleteRun,
    decode_deletes_of_one_path,
    decode_uniform_deletes,
    find_too_large,
    gather_keys,
)
from hoodie_py.formats.deletes.ordering_value import OrderingKind, read_is_present, read_ordering
from hoodie_py.formats.limits import get_limits, raise_limit_error

_MANY = 48  # from this number of integers on, NumPy is faster than a loop


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
        large = find_too_large(kinds, numbers)
        if large is not None:
            raise CorruptFileError("A number is too large for its type.", offset=int(places[large]))
        # The int 0 means "no ordering value", see ``decoder``.
        kinds[(kinds == OrderingKind.INT) & (numbers == 0)] = OrderingKind.NONE
        return DecodedDeletes(gather_keys(self.payload, np.asarray(self._bounds)), kinds, numbers, self._others)


def _read_integers(payload: bytes, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | list[int]:
    """Read the integers at some offsets."""
    if len(places) >= _MANY:
        source = Source([payload], Budget(0))
        try:
            return decode_zigzag(source.read_integers(places + FRONT, None)).astype(np.int64)
        except (Misfit, IndexError):
            pass  # the loop below finds the damaged integer and raises its error
    return [read_varint(payload, place)[0] for place in places.tolist()]


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
    bounds = list(pairwise(accumulate(map(len, payloads), initial=0)))
    payload = b"".join(payloads)
    try:  # a delete that crosses the end of its block is refused by _walk_runs
        runs = _find_runs(payload, bounds)
        found = None if runs is None else decode_deletes_of_one_path(payload, runs)
        if found is not None and runs is not None:
            return DeletesOfBlocks(_make_records(found), tuple(run.count for run in runs))
        walk = DeleteWalker(payload)
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
    runs = _find_runs(payload, [(0, len(payload))])
    if runs is not None and runs[0].count:
        found = decode_uniform_deletes(payload, runs[0].start, runs[0].count)
        found = decode_deletes_of_one_path(payload, runs) if found is None else found
        if found is not None:
            return _make_records(found)
    walk = DeleteWalker(payload)
    _walk_runs(walk, 0, len(payload))
    return _make_records(walk.finish())


def _find_runs(payload: bytes, bounds: Sequence[tuple[int, int]]) -> list[DeleteRun] | None:
    """Return the deletes of each block, if each is one Avro array block; None if a block is damaged or too large."""
    most = get_limits().block_records
    runs: list[DeleteRun] = []
    for start, end in bounds:
        try:
            count, pos = read_count(payload, start, end, _SMALLEST_DELETE)
        except (IndexError, CorruptFileError):
            return None
        stop = end - 1 if count else pos  # the end of the array is a zero
        if count > most or payload[end - 1] != 0 or stop + bool(count) != end:
            return None
        runs.append(DeleteRun(pos, count, stop))
    return runs


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
