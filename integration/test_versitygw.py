"""A table on an S3 server that checks credentials and conditional writes, unlike the one in tests' own process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from hoodie_py import ConflictError, HoodieError, HoodieTable, StorageError, StorageLock, TableFiles
from integration import versitygw
from integration.versitygw import Gateway

pytestmark = pytest.mark.s3

SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("city", pa.string()), ("fare", pa.float64())])
LOCKED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider",
}
RACERS = 8


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with versitygw.for_tests(tmp_path_factory.mktemp("gateway")) as server:
        yield server


@pytest.fixture
def files(gateway: Gateway, request: pytest.FixtureRequest) -> TableFiles:
    return TableFiles.open(f"{gateway.uri}/{request.node.name}", gateway.storage_options)


def rows(numbers: range, ts: int, fare: float) -> list[dict[str, Any]]:
    return [{"id": f"t{n}", "ts": ts, "city": ("sf", "la")[n % 2], "fare": fare} for n in numbers]


def test_create_upsert_delete_compact_clean_read(gateway: Gateway) -> None:
    uri = f"{gateway.uri}/trips"
    trips = HoodieTable.create(
        uri, SCHEMA, record_key="id", ordering="ts", partition_by="city", storage_options=gateway.storage_options
    )
    trips.upsert(rows(range(20), ts=1, fare=1.0), options=LOCKED)
    trips.upsert(rows(range(5), ts=2, fare=2.0) + rows(range(5, 8), ts=0, fare=9.0), options=LOCKED)
    trips.delete(["t19", "t18"], options=LOCKED)

    def fares(table: HoodieTable) -> list[float]:
        return sorted(table.scan(["fare"]).to_arrow()["fare"].to_pylist())

    expected = [1.0] * 13 + [2.0] * 5
    assert fares(trips) == expected
    trips.compact(options=LOCKED)
    after = HoodieTable.open(uri, gateway.storage_options)
    assert [each.log_files for each in after.file_slices()] == [(), ()]
    assert fares(after) == expected
    after.upsert(rows(range(1), ts=0, fare=9.0), options=LOCKED)  # a query as of the commit before it reads no old file
    assert after.clean(retain_commits=1, options=LOCKED).files_deleted > 0
    assert fares(after.refresh()) == expected


@pytest.mark.parametrize("wrong", [{"secret": "canary-of-a-secret"}, {"key": "nobody", "secret": "canary-of-a-secret"}])
@pytest.mark.parametrize("act", ["open", "create"])
def test_wrong_credentials_are_refused_without_telling_the_secret(
    gateway: Gateway, wrong: dict[str, str], act: str
) -> None:
    options = {**gateway.storage_options, **wrong}
    does: Callable[[], object] = {
        "open": lambda: HoodieTable.open(f"{gateway.uri}/trips", options),
        "create": lambda: HoodieTable.create(f"{gateway.uri}/new", SCHEMA, record_key="id", storage_options=options),
    }[act]
    with pytest.raises(StorageError) as caught:
        does()
    told = "".join(str(each) for each in chain(caught.value))
    assert "canary" not in told
    assert gateway.secret not in told
    assert "credentials" in str(caught.value)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def test_a_table_is_made_once(gateway: Gateway) -> None:
    """Of writers that make it at the same time one succeeds."""
    done, refused = [], []

    def make() -> None:
        try:
            done.append(
                HoodieTable.create(
                    f"{gateway.uri}/raced", SCHEMA, record_key="id", storage_options=gateway.storage_options
                )
            )
        except ConflictError as error:
            refused.append(error)

    in_threads(make)
    assert (len(done), len(refused)) == (1, RACERS - 1)


def test_put_if_absent_holds(files: TableFiles) -> None:
    won: list[bytes] = []
    lost: list[HoodieError] = []
    numbers = iter(range(RACERS))

    def put() -> None:
        data = b"writer %d" % next(numbers)
        try:
            files.put_if_absent("instant", data)
            won.append(data)
        except ConflictError as error:
            lost.append(error)

    in_threads(put)
    assert (len(won), len(lost)) == (1, RACERS - 1)
    assert files.read("instant") == won[0]


def test_put_if_match_holds(files: TableFiles) -> None:
    files.put_if_absent("object", b"first")
    _, old = files.read_with_etag("object")
    files.put_if_match("object", b"second", old)
    with pytest.raises(ConflictError):
        files.put_if_match("object", b"third", old)
    assert files.read("object") == b"second"


def test_the_lock_excludes(files: TableFiles) -> None:
    """No two holders at a time, and each of many gets it in turn."""
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


def in_threads(work: Callable[[], None]) -> None:
    """Run it many times at once; an error in any is one here."""
    problems: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(RACERS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert not problems, problems
