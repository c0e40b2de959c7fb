"""The files of one table: the verbs of hoodie_storage, with this package's errors.

The one place where storage faults become StorageError, so that a user meets a single tree of exceptions, each naming
operation, path, cause and remedy. Nothing else in the package imports hoodie_storage or fsspec.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from hoodie_py.errors import (
    CommitStateUnknownError,
    ConflictError,
    FileMissingError,
    HoodieError,
    InvalidTableError,
    StorageError,
)
from hoodie_storage import (
    AlreadyExistsError,
    ChangedError,
    FileInfo,
    NotFoundError,
    PathError,
    RangedFile,
    StorageFault,
    Store,
    UnknownOutcomeError,
    UnsupportedStoreError,
    open_store,
)

__all__ = ["FileInfo", "RangedFile", "TableFiles"]

P = ParamSpec("P")
T = TypeVar("T")

_EXTRAS = {"s3fs": "pip install 'hoodie_py[s3]'"}


class TableFiles:
    """Files below a table's base path. Can be pickled, is safe to share between threads, and survives a fork.

    Paths are relative to the base path, ``/``-separated; ``""`` is the base path. Every method raises StorageError,
    of which FileMissingError is one kind, and InvalidTableError for a path that leads out of the table.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @classmethod
    def open(cls, uri: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> TableFiles:
        """Return the files at a URI or local path. Nothing is asked of the store yet.

        Raises:
            StorageError: the URI or an option cannot be understood.
        """
        try:
            return cls(open_store(uri, storage_options))
        except StorageFault as fault:
            problem = fault
        raise StorageError(problem.reason, hint=problem.hint, operation="open", path=problem.path) from problem

    @property
    def uri(self) -> str:
        """The base path without credentials: an absolute path where it is local, else a URI."""
        return self._store.uri

    def read(self, path: str, most: int | None = None) -> bytes:
        """Return a whole file, or its first ``most`` bytes if it is longer."""
        return _call_store(self._store.read, path, most)

    def read_view(self, path: str, memory: Callable[[int], memoryview]) -> memoryview:
        """Return a whole file for reading only; a local one in the memory that is given for its size in bytes."""
        return _call_store(self._store.read_view, path, memory)

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        """Return the bytes from start up to stop, exactly that many."""
        return _call_store(self._store.read_range, path, start, stop)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of every (start, stop), in the order asked, fetched in few requests."""
        return _call_store(self._store.read_ranges, path, ranges)

    def list_many(self, paths: Sequence[str]) -> list[list[FileInfo]]:
        """List several folders at once and return the listings in the order asked."""
        return _call_store(self._store.list_many, paths)

    def list(self, path: str) -> list[FileInfo]:
        """Return the files and folders right inside a folder, by name."""
        return _call_store(self._store.list, path)

    def stat(self, path: str) -> FileInfo:
        """Return kind and size of a file or folder."""
        return _call_store(self._store.stat, path)

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""
        return _call_store(self._store.exists, path)

    def put(self, path: str, data: bytes) -> None:
        """Write a file whole, or write over it."""
        _call_store(self._store.put, path, data)

    def put_if_absent(self, path: str, data: bytes, *, unique: bool = False) -> None:
        """Write a file whole if there is none; of several writers at once exactly one returns.

        Args:
            path: where.
            data: the content.
            unique: nobody else would write these very bytes, so a file that holds them is this writer's own and
                counts as written.

        Raises:
            ConflictError: there is a file already.
            CommitStateUnknownError: the store did not say whether the file was written, and reading back did not tell.
        """
        _call_store(self._store.put_if_absent, path, data, unique=unique)

    def create_from(self, path: str, source: str) -> None:
        """Copy a local file to a place that nobody else uses, however large it is.

        Args:
            path: where; a file of that size there counts as this copy.
            source: path of the local file.

        Raises:
            ConflictError: there is a file of another size.
            CommitStateUnknownError: the store did not say whether the file was written, and asking did not tell.
        """
        _call_store(self._store.create_from, path, source)

    def read_with_etag(self, path: str) -> tuple[bytes, str]:
        """Return a whole file and the store's mark of this version of it.

        Raises:
            StorageError: also where the store has no conditional writes (local disks).
        """
        return _call_store(self._store.read_with_etag, path)

    def put_if_match(self, path: str, data: bytes, etag: str, *, unique: bool = False) -> str:
        """Write over a file if it still is the version with this mark, and return the mark of the new one.

        Args:
            path: where.
            data: the content.
            etag: the mark of the version to replace.
            unique: nobody else would write these very bytes, so a file that holds them is this writer's own.

        Raises:
            ConflictError: it is another version by now, or is gone.
            CommitStateUnknownError: the store did not say whether the file was written, and reading back did not tell.
        """
        return _call_store(self._store.put_if_match, path, data, etag, unique=unique)

    def delete(self, path: str) -> None:
        """Remove a file; one that is not there is no error."""
        _call_store(self._store.delete, path)

    def remove_folder(self, path: str) -> None:
        """Remove a folder if it is empty; one that is not there, or where a file came meanwhile, is no error."""
        _call_store(self._store.remove_folder, path)

    def remove_scratch(self, path: str) -> int:
        """Remove what killed writers left of files in the making below a folder, and return how many files that were.

        On local disks only, and only files that nobody wrote to for a day and no living process of this machine has
        open for writing.
        """
        return _call_store(self._store.remove_scratch, path)

    def local_path(self, path: str) -> str | None:
        """Return the path in the local file system, for memory mapping; None if the table is elsewhere."""
        return _call_store(self._store.local_path, path)

    @property
    def is_local(self) -> bool:
        """Whether the table is in the local file system; nothing is asked of a store."""
        return self.local_path("") is not None

    def open_file(self, path: str, size: int | None = None) -> RangedFile:
        """Return a seekable file over range requests, with ``prefetch`` and ``drop``.

        Reading it raises as the other methods do. The size is asked for where it is not given.
        """
        return RangedFile(self, path, self.stat(path).size if size is None else size)

    def sub(self, path: str) -> TableFiles:
        """Return the files of a folder."""
        return TableFiles(_call_store(self._store.open_folder, path))

    def __reduce__(self) -> tuple[Any, ...]:
        return TableFiles, (self._store,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableFiles) and self._store == other._store

    def __hash__(self) -> int:
        return hash(self._store)

    def __repr__(self) -> str:
        return f"TableFiles({self.uri!r})"


def _call_store(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return call(*args, **kwargs)
    except StorageFault as fault:
        raise _make_error(fault) from fault


def _make_error(fault: StorageFault) -> HoodieError:
    place = {"operation": fault.operation, "path": fault.path}
    if isinstance(fault, PathError):
        return InvalidTableError(fault.reason, hint=fault.hint, **place)
    if isinstance(fault, NotFoundError):
        return FileMissingError(fault.reason, hint=fault.hint, **place)
    if isinstance(fault, AlreadyExistsError):
        return ConflictError(fault.reason, hint="Another writer was there first.", **place, identical=fault.identical)
    if isinstance(fault, ChangedError):
        return ConflictError(fault.reason, hint="Another writer was there first.", **place)
    if isinstance(fault, UnknownOutcomeError):
        return CommitStateUnknownError(fault.reason, hint=fault.hint, **place)
    hint = fault.hint
    if isinstance(fault, UnsupportedStoreError) and fault.package:
        hint = _EXTRAS.get(fault.package, hint)
    return StorageError(fault.reason, hint=hint, **place)
