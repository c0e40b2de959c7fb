"""An S3 server that checks credentials: versitygw, a gateway to a folder, written in Go.

``HOODIE_VERSITYGW`` names its program, or it is on the PATH, or ``python -m integration.versitygw`` has built it here,
as ``.versitygw/versitygw``, which takes Go and a minute or two; ``make test`` does so.
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

import pytest

VERSION = "v1.8.0"
MODULE = f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"
FOLDER = Path(__file__).parents[1] / ".versitygw"
BUCKET = "lake"
HOW = (
    f"set HOODIE_VERSITYGW to a versitygw {VERSION}, or build it with `python -m integration.versitygw`, which needs Go"
)
_SECONDS_TO_START = 30.0
_BUILD_SECONDS = 420.0


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
def for_tests(folder: Path) -> Iterator[Gateway]:
    """Run the server, or have pytest skip what needs it and say why."""
    command = program()
    why = HOW if command is None else None if _has_attributes(folder) else f"{folder} has no extended attributes"
    if command is None or why is not None:
        pytest.skip(f"NOT TESTED: there is no S3 server that checks credentials: {why}")
    with running(command, folder) as gateway:
        yield gateway


def _has_attributes(folder: Path) -> bool:
    if not hasattr(os, "setxattr"):  # only Linux's Python has it: macOS has such attributes
        return True
    try:
        os.setxattr(folder, "user.etag", b"1")
    except OSError:
        return False
    os.removexattr(folder, "user.etag")
    return True


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


def build() -> str:
    """Build the server from the Go module proxy, and say where it is.

    Raises:
        RuntimeError: there is no Go, or it cannot build the server.
    """
    go = shutil.which("go", path=f"{os.environ.get('PATH', '')}:/usr/local/go/bin")
    if go is None:
        raise RuntimeError("there is no Go here: install it from https://go.dev/dl")
    command, environment = [go, "install", MODULE], {**os.environ, "CGO_ENABLED": "0", "GOBIN": str(FOLDER)}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=_BUILD_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"Go has not built {MODULE} in {_BUILD_SECONDS:.0f} s") from None
    if done.returncode:
        raise RuntimeError(f"Go cannot build {MODULE}: {done.stderr.strip()[-500:]}")
    return str(FOLDER / "versitygw")


if __name__ == "__main__":
    try:
        print(f"versitygw: {program() or build()}", file=sys.stderr)
    except RuntimeError as why:  # the tests that need it say that they are left out
        print(
            f"Note: no versitygw, an S3 server that checks credentials; {why}. Its tests are left out.", file=sys.stderr
        )
