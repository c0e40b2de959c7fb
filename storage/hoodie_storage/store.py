"""``Store``: all verbs, over a backend.

A store adds to its backend:

* Paths are checked and joined to the root.
* A read is retried if a retry may help, a write only if the store certainly did nothing.
* Every answer has the requested length.
* Exceptions of other libraries become StorageFaults without credentials.

A store is a value: its URI and options. It can be pickled. It connects at the first use, and again after a fork.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from hoodie_storage import classify
from hoodie_storage.backend import Backend
from hoodie_storage.errors import (
    AlreadyExistsError,
    ChangedError,
    NotFoundError,
    PathError,
    ShortReadError,
    StorageFault,
    UnknownOutcomeError,
)
from hoodie_storage.local import LocalBackend
from hoodie_storage.location import Location, check_path, join_paths, parse_location
from hoodie_storage.ranged_file import RangedFile
from hoodie_storage.ranges import Range, plan_ranges
from hoodie_storage.redact import Redactor
from hoodie_storage.retry import RetryPolicy, call_with_retries
from hoodie_storage.verbs import FileInfo

T = TypeVar("T")

# s3fs and adlfs take the text after it as the version of an object.
_AZURE_VERSION = "?versionid="
_VERSIONS = {"s3": "?versionId=", **dict.fromkeys(("abfs", "abfss", "az"), _AZURE_VERSION)}
_MISSING = 404
_FEW_FOLDERS = 8  # on local disks, listing so few takes less time than starting threads
# Google Cloud Storage lets an object be replaced about once a second; a busy lock is replaced more often.
_PATIENT = {"gs": RetryPolicy(attempts=8, first_pause=0.6)}
_CONFLICT = 409
_CREATED_MEANWHILE = 412


def open_store(uri: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None) -> Store:
    """Return the store at a URI or local path, without any request.

    Args:
        uri: ``/path``, ``file:///path``, ``memory://name``, ``s3://bucket/path`` (or ``s3a://``), or any URI that
            fsspec knows.
        storage_options: credentials, endpoint and the like, in any spelling that ``hoodie_storage.options`` lists.

    Raises:
        PathError: the URI cannot be parsed.
    """
    location = parse_location(uri)
    options = dict(storage_options or {})
    if location.protocol != "file":
        from hoodie_storage.options import make_fsspec_options

        bucket = location.root.partition("/")[0] if location.protocol == "s3" else ""
        options = make_fsspec_options(location.protocol, options, os.environ, bucket)
    return Store(location, options)


class Store:
    """Files below one root; ``verbs`` describes the methods. Threads may share it.

    Args:
        location: the root.
        options: arguments of fsspec's file system.
        prefix: folder below the root; paths are relative to it.
        retries: the policy of retries.
    """

    def __init__(
        self, location: Location, options: Mapping[str, Any], prefix: str = "", retries: RetryPolicy | None = None
    ) -> None:
        self._location = location
        self._options = dict(options)
        self._prefix = prefix
        self._retries = retries or RetryPolicy()
        self._redact = Redactor(self._options, location.root if location.root != location.uri else "")
        self._opened: tuple[int, Backend, str] | None = None

    @property
    def uri(self) -> str:
        """The root without credentials: an absolute path if it is local, else a URI."""
        return self._make_uri("")

    def read(self, path: str, most: int | None = None) -> bytes:
        return self._ask("read", path, lambda backend, key: backend.read(key, most))

    def read_view(self, path: str, memory: Callable[[int], memoryview]) -> memoryview:
        return self._ask("read", path, lambda backend, key: backend.read_view(key, memory)).toreadonly()

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        return self.read_ranges(path, [(start, stop)])[0]

    def read_ranges(self, path: str, ranges: Sequence[Range]) -> list[bytes]:
        plan = plan_ranges(ranges)
        answers: dict[Range, bytes] = {}

        def fetch(backend: Backend, key: str) -> None:
            # A retry asks only for the requests that are not answered yet.
            missing = [each for each in plan.requests if each not in answers]
            problem: Exception | None = None
            for each, answer in zip(missing, backend.read_ranges(key, missing), strict=True):
                if isinstance(answer, Exception):
                    problem = problem or answer
                else:
                    answers[each] = _check_length(answer, each)
            if problem is not None:
                raise problem

        if plan.requests:
            self._ask("read", path, fetch)
        else:
            check_path(path)
        return plan.cut([answers[each] for each in plan.requests])

    def list_many(self, paths: Sequence[str]) -> list[list[FileInfo]]:
        """Return the listings of several folders, in the given order. Raises NotFoundError.

        Threads list them at once, except a few local folders.
        """
        backend, _ = self._open_backend()
        width = min(backend.parallel, len(paths))
        if width <= 1 or (self._location.protocol == "file" and len(paths) <= _FEW_FOLDERS):
            return [self.list(path) for path in paths]
        from concurrent.futures import ThreadPoolExecutor
        from contextvars import copy_context

        with ThreadPoolExecutor(width, thread_name_prefix="hoodie-list") as pool:
            # In the caller's context, so that an instrumented client's spans are children of the caller's.
            return [each.result() for each in [pool.submit(copy_context().run, self.list, path) for path in paths]]

    def list(self, path: str) -> list[FileInfo]:
        entries = self._ask("list", path, lambda backend, key: backend.list(key))
        folder = f"{path}/" if path else ""
        found = [FileInfo(folder + each.path, each.size, each.is_dir, each.modified, each.is_link) for each in entries]
        return sorted(found, key=attrgetter("path", "is_dir"))

    def list_names(self, path: str) -> frozenset[str]:
        return frozenset(self._ask("list", path, lambda backend, key: backend.list_names(key)))

    def list_tree(self, path: str) -> builtins.list[FileInfo]:
        entries = self._ask("list", path, lambda backend, key: backend.list_tree(key))
        folder = f"{path}/" if path else ""
        found = [FileInfo(folder + each.path, each.size, each.is_dir, each.modified, each.is_link) for each in entries]
        return sorted(found, key=attrgetter("path"))

    def stat(self, path: str) -> FileInfo:
        found = self._ask("stat", path, lambda backend, key: backend.stat(key))
        return FileInfo(path, found.size, found.is_dir, found.modified, found.is_link)

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except NotFoundError:
            return False
        return True

    def has_file(self, path: str) -> bool:
        return self._ask("stat", path, lambda backend, key: backend.is_file(key))

    @property
    def parallel(self) -> int:
        """How many requests may run at once; 1 for local disks, which answer before a thread has started."""
        return 1 if self._location.protocol == "file" else self._open_backend()[0].parallel

    def put(self, path: str, data: bytes) -> None:
        self._ask("write", path, lambda backend, key: backend.put(key, data), again=classify.is_refusal)

    def put_if_absent(self, path: str, data: bytes, *, unique: bool = False) -> None:
        check_path(path)
        backend, key = self._open_backend(path)
        try:
            call_with_retries(lambda: backend.create(key, data), self._retries, _may_create_again)
            return
        except Exception as error:  # noqa: BLE001 - fsspec's file systems raise anything
            problem = error
        lost = classify.may_have_happened(problem)
        if not lost and not _is_conflict(problem):
            raise self._make_fault(problem, "create", path)
        # An earlier attempt of this very write may have succeeded: the content of the file decides.
        outcome = self._has_content(path, data)
        if outcome is True and unique:
            return
        if outcome is None:
            raise self._make_unknown_outcome(problem, path)
        raise AlreadyExistsError(
            "there is a file already", operation="create", path=self._make_uri(path), identical=outcome
        )

    def create_from(self, path: str, source: str) -> None:
        check_path(path)
        backend, key = self._open_backend(path)
        try:
            call_with_retries(lambda: backend.create_from(key, source), self._retries, _may_create_again)
            return
        except Exception as error:  # noqa: BLE001 - fsspec's file systems raise anything
            problem = error
        if not classify.may_have_happened(problem) and not _is_conflict(problem):
            raise self._make_fault(problem, "create", path)
        # An earlier attempt may have succeeded: the size of the file decides.
        try:
            found = self.stat(path).size
        except StorageFault:
            raise self._make_unknown_outcome(problem, path) from None
        if found != os.stat(source).st_size:
            raise AlreadyExistsError("there is another file already", operation="create", path=self._make_uri(path))

    def read_with_etag(self, path: str) -> tuple[bytes, str]:
        return self._ask("read", path, lambda backend, key: backend.read_with_etag(key))

    def put_if_match(self, path: str, data: bytes, etag: str, *, unique: bool = False) -> str:
        check_path(path)
        backend, key = self._open_backend(path)
        try:
            retries = _PATIENT.get(self._location.protocol, self._retries)
            return call_with_retries(lambda: backend.replace(key, data, etag), retries, _may_create_again)
        except Exception as error:  # noqa: BLE001 - fsspec's file systems raise anything
            problem = error
        lost = classify.may_have_happened(problem)
        if not lost and not _is_other_version(problem):
            raise self._make_fault(problem, "replace", path)
        try:
            there, mark = self.read_with_etag(path)
        except NotFoundError:
            there, mark = b"", ""
        except StorageFault as fault:
            raise self._make_unknown_outcome(problem, path, "replace") from fault
        if mark and there == data and unique:
            return mark
        if lost and mark == etag:  # still the old version, but the request may arrive later
            raise self._make_unknown_outcome(problem, path, "replace")
        raise ChangedError("the file is another version by now", operation="replace", path=self._make_uri(path))

    def delete(self, path: str) -> None:
        try:
            self._ask("delete", path, lambda backend, key: backend.delete(key), again=classify.is_refusal)
        except NotFoundError:
            return

    def delete_many(self, paths: Sequence[str]) -> None:
        if not paths:
            return
        backend, _ = self._open_backend()
        keys = [self._open_backend(check_path(path))[1] for path in paths]
        self._ask("delete", "", lambda _, __: backend.delete_many(keys), again=classify.is_refusal)

    def remove_folder(self, path: str) -> None:
        try:
            self._ask("delete", path, lambda backend, key: backend.remove_folder(key), again=classify.is_refusal)
        except NotFoundError:
            return

    def remove_scratch(self, path: str) -> int:
        """Remove abandoned scratch files of killed processes below a folder, and return their number.

        Only local disks have such files.
        """
        return self._ask(
            "delete", path, lambda backend, key: backend.remove_scratch(key) if isinstance(backend, LocalBackend) else 0
        )

    def local_path(self, path: str) -> str | None:
        """Return the path in the local file system, for memory mapping; None for other stores.

        Symbolic links are followed. Raises PathError for a pipe, socket or device.
        """
        check_path(path)
        backend, key = self._open_backend(path)
        return backend.find_file(key) if isinstance(backend, LocalBackend) else None

    def open(self, path: str, size: int | None = None) -> RangedFile:
        """Return a seekable file over range requests; without ``size``, the store is asked for it."""
        return RangedFile(self, check_path(path), self.stat(path).size if size is None else size)

    def open_folder(self, path: str) -> Store:
        """Return the store of a folder; its symbolic links may still lead anywhere below this store's root."""
        inner = Store(self._location, self._options, join_paths(self._prefix, check_path(path)), self._retries)
        inner._opened = self._opened
        return inner

    def open_other(self, uri: str) -> Store:
        """Return the store at another place: with this store's options if it is of the same kind, else without any.

        Raises PathError if the URI cannot be parsed.
        """
        location = parse_location(uri)
        if location.protocol != self._location.protocol:
            return open_store(uri)
        return Store(location, self._options, retries=self._retries)

    def is_same_kind(self, uri: str) -> bool:
        """Say whether a URI names a place in the same kind of store. Raises PathError if it cannot be parsed."""
        return parse_location(uri).protocol == self._location.protocol

    @staticmethod
    def find_kind(uri: str) -> str:
        """Return the kind of store that a URI or path names, "file" or "s3" for example. Raises PathError."""
        return parse_location(uri).protocol

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self._location, self._options, self._prefix, self._retries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self._location, self._prefix))

    def __repr__(self) -> str:
        return f"Store({self.uri!r})"

    def _open_backend(self, path: str = "") -> tuple[Backend, str]:
        """Return the backend of this process and the key of a path; connect at the first use and after a fork."""
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = (os.getpid(), *self._connect())
        _, backend, root = self._opened
        version = _VERSIONS.get(self._location.protocol)
        if version is not None and version in path:
            raise PathError(f"a path with {version!r}", hint="It would name a version of another object.")
        if path.endswith("?") and version == _AZURE_VERSION:
            raise PathError("a path with a question mark at its end", hint="Azure's client would leave it out.")
        key = join_paths(self._prefix, path)
        return backend, f"{root.rstrip('/')}/{key}" if key else root

    def _connect(self) -> tuple[Backend, str]:
        if self._location.protocol == "file":
            return LocalBackend(self._location.root), self._location.root
        from hoodie_storage.remote import open_remote  # imported here, since local tables do not need fsspec

        try:
            return open_remote(self._location, self._options)
        except StorageFault:
            raise
        except Exception as error:  # noqa: BLE001 - fsspec's file systems raise anything
            problem = error
        raise self._make_fault(problem, "open", "")

    def _ask(
        self,
        operation: str,
        path: str,
        call: Callable[[Backend, str], T],
        again: Callable[[Exception], bool] = classify.is_passing,
    ) -> T:
        check_path(path)
        backend, key = self._open_backend(path)
        try:
            return call_with_retries(lambda: call(backend, key), self._retries, again)
        except Exception as error:  # noqa: BLE001 - fsspec's file systems raise anything
            problem = error
        # Raised outside of the except block: there the exception would become the context, and its text may have a
        # secret.
        raise self._make_fault(problem, operation, path)

    def _make_fault(self, error: Exception, operation: str, path: str) -> StorageFault:
        return classify.make_fault(error, operation, self._make_uri(path), self._redact, self._location.protocol)

    def _make_unknown_outcome(self, error: Exception, path: str, operation: str = "create") -> UnknownOutcomeError:
        cause = self._make_fault(error, operation, path)
        fault = UnknownOutcomeError(
            f"the store did not say whether the file was written ({cause.reason})",
            operation=operation,
            path=cause.path,
            hint="Look whether it is there before anything is removed.",
        )
        fault.__cause__ = cause
        return fault

    def _has_content(self, path: str, data: bytes) -> bool | None:
        """Say whether a file has these bytes; None if it does not exist or cannot be read."""
        try:
            return self.stat(path).size == len(data) and self.read(path) == data
        except StorageFault:
            return None

    def _make_uri(self, path: str) -> str:
        whole = join_paths(self._prefix, path)
        uri = self._location.uri
        return self._redact(f"{uri.rstrip('/')}/{whole}" if whole and not uri.endswith("://") else uri + whole)


def _check_length(answer: bytes, wanted: Range) -> bytes:
    start, stop = wanted
    if len(answer) != stop - start:
        raise ShortReadError(f"{stop - start} bytes from offset {start} on were asked for, {len(answer)} came back")
    return bytes(answer)


def _is_conflict(error: Exception) -> bool:
    return isinstance(error, FileExistsError) or classify.find_http_status(error) in {_CONFLICT, _CREATED_MEANWHILE}


def _is_other_version(error: Exception) -> bool:
    return (
        isinstance(error, ChangedError | FileNotFoundError)
        or _is_conflict(error)
        or classify.find_http_status(error) == _MISSING
    )


def _may_create_again(error: Exception) -> bool:
    """Say whether a creation certainly did nothing and may succeed next time.

    That is so if the store was busy, or if it was just creating the same file for another request (status 409).
    """
    return classify.is_refusal(error) or (
        not isinstance(error, FileExistsError) and classify.find_http_status(error) == _CONFLICT
    )
