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
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.binary import read_count
from hoodie_py.formats.deletes.ordering_value import OrderingKind
from hoodie_py.formats.deletes.uniform import DecodedDeletes, decode_uniform_deletes
from hoodie_py.formats.deletes.varying import DeleteWalker
from hoodie_py.formats.limits import get_limits, raise_limit_error

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
