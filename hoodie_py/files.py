"""The files of one table: the verbs of hoodie_storage, with this package's errors.

Storage faults become StorageError with operation, path, cause and remedy, so users see one tree of exceptions. No other
module of the package imports hoodie_storage, except the conformance suite for stores.

A table's metadata names files and folders, and hostile metadata may name hundreds of thousands that do not exist. A
request for each would take hours. ``find_named_files``, ``list_named_folders`` and ``list_removable`` therefore need no
more requests than there are folders, plus a few.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar

from hoodie_py.errors import (
    CommitStateUnknownError,
    ConflictError,
    FileMissingError,
    HoodieError,
    InvalidTableError,
    StorageError,
)
from hoodie_py.runtime.telemetry import carry_span, tell_retry
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

__all__ = [
    "FileInfo", "RangedFile", "TableFiles", "find_named_files", "list_folders", "list_named_folders", "list_removable",
]  # fmt: skip

watch_retries(tell_retry)

P = ParamSpec("P")
T = TypeVar("T")
U = TypeVar("U")

_EXTRAS = {
    package: f"pip install 'hoodie_py[{extra}]'"
    for package, extra in (("s3fs", "s3"), ("gcsfs", "gcs"), ("adlfs", "azure"))
}


_FEW_NAMES = 256  # requests for one name each, which take no longer than listings of folders may
_FEW_LOCAL_FILES = 8  # on local disks, so few are looked up in less time than threads take to start
_THREADS = 16


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
        """The base path without credentials: an absolute path if it is local, else a URI."""
        return self._store.uri

    @property
    def java_uri(self) -> str:
        """The base path as Java's file systems spell it, without credentials; clean and rollback plans contain it."""
        local = self.local_path("")
        if local is not None:
            return f"file:{local}"
        return f"s3a:{self.uri.removeprefix('s3:')}" if self.uri.startswith("s3:") else self.uri

    def read(self, path: str, most: int | None = None) -> bytes:
        """Return a whole file, or its first ``most`` bytes if it is longer."""
        return _call_store(self._store.read, path, most)

    def read_view(self, path: str, memory: Callable[[int], memoryview]) -> memoryview:
        """Return a whole file, read-only; ``memory(size)`` returns the buffer that a local file is read into."""
        return _call_store(self._store.read_view, path, memory)

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        """Return exactly the bytes from ``start`` to ``stop``, exclusive."""
        return _call_store(self._store.read_range, path, start, stop)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of every (start, stop) in the given order, with few requests."""
        return _call_store(self._store.read_ranges, path, ranges)

    def list_many(self, paths: Sequence[str]) -> list[list[FileInfo]]:
        """List several folders in parallel, and return the listings in the given order."""
        return _call_store(self._store.list_many, paths)

    def list_tree(self, path: str) -> list[FileInfo]:
        """Return all files below a folder, at any depth, by path; nothing for a missing folder."""
        return _call_store(self._store.list_tree, path)

    def list(self, path: str) -> list[FileInfo]:
        """Return the files and folders directly in a folder, sorted by name."""
        return _call_store(self._store.list, path)

    def list_names(self, path: str) -> frozenset[str]:
        """Return the names in a folder; names of folders end with a slash. A missing folder is empty."""
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

    def has_file(self, path: str) -> bool:
        """Say whether a file exists, by one request; a folder is none."""
        return _call_store(self._store.has_file, path)

    @property
    def parallel(self) -> int:
        """How many requests may run at once; 1 for local disks."""
        return self._store.parallel

    def put(self, path: str, data: bytes) -> None:
        """Write a whole file, or replace it."""
        _call_store(self._store.put, path, data)

    def put_if_absent(self, path: str, data: bytes, *, unique: bool = False) -> None:
        """Write a whole file if there is none; of several concurrent writers exactly one succeeds.

        ``unique`` says that no other writer writes the same bytes, so a file with these bytes is this writer's own and
        counts as written.

        Raises:
            ConflictError: the file exists.
            CommitStateUnknownError: the store did not say whether it wrote the file, nor did reading it back.
        """
        _call_store(self._store.put_if_absent, path, data, unique=unique)

    def create_from(self, path: str, source: str) -> None:
        """Copy a local file of any size to a path that no other writer uses.

        An existing file of the same size counts as the copy.

        Raises:
            ConflictError: a file of another size exists.
            CommitStateUnknownError: the store did not say whether it wrote the file, nor did the size of the file.
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
            CommitStateUnknownError: the store did not say whether it wrote the file, nor did reading it back.
        """
        return _call_store(self._store.put_if_match, path, data, etag, unique=unique)

    def delete(self, path: str) -> None:
        """Remove a file; a missing file is no error."""
        _call_store(self._store.delete, path)

    def delete_many(self, paths: Sequence[str]) -> None:
        """Remove files; missing ones are no error. Where the store can, one request removes many."""
        _call_store(self._store.delete_many, paths)

    def delete_with_checksum(self, path: str) -> None:
        """Remove a file and, on a local disk, the ``.crc`` file that Hadoop keeps beside it.

        A checksum file left behind would make Hadoop refuse the next file of that name.
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

        Only local disks have them. A file is removed if it did not change for a day and no process of this machine has
        it open for writing.
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

        Reading raises the same errors as the other methods. Without ``size`` the store is asked for it.
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
        """Say whether a URI names a place in the same kind of store, such as S3. Raises StorageError if not valid."""
        return _call_store(self._store.is_same_kind, uri)

    def find_kind(self, uri: str) -> str:
        """Return the kind of store that a URI names, such as "file" or "s3". Raises StorageError if it is not valid."""
        return _call_store(self._store.find_kind, uri)

    def __reduce__(self) -> tuple[Any, ...]:
        return TableFiles, (self._store,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableFiles) and self._store == other._store

    def __hash__(self) -> int:
        return hash(self._store)

    def __repr__(self) -> str:
        return f"TableFiles({self.uri!r})"


