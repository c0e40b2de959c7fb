"""Keys of the metadata table's records, and the file groups that they are in (Hudi ``HoodieMetadataPayload``,
``HoodieTableMetadataUtil``, ``HashID``, ``SecondaryIndexKeyUtils``).

    partition                        type    key
    files                            1, 2    ``__all_partitions__``; partition
    column_stats                     3       column + partition + file name
    bloom_filters                    4       partition + file name
    record_index                     5       record key
    partition_stats                  6       column + partition
    secondary_index_*                7       escaped secondary value, "$", escaped record key
    expr_index_*, of column_stats    3       column + partition + file name
    the same, of a whole partition   6       column + ``__partition_stat__`` + partition
    expr_index_*, of bloom_filters   4       partition + file name

Columns and partitions stand in keys as the Base64 text of their xxHash64 (12 characters), file names as the Base64 text
of their MD5 (24 characters). A table without partitions has the partition ".". So all keys of a column, or of a
column's partition, have one prefix, and a look-up reads them together.

The record index is global or partitioned. A global one has the file groups ``record-index-<number>-0``, and each key
once. In a partitioned one each partition of the table has its own file groups, ``record-index-<partition>-<number>-0``,
with the partition's path escaped so that it contains no dash; a key occurs once for each partition that contains it. A
record has the partition path and the file id: a UUID with a number after a dash (encoding 0), or any text (encoding 1).
"""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, from_texts, take, to_numbers
from hoodie_py.arrow.hashes import compute_java_hashes, hash_xxhash64
from hoodie_py.arrow.java_text import print_floats
from hoodie_py.errors import InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.indexes.definitions import NO_PARTITION

ALL_PARTITIONS_TYPE: Final = 1
FILES_TYPE: Final = 2
COLUMN_STATS_TYPE: Final = 3
BLOOM_FILTER_TYPE: Final = 4
PARTITION_STATS_TYPE: Final = 6


_HASH_BYTES = 8
_PARTITION_OF_EXPRESSIONS = "__partition_stat__"  # before the partition in an expression index


def encode_names(names: Iterable[str]) -> pa.Array:
    """Return columns, or identifiers of partitions, as parts of keys: the Base64 texts of their xxHash64."""
    hashes = hash_xxhash64(from_texts(list(names), pa.string())).tolist()
    return from_texts([base64.b64encode(each.to_bytes(_HASH_BYTES, "big")) for each in hashes], pa.string())


def encode_partitions(paths: Iterable[str]) -> pa.Array:
    """Return partition paths ("" in a table without partitions) as parts of keys."""
    return encode_names(path or NO_PARTITION for path in paths)


def encode_file_names(names: Iterable[str]) -> pa.Array:
    """Return file names as parts of keys: the Base64 texts of their MD5."""
    digests = (hashlib.md5(name.encode(), usedforsecurity=False).digest() for name in names)
    return from_texts([base64.b64encode(each) for each in digests], pa.string())


def make_column_keys(columns: pa.Array, partitions: pa.Array, files: pa.Array) -> pa.Array:
    """Return the keys of files' column statistics, from parts of equal length."""
    return _join(columns, partitions, files)


def make_bloom_keys(partitions: pa.Array, files: pa.Array) -> pa.Array:
    """Return the keys of bloom filters, from parts of equal length."""
    return _join(partitions, files)


def make_partition_keys(columns: pa.Array, partitions: pa.Array) -> pa.Array:
    """Return the keys of partition statistics, from parts of equal length."""
    return _join(columns, partitions)


def make_expression_partition_keys(columns: pa.Array, partitions: pa.Array) -> pa.Array:
    """Return the keys of whole partitions in an expression index, from parts of equal length."""
    import pyarrow.compute as pc

    mark = encode_names([_PARTITION_OF_EXPRESSIONS])[0]
    return pc.binary_join_element_wise(columns, mark, partitions, "")


def make_column_prefixes(columns: Iterable[str]) -> list[str]:
    """Return the common prefix of all keys of each column."""
    found: list[str] = encode_names(columns).to_pylist()
    return found


def make_column_partition_prefixes(columns: Iterable[str], partitions: Iterable[str]) -> list[str]:
    """Return the prefix of the keys of each column in each partition, including partition statistics."""
    ends = encode_partitions(partitions).to_pylist()
    return [column + end for column in encode_names(columns).to_pylist() for end in ends]


def _join(*parts: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, "")


RECORD_INDEX_TYPE = 5
UUID_ENCODING, TEXT_ENCODING = 0, 1
NO_FILE_INDEX = -1
"""File index of a file id that consists only of a UUID."""

Numbers = npt.NDArray[np.int64]

_PREFIX = "record-index-"
_CHUNK_KEYS = 1 << 16
_FILE_ID = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:-(\d{1,9}))?")
_GROUP = re.compile(r"record-index-(?:(?P<partition>[^-]*)-)?(?P<number>\d{4,9})(?:-0)?")
_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^_-]")  # with the dash, which separates the parts
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
    """Return the number of each key's file group among ``count``: Java's hash code of the key, modulo ``count``.

    The rule is Hudi's ``mapRecordKeyToFileGroupIndex``.
    """
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
    middle = "" if partition is None else f"{_ESCAPED.sub(_escape_character, partition)}-"
    return f"{_PREFIX}{middle}{number:04d}-0"


