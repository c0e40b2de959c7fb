"""What a store does below paths, retries and errors: one method a request, its own exceptions let through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hoodie_storage.ranges import Range


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder in a listing: its name alone, its size, which of the two, when it was written (ms), and whether
    a link leads there.
    """

    name: str
    size: int
    is_dir: bool
    modified: int | None = None
    is_link: bool = False


class Backend(Protocol):
    """Requests by key; a key is the store's own full name of a place, below the root that the backend was made for."""

    parallel: int
    """How many requests may be under way at once."""

    def read(self, key: str, most: int | None = None) -> bytes:
        """Read a file, or so many bytes from its start."""
        ...

    def read_view(self, key: str, memory: Callable[[int], memoryview]) -> memoryview:
        """Read a file, into the memory that is given for so many bytes unless it comes in some already."""
        ...

    def read_ranges(self, key: str, ranges: Sequence[Range]) -> list[bytes | Exception]:
        """Read each range, or say why not."""
        ...

    def list(self, key: str) -> list[Entry]:
        """List a folder, in any order. Raises FileNotFoundError if there is none."""
        ...

    def stat(self, key: str) -> Entry:
        """Look at one place. Raises FileNotFoundError if there is nothing."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Write a file, or write over it."""
        ...

    def create(self, key: str, data: bytes) -> None:
        """Write a file if there is none. Raises FileExistsError, or an exception with HTTP status 409 or 412."""
        ...

    def create_from(self, key: str, source: str) -> None:
        """Copy a local file to a place where there is none. Raises as ``create``."""
        ...

    def read_with_etag(self, key: str) -> tuple[bytes, str]:
        """Read a file and the mark of its version. Raises UnsupportedStoreError where there is no ``replace``."""
        ...

    def replace(self, key: str, data: bytes, etag: str) -> str:
        """Write over the version of a file that has this mark, and return the new one's.

        Raises ChangedError, or an exception with HTTP status 404, 409 or 412, if it has another.
        """
        ...

    def delete(self, key: str) -> None:
        """Remove a file. Raises FileNotFoundError if there is none."""
        ...

    def remove_folder(self, key: str) -> None:
        """Remove a folder if it is empty; nothing to do where folders are no more than the files in them."""
        ...
