"""Heartbeats: a writer's sign of life beside others that clean up lazily (Hudi ``HoodieHeartbeatClient``).

``.hoodie/.heartbeat/<instant>`` is an empty file that is written anew every interval. Writers with the LAZY policy roll
back a pending instant whose file is too old or missing, and spare it otherwise. So the file outlasts a writer that
leaves its instant pending. Unlike Java, a writer here spares an instant without file while it may just have begun.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from hoodie_py.errors import ConflictError, FileMissingError, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.options import locks as lock_keys
from hoodie_py.writer.lock_choice import number
from hoodie_py.writer.timeline_writer import delete_with_checksum

HEARTBEAT_FOLDER = ".hoodie/.heartbeat"
INTERVAL_MS = 60_000
MISSES = 2


class Heartbeat:
    """Keeps an instant alive while a block runs. Start it under the table's lock.

    Args:
        files: the table's files.
        instant: whose life it is.
        options: Hudi's writer options: interval and tolerable misses.
        now: the time in seconds since 1970.

    Attributes:
        stays: whether the file is left to grow old when the block ends, because the instant is pending then.

    Raises:
        ConflictError: on entering the block: somebody else keeps the instant alive.
    """

    def __init__(
        self,
        files: TableFiles,
        instant: str,
        options: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.stays = False
        self._files = files
        self._instant = instant
        self._path = f"{HEARTBEAT_FOLDER}/{instant}"
        self._interval, self._tolerance = _times(options or {})
        self._now = now
        self._last = 0.0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def ensure_alive(self) -> None:
        """Check that nobody may have taken this writer for dead.

        Raises:
            ConflictError: the last beat that reached the store is too old, or its file was removed.
        """
        if self._now() - self._last <= self._tolerance and self._files.exists(self._path):
            return
        raise ConflictError(
            "The heartbeat stopped, so another writer may be rolling this one back.",
            hint="Try again.",
            instant=self._instant,
        )

    def __enter__(self) -> Self:
        if _is_fresh(self._files, self._path, self._tolerance, self._now):
            raise ConflictError("Another writer is at work on this instant.", instant=self._instant)
        self._beat()
        self._thread = threading.Thread(target=self._keep_beating, name="hoodie-heartbeat", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if not self.stays:
            delete_with_checksum(self._files, self._path)

    def _keep_beating(self) -> None:
        while not self._over.wait(self._interval):
            try:
                self._beat()
            except StorageError:
                continue  # a miss; too many of them are what `ensure_alive` reports

    def _beat(self) -> None:
        began = self._now()
        self._files.put(self._path, b"")
        self._last = began


def is_alive(
    files: TableFiles,
    instant: str,
    options: Mapping[str, str] | None = None,
    now: Callable[[], float] = time.time,
) -> bool:
    """Whether a writer keeps this instant alive.

    Raises:
        StorageError: the store did not say.
    """
    return _is_fresh(files, f"{HEARTBEAT_FOLDER}/{instant}", _times(options or {})[1], now)


def has_stopped(files: TableFiles, instant: str, begun: str, options: Mapping[str, str] | None = None) -> bool:
    """Whether the writer of a pending instant is dead: it no longer shows life, or never did and began long ago.

    Args:
        files: the table's files.
        instant: which.
        begun: path of its file on the timeline.
        options: Hudi's writer options: interval and tolerable misses.

    Raises:
        StorageError: the store did not say.
    """
    path = f"{HEARTBEAT_FOLDER}/{instant}"
    return not _is_fresh(files, path if files.exists(path) else begun, _times(options or {})[1], time.time)


def _is_fresh(files: TableFiles, path: str, tolerance: float, now: Callable[[], float]) -> bool:
    try:
        written = files.stat(path).modified
    except FileMissingError:
        return False
    return written is None or now() - written / 1000 <= tolerance


def _times(options: Mapping[str, str]) -> tuple[float, float]:
    """Return interval and tolerance in seconds."""
    interval = number(options, lock_keys.HEARTBEAT_INTERVAL_MS, INTERVAL_MS) / 1000
    return interval, interval * number(options, lock_keys.HEARTBEAT_MISSES, MISSES)
