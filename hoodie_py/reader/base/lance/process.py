"""Decodes Lance files in other processes and receives their batches; ``child`` describes the protocol.

A process serves one request at a time. It is kept for later requests while it lives, so that the library is not loaded
for every file. A request that ends early ends the process only if it does not answer. Processes are not shared with
forked children, which start their own.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from threading import Lock
from typing import IO

import pyarrow as pa

from hoodie_py.errors import CorruptFileError, StorageError, UnsupportedFeatureError
from hoodie_py.formats.limits import get_limits
from hoodie_py.reader.base.lance.child import BATCH, END, ENOUGH, ERROR, HEAD, IDLE_SECONDS, MORE, SCHEMA

_INSTALL = "pip install 'hoodie_py[lance]'"
_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {} import main; main(int(sys.argv[2]))"
_MOST_IDLE = 8
_SMALL_MESSAGE = 1 << 20  # a longer schema or error is refused
_THREADS = {"LANCE_CPU_THREADS": "2", "LANCE_IO_THREADS": "2"}  # few, as each slice that is read has its own process

_idle: list[_Process] = []
_lock = Lock()


def check_installed() -> None:
    """Raise UnsupportedFeatureError if the lance library is missing."""
    if find_spec("lance") is None:
        raise UnsupportedFeatureError("Lance base files need the lance library, which is not installed.", hint=_INSTALL)


def read_schema(path: str) -> pa.Schema:
    """Return the columns of a local file; errors as ``read_batches``."""
    with _borrow() as process:
        process.ask(path=path, columns=None)
        kind, content = process.receive()
        if kind != SCHEMA or process.receive()[0] != END:
            raise process.fail()
        return pa.ipc.read_schema(content)


def read_batches(
    path: str, columns: Sequence[str], start: int, rows: int, batch_rows: int
) -> Generator[pa.RecordBatch, None, None]:
    """Yield validated batches of a local file, with the columns in the order of the file.

    Raises:
        CorruptFileError: the library cannot decode the file, or its process dies.
        UnsupportedFeatureError: the library is missing.
    """
    if not rows:
        return
    with _borrow() as process:
        process.ask(path=path, columns=list(columns), start=start, rows=rows, batch_rows=batch_rows)
        kind, content = process.receive()
        if kind != SCHEMA:
            raise process.fail()
        schema = pa.ipc.read_schema(content)
        kind, content = process.receive()
        try:
            while kind == BATCH:
                process.send(MORE)  # the next batch is decoded while this one is used
                yield pa.ipc.read_record_batch(content, schema)
                kind, content = process.receive()
        except GeneratorExit:
            with suppress(CorruptFileError):  # nobody asks for those rows any more
                if process.receive()[0] == BATCH:
                    process.send(ENOUGH)
                    process.is_usable = True
            raise


class _Process:
    """One process, with the two pipes to it."""

    def __init__(self) -> None:
        from hoodie_py.reader.base.lance import child

        command = [sys.executable, "-c", _START.format(child.__name__), json.dumps(sys.path)]
        try:
            self._popen = subprocess.Popen(  # noqa: S603  # this interpreter, and no text of a table
                [*command, str(get_limits().decoded_bytes)],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**_THREADS, **os.environ},
                process_group=0,  # Ctrl-C is for the asker, whose end closes the pipes
            )
        except OSError as error:
            reason = (error.strerror or str(error)).rstrip(".")
            raise StorageError(
                f"No process can be started to decode Lance files: {reason}.",
                hint="Check sys.executable, and the limits of processes and memory.",
                operation="start",
                path=sys.executable,
            ) from error
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._input: IO[bytes] = self._popen.stdin
        self._output: IO[bytes] = self._popen.stdout
        self.is_usable = True
        self.used = time.monotonic()

    @property
    def is_alive(self) -> bool:
        """Whether the process surely takes another request: it ends by itself after idling for ``IDLE_SECONDS``."""
        return self._popen.poll() is None and time.monotonic() - self.used < IDLE_SECONDS / 2

    def ask(self, **request: object) -> None:
        self.is_usable = False
        self.send(json.dumps(request).encode() + b"\n")

    def send(self, data: bytes) -> None:
        try:
            self._input.write(data)
        except OSError:
            raise self.fail() from None

    def receive(self) -> tuple[bytes, pa.Buffer]:
        """Return the next frame's letter and content; an error frame is raised."""
        kind, length = HEAD.unpack(self._read(HEAD.size))
        if kind not in (SCHEMA, BATCH, END, ERROR) or length > self._get_most(kind):
            raise self.fail()
        content = self._read(length)
        if kind == ERROR:
            self.is_usable = True
            raise _make_error(json.loads(content.to_pybytes()))
        self.is_usable = kind == END
        return kind, content

    @staticmethod
    def _get_most(kind: bytes) -> int:
        return get_limits().decoded_bytes if kind == BATCH else max(_SMALL_MESSAGE, get_limits().metadata_bytes)

    def _read(self, length: int) -> pa.Buffer:
        buffer = pa.allocate_buffer(length)
        view = memoryview(buffer)
        at = 0
        while at < length:
            count = self._output.readinto(view[at:])  # type: ignore[attr-defined]  # a raw file has it
            if not count:
                raise self.fail()
            at += count
        return buffer

    def fail(self) -> CorruptFileError:
        """End the process, and return an error that says how it ended."""
        self.is_usable = False
        if not self._dies_soon():
            self._popen.kill()
        return CorruptFileError(f"The lance library cannot decode the file: {self._describe_end()}.")

    def _dies_soon(self) -> bool:
        try:
            self._popen.wait(5)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _describe_end(self) -> str:
        status = self._popen.wait()
        if status >= 0:
            return f"its process ended with status {status}"
        return f"its process was ended by {signal.Signals(-status).name}"

    def close(self) -> None:
        """End the process."""
        self._popen.kill()
        self._popen.wait()
        self.forget()

    def forget(self) -> None:
        """Close the pipes only: after a fork the process belongs to the parent."""
        self._input.close()
        self._output.close()


@contextmanager
def _borrow() -> Generator[_Process, None, None]:
    """Return a context manager with an idle process, or a new one."""
    process = _take_idle() or _Process()
    try:
        yield process
    finally:
        with _lock:
            process.used = time.monotonic()
            keeps = process.is_usable and process.is_alive and len(_idle) < _MOST_IDLE
            if keeps:
                _idle.append(process)
        if not keeps:
            process.close()


def _take_idle() -> _Process | None:
    while True:
        with _lock:
            process = _idle.pop() if _idle else None
        if process is None or process.is_alive:
            return process
        process.close()


def _make_error(what: dict[str, object]) -> CorruptFileError | UnsupportedFeatureError:
    if what["missing"]:
        return UnsupportedFeatureError(f"The lance library cannot be imported: {what['text']}.", hint=_INSTALL)
    return CorruptFileError(f"The lance library cannot decode the file: {what['text']}.")


def _forget_all() -> None:
    global _lock  # noqa: PLW0603  # another thread may have held it when the process was forked
    _lock = Lock()
    while _idle:
        _idle.pop().forget()


def _close_all() -> None:
    while _idle:
        _idle.pop().close()


os.register_at_fork(after_in_child=_forget_all)
atexit.register(_close_all)
