"""What goes wrong at a storage call: the process dies, the store refuses, is silent, or writes a half.

Faults are put between the package's store and what it asks of the file system or the server, so everything above -
repeating, reading back after a lost answer, errors - is the real thing.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any
from unittest import mock

from hoodie_py import TableFiles
from hoodie_storage import Store, local
from hoodie_storage.retry import RetryPolicy

READS = ("read", "read_ranges", "read_with_etag", "list", "list_names", "list_tree", "stat", "is_file")
WRITES = ("put", "create", "create_from", "replace")
REMOVALS = ("delete", "delete_many", "remove_folder")

KILL_BEFORE = "killed before"
KILL_AFTER = "killed after"
KILL_HALF_WAY = "killed half way"
ERROR = "error"
TIMEOUT = "timeout"
HALF_WRITTEN = "half written, then an error"
LOST = "lost reply"
LOST_FOR_GOOD = "lost reply, and no reading back"
NOTHING = "nothing"

KILLS = (KILL_BEFORE, KILL_AFTER, KILL_HALF_WAY)

_QUICK = RetryPolicy(attempts=3, first_pause=0.001, longest_pause=0.002)
_NAMES = (
    (re.compile(r"\d{17}"), "<time>"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\d+-\d+-\d+"), "<token>"),
    (re.compile(r"[0-9a-f]{32}"), "<id>"),
)


def faults_of(verb: str, store: str) -> tuple[str, ...]:
    """Return what can go wrong at a call, without what would be tried twice.

    A process that dies leaves what its last write left, so it dies after each write, and not before or at a read. A
    read that the store refuses and one that stays without an answer, which is repeated first, are one error above the
    store, so they are silent.

    A write by halves differs: on a disk half of the bytes lie in the file under its scratch name, which the write
    renames in the end. S3 takes an object whole or not at all, so there the connection breaks and nothing lands.
    """
    if verb in READS:
        return (TIMEOUT,)
    common = (KILL_AFTER, ERROR, TIMEOUT)
    if verb in REMOVALS:
        return (*common, LOST)
    half = (HALF_WRITTEN, KILL_HALF_WAY) if store == "local" else (HALF_WRITTEN,)
    return (*common, LOST, *half) if verb == "put" else (*common, LOST, LOST_FOR_GOOD, *half)


TIMED = ("hoodie-heartbeat", "hoodie-lock")


@dataclass
class Plan:
    """Which call goes wrong, counted from 0, and how; and a record of all calls as (verb, path).

    An error lasts for as long as the same request is made again: repeating it alone does not help. Calls of heartbeats
    and renewed locks do not count, as they come at any time.
    """

    at: int = -1
    fault: str = NOTHING
    root: str = ""
    armed: bool = False
    calls: list[tuple[str, str]] = field(default_factory=list)
    _sticky: tuple[str, str] | None = None
    _depth: threading.local = field(default_factory=threading.local)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def call(self, verb: str, key: str, act: Callable[[], Any]) -> Any:
        """Make a call, or what the plan has in its place."""
        if not self.armed or getattr(self._depth, "inside", False) or threading.current_thread().name in TIMED:
            return act()
        call = (verb, key.removeprefix(self.root).lstrip("/"))
        with self._guard:
            number = len(self.calls)
            self.calls.append(call)
        if number != self.at:
            again = self._sticky is not None and self._sticky in (call, ("*", call[1]))
            self._sticky = self._sticky if again else None
            if again:
                raise self._error(verb)
            return self._inside(act)
        return self._go_wrong(call, act)

    def _go_wrong(self, call: tuple[str, str], act: Callable[[], Any]) -> Any:
        if self.fault == KILL_BEFORE:
            die()
        if self.fault in (ERROR, TIMEOUT):
            self._sticky = call
            raise self._error(call[0])
        if self.fault in (HALF_WRITTEN, KILL_HALF_WAY):
            return self._by_halves(act)
        if self.fault == LOST_FOR_GOOD:
            self._sticky = ("*", call[1])
        try:
            return self._inside(act)
        finally:  # also where the answer is that something is not there
            if self.fault == KILL_AFTER:
                die()
            if self.fault in (LOST, LOST_FOR_GOOD):
                raise _silence()

    def _by_halves(self, act: Callable[[], Any]) -> Any:
        if not self.root.startswith("/"):
            raise ConnectionResetError(errno.ECONNRESET, "the connection broke")

        def write_half(file: IO[bytes]) -> None:
            file.flush()
            os.truncate(file.fileno(), file.tell() // 2)
            if self.fault == KILL_HALF_WAY:
                die()
            raise OSError(errno.ENOSPC, "no space left on device")

        with mock.patch.object(local, "_flush", write_half):
            return self._inside(act)

    def _inside(self, act: Callable[[], Any]) -> Any:
        self._depth.inside = True
        try:
            return act()
        finally:
            self._depth.inside = False

    def _error(self, verb: str) -> Exception:
        if self.fault != ERROR:
            return _silence()
        return OSError(errno.ENOSPC if verb in WRITES else errno.EIO, "the store refuses")


def die() -> None:
    """End the process as the operating system does: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def _silence() -> Exception:
    return TimeoutError(errno.ETIMEDOUT, "no answer in time")


def faulty(files: TableFiles, plan: Plan) -> TableFiles:
    """Return the files of a table with a plan between them and the store; make it in the process that uses it."""
    inner = files._store
    backend, root = inner._open_backend()
    kind = type(backend)
    wrapped: Any = object.__new__(type(f"Faulty{kind.__name__}", (kind,), _verbs(kind, plan)))
    wrapped.__dict__.update(backend.__dict__, parallel=1)  # one call after the other: the same order each time
    plan.root = root
    store = Store(inner._location, inner._options, inner._prefix, _QUICK)
    store._opened = (os.getpid(), wrapped, root)
    return TableFiles(store)


def _verbs(backend: type, plan: Plan) -> dict[str, Any]:
    def wrapped(verb: str) -> Callable[..., Any]:
        inner = getattr(backend, verb)

        def call(self: Any, key: Any, *args: Any) -> Any:  # the keys of ``delete_many`` stand for their first one
            return plan.call(verb, key if isinstance(key, str) else key[0], lambda: inner(self, key, *args))

        return call

    return {verb: wrapped(verb) for verb in (*READS, *WRITES, *REMOVALS)}


def kind_of(path: str) -> str:
    """Return a path without what differs from table to table and from run to run."""
    for pattern, name in _NAMES:
        path = pattern.sub(name, path)
    return path
