"""SpillDirectory: a private directory for spill files, removed when its process ends or soon after.

It has mode 0700 and a lock file that its process keeps locked (flock). The kernel releases the lock whatever ends the
process, SIGKILL included. A process that makes a directory first removes the directories of the same user that nobody
has locked. Symbolic links are not followed.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import stat
import tempfile
import time
import weakref
from pathlib import Path

from hoodie_py.errors import StorageError

_log = logging.getLogger(__name__)
PREFIX = "hoodie_py-spill-"
_LOCK = "lock"
_ATTEMPTS = 10
_UNLOCKED_SECONDS = 3600  # a younger directory without a lock file may be one that another process is making
_HINT = "Free space there, give another directory by hoodie.memory.spillable.map.path, or raise memory_limit."


class SpillDirectory:
    """A directory of this process, removed by ``close``, or at the latest with the object or the interpreter.

    Raises:
        StorageError: the directory cannot be made.
    """

    def __init__(self, parent: str | None = None) -> None:
        place = Path(tempfile.gettempdir() if parent is None else parent)
        try:
            remove_abandoned(place)
            self.path, lock = _make(place)
        except OSError as error:
            raise make_spill_error(error, str(place)) from error
        self._close = weakref.finalize(self, _remove, str(self.path), lock, os.getpid())
        _log.info("Log records beyond the memory limit go to %s", self.path)

    def close(self) -> None:
        """Remove the directory with its files; closing again does nothing."""
        self._close()


def make_spill_error(error: OSError, directory: str) -> StorageError:
    """Return the error for a spill directory that failed, with a remedy."""
    reason = (error.strerror or str(error)).rstrip(".")
    return StorageError(f"Log rows cannot be spilled to disk: {reason}.", hint=_HINT, operation="spill", path=directory)


def remove_abandoned(parent: Path) -> None:
    """Remove this user's spill directories whose processes have ended; directories that cannot be removed stay."""
    for entry in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # another process removes it, or this user may not
            if _is_own_directory(entry) and _is_abandoned(entry):
                shutil.rmtree(entry)


def _is_own_directory(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()


def _is_abandoned(directory: Path) -> bool:
    try:
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return time.time() - directory.lstat().st_mtime > _UNLOCKED_SECONDS
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _make(parent: Path) -> tuple[Path, int]:
    """Make a directory and lock it; try again if another process removes it before it is locked."""
    for _ in range(_ATTEMPTS):
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock).st_nlink:
                return path, lock
        except BlockingIOError:
            pass  # another process has locked it to remove it
        except OSError:
            os.close(lock)
            shutil.rmtree(path, ignore_errors=True)
            raise
        os.close(lock)
    raise OSError(f"no directory stayed locked in {_ATTEMPTS} attempts")


def _remove(path: str, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # a forked child has the object, but the directory belongs to its parent
        shutil.rmtree(path, ignore_errors=True)
    os.close(lock)
