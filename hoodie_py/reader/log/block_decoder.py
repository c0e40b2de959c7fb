"""BlockDecoder: decodes the blocks of one file group, small blocks of one schema together, large blocks in parts.

A call of the decoder costs about a millisecond, however few rows a block has. So Avro blocks with the same schema are
decoded in one call, up to a number of bytes. The rows still come block by block.

Making entries from rows takes dozens of calls, however few the rows. So it is done once for all blocks that were
decoded together, and the result is sliced by block: ``SmallDataBlocks`` for data blocks, ``SmallDeleteBlocks`` for
delete blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro.data_blocks import BlockRows, count_records, decode_avro_blocks, decode_avro_parts
from hoodie_py.formats.deletes.decoder import decode_deletes_together
from hoodie_py.formats.log.blocks import decode_records, parse_block_schema
from hoodie_py.formats.log.framing import BlockType, LogBlock
from hoodie_py.formats.parquet.decoder import count_parquet_rows, decode_parquet_parts
from hoodie_py.reader.log.log_files import ScannedBlock
from hoodie_py.reader.read_info import WantedKeys
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.delete_rules import DeleteRules, make_plain_ordering_column
from hoodie_py.reader.schema_evolution.by_name import Conformer

if TYPE_CHECKING:
    from hoodie_py.formats.hfile.data_block import DataBlock
    from hoodie_py.reader.schema_evolution.by_id import BlockMapper, ColumnMapper


TOGETHER = 64 << 20  # most bytes of blocks that are decoded in one call


class BlockDecoder:
    """Decodes the data blocks of a scan, at most ``size`` bytes of blocks in one call.

    Args:
        blocks: in merge order; the list belongs to the decoder, which drops contents once they are decoded.
        columns: the columns to decode.
        size: most bytes of blocks to decode in one call.
        times: columns whose declared type may differ from that in blocks (``list_declared_times``).
        mapper: gives rows the names and types of the read.
        keyed: whether a column ``key`` is the record key, as HFiles leave it out.
        wanted: the only keys to read from blocks that are HFiles; None for all.
    """

    def __init__(
        self,
        blocks: list[ScannedBlock],
        columns: Sequence[str],
        size: int = TOGETHER,
        times: pa.Schema | None = None,
        mapper: BlockMapper | None = None,
        *,
        keyed: bool = True,
        wanted: WantedKeys | None = None,
    ) -> None:
        self._blocks = blocks
        self._wanted = wanted
        self._columns = columns
        self._size = min(size, TOGETHER)
        self._times = times
        self._mapper = mapper
        self._keyed = keyed
        self._decoded: dict[int, pa.RecordBatch] = {}

    def read_records(self, index: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a data block with the block's own columns. Call it once per block, in order.

        Raises:
            CorruptFileError: a block's content is damaged; ``where`` names that block.
            UnsupportedFeatureError: a block whose content cannot be decoded.
        """
        if index not in self._decoded:
            group = self._find_group(index)
            if len(group) == 1:
                yield from self._decode_alone(index)
                return
            for numbers, rows in self._decode_group(group):
                self.give_back(numbers, rows)
        yield self._decoded.pop(index)

    def decode_together(self, index: int) -> list[tuple[Sequence[int], BlockRows]]:
        """Decode a block and later ones of the same schema; return the rows with the numbers of their blocks.

        The list is empty if the block must be decoded alone, was decoded before, or is partial.

        Raises:
            CorruptFileError, UnsupportedFeatureError: as ``read_records``.
        """
        if index in self._decoded or self._blocks[index].block.is_partial:
            return []
        group = self._find_group(index)
        return [] if len(group) == 1 else self._decode_group(group)

    def give_back(self, numbers: Sequence[int], rows: BlockRows) -> None:
        """Keep rows that ``decode_together`` returned, for ``read_records`` to return."""
        self._decoded.update(zip(numbers, rows.split(), strict=True))

    def count_records(self, index: int, rows: pa.RecordBatch) -> int:
        """Count the records of a block.

        ``rows``: the first batch that ``read_records`` gave; the whole block if it is decoded in one part.
        """
        block = self._blocks[index].load()
        if block.type is BlockType.AVRO_DATA and block.size > self._size:
            return count_records(block.content)
        if block.type is BlockType.PARQUET_DATA:
            return count_parquet_rows(block.content)
        if block.type is BlockType.HFILE_DATA:
            return _count_entries(block)
        return int(rows.num_rows)

    def _decode_alone(self, index: int) -> Iterator[pa.RecordBatch]:
        block = self._blocks[index].load()
        try:
            mapper, columns, times = self._find_mapper(index)
            if block.type is BlockType.PARQUET_DATA:
                batches = decode_parquet_parts(block.content, columns, self._size, times)
            elif block.type is BlockType.HFILE_DATA:
                batches = _decode_hfile(block, columns, self._size, times, self._keyed, self._wanted)
            elif block.type is BlockType.AVRO_DATA and block.size > self._size:
                schema = parse_block_schema(block, times)
                batches = decode_avro_parts(block.content, schema, columns, self._size)
            else:
                batches = iter([decode_records(block, columns, times)])
            yield from batches if mapper is None else map(mapper.map_batch, batches)
        except HoodieError as error:
            error.locate(block=block.type.name, block_offset=block.offset, instant=block.instant_time)
            raise

    def _find_group(self, index: int) -> list[int]:
        """Return the numbers of the block and of the later blocks of its schema to decode in the same call."""
        first = self._blocks[index].block
        if first.type is not BlockType.AVRO_DATA or first.schema_text is None:
            return [index]
        group, filled = [index], first.size
        for later in range(index + 1, len(self._blocks)):
            block = self._blocks[later].block
            if _has_same_schema(block, first) and self._find_mapper(later)[0] is self._find_mapper(index)[0]:
                filled += block.size
                if filled > self._size:
                    break
                group.append(later)
        return group

    def _decode_group(self, group: Sequence[int]) -> list[tuple[Sequence[int], BlockRows]]:
        try:
            mapper, columns, times = self._find_mapper(group[0])
            schema = parse_block_schema(self._blocks[group[0]].block, times)
            decoded = list(decode_avro_blocks([self._take_content(i) for i in group], schema, columns))
            if mapper is not None:
                decoded = [BlockRows(mapper.map_batch(rows.batch), rows.counts) for rows in decoded]
        except HoodieError as error:
            at = self._blocks[group[error.where.pop("content", 0)]]
            error.locate(path=at.path, block=at.block.type.name, block_offset=at.block.offset, instant=at.instant)
            raise
        bounds = pairwise(accumulate((len(rows.counts) for rows in decoded), initial=0))
        return [(group[first:last], rows) for (first, last), rows in zip(bounds, decoded, strict=True)]

    def _find_mapper(self, index: int) -> tuple[ColumnMapper | None, Sequence[str], pa.Schema | None]:
        """Return the mapper of a block's rows, if any, the columns to decode and their declared times."""
        if self._mapper is None:
            return None, self._columns, self._times
        return self._mapper.find(self._blocks[index].instant)

    def _take_content(self, index: int) -> memoryview:
        """Return a block's content and drop it here, so that memory is freed while later blocks are decoded."""
        block = self._blocks[index]
        content = block.load().content
        self._blocks[index] = block.drop_content()
        return content


