"""SmallDataBlocks: makes the entries of small data blocks together.

To make entries from rows takes dozens of calls, however few rows there are. So it is done once for the rows of all
blocks that were decoded together, and the result is sliced by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import pyarrow as pa

from hoodie_py.errors import HoodieError
from hoodie_py.formats.joint_rows import BlockRows
from hoodie_py.reader.arrow_context import ArrowRecordContext
from hoodie_py.reader.batch import BufferedBatch
from hoodie_py.reader.block_decoder import BlockDecoder
from hoodie_py.reader.conform import Conformer
from hoodie_py.reader.delete_rules import DeleteRules

_FEW_ROWS = 4096  # most rows per block on average; larger blocks gain nothing


@dataclass(frozen=True, slots=True)
class _JointEntries:
    """Entries of several blocks, and their rows; the row handles are valid only in this generation of the store."""

    entries: BufferedBatch
    rows: pa.RecordBatch
    generation: int


class SmallDataBlocks:
    """Makes the entries of blocks that a decoder decodes together.

    Args:
        context: the context whose store takes the rows.
        deletes: says which rows are deletes.
        conform: brings decoded rows to the store's schema.
        decoder: decodes the blocks.
    """

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
        """Make entries; False if a block is wrong, so that it is found when the blocks are decoded one by one."""
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
