"""The bytes of log files: read whole where they are small, else mapped, one file at a time.

To map a local file, and parse its blocks twice, takes as long as to read 1 MB of it.  Mapped, a slice's files are not
all in memory when the first is decoded.  Whole local files are read into Arrow's memory. They are let go of block by
block while their records are decoded, and base rows take their place; Python's own memory would stay with the process
beside that.

Of a mapped file the scan keeps what tells blocks apart; content and positions are parsed again when a block's turn
comes.  A remote file that is too large to hold is copied to the spill directory, by ranges, and mapped there.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from hoodie_py.errors import FileMissingError, StorageError
from hoodie_py.files import TableFiles
from hoodie_py.formats.log import HeaderKey, LogBlock, block_at
from hoodie_py.reader.file_slice import LogFile
from hoodie_py.reader.spill import Spill

_READ_THREADS = 8
_LARGE = 1 << 20


@dataclass(frozen=True, slots=True)
class ScannedBlock:
    """A block that counts and the file it lies in.

    Attributes:
        block: the block; of a mapped file without content and positions, which ``loaded`` has.
        path: the log file.
        log: the mapped file; None where ``block`` is complete.
    """

    block: LogBlock
    path: str
    log: MappedLog | None = None

    @property
    def instant(self) -> str:
        """The instant that wrote the block."""
        return self.block.instant_time or ""

    def loaded(self) -> LogBlock:
        """Return the whole block.

        Raises:
            StorageError: the file has gone.
        """
        return self.block if self.log is None else self.log.block(self.block.offset)

    def without_content(self) -> ScannedBlock:
        """Return the block for what its headers say."""
        return replace(self, block=replace(self.block, content=memoryview(b"")))


class OpenLog(Protocol):
    """One log file.

    Attributes:
        path: relative to the table.
    """

    path: str

    def data(self) -> bytes | memoryview | mmap.mmap:
        """Return all bytes."""
        ...

    def scanned(self, block: LogBlock) -> ScannedBlock:
        """Return what a scan keeps of a block of this file."""
        ...


def open_logs(files: TableFiles, log_files: Sequence[LogFile], spill: Spill) -> Iterator[OpenLog]:
    """Yield log files in order: mapped if all of them together are large, or if they are local and large themselves;
    else in memory.

    Args:
        files: where they are.
        log_files: which ones.
        spill: has the budget, and takes copies of remote files.

    Raises:
        StorageError: a file is missing or cannot be read, or the disk is full.
    """
    maps = _Maps(files, spill)
    held = spill.budget.log_bytes_held
    if sum(log_file.size for log_file in log_files) > held:
        yield from (MappedLog(log_file.path, maps) for log_file in log_files)
    elif files.is_local:
        for log_file in log_files:
            if log_file.size > _LARGE:
                yield MappedLog(log_file.path, maps)
            else:
                yield _WholeLog(log_file.path, files.read_view(log_file.path, _arrow_memory))
    else:
        for path, content in _read_all(files, [log_file.path for log_file in log_files]):
            yield _WholeLog(path, content)


@dataclass(slots=True)
class _WholeLog:
    path: str
    content: memoryview

    def data(self) -> memoryview:
        return self.content

    def scanned(self, block: LogBlock) -> ScannedBlock:
        return ScannedBlock(block, self.path)


class MappedLog:
    """A log file that is mapped when it is asked for.

    Args:
        path: the file, relative to the table.
        maps: shared by the files of a slice.
    """

    def __init__(self, path: str, maps: _Maps) -> None:
        self.path = path
        self._maps = maps

    def data(self) -> bytes | mmap.mmap:
        return self._maps.data(self.path)

    def scanned(self, block: LogBlock) -> ScannedBlock:
        known = self._maps.texts
        headers: dict[HeaderKey, str] = {
            key: known.setdefault(text, text)
            for key, text in block.headers.items()
            if key is not HeaderKey.RECORD_POSITIONS
        }
        return ScannedBlock(replace(block, headers=headers, content=memoryview(b"")), self.path, self)

    def block(self, offset: int) -> LogBlock:
        """Parse the block at an offset that a scan has found."""
        return block_at(self.data(), offset)


class _Maps:
    """Maps the file that was asked for last."""

    def __init__(self, files: TableFiles, spill: Spill) -> None:
        self._files = files
        self._spill = spill
        self._copies: dict[str, str] = {}
        self._current: tuple[str, bytes | mmap.mmap] | None = None
        self.texts: dict[str, str] = {}

    def data(self, path: str) -> bytes | mmap.mmap:
        if self._current is None or self._current[0] != path:
            self._current = None  # so that no two files are mapped at a time
            self._current = path, self._mapped(path)
        return self._current[1]

    def _mapped(self, path: str) -> bytes | mmap.mmap:
        local = self._files.local_path(path) or self._copies.get(path)
        if local is None:
            size = self._files.stat(path).size
            local = self._copies[path] = self._spill.copy(self._files, path, size)
        with _named(path), Path(local).open("rb") as file:
            if not file.seek(0, 2):
                return b""  # there is nothing to map
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Say of which log file an error is."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileMissingError("There is no such file.", operation="read", path=path) from error
    except OSError as error:
        raise StorageError(f"The file cannot be read: {error}", operation="read", path=path) from error


def _read_all(files: TableFiles, paths: Sequence[str]) -> Iterator[tuple[str, memoryview]]:
    """Read remote files in order, ahead of their turn."""
    if len(paths) <= 1:
        yield from ((path, files.read_view(path, _arrow_memory)) for path in paths)
        return
    with ThreadPoolExecutor(_READ_THREADS) as pool:
        yield from zip(paths, pool.map(lambda path: files.read_view(path, _arrow_memory), paths), strict=True)


def _arrow_memory(size: int) -> memoryview:
    return memoryview(pa.allocate_buffer(size)).cast("B")
