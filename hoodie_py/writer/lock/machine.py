"""The lock without a lock provider: it excludes every process of this machine that can write the table.

It is the operating system's advisory lock (flock). For a table on a local disk it locks the ``.hoodie`` folder, so
every writer that reaches the table reaches the lock: other users, another TMPDIR, containers that mount it, links,
relative paths. Locking writes nothing, and needs only the right to list the timeline. On NFS it does not exclude other
machines. For a table elsewhere the lock is on a file named after the table, in one folder for all users.

A killed process leaves nothing locked. A stopped one keeps the lock.
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
_PLACE = "/tmp/hoodie_py-locks"  # noqa: S108 - processes of one machine may have different TMPDIRs
_SHARED_FOLDER = 0o1777
_SHARED_FILE = 0o666


class MachineLock:
    """Excludes the other threads and processes of this machine, of all users.

    The location of ``files`` identifies the table.

    Examples:
        >>> lock = MachineLock(trips.files)
        >>> trips.delete(["a"], lock=lock).rows_deleted
        1
    """

    renew_every: float | None = None

    def __init__(self, files: TableFiles) -> None:
        self._table = files.local_path("") or files.uri
        self._folder = files.local_path(METADATA_FOLDER)
        self._path = ""
        self._descriptor: int | None = None

    def acquire(self, timeout: float) -> None:
        """Take the lock. Raises ConflictError after ``timeout`` seconds, StorageError if there is nothing to lock."""
        deadline = time.monotonic() + timeout
        while not self._try():
            if time.monotonic() >= deadline:
                raise ConflictError(
                    "Another writer on this machine has the table.", hint="Try again later.", table=self._table
                )
            time.sleep(_PAUSE)

    def renew(self) -> None:
        """Check that the lock is held. It is lost once the locked folder or file is removed or replaced."""
        if self._descriptor is None:
            raise ConflictError("The lock is not held.", table=self._table)
        if not _is_at(self._descriptor, self._path):
            raise ConflictError("What was locked is no longer there: the table was removed.", path=self._path)

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # closing alone would not unlock a forked child's copy
            os.close(self._descriptor)
            self._descriptor = None

    def _try(self) -> bool:
        try:
            self._path, descriptor = self._open()
        except FileExistsError:
            return False  # another process has just created the file
        except OSError as error:
            raise StorageError(f"There is nothing to lock: {error}", table=self._table) from error
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The file may have been replaced since it was opened; then another process may lock the new one.
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
    """Whether a path still leads to the opened file."""
    try:
        return os.path.samestat(os.fstat(descriptor), Path(path).stat())
    except FileNotFoundError:
        return False


def _open_shared(path: str) -> int:
    """Open a file that every user may lock, or create it. The right to read it is enough to lock it.

    Opening comes before creating: in a folder that all may write to, Linux refuses O_CREAT on another user's file.
    """
    _make_place()
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, os.O_RDONLY | flags)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, _SHARED_FILE)
        os.fchmod(descriptor, _SHARED_FILE)
    with suppress(OSError):
        os.utime(descriptor)  # programs that clean temporary folders delete old files
    return descriptor


def _make_place() -> None:
    """Create the folder of lock files.

    Raises:
        OSError: it cannot be created, or is a link or a file.
    """
    with suppress(FileExistsError):
        Path(_PLACE).mkdir()
        Path(_PLACE).chmod(_SHARED_FOLDER)
    if not stat.S_ISDIR(Path(_PLACE).lstat().st_mode):
        raise NotADirectoryError(f"{_PLACE} is no folder")
