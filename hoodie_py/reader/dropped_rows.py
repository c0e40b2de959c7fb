"""Which rows of a base file the log replaces or deletes, known before the rows are read."""

from __future__ import annotations

import numpy as np


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

    def note(self, rows: np.ndarray) -> None:
        """Drop rows: int64, rising, all behind those noted before."""
        self._rows[self._count : self._count + len(rows)] = rows
        self._count += len(rows)

    def keep(self, count: int) -> np.ndarray | None:
        """Return for each of the next ``count`` rows whether it stays, as bool; None if all do."""
        first, start = self._passed, self._asked
        self._asked += count
        self._passed = first + int(np.searchsorted(self._rows[first : self._count], self._asked))
        if first == self._passed:
            return None
        mask = np.ones(count, bool)
        mask[self._rows[first : self._passed] - start] = False
        return mask
