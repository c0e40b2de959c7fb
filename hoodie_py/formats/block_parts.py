"""Decode data blocks some records at a time, for blocks that are too large to decode in one go."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator

import pyarrow as pa

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.avro import AvroSchema, decode_avro_data

_HEADER = struct.Struct(">ii")
_LENGTH = struct.Struct(">i")


def count_records(content: memoryview) -> int:
    """Return the record count in the content of an AVRO_DATA block.

    Raises:
        CorruptFileError: the content is too short for that many records.
    """
    if len(content) < _HEADER.size:
        raise CorruptFileError(f"A data block of {len(content)} bytes is too short.")
    count = int(_HEADER.unpack_from(content)[1])
    if not 0 <= count <= (len(content) - _HEADER.size) // _LENGTH.size:
        raise CorruptFileError(f"A data block of {len(content)} bytes cannot have {count} records.")
    return count


def decode_avro_parts(
    content: memoryview, schema: AvroSchema, columns: Collection[str] | None, size: int
) -> Iterator[pa.RecordBatch]:
    """Decode the content of an AVRO_DATA block, some records at a time.

    Args:
        content: the block's content.
        schema: the schema of the block's header.
        columns: top-level columns to decode, None for all.
        size: bytes of records to decode at once; a larger record comes alone.

    Raises:
        CorruptFileError, UnsupportedFeatureError: as ``decode_avro_data``.
    """
    left = count_records(content)
    version = int(_HEADER.unpack_from(content)[0])
    pos, done = _HEADER.size, 0
    while True:
        stop, count = _step_over_records(content, pos, left, size)
        if count in (0, left):
            # Pass on all bytes: the decoder reports a record that does not fit, or bytes after the last record.
            stop, count = len(content), left
        part = b"".join((_HEADER.pack(version, count), content[pos:stop]))
        try:
            yield decode_avro_data(memoryview(part), schema, columns)
        except CorruptFileError as error:
            for name, shift in (("record", done), ("offset", pos - _HEADER.size)):
                if name in error.where:
                    error.where[name] += shift
            raise
        left, done, pos = left - count, done + count, stop
        if not left:
            return


def _step_over_records(content: memoryview, pos: int, most: int, size: int) -> tuple[int, int]:
    """Step over records of at least ``size`` bytes in all; return the next record's position and their number."""
    start, end = pos, len(content)
    length_at = _LENGTH.unpack_from
    count = 0
    while count < most and pos - start < size and pos + _LENGTH.size <= end:
        stop = pos + _LENGTH.size + int(length_at(content, pos)[0])
        if not pos < stop <= end:
            break
        pos = stop
        count += 1
    return pos, count
