"""What can be asked of a store: one protocol for each verb, so that a function asks for no more than it uses.

Paths are relative to the store's root, ``/``-separated, without leading slash; ``""`` is the root. Every verb raises
StorageFault or one of its kinds; a path that leads out of the store is a PathError before anything is asked of the
store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file or folder: path relative to the store's root, size in bytes (0 for folders)."""

    path: str
    size: int
    is_dir: bool

    @property
    def name(self) -> str:
        """Last segment of the path."""
        return self.path.rpartition("/")[2]


class Read(Protocol):
    """Whole files."""

    def read(self, path: str) -> bytes:
        """Return the whole file as it was at one moment. Raises NotFoundError."""
        ...


class ReadRanges(Protocol):
    """Parts of files."""

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        """Return the bytes from start up to stop: exactly that many, else ShortReadError."""
        ...

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of every range, in the order asked; ranges may overlap and are fetched in few requests."""
        ...


class List(Protocol):
    """Folders."""

    def list_many(self, paths: Sequence[str]) -> list[list[FileInfo]]:
        """List several folders at once and return the listings in the order asked."""
        ...

    def list(self, path: str) -> list[FileInfo]:
        """Return the files and folders right inside a folder, by name, never from a cache.

        A store without folders has the folders that files are in. Raises NotFoundError for a folder that does not
        exist.
        """
        ...


class Stat(Protocol):
    """Facts about one path."""

    def stat(self, path: str) -> FileInfo:
        """Return kind and size. Raises NotFoundError."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        ...


class Put(Protocol):
    """Files written, or written over."""

    def put(self, path: str, data: bytes) -> None:
        """Write a file whole: readers see the old file or the new one, never a part. Folders are made as needed.

        Tried again only where the store said that it did nothing.
        """
        ...


class PutIfAbsent(Protocol):
    """Files written once: what commits are made of."""

    def put_if_absent(self, path: str, data: bytes, *, unique: bool = False) -> None:
        """Write a file whole if there is none; of several writers at once exactly one returns.

        Args:
            path: where.
            data: the content.
            unique: nobody else would write these very bytes. A file that holds them is then this writer's own, from an
                attempt whose answer got lost, and counts as written. (HTTP clients repeat a request by themselves when
                a connection breaks, and then are told that the file is there.)

        Raises:
            AlreadyExistsError: a file is there, and ``identical`` tells whether with the same content.
            UnknownOutcomeError: the answer got lost and reading back did not tell; nothing may be cleaned up.
        """
        ...


class Delete(Protocol):
    """Files removed."""

    def delete(self, path: str) -> None:
        """Remove a file; one that is not there is no error."""
        ...