def _decode_hfile(
    block: LogBlock,
    columns: Sequence[str],
    size: int,
    times: pa.Schema | None,
    keyed: bool,
    wanted: WantedKeys | None,
) -> Iterator[pa.RecordBatch]:
    from hoodie_py.formats.hfile.reader import HFile  # few tables have such blocks
    from hoodie_py.formats.hfile.records import decode_hfile_parts

    def select(hfile: HFile) -> Iterator[DataBlock]:
        if wanted is None:
            return hfile.iterate_blocks()
        return hfile.select_prefixes(wanted.coded) if wanted.are_prefixes else hfile.select_keys(wanted.coded)

    return decode_hfile_parts(block.content, block.schema_text, columns, size, times, keyed=keyed, select=select)


def _count_entries(block: LogBlock) -> int:
    from hoodie_py.formats.hfile.reader import HFile

    return HFile.from_bytes(block.content).entries


def _has_same_schema(one: LogBlock, other: LogBlock) -> bool:
    return (one.type, one.schema_text, one.is_partial) == (other.type, other.schema_text, other.is_partial)


_FEW_ROWS = 4096  # most rows per block on average; larger blocks gain nothing
SMALL_TOGETHER = 1 << 19  # most bytes of blocks that are decoded in one call
_SMALL = 1 << 14  # most bytes of a small block; a larger one has enough deletes to be decoded alone


