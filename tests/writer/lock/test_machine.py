from __future__ import annotations

import ctypes
import multiprocessing
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hoodie_py.errors import ConflictError, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.testing import LockTests
from hoodie_py.writer.lock import machine as machine_lock
from hoodie_py.writer.lock.lock import Lock, hold
from hoodie_py.writer.lock.machine import MachineLock
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
    signal.choose_pause()


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


# Processes that share neither user nor temporary folder ---------------------------------------------------------------


def outcome(files: TableFiles, timeout: float = 0) -> str:
    lock = MachineLock(files)
    try:
        lock.acquire(timeout)
    except ConflictError:
        return "kept out"
    lock.release()
    return "taken"


def in_another_process(work: Callable[[], str], before: Callable[[], object]) -> str:
    """Fork, change the surroundings, and return what the work answers."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            before()
            os.write(writer, work().encode())
        except BaseException as error:
            os.write(writer, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = answer.read().decode()
    os.waitpid(child, 0)
    return said


def another_temporary_folder(folder: Path) -> Callable[[], object]:
    def change() -> None:
        folder.mkdir(exist_ok=True)
        os.environ["TMPDIR"] = str(folder)
        vars(tempfile)["tempdir"] = None

    return change


def nobody() -> None:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def a_tmp_of_its_own() -> None:
    """As systemd's PrivateTmp and containers have it."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, recursively, private = 0x20000, 0x4000, 1 << 18
    if libc.unshare(new_mounts) or libc.mount(b"none", b"/", None, recursively | private, None):
        raise OSError(ctypes.get_errno(), "unshare")
    if libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None):
        raise OSError(ctypes.get_errno(), "mount")


as_root = pytest.mark.skipif(os.getuid() != 0, reason="NOT TESTED: only root can become another user")


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A table's folder that other users reach, outside /tmp where there is such a place."""
    parent = "/dev/shm" if Path("/dev/shm").is_dir() else "/tmp"
    folder = Path(tempfile.mkdtemp(dir=parent))
    (folder / "table/.hoodie").mkdir(parents=True)
    for each in (folder, folder / "table", folder / "table/.hoodie"):
        each.chmod(0o777)
    yield folder / "table"
    shutil.rmtree(folder)


def surroundings(name: str, scratch: Path) -> Callable[[], object]:
    return {"TMPDIR": another_temporary_folder(scratch), "user": nobody, "/tmp": a_tmp_of_its_own}[name]


CHANGES = ["TMPDIR", pytest.param("user", marks=as_root), pytest.param("/tmp", marks=as_root)]


@pytest.mark.parametrize("what", CHANGES)
def test_another_process_is_excluded_whatever_its(what: str, open_to_all: Path, tmp_path: Path) -> None:
    files = TableFiles.open(open_to_all)
    with hold(MachineLock(files), 0):
        before = surroundings(what, tmp_path / "elsewhere")
        said = in_another_process(lambda: outcome(files), before)
        if said.startswith("PermissionError"):
            pytest.skip(f"NOT TESTED: {said}")
        assert said == "kept out"
    assert in_another_process(lambda: outcome(files, 5), surroundings(what, tmp_path / "elsewhere")) == "taken"
    assert list((open_to_all / ".hoodie").iterdir()) == []


@as_root
def test_whoever_may_only_read_the_folder_may_lock_it(open_to_all: Path) -> None:
    (open_to_all / ".hoodie").chmod(0o755)
    files = TableFiles.open(open_to_all)
    assert in_another_process(lambda: outcome(files), nobody) == "taken"


def put_locks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the locks of tables elsewhere lie in a folder."""
    monkeypatch.setattr(machine_lock, "_PLACE", str(folder))


@pytest.mark.parametrize("what", CHANGES[:2])
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_of_a_table_elsewhere_too(
    what: str, umask: int, open_to_all: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_locks(open_to_all / "locks", monkeypatch)
    files = TableFiles.open("memory://machine-lock")
    kept = os.umask(umask)
    try:
        with hold(MachineLock(files), 0):
            assert in_another_process(lambda: outcome(files), surroundings(what, tmp_path / "elsewhere")) == "kept out"
        assert in_another_process(lambda: outcome(files), surroundings(what, tmp_path / "elsewhere")) == "taken"
        other = TableFiles.open("memory://machine-lock-2")
        assert in_another_process(lambda: outcome(other), surroundings(what, tmp_path / "elsewhere")) == "taken"
        assert outcome(other) == "taken"
    finally:
        os.umask(kept)


def test_a_place_that_is_no_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "locks").symlink_to(tmp_path / "elsewhere")
    put_locks(tmp_path / "locks", monkeypatch)
    with pytest.raises(StorageError, match="no folder"):
        MachineLock(TableFiles.open("memory://machine-lock")).acquire(0)


@pytest.mark.parametrize("store", ["disk", "memory"])
def test_a_lock_whose_table_was_removed_is_lost(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_locks(tmp_path / "locks", monkeypatch)
    (tmp_path / "table/.hoodie").mkdir(parents=True)
    files = TableFiles.open(tmp_path / "table" if store == "disk" else "memory://machine-lock")
    lock = MachineLock(files)
    lock.acquire(0)
    lock.renew()
    shutil.rmtree(tmp_path / ("table" if store == "disk" else "locks"))
    with pytest.raises(ConflictError, match="no longer there"):
        lock.renew()
    (tmp_path / "table/.hoodie").mkdir(parents=True, exist_ok=True)
    with hold(MachineLock(files), 0), pytest.raises(ConflictError, match="no longer there"):
        lock.renew()
    lock.release()


def test_one_table_by_many_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "table/.hoodie").mkdir(parents=True)
    (tmp_path / "link").symlink_to("table")
    monkeypatch.chdir(tmp_path)
    with hold(MachineLock(TableFiles.open(tmp_path / "table")), 0):
        for name in ("table", "./link", "table/../link/", str(tmp_path / "link"), (tmp_path / "table").as_uri()):
            assert outcome(TableFiles.open(name)) == "kept out", name


class TestConformance(LockTests):
    @pytest.fixture
    def make_lock(self, files: TableFiles) -> Callable[[], Lock]:
        return lambda: MachineLock(files)
