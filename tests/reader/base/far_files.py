"""Files that lie elsewhere: read by ranges, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hoodie_py.files import RangedFile, TableFiles


class FarFiles:
    """The files of a local table without a path on this machine; ``fetched`` counts the bytes that were read."""

    def __init__(self, files: TableFiles) -> None:
        self._files = files
        self.fetched = 0

    def local_path(self, path: str) -> str | None:
        return None

    def open_file(self, path: str, size: int | None = None) -> RangedFile:
        return RangedFile(self, path, self._files.stat(path).size if size is None else size)  # type: ignore[arg-type]

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        self.fetched += stop - start
        return self._files.read_range(path, start, stop)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [self.read_range(path, *each) for each in ranges]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)
