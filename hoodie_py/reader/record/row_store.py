"""The row store: the Arrow batches of one file group, in which an integer handle names each row.

* A handle is valid until its chunk is released; -1 means "no data".
* Chunks are added and released only at the end, so the rows made for one base batch are released with it.
* Rows are copied only by ``take``. Chunks may move to spill files and are then read through memory maps; their handles
  do not change.

In Hudi an ExternalSpillableMap holds the records of a file group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, join_batches, make_batch_without_columns, take, to_booleans
from hoodie_py.arrow.fields import make_nullable
from hoodie_py.reader.memory.spill import Spill, Spilled

NO_ROW = -1
_ABSENT = "absent."  # plus a column's number: the spilled mask of the rows that lack that column
_JOINED_ROWS = 1 << 14  # small chunks are joined up to this number of rows when they are spilled


@dataclass(slots=True)
class _Chunk:
    """Some rows: in memory, or in a spill file."""

    batch: pa.RecordBatch | None  # None if they are spilled
    absent: Mapping[str, np.ndarray]  # a mask for each column that some rows lack, if they are in memory
    spilled: Spilled | None = None
    masks: frozenset[str] = frozenset()  # columns whose masks are spilled with the rows
    nbytes: int = 0  # of memory


class RowStore:
    """Record batches of one schema, appended and released at the end.

    ``spill``: takes the rows that exceed the memory budget; None to keep all rows in memory.
    """

    def __init__(self, schema: pa.Schema, spill: Spill | None = None) -> None:
        self.schema = schema
        self._chunks: list[_Chunk] = []
        self._starts: list[int] = [0]
        self._spill = spill
        self._most = None if spill is None else spill.budget.rows_most
        self._added_bytes = 0
        self._added_rows = 0
        self.nbytes = 0
        self.generation = 0

    def __len__(self) -> int:
        return self._starts[-1]

    def add(self, batch: pa.RecordBatch, absent: Mapping[str, np.ndarray] | None = None) -> int:
        """Append a batch of the store's schema and return the handle of its first row.

        ``absent``: a mask for each column that some rows lack. An absent value is not null: it keeps the older value.

        Raises:
            StorageError: rows could not be spilled.
        """
        first = self._starts[-1]
        self._append(_make_chunk(batch, absent or {}), batch.num_rows)
        self._added_bytes += self._chunks[-1].nbytes
        self._added_rows += batch.num_rows
        if self._most is not None and self.nbytes > self._most:
            self._write()
        return first

    def reserve(self, rows: int) -> int:
        """Reserve handles for rows that are only compared by handle, and return the first handle.

        These rows cannot be gathered. They must be released before other rows are added.
        """
        first = self._starts[-1]
        self._append(_Chunk(None, {}), rows)
        return first

    @property
    def starts(self) -> Sequence[int]:
        """The handle of each chunk's first row, and of the next row to be added."""
        return self._starts

    @property
    def row_bytes(self) -> int:
        """The mean bytes of a row, over all rows that were added."""
        return self._added_bytes // max(1, self._added_rows)

    def spill_rows(self) -> None:
        """Move all rows to spill files; from now on spill at a smaller share of the budget.

        Raises:
            StorageError: the disk is full or fails.
        """
        if self._spill is not None:
            self._most = self._spill.budget.rows_held
            self._write()

    def release(self, length: int) -> None:
        """Drop every row from the handle ``length`` on; later rows reuse these handles."""
        self.generation += 1
        while self._starts[-1] > length:
            chunk = self._chunks.pop()
            self._starts.pop()
            self.nbytes -= chunk.nbytes
            keep = length - self._starts[-1]
            if keep > 0:  # rows from before and after were spilled together
                self._append(_cut_chunk(chunk, keep), keep)

    def compact(self, handles: np.ndarray, at_once: int) -> np.ndarray:
        """Keep only some rows, copied ``at_once`` at a time, and return their new handles.

        All other handles become invalid.
        """
        kept = np.unique(handles[handles != NO_ROW])
        fresh: list[_Chunk] = []
        for start in range(0, len(kept), at_once):
            rows = kept[start : start + at_once]
            fresh.append(_make_chunk(self.take(rows), self.list_absent(rows)))
        self._chunks, self._starts, self.nbytes = [], [0], 0
        self.generation += 1
        for chunk in fresh:
            assert chunk.batch is not None
            self._append(chunk, chunk.batch.num_rows)
        return np.where(handles == NO_ROW, NO_ROW, np.searchsorted(kept, handles))

    def take(self, handles: np.ndarray, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """Gather rows, one per handle, in any order and with repeats; a handle of -1 gives null in every column."""
        names = self.schema.names if columns is None else list(columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        if not names:
            return make_batch_without_columns(len(handles))
        pieces, positions = [], []
        for chunk_index, where in self._split_by_chunk(handles):
            if chunk_index < 0:
                pieces.append(_make_nulls(schema, len(where)))
            else:
                local = from_numpy(handles[where] - self._starts[chunk_index])
                pieces.append(take(self._read_rows(self._chunks[chunk_index]).select(names), local))
            positions.append(where)
        if not pieces:
            return _make_nulls(schema, 0)
        if len(pieces) == 1:
            return pieces[0]
        whole = join_batches(pieces)
        order = np.concatenate(positions)
        if (order[1:] > order[:-1]).all():
            return whole
        back = np.empty(len(handles), np.int64)  # the inverse of ``order``: where each handle's row lies in ``whole``
        back[order] = np.arange(len(handles))
        return take(whole, from_numpy(back))

    def column(self, handles: np.ndarray, name: str) -> pa.Array:
        """Gather one column; null where the handle is -1."""
        return self.take(handles, [name]).column(0)

    @property
    def partial(self) -> bool:
        """Whether any row lacks a column."""
        return any(chunk.absent or chunk.masks for chunk in self._chunks)

    def find_absent(self, handles: np.ndarray, name: str) -> np.ndarray:
        """Say for each handle whether its row lacks the column; the handle -1 lacks all."""
        missing = np.asarray(handles == NO_ROW)
        for chunk_index, where in self._split_by_chunk(handles):
            if chunk_index >= 0:
                local = handles[where] - self._starts[chunk_index]
                missing[where] = self._find_lacking(self._chunks[chunk_index], name, local)
        return missing

    def list_absent(self, handles: np.ndarray, but: Collection[str] = ()) -> dict[str, np.ndarray]:
        """Return the masks of the columns that some rows lack, as ``add`` takes them.

        ``but``: columns to leave out.
        """
        if not self.partial:
            return {}
        found = ((name, self.find_absent(handles, name)) for name in self.schema.names if name not in but)
        return {name: mask for name, mask in found if mask.any()}

    def _find_lacking(self, chunk: _Chunk, name: str, local: np.ndarray) -> np.ndarray | bool:
        if name in chunk.absent:
            return np.asarray(chunk.absent[name][local])
        if name not in chunk.masks:
            return False
        mask = self._read_rows(chunk).column(_name_mask(self.schema, name))
        return to_booleans(mask.take(from_numpy(local)))

    def _append(self, chunk: _Chunk, rows: int) -> None:
        self._chunks.append(chunk)
        self._starts.append(self._starts[-1] + rows)
        self.nbytes += chunk.nbytes

    def _read_rows(self, chunk: _Chunk) -> pa.RecordBatch:
        if chunk.batch is not None:
            return chunk.batch
        assert self._spill is not None
        assert chunk.spilled is not None
        return self._spill.read_batch(chunk.spilled)

    def _split_by_chunk(self, handles: np.ndarray) -> list[tuple[int, np.ndarray]]:
        """Return (chunk, indices of its handles) for each chunk that the handles name; chunk -1 stands for no row."""
        if not len(handles):
            return []
        if (handles[1:] > handles[:-1]).all():  # the usual case; it needs no sort
            return list(self._split_ordered(handles))
        chunk_of = np.searchsorted(np.asarray(self._starts), handles, side="right") - 1
        if (chunk_of == chunk_of[0]).all():
            return [(int(chunk_of[0]), np.arange(len(handles)))]
        order = np.argsort(chunk_of, kind="stable")
        present, first = np.unique(chunk_of[order], return_index=True)
        return list(zip(present.tolist(), np.split(order, first[1:]), strict=True))

    def _split_ordered(self, handles: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Do what ``_split_by_chunk`` does, for rising handles."""
        chunk = int(np.searchsorted(self._starts, handles[0], side="right")) - 1
        start = 0
        while start < len(handles):
            stop = int(np.searchsorted(handles, 0 if chunk < 0 else self._starts[chunk + 1]))
            if stop > start:
                yield chunk, np.arange(start, stop)
            start, chunk = stop, chunk + 1

    def _write(self) -> None:
        """Write the chunks that are in memory to a spill file, with small neighbours joined."""
        # Only chunks at the end are in memory; all before them were written by earlier calls.
        first = len(self._chunks)
        while first and self._chunks[first - 1].batch is not None:
            first -= 1
        held = self._chunks[first:]
        if not held:
            return
        assert self._spill is not None
        masks = frozenset(name for chunk in held for name in chunk.absent)
        fields = [pa.field(_name_mask(self.schema, name), pa.bool_()) for name in sorted(masks)]
        writer = self._spill.open_writer(pa.schema([*(field.with_nullable(True) for field in self.schema), *fields]))
        groups = _split_into_groups(held)
        spilled = [writer.add(_join_chunks(self.schema, group, sorted(masks))) for group in groups]
        writer.close()
        del self._chunks[first:], self._starts[first + 1 :]
        self.nbytes = 0
        for place in spilled:
            self._append(_Chunk(None, {}, place, masks), place.rows)


def _make_chunk(batch: pa.RecordBatch, absent: Mapping[str, np.ndarray]) -> _Chunk:
    # A mask with stride 0 repeats one value and takes no memory.
    masks = sum(mask.nbytes for mask in absent.values() if mask.strides != (0,))
    return _Chunk(batch, absent, nbytes=batch.nbytes + masks)


def _cut_chunk(chunk: _Chunk, rows: int) -> _Chunk:
    """Return the first rows of a chunk. A spilled chunk keeps all its rows, but no handle names the others."""
    if chunk.batch is None:
        return chunk
    return _make_chunk(chunk.batch.slice(0, rows), {name: mask[:rows] for name, mask in chunk.absent.items()})


def _name_mask(schema: pa.Schema, name: str) -> str:
    return f"{_ABSENT}{schema.get_field_index(name)}"


def _split_into_groups(chunks: Sequence[_Chunk]) -> Iterator[list[_Chunk]]:
    """Split chunks into runs, each spilled as one batch."""
    group: list[_Chunk] = []
    rows = 0
    for chunk in chunks:
        assert chunk.batch is not None
        rows += chunk.batch.num_rows
        if group and rows > _JOINED_ROWS:
            yield group
            group, rows = [], chunk.batch.num_rows
        group.append(chunk)
    yield group


def _join_chunks(schema: pa.Schema, chunks: Sequence[_Chunk], masks: Sequence[str]) -> pa.RecordBatch:
    """Join chunks to one batch, with a column for each mask."""
    batches = [chunk.batch for chunk in chunks if chunk.batch is not None]
    columns = dict(zip(schema.names, join_batches(batches).columns, strict=True))
    for name in masks:
        parts = [
            chunk.absent.get(name, np.broadcast_to(np.False_, batch.num_rows))
            for chunk, batch in zip(chunks, batches, strict=True)
        ]
        columns[_name_mask(schema, name)] = from_numpy(np.concatenate(parts))
    if not columns:
        return make_batch_without_columns(sum(batch.num_rows for batch in batches))
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _make_nulls(schema: pa.Schema, length: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(length, field.type) for field in schema], schema=make_nullable(schema))
