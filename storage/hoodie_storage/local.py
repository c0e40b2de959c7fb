"""The backend of the local file system.

A file appears under its name with all its bytes or not at all. It is written under a scratch name in the same folder,
flushed to the disk, and then renamed. To create a file without replacing one, the scratch file is linked to its name.
On file systems without hard links it is renamed by a system call that does not replace files. A symbolic link that
leads out of the root is refused.

A writer holds a lock on its scratch file until the file has its final name; a killed process leaves it behind unlocked.
An unlocked scratch file that is a day old is abandoned and may be removed.
"""

from __future__ import annotations

import builtins
import ctypes
import errno
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from typing import IO, TYPE_CHECKING
from uuid import uuid4

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from pathlib import Path

from hoodie_storage.errors import PathError, ShortReadError, UnsupportedStoreError
from hoodie_storage.ranges import Range
from hoodie_storage.verbs import FileInfo

_COPIED_AT_ONCE = 1024 * 1024
_READ_AT_ONCE = 1 << 24
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # open a pipe without waiting for its other end
_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST})
# The errors of link() on file systems without hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_NO_REPLACE = "file:// cannot replace a file only while it is unchanged"
_SCRATCH = re.compile(r"\.[0-9a-f]{32}\.tmp")
_ABANDONED = 24 * 3600.0  # seconds; the lock is not enough: on some network file systems other machines do not see it
# Linux: renameat2 with RENAME_NOREPLACE; macOS: renamex_np with RENAME_EXCL.
_HERE, _NO_REPLACING, _EXCLUSIVE = -100, 1, 4


def _make_path(*parts: str) -> Path:
    from pathlib import Path  # imported here, since a read saves 0.6 MB of modules without it

    return Path(*parts)


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


class LocalBackend:
    """The ``Backend`` of files below one folder; the folder itself may be a symbolic link."""

    parallel = 4

    def __init__(self, root: str) -> None:
        self._root = root
        self._real_root = os.path.realpath(root)

    def resolve(self, key: str) -> str:
        """Return the path with all symbolic links followed. Raises PathError if the path leads out of the root."""
        if self._has_no_links(key):
            return key
        path = os.path.realpath(key)
        if not _is_below(path, self._real_root):
            self._real_root = os.path.realpath(self._root)  # a link above the root may have changed
            if not _is_below(path, self._real_root):
                raise PathError("a symbolic link leads out of the store", path=key)
        return path

    def _has_no_links(self, key: str) -> bool:
        """Say whether a file exists and no part of its path below the root is a symbolic link.

        It is faster than ``realpath``, because the constructor has checked the parts above the root.
        """
        if self._real_root != self._root or not _is_below(key, self._root):
            return False
        at = len(self._root)
        try:
            while at < len(key):
                end = key.find("/", at + 1)
                at = len(key) if end < 0 else end
                if stat.S_ISLNK(os.lstat(key[:at]).st_mode):
                    return False
        except OSError:
            return False
        return True

    def find_file(self, key: str) -> str:
        """Return the path with all symbolic links followed; it may be a folder, or not exist.

        Raises PathError if the path leads out of the root, or is a pipe, socket or device.
        """
        path = self.resolve(key)
        try:
            mode = os.stat(path).st_mode
        except OSError:
            return path
        if not stat.S_ISDIR(mode):
            _check_regular(mode)
        return path

    def read(self, key: str, most: int | None = None) -> bytes:
        with self._open(key) as file:
            if most is None:
                return file.readall()
            pieces = []
            while most > 0 and (piece := file.read(min(most, _READ_AT_ONCE))):
                pieces.append(piece)
                most -= len(piece)
        return b"".join(pieces)

    def _open(self, key: str) -> FileIO:
        """Open a file for reading, without waiting for the other end of a pipe."""
        return FileIO(self.resolve(key), opener=_open_regular)

    def read_view(self, key: str, memory: Callable[[int], memoryview]) -> memoryview:
        """Read a file into the caller's memory; bytes that are appended during the read are left out."""
        with self._open(key) as file:
            content = memory(os.fstat(file.fileno()).st_size)
            read = 0
            while read < len(content) and (count := file.readinto(content[read:])):
                read += count
        return content[:read]

    def read_ranges(self, key: str, ranges: Sequence[Range]) -> list[bytes | Exception]:
        with self._open(key) as file:
            return [_pread(file.fileno(), start, stop) for start, stop in ranges]

    def list(self, key: str) -> list[FileInfo]:
        with os.scandir(self.resolve(key)) as entries:
            return [found for found in map(_make_entry, entries) if found is not None]

    def list_names(self, key: str) -> builtins.list[str]:
        # Only links need a system call: the folder's entries say whether the others are folders.
        with os.scandir(self.resolve(key)) as entries:
            return [
                f"{entry.name}/" if entry.is_dir() else entry.name
                for entry in entries
                if not entry.is_symlink() or _make_entry(entry) is not None
            ]

    def is_file(self, key: str) -> bool:
        path = self.resolve(key)
        return os.path.exists(path) and not os.path.isdir(path)

    def list_tree(self, key: str) -> builtins.list[FileInfo]:
        found: builtins.list[FileInfo] = []
        folders = [""]
        while folders:
            folder = folders.pop()
            with suppress(FileNotFoundError):
                for each in self.list(f"{key}/{folder}" if folder else key):
                    path = f"{folder}/{each.path}" if folder else each.path
                    if each.is_dir and not each.is_link:
                        folders.append(path)
                    elif not each.is_dir:
                        found.append(FileInfo(path, each.size, False, each.modified, each.is_link))
        return found

    def stat(self, key: str) -> FileInfo:
        found = os.stat(self.resolve(key))
        is_dir = stat.S_ISDIR(found.st_mode)
        is_link = os.path.islink(key)
        if is_dir:
            return FileInfo("", 0, is_dir=True, is_link=is_link)
        return FileInfo("", found.st_size, False, _find_modified(found), is_link)

    def put(self, key: str, data: bytes) -> None:
        path = _make_path(self.resolve(key))
        with _open_scratch(path) as (scratch, file):
            _write(file, data)
            scratch.replace(path)

    def create(self, key: str, data: bytes) -> None:
        path = _make_path(self.resolve(key))
        with _open_scratch(path) as (scratch, file):
            _write(file, data)
            _give_name(scratch, path)

    def create_from(self, key: str, source: str) -> None:
        from shutil import copyfileobj

        path = _make_path(self.resolve(key))
        with _open_scratch(path) as (scratch, file):
            with _make_path(source).open("rb") as content:
                copyfileobj(content, file, _COPIED_AT_ONCE)
            _flush(file)
            _give_name(scratch, path)

    def remove_scratch(self, key: str) -> int:
        """Remove abandoned scratch files below a folder, and return their number."""
        walked = os.walk(self.resolve(key))
        return sum(
            _remove_abandoned(_make_path(folder, name))
            for folder, _, names in walked
            for name in names
            if _SCRATCH.fullmatch(name)
        )

    def read_with_etag(self, key: str) -> tuple[bytes, str]:
        """Raise UnsupportedStoreError: local files have no ETags."""
        raise UnsupportedStoreError(_NO_REPLACE)

    def replace(self, key: str, data: bytes, etag: str) -> str:
        """Raise UnsupportedStoreError: a local file cannot be replaced conditionally."""
        raise UnsupportedStoreError(_NO_REPLACE)

    def delete(self, key: str) -> None:
        self.resolve(str(_make_path(key).parent))
        _make_path(key).unlink()

    def delete_many(self, keys: Sequence[str]) -> None:
        for key in keys:
            with suppress(FileNotFoundError):
                self.delete(key)

    def remove_folder(self, key: str) -> None:
        self.resolve(str(_make_path(key).parent))
        try:
            _make_path(key).rmdir()
        except OSError as error:
            if error.errno not in _NOT_EMPTY:
                raise


