"""The local file system.

Files appear under their name with all their bytes or not at all: they are written under another name in the same
folder, flushed to the disk, and then renamed, or linked where an existing file must stay. A symbolic link that leads
out of the root is refused.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from hoodie_storage.backend import Entry
from hoodie_storage.errors import PathError, ShortReadError, UnsupportedStoreError
from hoodie_storage.ranges import Range

_COPIED_AT_ONCE = 1024 * 1024
_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST})
# What link() answers on file systems that know no hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_NO_REPLACE = "file:// cannot replace a file only while it is unchanged"


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


class LocalBackend:
    """Files below one folder, which itself may be a symbolic link."""

    parallel = 4

    def __init__(self, root: str) -> None:
        self._root = root
        self._real_root = os.path.realpath(root)

    def inside(self, key: str) -> str:
        """Return the path with all symbolic links followed.

        Raises:
            PathError: it leads out of the root.
        """
        path = os.path.realpath(key)
        if not _is_below(path, self._real_root):
            self._real_root = os.path.realpath(self._root)  # a link may lead elsewhere by now
            if not _is_below(path, self._real_root):
                raise PathError("a symbolic link leads out of the store", path=key)
        return path

    def read(self, key: str) -> bytes:
        """Read a file."""
        return Path(self.inside(key)).read_bytes()

    def read_ranges(self, key: str, ranges: Sequence[Range]) -> list[bytes | Exception]:
        """Read each range."""
        with Path(self.inside(key)).open("rb", buffering=0) as file:
            return [_pread(file.fileno(), start, stop) for start, stop in ranges]

    def list(self, key: str) -> list[Entry]:
        """List a folder."""
        with os.scandir(self.inside(key)) as entries:
            return [found for found in map(_entry, entries) if found is not None]

    def stat(self, key: str) -> Entry:
        """Look at one place."""
        found = Path(self.inside(key)).stat()
        is_dir = stat.S_ISDIR(found.st_mode)
        return Entry("", 0, is_dir=True) if is_dir else Entry("", found.st_size, False, _milliseconds(found))

    def put(self, key: str, data: bytes) -> None:
        """Write a file, or write over it."""
        path = Path(self.inside(key))
        written = _write_beside(path, data)
        try:
            written.replace(path)
        except OSError:
            written.unlink(missing_ok=True)
            raise

    def create(self, key: str, data: bytes) -> None:
        """Write a file if there is none."""
        path = Path(self.inside(key))
        written = _write_beside(path, data)
        try:
            os.link(written, path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _write_in_place(path, data)
        finally:
            written.unlink(missing_ok=True)

    def create_from(self, key: str, source: str) -> None:
        """Copy a local file to a place where there is none."""
        path = Path(self.inside(key))
        path.parent.mkdir(parents=True, exist_ok=True)
        copy = path.with_name(f".{uuid4().hex}.tmp")
        try:
            _copy(source, copy)
            os.link(copy, path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _copy(source, path)
        finally:
            copy.unlink(missing_ok=True)

    def read_with_etag(self, key: str) -> tuple[bytes, str]:
        """Refuse: local files have no version marks."""
        raise UnsupportedStoreError(_NO_REPLACE)

    def replace(self, key: str, data: bytes, etag: str) -> str:
        """Refuse: a local file cannot be replaced only while it is unchanged."""
        raise UnsupportedStoreError(_NO_REPLACE)

    def delete(self, key: str) -> None:
        """Remove a file."""
        self.inside(str(Path(key).parent))
        Path(key).unlink()

    def remove_folder(self, key: str) -> None:
        """Remove a folder if it is empty."""
        self.inside(str(Path(key).parent))
        try:
            Path(key).rmdir()
        except OSError as error:
            if error.errno not in _NOT_EMPTY:
                raise


def _pread(descriptor: int, start: int, stop: int) -> bytes | Exception:
    pieces = []
    while start < stop:
        piece = os.pread(descriptor, stop - start, start)
        if not piece:
            return ShortReadError("the file is shorter than expected")
        pieces.append(piece)
        start += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _entry(entry: os.DirEntry[str]) -> Entry | None:
    try:
        if entry.is_dir():
            return Entry(entry.name, 0, is_dir=True)
        found = entry.stat()
        return Entry(entry.name, found.st_size, False, _milliseconds(found))
    except FileNotFoundError:  # removed meanwhile, or a link to nothing
        return None


def _milliseconds(found: os.stat_result) -> int:
    return found.st_mtime_ns // 1_000_000


def _write_beside(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    other = path.with_name(f".{uuid4().hex}.tmp")
    try:
        _write_in_place(other, data)
    except OSError:
        other.unlink(missing_ok=True)
        raise
    return other


def _write_in_place(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _copy(source: str, path: Path) -> None:
    with Path(source).open("rb") as content, path.open("xb") as file:
        shutil.copyfileobj(content, file, _COPIED_AT_ONCE)
        file.flush()
        os.fsync(file.fileno())
