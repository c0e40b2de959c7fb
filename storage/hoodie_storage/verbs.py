"""What can be asked of a store: one protocol for each verb, so that a function asks for no more than it uses.

Paths are relative to the store's root, ``/``-separated, without leading slash; ``""`` is the root. Every verb raises
StorageFault or one of its kinds; a path that leads out of the store is a PathError before anything is asked of the
store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file or folder: path relative to the store's root, size in bytes (0 for folders).

    ``modified`` is when the file was written, in milliseconds since 1970 by the store's clock; None where the store
    does not say. ``is_link`` says that it is a symbolic link itself, which only local disks have.
    Both are no part of the value.
    """

    path: str
    size: int
    is_dir: bool
    modified: int | None = field(default=None, compare=False)
    is_link: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """Last segment of the path."""
        return self.path.rpartition("/")[2]


class Read(Protocol):
    """Whole files."""

    def read(self, path: str, most: int | None = None) -> bytes:
        """Return the whole file as it was at one moment, or ``most`` bytes of a longer one. Raises NotFoundError."""
        ...

    def read_view(self, path: str, memory: Callable[[int], memoryview]) -> memoryview:
        """Return the whole file for reading only, as ``read`` does; a local one in the memory that is given for its
        size in bytes.
        """
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

    def create_from(self, path: str, source: str) -> None:
        """Copy a local file to a place that nobody else uses; a file of its size there counts as this copy.

        Raises AlreadyExistsError where a file of another size is, UnknownOutcomeError where the store did not say.
        """
        ...


class PutIfMatch(Protocol):
    """Files replaced by one of several who try: what locks are made of. Not every store can."""

    def read_with_etag(self, path: str) -> tuple[bytes, str]:
        """Return a whole file and the store's mark of this version of it.

        Raises:
            NotFoundError: there is no such file.
            UnsupportedStoreError: the store cannot replace a file by its mark.
        """
        ...

    def put_if_match(self, path: str, data: bytes, etag: str, *, unique: bool = False) -> str:
        """Write over a file if it still is the version with this mark, and return the mark of the new one.

        Args:
            path: where.
            data: the content.
            etag: the mark of the version to replace.
            unique: nobody else would write these very bytes, so a file that holds them is this writer's own.

        Raises:
            ChangedError: the file is another version by now, or is gone.
            UnknownOutcomeError: the answer got lost and reading back did not tell.
            UnsupportedStoreError: the store cannot do it.
        """
        ...


class Delete(Protocol):
    """Files removed."""

    def delete(self, path: str) -> None:
        """Remove a file; one that is not there is no error."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove a folder if it is empty; one that is not there, or where a file came meanwhile, is no error."""
        ...
