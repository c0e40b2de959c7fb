from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from hoodie_py.errors import ConflictError, CorruptFileError, InvalidQueryError, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.testing import LocalS3, LockTests, local_s3
from hoodie_py.writer.lock.lock import Lock, hold
from hoodie_py.writer.lock.storage import LOCK_OBJECT, LockState, StorageLock
from tests.storage.faults import faulty
from tests.writer.lock_races import race_processes, race_threads


@pytest.fixture
def files() -> TableFiles:
    return TableFiles.open(f"memory://{uuid4().hex}")


class Clock:
    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


def lock_of(files: TableFiles, clock: Clock | None = None) -> StorageLock:
    return StorageLock(files, pause=0.005, now=clock or Clock())


def state(files: TableFiles) -> LockState:
    return LockState.from_bytes(files.read(LOCK_OBJECT))


def test_one_has_the_lock(files: TableFiles) -> None:
    one, other = lock_of(files), lock_of(files)
    before = time.time()
    with hold(one, 1) as holding:
        found = json.loads(files.read(LOCK_OBJECT))
        assert list(found) == ["expired", "validUntil", "owner"]
        assert found["expired"] is False
        assert before - 0.01 < found["validUntil"] / 1000 - 300 < time.time() + 0.01
        with pytest.raises(ConflictError, match="has the table's lock"):
            other.acquire(0.02)
        holding.ensure_held()
        until = state(files).valid_until
    assert state(files) == LockState(expired=True, valid_until=until, owner=found["owner"])
    with hold(other, 0):
        assert state(files).owner != found["owner"]
    with hold(one, 0):
        assert state(files).owner == found["owner"]


def test_a_lock_of_java_is_respected_until_it_is_over(files: TableFiles) -> None:
    until = round((time.time() + 300) * 1000)
    files.put(LOCK_OBJECT, json.dumps({"expired": False, "validUntil": until, "owner": "java", "x": 1}).encode())
    clock = Clock()
    lock = lock_of(files, clock)
    with pytest.raises(ConflictError):
        lock.acquire(0)
    clock.ahead = 300.2  # half a second is allowed for clocks that differ
    with pytest.raises(ConflictError):
        lock.acquire(0)
    clock.ahead = 300.9
    lock.acquire(0)
    assert state(files).owner != "java"


def test_a_lock_that_is_taken_over_is_lost(files: TableFiles) -> None:
    clock = Clock()
    one, other = lock_of(files), lock_of(files, clock)
    one.acquire(0)
    clock.ahead = 400
    other.acquire(0)
    with pytest.raises(ConflictError, match="another version"):
        one.renew()
    with pytest.raises(ConflictError, match="not held"):
        one.renew()
    one.release()
    assert not state(files).expired
    other.renew()


def test_a_lock_that_is_late_but_nobody_took_can_be_renewed(files: TableFiles) -> None:
    clock = Clock()
    lock = lock_of(files, clock)
    lock.acquire(0)
    clock.ahead = 400
    lock.renew()
    assert state(files).valid_until / 1000 > time.time() + 600


def test_a_removed_object_is_a_lost_lock(files: TableFiles) -> None:
    lock = lock_of(files)
    lock.acquire(0)
    files.delete(LOCK_OBJECT)
    with pytest.raises(ConflictError):
        lock.renew()
    lock.release()
    assert not files.exists(LOCK_OBJECT)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"expired": 0, "validUntil": 1, "owner": "x"}', b'{"expired": true}', b"[" * 50_000,
     b'{"expired": true, "validUntil": true, "owner": "x"}', b'{"expired": true, "validUntil": 1, "owner": null}'],
    ids=range(9),
)  # fmt: skip
def test_an_object_that_cannot_be_read_is_no_free_lock(files: TableFiles, content: bytes) -> None:
    files.put(LOCK_OBJECT, content)
    with pytest.raises(CorruptFileError, match="who has the lock"):
        lock_of(files).acquire(0)
    assert files.read(LOCK_OBJECT) == content


def test_a_lock_that_was_just_written_is_only_looked_at(files: TableFiles) -> None:
    """Stores slow down who replaces an object more than once a second."""
    clock = Clock()
    lock = lock_of(files, clock)
    lock.acquire(0)
    taken = files.read(LOCK_OBJECT)
    clock.ahead += 14
    lock.renew()
    assert files.read(LOCK_OBJECT) == taken
    clock.ahead += 2
    lock.renew()
    assert state(files).valid_until >= json.loads(taken)["validUntil"] + 15_900
    files.delete(LOCK_OBJECT)
    with pytest.raises(ConflictError, match="took it over"):
        lock.renew()
    with pytest.raises(ConflictError, match="not held"):
        lock.renew()


