"""The lock of writers that were told of no other: it excludes every process of this machine that can write the table.

It is the operating system's advisory lock. Of a table on a disk the ``.hoodie`` folder itself is locked, so whoever
reaches the table reaches the lock: other users, another TMPDIR, containers that mount it, links, relative paths.
Nothing is written, and who may list the timeline may lock it. On NFS and the like such a lock ends at the machine.

Tables elsewhere have no such folder. For them a file is locked that is named after the table, in one place for all
users.

A process that is killed leaves nothing locked; one that is stopped keeps the lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from hoodie_py.errors import ConflictError, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.formats.names import METADATA_FOLDER

_PAUSE = 0.02
_PLACE = "/tmp/hoodie_py-locks"  # noqa: S108 - TMPDIR is what processes of one machine do not share
_SHARED_FOLDER = 0o1777
_SHARED_FILE = 0o666


class MachineLock:
    """Excludes the other threads and processes of this machine, whoever runs them.

    Args:
        files: the table's files; tables are told apart by where they are.
    """

    renew_every: float | None = None

    def __init__(self, files: TableFiles) -> None:
        self._table = files.local_path("") or files.uri
        self._folder = files.local_path(METADATA_FOLDER)
        self._path = ""
        self._descriptor: int | None = None

    def acquire(self, timeout: float) -> None:
        """Take the lock. Raises ConflictError after so many seconds, StorageError where there is nothing to lock."""
        deadline = time.monotonic() + timeout
        while not self._try():
            if time.monotonic() >= deadline:
                raise ConflictError(
                    "Another writer on this machine has the table.", hint="Try again later.", table=self._table
                )
            time.sleep(_PAUSE)

    def renew(self) -> None:
        """Make sure that the lock is held. It is lost where what was locked has been removed or replaced."""
        if self._descriptor is None:
            raise ConflictError("The lock is not held.", table=self._table)
        if not _is_at(self._descriptor, self._path):
            raise ConflictError("What was locked is no longer there: the table was removed.", path=self._path)

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also for a copy that a forked child may have
            os.close(self._descriptor)
            self._descriptor = None

    def _try(self) -> bool:
        try:
            self._path, descriptor = self._open()
        except FileExistsError:
            return False  # another one has just made it
        except OSError as error:
            raise StorageError(f"There is nothing to lock: {error}", table=self._table) from error
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, self._path):
                self._descriptor = descriptor
                return True
        os.close(descriptor)
        return False

    def _open(self) -> tuple[str, int]:
        if self._folder is None:
            path = f"{_PLACE}/{hashlib.sha256(self._table.encode()).hexdigest()}"
            return path, _open_shared(path)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        with suppress(FileNotFoundError):
            return self._folder, os.open(self._folder, flags)
        Path(self._table).mkdir(parents=True, exist_ok=True)  # there is no table yet
        return self._table, os.open(self._table, flags)


def _is_at(descriptor: int, path: str) -> bool:
    """Whether a path still leads to what was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), Path(path).stat())
    except FileNotFoundError:
        return False


def _open_shared(path: str) -> int:
    """Open a file that every user may lock, and make it if need be; to lock it, reading is enough.

    It is opened before it is made: in folders that all may write to, Linux lets nobody "create" another user's file.
    """
    _make_place()
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, os.O_RDONLY | flags)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, _SHARED_FILE)
        os.fchmod(descriptor, _SHARED_FILE)
    with suppress(OSError):
        os.utime(descriptor)  # those who tidy up such folders go by age
    return descriptor


def _make_place() -> None:
    """Make the folder of lock files.

    Raises:
        OSError: it cannot be made, or is a link or a file.
    """
    with suppress(FileExistsError):
        Path(_PLACE).mkdir()
        Path(_PLACE).chmod(_SHARED_FOLDER)
    if not stat.S_ISDIR(Path(_PLACE).lstat().st_mode):
        raise NotADirectoryError(f"{_PLACE} is no folder")
