"""When the log of a slice may be folded: in turn with the other slices of its scan, and only while rows are wanted.

A fold is many small steps of NumPy, and so is what decides about base rows ahead of them.  Two threads that fold at
once wait for Python's lock at each of them and take longer than one after the other; on a Python without a global lock
nobody waits.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType


class ScanGivenUpError(Exception):
    """Nobody wants the rows of a scan any more. No ``HoodieError``, as it never leaves the threads that read slices."""


class FoldGate:
    """Entered while a log is folded, once more by whoever is in it.

    Args:
        alone: whether one thread at a time may fold, if Python has a global lock. Such a turn stays in its process.
    """

    def __init__(self, *, alone: bool = False) -> None:
        has_lock = getattr(sys, "_is_gil_enabled", None)  # from 3.13 on
        self._lock = threading.RLock() if alone and (has_lock is None or has_lock()) else None
        self._over = False

    def __enter__(self) -> None:
        """Wait for the turn.

        Raises:
            ScanGivenUpError: as for ``check_wanted``.
        """
        if self._lock is not None:
            self._lock.acquire()
        try:
            self.check_wanted()
        except ScanGivenUpError:
            self.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._lock is not None:
            self._lock.release()

    def check_wanted(self) -> None:
        """Do nothing while rows are wanted.

        Raises:
            ScanGivenUpError: they are not any more.
        """
        if self._over:
            raise ScanGivenUpError

    def give_up(self) -> None:
        """End folds at their next block, and those that wait for their turn before they begin."""
        self._over = True
