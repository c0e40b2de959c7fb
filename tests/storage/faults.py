"""Stores that fail on purpose: a backend that wraps another, and an HTTP proxy before an S3 server."""

from __future__ import annotations

import http.client
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from hoodie_storage import Store
from hoodie_storage.retry import RetryPolicy

QUICK = RetryPolicy(attempts=4, first_pause=0.001, longest_pause=0.002)


class FaultyBackend:
    """Raises what it was given, once for each call, before or after the call is made; counts calls.

    Args:
        inner: the backend that does the work.
        before: exceptions to raise in place of the first calls.
        after: exceptions to raise once the call was made: its answer is lost.
        latency: seconds each call takes longer.
    """

    def __init__(
        self, inner: Any, before: Sequence[Exception] = (), after: Sequence[Exception] = (), latency: float = 0
    ) -> None:
        self._inner = inner
        self.before = list(before)
        self.after = list(after)
        self.latency = latency
        self.calls: list[str] = []
        self.ranges = 0
        self.parallel = 8

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.calls.append(verb)
            time.sleep(self.latency)
            if self.before:
                raise self.before.pop(0)
            answer = getattr(self._inner, verb)(*args)
            if self.after:
                raise self.after.pop(0)
            if verb == "read_ranges":
                self.ranges += len(answer)
            return answer

        return call


def faulty(store: Store, **faults: Any) -> tuple[Store, FaultyBackend]:
    """Return a store like another one whose requests fail, and the backend that makes them fail."""
    backend, root = store._open_backend()
    wrapped = FaultyBackend(backend, **faults)
    copy = Store(store._location, store._options, store._prefix, QUICK)
    copy._opened = (os.getpid(), wrapped, root.removesuffix(f"/{store._prefix}") if store._prefix else root)
    return copy, wrapped


class Proxy:
    """Passes requests on to an S3 server, but for what ``behave`` says.

    ``behave(number, method, path)`` is asked at each request: None passes it on; a number answers with that HTTP
    status; "lose" passes it on and hangs up; "hang" waits until the end; "cut" answers with half of the body.
    """

    def __init__(self, target: str) -> None:
        self.target = urlsplit(target)
        self.behave: Callable[[int, str, str], int | str | None] = lambda number, method, path: None
        self.requests: list[str] = []
        self.over = threading.Event()
        self.url = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        self.requests.append(f"{handler.command} {handler.path}")
        what = self.behave(len(self.requests), handler.command, handler.path)
        if isinstance(what, int):
            handler.send_response(what)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        if what == "hang":
            self.over.wait(30)
            return
        connection = http.client.HTTPConnection(self.target.hostname or "", self.target.port)
        connection.request(handler.command, handler.path, body, dict(handler.headers))
        response = connection.getresponse()
        data = response.read()
        connection.close()
        if what == "lose":
            handler.close_connection = True
            return
        handler.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in {"transfer-encoding", "connection"}:
                handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data[: len(data) // 2] if what == "cut" else data)
        handler.close_connection = handler.close_connection or what == "cut"


@contextmanager
def proxy(target: str) -> Iterator[Proxy]:
    """Run a proxy in front of a server."""
    passing = Proxy(target)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            passing.answer(self)

        do_PUT = do_HEAD = do_DELETE = do_POST = do_GET  # noqa: N815 - the base class's way

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    passing.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield passing
    finally:
        passing.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
