"""An S3 server that counts: it shows a folder's tables, read only, and tells how many requests and bytes a reader took.

It knows what readers need: GET of an object or of a range, HEAD, and ListObjectsV2 by pages of a thousand names.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "lake"
_PAGE = 1000  # names of a listing, as S3 gives them


@dataclass
class Traffic:
    """What was asked for: requests by kind, and bytes of all answers' bodies."""

    requests: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    objects: set[str] = field(default_factory=set)  # keys of objects that were read


class CountingS3:
    """A running server; ``env`` has the variables that tell readers about it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.traffic = Traffic()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.show = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.env = {
            "AWS_ACCESS_KEY_ID": "reader",
            "AWS_SECRET_ACCESS_KEY": "reader",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
        }

    @contextmanager
    def count(self) -> Iterator[Traffic]:
        """Count what is asked for while the block runs."""
        fresh = Traffic()
        with self._lock:
            self.traffic = fresh
        yield fresh

    def note(self, kind: str, size: int, key: str | None = None) -> None:
        """Count a request and the bytes of its answer."""
        with self._lock:
            self.traffic.requests[kind] += 1
            self.traffic.bytes += size
            if key is not None:
                self.traffic.objects.add(key)

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def locate(self, key: str) -> Path | None:
        """Return an object's file; None if there is none."""
        path = (self.folder / key).resolve()
        return path if path.is_file() and path.is_relative_to(self.folder) else None

    def list_names(self, prefix: str, delimiter: str) -> list[tuple[str, os.stat_result | None]]:
        """Return keys with what the disk says of them, and common prefixes, in the order of their names."""
        parent, _, start = prefix.rpartition("/")
        top = self.folder / parent
        if not top.is_dir():
            return []
        found: list[tuple[str, os.stat_result | None]] = []
        if delimiter:
            for entry in os.scandir(top):
                if entry.name.startswith(start):
                    key = f"{parent}/{entry.name}" if parent else entry.name
                    found.append((f"{key}/", None) if entry.is_dir() else (key, entry.stat()))
        else:
            for folder, _, names in os.walk(top):
                for name in names:
                    path = Path(folder, name)
                    key = path.relative_to(self.folder).as_posix()
                    if key.startswith(prefix):
                        found.append((key, path.stat()))
        return sorted(found, key=lambda each: each[0])


@contextmanager
def counting_s3(folder: Path) -> Iterator[CountingS3]:
    """Show a folder as the bucket ``BUCKET`` while the block runs."""
    server = CountingS3(folder)
    try:
        yield server
    finally:
        server.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body of an answer go out together

    @property
    def _show(self) -> CountingS3:
        return self.server.show  # type: ignore[attr-defined, no-any-return]

    def do_GET(self) -> None:
        """Answer a listing or an object."""
        url = urlsplit(self.path)
        _, _, key = unquote(url.path).lstrip("/").partition("/")
        if key:
            self._give(key, with_body=True)
        else:
            self._list({name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()})

    def do_HEAD(self) -> None:
        """Answer with size and time of an object."""
        self._give(unquote(urlsplit(self.path).path).lstrip("/").partition("/")[2], with_body=False)

    def _give(self, key: str, *, with_body: bool) -> None:
        path = self._show.locate(key)
        kind = "GET" if with_body else "HEAD"
        if path is None:
            self._send(kind, 404, _make_error("NoSuchKey"), with_body=with_body)
            return
        stat = path.stat()
        start, stop = 0, stat.st_size
        asked = self.headers.get("Range")
        if asked is not None:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, stat.st_size - int(last))
            stop = min(stat.st_size, int(last) + 1) if first and last else stat.st_size
            if start >= stat.st_size:
                self._send(kind, 416, _make_error("InvalidRange"), with_body=with_body)
                return
        headers = {
            "Last-Modified": formatdate(stat.st_mtime, usegmt=True),
            "ETag": _make_etag(stat),
            "Content-Type": "binary/octet-stream",
            "Accept-Ranges": "bytes",
        }
        if asked is not None:
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{stat.st_size}"
        data = b""
        if with_body:
            with path.open("rb") as file:
                file.seek(start)
                data = file.read(stop - start)
        status = 200 if asked is None else 206
        self._send(kind, status, data, headers, length=stop - start, with_body=with_body, key=key)

    def _list(self, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after") or ""
        names = [each for each in self._show.list_names(prefix, delimiter) if each[0] > after]
        page = names[: min(_PAGE, int(query.get("max-keys", _PAGE)))]
        parts = [f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"]
        for key, stat in page:
            if stat is None:
                parts.append(f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>")
                continue
            parts.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{_make_time(stat)}</LastModified>"
                f"<ETag>{escape(_make_etag(stat))}</ETag><Size>{stat.st_size}</Size>"
                "<StorageClass>STANDARD</StorageClass></Contents>"
            )
        more = len(page) < len(names)
        parts.append(f"<MaxKeys>{_PAGE}</MaxKeys><IsTruncated>{str(more).lower()}</IsTruncated>")
        if more:
            parts.append(f"<NextContinuationToken>{escape(page[-1][0])}</NextContinuationToken>")
        body = f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{"".join(parts)}</ListBucketResult>'
        self._send("LIST", 200, body.encode(), {"Content-Type": "application/xml"})

    def _send(
        self,
        kind: str,
        status: int,
        data: bytes,
        headers: dict[str, str] | None = None,
        *,
        length: int | None = None,
        with_body: bool = True,
        key: str | None = None,
    ) -> None:
        self._show.note(kind, len(data) if with_body else 0, key if with_body else None)
        self.send_response(status)
        for name, value in (headers or {"Content-Type": "application/xml"}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        if with_body:
            self.wfile.write(data)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the method it replaces has
        """Say nothing."""


def _make_error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()


def _make_etag(stat: os.stat_result) -> str:
    return f'"{stat.st_mtime_ns:x}-{stat.st_size:x}"'


def _make_time(stat: os.stat_result) -> str:
    return f"{datetime.fromtimestamp(stat.st_mtime, UTC):%Y-%m-%dT%H:%M:%S}.000Z"
