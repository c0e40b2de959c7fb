"""Every other store, by way of fsspec: S3, memory, and whatever else has a file system there."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any

import fsspec
import fsspec.asyn
import fsspec.core

from hoodie_storage.backend import Entry
from hoodie_storage.errors import UnsupportedStoreError
from hoodie_storage.location import Location
from hoodie_storage.ranges import Range

SECONDS = 120.0
"""How long a request may take in all, besides a second for each mebibyte."""

_WHOLE_FILE = 1024 * 1024 * 1024
_PARALLEL = 16
# Stores whose fsspec implementation creates files atomically: with a conditional request, or under the lock below.
_CREATES = frozenset({"s3", "memory", "gs", "gcs", "abfs", "abfss", "az"})
_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs"}
_MEMORY_LOCK = threading.Lock()

# A forked process has none of its parent's threads, fsspec's event loop among them. Newer versions see to that.
os.register_at_fork(after_in_child=fsspec.asyn.reset_lock)


def open_remote(location: Location, options: Mapping[str, Any]) -> tuple[RemoteBackend, str]:
    """Return the backend and the root's key.

    Raises:
        UnsupportedStoreError: fsspec knows no such store, its package is missing, or it knows no such option.
    """
    try:
        if location.protocol in {"s3", "memory"}:
            system, root = fsspec.filesystem(location.protocol, **options), location.root
        else:
            system, root = fsspec.core.url_to_fs(location.root, **options)
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
        raise UnsupportedStoreError(f"{reason} ({type(error).__name__})", path=location.uri) from None
    return RemoteBackend(system, location.protocol), str(root).rstrip("/")


class RemoteBackend:
    """Files of one fsspec file system.

    Args:
        system: the file system; its listings must not be cached.
        protocol: its name.
        seconds: how long a request may take, besides a second for each mebibyte.
    """

    def __init__(self, system: Any, protocol: str, seconds: float = SECONDS) -> None:
        self._system = system
        self._protocol = protocol
        self._seconds = seconds
        self._whole: dict[str, Any] = {}
        self.parallel = _PARALLEL if system.async_impl else 1
        if protocol == "s3":
            system.retries = 1  # its own would repeat writes whose answer got lost
            if "max_concurrency" in signature(system._cat_file).parameters:  # noqa: SLF001
                self._whole = {"max_concurrency": 1}  # one request, not another before it for the size

    def read(self, key: str) -> bytes:
        """Read a file."""
        return bytes(self._system.cat_file(key, **self._whole, **self._limit(_WHOLE_FILE)))

    def read_ranges(self, key: str, ranges: Sequence[Range]) -> list[bytes | Exception]:
        """Read each range, or say why not."""
        limit = self._limit(sum(stop - start for start, stop in ranges))
        if len(ranges) == 1:
            return [self._system.cat_file(key, start=ranges[0][0], end=ranges[0][1], **limit)]
        keys = [key] * len(ranges)
        batch = {"batch_size": self.parallel} if self._system.async_impl else {}
        starts, stops = [start for start, _ in ranges], [stop for _, stop in ranges]
        found: Iterable[Any] = self._system.cat_ranges(keys, starts, stops, on_error="return", **batch, **limit)
        return list(found)

    def list(self, key: str) -> list[Entry]:
        """List a folder."""
        found = self._system.ls(key, detail=True, **self._limit(0))
        entries: dict[tuple[str, bool], Entry] = {}
        is_file = False
        for info in found:
            path, is_dir = str(info["name"]), info["type"] == "directory"
            if path.rstrip("/") == key.rstrip("/"):
                is_file = is_file or not (is_dir or path.endswith("/"))
                continue
            name = path.rstrip("/").rpartition("/")[2]
            if name and path.rstrip("/") != f"{key}/":
                entries[name, is_dir] = Entry(name, 0 if is_dir else int(info["size"] or 0), is_dir)
        if is_file and not entries:
            raise NotADirectoryError(key)
        return list(entries.values())

    def stat(self, key: str) -> Entry:
        """Look at one place."""
        info = self._system.info(key, **self._limit(0))
        is_dir = info["type"] == "directory"
        return Entry("", 0 if is_dir else int(info["size"] or 0), is_dir)

    def put(self, key: str, data: bytes) -> None:
        """Write a file, or write over it."""
        self._system.pipe_file(key, data, **self._limit(len(data)))

    def create(self, key: str, data: bytes) -> None:
        """Write a file if there is none."""
        if self._protocol not in _CREATES:
            raise UnsupportedStoreError(f"{self._protocol}:// cannot create a file only where there is none")
        write = self._system._pipe_file if self._system.async_impl else self._system.pipe_file  # noqa: SLF001
        if "mode" not in signature(write).parameters:  # older ones would write over the file
            raise UnsupportedStoreError(
                f"the installed package for {self._protocol}:// cannot create a file only where there is none",
                hint="Install fsspec 2024.12.0 or newer, and s3fs likewise.",
            )
        if self._protocol == "memory":
            with _MEMORY_LOCK:
                self._system.pipe_file(key, data, mode="create")
        else:
            self._system.pipe_file(key, data, mode="create", **self._limit(len(data)))

    def delete(self, key: str) -> None:
        """Remove a file."""
        self._system.rm_file(key, **self._limit(0))

    def _limit(self, size: int) -> dict[str, float]:
        """Return the time limit of a request that moves so many bytes, where fsspec can keep one."""
        return {"timeout": self._seconds + size / 2**20} if self._system.async_impl else {}
