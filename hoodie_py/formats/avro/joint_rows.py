"""The rows of neighbouring data blocks in one batch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class BlockRows:
    """The rows of one block, or of several decoded together, block by block, and the number of rows of each block."""

    batch: pa.RecordBatch
    counts: tuple[int, ...]

    def split(self) -> list[pa.RecordBatch]:
        """Return the rows of each block, as slices that keep the whole batch alive."""
        if len(self.counts) == 1:
            return [self.batch]
        firsts = accumulate(self.counts, initial=0)
        return [self.batch.slice(first, count) for first, count in zip(firsts, self.counts, strict=False)]
