"""Holding a lock: renewed while it is held, and known to be lost when it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from hoodie_py.errors import ConflictError, HoodieWarning, StorageError
from hoodie_py.writer.lock.lock import NoLock, hold


class ScriptedLock:
    """Does what it is told; counts what it was asked."""

    def __init__(self, renew_every: float | None = None) -> None:
        self.renew_every = renew_every
        self.calls: list[str] = []
        self.renewal: Callable[[], None] = lambda: None
        self.release_error: Exception | None = None
        self.renewed = threading.Event()

    def acquire(self, timeout: float) -> None:
        self.calls.append(f"acquire {timeout:g}")

    def renew(self) -> None:
        self.calls.append("renew")
        try:
            self.renewal()
        finally:
            self.renewed.set()

    def release(self) -> None:
        self.calls.append("release")
        if self.release_error is not None:
            raise self.release_error


def fail(error: Exception) -> Callable[[], None]:
    def renewal() -> None:
        raise error

    return renewal


def test_a_held_lock_is_confirmed_and_released() -> None:
    lock = ScriptedLock()
    with hold(lock, 5) as holding:
        holding.ensure_held()
    assert lock.calls == ["acquire 5", "renew", "release"]


def test_a_lock_is_released_when_the_block_fails() -> None:
    lock = ScriptedLock()
    with pytest.raises(KeyError), hold(lock):
        raise KeyError("x")
    assert lock.calls[-1] == "release"


def test_a_lock_is_renewed_in_the_background() -> None:
    lock = ScriptedLock(renew_every=0.005)
    with hold(lock):
        for _ in range(3):
            lock.renewed.clear()
            assert lock.renewed.wait(30)
    assert lock.calls.count("renew") >= 3
    count = lock.calls.count("renew")
    time.sleep(0.03)
    assert lock.calls.count("renew") == count


def test_a_lock_without_the_attribute_is_renewed_too() -> None:
    class Plain:
        def acquire(self, timeout: float) -> None: ...
        def renew(self) -> None: ...
        def release(self) -> None: ...

    with hold(Plain()) as holding:
        assert any(thread.name == "hoodie-lock" for thread in threading.enumerate())
        holding.ensure_held()
    assert not any(thread.name == "hoodie-lock" for thread in threading.enumerate())


def test_a_loss_in_the_background_is_remembered() -> None:
    lock = ScriptedLock(renew_every=0.005)
    lock.renewal = fail(ConflictError("taken over"))
    with hold(lock) as holding:
        assert lock.renewed.wait(30)
        lock.renewal = lambda: None
        while lock.calls.count("renew") < 1 or any(t.name == "hoodie-lock" for t in threading.enumerate()):
            time.sleep(0.001)
        with pytest.raises(ConflictError, match="lost while it was needed") as caught:
            holding.ensure_held()
    assert isinstance(caught.value.__cause__, ConflictError)
    assert lock.calls.count("renew") == 1  # not asked again: the lock may have been others' in between


def test_a_loss_that_is_found_when_it_matters() -> None:
    lock = ScriptedLock()
    lock.renewal = fail(ConflictError("taken over"))
    with hold(lock) as holding:
        for _ in range(2):
            with pytest.raises(ConflictError, match="lost"):
                holding.ensure_held()


def test_a_store_that_fails_now_and_then_is_asked_again() -> None:
    lock = ScriptedLock(renew_every=0.005)
    lock.renewal = fail(StorageError("busy"))
    with hold(lock) as holding:
        assert lock.renewed.wait(30)
        with pytest.raises(ConflictError, match="could not be confirmed"):
            holding.ensure_held()
        lock.renewal = lambda: None
        holding.ensure_held()


def test_a_lock_that_cannot_be_released_is_a_warning() -> None:
    lock = ScriptedLock()
    lock.release_error = StorageError("gone")
    with pytest.warns(HoodieWarning, match="not released: gone"), hold(lock):
        pass


def test_no_lock_is_always_held() -> None:
    with hold(NoLock()) as one, hold(NoLock()) as other:
        one.ensure_held()
        other.ensure_held()
