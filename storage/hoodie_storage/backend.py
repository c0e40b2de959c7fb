"""What a store does below paths, retries and errors: one method a request, its own exceptions let through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hoodie_storage.ranges import Range


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder in a listing: its name alone, its size, and which of the two."""

    name: str
    size: int
    is_dir: bool


class Backend(Protocol):
    """Requests by key; a key is the store's own full name of a place, below the root that the backend was made for."""

    parallel: int
    """How many requests may be under way at once."""

    def read(self, key: str) -> bytes:
        """Read a file."""
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

    def delete(self, key: str) -> None:
        """Remove a file. Raises FileNotFoundError if there is none."""
        ...
