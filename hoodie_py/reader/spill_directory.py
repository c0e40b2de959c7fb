"""A private directory for spill files that does not outlive its owner.

It is made with mode 0700 and a lock file that its owner holds locked (flock) for as long as it lives; the kernel lets
go of the lock in every ending, SIGKILL included.  Whoever makes a directory first removes those of the same user whose
lock nobody holds.  Nothing is followed through symbolic links.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
import weakref
from pathlib import Path

from hoodie_py.errors import StorageError

PREFIX = "hoodie_py-spill-"
_LOCK = "lock"
_ATTEMPTS = 10
_UNLOCKED_SECONDS = 3600  # a directory without a lock file may be one whose owner has not come that far
_HINT = "Free space there, give another directory by hoodie.memory.spillable.map.path, or raise memory_limit."


class SpillDirectory:
    """A directory of this process, removed by ``close``, at the latest when the object or the interpreter goes.

    Args:
        parent: where to make it; None for the system's directory for temporary files.

    Raises:
        StorageError: it cannot be made.
    """

    def __init__(self, parent: str | None = None) -> None:
        place = Path(tempfile.gettempdir() if parent is None else parent)
        try:
            remove_abandoned(place)
            self.path, lock = _make(place)
        except OSError as error:
            raise make_spill_error(error, str(place)) from error
        self._close = weakref.finalize(self, _remove, str(self.path), lock, os.getpid())

    def close(self) -> None:
        """Remove the directory and all in it; closing again does nothing."""
        self._close()


def make_spill_error(error: OSError, directory: str) -> StorageError:
    """Return the error that says that spilling to a directory failed, and what helps."""
    reason = (error.strerror or str(error)).rstrip(".")
    return StorageError(f"Log rows cannot be spilled to disk: {reason}.", hint=_HINT, operation="spill", path=directory)


def remove_abandoned(parent: Path) -> None:
    """Remove the spill directories of this user whose owners are gone; what cannot be removed stays."""
    for entry in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # somebody else removes it, or it is not ours to remove
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
    """Make a directory and lock it; another process that took it for abandoned meanwhile makes us try again."""
    for _ in range(_ATTEMPTS):
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(lock).st_nlink:
                return path, lock
        except BlockingIOError:
            pass  # somebody has it locked in order to remove it
        except OSError:
            os.close(lock)
            shutil.rmtree(path, ignore_errors=True)
            raise
        os.close(lock)
    raise OSError(f"no directory stayed locked in {_ATTEMPTS} attempts")


def _remove(path: str, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # a forked child has inherited the object, not the directory
        shutil.rmtree(path, ignore_errors=True)
    os.close(lock)
