"""Heartbeats: a writer shows that it is alive (Hudi ``HoodieHeartbeatClient``).

A writer rewrites ``.hoodie/.heartbeat/<instant>`` at every interval. Another writer that finds the instant pending
judges by the age of this file. It cannot judge by a lock, because the two may use different locks. A writer that leaves
its instant pending leaves the file, too.

Java looks at the age only. Here the content names the writer's process (``ProcessIdentity``). So a writer notices that
another one took over its instant, and a dead process of this machine is recognised at once. Unlike Java, this package
spares an instant without a file while its writer may just have begun, and an instant that a Flink job writes to.

A streaming job of Flink shows by checkpoints which instant it writes to (Hudi ``CkpMetadata``). It keeps one instant
pending, for hours if no rows come, and fails at its next checkpoint if that instant is gone. By default it has no
heartbeat. But it creates ``.hoodie/.aux/ckp_meta/<instant>.INFLIGHT``, and ``<instant>.COMPLETED`` once the instant is
complete. If the job has a client id, the folder's name contains it. An aborted instant is used again. A job that starts
removes the folder. So an INFLIGHT file without a COMPLETED one means that the job runs, or was stopped and has not been
started since. The files do not show which.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from hoodie_py.errors import (
    CommitStateUnknownError,
    ConflictError,
    FileMissingError,
    HoodieError,
    HoodieWarning,
    StorageError,
)
from hoodie_py.files import FileInfo, TableFiles
from hoodie_py.formats.names import METADATA_FOLDER
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.options import write as write_keys
from hoodie_py.writer.lock.lock import HeldLock

_FOLDER, _START = f"{METADATA_FOLDER}/.aux", "ckp_meta"
_OPEN, _DONE = ".INFLIGHT", ".COMPLETED"


def find_checkpoint(files: TableFiles, instant: str) -> str | None:
    """Return the path of the file by which a Flink job shows that it writes to a pending instant; None without one.

    Raises:
        StorageError: the store did not answer.
    """
    for folder in files.list_or_empty(_FOLDER):
        if folder.is_dir and folder.name.startswith(_START):
            found = {each.name: each.path for each in files.list_or_empty(folder.path)}
            if f"{instant}{_OPEN}" in found and f"{instant}{_DONE}" not in found:
                return found[f"{instant}{_OPEN}"]
    return None


HEARTBEAT_FOLDER = f"{METADATA_FOLDER}/.heartbeat"

LEFT_FOR_JAVA = b"This write had failed when a later one completed.\n"
"""Content of a heartbeat file that another writer left for a failed write: see ``leave_heartbeats``."""
ENDED = b"The writer of this instant ended and left it pending.\n"
_AT_WORK: set[bytes] = set()  # contents of the heartbeats that this process keeps

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
_LARGEST_NUMBER = 2**31
_START_FIELD = 19  # index of the start time among the fields after the name in /proc/<number>/stat
_ENDED_STATES = frozenset("ZX")

_LONGEST = 2048
_NUMBER_DIGITS = 40  # of a process number and of its start time, at most


class Heartbeat:
    """Keeps an instant alive while a block runs. Start it under the table's lock.

    Args:
        files: the table's files.
        instant: request time.
        options: Hudi's writer options: interval and tolerable misses.
        now: returns the time in seconds since 1970.

    Attributes:
        stays: whether the instant is still pending when the block ends. Then the file stays.
        ends_at_once: whether a file that stays says that its writer has ended. Otherwise it grows old, as Java's does:
            the store may still carry out a request that it did not answer, and other writers wait for that.
        was_there: whether a dead writer of the instant had left a file.

    Raises:
        ConflictError: on entering the block: another writer keeps the instant alive.
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
        """Check that no other writer can have judged this one dead.

        Raises:
            ConflictError: the last beat was too old at some time, or the file is not this writer's any more.
        """
        if not self._lost and self._now() - self._last <= self.tolerance and self._is_own():
            return
        raise ConflictError(
            "The heartbeat stopped, so another writer may be rolling this one back.",
            hint="Try again.",
            instant=self._instant,
        )

    def ensure_own(self, holding: HeldLock) -> None:
        """Check that this writer still has the table's lock, and that no other writer can have judged it dead.

        Both checks are needed, as the other writer may not use the same lock. Call it after each listing that decides
        what to delete: this process may have slept, and another one may have run the same instant again.

        Raises:
            ConflictError: the lock is lost, or the heartbeat stopped.
            StorageError: the store did not answer.
        """
        holding.ensure_held()
        self.ensure_alive()

    def __enter__(self) -> Self:
        self.was_there = not self._create()
        if self.was_there:
            if is_alive(self._files, self._instant, tolerance=self.tolerance, now=self._now):
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
        self.end()

    def end(self, *, is_own: bool = False) -> None:
        """Stop beating, and remove the file or leave it as the attributes ask; done once.

        ``is_own``: the caller knows that the file is this writer's; otherwise it is read first.
        """
        if self._over.is_set():
            return
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        # Otherwise the file has to grow old for this process, too: without the set it would count as ended at once.
        if self.ends_at_once or not self.stays:
            _AT_WORK.discard(self._content)
        try:
            if is_own or self._is_own():  # else another writer undid the instant: the file is gone, or that writer's
                self._leave_file()
        except HoodieError as problem:
            # What the block did is done. An error here would hide how it ended.
            warnings.warn(f"A heartbeat was not removed: {problem}", HoodieWarning, stacklevel=2)

    def _leave_file(self) -> None:
        """Remove the file, or leave it as the attributes ask."""
        if not self.stays:
            self._files.delete_with_checksum(self._path)
        elif self.ends_at_once:
            self._files.put(self._path, ENDED)

    def _keep_beating(self) -> None:
        while not self._lost and not self._over.wait(self._interval):
            try:
                # A process that was stopped for long wakes up here. Others may have judged it dead.
                self._lost = self._now() - self._last > self.tolerance or not self._is_own()
                if not self._lost:
                    self._beat()
            except StorageError:
                continue  # a missed beat; `ensure_alive` reports too many of them

    def _create(self) -> bool:
        """Write the first beat if there is no file, and return whether there was none."""
        began = self._now()
        try:
            self._files.put_if_absent(self._path, self._content, unique=True)
        except ConflictError:
            return False
        except CommitStateUnknownError as error:  # of a heartbeat: nothing of the operation has begun
            raise StorageError(error.message, hint=error.hint, **error.where) from error
        self._last = began
        return True

    def _beat(self) -> None:
        began = self._now()  # before the write, so that `_last` is no later than the file's own time
        self._files.put(self._path, self._content)
        self._last = began

    def _is_own(self) -> bool:
        try:
            return self._files.read(self._path, len(self._content) + 1) == self._content
        except FileMissingError:
            return False


