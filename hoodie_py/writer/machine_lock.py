"""The lock for a table whose only writers are one user's processes on one machine (as Hudi's in-process lock in Java).

The operating system's advisory lock on a file in the temporary folder, named after the table: threads exclude each
other as well as processes, and a process that is killed leaves nothing locked. Nothing is written into the table.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
from pathlib import Path

from hoodie_py.errors import ConflictError, StorageError
from hoodie_py.files import TableFiles

_PAUSE = 0.02


class MachineLock:
    """Excludes the other threads and processes of this user on this machine.

    Args:
        files: the table's files; tables are told apart by where they are.
    """

    renew_every: float | None = None

    def __init__(self, files: TableFiles) -> None:
        self._table = files.local_path("") or files.uri
        self._descriptor: int | None = None

    def acquire(self, timeout: float) -> None:
        """Take the lock. Raises ConflictError after so many seconds, StorageError without a temporary folder."""
        deadline = time.monotonic() + timeout
        name = hashlib.sha256(self._table.encode()).hexdigest()
        try:
            descriptor = os.open(_folder() / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageError(f"There is no place for a lock file: {error}", hint="Set TMPDIR.") from error
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(descriptor)
                    raise ConflictError(
                        "Another writer on this machine has the table.", hint="Try again later.", table=self._table
                    ) from None
                time.sleep(_PAUSE)
            else:
                self._descriptor = descriptor
                return

    def renew(self) -> None:
        """Make sure that the lock was taken; it cannot be lost."""
        if self._descriptor is None:
            raise ConflictError("The lock is not held.", table=self._table)

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also for a copy that a forked child may have
            os.close(self._descriptor)
            self._descriptor = None


def _folder() -> Path:
    """Return this user's folder of lock files.

    Raises:
        OSError: it cannot be made, or belongs to somebody else.
    """
    folder = Path(tempfile.gettempdir()) / f"hoodie_py-locks-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user")
    return folder
