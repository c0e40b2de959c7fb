"""Makes the entries of small blocks together, as most of the cost of a call is fixed.

Making entries from rows takes dozens of calls, however few the rows. So it is done once for all blocks that were
decoded together, and the result is sliced by block: ``SmallDataBlocks`` for data blocks, ``SmallDeleteBlocks`` for
delete blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import pyarrow as pa

from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro.data_blocks import BlockRows
from hoodie_py.formats.deletes.decoder import decode_deletes_together
from hoodie_py.formats.log.framing import BlockType
from hoodie_py.reader.log.block_decoder import BlockDecoder
from hoodie_py.reader.log.log_files import ScannedBlock
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.delete_ordering import make_plain_ordering_column
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.schema_evolution.by_name import Conformer

_FEW_ROWS = 4096  # most rows per block on average; larger blocks gain nothing
TOGETHER = 1 << 19  # most bytes of blocks that are decoded in one call
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
        self._size = min(size, TOGETHER)
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
