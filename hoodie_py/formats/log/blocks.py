"""Decodes the content of log blocks, by block type, into records, deletes and positions.

``framing`` splits a file into blocks without decoding them. Errors of the decoders below name the record and the offset
in the content; this module adds the block.

Row positions are in a block's headers, as Base64 of a 64-bit roaring bitmap in its portable form (Hudi LogReaderUtils).
The i-th record of the block belongs to the i-th smallest position. A position is a 0-based row number in the base file
that another header names.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from hoodie_py.arrow.arrays import join_batches
from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema, decode_avro_data
from hoodie_py.formats.deletes.decoder import DeleteRecords, decode_deletes
from hoodie_py.formats.limits import get_limits, raise_limit_error
from hoodie_py.formats.log.framing import BlockType, LogBlock
from hoodie_py.formats.parquet.decoder import decode_parquet_data

_BUCKET_COUNT = struct.Struct("<Q")
_SMALLEST_BUCKET = 12


def encode_positions(positions: npt.NDArray[np.int64]) -> str:
    """Encode the positions of a block's records: distinct row numbers, ascending."""
    bitmap = BitMap64(positions.astype(np.uint64))
    bitmap.run_optimize()
    return binascii.b2a_base64(bitmap.serialize(), newline=False).decode()


def decode_positions(text: str, count: int | None = None) -> npt.NDArray[np.int64]:
    """Decode the positions of a block's records.

    They are ascending. ``count`` is the number of records of the block; None if it is not known.

    Raises CorruptFileError if the text is not such a bitmap, or does not have ``count`` positions.
    """
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        raise CorruptFileError("Record positions are not Base64 text.") from None
    if len(data) < _BUCKET_COUNT.size:
        raise CorruptFileError(f"Record positions of {len(data)} bytes are too short.")
    (buckets,) = _BUCKET_COUNT.unpack_from(data)
    if buckets * _SMALLEST_BUCKET > len(data):
        raise CorruptFileError(f"Record positions of {len(data)} bytes cannot have {buckets} buckets.")
    try:
        bitmap = BitMap64.deserialize(data)
    except (ValueError, IndexError, OverflowError, MemoryError):
        raise CorruptFileError("Record positions are not a 64-bit roaring bitmap.") from None
    found = len(bitmap)  # before they are listed: a bitmap of a few bytes can stand for billions of rows
    if count is not None and found != count:
        raise CorruptFileError(f"A block of {count} records has {found} record positions.")
    if found > get_limits().block_records:
        raise_limit_error(CorruptFileError, f"A block has {found} record positions", "block_records")
    positions = np.asarray(bitmap.to_array(), dtype=np.uint64)
    if found and int(positions[-1]) >= 1 << 63:
        raise CorruptFileError(f"Record position {int(positions[-1])} is out of range.")
    if found > 1 and not bool((positions[1:] > positions[:-1]).all()):
        raise CorruptFileError("Record positions are not ascending.")
    return positions.view(np.int64)


T = TypeVar("T")


def parse_block_schema(block: LogBlock, times: pa.Schema | None = None) -> AvroSchema:
    """Parse the schema in a data block's header.

    ``times`` are the table's declared times (``list_declared_times``).

    Raises:
        CorruptFileError: the block has no schema, or not the Avro schema of a record.
        UnsupportedFeatureError: as for ``AvroSchema.parse``.
    """
    text = block.schema_text
    if text is None:
        raise CorruptFileError("A data block has no schema in its header.", **_describe_place(block))
    return _decode_with_place(block, lambda: AvroSchema.parse(text).apply_times(times))


def decode_records(
    block: LogBlock, columns: Collection[str] | None = None, times: pa.Schema | None = None
) -> pa.RecordBatch:
    """Decode the records of a data block, in order, with the block's own schema and Spark's types.

    The block is of type AVRO_DATA, CDC_DATA, HFILE_DATA or PARQUET_DATA. ``columns`` are the top-level columns to
    decode, None for all; names that the block does not contain are ignored. ``times`` as for ``parse_block_schema``.

    Raises:
        CorruptFileError: the content is damaged.
        UnsupportedFeatureError: the block type or its content is not supported.
    """
    match block.type:
        case BlockType.AVRO_DATA | BlockType.CDC_DATA:
            schema = parse_block_schema(block, times)
            return _decode_with_place(block, lambda: decode_avro_data(block.content, schema, columns))
        case BlockType.HFILE_DATA:
            return _decode_with_place(block, lambda: join_batches(list(_decode_hfile(block, columns, times))))
        case BlockType.PARQUET_DATA:
            return _decode_with_place(block, lambda: decode_parquet_data(block.content, columns, times))
    message = f"Log blocks of type {block.type.name} cannot be decoded into records here."
    raise UnsupportedFeatureError(message, **_describe_place(block))


def _decode_hfile(
    block: LogBlock, columns: Collection[str] | None, times: pa.Schema | None
) -> Iterator[pa.RecordBatch]:
    from hoodie_py.formats.hfile.records import decode_hfile_parts

    return decode_hfile_parts(block.content, block.schema_text, columns, max(len(block.content), 1), times)


def decode_delete_block(block: LogBlock) -> DeleteRecords:
    """Decode the deletes of a DELETE block. Raises as ``decoder.decode_deletes``."""
    return _decode_with_place(block, lambda: decode_deletes(block.content))


def decode_block_positions(block: LogBlock, count: int) -> npt.NDArray[np.int64] | None:
    """Decode the base-file positions of a block's ``count`` records or deletes; None if the block has none.

    Raises CorruptFileError if the header is damaged or has another number of positions.
    """
    text = block.record_positions
    if text is None:
        return None
    return _decode_with_place(block, lambda: decode_positions(text, count))


def _decode_with_place(block: LogBlock, decode: Callable[[], T]) -> T:
    try:
        return decode()
    except HoodieError as error:
        raise error.locate(**_describe_place(block)) from None


def _describe_place(block: LogBlock) -> dict[str, Any]:
    return {"block": block.type.name, "block_offset": block.offset, "instant": block.instant_time}
