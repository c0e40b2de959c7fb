"""Heartbeats: a writer's sign of life (Hudi ``HoodieHeartbeatClient``).

``.hoodie/.heartbeat/<instant>`` is a file that is written anew every interval. Whoever finds a pending instant goes by
its age: a lock may be one that the other side does not see, the file lies with the table. So the file
outlasts a writer that leaves its instant pending. Java looks at the age alone; here the content says whose life it is,
by which a writer learns that another took its instant over, and that a process of this machine has died is known at
once.

Unlike Java, a writer here spares an instant without file while it may just have begun.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from hoodie_py.errors import ConflictError, FileMissingError, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.formats.timeline import Timeline
from hoodie_py.options import locks as lock_keys
from hoodie_py.writer.process_identity import ProcessIdentity
from hoodie_py.writer.timeline_writer import delete_with_checksum

HEARTBEAT_FOLDER = f"{METADATA_FOLDER}/.heartbeat"

LEFT_FOR_JAVA = b"This write had failed when a later one completed.\n"
"""Content of a file that no writer of the instant made: see ``failed_writes``."""
ENDED = b"The writer of this instant ended and left it pending.\n"

_LONGEST = 2048
_AT_WORK: set[bytes] = set()  # contents of this process's own heartbeats that have not stopped


class Heartbeat:
    """Keeps an instant alive while a block runs. Start it under the table's lock.

    Args:
        files: the table's files.
        instant: whose life it is.
        options: Hudi's writer options: interval and tolerable misses.
        now: the time in seconds since 1970.

    Attributes:
        stays: whether the instant is pending when the block ends. The file stays then.
        ends_at_once: whether a file that stays says that its writer has ended; else it just grows old, as Java's does,
            and what the writer asked of the store, and got no answer to, may yet happen meanwhile.
        was_there: whether the instant had such a file before, of a writer that is no more.

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
        self.ends_at_once = False
        self.was_there = False
        self._files = files
        self._instant = instant
        self._path = f"{HEARTBEAT_FOLDER}/{instant}"
        self._interval, self.tolerance = _read_times(options or {})
        self._now = now
        self._content = ProcessIdentity.read_own().to_bytes(str(uuid.uuid4()))
        self._last = 0.0
        self._lost = False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def ensure_alive(self) -> None:
        """Check that nobody may have taken this writer for dead.

        Raises:
            ConflictError: there was a time when its last beat was too old, or its file is not its own any more.
        """
        if not self._lost and self._now() - self._last <= self.tolerance and self._is_own():
            return
        raise ConflictError(
            "The heartbeat stopped, so another writer may be rolling this one back.",
            hint="Try again.",
            instant=self._instant,
        )

    def __enter__(self) -> Self:
        self.was_there = self._files.exists(self._path)
        if self.was_there and is_alive(self._files, self._instant, tolerance=self.tolerance, now=self._now):
            raise ConflictError(
                "A writer keeps the instant alive: it is at work on this instant.", instant=self._instant
            )
        self._beat()
        _AT_WORK.add(self._content)
        self._thread = threading.Thread(target=self._keep_beating, name="hoodie-heartbeat", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self.ends_at_once or not self.stays:
            _AT_WORK.discard(self._content)
        if not self._is_own():
            return  # removed by whoever undid the instant, or his by now
        if not self.stays:
            delete_with_checksum(self._files, self._path)
        elif self.ends_at_once:
            self._files.put(self._path, ENDED)

    def _keep_beating(self) -> None:
        while not self._lost and not self._over.wait(self._interval):
            try:
                # A process that was stopped for long wakes up here, too: others may have taken it for dead meanwhile.
                self._lost = self._now() - self._last > self.tolerance or not self._is_own()
                if not self._lost:
                    self._beat()
            except StorageError:
                continue  # a miss; too many of them are what `ensure_alive` reports

    def _beat(self) -> None:
        began = self._now()
        self._files.put(self._path, self._content)
        self._last = began

    def _is_own(self) -> bool:
        try:
            return self._files.read(self._path, len(self._content) + 1) == self._content
        except FileMissingError:
            return False


@dataclass(frozen=True, slots=True)
class WriterLife:
    """What is known of the writer of a pending instant.

    Attributes:
        is_alive: it shows life.
        may_live: it shows none, and began too short a time ago to be taken for dead.
        until: when it will be, in seconds since 1970, if it shows none until then.
    """

    is_alive: bool
    may_live: bool
    until: float

    @property
    def is_over(self) -> bool:
        """Whether it may be undone: it no longer shows life, or never did and began long ago."""
        return not self.is_alive and not self.may_live


def read_life(
    files: TableFiles,
    instant: str,
    begun: str,
    options: Mapping[str, str] | None = None,
    now: Callable[[], float] = time.time,
) -> WriterLife:
    """Find out whether the writer of a pending instant may be at work. No lock is asked: it may not be a shared one.

    Args:
        files: the table's files.
        instant: which.
        begun: path of its file on the timeline.
        options: Hudi's writer options: interval and tolerable misses.
        now: the time in seconds since 1970.

    Raises:
        StorageError: the store did not say.
    """
    tolerance = _read_times(options or {})[1]
    path = f"{HEARTBEAT_FOLDER}/{instant}"
    content = _read_content(files, path)
    if content is not None and content != LEFT_FOR_JAVA:
        written = _read_write_time(files, path, now)
        fresh = now() - written <= tolerance
        return WriterLife(fresh and not _is_by_ended_writer(content), False, written + tolerance)
    written = _read_write_time(files, begun, now)
    return WriterLife(False, now() - written <= tolerance, written + tolerance)


def is_alive(
    files: TableFiles,
    instant: str,
    options: Mapping[str, str] | None = None,
    now: Callable[[], float] = time.time,
    *,
    tolerance: float | None = None,
) -> bool:
    """Whether a writer keeps this instant alive.

    Raises:
        StorageError: the store did not say.
    """
    path = f"{HEARTBEAT_FOLDER}/{instant}"
    content = _read_content(files, path)
    if content is None or content == LEFT_FOR_JAVA or _is_by_ended_writer(content):
        return False
    limit = _read_times(options or {})[1] if tolerance is None else tolerance
    return now() - _read_write_time(files, path, now) <= limit


def remove_finished(files: TableFiles, timeline: Timeline, options: Mapping[str, str] | None = None) -> None:
    """Remove heartbeat files of completed instants, and old ones of instants that are not on the timeline. Call it
    under the table's lock.
    """
    try:
        found = files.list(HEARTBEAT_FOLDER)
    except FileMissingError:
        return
    for info in found:
        instant = timeline.find(info.name)
        if info.is_dir or not info.name.isdigit() or (instant is not None and not instant.is_completed):
            continue
        if instant is not None or not is_alive(files, info.name, options):
            delete_with_checksum(files, info.path)


def _is_by_ended_writer(content: bytes) -> bool:
    if content == ENDED:
        return True
    writer = ProcessIdentity.from_bytes(content)
    if writer is None or content in _AT_WORK:
        return False
    return writer == ProcessIdentity.read_own() or writer.has_ended()


def _read_content(files: TableFiles, path: str) -> bytes | None:
    """Return the content of a heartbeat file, nothing where it is none of this package's; None where there is none."""
    try:
        found = files.read(path, _LONGEST + 1)
        return found if len(found) <= _LONGEST else b""
    except FileMissingError:
        return None


def _read_write_time(files: TableFiles, path: str, now: Callable[[], float]) -> float:
    """Return when a file was written, in seconds since 1970: now where the store does not know, never where it is not
    there.
    """
    try:
        modified = files.stat(path).modified
    except FileMissingError:
        return 0.0
    return now() if modified is None else modified / 1000


def _read_times(options: Mapping[str, str]) -> tuple[float, float]:
    """Return interval and tolerance in seconds."""
    interval = lock_keys.HEARTBEAT_INTERVAL_MS.read(options) / 1000
    return interval, interval * lock_keys.HEARTBEAT_MISSES.read(options)
