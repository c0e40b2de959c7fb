"""Read the records of ``.cdc`` files (Hudi ``HoodieCDCLogRecordIterator``).

A change log has blocks of type CDC_DATA, with the content of an Avro data block. Its records have, by the supplemental
logging mode that wrote it (F4.15):

    OP_KEY_ONLY          op, record_key
    DATA_BEFORE          op, record_key, before
    DATA_BEFORE_AFTER    op, ts_ms, before, after

No other file has these changes, so a damaged block is an error here, whatever the ``integrity`` of the read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, HoodieError
from hoodie_py.formats.avro.data_blocks import decode_avro_parts
from hoodie_py.formats.log.blocks import parse_block_schema
from hoodie_py.formats.log.framing import BlockType, CorruptBlock, LogBlock, iterate_blocks
from hoodie_py.formats.names import AFTER, BEFORE
from hoodie_py.reader.file_slice import LogFile
from hoodie_py.reader.log.log_files import open_logs
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.schema_evolution.by_id import ColumnMapper
from hoodie_py.reader.schema_evolution.file_mappings import FileMappings


def read_change_log(
    file: LogFile, info: ReadInfo, options: ReadOptions, columns: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a change log in file order, with those of ``columns`` that it has.

    Raises:
        CorruptFileError: the file is shorter than its commit says, or a block is damaged.
        UnsupportedFeatureError: a block whose content cannot be decoded.
        StorageError: the file is missing or cannot be read.
    """
    try:
        with closing(Spill(MemoryBudget.from_options(options), ReadStats())) as spill:
            yield from _read_blocks(file, info, spill, columns)
    except HoodieError as error:
        if "block_offset" in error.where:  # offsets of the decoder count within the block
            error.where["offset"] = error.where.pop("block_offset")
        error.locate(path=file.path)
        raise


def _read_blocks(file: LogFile, info: ReadInfo, spill: Spill, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
    for log in open_logs(info.files, [file], spill):
        data = log.read()
        if len(data) < file.size:
            raise CorruptFileError(
                f"The change log has {len(data)} bytes, its commit's statistics say {file.size}.", offset=len(data)
            )
        for block in iterate_blocks(data):
            if isinstance(block, CorruptBlock):
                raise CorruptFileError(f"A corrupt block in a change log: {block.reason}.", offset=block.offset)
            if block.type is not BlockType.CDC_DATA:
                raise CorruptFileError(f"A change log has a block of type {block.type.name}.", offset=block.offset)
            try:
                mapper = None if info.mappings is None else _make_mapper(info, info.mappings, block)
                schema = parse_block_schema(block, _nest_times(info, mapper))
                batches = decode_avro_parts(block.content, schema, columns, spill.budget.portion)
                yield from batches if mapper is None else (_map_images(batch, mapper) for batch in batches)
            except HoodieError as error:
                error.locate(block=block.type.name, block_offset=block.offset, instant=block.instant_time)
                raise


def _make_mapper(info: ReadInfo, mappings: FileMappings, block: LogBlock) -> ColumnMapper:
    """Return the mapper from images to the columns of a read, for tables that match columns by id."""
    return ColumnMapper(mappings.find(block.instant_time or ""), info.schema)


def _map_images(batch: pa.RecordBatch, mapper: ColumnMapper) -> pa.RecordBatch:
    for name in (BEFORE, AFTER):
        at = batch.schema.get_field_index(name)
        if at >= 0 and pa.types.is_struct(batch.column(at).type):
            images = batch.column(at)
            fields = [field.name for field in images.type]
            rows = mapper.map_batch(pa.RecordBatch.from_arrays(images.flatten(), names=fields))
            mapped = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema), mask=images.is_null())
            batch = batch.set_column(at, pa.field(name, mapped.type), mapped)
    return batch


def _nest_times(info: ReadInfo, mapper: ColumnMapper | None) -> pa.Schema | None:
    """Return the declared times of images, whose columns are one level down."""
    times = info.file_times if mapper is None else mapper.rename_types(info.file_times)
    if times is None:
        return None
    return pa.schema([pa.field(name, pa.struct(list(times))) for name in (BEFORE, AFTER)])
