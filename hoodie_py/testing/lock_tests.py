"""LockTests: a conformance suite for users' own table locks, run by pytest.

    from hoodie_py.testing import LockTests

    class TestMyLock(LockTests):
        @pytest.fixture
        def make_lock(self):
            table = uuid4().hex
            return lambda: MyLock(table)

The rules are those of the protocol ``hoodie_py.Lock``: at most one writer has the lock, ``renew`` raises for a writer
that lost the lock, and a release without the lock has no effect on other writers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from hoodie_py.errors import ConflictError
from hoodie_py.writer.lock.lock import Lock, hold

_WORKERS, _ROUNDS = 4, 3


class LockTests:
    """Subclass it and define the fixture ``make_lock``; pytest runs the tests.

    ``make_lock`` returns a function. Each call makes the lock of one more writer of the same table. Each test gets
    another table.

    Class attributes:
        patience: seconds that a test waits for a lock that becomes free.
        short: seconds that a test waits for a lock that does not become free.

    Examples:
        >>> import pytest
        >>> class TestMyLock(LockTests):
        ...     @pytest.fixture
        ...     def make_lock(self):
        ...         return lambda: MachineLock(trips.files)  # each call makes the lock of one more writer
    """

    patience: ClassVar[float] = 30.0
    short: ClassVar[float] = 0.3

    def test_one_writer_has_the_lock(self, make_lock: Callable[[], Lock]) -> None:
        """The second writer gets a ConflictError until the first one releases the lock."""
        one, other = make_lock(), make_lock()
        one.acquire(self.patience)
        with pytest.raises(ConflictError):
            other.acquire(self.short)
        one.renew()
        one.release()
        other.acquire(self.patience)
        other.renew()
        with pytest.raises(ConflictError):
            one.acquire(self.short)
        other.release()

    def test_a_writer_can_take_the_lock_again(self, make_lock: Callable[[], Lock]) -> None:
        """A lock is usable more than once."""
        lock = make_lock()
        for _ in range(3):
            lock.acquire(self.patience)
            lock.renew()
            lock.release()

    def test_acquire_waits_for_the_release(self, make_lock: Callable[[], Lock]) -> None:
        """A writer that waits gets the lock soon after the release."""
        one, other = make_lock(), make_lock()
        one.acquire(self.patience)
        releasing = threading.Event()

        def release() -> None:
            releasing.set()  # before the release: the other writer may have the lock before this thread goes on
            one.release()

        timer = threading.Timer(self.short, release)
        timer.start()
        try:
            other.acquire(self.patience)
            assert releasing.is_set(), "both writers had the lock"
        finally:
            timer.join()
        other.release()

    def test_a_writer_without_the_lock_cannot_renew(self, make_lock: Callable[[], Lock]) -> None:
        """After a release ``renew`` raises ConflictError, also while another writer has the lock."""
        one, other = make_lock(), make_lock()
        one.acquire(self.patience)
        one.release()
        with pytest.raises(ConflictError):
            one.renew()
        other.acquire(self.patience)
        with pytest.raises(ConflictError):
            one.renew()
        other.renew()
        other.release()

    def test_a_release_without_the_lock_harms_nobody(self, make_lock: Callable[[], Lock]) -> None:
        """Neither a second release nor one by another writer takes the lock from the writer that has it."""
        one, other = make_lock(), make_lock()
        one.acquire(self.patience)
        one.release()
        other.acquire(self.patience)
        one.release()
        other.renew()
        with pytest.raises(ConflictError):
            one.acquire(self.short)
        other.release()

    def test_the_renewal_interval_is_a_time_or_none(self, make_lock: Callable[[], Lock]) -> None:
        """``renew_every`` is a positive number of seconds, None, or not there."""
        every = getattr(make_lock(), "renew_every", None)
        assert every is None or every > 0

    def test_writers_take_turns(self, make_lock: Callable[[], Lock]) -> None:
        """Threads that add to a counter under the lock lose no addition."""
        counter = [0]

        def add() -> None:
            for _ in range(_ROUNDS):
                with hold(make_lock(), self.patience) as holding:
                    value = counter[0]
                    time.sleep(0.002)  # lets other threads run between reading and writing
                    holding.ensure_held()
                    counter[0] = value + 1

        with ThreadPoolExecutor(_WORKERS) as pool:
            for done in [pool.submit(add) for _ in range(_WORKERS)]:
                done.result()
        assert counter[0] == _WORKERS * _ROUNDS
