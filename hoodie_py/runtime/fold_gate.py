"""FoldGate: lets the threads of a scan merge their logs one at a time, until the scan is abandoned.

A fold consists of many small NumPy steps, and so does choosing base rows before they are read. Two threads that fold at
once wait for Python's global lock at each step, and take longer than one after the other. Without a global lock no
thread waits.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext


class ScanGivenUpError(Exception):
    """The rows of a scan are no longer wanted. Not a ``HoodieError``: it never leaves the threads that read slices."""

    is_failure = False


class FoldGate:
    """The gate of one scan; it stays in its process.

    ``alone``: one thread at a time may fold, if Python has a global lock.
    """

    def __init__(self, *, alone: bool = False) -> None:
        has_lock = getattr(sys, "_is_gil_enabled", None)  # from 3.13 on
        is_needed = alone and (has_lock is None or has_lock())
        self._lock: AbstractContextManager[object] = threading.RLock() if is_needed else nullcontext()
        self._given_up = False

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Wait until this thread may fold, and let the next one fold afterwards; a thread may enter again inside.

        Raises ScanGivenUpError, as for ``check_wanted``.
        """
        with self._lock:
            self.check_wanted()
            yield

    def check_wanted(self) -> None:
        """Check that rows are still wanted; a fold calls this at each step. Raises ScanGivenUpError if they are not."""
        if self._given_up:
            raise ScanGivenUpError

    def give_up(self) -> None:
        """End running folds at their next step, and waiting folds before their first."""
        self._given_up = True
