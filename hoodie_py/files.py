"""The files of one table: the verbs of hoodie_storage, with this package's errors.

Here storage faults become StorageError with operation, path, cause and remedy, so that users see one tree of
exceptions. No other module of the package imports hoodie_storage, except the conformance suite for stores.
"""

from __future__ import annotations

import builtins
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
from hoodie_py.runtime.telemetry import tell_retry
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
    watch_retries,
)

__all__ = ["FileInfo", "RangedFile", "TableFiles"]

watch_retries(tell_retry)

P = ParamSpec("P")
T = TypeVar("T")

_EXTRAS = {
    package: f"pip install 'hoodie_py[{extra}]'"
    for package, extra in (("s3fs", "s3"), ("gcsfs", "gcs"), ("adlfs", "azure"))
}


class TableFiles:
    """Files below a table's base path; picklable, safe to share between threads, and usable after a fork.

    Paths are relative to the base path with ``/`` as separator; ``""`` is the base path. Every method raises
    StorageError (FileMissingError for a missing file), and InvalidTableError for a path outside the table.

    Examples:
        >>> trips.files.exists(".hoodie/hoodie.properties")
        True
        >>> [entry.path for entry in trips.files.list("la") if entry.path.endswith(".parquet")] == [
        ...     file_slice.base_file.path for file_slice in trips.file_slices(filter="city = 'la'")
        ... ]
        True
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @classmethod
    def open(cls, uri: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> TableFiles:
        """Return the files at a URI or local path, without a request to the store.

        Raises:
            StorageError: the URI or an option is not valid.
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

    @property
    def java_uri(self) -> str:
        """The base path as Java's file systems open it, without credentials: clean and rollback plans name it."""
        local = self.local_path("")
        if local is not None:
            return f"file:{local}"
        return f"s3a:{self.uri.removeprefix('s3:')}" if self.uri.startswith("s3:") else self.uri

    def read(self, path: str, most: int | None = None) -> bytes:
        """Return a whole file, or its first ``most`` bytes if it is longer."""
        return _call_store(self._store.read, path, most)

    def read_view(self, path: str, memory: Callable[[int], memoryview]) -> memoryview:
        """Return a whole file, read-only; ``memory`` gives the buffer for a local file of so many bytes."""
        return _call_store(self._store.read_view, path, memory)

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        """Return exactly the bytes from start to stop, without stop."""
        return _call_store(self._store.read_range, path, start, stop)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of every (start, stop) in the given order, with few requests."""
        return _call_store(self._store.read_ranges, path, ranges)

    def list_many(self, paths: Sequence[str]) -> list[list[FileInfo]]:
        """List several folders in parallel, and return the listings in the given order."""
        return _call_store(self._store.list_many, paths)

    def list(self, path: str) -> list[FileInfo]:
        """Return the files and folders directly in a folder, sorted by name."""
        return _call_store(self._store.list, path)

    def list_names(self, path: str) -> frozenset[str]:
        """Return the names directly in a folder, those of folders with a slash at the end; a missing one is empty."""
        try:
            return _call_store(self._store.list_names, path)
        except FileMissingError:
            return frozenset()

    def list_or_empty(self, path: str) -> builtins.list[FileInfo]:
        """List a folder; a missing one is empty."""
        try:
            return self.list(path)
        except FileMissingError:
            return []

    def stat(self, path: str) -> FileInfo:
        """Return kind and size of a file or folder."""
        return _call_store(self._store.stat, path)

    def exists(self, path: str) -> bool:
        """Say whether a file or folder exists."""
        return _call_store(self._store.exists, path)

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file, or replace it."""
        _call_store(self._store.put, path, data)

    def put_if_absent(self, path: str, data: bytes, *, unique: bool = False) -> None:
        """Write a whole file if there is none; of several concurrent writers exactly one succeeds.

        ``unique``: no other writer writes the same bytes, so a file with these bytes is this writer's own and counts as
        written.

        Raises:
            ConflictError: the file exists.
            CommitStateUnknownError: the store did not say whether it wrote the file, and reading it did not tell.
        """
        _call_store(self._store.put_if_absent, path, data, unique=unique)

    def create_from(self, path: str, source: str) -> None:
        """Copy a local file of any size to a path that no other writer uses.

        An existing file of the same size counts as the copy.

        Raises:
            ConflictError: a file of another size exists.
            CommitStateUnknownError: the store did not say whether it wrote the file, and its size did not tell.
        """
        _call_store(self._store.create_from, path, source)

    def read_with_etag(self, path: str) -> tuple[bytes, str]:
        """Return a whole file and its etag, the store's mark of this version.

        Raises:
            StorageError: the store failed, or has no conditional writes (local disks).
        """
        return _call_store(self._store.read_with_etag, path)

    def put_if_match(self, path: str, data: bytes, etag: str, *, unique: bool = False) -> str:
        """Replace a file if it still has this etag, and return the new etag.

        ``unique`` as for ``put_if_absent``.

        Raises:
            ConflictError: the file has another etag, or is gone.
            CommitStateUnknownError: the store did not say whether it wrote the file, and reading it did not tell.
        """
        return _call_store(self._store.put_if_match, path, data, etag, unique=unique)

    def delete(self, path: str) -> None:
        """Remove a file; a missing file is no error."""
        _call_store(self._store.delete, path)

    def delete_with_checksum(self, path: str) -> None:
        """Remove a file and, on a local disk, the ``.crc`` file that Hadoop keeps beside it.

        A checksum that stays would make Hadoop refuse the next file of that name.
        """
        self.delete(path)
        if self.is_local:
            folder, _, name = path.rpartition("/")
            self.delete(f"{folder}/.{name}.crc" if folder else f".{name}.crc")

    def remove_folder(self, path: str) -> None:
        """Remove a folder if it is empty; a missing folder, or one with files, is no error."""
        _call_store(self._store.remove_folder, path)

    def remove_scratch(self, path: str) -> int:
        """Remove the temporary files of killed writers below a folder, and return their number.

        On local disks only. A file is removed if it did not change for a day and no process of this machine has it open
        for writing.
        """
        return _call_store(self._store.remove_scratch, path)

    def local_path(self, path: str) -> str | None:
        """Return the path in the local file system, for memory mapping; None if the table is not local."""
        return _call_store(self._store.local_path, path)

    @property
    def is_local(self) -> bool:
        """Whether the table is in the local file system; needs no request to a store."""
        return self.local_path("") is not None

    def open_file(self, path: str, size: int | None = None) -> RangedFile:
        """Return a seekable file over range requests, with ``prefetch`` and ``drop``.

        Reading raises the errors of the other methods. Without a size, the store is asked for it.
        """
        return RangedFile(self, path, self.stat(path).size if size is None else size)

    def sub(self, path: str) -> TableFiles:
        """Return the files of a folder."""
        return TableFiles(_call_store(self._store.open_folder, path))

    def open_other(self, uri: str) -> TableFiles:
        """Return the files at another place: with this store's options if it is of the same kind, else without any.

        Raises StorageError if the URI is not valid.
        """
        return TableFiles(_call_store(self._store.open_other, uri))

    def is_same_kind(self, uri: str) -> bool:
        """Say whether a URI names a place in the same kind of store, such as S3; StorageError if it is not valid."""
        return _call_store(self._store.is_same_kind, uri)

    def find_kind(self, uri: str) -> str:
        """Return the kind of store that a URI names, such as "file" or "s3"; StorageError if it is not valid."""
        return _call_store(self._store.find_kind, uri)

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
