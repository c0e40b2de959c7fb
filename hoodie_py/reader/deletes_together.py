"""SmallDeleteBlocks: makes the entries of small delete blocks together, as most of the cost of a call is fixed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from hoodie_py.formats.deletes import decode_deletes_together
from hoodie_py.formats.log import BlockType
from hoodie_py.reader.arrow_context import ArrowRecordContext
from hoodie_py.reader.batch import BufferedBatch
from hoodie_py.reader.delete_ordering import make_plain_ordering_column
from hoodie_py.reader.log_bytes import ScannedBlock

TOGETHER = 1 << 19  # most bytes of blocks that are decoded in one call
_SMALL = 1 << 14  # most bytes of a small block; a larger one has enough deletes to be decoded alone


class SmallDeleteBlocks:
    """Makes the entries of delete blocks that are decoded together.

    Args:
        context: the context of the entries.
        blocks: the blocks of a scan in merge order.
        size: most bytes of blocks that are decoded in one call, if less than ``TOGETHER``.
    """

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
        """Return the numbers of a block and of later ones that are decoded in one call; empty if it is not small."""
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
