"""The backend of every store that has an fsspec file system: S3, Google Cloud Storage, Azure, memory and others."""

from __future__ import annotations

import builtins
import difflib
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import fsspec
import fsspec.asyn
import fsspec.core

from hoodie_storage.classify import find_http_status
from hoodie_storage.conditional import AzureConditions, Conditions, choose_conditions, list_azure_folder
from hoodie_storage.errors import ChangedError, UnsupportedStoreError
from hoodie_storage.location import Location
from hoodie_storage.options import list_spellings
from hoodie_storage.ranges import Range
from hoodie_storage.s3_requests import delete_s3_files, has_s3_file, list_s3_folder, list_s3_tree
from hoodie_storage.verbs import FileInfo

SECONDS = 120.0
"""Time limit of a request in seconds, to which one second is added for each mebibyte."""

_WHOLE_FILE = 1024 * 1024 * 1024
_SMALL_FILE = 1024 * 1024
_PARALLEL = 32
_NO_SUCH_RANGE = 416
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs"}
# Arguments of every file system that fsspec itself consumes.
_FSSPEC_OPTIONS = ("skip_instance_cache", "use_listings_cache", "listings_expiry_time", "max_paths")
_HADOOP = frozenset({"hdfs", "viewfs"})
_SHOWN_SCHEMES = ("s3", "gs", "abfs", "hdfs", "file", "memory")
_MEMORY_LOCK = threading.Lock()

# A forked process lacks the thread of fsspec's event loop. Newer versions of fsspec reset it themselves.
os.register_at_fork(after_in_child=fsspec.asyn.reset_lock)


def open_remote(location: Location, options: Mapping[str, Any]) -> tuple[RemoteBackend, str]:
    """Return the backend and the key of the root.

    Raises UnsupportedStoreError if fsspec does not know the store or an option, or the store's package is missing.
    """
    try:
        if location.protocol in _PACKAGES:
            check_option_names(location, options)
        if location.protocol in {"s3", "memory"}:
            system, root = fsspec.filesystem(location.protocol, **options), location.root
        elif location.protocol == "gs":
            system, root = _find_class("gs")(**options), location.root.partition("://")[2]
        else:
            system, root = fsspec.core.url_to_fs(location.root, **options)
    except OSError as error:
        if location.protocol not in _HADOOP:
            raise
        raise UnsupportedStoreError(
            f"{location.protocol}:// needs Hadoop's native client (libhdfs), which cannot be loaded",
            path=location.uri,
            hint="Install Hadoop and Java, and set HADOOP_HOME, JAVA_HOME and CLASSPATH as pyarrow wants them.",
        ) from error
    except ImportError:
        package = _PACKAGES.get(location.protocol)
        raise UnsupportedStoreError(
            f"{location.protocol}:// needs a package that is not installed",
            path=location.uri,
            hint=f"pip install {package}" if package else "See fsspec's documentation for the package.",
            package=package,
        ) from None
    except (ValueError, TypeError, KeyError) as error:
        known = location.protocol in _PACKAGES or location.protocol in fsspec.available_protocols()
        reason = "storage options that do not fit the store" if known else f"unknown scheme {location.protocol!r}"
        hint = None if known else f"Write a path, or a URI with one of: {', '.join(_SHOWN_SCHEMES)}."
        raise UnsupportedStoreError(f"{reason} ({type(error).__name__})", path=location.uri, hint=hint) from None
    return RemoteBackend(system, location.protocol), str(root).rstrip("/")


def check_option_names(location: Location, options: Mapping[str, Any]) -> None:
    """Refuse an option that the store's file system does not know: its own error would name an internal class.

    Raises UnsupportedStoreError, and ImportError if the store's package is missing.
    """
    known = set(_FSSPEC_OPTIONS)
    for each in _find_class(location.protocol).__mro__:
        known |= set(signature(each.__init__).parameters)
    if location.protocol == "s3":
        known |= set(signature(import_module("aiobotocore.session").AioSession.__init__).parameters)
    for name in options:
        if name not in known:
            spellings = [*known, *list_spellings()] if location.protocol == "s3" else [*known]
            close = difflib.get_close_matches(name, spellings, n=1)
            raise UnsupportedStoreError(
                f"unknown storage option {name[:100]!r}",
                path=location.uri,
                hint=f"Did you mean {close[0]!r}?" if close else None,
            )


