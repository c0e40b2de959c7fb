"""Write change records as the blocks of one change-data log file (Hudi ``HoodieCDCLogger``, ``HoodieCDCDataBlock``).

A block is encoded as soon as it has enough rows or bytes, so memory stays bounded.
"""

from __future__ import annotations

from typing import IO

import pyarrow as pa

from hoodie_py.arrow.arrays import join_batches, make_empty_batch
from hoodie_py.formats.avro.encoder import encode_records
from hoodie_py.formats.log.framing import BlockType, HeaderKey, encode_block
from hoodie_py.reader.base.base_merge import MergedRecords
from hoodie_py.reader.record.row_store import RowStore
from hoodie_py.writer.cdc.records import make_change_records
from hoodie_py.writer.cdc.schema import ChangeSchema

_BLOCK_ROWS = 65_536
_BLOCK_BYTES = 16 * 1024 * 1024


class ChangeLog:
    """Encodes change records into a sink. ``instant`` is the request time of the commit."""

    def __init__(self, sink: IO[bytes], schema: ChangeSchema, instant: str) -> None:
        self._sink = sink
        self._schema = schema
        self._instant = instant
        self._held: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0
        self._blocks = 0

    def add(self, merged: MergedRecords, store: RowStore) -> None:
        """Add the changes of a piece of a merge. The store holds its rows.

        Raises:
            InvalidTableError: a value does not fit the table's schema.
            StorageError: the disk is full or fails.
        """
        records = make_change_records(merged, store, self._schema, self._instant)
        row_bytes = records.nbytes // max(1, records.num_rows) + 1
        at_once = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // row_bytes))
        for start in range(0, records.num_rows, at_once):
            part = records.slice(start, at_once)
            rows, size = part.num_rows, part.num_rows * row_bytes
            if self._held and (self._rows + rows > _BLOCK_ROWS or self._bytes + size > _BLOCK_BYTES):
                self._write_block()
            self._held.append(part)
            self._rows += rows
            self._bytes += size

    def finish(self) -> None:
        """Write what is held; always write at least one block."""
        # A block without records, if nothing changed: readers of changes treat a missing file as an error.
        if self._held or not self._blocks:
            self._write_block()

    def _write_block(self) -> None:
        records = join_batches(self._held) if self._held else make_empty_batch(self._schema.arrow)
        avro = self._schema.avro
        headers = {HeaderKey.INSTANT_TIME: self._instant, HeaderKey.SCHEMA: avro.text}
        self._sink.write(encode_block(BlockType.CDC_DATA, headers, encode_records(records, avro)))
        self._held, self._rows, self._bytes = [], 0, 0
        self._blocks += 1