@dataclass(frozen=True, slots=True)
class _JointEntries:
    """Entries of several blocks, and their rows; the row handles are valid only in this generation of the store."""

    entries: BufferedBatch
    rows: pa.RecordBatch
    generation: int


class SmallDataBlocks:
    """Makes the entries of blocks that a decoder decodes together."""

    def __init__(
        self, context: ArrowRecordContext, deletes: DeleteRules, conform: Conformer, decoder: BlockDecoder
    ) -> None:
        self._context = context
        self._deletes = deletes
        self._conform = conform
        self._decoder = decoder
        self._made: dict[int, tuple[_JointEntries, int, int]] = {}

    def take_entries(self, index: int) -> BufferedBatch | None:
        """Return the entries of a block; None if it must be decoded alone. Call it once per block, in order.

        Raises:
            CorruptFileError, UnsupportedFeatureError: as ``BlockDecoder.read_records``.
            StorageError: rows could not be spilled.
        """
        if index not in self._made:
            for numbers, rows in self._decoder.decode_together(index):
                if rows.batch.num_rows > _FEW_ROWS * len(numbers) or not self._make_entries(numbers, rows):
                    self._decoder.give_back(numbers, rows)
            if index not in self._made:
                return None
        made, start, stop = self._made.pop(index)
        if made.generation == self._context.store.generation:
            return made.entries.slice(start, stop)
        # The store has spilled or folded rows since, so the handles are void: add this block's rows again.
        own = made.rows.slice(start, stop - start)
        return BufferedBatch.of_rows(self._context, self._context.store.add(own), own, made.entries.codes[start:stop])

    def _make_entries(self, numbers: Sequence[int], joint: BlockRows) -> bool:
        """Make entries; False if any block is invalid, so that decoding block by block finds and names it."""
        store = self._context.store
        first = len(store)
        try:
            rows = self._conform(joint.batch)
            store.add(rows)
            entries = BufferedBatch.of_rows(self._context, first, rows, self._deletes.read_operations(rows))
        except HoodieError:
            store.release(first)
            return False
        made = _JointEntries(entries, rows, store.generation)
        bounds = pairwise(accumulate(joint.counts, initial=0))
        self._made.update({index: (made, *bound) for index, bound in zip(numbers, bounds, strict=True)})
        return True


class SmallDeleteBlocks:
    """Makes the entries of a scan's small delete blocks, which are decoded together."""

    def __init__(self, context: ArrowRecordContext, blocks: Sequence[ScannedBlock], size: int) -> None:
        self._context = context
        self._blocks = blocks
        self._size = min(size, SMALL_TOGETHER)
        self._made: dict[int, BufferedBatch] = {}
        self._tried = 0

    def take_entries(self, index: int) -> BufferedBatch | None:
        """Return the entries of a delete block; None if it must be decoded alone. Call it once per block, in order."""
        if index >= self._tried:
            group = self._find_group(index)
            self._tried = max(group, default=index) + 1
            if len(group) > 1:
                self._make_entries(group)
        return self._made.pop(index, None)

    def _find_group(self, index: int) -> list[int]:
        """Return the numbers of a block and of later ones to decode in one call; empty if the block is not small."""
        group: list[int] = []
        filled = 0
        for number in range(index, len(self._blocks) if self._is_small(index) else index):
            if self._is_small(number):
                filled += self._blocks[number].block.size
                if filled > self._size:
                    break
                group.append(number)
        return group

    def _is_small(self, number: int) -> bool:
        """Say whether a block is a small delete block that is in memory."""
        scanned = self._blocks[number]
        return scanned.block.type is BlockType.DELETE and scanned.log is None and scanned.block.size <= _SMALL

    def _make_entries(self, group: Sequence[int]) -> None:
        joint = decode_deletes_together([self._blocks[number].block.content for number in group])
        order = (
            None if joint is None else make_plain_ordering_column(joint.records, self._context.declared_ordering_types)
        )
        if joint is None or order is None:
            return
        entries = BufferedBatch.of_deletes(self._context, joint.records.keys, order)
        bounds = pairwise(accumulate(joint.counts, initial=0))
        self._made = {number: entries.slice(*bound) for number, bound in zip(group, bounds, strict=True)}
