from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hoodie_py.errors import ConflictError
from hoodie_py.files import TableFiles
from hoodie_py.testing import LockTests
from hoodie_py.writer.lock.file_system import LOCK_FILE, FileSystemLock
from hoodie_py.writer.lock.lock import Lock, hold
from tests.writer.lock_races import race_processes, race_threads


@pytest.fixture
def files(tmp_path: Path) -> TableFiles:
    return TableFiles.open(tmp_path / "table")


def lock_of(files: TableFiles, **settings: float) -> FileSystemLock:
    return FileSystemLock(files, pause=0.005, **settings)  # type: ignore[arg-type]


def age(files: TableFiles, seconds: float) -> None:
    path = files.local_path(LOCK_FILE)
    assert path is not None
    os.utime(path, (time.time() - seconds,) * 2)


def test_the_file_is_the_lock(files: TableFiles) -> None:
    lock = lock_of(files)
    with hold(lock, 1) as holding:
        assert json.loads(files.read(LOCK_FILE))["pid"] == os.getpid()
        with pytest.raises(ConflictError, match="has the table's lock"):
            lock_of(files).acquire(0.02)
        holding.ensure_held()
    assert not files.exists(LOCK_FILE)


def test_a_file_that_java_made_is_respected(files: TableFiles) -> None:
    files.put(LOCK_FILE, b"")
    with pytest.raises(ConflictError):
        lock_of(files).acquire(0.02)
    age(files, 10**7)
    with pytest.raises(ConflictError):
        lock_of(files).acquire(0)  # locks never expire unless the writers say so
    assert files.read(LOCK_FILE) == b""


def test_a_file_that_is_left_over_is_removed(files: TableFiles) -> None:
    files.put(LOCK_FILE, b"")
    files.put(".hoodie/.lock.crc", b"of Hadoop")
    age(files, 59)
    with pytest.raises(ConflictError):
        lock_of(files, expire_minutes=1).acquire(0)
    age(files, 61)
    lock = lock_of(files, expire_minutes=1)
    lock.acquire(0)
    lock.renew()
    assert not files.exists(".hoodie/.lock.crc")
    lock.release()
    assert not files.exists(LOCK_FILE)


def test_a_lock_that_others_took_over_is_lost(files: TableFiles) -> None:
    lock = lock_of(files)
    lock.acquire(0)
    files.put(LOCK_FILE, b"another's")
    with pytest.raises(ConflictError, match="no longer"):
        lock.renew()
    lock.release()
    assert files.read(LOCK_FILE) == b"another's"
    lock = lock_of(files, expire_minutes=0)
    files.delete(LOCK_FILE)
    lock.acquire(0)
    files.delete(LOCK_FILE)
    with pytest.raises(ConflictError):
        lock.renew()


def test_renewing_keeps_a_lock_young(files: TableFiles) -> None:
    lock = lock_of(files, expire_minutes=1)
    lock.acquire(0)
    age(files, 50)
    lock.renew()
    modified = files.stat(LOCK_FILE).modified
    assert modified is not None
    assert modified / 1000 > time.time() - 30
    assert lock.renew_every == 20
    assert lock_of(files).renew_every is None


def test_a_lock_that_was_not_renewed_in_time_is_lost(files: TableFiles) -> None:
    clock = time.time()
    lock = FileSystemLock(files, expire_minutes=1, now=lambda: clock)
    lock.acquire(0)
    clock += 61
    with pytest.raises(ConflictError):
        lock.renew()
    lock.release()
    assert files.exists(LOCK_FILE)  # it may be somebody else's in the moment it is removed


def test_threads_take_turns(files: TableFiles, tmp_path: Path) -> None:
    assert race_threads(partial(lock_of, files), tmp_path / "counter") == 20


@pytest.mark.slow
def test_processes_take_turns(files: TableFiles, tmp_path: Path) -> None:
    assert race_processes(partial(lock_of, files), tmp_path / "counter") == 15


def test_one_of_many_removes_a_file_that_is_left_over(files: TableFiles, tmp_path: Path) -> None:
    files.put(LOCK_FILE, b"")
    age(files, 100)
    assert race_threads(partial(lock_of, files, expire_minutes=1), tmp_path / "counter", rounds=2) == 8


class TestConformance(LockTests):
    @pytest.fixture
    def make_lock(self, files: TableFiles) -> Callable[[], Lock]:
        return lambda: FileSystemLock(files, pause=0.005)
