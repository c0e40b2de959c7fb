"""Which rows of a base file the log replaces or deletes, known before the rows are read."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pyarrow as pa

from hoodie_py.formats.arrays import from_numpy

_MASK_ROWS = 1 << 18  # a mask is made of so many and sliced: each NumPy call lets another thread have Python's lock


class DroppedRows:
    """Row numbers of a base file, noted in rising order; then the file's rows are asked for, some at a time.

    Args:
        room: int64 array with a place for each row that may be dropped; it belongs to this object.
    """

    def __init__(self, room: np.ndarray) -> None:
        self._rows = room
        self._count = 0
        self._asked = 0
        self._passed = 0
        self._mask = from_numpy(np.ones(0, bool))
        self._masked_from = 0

    def note(self, rows: np.ndarray) -> None:
        """Drop rows: int64, rising, all behind those noted before; not after ``keep``."""
        self._rows[self._count : self._count + len(rows)] = rows
        self._count += len(rows)

    def make_mask(self, count: int) -> pa.Array | None:
        """Return for each of the next ``count`` rows whether it stays, as bool; None if all do."""
        first, start = self._passed, self._asked
        self._asked += count
        self._passed = bisect_left(self._rows, self._asked, first, self._count)
        if first == self._passed:
            return None
        if self._asked > self._masked_from + len(self._mask):
            self._mask, self._masked_from = self._make_mask(first, start, max(count, _MASK_ROWS)), start
        return self._mask.slice(start - self._masked_from, count)

    def _make_mask(self, first: int, start: int, count: int) -> pa.Array:
        """Return for each of some rows from ``start`` on whether it stays."""
        mask = np.ones(count, bool)
        mask[self._rows[first : bisect_left(self._rows, start + count, first, self._count)] - start] = False
        return from_numpy(mask)
