"""DroppedRows: the rows of a base file that the log replaces or deletes, known before the rows are read."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pyarrow as pa

from hoodie_py.formats.arrays import from_numpy

_MASK_ROWS = 1 << 18  # one mask serves many batches: each NumPy call may lose Python's lock to another thread


class DroppedRows:
    """Collects row numbers in rising order first, then masks the file's rows batch by batch.

    Args:
        room: int64 array, long enough for all rows that may be dropped; it belongs to this object.
    """

    def __init__(self, room: np.ndarray) -> None:
        self._rows = room
        self._count = 0
        self._asked = 0
        self._passed = 0
        self._mask = from_numpy(np.ones(0, bool))
        self._masked_from = 0

    def note(self, rows: np.ndarray) -> None:
        """Drop rows: int64, rising, all greater than earlier ones; not after the first ``make_mask``."""
        self._rows[self._count : self._count + len(rows)] = rows
        self._count += len(rows)

    def make_mask(self, count: int) -> pa.Array | None:
        """Say for each of the next ``count`` rows whether it stays; None if all do."""
        first, start = self._passed, self._asked
        self._asked += count
        self._passed = bisect_left(self._rows, self._asked, first, self._count)
        if first == self._passed:
            return None
        if self._asked > self._masked_from + len(self._mask):
            self._mask, self._masked_from = self._make_mask(first, start, max(count, _MASK_ROWS)), start
        return self._mask.slice(start - self._masked_from, count)

    def _make_mask(self, first: int, start: int, count: int) -> pa.Array:
        """Say for each of ``count`` rows from ``start`` on whether it stays."""
        mask = np.ones(count, bool)
        mask[self._rows[first : bisect_left(self._rows, start + count, first, self._count)] - start] = False
        return from_numpy(mask)