LOST = (TimeoutError(), ConnectionResetError("reset"))


def shaky(files: TableFiles, clock: Clock | None = None) -> tuple[StorageLock, object]:
    store, backend = faulty(files._store)
    return lock_of(TableFiles(store), clock), backend


@pytest.mark.parametrize("problem", LOST, ids=repr)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_lost_answers_while_acquiring(files: TableFiles, problem: Exception, moment: str) -> None:
    for occupied in (False, True):
        if occupied:
            files.put(LOCK_OBJECT, LockState(expired=True, valid_until=0, owner="x").to_bytes())
        lock, backend = shaky(files)
        verbs = ("create", "replace")
        fail_once(backend, verbs, moment, problem)
        lock.acquire(5)
        lock.renew()
        assert state(files).owner == lock._owner
        lock.release()
        assert state(files).expired


@pytest.mark.parametrize("problem", LOST, ids=repr)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_lost_answers_while_renewing(files: TableFiles, problem: Exception, moment: str) -> None:
    clock = Clock()
    lock, backend = shaky(files, clock)
    lock.acquire(0)
    clock.ahead += 20  # a lock that was just written is only looked at
    fail_once(backend, ("replace",), moment, problem)
    if moment == "before":
        with pytest.raises(StorageError, match="did not say whether the lock was renewed"):
            lock.renew()
    else:
        lock.renew()
    lock.renew()
    lock.release()
    assert state(files).expired


def test_a_renewal_that_arrives_late_is_recognised(files: TableFiles) -> None:
    """The store took it although it had said nothing, after the lock looked: the mark is new, the owner is not."""
    lock = lock_of(files)
    lock.acquire(0)
    files.put(LOCK_OBJECT, lock._make_state().to_bytes())
    lock.renew()
    files.put(LOCK_OBJECT, lock._make_state().to_bytes())
    lock.release()
    assert state(files).expired


def fail_once(backend: object, verbs: tuple[str, ...], moment: str, problem: Exception) -> None:
    """Let the next call of one of these verbs fail, before or after it took effect."""
    inner = backend._inner  # type: ignore[attr-defined]

    class Once:
        def __getattr__(self, name: str) -> object:
            call = getattr(inner, name)
            if name not in verbs:
                return call

            def failing(*args: object) -> object:
                backend._inner = inner  # type: ignore[attr-defined]
                if moment == "after":
                    call(*args)
                raise problem

            return failing

    backend._inner = Once()  # type: ignore[attr-defined]


def test_settings_must_fit(files: TableFiles) -> None:
    for validity, every in ((100, 30), (300, 0), (0, 0)):
        with pytest.raises(InvalidQueryError, match="10 times"):
            StorageLock(files, validity=validity, renew_every=every)


def test_local_disks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="file:// cannot replace a file only while it is unchanged"):
        lock_of(TableFiles.open(tmp_path)).acquire(0)


def test_threads_take_turns(files: TableFiles, tmp_path: Path) -> None:
    assert race_threads(partial(lock_of, files), tmp_path / "counter") == 20


@pytest.fixture(scope="module")
def server() -> Iterator[LocalS3]:
    with local_s3("locks") as running:
        yield running


@pytest.mark.s3
class TestOnS3:
    @pytest.fixture
    def files(self, server: LocalS3) -> TableFiles:
        return TableFiles.open(f"{server.uri}/{uuid4().hex}", server.storage_options)

    def test_one_has_the_lock(self, files: TableFiles) -> None:
        test_one_has_the_lock(files)

    def test_a_lock_that_is_taken_over_is_lost(self, files: TableFiles) -> None:
        test_a_lock_that_is_taken_over_is_lost(files)

    def test_a_renewal_that_arrives_late_is_recognised(self, files: TableFiles) -> None:
        test_a_renewal_that_arrives_late_is_recognised(files)

    def test_threads_take_turns(self, files: TableFiles, tmp_path: Path) -> None:
        assert race_threads(partial(lock_of, files), tmp_path / "counter") == 20

    @pytest.mark.slow
    def test_processes_take_turns(self, files: TableFiles, tmp_path: Path) -> None:
        assert race_processes(partial(lock_of, files), tmp_path / "counter") == 15


class TestConformance(LockTests):
    @pytest.fixture
    def make_lock(self, files: TableFiles) -> Callable[[], Lock]:
        return lambda: lock_of(files)
