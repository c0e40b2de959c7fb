"""Keys and records of the metadata table's ``record_index``, and where they lie (Hudi ``HoodieMetadataPayload``,
``HoodieTableMetadataUtil``).

The key is the record key as it is. A key's file group is Java's ``String.hashCode`` modulo the number of groups. There
are two kinds of index:

* global: the file groups of the partition are ``record-index-<number>-0``; a key is there once.
* partitioned: each partition of the table has file groups of its own, ``record-index-<partition>-<number>-0``, with the
  partition's path escaped so that it has no dash. A key is there once for each partition that has it.

The record has the partition path and the file id, which is a UUID with a number behind a dash (encoding 0), or any text
(encoding 1).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, from_texts, to_numbers
from hoodie_py.arrow.compute import take
from hoodie_py.arrow.java_hash import compute_java_hashes
from hoodie_py.errors import InvalidTableError

RECORD_INDEX_TYPE = 5
RECORD_INDEX_COLUMN = "recordIndexMetadata"
UUID_ENCODING, TEXT_ENCODING = 0, 1
NO_FILE_INDEX = -1
"""File index of a file id that is a UUID alone."""

Numbers = npt.NDArray[np.int64]

_PREFIX = "record-index-"
_CHUNK_KEYS = 1 << 16
_FILE_ID = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-(\d{1,9}))?")
_GROUP = re.compile(r"record-index-(?:(?P<partition>[^-]*)-)?(?P<number>\d{4,9})(?:-0)?")
_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^_-]")  # the dash so that the parts can be told apart
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")

LOCATION_TYPE = pa.struct(
    [
        pa.field("partitionName", pa.string()),
        pa.field("fileIdHighBits", pa.int64()),
        pa.field("fileIdLowBits", pa.int64()),
        pa.field("fileIndex", pa.int32()),
        pa.field("fileId", pa.string()),
        pa.field("instantTime", pa.int64()),
        pa.field("fileIdEncoding", pa.int32()),
        pa.field("position", pa.int64()),
    ]
)
"""Type of the column ``recordIndexMetadata``; older tables have no ``position``, and no writer fills it."""


def find_file_groups(keys: pa.Array | pa.ChunkedArray, count: int) -> Numbers:
    """Return the number of each key's file group among ``count`` ones (Hudi ``mapRecordKeyToFileGroupIndex``)."""
    chunks = keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
    parts = [
        _reduce(compute_java_hashes(chunk.slice(start, _CHUNK_KEYS)), count)
        for chunk in chunks
        for start in range(0, len(chunk), _CHUNK_KEYS)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _reduce(hashes: npt.NDArray[np.uint32], count: int) -> Numbers:
    return np.abs(hashes.view(np.int32).astype(np.int64)) % count


def make_group_id(number: int, partition: str | None = None) -> str:
    """Return the file id of a file group; ``partition`` is the table's partition path, None in a global index."""
    middle = "" if partition is None else f"{_ESCAPED.sub(_escape, partition)}-"
    return f"{_PREFIX}{middle}{number:04d}-0"


def parse_group_id(file_id: str) -> tuple[str | None, int]:
    """Return the table's partition path, None in a global index, and the number of a file group.

    Raises:
        InvalidTableError: it is no file id of a record index.
    """
    found = _GROUP.fullmatch(file_id)
    if found is None:
        raise InvalidTableError(f"A file group {file_id[:200]!r} cannot be in a record index.")
    partition = found["partition"]
    return None if partition is None else _ESCAPE.sub(_unescape, partition), int(found["number"])


def _escape(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))


def make_locations(
    partitions: Sequence[str], file_ids: Sequence[str], numbers: Numbers, millis: Numbers | int, encoding: int | None
) -> pa.StructArray:
    """Make the column ``recordIndexMetadata``.

    ``partitions`` and ``file_ids`` describe file groups, and ``numbers`` has the group of each record. ``millis`` is
    the time of the commit that added the record, in milliseconds since 1970. ``encoding`` None takes UUIDs where file
    ids have them.

    Raises:
        InvalidTableError: a file id is no UUID with a number, though the encoding says so.
    """
    parsed = [_encode_file_id(file_id, encoding) for file_id in file_ids]
    high, low, index = (np.array([each[i] for each in parsed], np.int64) for i in range(3))
    texts = from_texts([each[3] for each in parsed], pa.string())
    encodings = np.array([UUID_ENCODING if not each[3] else TEXT_ENCODING for each in parsed], np.int32)
    at = from_numpy(numbers)
    columns = [
        take(from_texts(list(partitions), pa.string()), at),
        from_numpy(high[numbers]),
        from_numpy(low[numbers]),
        from_numpy(index.astype(np.int32)[numbers]),
        take(texts, at),
        from_numpy(np.broadcast_to(np.asarray(millis, np.int64), len(numbers)).copy()),
        from_numpy(encodings[numbers]),
        pa.nulls(len(numbers), pa.int64()),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(LOCATION_TYPE))


def _encode_file_id(file_id: str, encoding: int | None) -> tuple[int, int, int, str]:
    """Return the high and low bits, the file index and the text of a file id."""
    found = _FILE_ID.fullmatch(file_id)
    if encoding == TEXT_ENCODING or (found is None and encoding is None):
        return -1, -1, NO_FILE_INDEX, file_id
    if found is None:
        raise InvalidTableError("The record index keeps file ids as UUIDs, and a file id is none.", file_id=file_id)
    bits = uuid.UUID(found[1]).int
    return _to_signed(bits >> 64), _to_signed(bits), NO_FILE_INDEX if found[2] is None else int(found[2]), ""


def _to_signed(bits: int) -> int:
    low = bits & ((1 << 64) - 1)
    return low - (1 << 64) if low >> 63 else low


def read_file_ids(locations: pa.StructArray) -> tuple[list[str], Numbers]:
    """Return the distinct file ids in a column ``recordIndexMetadata``, and for each record the number of its own.

    Raises:
        InvalidTableError: an encoding is not known.
    """
    encoding = to_numbers(locations.field("fileIdEncoding"))
    if not np.isin(encoding, (UUID_ENCODING, TEXT_ENCODING)).all():
        raise InvalidTableError("A record of the record index has a file id in an unknown encoding.")
    names: list[str] = []
    numbers = np.empty(len(locations), np.int64)
    plain = np.flatnonzero(encoding == TEXT_ENCODING)
    if len(plain):
        texts = take(locations.field("fileId"), from_numpy(plain)).dictionary_encode()
        names += [each or "" for each in texts.dictionary.to_pylist()]
        numbers[plain] = to_numbers(texts.indices)
    coded = np.flatnonzero(encoding == UUID_ENCODING)
    if len(coded):
        fields = ("fileIdHighBits", "fileIdLowBits", "fileIndex")
        columns = [to_numbers(locations.field(name)).astype(np.int64)[coded] for name in fields]
        order = np.lexsort(columns)
        starts = np.ones(len(order), bool)
        starts[1:] = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
        numbers[coded[order]] = len(names) + np.cumsum(starts) - 1
        first = order[starts]
        names += [_decode_file_id(*each) for each in zip(*(column[first].tolist() for column in columns), strict=True)]
    return names, numbers


def _decode_file_id(high: int, low: int, index: int) -> str:
    bits = (high & ((1 << 64) - 1)) << 64 | low & ((1 << 64) - 1)
    return str(uuid.UUID(int=bits)) + ("" if index == NO_FILE_INDEX else f"-{index}")
