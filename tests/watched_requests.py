"""See, count, delay or fail what a piece of code asks of its stores, whatever module asks it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import files

READS = ("read", "read_view", "read_range", "read_ranges")
WRITES = ("put", "put_if_absent", "put_if_match", "create_from")


@dataclass(frozen=True)
class Request:
    """A call of one verb of a store.

    Attributes:
        verb: a method of ``hoodie_storage.Store``.
        paths: whole paths of the files or folders; several for ``list_many`` only.
        make: makes the request and returns its answer.
    """

    verb: str
    paths: tuple[str, ...]
    make: Callable[[], Any]

    @property
    def path(self) -> str:
        """The path of a request for one file or folder."""
        return self.paths[0] if self.paths else ""


Wanted = Callable[[Request], bool]


def asks(pattern: str, *verbs: str) -> Wanted:
    """Return what finds requests whose path has a regular expression, of any verb or of some."""
    found = re.compile(pattern)
    return lambda request: (not verbs or request.verb in verbs) and any(map(found.search, request.paths))


def reads(pattern: str) -> Wanted:
    """Return what finds requests for bytes of a file whose path has a regular expression."""
    return asks(pattern, *READS)


def writes(pattern: str) -> Wanted:
    """Return what finds requests that write a file whose path has a regular expression."""
    return asks(pattern, *WRITES)


def find_listed(made: Iterable[Request], place: Path | str) -> list[str]:
    """Return the folders that requests listed, relative to a place that all are below."""
    paths = (path for request in made if request.verb in {"list", "list_many", "list_names"} for path in request.paths)
    return [path.removeprefix(str(place)).lstrip("/") for path in paths]


def find_read_commits(made: Iterable[Request], place: Path | str) -> list[str]:
    """Return the request times of the completed commits of a table that requests read."""
    name = re.compile(rf"{re.escape(str(place))}/\.hoodie/(?:timeline/)?(\d+)(?:_\d+)?\.(?:|delta|replace)commit")
    found = (name.fullmatch(request.path) for request in made if request.verb == "read")
    return [match[1] for match in found if match]


@contextmanager
def watching_requests(answer: Callable[[Request], Any]) -> Iterator[None]:
    """Let ``answer`` answer the requests of all tables of this process, for a while."""
    real = files._call_store

    def call_store(call: Callable[..., Any], *args: Any, **more: Any) -> Any:
        verb, store = getattr(call, "__name__", ""), getattr(call, "__self__", None)
        named = () if store is None or not args else tuple(args[0]) if verb == "list_many" else (args[0],)
        paths = tuple(f"{store.uri}/{each}".rstrip("/") for each in named) if store is not None else ()
        return answer(Request(verb, paths, lambda: real(call, *args, **more)))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "_call_store", call_store)
        yield


@contextmanager
def far_store() -> Iterator[None]:
    """Let local tables be read as tables on other stores are: no file has a path in the local file system."""
    with watching_requests(lambda request: None if request.verb == "local_path" else request.make()):
        yield


@contextmanager
def failing_requests(wanted: Wanted, error: BaseException | type[BaseException]) -> Iterator[None]:
    """Raise an error in place of all requests of a kind."""

    def answer(request: Request) -> Any:
        if wanted(request):
            raise error
        return request.make()

    with watching_requests(answer):
        yield


@contextmanager
def meeting_request(
    wanted: Wanted, *, before: Callable[[], Any] | None = None, after: Callable[[], Any] | None = None
) -> Iterator[None]:
    """Do something once, before or after the first request of a kind; ends with an error if there is none."""
    met: list[str] = []

    def answer(request: Request) -> Any:
        if met or not wanted(request):
            return request.make()
        met.append(request.path)
        if before is not None:
            before()
        found = request.make()
        if after is not None:
            after()
        return found

    with watching_requests(answer):
        yield
    assert met, "no such request was made"


@contextmanager
def dying_at(wanted: Wanted, *, after: bool = False) -> Iterator[None]:
    """End at the first request of a kind, before it or after it: from then on every request raises SystemExit, as
    nothing of a killed process reaches a store.
    """
    dead = False

    def answer(request: Request) -> Any:
        nonlocal dead
        is_last = not dead and wanted(request)
        if is_last and after:
            request.make()
        dead = dead or is_last
        if dead:
            raise SystemExit
        return request.make()

    with watching_requests(answer):
        yield
    assert dead, "no such request was made"


@dataclass
class Requests:
    """How many requests there were."""

    count: int = 0


@contextmanager
def counting_requests() -> Iterator[Requests]:
    """Count the requests of all tables of this process, for a while; a listing of many folders counts once for each."""
    found = Requests()

    def count(request: Request) -> Any:
        found.count += len(request.paths) if request.verb == "list_many" else 1
        return request.make()

    with watching_requests(count):
        yield found
