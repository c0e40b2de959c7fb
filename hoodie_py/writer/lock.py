"""Table locks: one writer at a time changes the timeline (Hudi ``LockManager``, ``LockProvider``).

Which lock a table's writers share is said by their options, not by the table, so a writer here must be given what the
others are given. ``hold`` keeps a lock while a block runs, renews it meanwhile, and knows when it was lost:

    with held(lock) as holding:
        ...                      # look at the timeline, decide
        holding.ensure_held()    # last thing before the change
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from hoodie_py.errors import ConflictError, HoodieError, HoodieWarning, StorageError

WAIT_SECONDS = 60.0
RENEW_SECONDS = 30.0


class Lock(Protocol):
    """What keeps other writers away. Locks of your own (ZooKeeper, DynamoDB, ...) need these three methods.

    A lock may have an attribute ``renew_every``: seconds between renewals, None where it needs none; 30 without it.
    """

    def acquire(self, timeout: float) -> None:
        """Take the lock. Raises ConflictError if others have it for all of ``timeout`` seconds."""
        ...

    def renew(self) -> None:
        """Make sure that the lock still is one's own, and extend it where it can expire.

        Raises ConflictError once it is lost, and StorageError where that cannot be told just now.
        """
        ...

    def release(self) -> None:
        """Give the lock back; one that is lost already is nobody's concern."""
        ...


class NoLock:
    """No lock at all, for tables that certainly have no other writer."""

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
        """Ask whether the lock still is this writer's; a change of the timeline comes right after.

        Raises:
            ConflictError: it is lost, or nobody could say. Nothing may be committed.
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
                    continue  # the store may answer next time; `ensure_held` asks it in any case


@contextmanager
def hold(lock: Lock, timeout: float = WAIT_SECONDS) -> Iterator[HeldLock]:
    """Hold a lock for a block.

    Args:
        lock: which.
        timeout: how many seconds to wait for it.

    Raises:
        ConflictError: others had it all the time.
    """
    lock.acquire(timeout)
    holding = HeldLock(lock)
    try:
        with holding._keep_renewing():  # noqa: SLF001 - its maker
            yield holding
    finally:
        try:
            lock.release()
        except HoodieError as error:
            # What the block did is done; to raise here would hide how it ended.
            warnings.warn(f"The table's lock was not released: {error}", HoodieWarning, stacklevel=3)