@dataclass(frozen=True, slots=True)
class WriterLife:
    """Whether the writer of a pending instant is alive.

    Attributes:
        is_alive: its heartbeat is fresh.
        may_live: it has no heartbeat, but began too recently to be judged dead.
        until: seconds since 1970; without another beat the writer counts as dead after that.
        checkpoint: path of the file by which a Flink job shows that it writes to the instant; it never expires. It is
            looked for if there is no fresh heartbeat.
    """

    is_alive: bool
    may_live: bool
    until: float
    checkpoint: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether the writer is dead, so that its instant may be undone."""
        return not self.is_alive and not self.may_live and self.checkpoint is None


def read_life(
    files: TableFiles,
    instant: str,
    begun: str,
    options: Mapping[str, str] | None = None,
    now: Callable[[], float] = time.time,
) -> WriterLife:
    """Find out whether the writer of a pending instant may be at work. Locks do not count: writers may not share one.

    ``begun`` is the path of its file on the timeline. ``now`` returns seconds since 1970.

    Raises:
        StorageError: the store did not answer.
    """
    tolerance = _read_times(options or {})[1]
    path = f"{HEARTBEAT_FOLDER}/{instant}"
    content = _read_content(files, path)
    beats = content is not None and content != LEFT_FOR_JAVA
    written = _read_write_time(files, path if beats else begun, now)
    fresh, until = now() - written <= tolerance, written + tolerance
    if beats and fresh and content is not None and not _is_by_ended_writer(content):
        return WriterLife(True, False, until)
    return WriterLife(False, fresh and not beats, until, find_checkpoint(files, instant))


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
        StorageError: the store did not answer.
    """
    path = f"{HEARTBEAT_FOLDER}/{instant}"
    content = _read_content(files, path)
    if content is None or content == LEFT_FOR_JAVA or _is_by_ended_writer(content):
        return False
    limit = _read_times(options or {})[1] if tolerance is None else tolerance
    return now() - _read_write_time(files, path, now) <= limit


def remove_finished(
    files: TableFiles, timeline: Timeline, found: Iterable[FileInfo], options: Mapping[str, str] | None = None
) -> None:
    """Remove heartbeat files of completed instants, and old files of instants that are not on the timeline.

    ``found``: what lies in ``HEARTBEAT_FOLDER``. The caller holds the table's lock.
    """
    for info in found:
        instant = timeline.find(info.name)
        if info.is_dir or not info.name.isdigit() or (instant is not None and not instant.is_completed):
            continue
        if instant is not None or not is_alive(files, info.name, options):
            files.delete_with_checksum(info.path)