def ask_together(files: TableFiles, first: Callable[[], T], second: Callable[[], U]) -> tuple[T, U]:
    """Return the answers of two requests that do not depend on each other; as ``ask_all``."""
    calls: list[Callable[[], Any]] = [first, second]
    one, other = ask_all(files, calls)
    return one, other


def ask_all(files: TableFiles, calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make requests that do not depend on each other, and return their answers in the given order.

    They run at once, unless the table lies on a local disk. Raises the error of the first call that fails, once all
    have ended.
    """
    width = min(files.parallel, len(calls))
    if width <= 1:
        return [call() for call in calls]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(width, "hoodie-ask") as pool:
        return [each.result() for each in [pool.submit(carry_span(call)) for call in calls]]


def list_folders(files: TableFiles, paths: Sequence[str]) -> list[list[FileInfo]]:
    """List folders in parallel and return the listings in the given order; a missing folder is empty.

    Raises:
        StorageError: a listing failed for another reason.
    """
    try:
        return files.list_many(paths)
    except FileMissingError:
        # One missing folder fails the whole call; only then is each listed by itself.
        return ask_all(files, [partial(files.list_or_empty, path) for path in paths])


def list_named_folders(files: TableFiles, paths: Sequence[str]) -> list[list[FileInfo]]:
    """List folders that a table's metadata names, and return the listings in the given order; a missing one is empty.

    Many folders are searched from the base path down, so that missing ones cost no request each.

    Raises:
        StorageError: a listing failed for another reason.
    """
    if len(paths) > _FEW_NAMES:
        found = _list_from_above(files, dict.fromkeys(paths))
        return [found.get(path, []) for path in paths]
    return list_folders(files, paths)


def find_named_files(files: TableFiles, paths: Collection[str]) -> dict[str, FileInfo]:
    """Return kind and size of the existing ones among files that a table's metadata names, by path.

    A few are looked up one by one. For many, their folders are listed as in ``list_named_folders``.

    Raises:
        StorageError: a request failed.
    """
    if len(paths) > _FEW_NAMES:
        wanted = frozenset(paths)
        listings = _list_from_above(files, dict.fromkeys(path.rpartition("/")[0] for path in paths))
        return {info.path: info for listing in listings.values() for info in listing if info.path in wanted}
    if len(paths) <= _FEW_LOCAL_FILES and files.is_local:
        found = [_look_up(files, path) for path in paths]
    else:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(_THREADS, max(1, len(paths))), "hoodie-stat") as pool:
            found = list(pool.map(carry_span(partial(_look_up, files)), paths))
    return {path: info for path, info in zip(paths, found, strict=True) if info is not None}


def list_removable(files: TableFiles, paths: Collection[str]) -> list[str]:
    """Return the paths for which ``delete_with_checksum`` has something to remove, among files that metadata names.

    A few are returned unchecked: deleting a missing file costs no more than looking for it. Raises as
    ``find_named_files``.
    """
    if len(paths) <= _FEW_NAMES:
        return list(paths)
    split = [(path, *path.rpartition("/")[::2]) for path in paths]
    listings = _list_from_above(files, dict.fromkeys(folder for _, folder, _ in split))
    names = {folder: {info.name for info in listing} for folder, listing in listings.items()}
    none: set[str] = set()
    return [path for path, folder, name in split if not names.get(folder, none).isdisjoint((name, f".{name}.crc"))]


def _list_from_above(files: TableFiles, folders: Iterable[str]) -> dict[str, list[FileInfo]]:
    """List the folders that exist, level by level from the base path: one request for each existing folder."""
    wanted = set(folders)
    leading = {""}
    for path in wanted:
        while path and path not in leading:
            leading.add(path)
            path = path.rpartition("/")[0]
    found: dict[str, list[FileInfo]] = {}
    level = [""]
    while level:
        below: list[str] = []
        for path, listing in zip(level, list_folders(files, level), strict=True):
            below += (info.path for info in listing if info.is_dir and info.path in leading)
            if path in wanted:
                found[path] = listing
        level = below
    return found


def _look_up(files: TableFiles, path: str) -> FileInfo | None:
    try:
        return files.stat(path)
    except FileMissingError:
        return None


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
