"""CountedFiles: the files of a metadata table; counts requests and bytes, and caches reads of a remote store.

Look-ups return to the same places: the end of an HFile, its index, the log files of a file group. No writer reuses the
name of a metadata table's file, and a view reads the sizes that it has listed, so bytes once read stay valid. A few
megabytes are kept, the last used ones.
"""

from __future__ import annotations

import builtins
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from hoodie_py.files import FileInfo, TableFiles

_MOST_KEPT = 32 << 20  # bytes in the cache
_MOST_OF_ONE = 8 << 20  # a larger read is not cached
_Place = tuple[str, int, int]  # path, start, stop; a whole file stops at -1


class CountedFiles(TableFiles):
    """The files of another ``TableFiles``; threads may share it.

    ``calls`` and ``bytes`` count the requests to the store and the bytes that they read. A copy in another process is a
    plain ``TableFiles``.
    """

    def __init__(self, files: TableFiles) -> None:
        super().__init__(files._store)  # noqa: SLF001 - a wrapper of the same class
        self.calls = 0
        self.bytes = 0
        self._files = files
        self._kept: OrderedDict[_Place, bytes | memoryview] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def read(self, path: str, most: int | None = None) -> bytes:
        data = self._files.read(path, most)
        self._count(len(data))
        return data

    def read_view(self, path: str, memory: Callable[[int], memoryview]) -> memoryview:
        if self.is_local:
            data = self._files.read_view(path, memory)
            self._count(len(data))
            return data
        kept = self._keep((path, 0, -1), lambda: self._files.read(path))
        view = memory(len(kept))
        view[:] = kept
        return view.toreadonly()

    def read_range(self, path: str, start: int, stop: int) -> bytes:
        if self.is_local:
            data = self._files.read_range(path, start, stop)
            self._count(len(data))
            return data
        return bytes(self._keep((path, start, stop), lambda: self._files.read_range(path, start, stop)))

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> builtins.list[bytes]:
        parts = self._files.read_ranges(path, ranges)
        self._count(sum(map(len, parts)))
        return parts

    def list(self, path: str) -> builtins.list[FileInfo]:
        self._count(0)
        return self._files.list(path)

    def list_many(self, paths: Sequence[str]) -> builtins.list[builtins.list[FileInfo]]:
        for _ in paths:
            self._count(0)
        return self._files.list_many(paths)

    def stat(self, path: str) -> FileInfo:
        self._count(0)
        return self._files.stat(path)

    def exists(self, path: str) -> bool:
        self._count(0)
        return self._files.exists(path)

    def _keep(self, place: _Place, read: Callable[[], bytes]) -> bytes | memoryview:
        """Return cached bytes, or read and cache them; threads that ask at once may read them twice."""
        with self._lock:
            known = self._kept.get(place)
            if known is not None:
                self._kept.move_to_end(place)
                return known
        data = read()
        self._count(len(data))
        if len(data) <= _MOST_OF_ONE:
            with self._lock:
                # Another thread may have read and counted the same bytes meanwhile.
                if self._kept.setdefault(place, data) is data:
                    self._size += len(data)
                while self._size > _MOST_KEPT:
                    _, dropped = self._kept.popitem(last=False)
                    self._size -= len(dropped)
        return data

    def _count(self, size: int) -> None:
        with self._lock:
            self.calls += 1
            self.bytes += size

    def __reduce__(self) -> tuple[Any, ...]:
        return self._files.__reduce__()
