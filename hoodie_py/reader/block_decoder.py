"""Data blocks of one file group decoded, small ones of the same schema together.

A block costs about a millisecond whatever it holds, so the Avro blocks that share a schema are decoded in one go, up to
some bytes at a time.  The rows come out block by block all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro import decode_avro_blocks
from hoodie_py.formats.blocks import block_schema, decode_records
from hoodie_py.formats.log import BlockType
from hoodie_py.reader.log_scan import ScannedBlock

TOGETHER = 64 << 20  # bytes of block content decoded in one go


class BlockDecoder:
    """Decodes the data blocks of a scan.

    Args:
        blocks: the blocks in merge order.
        columns: top-level columns to decode.
    """

    def __init__(self, blocks: Sequence[ScannedBlock], columns: Sequence[str]) -> None:
        self._blocks = blocks
        self._columns = columns
        self._decoded: dict[int, pa.RecordBatch] = {}

    def records(self, index: int) -> pa.RecordBatch:
        """Return the rows of a data block, with the block's own columns; each block is asked for once, in order.

        Raises:
            CorruptFileError: a block's content is damaged; ``where`` names that block.
            UnsupportedFeatureError: a block whose content cannot be decoded.
        """
        if index not in self._decoded:
            group = self._group(index)
            if len(group) == 1:
                return decode_records(self._blocks[index].block, self._columns)
            self._decode(group)
        return self._decoded.pop(index)

    def _group(self, index: int) -> list[int]:
        """Return the block and the later ones that share its schema, as many as are decoded together."""
        first = self._blocks[index].block
        if first.type is not BlockType.AVRO_DATA or first.schema_text is None:
            return [index]
        group, filled = [index], len(first.content)
        for later in range(index + 1, len(self._blocks)):
            block = self._blocks[later].block
            if block.type is BlockType.AVRO_DATA and block.schema_text == first.schema_text:
                filled += len(block.content)
                if filled > TOGETHER:
                    break
                group.append(later)
        return group

    def _decode(self, group: Sequence[int]) -> None:
        blocks = [self._blocks[i] for i in group]
        schema = block_schema(blocks[0].block)
        try:
            batches = decode_avro_blocks([each.block.content for each in blocks], schema, self._columns)
        except HoodieError as error:
            at = blocks[error.where.pop("content", 0)]
            error.located(path=at.path, block=at.block.type.name, block_offset=at.block.offset, instant=at.instant)
            raise
        self._decoded.update(zip(group, batches, strict=True))
