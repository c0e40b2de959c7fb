"""The local file system.

Files appear under their name with all their bytes or not at all: they are written under another name in the same
folder, flushed to the disk, and then renamed, or linked where an existing file must stay. A symbolic link that leads
out of the root is refused.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

from hoodie_storage.backend import Entry
from hoodie_storage.errors import PathError, ShortReadError
from hoodie_storage.ranges import Range

# What link() answers on file systems that know no hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class LocalBackend:
    """Files below one folder, which itself may be a symbolic link."""

    parallel = 4

    def __init__(self, root: str) -> None:
        self._root = root

    def inside(self, key: str) -> str:
        """Return the path with all symbolic links followed.

        Raises:
            PathError: it leads out of the root.
        """
        root, path = os.path.realpath(self._root), os.path.realpath(key)
        if path != root and not path.startswith(root.rstrip("/") + "/"):
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
        return Entry("", 0 if is_dir else found.st_size, is_dir)

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

    def delete(self, key: str) -> None:
        """Remove a file."""
        self.inside(str(Path(key).parent))
        Path(key).unlink()


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
        return Entry(entry.name, entry.stat().st_size, is_dir=False)
    except FileNotFoundError:  # removed meanwhile, or a link to nothing
        return None


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
