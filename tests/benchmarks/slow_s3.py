"""An S3 server whose answers take a while, and which counts how many requests follow one another.

Each request in sequence costs a user one round trip. Requests that overlap cost one together.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hoodie_py.testing import LocalS3, local_s3

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


@dataclass
class Requests:
    """When requests began and ended, in seconds."""

    spans: list[tuple[float, float]] = field(default_factory=list)

    def count_in_sequence(self) -> int:
        """Return the largest number of requests of which each began after the one before had ended."""
        found, end = 0, 0.0
        for began, ended in sorted(self.spans, key=lambda span: span[1]):
            if began >= end:
                found, end = found + 1, ended
        return found


class SlowS3:
    """A running server of one bucket."""

    def __init__(self, s3: LocalS3, seconds: float) -> None:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Handler(WSGIRequestHandler):
            protocol_version = "HTTP/1.1"  # clients keep their connections, as they do with a real store

            def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - the base class's name
                """Print nothing."""

        self._seconds = seconds
        self._answer = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer_late, threaded=True, request_handler=Handler)
        self._server.daemon_threads = True  # type: ignore[attr-defined] - clients may keep their connections open
        endpoint = f"http://127.0.0.1:{self._server.server_port}"
        # Servers in one process share their objects, so this one has the bucket of the other.
        self.s3 = replace(
            s3,
            endpoint_url=endpoint,
            storage_options={**s3.storage_options, "endpoint_url": endpoint},
            env={**s3.env, "AWS_ENDPOINT_URL": endpoint, "AWS_ENDPOINT_URL_S3": endpoint},
        )
        self._made = Requests()
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @contextmanager
    def count(self) -> Iterator[Requests]:
        """Count the requests that end while the block runs."""
        self._made = Requests()
        yield self._made
        self._made = Requests()

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()

    def _answer_late(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        made, began = self._made, time.monotonic()
        time.sleep(self._seconds)
        body = list(self._answer(environ, start_response))
        made.spans.append((began, time.monotonic()))
        return body


@contextmanager
def slow_s3(seconds: float, bucket: str = "lake") -> Iterator[SlowS3]:
    """Run a server during the block, each of whose answers takes ``seconds`` longer."""
    with local_s3(bucket) as s3:
        server = SlowS3(s3, seconds)
        try:
            yield server
        finally:
            server.close()
