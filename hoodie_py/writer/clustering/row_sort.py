"""Sort the rows of a clustering group in bounded memory.

Rows are collected up to a number of bytes and sorted. If there are more, sorted runs are written to spill files and
merged: one piece of each run is in memory, and the rows up to the least of the pieces' last rows are known to come
first. Rows with equal keys keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import to_numbers
from hoodie_py.reader.memory.spill import Spill, Spilled
from hoodie_py.writer.clustering.row_keys import RowKeys

_BATCH_ROWS = 1 << 16
_MOST_BYTES = 1 << 30  # of a run: Arrow's strings have offsets of 32 bits
_KEY = "\0sort"  # no column of a table has such a name


def sort_rows(batches: Iterable[pa.RecordBatch], keys: RowKeys, spill: Spill) -> Iterator[pa.RecordBatch]:
    """Yield rows in the order of their keys. All batches have one schema; the spill's budget says how much is held.

    Raises:
        StorageError: the disk is full or fails.
    """
    most = min(_MOST_BYTES, max(1, spill.budget.limit // 3))  # the rows, the sorted rows, and what comes out
    runs: list[_Run] = []
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in filter(len, batches):
        if held and size + batch.nbytes > most:
            runs.append(_write_run(_sort(held), spill))
            size = 0
        keyed = _add_keys(batch, keys)
        held.append(keyed.take(_find_order(keyed)))  # from sorted batches rows are taken in almost the order they lie
        size += batch.nbytes
    if not held:
        return
    last = _sort(held)
    if not runs:
        yield from (_drop_keys(piece) for piece in last)
        return
    runs.append(_write_run(last, spill))
    width = len(runs[0].read(spill).schema.names) - len(_list_keys(runs[0].read(spill).schema))
    for piece in _merge(runs, spill):
        yield piece.select(range(width))


@dataclass(slots=True)
class _Run:
    """A sorted run on disk: its batches that are still to come."""

    batches: list[Spilled]
    rest: pa.RecordBatch | None = field(default=None)

    def read(self, spill: Spill) -> pa.RecordBatch:
        """Return the rows at hand; the next batch if there are none."""
        if self.rest is None or not self.rest.num_rows:
            self.rest = spill.read_copy(self.batches.pop(0))
        return self.rest

    @property
    def is_over(self) -> bool:
        """Whether no rows are left."""
        return not self.batches and (self.rest is None or not self.rest.num_rows)


def _list_keys(schema: pa.Schema) -> list[str]:
    return [name for name in schema.names if name.startswith(_KEY)]


def _sort(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of sorted batches in order, in pieces; the list is empty afterwards.

    Columns are joined one by one and rows taken piece by piece: another copy of all rows would cost more than sorting.
    """
    schema = batches[0].schema
    columns = pa.Table.from_batches(batches).columns
    batches.clear()
    order = _find_order(pa.Table.from_arrays(columns, schema=schema))
    for at in range(len(columns)):
        columns[at] = columns[at].combine_chunks()
    joined = pa.RecordBatch.from_arrays(columns, schema=schema)
    for start in range(0, len(order), _BATCH_ROWS):
        yield joined.take(order.slice(start, _BATCH_ROWS))


def _add_keys(batch: pa.RecordBatch, keys: RowKeys) -> pa.RecordBatch:
    made = keys.make_columns(batch)
    names = [f"{_KEY}{number}" for number in range(len(made))]
    return pa.RecordBatch.from_arrays([*batch.columns, *made], names=[*batch.schema.names, *names])


def _find_order(rows: pa.Table | pa.RecordBatch) -> pa.Array:
    names = _list_keys(rows.schema)
    return pc.sort_indices(rows.select(names), sort_keys=[(name, "ascending") for name in names])


def _drop_keys(piece: pa.RecordBatch) -> pa.RecordBatch:
    return piece.drop_columns(_list_keys(piece.schema))


def _write_run(pieces: Iterator[pa.RecordBatch], spill: Spill) -> _Run:
    first = next(pieces)
    writer = spill.open_writer(first.schema)
    try:
        return _Run([writer.add(piece) for piece in chain([first], pieces)])
    finally:
        writer.close()


def _merge(runs: list[_Run], spill: Spill) -> Iterator[pa.RecordBatch]:
    """Yield the rows of runs in order, with the columns of their keys."""
    while runs:
        pieces = [run.read(spill) for run in runs]
        joined = pa.Table.from_batches(pieces)
        order = to_numbers(_find_order(joined)).astype(np.int64)
        ends = np.cumsum([piece.num_rows for piece in pieces])
        open_ends = [end - 1 for run, end in zip(runs, ends.tolist(), strict=True) if run.batches]
        at = np.empty(len(order), np.int64)
        at[order] = np.arange(len(order))
        count = len(order) if not open_ends else int(at[open_ends].min()) + 1  # rows after these may come from disk
        taken = order[:count]
        yield from joined.combine_chunks().take(pa.array(taken)).combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)
        owners = np.searchsorted(ends, taken, side="right")
        for run, piece, gone in zip(runs, pieces, np.bincount(owners, minlength=len(runs)).tolist(), strict=True):
            run.rest = piece.slice(gone)
        runs = [run for run in runs if not run.is_over]
