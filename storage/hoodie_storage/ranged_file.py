"""A seekable binary file over range requests, for libraries that need a file.

``prefetch`` fetches ranges in few requests and keeps them until ``drop``. A read of kept bytes makes no request.
Another small read fetches a little more than it needs, for the next read. Nothing else is buffered.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from hoodie_storage.ranges import GAP, Range, plan_ranges
from hoodie_storage.verbs import ReadRanges

_READ_AHEAD = 64 * 1024


class RangedFile(io.RawIOBase):
    """A file of ``size`` bytes that is read by ranges. Threads must not share it."""

    def __init__(self, store: ReadRanges, path: str, size: int) -> None:
        super().__init__()
        self._store = store
        self._path = path
        self._size = size
        self._position = 0
        self._starts: list[int] = []
        self._kept: list[bytes] = []
        self._ahead: tuple[int, bytes] = (0, b"")

    @property
    def name(self) -> str:
        """The path."""
        return self._path

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self._size

    def prefetch(self, ranges: Sequence[Range]) -> None:
        """Fetch ranges, in few requests, and keep them until ``drop``.

        They may overlap, and bytes beyond the end are left out. Raises ValueError as ``plan_ranges``.
        """
        self._check_open()
        self.keep(
            self._read_parts(
                [gap for start, stop in self._plan_requests(ranges) for gap in self._list_gaps(start, stop)]
            )
        )

    def fetch(self, ranges: Sequence[Range]) -> list[tuple[int, bytes]]:
        """Fetch ranges as ``prefetch`` does, for a later ``keep``; another thread may do so while the file is read."""
        return self._read_parts(self._plan_requests(ranges))

    def keep(self, fetched: Sequence[tuple[int, bytes]]) -> None:
        """Keep fetched ranges until ``drop``."""
        kept = dict(zip(self._starts, self._kept, strict=True)) | dict(fetched)
        self._starts = sorted(kept)
        self._kept = [kept[start] for start in self._starts]

    def _plan_requests(self, ranges: Sequence[Range]) -> Sequence[Range]:
        inside = [(start, min(stop, self._size)) for start, stop in ranges if start < self._size]
        # The store fetches the gaps between close ranges anyway, so they are kept too. It splits requests that are too
        # large.
        return plan_ranges(inside, GAP, max(1, self._size)).requests

    def _read_parts(self, ranges: Sequence[Range]) -> list[tuple[int, bytes]]:
        found = self._store.read_ranges(self._path, ranges)
        return [(start, data) for (start, _), data in zip(ranges, found, strict=True)]

    def drop(self) -> None:
        """Forget all fetched bytes."""
        self._starts, self._kept, self._ahead = [], [], (0, b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to an offset from the start, the position or the end, and return the new position."""
        self._check_open()
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"no position before the start: {base + offset}")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Read ``size`` bytes, fewer only at the end of the file; without a size, all remaining bytes."""
        return bytes(self.read_buffer(size))

    def readall(self) -> bytes:
        return self.read(-1)

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # the Buffer protocol is 3.12's
        """Fill a buffer and return the number of bytes."""
        view = memoryview(buffer).cast("B")
        data = self.read_buffer(len(view))
        view[: len(data)] = data
        return len(data)

    def read_buffer(self, size: int | None = -1) -> memoryview | bytes:
        """Read as ``read`` does, without a copy if the bytes are in memory; pyarrow calls this method."""
        self._check_open()
        left = max(0, self._size - self._position)
        wanted = left if size is None or size < 0 else min(size, left)
        start, stop = self._position, self._position + wanted
        data = self._take(start, stop)
        self._position = stop
        return data

    def _take(self, start: int, stop: int) -> memoryview | bytes:
        if start == stop:
            return b""
        at_hand = self._find_in_memory(start)
        if len(at_hand) >= stop - start:
            return at_hand[: stop - start]
        pieces: list[memoryview | bytes] = []
        while start < stop:
            piece = self._find_in_memory(start)[: stop - start] or self._fetch_ahead(
                start, self._find_next_kept(start, stop)
            )
            pieces.append(piece)
            start += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _find_in_memory(self, start: int) -> memoryview:
        """Return the bytes in memory from an offset on; empty if there are none."""
        kept = self._find_kept(start)
        first, data = self._ahead
        ahead = memoryview(data)[start - first :] if first <= start else memoryview(b"")
        return ahead if len(ahead) > len(kept) else kept

    def _find_kept(self, start: int) -> memoryview:
        number = bisect_right(self._starts, start) - 1
        return memoryview(self._kept[number])[start - self._starts[number] :] if number >= 0 else memoryview(b"")

    def _list_gaps(self, start: int, stop: int) -> Iterator[Range]:
        """Yield the parts of a range that are not kept."""
        while start < stop:
            there = len(self._find_kept(start))
            if not there:
                end = self._find_next_kept(start, stop)
                yield start, end
                there = end - start
            start += there

    def _find_next_kept(self, start: int, stop: int) -> int:
        number = bisect_right(self._starts, start)
        return min(stop, self._starts[number]) if number < len(self._starts) else stop

    def _fetch_ahead(self, start: int, stop: int) -> memoryview:
        if stop - start >= _READ_AHEAD:
            (data,) = self._store.read_ranges(self._path, [(start, stop)])
        else:
            # The next small read is likely to continue here.
            data = self._store.read_range(self._path, start, min(start + _READ_AHEAD, self._size))
            self._ahead = (start, data)
        return memoryview(data)[: stop - start]

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the file is closed")

    def close(self) -> None:
        if not self.closed:
            self.drop()
        super().close()

    def __repr__(self) -> str:
        return f"RangedFile({self._path!r}, size={self._size})"
