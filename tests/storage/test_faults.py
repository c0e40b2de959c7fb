"""What happens when a store fails: which calls are made again, and what is said about the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from hoodie_py.testing import local_s3
from hoodie_storage import (
    AccessDeniedError,
    AlreadyExistsError,
    NotFoundError,
    ShortReadError,
    StorageFault,
    Store,
    TimeoutFault,
    UnknownOutcomeError,
    open_store,
)
from tests.storage.faults import Proxy, faulty, proxy


class Answer(OSError):
    """An exception as s3fs raises it: the HTTP status is in its cause."""

    def __init__(self, status: int, text: str = "said the store", code: str = "Odd") -> None:
        super().__init__(5, text)
        cause = Exception(text)
        cause.response = {  # type: ignore[attr-defined]
            "ResponseMetadata": {"HTTPStatusCode": status}, "Error": {"Code": code}
        }  # fmt: skip
        self.__cause__ = cause


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = open_store(tmp_path)
    made.put("a", b"0123456789")
    return made


PASSING = [TimeoutError(), ConnectionResetError("reset"), Answer(503), Answer(500), Answer(429)]
LASTING = [
    (PermissionError(13, "no"), AccessDeniedError),
    (Answer(403), AccessDeniedError),
    (Answer(404), NotFoundError),
    (Answer(404, code="XAdminUserNotFound"), AccessDeniedError),
    (Answer(400), StorageFault),
    (OSError(28, "No space left"), StorageFault),
    (ValueError("odd"), StorageFault),
]


READS: dict[str, Callable[[Store], object]] = {
    "read": lambda store: store.read("a"),
    "view": lambda store: bytes(store.read_view("a", lambda size: memoryview(bytearray(size)))),
    "range": lambda store: store.read_range("a", 2, 4),
    "list": lambda store: store.list(""),
    "stat": lambda store: store.stat("a"),
}


@pytest.mark.parametrize("ask", READS.values(), ids=READS.keys())
@pytest.mark.parametrize("problem", PASSING, ids=repr)
def test_reads_are_tried_again(store: Store, problem: Exception, ask: Callable[[Store], object]) -> None:
    shaky, backend = faulty(store, before=[problem, problem])
    assert ask(shaky) == ask(store)
    assert len(backend.calls) == 3


@pytest.mark.parametrize("problem", PASSING, ids=repr)
def test_reads_are_given_up(store: Store, problem: Exception) -> None:
    shaky, backend = faulty(store, before=[problem] * 20)
    with pytest.raises(StorageFault, match="read") as caught:
        shaky.read("a")
    assert len(backend.calls) == 4
    assert caught.value.__cause__ is problem


@pytest.mark.parametrize(("problem", "kind"), LASTING, ids=repr)
def test_what_will_not_pass_is_not_tried_again(store: Store, problem: Exception, kind: type[StorageFault]) -> None:
    shaky, backend = faulty(store, before=[problem] * 2)
    with pytest.raises(kind) as caught:
        shaky.read("a")
    assert type(caught.value) is kind
    assert len(backend.calls) == 1


@pytest.mark.parametrize("write", ["put", "delete"])
@pytest.mark.parametrize(
    ("problem", "calls"),
    [(TimeoutError(), 1), (Answer(500), 1), (Answer(503), 3), (ConnectionRefusedError(), 3)],
    ids=repr,
)
def test_writes_are_tried_again_only_if_nothing_happened(
    store: Store, write: str, problem: Exception, calls: int
) -> None:
    shaky, backend = faulty(store, before=[problem] * 2)
    arguments = (b"new",) if write == "put" else ()
    if calls == 1:
        with pytest.raises(StorageFault):
            getattr(shaky, write)("a", *arguments)
    else:
        getattr(shaky, write)("a", *arguments)
    assert len(backend.calls) == calls


class TestLostAnswers:
    """put_if_absent: won, lost, or not known - never a guess."""

    LOST = (TimeoutError(), ConnectionResetError("reset"), Answer(500))

    @pytest.mark.parametrize("problem", LOST, ids=repr)
    def test_written_but_the_answer_got_lost(self, store: Store, problem: Exception) -> None:
        shaky, backend = faulty(store, after=[problem])
        shaky.put_if_absent("b", b"token of mine", unique=True)
        assert backend.calls.count("create") == 1
        shaky, backend = faulty(store, after=[problem])
        with pytest.raises(AlreadyExistsError) as caught:
            shaky.put_if_absent("c", b"what anybody may write")
        assert caught.value.identical is True

    @pytest.mark.parametrize("problem", LOST, ids=repr)
    def test_not_there_afterwards_is_not_known(self, store: Store, problem: Exception) -> None:
        """The request may still be under way and land later."""
        shaky, backend = faulty(store, before=[problem])
        with pytest.raises(UnknownOutcomeError, match="did not say") as caught:
            shaky.put_if_absent("b", b"x", unique=True)
        assert backend.calls.count("create") == 1
        assert not isinstance(caught.value, OSError)

    def test_somebody_else_was_there(self, store: Store) -> None:
        shaky, _ = faulty(store, before=[TimeoutError()])
        with pytest.raises(AlreadyExistsError) as caught:
            shaky.put_if_absent("a", b"x", unique=True)
        assert caught.value.identical is False

    def test_reading_back_fails_too(self, store: Store) -> None:
        shaky, _ = faulty(store, before=[TimeoutError(), *[PermissionError(13, "no")] * 9])
        with pytest.raises(UnknownOutcomeError):
            shaky.put_if_absent("b", b"x", unique=True)

    @pytest.mark.parametrize(("problem", "kind"), LASTING, ids=repr)
    def test_a_clear_no_is_no(self, store: Store, problem: Exception, kind: type[StorageFault]) -> None:
        shaky, backend = faulty(store, before=[problem])
        with pytest.raises(kind):
            shaky.put_if_absent("b", b"x")
        assert backend.calls == ["create"]

    @pytest.mark.parametrize(
        ("problem", "attempts"), [(Answer(412), 1), (FileExistsError(17, "there"), 1), (Answer(409), 4)]
    )
    def test_a_conflict_is_told_by_status_or_type(self, store: Store, problem: Exception, attempts: int) -> None:
        shaky, _ = faulty(store, before=[problem] * attempts)
        with pytest.raises(AlreadyExistsError):
            shaky.put_if_absent("a", b"x")

    @pytest.mark.parametrize("problem", [Answer(409), Answer(503)], ids=repr)
    def test_another_attempt_when_nothing_was_done(self, store: Store, problem: Exception) -> None:
        shaky, backend = faulty(store, before=[problem] * 2)
        shaky.put_if_absent("b", b"x")
        assert backend.calls == ["create"] * 3

    def test_a_conflict_with_a_file_that_is_gone_again(self, store: Store) -> None:
        shaky, _ = faulty(store, before=[Answer(412)])
        with pytest.raises(UnknownOutcomeError):
            shaky.put_if_absent("b", b"x")


def test_listings_are_made_at_once(store: Store) -> None:
    for number in range(16):
        store.put(f"p{number}/f", b"")
    slow, _ = faulty(store, latency=0.5)
    began = time.monotonic()
    slow.list_many([f"p{number}" for number in range(16)])
    assert time.monotonic() - began < 4  # one after the other: 8 s


SOME = {"key": "k", "secret": "s", "region": "us-east-1"}


@pytest.fixture(scope="module")
def passing() -> Iterator[Proxy]:
    with local_s3("faults") as s3, proxy(s3.endpoint_url) as running:
        yield running


@pytest.mark.s3
class TestS3:
    """The same with the real client and a server that fails."""

    @pytest.fixture
    def store(self, passing: Proxy) -> Iterator[Store]:
        timeouts = {"read_timeout": 0.5, "connect_timeout": 0.5}
        options = {**SOME, "endpoint_url": passing.url, "config_kwargs": timeouts}
        made = open_store(f"s3://faults/{uuid4().hex}", options)
        made.put("a", b"0123456789" * 100)
        passing.requests.clear()
        yield made
        passing.behave = lambda number, method, path: None

    @pytest.mark.parametrize("fault", [500, 503, "lose", "cut"])
    def test_a_read_succeeds_at_the_third_attempt(self, store: Store, passing: Proxy, fault: int | str) -> None:
        passing.behave = lambda number, method, path: fault if number < 3 else None
        assert store.read_range("a", 0, 700) == (b"0123456789" * 100)[:700]
        assert len(passing.requests) == 3

    def test_a_silent_server_is_given_up(self, store: Store, passing: Proxy) -> None:
        passing.behave = lambda number, method, path: "hang"
        began = time.monotonic()
        with pytest.raises(TimeoutFault) as caught:
            store.read("a")
        assert isinstance(caught.value, TimeoutError)
        assert time.monotonic() - began < 20
        assert len(passing.requests) == 4

    def test_a_request_has_a_limit_whatever_the_socket_does(self, store: Store, passing: Proxy) -> None:
        patient = open_store(store.uri, {**SOME, "endpoint_url": passing.url, "config_kwargs": {"read_timeout": 60}})
        patient._open_backend()[0]._seconds = 0.3  # type: ignore[attr-defined]
        passing.behave = lambda number, method, path: "hang"
        for ask in (patient.stat, patient.list, lambda path: patient.read_range(path, 0, 1)):
            began = time.monotonic()
            with pytest.raises(TimeoutFault):
                ask("a")
            assert time.monotonic() - began < 10

    def test_only_failed_ranges_are_read_again(self, store: Store, passing: Proxy) -> None:
        store.put("b", bytes(300_000))
        passing.requests.clear()
        passing.behave = lambda number, method, path: 503 if number == 1 else None
        assert [len(each) for each in store.read_ranges("b", [(0, 10), (100_000, 100_010), (200_000, 200_010)])] == [
            10
        ] * 3
        assert len(passing.requests) == 4

    @pytest.mark.parametrize("fault", [500, "hang"])
    def test_a_write_is_made_once(self, store: Store, passing: Proxy, fault: int | str) -> None:
        passing.behave = lambda number, method, path: fault
        with pytest.raises(StorageFault):
            store.put("b", b"x")
        assert len(passing.requests) == 1

    def test_a_creation_whose_answer_got_lost(self, store: Store, passing: Proxy) -> None:
        passing.behave = lambda number, method, path: "lose" if method == "PUT" else None
        store.put_if_absent("b", b"token", unique=True)
        # aiohttp repeats a request itself when a connection that it had used before breaks.
        assert [line.split()[0] for line in passing.requests].count("PUT") <= 2
        assert store.read("b") == b"token"
        with pytest.raises(AlreadyExistsError) as caught:
            store.put_if_absent("b", b"other", unique=True)
        assert caught.value.identical is False

    def test_a_creation_that_nobody_answers(self, store: Store, passing: Proxy) -> None:
        passing.behave = lambda number, method, path: "hang" if method == "PUT" else None
        with pytest.raises(UnknownOutcomeError):
            store.put_if_absent("c", b"token", unique=True)

    @pytest.mark.parametrize(
        ("status", "kind", "hint"), [(403, AccessDeniedError, "AWS_ACCESS_KEY_ID"), (404, NotFoundError, "no such")]
    )
    def test_refusals(self, store: Store, passing: Proxy, status: int, kind: type[StorageFault], hint: str) -> None:
        passing.behave = lambda number, method, path: status
        with pytest.raises(kind, match=hint):
            store.read("a")
        assert len(passing.requests) == 1

    def test_nobody_listens(self) -> None:
        store = open_store("s3://b/t", {**SOME, "endpoint_url": "http://127.0.0.1:1"})
        began = time.monotonic()
        with pytest.raises(StorageFault, match="endpoint_url"):
            store.read("a")
        with pytest.raises(StorageFault) as caught:
            store.put_if_absent("a", b"x")
        assert not isinstance(caught.value, UnknownOutcomeError)
        assert time.monotonic() - began < 15

    def test_a_truncated_answer_is_an_error(self, store: Store, passing: Proxy) -> None:
        passing.behave = lambda number, method, path: "cut"
        with pytest.raises(StorageFault):
            store.read("a")

    def test_requests(self, store: Store, passing: Proxy) -> None:
        """A whole file is one request, and so is a folder."""
        store.read("a")
        store.list("")
        assert len(passing.requests) == 2
        with pytest.raises(ShortReadError):
            store.read_range("a", 999, 1001)
