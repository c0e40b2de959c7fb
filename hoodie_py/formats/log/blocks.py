"""Decodes the content of log blocks, by block type, into records, deletes and positions.

``framing`` splits a file into blocks without decoding them. Errors of the decoders below name the record and the offset
in the content; this module adds the block.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hoodie_py.arrow.arrays import join_batches
from hoodie_py.errors import CorruptFileError, HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema, decode_avro_data
from hoodie_py.formats.deletes.decoder import DeleteRecords, decode_deletes
from hoodie_py.formats.log.framing import BlockType, LogBlock
from hoodie_py.formats.log.positions import decode_positions
from hoodie_py.formats.parquet.decoder import decode_parquet_data

T = TypeVar("T")


def parse_block_schema(block: LogBlock, times: pa.Schema | None = None) -> AvroSchema:
    """Parse the schema in a data block's header.

    ``times`` are the table's declared times (``declared_times``).

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
