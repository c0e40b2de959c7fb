"""Servers of Google Cloud Storage (fake-gcs-server, written in Go) and of Azure Blob Storage (Azurite, for Node.js).

``HOODIE_FAKE_GCS_SERVER`` and ``HOODIE_AZURITE`` name their programs, or they are on the PATH as ``fake-gcs-server``
and ``azurite-blob``, or ``python -m integration.clouds`` has installed them here, in ``.clouds``, which takes Go, npm
and a few minutes.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / ".clouds"
BUCKET = "lake"
FAKE_GCS = "github.com/fsouza/fake-gcs-server@v1.56.1"
AZURITE = "azurite@3.35.0"
HOW = "`python -m integration.clouds` installs it"
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = base64.b64encode(b"a key of this test alone, no secret").decode()
_SECONDS_TO_START = 60.0
_SECONDS_TO_INSTALL = 900.0


@dataclass(frozen=True, slots=True)
class Cloud:
    """A running server with one bucket, and what reaches it."""

    name: str
    uri: str
    storage_options: dict[str, Any] = field(repr=False)


def find_program(name: str) -> str | None:
    """Return the program of ``gcs`` or ``azure``; None where there is none."""
    variable, command, built = {
        "gcs": ("HOODIE_FAKE_GCS_SERVER", "fake-gcs-server", FOLDER / "fake-gcs-server"),
        "azure": ("HOODIE_AZURITE", "azurite-blob", FOLDER / "node_modules" / ".bin" / "azurite-blob"),
    }[name]
    return os.environ.get(variable) or shutil.which(command) or (str(built) if built.exists() else None)


@contextmanager
def for_tests(name: str, folder: Path) -> Iterator[Cloud]:
    """Run the server of ``gcs`` or ``azure``, or have pytest skip what needs it and say why."""
    pytest.importorskip({"gcs": "gcsfs", "azure": "adlfs"}[name])
    command = find_program(name)
    if command is None:
        pytest.skip(f"NOT TESTED: there is no server of {name}: {HOW}")
    with run_server(name, command, folder) as cloud:
        yield cloud


def run_server(name: str, command: str, folder: Path) -> AbstractContextManager[Cloud]:
    """Run the server of ``gcs`` or ``azure``, whose program is ``command``, with its files in a folder."""
    return {"gcs": _run_google, "azure": _run_azure}[name](command, folder)


@contextmanager
def _run_google(command: str, folder: Path) -> Iterator[Cloud]:
    port = _find_port()
    address = f"http://127.0.0.1:{port}"
    arguments = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    arguments += ["-log-level", "error", "-external-url", address, "-public-host", f"127.0.0.1:{port}"]
    with _running([command, *arguments], folder, lambda: _answers(f"{address}/storage/v1/b")):
        body = json.dumps({"name": BUCKET}).encode()
        made = urllib.request.Request(f"{address}/storage/v1/b?project=p", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(made, timeout=10).close()
        yield Cloud("gcs", f"gs://{BUCKET}", {"endpoint_url": address, "token": "anon", "project": "p"})


@contextmanager
def _run_azure(command: str, folder: Path) -> Iterator[Cloud]:
    from azure.storage.blob import BlobServiceClient

    port = _find_port()
    address = f"http://127.0.0.1:{port}/{ACCOUNT}"
    arguments = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder)]
    arguments += ["--skipApiVersionCheck", "--silent", "--disableTelemetry"]
    account = {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"}
    text = f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};BlobEndpoint={address};"
    with _running([command, *arguments], folder, lambda: _answers(address), account):
        with BlobServiceClient.from_connection_string(text) as service:
            service.create_container(BUCKET)
        yield Cloud("azure", f"abfs://{BUCKET}", {"connection_string": text})


def _find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _running(
    command: list[str], folder: Path, answers: Callable[[], bool], environment: dict[str, str] | None = None
) -> Iterator[None]:
    log = folder / "server.log"
    with log.open("wb") as said:
        server = subprocess.Popen(
            command, env={**os.environ, **(environment or {})}, stdout=said, stderr=said, cwd=folder
        )
        try:
            deadline = time.monotonic() + _SECONDS_TO_START
            while not answers():
                if server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command[0]} does not answer:\n{log.read_text()}")
                time.sleep(0.1)
            yield
        finally:
            server.terminate()
            server.wait(timeout=_SECONDS_TO_START)


def _answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except (urllib.error.URLError, OSError):
        return False
    return True


def install() -> None:
    """Install both servers. Raises RuntimeError if Go or npm is missing, or fails."""
    FOLDER.mkdir(exist_ok=True)
    go = shutil.which("go", path=f"{os.environ.get('PATH', '')}:/usr/local/go/bin")
    npm = shutil.which("npm")
    if go is None or npm is None:
        raise RuntimeError("Go and npm are needed")
    steps = [([go, "install", FAKE_GCS], {"CGO_ENABLED": "0", "GOBIN": str(FOLDER)}), ([npm, "install", AZURITE], {})]
    for command, environment in steps:
        done = subprocess.run(
            command,
            env={**os.environ, **environment},
            cwd=FOLDER,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS_TO_INSTALL,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")


if __name__ == "__main__":
    try:
        install()
        print({name: find_program(name) for name in ("gcs", "azure")}, file=sys.stderr)
    except RuntimeError as why:
        sys.exit(f"The servers of other clouds are not installed: {why}")
