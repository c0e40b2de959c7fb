"""Tables on Google Cloud Storage and Azure, by their own clients, on servers of this machine."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from hoodie_py import ConflictError, HoodieError, HoodieTable, StorageError, StorageLock, TableFiles
from hoodie_py.testing import ConditionalStorageTests, StorageTests
from hoodie_storage import NotFoundError, PathError, Store, open_store
from integration import clouds
from integration.clouds import Cloud

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("fare", pa.float64())])
LOCKED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "50",
}
RACERS = 8


@pytest.fixture(scope="module", params=["gcs", "azure"])
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with clouds.for_tests(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server


class TestStores(StorageTests, ConditionalStorageTests):
    @pytest.fixture
    def store(self, cloud: Cloud) -> Store:
        return open_store(f"{cloud.uri}/{uuid4().hex}", cloud.storage_options)

    @pytest.mark.parametrize(
        "name", ["a b", "ä→😀", "p=1%2F2", "50%", "a+b&c", "x#y", "what?no", "[glob]*", "a:b", "a'b\"c"]
    )
    def test_odd_names(self, store: Store, name: str) -> None:
        super().test_odd_names(store, name)

    def test_names_that_the_client_changes_are_refused(self, store: Store) -> None:
        if store.uri.startswith("abfs"):
            for name in ("what?", "a?versionid=1"):
                with pytest.raises(PathError, match="path with"):
                    store.put(name, b"x")

    def test_a_missing_bucket(self, cloud: Cloud) -> None:
        store = open_store(f"{cloud.uri}-not-there/t", cloud.storage_options)
        for ask in (store.list, store.stat, store.read):
            with pytest.raises(NotFoundError):
                ask("x")


def rows(numbers: range, ts: int, fare: float) -> list[dict[str, Any]]:
    return [{"id": f"t{n}", "ts": ts, "city": ("sf", "la")[n % 2], "fare": fare} for n in numbers]


@pytest.mark.parametrize("table_type", ["MERGE_ON_READ", "COPY_ON_WRITE"])
def test_create_upsert_delete_services_read(cloud: Cloud, table_type: str) -> None:
    uri = f"{cloud.uri}/trips-{table_type}"
    trips = HoodieTable.create(
        uri,
        SCHEMA,
        record_key="id",
        ordering="ts",
        partition_by="city",
        table_type=table_type,
        storage_options=cloud.storage_options,
    )
    trips.upsert(rows(range(20), ts=1, fare=1.0), options=LOCKED)
    trips.upsert(rows(range(5), ts=2, fare=2.0) + rows(range(5, 8), ts=0, fare=9.0), options=LOCKED)
    trips.delete(["t19", "t18"], options=LOCKED)

    def fares(table: HoodieTable) -> list[float]:
        return sorted(table.scan(["fare"]).to_arrow()["fare"].to_pylist())

    expected = [1.0] * 13 + [2.0] * 5
    assert fares(trips) == expected
    if table_type == "MERGE_ON_READ":
        trips.compact(options=LOCKED)
    after = HoodieTable.open(uri, cloud.storage_options)
    assert [each.log_files for each in after.file_slices()] == [(), ()]
    assert fares(after) == expected
    after.upsert(rows(range(1), ts=0, fare=9.0), options=LOCKED)
    assert after.clean(retain_commits=1, options=LOCKED).files_deleted > 0
    assert fares(after.refresh()) == expected


def test_writers_of_two_processes_take_turns(cloud: Cloud) -> None:
    """All of them write the same rows: each write counts, since each waits for its turn or says that it lost."""
    uri = f"{cloud.uri}/raced"
    HoodieTable.create(uri, SCHEMA, record_key="id", ordering="ts", storage_options=cloud.storage_options)
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        done = pool.starmap(write_often, [(uri, cloud.storage_options, number) for number in range(2)])
    table = HoodieTable.open(uri, cloud.storage_options)
    kept = {row["id"]: row["fare"] for row in table.scan(["id", "fare"]).to_arrow().to_pylist()}
    assert kept == {name: fare for each in done for name, fare in each}
    assert len(table.timeline.select_completed()) == sum(len(each) for each in done)
    assert all(done)


def write_often(uri: str, options: dict[str, Any], writer: int) -> list[tuple[str, float]]:
    """Insert rows of one's own, and return those that were acknowledged."""
    table = HoodieTable.open(uri, options)
    done: list[tuple[str, float]] = []
    for number in range(4):
        row = {"id": f"{writer}-{number}", "ts": 1, "city": "sf", "fare": float(number)}
        try:
            table.refresh().upsert([row], options=LOCKED)
        except ConflictError:
            continue
        done.append((row["id"], row["fare"]))
    return done


def test_the_lock_excludes(cloud: Cloud) -> None:
    """No two holders at a time, and each of many gets it in turn."""
    files = TableFiles.open(f"{cloud.uri}/locked", cloud.storage_options)
    holders, most, taken = 0, 0, 0
    guard = threading.Lock()

    def hold() -> None:
        nonlocal holders, most, taken
        lock = StorageLock(files, pause=0.02)
        lock.acquire(60)
        with guard:
            holders, taken = holders + 1, taken + 1
            most = max(most, holders)
        lock.renew()
        with guard:
            holders -= 1
        lock.release()

    in_threads(hold)
    assert (most, taken) == (1, RACERS)
    with pytest.raises(ConflictError):
        StorageLock(files).renew()


def test_a_table_is_made_once(cloud: Cloud) -> None:
    done, refused = [], []

    def make() -> None:
        try:
            done.append(
                HoodieTable.create(f"{cloud.uri}/made", SCHEMA, record_key="id", storage_options=cloud.storage_options)
            )
        except ConflictError as error:
            refused.append(error)

    in_threads(make)
    assert (len(done), len(refused)) == (1, RACERS - 1)


def test_wrong_credentials_are_refused_without_telling_the_secret(cloud: Cloud) -> None:
    if cloud.name == "gcs":
        pytest.skip("the server takes any credentials")
    secret = "Y2FuYXJ5LW9mLWEtc2VjcmV0LWtleQ=="
    text = cloud.storage_options["connection_string"].replace(clouds.ACCOUNT_KEY, secret)
    with pytest.raises(StorageError, match="credentials") as caught:
        HoodieTable.open(f"{cloud.uri}/trips-MERGE_ON_READ", {"connection_string": text})
    told = ""
    error: BaseException | None = caught.value
    while error is not None:
        told, error = f"{told}{error}", error.__cause__ or error.__context__
    assert secret not in told
    assert text not in told


def in_threads(work: Callable[[], None]) -> None:
    """Run it many times at once; an error in any is one here."""
    problems: list[HoodieError | Exception] = []

    def guarded() -> None:
        try:
            work()
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(RACERS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert not problems, problems
