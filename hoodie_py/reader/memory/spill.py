"""Spill: record batches and arrays in files on disk, read through memory maps (Hudi's ExternalSpillableMap).

Batches are written as uncompressed Arrow IPC files. Reading one back maps it without a copy: its pages belong to the
file, and the kernel can drop them. The maps used last stay open, up to a number of files and, if the process's address
space is limited, up to a number of bytes.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from hoodie_py.files import TableFiles
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.read_info import ReadStats, SpillStats

if TYPE_CHECKING:
    from pathlib import Path

    from hoodie_py.reader.memory.spill_directory import SpillDirectory

_OPEN_MAPS = 64  # most spill files that are mapped at a time
_SMALL = 1 << 16  # an array of fewer bytes stays in memory
_FILLED = 1 << 16  # values of a new array that are written at a time
_COPY_THREADS = 4
_COPY_BYTES = 8 << 20
_Part = TypeVar("_Part", pa.RecordBatch, pa.Array)


@dataclass(frozen=True, slots=True)
class Spilled:
    """The place of a record batch: its spill file, its number there, its count of rows."""

    file: str
    number: int
    rows: int


class Spill:
    """The spill files of one log; their directory is made with the first file."""

    def __init__(self, budget: MemoryBudget, stats: ReadStats) -> None:
        self.budget = budget
        self._stats: SpillStats = stats.spill
        self._directory: SpillDirectory | None = None
        self._files = 0
        self._maps: OrderedDict[str, tuple[Any, int]] = OrderedDict()

    @property
    def path(self) -> Path:
        """The directory."""
        if self._directory is None:
            from hoodie_py.reader.memory.spill_directory import SpillDirectory

            self._directory = SpillDirectory(self.budget.directory)
        return self._directory.path

    def release_free_memory(self) -> None:
        """Return the allocators' free memory to the system if anything was spilled; 50 MB are common."""
        if self._directory is not None:
            pa.default_memory_pool().release_unused()
            trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc, which NumPy's memory comes from
            if trim is not None:
                trim(0)

    def close(self) -> None:
        """Remove every file."""
        self._maps.clear()
        if self._directory is not None:
            self._directory.close()
            self.release_free_memory()

    def open_writer(self, schema: pa.Schema | None = None) -> SpillWriter:
        """Start a file of record batches."""
        return SpillWriter(self, schema)

    def read_batch(self, spilled: Spilled) -> pa.RecordBatch:
        """Return a spilled batch; its buffers lie in the mapped file."""
        with self.guard():
            return self._map(spilled.file).get_batch(spilled.number)

    def read_copy(self, spilled: Spilled) -> pa.RecordBatch:
        """Return a spilled batch, copied to memory if address space is limited, so that its map can be closed."""
        batch = self.read_batch(spilled)
        if self.budget.mapped_bytes is None:
            return batch
        return batch.take(pa.array(np.arange(batch.num_rows)))

    def make_reader(self) -> Callable[[Spilled], pa.RecordBatch]:
        """Return a function that reads batches into memory; each thread needs its own. Pages of a map would count as
        this process's memory as long as the map is open.
        """
        open_file = lru_cache(_OPEN_MAPS)(lambda file: pa.ipc.open_file(pa.OSFile(file)))

        def read(spilled: Spilled) -> pa.RecordBatch:
            with self.guard():
                return open_file(spilled.file).get_batch(spilled.number)

        return read

    def make_array(self, length: int, dtype: Any, fill: int) -> np.ndarray:
        """Return a writable array filled with one value, in a file unless it is small."""
        size = length * np.dtype(dtype).itemsize
        if size <= max(_SMALL, self.budget.portion // 4):
            return np.full(length, fill, dtype)
        path = self.new_file()
        with self.guard(), path.open("w+b") as file:
            # Write all pages: a full disk is an error here, but a fatal signal when a mapped page is used later.
            for start in range(0, length, _FILLED):
                np.full(min(_FILLED, length - start), fill, dtype).tofile(file)
            array: np.ndarray = np.memmap(file, dtype, "r+", shape=(length,))
        self.count_file(size)
        return array

    def copy_file(self, files: TableFiles, path: str, size: int) -> str:
        """Copy a table's file range by range, and return the copy's path."""
        from concurrent.futures import ThreadPoolExecutor

        step = min(_COPY_BYTES, max(1, self.budget.portion // _COPY_THREADS))
        ranges = ((start, min(start + step, size)) for start in range(0, size, step))
        copy = self.new_file()
        with copy.open("wb") as target, ThreadPoolExecutor(_COPY_THREADS) as pool:
            while some := list(islice(ranges, _COPY_THREADS)):
                for data in pool.map(lambda each: files.read_range(path, *each), some):
                    with self.guard():
                        target.write(data)
            with self.guard():
                target.flush()
        self.count_file(size)
        return str(copy)

    def count_file(self, size: int) -> None:
        """Count a complete file and its bytes."""
        self._stats.files += 1
        self._stats.bytes += size

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Convert errors of the operating system to a StorageError that names the spill directory."""
        try:
            yield
        except OSError as error:
            from hoodie_py.reader.memory.spill_directory import make_spill_error

            raise make_spill_error(error, str(self.path)) from error

    def new_file(self) -> Path:
        """Return the path of a new file."""
        self._files += 1
        return self.path / str(self._files)

    def _map(self, file: str) -> Any:
        found = self._maps.get(file)
        if found is None:
            source = pa.memory_map(file)
            found = self._maps[file] = pa.ipc.open_file(source), source.size()
            self._drop_maps()
        self._maps.move_to_end(file)
        return found[0]

    def _drop_maps(self) -> None:
        most = self.budget.mapped_bytes
        while len(self._maps) > 1 and (
            len(self._maps) > _OPEN_MAPS or (most is not None and sum(size for _, size in self._maps.values()) > most)
        ):
            self._maps.popitem(last=False)


class SpillWriter:
    """Writes record batches of one schema to one or more files; they can be read after ``close``.

    Raises:
        StorageError: by every method, if the disk is full or fails.
    """

    def __init__(self, spill: Spill, schema: pa.Schema | None = None) -> None:
        self._spill = spill
        self._schema = schema
        self._file = ""
        self._sink: Any = None
        self._writer: Any = None
        self._batches = 0

    def add(self, batch: pa.RecordBatch) -> Spilled:
        """Write a batch."""
        with self._spill.guard():
            if self._writer is None:
                self._schema = batch.schema if self._schema is None else self._schema
                self._file = str(self._spill.new_file())
                self._sink = pa.OSFile(self._file, "wb")
                self._writer = pa.ipc.new_file(self._sink, self._schema)
                self._batches = 0
            self._writer.write_batch(batch)
            spilled = Spilled(self._file, self._batches, batch.num_rows)
            self._batches += 1
            if self._sink.tell() > self._spill.budget.file_bytes:
                self.close()
        return spilled

    def close(self) -> None:
        """Complete the open file, if there is one."""
        if self._writer is None:
            return
        with self._spill.guard():
            self._writer.close()
            self._spill.count_file(self._sink.tell())
            self._sink.close()
        self._writer = self._sink = None


def group_to_size(parts: Iterable[_Part], size: int) -> Iterator[list[_Part]]:
    """Group consecutive batches or arrays up to ``size`` bytes."""
    waiting: list[_Part] = []
    held = 0
    for part in parts:
        if waiting and held + part.nbytes > size:
            yield waiting
            waiting, held = [], 0
        waiting.append(part)
        held += part.nbytes
    if waiting:
        yield waiting
