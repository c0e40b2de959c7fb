"""Reads the bytes of log files: all files of a slice at once, or one at a time if the memory budget is too small.

The bytes lie in Arrow's memory with spare bytes behind them, so that blocks can be decoded in place. Arrow reuses the
memory of decoded blocks for base rows; Python's own memory would stay with the process. Small files of a slice share
one allocation, as their blocks are decoded together.

Where files are read one at a time, a scan keeps only each block's headers; content and positions are parsed again when
the block is decoded. A file that alone exceeds the budget is mapped; a remote one is copied to the spill directory and
mapped there.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import FileIO
from typing import Protocol

import pyarrow as pa

from hoodie_py.errors import FileMissingError, StorageError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.avro.columnar_cursor import BACK
from hoodie_py.formats.limits import get_limits, raise_limit_error
from hoodie_py.formats.log.framing import BlockType, HeaderKey, LogBlock, read_block_at
from hoodie_py.reader.file_slice import LogFile
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.runtime.telemetry import carry_span

_NOTHING = memoryview(b"")
_READ_THREADS = 8
_SMALL_SHARE = 4  # a delete block of less than a quarter of the allocation is copied out of it
_MOST_SHARED = 4 << 20  # most bytes of a slice's log files that share one allocation


@dataclass(frozen=True, slots=True)
class ScannedBlock:
    """A block that counts, and its log file."""

    block: LogBlock  # without content and positions where ``log`` is given
    path: str
    log: LogOnDemand | None = None  # the file to read the whole block from; None where ``block`` is whole

    @property
    def instant(self) -> str:
        """The instant that wrote the block."""
        return self.block.instant_time or ""

    def load(self) -> LogBlock:
        """Return the whole block.

        Raises:
            StorageError: the file is missing.
        """
        return self.block if self.log is None else self.log.read_block(self.block.offset)

    def drop_content(self) -> ScannedBlock:
        """Return the block without its content."""
        if not self.block.content:
            return self
        return ScannedBlock(self.block.with_content(_NOTHING), self.path, self.log)


class OpenLog(Protocol):
    """One log file."""

    path: str

    def read(self) -> bytes | memoryview | mmap.mmap:
        """Return all bytes."""
        ...

    def make_scanned(self, block: LogBlock) -> ScannedBlock:
        """Return the block as a scan keeps it."""
        ...


def open_logs(files: TableFiles, log_files: Sequence[LogFile], spill: Spill) -> Iterator[OpenLog]:
    """Yield log files in order: all in memory or, if together they exceed the budget, one at a time in memory.

    Raises:
        StorageError: a file is missing or cannot be read, or the disk is full.
        UnsupportedFeatureError: a file is larger than a reader takes.
    """
    most = get_limits().log_bytes
    for log_file in log_files:
        if log_file.size > most:
            what = f"A log file has {log_file.size} bytes"
            raise_limit_error(UnsupportedFeatureError, what, "log_bytes", path=log_file.path)
    size = sum(log_file.size for log_file in log_files)
    if size > spill.budget.log_bytes_held:
        last_file = _LastFile(files, spill)
        yield from (LogOnDemand(log_file, last_file) for log_file in log_files)
    elif files.is_local:
        memory = _ArrowMemory(size if size <= _MOST_SHARED else 0)
        yield from (_WholeLog(each.path, files.read_view(each.path, memory), memory.shared) for each in log_files)
    else:
        for path, content in _read_all(files, [log_file.path for log_file in log_files]):
            yield _WholeLog(path, content)


@dataclass(slots=True)
class _WholeLog:
    path: str
    content: memoryview
    shared: int = 0

    def read(self) -> memoryview:
        return self.content

    def make_scanned(self, block: LogBlock) -> ScannedBlock:
        size = max(self.shared, len(self.content))
        if block.type is BlockType.DELETE and len(block.content) * _SMALL_SHARE < size:
            # A copy, as the block would keep the whole allocation in memory.
            block = block.with_content(memoryview(bytes(block.content)))
        return ScannedBlock(block, self.path)


class LogOnDemand:
    """A log file that is read again if another file of the slice was read since; all share ``last_file``."""

    def __init__(self, log_file: LogFile, last_file: _LastFile) -> None:
        self.path = log_file.path
        self._file = log_file
        self._last_file = last_file

    def read(self) -> bytes | memoryview | mmap.mmap:
        return self._last_file.read(self._file)

    def make_scanned(self, block: LogBlock) -> ScannedBlock:
        known = self._last_file.texts
        headers: dict[HeaderKey, str] = {
            # Blocks share equal header texts (a schema, above all), and have no content: it is read again when it is
            # needed.
            key: known.setdefault(text, text)
            for key, text in block.headers.items()
            if key is not HeaderKey.RECORD_POSITIONS
        }
        return ScannedBlock(replace(block, headers=headers, content=_NOTHING), self.path, self)

    def read_block(self, offset: int) -> LogBlock:
        """Parse the block at an offset that a scan has found."""
        return read_block_at(self.read(), offset)


class _LastFile:
    """Holds the file that was read last in memory."""

    def __init__(self, files: TableFiles, spill: Spill) -> None:
        self._files = files
        self._spill = spill
        self._copies: dict[str, str] = {}
        self._current: tuple[str, bytes | memoryview | mmap.mmap] | None = None
        self.texts: dict[str, str] = {}

    def read(self, log_file: LogFile) -> bytes | memoryview | mmap.mmap:
        if self._current is None or self._current[0] != log_file.path:
            self._current = None  # so that no two files are in memory at a time
            self._current = log_file.path, self._load(log_file)
        return self._current[1]

    def _load(self, log_file: LogFile) -> bytes | memoryview | mmap.mmap:
        path = log_file.path
        local = self._files.local_path(path)
        if local is not None and log_file.size <= self._spill.budget.log_bytes_held:
            return self._files.read_view(path, _ArrowMemory())
        # Only such large files are mapped: the operating system ends a process that reads a mapped file after the file
        # was cut short or its network mount failed.
        return _map_file(path, local or self._copy_file(path))

    def _copy_file(self, path: str) -> str:
        if path not in self._copies:
            self._copies[path] = self._spill.copy_file(self._files, path, self._files.stat(path).size)
        return self._copies[path]


def _map_file(path: str, local: str) -> bytes | mmap.mmap:
    try:
        with FileIO(local) as file:
            if not file.seek(0, 2):
                return b""  # there is nothing to map
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError as error:
        raise FileMissingError("There is no such file.", operation="read", path=path) from error
    except OSError as error:
        raise StorageError(f"The file cannot be read: {error}", operation="read", path=path) from error


def _read_all(files: TableFiles, paths: Sequence[str]) -> Iterator[tuple[str, memoryview]]:
    """Read remote files in order, several at a time."""
    if len(paths) <= 1:
        yield from ((path, files.read_view(path, _ArrowMemory())) for path in paths)
        return
    from concurrent.futures import ThreadPoolExecutor

    def read(path: str) -> memoryview:
        return files.read_view(path, _ArrowMemory())

    with ThreadPoolExecutor(_READ_THREADS) as pool:
        yield from zip(paths, pool.map(carry_span(read), paths), strict=True)


class _ArrowMemory:
    """Allocates Arrow's memory for files, with spare bytes, as decoding reads past the end of a block.

    ``shared``: bytes of one allocation for all files, so that their blocks are decoded together without a copy.
    """

    def __init__(self, shared: int = 0) -> None:
        self.shared = shared
        self._whole = _allocate(shared) if shared else memoryview(b"")
        self._given = 0

    def __call__(self, size: int) -> memoryview:
        start = self._given
        if size > len(self._whole) - BACK - start:
            return _allocate(size)[:size]
        self._given += size
        return self._whole[start : self._given]


def _allocate(size: int) -> memoryview:
    """Allocate ``size`` bytes and zeroed spare bytes behind them."""
    memory = memoryview(pa.allocate_buffer(size + BACK)).cast("B")
    memory[size:] = bytes(BACK)
    return memory
