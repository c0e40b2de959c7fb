from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.writer.lock.choice import choose_lock, read_wait_seconds
from hoodie_py.writer.lock.file_system import FileSystemLock
from hoodie_py.writer.lock.lock import NoLock
from hoodie_py.writer.lock.machine import MachineLock
from hoodie_py.writer.lock.storage import StorageLock

PROVIDER = "hoodie.write.lock.provider"
PACKAGE = "org.apache.hudi.client.transaction.lock"


@pytest.fixture
def local(tmp_path: Path) -> TableFiles:
    return TableFiles.open(tmp_path / "table")


@pytest.fixture
def memory() -> TableFiles:
    return TableFiles.open("memory://lock-choice")


def test_single_writers_exclude_each_other_on_this_machine(local: TableFiles) -> None:
    assert isinstance(choose_lock({}, local), MachineLock)
    assert isinstance(choose_lock({"hoodie.write.concurrency.mode": "SINGLE_WRITER"}, local), MachineLock)
    assert isinstance(choose_lock({PROVIDER: f"{PACKAGE}.InProcessLockProvider"}, local), MachineLock)


def test_several_writers_need_a_provider(local: TableFiles) -> None:
    mode = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    with pytest.raises(InvalidQueryError, match=r"needs hoodie\.write\.lock\.provider"):
        choose_lock(mode, local)
    assert isinstance(choose_lock({**mode, PROVIDER: f"{PACKAGE}.FileSystemBasedLockProvider"}, local), FileSystemLock)


def test_hudis_no_lock(local: TableFiles) -> None:
    assert isinstance(choose_lock({PROVIDER: f"{PACKAGE}.NoopLockProvider"}, local), NoLock)


def test_a_lock_of_ones_own_goes_first(local: TableFiles) -> None:
    mine = NoLock()
    assert choose_lock({PROVIDER: "org.example.Anything"}, local, mine) is mine


@pytest.mark.parametrize("name", ["ZookeeperBasedLockProvider", "DynamoDBBasedLockProvider", ""])
def test_other_providers_are_refused(local: TableFiles, name: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"acquire\(timeout\)") as caught:
        choose_lock({PROVIDER: f"org.apache.hudi.x.{name}"}, local)
    assert name in str(caught.value)


def test_the_lock_file_is_where_java_has_it(local: TableFiles, tmp_path: Path) -> None:
    options = {PROVIDER: f"{PACKAGE}.FileSystemBasedLockProvider"}
    choose_lock(options, local).acquire(0)
    assert (tmp_path / "table" / ".hoodie" / "lock").is_file()
    for number, folder in enumerate((str(tmp_path / "a b"), (tmp_path / "c d").as_uri())):
        choose_lock({**options, "hoodie.write.lock.filesystem.path": folder}, local).acquire(0)
        assert (tmp_path / ("a b", "c d")[number] / "lock").is_file()
    for folder in ("relative/path", "s3://bucket/locks"):
        with pytest.raises(InvalidQueryError, match="absolute local path"):
            choose_lock({**options, "hoodie.write.lock.filesystem.path": folder}, local)


def test_expiry_of_the_lock_file(local: TableFiles) -> None:
    options = {PROVIDER: f"{PACKAGE}.FileSystemBasedLockProvider", "hoodie.write.lock.filesystem.expire": "3"}
    found = choose_lock(options, local)
    assert isinstance(found, FileSystemLock)
    assert found.renew_every == 60


def test_each_store_has_its_lock(local: TableFiles, memory: TableFiles) -> None:
    storage = {PROVIDER: f"{PACKAGE}.StorageBasedLockProvider", "hoodie.write.lock.storage.renew.interval.secs": "7"}
    with pytest.raises(UnsupportedFeatureError, match="no conditional writes"):
        choose_lock(storage, local)
    found = choose_lock(storage, memory)
    assert isinstance(found, StorageLock)
    assert found.renew_every == 7
    with pytest.raises(UnsupportedFeatureError, match="s3://, where Java cannot create"):
        choose_lock({PROVIDER: f"{PACKAGE}.FileSystemBasedLockProvider"}, TableFiles.open("s3://bucket/table"))


def test_waiting() -> None:
    assert read_wait_seconds({}) == 60
    assert read_wait_seconds({"hoodie.write.lock.wait_time_ms": "1500"}) == 1.5
    retries = {"hoodie.write.lock.wait_time_ms": "1000", "hoodie.write.lock.client.num_retries": "3"}
    assert read_wait_seconds(retries) == 1 + 3 * (5 + 1)
    assert read_wait_seconds({**retries, "hoodie.write.lock.client.wait_time_ms_between_retry": "500"}) == 5.5
    for text in ("soon", "-1", "nan", "inf"):
        with pytest.raises(InvalidQueryError, match="wait_time_ms"):
            read_wait_seconds({"hoodie.write.lock.wait_time_ms": text})
