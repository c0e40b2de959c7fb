"""Table locks: one writer at a time changes the timeline (Hudi ``LockManager``, ``LockProvider``).

The writers' options name the lock that they share. The table does not, so all writers need the same options. ``hold``
keeps and renews a lock while a block runs, and notices when it is lost:

    with held(lock) as holding:
        ...                      # look at the timeline, decide
        holding.ensure_held()    # last thing before the change
"""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from hoodie_py.errors import ConflictError, HoodieError, HoodieWarning, StorageError

WAIT_SECONDS = 60.0
RENEW_SECONDS = 30.0

_log = logging.getLogger(__name__)
_LONG_WAIT = 1.0  # seconds


class Lock(Protocol):
    """Keeps other writers away. Your own lock (ZooKeeper, DynamoDB, ...) needs these three methods.

    It may have an attribute ``renew_every``: seconds between renewals, or None if it needs none. The default is 30.

    Examples:
        >>> import threading
        >>> class OneProcess(Lock):
        ...     def __init__(self):
        ...         self._lock = threading.Lock()
        ...
        ...     def acquire(self, timeout):
        ...         if not self._lock.acquire(timeout=timeout):
        ...             raise ConflictError("Another thread writes.")
        ...
        ...     def renew(self):
        ...         pass
        ...
        ...     def release(self):
        ...         self._lock.release()
        >>> trips.upsert([{"id": "d", "city": "la", "price": 5.0, "ts": 1}], lock=OneProcess()).rows_inserted
        1
    """

    def acquire(self, timeout: float) -> None:
        """Take the lock. Raises ConflictError if others have it for all of ``timeout`` seconds."""
        ...

    def renew(self) -> None:
        """Check that the lock is still held, and extend it if it can expire.

        Raises ConflictError once it is lost, and StorageError if that is not known just now.
        """
        ...

    def release(self) -> None:
        """Release the lock. A lost lock is no error."""
        ...


class NoLock:
    """No lock, for tables that certainly have no other writer.

    Examples:
        >>> trips.delete(["a"], lock=NoLock()).rows_deleted
        1
    """

    renew_every: float | None = None

    def acquire(self, timeout: float) -> None:
        """Succeed."""

    def renew(self) -> None:
        """Succeed."""

    def release(self) -> None:
        """Do nothing."""


class HeldLock:
    """A lock while it is held; made by ``hold``."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._lost: ConflictError | None = None
        self._guard = threading.Lock()
        self._over = threading.Event()

    def ensure_held(self) -> None:
        """Check that this writer still has the lock. Call it right before each change of the timeline.

        Raises:
            ConflictError: it is lost, or that is not known. Nothing may be committed.
        """
        with self._guard:
            try:
                if self._lost is None:
                    self._lock.renew()
                    return
            except ConflictError as error:
                self._lost = error
            except StorageError as error:
                raise ConflictError("The table's lock could not be confirmed.", hint="Try again.") from error
        raise ConflictError("The table's lock was lost while it was needed.", hint="Try again.") from self._lost

    @contextmanager
    def _keep_renewing(self) -> Iterator[None]:
        every = getattr(self._lock, "renew_every", RENEW_SECONDS)
        if every is None:
            yield
            return
        thread = threading.Thread(target=self._renew_until_over, args=(every,), name="hoodie-lock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _renew_until_over(self, every: float) -> None:
        while not self._over.wait(every):
            with self._guard:
                try:
                    self._lock.renew()
                except ConflictError as error:
                    self._lost = error
                    return
                except StorageError:
                    continue  # the store may answer next time, and `ensure_held` renews before each change anyway


@contextmanager
def hold(
    lock: Lock, timeout: float = WAIT_SECONDS, waiting: AbstractContextManager[object] | None = None
) -> Iterator[HeldLock]:
    """Hold a lock while a block runs.

    ``timeout``: the seconds to wait for the lock. ``waiting`` is entered for the time of the wait.

    Raises:
        ConflictError: other writers had it all the time.
    """
    began = time.monotonic()
    with waiting or nullcontext():
        lock.acquire(timeout)
    if (waited := time.monotonic() - began) > _LONG_WAIT:
        _log.info("Waited %.1f s for the table's lock", waited)
    holding = HeldLock(lock)
    try:
        with holding._keep_renewing():  # noqa: SLF001 - its maker
            yield holding
    finally:
        try:
            lock.release()
        except HoodieError as error:
            # What the block did is done. An error here would hide how it ended.
            warnings.warn(f"The table's lock was not released: {error}", HoodieWarning, stacklevel=3)
