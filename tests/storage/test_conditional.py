"""What is asked of other clouds' own clients; their servers are tried in ``integration/test_clouds.py``."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from hoodie_storage import (
    AccessDeniedError,
    AlreadyExistsError,
    ChangedError,
    Store,
    UnknownOutcomeError,
    classify,
    open_store,
)


class Google(BaseHTTPRequestHandler):
    """Answers as it is told to, and keeps what was asked."""

    asked: list[tuple[str, dict[str, list[str]]]]
    answers: list[tuple[int, bytes]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.asked.append((self.command, parse_qs(urlsplit(self.path).query)))
        status, body = self.answers.pop(0)
        self.send_response(status)
        self.send_header("X-Goog-Generation", "41")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def google() -> Iterator[tuple[Store, type[Google]]]:
    pytest.importorskip("gcsfs")
    handler = type("Handler", (Google,), {"asked": [], "answers": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    options = {"endpoint_url": f"http://127.0.0.1:{server.server_port}", "token": "anon", "project": "p"}
    try:
        yield open_store("gs://bucket/t", options), handler
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_generations_are_the_condition(google: tuple[Store, Any]) -> None:
    store, server = google
    server.answers = [(200, b"old"), (200, json.dumps({"generation": "42"}).encode())]
    assert store.read_with_etag("f") == (b"old", "41")
    assert store.put_if_match("f", b"new", "41") == "42"
    assert [asked[1].get("ifGenerationMatch") for asked in server.asked] == [None, ["41"]]


def test_a_creation_is_for_no_generation_and_asked_for_once(google: tuple[Store, Any]) -> None:
    store, server = google
    server.answers = [(412, b"{}"), (404, b"{}"), (200, b'{"items": []}'), (200, b"{}")]
    with pytest.raises((AlreadyExistsError, UnknownOutcomeError)):
        store.put_if_absent("f", b"new")
    assert server.asked[0][1]["ifGenerationMatch"] == ["0"]
    assert [method for method, _ in server.asked].count("POST") == 1


def test_a_lost_answer_is_not_asked_for_again(google: tuple[Store, Any]) -> None:
    store, server = google
    server.answers = [(500, b"{}"), (200, b"theirs")]
    with pytest.raises(ChangedError):
        store.put_if_match("f", b"new", "40")
    assert [method for method, _ in server.asked] == ["POST", "GET"]


def test_a_refusal_names_googles_options(google: tuple[Store, Any]) -> None:
    store, server = google
    server.answers = [(403, b'{"error": {"message": "no"}}')]
    with pytest.raises(AccessDeniedError, match="GOOGLE_APPLICATION_CREDENTIALS"):
        store.put("f", b"x")


class ServiceRequestError(Exception):
    """As azure-core names every failure of its client."""


class ServerDisconnectedError(Exception):
    """As aiohttp names a connection that ended before the answer."""


def test_an_answer_of_azure_that_was_lost_may_have_been_a_success() -> None:
    error = ServiceRequestError()
    error.__cause__ = ServerDisconnectedError()
    assert classify.may_have_happened(error)
    assert not classify.is_refusal(error)


class ClientConnectorError(Exception):
    """As aiohttp names a connection that was not made."""


def test_a_server_of_azure_that_was_not_reached_did_nothing() -> None:
    error = ServiceRequestError()
    error.__cause__ = ClientConnectorError()
    assert not classify.may_have_happened(error)
    assert classify.is_refusal(error)


class RefreshError(Exception):
    """As google-auth names a login that failed."""

    retryable = True


def test_a_login_that_may_succeed_next_time_is_tried_again() -> None:
    assert classify.is_refusal(RefreshError())
    assert classify.is_passing(RefreshError())
    assert not classify.may_have_happened(RefreshError())
