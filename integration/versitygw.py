"""An S3 server that checks credentials: versitygw, a gateway to a folder, written in Go.

``HOODIE_VERSITYGW`` names its program, or it is on the PATH, or ``python -m integration.versitygw`` has built it here,
as ``.versitygw/versitygw``: that takes Go and some minutes.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSION = "v1.8.0"
MODULE = f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"
FOLDER = Path(__file__).parents[1] / ".versitygw"
BUCKET = "lake"
HOW = (
    f"set HOODIE_VERSITYGW to a versitygw {VERSION}, or build it with `python -m integration.versitygw`, which needs "
    "Go and some minutes"
)
_SECONDS_TO_START = 30.0


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running server with one bucket, and what reaches it."""

    endpoint_url: str
    key: str = "gateway-key"
    secret: str = field(default="gateway-secret-3f9ac2", repr=False)

    @property
    def uri(self) -> str:
        return f"s3://{BUCKET}"

    @property
    def storage_options(self) -> dict[str, Any]:
        region = {"region_name": "us-east-1"}
        return {"key": self.key, "secret": self.secret, "endpoint_url": self.endpoint_url, "client_kwargs": region}


def program() -> str | None:
    """Return the server's program; None where there is none."""
    built = FOLDER / "versitygw"
    return os.environ.get("HOODIE_VERSITYGW") or shutil.which("versitygw") or (str(built) if built.exists() else None)


@contextmanager
def running(command: str, folder: Path) -> Iterator[Gateway]:
    """Run the server on a free port of 127.0.0.1, over a new folder with a bucket in it.

    The folder's file system must have extended attributes: with attributes in files (``--sidecar``) versitygw 1.8.0
    does not replace an object and its checksum at once, so that a read in between fails.
    """
    (folder / "objects" / BUCKET).mkdir(parents=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    gateway = Gateway(f"http://{address}")
    account = {"ROOT_ACCESS_KEY": gateway.key, "ROOT_SECRET_KEY": gateway.secret}
    arguments = ["--port", address, "--health", "/health", "--quiet"]
    backend = ["posix", str(folder / "objects")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [command, *arguments, *backend], env={**os.environ, **account}, stdout=log, stderr=log, cwd=folder
        )
        try:
            _wait(server, gateway, folder / "log")
            yield gateway
        finally:
            server.terminate()
            server.wait(timeout=_SECONDS_TO_START)


def _wait(server: subprocess.Popen[bytes], gateway: Gateway, log: Path) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while True:
        try:
            with urllib.request.urlopen(f"{gateway.endpoint_url}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"versitygw does not answer:\n{log.read_text()}") from None
            time.sleep(0.1)


def build() -> None:
    """Build the server from the Go module proxy."""
    go = shutil.which("go", path=f"{os.environ.get('PATH', '')}:/usr/local/go/bin")
    if go is None:
        sys.exit("There is no Go here: install it from https://go.dev/dl")
    subprocess.run([go, "install", MODULE], check=True, env={**os.environ, "CGO_ENABLED": "0", "GOBIN": str(FOLDER)})
    print(FOLDER / "versitygw")


if __name__ == "__main__":
    build()