def leave_heartbeats(files: TableFiles, failed: Iterable[Instant]) -> None:
    """Leave a heartbeat file for each failed write that is still pending, before a later instant completes.

    If writers clean up eagerly, Java rolls back a pending write before its next one. Past a later commit it does so
    only if it finds the write's heartbeat file, however old (Hudi ``BaseRollbackActionExecutor``). A Flink job's
    instant has not failed, so it gets no file.
    """
    for instant in failed:
        path = f"{HEARTBEAT_FOLDER}/{instant.request_time}"
        if not files.exists(path) and find_checkpoint(files, instant.request_time) is None:
            files.put(path, LEFT_FOR_JAVA)


def _is_by_ended_writer(content: bytes) -> bool:
    if content == ENDED:
        return True
    writer = ProcessIdentity.from_bytes(content)
    if writer is None or content in _AT_WORK:
        return False
    return writer == ProcessIdentity.read_own() or writer.has_ended()


def _read_content(files: TableFiles, path: str) -> bytes | None:
    """Return the content of a heartbeat file: None without a file, b"" if it is too long to be this package's."""
    try:
        found = files.read(path, _LONGEST + 1)
        return found if len(found) <= _LONGEST else b""
    except FileMissingError:
        return None


def _read_write_time(files: TableFiles, path: str, now: Callable[[], float]) -> float:
    """Return when a file was written, in seconds since 1970: 0 without a file, now if the store does not know."""
    try:
        modified = files.stat(path).modified
    except FileMissingError:
        return 0.0
    return now() if modified is None else modified / 1000


def _read_times(options: Mapping[str, str]) -> tuple[float, float]:
    """Return interval and tolerance in seconds."""
    interval = write_keys.HEARTBEAT_INTERVAL_MS.read(options) / 1000
    return interval, interval * write_keys.HEARTBEAT_MISSES.read(options)


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Identifies a process, so that another process can know for certain that it has ended.

    On Linux the boot id, the namespace of process numbers, the number, and the start time identify a process. If one of
    these is unknown, or belongs to another machine, nothing is certain, and the process does not count as ended.

    Attributes:
        host: name of its machine or container.
        boot: boot id of the kernel; "" if unknown.
        namespace: the namespace of its process number.
        number: process id.
        began: start time in clock ticks since the boot.
    """

    host: str
    boot: str
    namespace: str
    number: int
    began: int

    @classmethod
    def read_own(cls) -> ProcessIdentity:
        """Return the identity of this process."""
        boot = namespace = ""
        with suppress(OSError):
            boot, namespace = _BOOT_ID.read_text().strip(), str(_NAMESPACE.readlink())
        number = os.getpid()
        state = _read_state(number)
        return cls(socket.gethostname(), boot if state else "", namespace, number, state[1] if state else 0)

    def to_bytes(self, token: str) -> bytes:
        """Encode, with a token that differs for each use by one process."""
        # One length for all processes of a machine: what is asked of the store must not depend on their numbers.
        fill = " " * max(0, _NUMBER_DIGITS - len(f"{self.number}{self.began}"))
        return json.dumps({**asdict(self), "token": token + fill}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ProcessIdentity | None:
        """Parse; None if the bytes are something else."""
        try:
            found = json.loads(data) if len(data) <= _LONGEST else None
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        host, boot, namespace = (found.get(name) for name in ("host", "boot", "namespace"))
        number, began = found.get("number"), found.get("began")
        if not isinstance(host, str) or not isinstance(boot, str) or not isinstance(namespace, str):
            return None
        if type(number) is not int or type(began) is not int or not 0 < number < _LARGEST_NUMBER:
            return None
        return cls(host, boot, namespace, number, began)

    def has_ended(self) -> bool:
        """Whether this process has certainly ended."""
        here = ProcessIdentity.read_own()
        if not self.boot or (self.host, self.boot, self.namespace) != (here.host, here.boot, here.namespace):
            return False
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return True
        except OSError:  # the process exists and belongs to another user
            pass
        # The number exists, but may belong to a later process: only the start time shows that.
        state = _read_state(self.number)
        return state is not None and (state[0] in _ENDED_STATES or state[1] != self.began)


def _read_state(number: int) -> tuple[str, int] | None:
    """Return a process's state and start time; None if the system does not show them."""
    try:
        process = Path(f"/proc/{number}")
        fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
        threads = len(list((process / "task").iterdir()))
    except OSError:
        return None
    if len(fields) <= _START_FIELD or not fields[_START_FIELD].isdigit():
        return None
    # A process whose main thread has ended looks like a zombie while other threads go on.
    return ("R" if threads > 1 else fields[0]), int(fields[_START_FIELD])
