"""What a store must do below paths, retries and errors: one method for each request.

Backends raise the exceptions of their libraries; ``Store`` makes faults of them.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Protocol

from hoodie_storage.ranges import Range
from hoodie_storage.verbs import FileInfo


class Backend(Protocol):
    """Requests by key. A key is the store's full name of a file or folder below the backend's root."""

    parallel: int
    """How many requests may run at once."""

    def read(self, key: str, most: int | None = None) -> bytes:
        """Read a file, or its first ``most`` bytes."""
        ...

    def read_view(self, key: str, memory: Callable[[int], memoryview]) -> memoryview:
        """Read a file into ``memory(size)``, or return memory that the client library allocated."""
        ...

    def read_ranges(self, key: str, ranges: Sequence[Range]) -> list[bytes | Exception]:
        """Read each range; return the exception for a range that cannot be read."""
        ...

    def list(self, key: str) -> list[FileInfo]:
        """List a folder by bare names, in any order. Raises FileNotFoundError if it does not exist."""
        ...

    def list_names(self, key: str) -> builtins.list[str]:
        """Return the names in a folder; names of folders end with a slash. Raises as ``list``."""
        ...

    def stat(self, key: str) -> FileInfo:
        """Return the facts about a file or folder, without a path. Raises FileNotFoundError if it does not exist."""
        ...

    def is_file(self, key: str) -> bool:
        """Say whether a file exists; a folder is none."""
        ...

    def list_tree(self, key: str) -> builtins.list[FileInfo]:
        """Return all files below a folder, at any depth, by their paths in it; nothing for a missing folder."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Write a file, or overwrite it."""
        ...

    def create(self, key: str, data: bytes) -> None:
        """Write a file that does not exist. Raises FileExistsError, or an exception with HTTP status 409 or 412."""
        ...

    def create_from(self, key: str, source: str) -> None:
        """Copy a local file to a file that does not exist. Raises as ``create``."""
        ...

    def read_with_etag(self, key: str) -> tuple[bytes, str]:
        """Read a file and its ETag. Raises UnsupportedStoreError if the store cannot ``replace``."""
        ...

    def replace(self, key: str, data: bytes, etag: str) -> str:
        """Overwrite a file that has this ETag, and return its new ETag.

        Raises ChangedError, or an exception with HTTP status 404, 409 or 412, if it has another ETag.
        """
        ...

    def delete(self, key: str) -> None:
        """Remove a file. Raises FileNotFoundError if it does not exist."""
        ...

    def delete_many(self, keys: Sequence[str]) -> None:
        """Remove files; missing ones are no error."""
        ...

    def remove_folder(self, key: str) -> None:
        """Remove a folder if it is empty; do nothing in a store without real folders."""
        ...
