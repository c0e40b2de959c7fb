"""The verbs of a store: one protocol for each, so that a function requires only the verbs that it uses.

Paths are relative to the store's root, ``/``-separated, without leading slash; ``""`` is the root. Every verb raises
StorageFault or a subclass. For a path that leads out of the store it raises PathError, before any request.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file or folder; ``path`` is relative to the store's root."""

    path: str
    size: int  # in bytes, 0 for a folder
    is_dir: bool
    modified: int | None = field(default=None, compare=False)  # in milliseconds since 1970 by the store's clock
    is_link: bool = field(default=False, compare=False)  # a symbolic link, which only local disks have

    @property
    def name(self) -> str:
        """Last segment of the path."""
        return self.path.rpartition("/")[2]


class Read(Protocol):
    """Whole files."""

    def read(self, path: str, most: int | None = None) -> bytes:
        """Return the whole file, or its first ``most`` bytes: one version of it. Raises NotFoundError."""
        ...

    def read_view(self, path: str, memory: Callable[[int], memoryview]) -> memoryview:
        """Return the whole file as a read-only view. Raises NotFoundError.

        ``memory(size)`` returns writable memory, into which a local file is read.
        """
        ...


class ReadRanges(Protocol):
    """Parts of files."""

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        """Return the bytes from ``start`` to ``stop``. Raises ShortReadError if the file is shorter."""
        ...

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of every range, in the given order; ranges may overlap and are fetched in few requests.

        Raises ShortReadError if the file is shorter.
        """
        ...


class List(Protocol):
    """Folders."""

    def list_many(self, paths: Sequence[str]) -> list[list[FileInfo]]:
        """List several folders at once and return the listings in the given order. Raises NotFoundError."""
        ...

    def list(self, path: str) -> list[FileInfo]:
        """Return the files and folders directly inside a folder, by name, never from a cache.

        In a store without real folders, a folder exists if a file is in it. Raises NotFoundError.
        """
        ...

    def list_names(self, path: str) -> frozenset[str]:
        """Return the bare names of what ``list`` returns; names of folders end with a slash.

        On local disks this is several times faster, since sizes and times are not looked up. Raises NotFoundError.
        """
        ...

    def list_tree(self, path: str) -> builtins.list[FileInfo]:
        """Return all files below a folder, at any depth, by path; nothing for a missing folder.

        Links to folders are not followed. Object stores answer with one request for a thousand names.
        """
        ...


class Stat(Protocol):
    """Facts about one path."""

    def stat(self, path: str) -> FileInfo:
        """Return the kind and size of a file or folder. Raises NotFoundError."""
        ...

    def exists(self, path: str) -> bool:
        """Say whether a file or folder exists."""
        ...

    def has_file(self, path: str) -> bool:
        """Say whether a file exists, by one request; a folder is none."""
        ...


class Put(Protocol):
    """Files written or overwritten."""

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file: readers see the old file or the new one, never a part. Missing folders are made.

        It is retried only if the store certainly did nothing.
        """
        ...


class PutIfAbsent(Protocol):
    """Files written once: commits need this verb."""

    def put_if_absent(self, path: str, data: bytes, *, unique: bool = False) -> None:
        """Write a whole file that does not exist; of several writers at once, exactly one succeeds.

        ``unique`` says that no other writer writes the same bytes. A file with these bytes is then this writer's own
        and counts as written: HTTP clients repeat a request when a connection breaks, and the store then answers that
        the file exists.

        Raises:
            AlreadyExistsError: the file exists; ``identical`` says whether it has the same content.
            UnknownOutcomeError: the answer was lost, and reading the file did not settle whether it was written. The
                caller must not clean up.
        """
        ...

    def create_from(self, path: str, source: str) -> None:
        """Copy a local file to a path that no other writer uses; an existing file of its size counts as this copy.

        Raises:
            AlreadyExistsError: a file of another size exists.
            UnknownOutcomeError: it is not known whether the file was written.
        """
        ...


class PutIfMatch(Protocol):
    """Files replaced conditionally: locks need this verb. Not every store has it."""

    def read_with_etag(self, path: str) -> tuple[bytes, str]:
        """Return a whole file and its ETag, the store's mark of this version.

        Raises:
            NotFoundError: the file does not exist.
            UnsupportedStoreError: the store has no conditional writes.
        """
        ...

    def put_if_match(self, path: str, data: bytes, etag: str, *, unique: bool = False) -> str:
        """Overwrite a file if it still has an ETag, and return its new ETag; ``unique`` is as for ``put_if_absent``.

        Raises:
            ChangedError: the file has another ETag, or does not exist.
            UnknownOutcomeError: the answer was lost, and reading the file did not settle whether it was written.
            UnsupportedStoreError: the store has no conditional writes.
        """
        ...


class Delete(Protocol):
    """Files removed."""

    def delete(self, path: str) -> None:
        """Remove a file; a missing file is no error."""
        ...

    def delete_many(self, paths: Sequence[str]) -> None:
        """Remove files; missing ones are no error. Where the store can, one request removes many."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove a folder if it is empty; a missing folder, or one that is not empty, is no error."""
        ...