def _find_class(protocol: str) -> Any:
    """Return the class of a store's file systems. Raises ImportError if the store's package is missing.

    For Google Cloud Storage it is the class for ordinary buckets. fsspec's default also supports zonal buckets: it asks
    a second service for the kind of each bucket, and leaves objects of zonal buckets open for more bytes.
    """
    if protocol == "gs":
        return import_module("gcsfs.core").GCSFileSystem
    return fsspec.get_filesystem_class(protocol)


class RemoteBackend:
    """The ``Backend`` of an fsspec file system, whose listings must not be cached.

    A request may take ``seconds``, plus one second for each mebibyte.
    """

    def __init__(self, system: Any, protocol: str, seconds: float = SECONDS) -> None:
        self._system = system
        self._protocol = protocol
        self._seconds = seconds
        self._whole: dict[str, Any] = {}
        self._conditions = choose_conditions(system, protocol)
        self.parallel = _PARALLEL if system.async_impl else 1
        if protocol == "s3" and "max_concurrency" in signature(system._cat_file).parameters:  # noqa: SLF001
            self._whole = {"max_concurrency": 1}  # one request, without another before it for the size

    def read(self, key: str, most: int | None = None) -> bytes:
        if most is not None:
            try:
                return bytes(self._system.cat_file(key, start=0, end=most, **self._make_time_limit(most)))
            except Exception as error:
                if find_http_status(error) != _NO_SUCH_RANGE:
                    raise
                return b""  # an empty file has no first byte
        return bytes(self._system.cat_file(key, **self._whole, **self._make_time_limit(_WHOLE_FILE)))

    def read_view(self, key: str, memory: Callable[[int], memoryview]) -> memoryview:
        """Read a file into memory of the client library."""
        return memoryview(self.read(key))

    def read_ranges(self, key: str, ranges: Sequence[Range]) -> list[bytes | Exception]:
        limit = self._make_time_limit(sum(stop - start for start, stop in ranges))
        if len(ranges) == 1:
            return [self._system.cat_file(key, start=ranges[0][0], end=ranges[0][1], **limit)]
        keys = [key] * len(ranges)
        batch = {"batch_size": self.parallel} if self._system.async_impl else {}
        starts, stops = [start for start, _ in ranges], [stop for _, stop in ranges]
        found: Iterable[Any] = self._system.cat_ranges(keys, starts, stops, on_error="return", **batch, **limit)
        return list(found)

    def list(self, key: str) -> list[FileInfo]:
        limit = self._make_time_limit(0)
        if isinstance(self._conditions, AzureConditions):
            found = fsspec.asyn.sync(self._system.loop, list_azure_folder, self._system, key, **limit)
        elif self._protocol == "s3" and "/" in key:
            found = fsspec.asyn.sync(self._system.loop, list_s3_folder, self._system, key, **limit)
        else:
            found = self._system.ls(key, detail=True, **limit)
        entries: dict[tuple[str, bool], FileInfo] = {}
        is_file = False
        for info in found:
            path, is_dir = str(info["name"]), info["type"] == "directory"
            if path.rstrip("/") == key.rstrip("/"):
                is_file = is_file or not (is_dir or path.endswith("/"))
                continue
            name = path.rstrip("/").rpartition("/")[2]
            if name and path.rstrip("/") != f"{key}/":
                entries[name, is_dir] = _make_entry(name, info)
        if is_file and not entries:
            raise NotADirectoryError(key)
        return list(entries.values())

    def list_names(self, key: str) -> builtins.list[str]:
        return [f"{each.path}/" if each.is_dir else each.path for each in self.list(key)]

    def stat(self, key: str) -> FileInfo:
        return _make_entry("", self._system.info(key, **self._make_time_limit(0)))

    def is_file(self, key: str) -> bool:
        limit = self._make_time_limit(0)
        if self._protocol == "s3":
            return bool(fsspec.asyn.sync(self._system.loop, has_s3_file, self._system, key, **limit))
        try:
            return str(self._system.info(key, **limit)["type"]) != "directory"
        except FileNotFoundError:
            return False

    def list_tree(self, key: str) -> builtins.list[FileInfo]:
        limit = self._make_time_limit(0)
        if self._protocol == "s3":
            found = fsspec.asyn.sync(self._system.loop, list_s3_tree, self._system, key, **limit)
        else:
            found = self._system.find(key, detail=True, **limit).values()
        names = {str(info["name"]): info for info in found if info["type"] != "directory"}
        inside = {name.removeprefix(f"{key}/"): info for name, info in names.items() if name.startswith(f"{key}/")}
        return [_make_entry(name, info) for name, info in inside.items() if name and not name.endswith("/")]

    def put(self, key: str, data: bytes) -> None:
        self._system.pipe_file(key, data, **self._make_time_limit(len(data)))

    def create(self, key: str, data: bytes) -> None:
        if self._protocol == "memory":
            self._check_memory()
            with _MEMORY_LOCK:
                self._system.pipe_file(key, data, mode="create")
            return
        create = self._find_create("pipe_file")
        self._system.pipe_file(key, data, **create, **self._make_time_limit(len(data)))

    def create_from(self, key: str, source: str) -> None:
        """Copy a local file to a file that does not exist; a large file is sent in parts."""
        if self._protocol == "memory":
            self.create(key, Path(source).read_bytes())
            return
        create = self._find_create("put_file")
        self._system.put_file(source, key, **create, **self._make_time_limit(Path(source).stat().st_size))

    def _find_create(self, verb: str) -> Mapping[str, Any]:
        """Return the arguments that make a write fail if the file exists."""
        if self._conditions is None:
            raise UnsupportedStoreError(f"{self._protocol}:// cannot create a file only where there is none")
        if not self._conditions.creates(verb):  # older versions ignore the argument and overwrite the file
            raise UnsupportedStoreError(
                f"the installed package for {self._protocol}:// cannot create a file only where there is none",
                hint=f"Install {_PACKAGES[self._protocol]} 2024.12.0 or newer, and fsspec likewise.",
            )
        return self._conditions.create

    def _check_memory(self) -> None:
        if "mode" not in signature(self._system.pipe_file).parameters:
            raise UnsupportedStoreError(
                "the installed fsspec cannot create a file only where there is none",
                hint="Install fsspec 2024.12.0 or newer.",
            )

    def read_with_etag(self, key: str) -> tuple[bytes, str]:
        if self._protocol == "memory":
            with _MEMORY_LOCK:
                data = bytes(self._system.cat_file(key))
            return data, _hash_content(data)
        found: tuple[bytes, str] = fsspec.asyn.sync(
            self._system.loop, self._find_conditions().read, key, **self._make_time_limit(_SMALL_FILE)
        )
        return found

    def replace(self, key: str, data: bytes, etag: str) -> str:
        if self._protocol == "memory":
            with _MEMORY_LOCK:
                if _hash_content(bytes(self._system.cat_file(key))) != etag:
                    raise ChangedError("the file is another version by now")
                self._system.pipe_file(key, data)
            return _hash_content(data)
        replace = self._find_conditions().replace
        limit = self._make_time_limit(len(data))
        return str(fsspec.asyn.sync(self._system.loop, replace, key, data, etag, **limit))

    def _find_conditions(self) -> Conditions:
        if self._conditions is None:
            raise UnsupportedStoreError(f"{self._protocol}:// cannot replace a file only while it is unchanged here")
        return self._conditions

    def delete(self, key: str) -> None:
        self._system.rm_file(key, **self._make_time_limit(0))

    def delete_many(self, keys: Sequence[str]) -> None:
        if self._protocol == "s3" and keys:
            limit = self._make_time_limit(0)
            fsspec.asyn.sync(self._system.loop, delete_s3_files, self._system, keys, **limit)
            return
        for key in keys:
            with suppress(FileNotFoundError):
                self.delete(key)

    def remove_folder(self, key: str) -> None:
        """Do nothing: such stores have no real folders."""

    def _make_time_limit(self, size: int) -> dict[str, float]:
        """Return the time limit of a request of ``size`` bytes; empty if the file system has no time limits."""
        return {"timeout": self._seconds + size / 2**20} if self._system.async_impl else {}


def _make_entry(name: str, info: Mapping[str, Any]) -> FileInfo:
    """Return the entry of a file or folder from fsspec's description."""
    if info["type"] == "directory":
        return FileInfo(name, 0, is_dir=True)
    return FileInfo(name, int(info["size"] or 0), False, _find_modified(info))


def _find_modified(info: Mapping[str, Any]) -> int | None:
    for field in ("LastModified", "last_modified", "mtime", "modified", "created"):
        found = info.get(field)
        if isinstance(found, datetime):
            return round(found.timestamp() * 1000)
        if isinstance(found, int | float):
            return round(found * 1000)
    return None


def _hash_content(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
