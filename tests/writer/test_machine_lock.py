from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hoodie_py.errors import ConflictError, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.writer.machine_lock import MachineLock
from tests.writer.lock_races import race_processes, race_threads


@pytest.fixture
def files(tmp_path: Path) -> TableFiles:
    (tmp_path / "table").mkdir()
    return TableFiles.open(tmp_path / "table")


def test_excludes_whoever_wants_the_same_table(files: TableFiles, tmp_path: Path) -> None:
    first, second = MachineLock(files), MachineLock(files)
    first.acquire(1)
    first.renew()
    with pytest.raises(ConflictError, match="this machine"):
        second.acquire(0.05)
    with pytest.raises(ConflictError, match="not held"):
        second.renew()
    (tmp_path / "link").symlink_to(tmp_path / "table")
    with pytest.raises(ConflictError):
        MachineLock(TableFiles.open(tmp_path / "link")).acquire(0)
    other = MachineLock(TableFiles.open(tmp_path / "other"))
    other.acquire(0)
    other.release()
    first.release()
    second.acquire(0)
    second.release()
    second.release()
    assert list((tmp_path / "table").iterdir()) == []


def test_threads_take_turns(files: TableFiles, tmp_path: Path) -> None:
    assert race_threads(partial(MachineLock, files), tmp_path / "counter") == 20


@pytest.mark.slow
def test_processes_take_turns(files: TableFiles, tmp_path: Path) -> None:
    assert race_processes(partial(MachineLock, files), tmp_path / "counter") == 15


def hold_for_good(files: TableFiles, ready: Any) -> None:
    MachineLock(files).acquire(1)
    ready.set()
    signal.pause()


@pytest.mark.slow
def test_a_killed_process_leaves_nothing_locked(files: TableFiles) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=hold_for_good, args=(files, ready))
    process.start()
    assert ready.wait(60)
    lock = MachineLock(files)
    with pytest.raises(ConflictError):
        lock.acquire(0)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    lock.acquire(10)
    lock.release()


def test_a_folder_of_somebody_else_is_not_used(
    files: TableFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"hoodie_py-locks-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="another user"):
        MachineLock(files).acquire(0)