def _open_regular(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | _NO_WAITING)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISDIR(mode):  # FileIO raises its own error for a folder
            _check_regular(mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(mode: int) -> None:
    """Refuse pipes, sockets and devices: a read of one may wait forever, or never end."""
    if not stat.S_ISREG(mode):
        raise PathError("there is a pipe, socket or device in place of a file", hint="Remove it.")


def _pread(descriptor: int, start: int, stop: int) -> bytes | Exception:
    pieces = []
    while start < stop:
        piece = os.pread(descriptor, stop - start, start)
        if not piece:
            return ShortReadError("the file is shorter than expected")
        pieces.append(piece)
        start += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _make_entry(entry: os.DirEntry[str]) -> FileInfo | None:
    try:
        if entry.is_dir():
            return FileInfo(entry.name, 0, is_dir=True, is_link=entry.is_symlink())
        found = entry.stat()
        return FileInfo(entry.name, found.st_size, False, _find_modified(found), entry.is_symlink())
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):  # just removed, or a link to nothing or to itself
            return None
        raise


def _find_modified(found: os.stat_result) -> int:
    return found.st_mtime_ns // 1_000_000


@contextmanager
def _open_scratch(path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """Yield a locked scratch file in the folder of ``path``; it is removed at the end unless it was renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{uuid4().hex}.tmp")
    try:
        with scratch.open("xb") as file:
            _lock(file)
            yield scratch, file
    finally:
        scratch.unlink(missing_ok=True)


def _write(file: IO[bytes], data: bytes) -> None:
    file.write(data)
    _flush(file)


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _lock(file: IO[bytes]) -> bool:
    """Try to lock a file; return False if it is locked, or if the file system has no locks."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_abandoned(scratch: Path) -> bool:
    """Remove a scratch file if it is abandoned: old and unlocked."""
    with suppress(FileNotFoundError, PermissionError):  # removed by another process, or another user's
        found = scratch.stat(follow_symlinks=False)
        if time.time() - found.st_mtime < _ABANDONED or not stat.S_ISREG(found.st_mode):
            return False
        with scratch.open("r+b") as file:
            if _lock(file):
                scratch.unlink()
                return True
    return False


def _give_name(scratch: Path, path: Path) -> None:
    """Give a scratch file its final name.

    Raises:
        FileExistsError: a file of that name exists.
        UnsupportedStoreError: the file system cannot do it without the risk of replacing a file.
    """
    try:
        # Unlike a rename, a link never replaces a file.
        os.link(scratch, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        number = _rename_without_replacing(scratch, path)
        if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP):
            raise UnsupportedStoreError(
                "this file system has neither hard links nor a rename that replaces nothing",
                hint="A writer that is killed could leave half a file there; keep the table on another file system.",
            ) from error
        if number:
            raise OSError(number, os.strerror(number), str(path)) from None


def _rename_without_replacing(scratch: Path, path: Path) -> int:
    """Rename a file without replacing one; return 0 or the errno."""
    if sys.platform == "win32":
        return errno.ENOSYS
    library = ctypes.CDLL(None, use_errno=True)
    old, new = os.fsencode(scratch), os.fsencode(path)
    if hasattr(library, "renameat2"):
        failed = library.renameat2(_HERE, old, _HERE, new, _NO_REPLACING)
    elif hasattr(library, "renamex_np"):
        failed = library.renamex_np(old, new, _EXCLUSIVE)
    else:
        return errno.ENOSYS
    return ctypes.get_errno() if failed else 0