def parse_group_id(file_id: str) -> tuple[str | None, int]:
    """Return the table's partition path, None in a global index, and the number of a file group.

    Raises:
        InvalidTableError: the text is not a file id of a record index.
    """
    found = _GROUP.fullmatch(file_id)
    if found is None:
        raise InvalidTableError(f"A file group {file_id[:200]!r} cannot be in a record index.")
    partition = found["partition"]
    return None if partition is None else _ESCAPE.sub(_unescape_character, partition), int(found["number"])


def _escape_character(found: re.Match[str]) -> str:
    return f"%{ord(found[0]):02X}"


def _unescape_character(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))


def make_locations(
    partitions: Sequence[str], file_ids: Sequence[str], numbers: Numbers, millis: Numbers | int, encoding: int | None
) -> pa.StructArray:
    """Make the column ``recordIndexMetadata``.

    ``partitions`` and ``file_ids`` describe file groups, ``numbers`` are the groups of the records. ``millis`` is the
    time of the commit that added a record, in milliseconds since 1970. With ``encoding`` None, file ids with a UUID are
    stored as UUIDs.

    Raises:
        InvalidTableError: the encoding requires a UUID with a number, but a file id is not one.
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
    """Return the high and low bits, the file index and the text that encode a file id."""
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
    """Return the distinct file ids in a column ``recordIndexMetadata``, and for each record the number of its file id.

    Raises:
        InvalidTableError: an encoding is unknown.
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
        # Equal ids are adjacent in this order; each first one begins a new number.
        starts = np.ones(len(order), bool)
        starts[1:] = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
        numbers[coded[order]] = len(names) + np.cumsum(starts) - 1
        first = order[starts]
        names += [_decode_file_id(*each) for each in zip(*(column[first].tolist() for column in columns), strict=True)]
    return names, numbers


def _decode_file_id(high: int, low: int, index: int) -> str:
    bits = (high & ((1 << 64) - 1)) << 64 | low & ((1 << 64) - 1)
    return str(uuid.UUID(int=bits)) + ("" if index == NO_FILE_INDEX else f"-{index}")


SECONDARY_INDEX_TYPE = 7
SECONDARY_TYPE = pa.struct([pa.field("isDeleted", pa.bool_())])
"""Type of the column ``SecondaryIndexMetadata``."""

_NULL = "\0"
_SPECIAL = ("\\", "$", "\0")  # the backslash first, since it escapes the others
_PARTS = r"^(?s)(?P<value>(?:[^\\$]|\\.)*)\$(?P<record>.*)$"


def make_secondary_keys(values: pa.Array, record_keys: pa.Array) -> pa.Array:
    """Return the keys of secondary values, which may be null, with their record keys; all are strings.

    A backslash escapes "$", backslash and NUL. A null value is a NUL alone. The records only say whether they are
    deleted.
    """
    return pc.binary_join_element_wise(escape_secondary_values(values), _escape(record_keys), "$")


def escape_secondary_values(values: pa.Array) -> pa.Array:
    """Return the part of the key before the "$" for secondary values."""
    return pc.fill_null(_escape(values), _NULL)


def split_secondary_keys(keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the secondary values, which may be null, and the record keys.

    Raises:
        InvalidTableError: a key has no "$".
    """
    parts = _split(keys)
    values, records = pc.struct_field(parts, "value"), pc.struct_field(parts, "record")
    nulls = pc.equal(values, _NULL)
    return pc.if_else(nulls, pa.scalar(None, pa.string()), _unescape(values)), _unescape(records)


def find_secondary_groups(keys: pa.Array, count: int, version: int) -> Numbers:
    """Return the number of each key's file group among ``count``; ``version`` is the index's.

    Version 1 hashes the whole key, version 2 the part up to the "$", so that all keys of a value are in one group.

    Raises:
        InvalidTableError: a key has no "$".
    """
    if count == 1:
        return np.zeros(len(keys), np.int64)
    if version > 1:
        values = pc.struct_field(_split(keys), "value")
        keys = pc.binary_join_element_wise(values, "$", "")
    return find_file_groups(keys, count)


def format_secondary_values(values: pa.Array) -> pa.Array:
    """Return values as the texts that are indexed; null stays null.

    The texts are those of Java's values in Spark 3: a date is its days since 1970, a timestamp its microseconds, and
    floats have the digits that Java prints up to version 18.

    Raises:
        UnsupportedFeatureError: the type cannot be indexed.
    """
    type_ = values.type
    if pa.types.is_string(type_):
        return values
    if pa.types.is_integer(type_) or pa.types.is_large_string(type_):
        return values.cast(pa.string())
    if pa.types.is_float32(type_) or pa.types.is_float64(type_):
        return print_floats(values)
    if pa.types.is_date32(type_):
        return values.cast(pa.int32()).cast(pa.string())
    if pa.types.is_timestamp(type_):
        return values.cast(pa.timestamp("us", type_.tz)).cast(pa.int64()).cast(pa.string())
    raise UnsupportedFeatureError(f"A secondary index of values of the type {type_}.")


def make_deletion_column(deleted: np.ndarray) -> pa.StructArray:
    """Make the column ``SecondaryIndexMetadata``."""
    return pa.StructArray.from_arrays([from_numpy(deleted)], fields=list(SECONDARY_TYPE))


def _escape(texts: pa.Array) -> pa.Array:
    for each in _SPECIAL:
        texts = pc.replace_substring(texts, each, "\\" + each)
    return texts


def _unescape(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, r"(?s)\\(.)", r"\1")


def _split(keys: pa.Array) -> pa.StructArray:
    parts = pc.extract_regex(keys, _PARTS)
    if parts.null_count != keys.null_count:
        raise InvalidTableError("A key of a secondary index has no '$' between its value and its record key.")
    return parts
