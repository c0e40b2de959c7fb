"""Rows behind handles: the Arrow batches of one file group, addressed by one number each.

A handle stays valid until its chunk is released; -1 is "no data".  Chunks are added at the end only and released from
the
end only, so rows made for one base batch go away with it.  Nothing is copied until ``take``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from hoodie_py.reader.conform import without_columns

NO_ROW = -1


class RowStore:
    """An append-only pile of record batches of one schema.

    Args:
        schema: the columns every chunk has, in this order.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._chunks: list[pa.RecordBatch] = []
        self._absent: list[Mapping[str, np.ndarray]] = []
        self._starts: list[int] = [0]
        self.generation = 0

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def nbytes(self) -> int:
        """Bytes held by the chunks' buffers."""
        return int(sum(chunk.nbytes for chunk in self._chunks))

    def add(self, batch: pa.RecordBatch, absent: Mapping[str, np.ndarray] | None = None) -> int:
        """Append a batch of the store's schema and return the handle of its first row.

        Args:
            batch: the rows.
            absent: bool per row for each column that some rows do not have (which is not null: an older value stays).
        """
        first = self._starts[-1]
        self._chunks.append(batch)
        self._absent.append(absent or {})
        self._starts.append(first + batch.num_rows)
        return first

    def release(self, length: int) -> None:
        """Drop every chunk that begins at or after the handle ``length``; its handles will be given out again."""
        self.generation += 1
        while self._starts[-1] > length and self._starts[-2] >= length:
            self._chunks.pop()
            self._absent.pop()
            self._starts.pop()

    def take(self, handles: np.ndarray, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """Gather rows, one per handle, null in every column where the handle is -1.

        Args:
            handles: int64 handles in any order, repeats allowed.
            columns: names of the columns wanted; None for all.
        """
        names = self.schema.names if columns is None else list(columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        if not names:
            return without_columns(len(handles))
        pieces, positions = [], []
        for chunk_index, where in self._by_chunk(handles):
            if chunk_index < 0:
                pieces.append(_nulls(schema, len(where)))
            else:
                local = pa.array(handles[where] - self._starts[chunk_index])
                pieces.append(self._chunks[chunk_index].select(names).take(local))
            positions.append(where)
        if not pieces:
            return _nulls(schema, 0)
        if len(pieces) == 1:
            return pieces[0]
        back = np.empty(len(handles), np.int64)
        back[np.concatenate(positions)] = np.arange(len(handles))
        arrays = [
            pa.concat_arrays([piece.column(i) for piece in pieces]).take(pa.array(back)) for i in range(len(names))
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def column(self, handles: np.ndarray, name: str) -> pa.Array:
        """Gather one column; null where the handle is -1."""
        return self.take(handles, [name]).column(0)

    @property
    def partial(self) -> bool:
        """Whether any row lacks a column."""
        return any(self._absent)

    def absent(self, handles: np.ndarray, name: str) -> np.ndarray:
        """Say for each handle whether its row does not have the column; -1 has none."""
        missing = np.asarray(handles == NO_ROW)
        for chunk_index, where in self._by_chunk(handles):
            if chunk_index >= 0 and name in self._absent[chunk_index]:
                missing[where] = self._absent[chunk_index][name][handles[where] - self._starts[chunk_index]]
        return missing

    def _by_chunk(self, handles: np.ndarray) -> list[tuple[int, np.ndarray]]:
        chunk_of = np.searchsorted(np.asarray(self._starts), handles, side="right") - 1
        present = np.unique(chunk_of)
        if len(present) == 1:
            return [(int(present[0]), np.arange(len(handles)))]
        return [(int(chunk), np.flatnonzero(chunk_of == chunk)) for chunk in present]


def _nulls(schema: pa.Schema, length: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.nulls(length, field.type) for field in schema],
        schema=pa.schema([field.with_nullable(True) for field in schema]),
    )
