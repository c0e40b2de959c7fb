"""Decodes the values of an HFile, Avro records without a header, into columns (Hudi ``HoodieAvroHFileReaderImplBase``).

Java's writer takes any field named ``key`` for the record key and stores an empty text in it, because the HFile's entry
has the key. If the column is the record key, it is read from the entries' keys. Otherwise its value is lost, and
reading it is an error. Rows are in key order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import to_booleans
from hoodie_py.errors import CorruptFileError, HoodieError
from hoodie_py.formats.avro.data_blocks import AvroSchema, decode_avro_values
from hoodie_py.formats.hfile.data_block import DataBlock
from hoodie_py.formats.hfile.reader import HFile

KEY_FIELD = "key"
Select = Callable[[HFile], Iterator[DataBlock]]


def decode_hfile_parts(
    content: memoryview | bytes,
    text: str | None,
    columns: Collection[str] | None,
    size: int,
    times: pa.Schema | None = None,
    *,
    keyed: bool = True,
    select: Select = HFile.iterate_blocks,
) -> Iterator[pa.RecordBatch]:
    """Decode the content of an HFILE_DATA log block, about ``size`` bytes of entries at a time.

    ``text`` is the schema in the block's header, which counts if the HFile has none. ``columns`` are the top-level
    columns to decode, None for all; names that are not in the schema are ignored. ``times`` are the table's declared
    times (``list_declared_times``). ``keyed`` says whether a column ``key`` is the record key. ``select`` yields the
    entries to decode. At least one batch is yielded.

    Raises:
        CorruptFileError: the content is not an HFile, or a damaged one; its values are not records of the schema; or
            the values of a column ``key`` are lost.
        UnsupportedFeatureError: the HFile or the schema has a feature that is not supported.
    """
    hfile = HFile.from_bytes(content)
    schema = parse_schema(hfile, text).apply_times(times)
    found = False
    for block in select(hfile):
        for batch in decode_data_block(block, schema, columns, size, keyed=keyed):
            found = True
            yield batch
    if not found:
        nothing = np.empty(0, np.int64)
        yield decode_avro_values(b"", nothing, nothing, schema, columns)


def parse_schema(hfile: HFile, text: str | None = None) -> AvroSchema:
    """Return the schema of an HFile's values: its own, else ``text``.

    Raises:
        CorruptFileError: there is none, or it is not the Avro schema of a record.
        UnsupportedFeatureError: as for ``AvroSchema.parse``.
    """
    found = hfile.schema_text or text
    if not found:
        raise CorruptFileError("An HFile has no schema of its values.")
    return AvroSchema.parse(found)


def decode_data_block(
    block: DataBlock, schema: AvroSchema, columns: Collection[str] | None, size: int, *, keyed: bool
) -> Iterator[pa.RecordBatch]:
    """Decode the entries of one data block, about ``size`` bytes at a time. Arguments, errors as
    ``decode_hfile_parts``.
    """
    start = 0
    while start < len(block):
        beyond = int(np.searchsorted(block.value_ends, block.starts[start] + size, "right"))
        stop = min(max(beyond, start + 1), len(block))
        try:
            yield _decode_entries(block, start, stop, schema, columns, keyed)
        except HoodieError as error:
            if "record" in error.where:
                error.where["record"] += start
            raise error.locate(hfile_block=block.offset) from None
        start = stop


def _decode_entries(
    block: DataBlock, start: int, stop: int, schema: AvroSchema, columns: Collection[str] | None, keyed: bool
) -> pa.RecordBatch:
    first = int(block.starts[start])
    last = int(block.value_ends[stop - 1])
    values = memoryview(block.payload)[first:last]
    places = block.values[start:stop] - first, block.value_ends[start:stop] - first
    batch = decode_avro_values(values, *places, schema, columns)
    at = batch.schema.get_field_index(KEY_FIELD)
    if at < 0 or not pa.types.is_string(batch.schema.field(at).type):
        return batch
    return batch.set_column(at, batch.schema.field(at), _fill_keys(batch.column(at), block, start, stop, keyed))


def _fill_keys(stored: pa.Array, block: DataBlock, start: int, stop: int, keyed: bool) -> pa.Array:
    """Return the column with the entries' keys in place of empty texts."""
    import pyarrow.compute as pc

    empty = pc.equal(stored, "")
    if not to_booleans(empty).any():
        return stored
    if not keyed:
        raise CorruptFileError(
            "The writer of an HFile did not keep the values of the column 'key', which is not the record key.",
            hint="Java Hudi takes any column of that name for the record key. Read the other columns.",
            column=KEY_FIELD,
        )
    try:
        keys = block.read_keys(start, stop).cast(pa.string())
    except pa.ArrowInvalid:
        raise CorruptFileError("A key of an HFile is not UTF-8.", block_offset=block.offset) from None
    return pc.if_else(pc.fill_null(empty, False), keys, stored)
