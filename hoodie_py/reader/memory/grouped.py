"""Sort encoded records by file group and key, in bounded memory.

Records come in any order, in portions. Each full portion is sorted and written to disk as one run. The runs of a file
group are merged in columns: of each run one batch is in memory; all rows up to the smallest of the batches' last keys
are sorted together and given out. Of records with one key only one stays.

Sort the rows of a clustering group in bounded memory.

Rows are collected up to a number of bytes and sorted. If there are more, sorted runs are written to spill files and
merged: one piece of each run is in memory, and the rows up to the least of the pieces' last rows are known to come
first. Rows with equal keys keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_chunks, to_numbers
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill, Spilled
from hoodie_py.reader.read_info import ReadStats

PORTION_BYTES = 64 << 20
BATCH_ROWS = 8192
_KEY, _VALUE = "key", "value"
_SCHEMA = pa.schema({_KEY: pa.large_binary(), _VALUE: pa.large_binary()})


class SortedRecords:
    """Records on their way into the file groups of a new partition; ``close`` removes the files on disk."""

    def __init__(
        self, budget: MemoryBudget, *, portion_bytes: int = PORTION_BYTES, batch_rows: int = BATCH_ROWS
    ) -> None:
        self._spill = Spill(budget, ReadStats())
        self._portion_bytes = min(portion_bytes, max(1, budget.portion))
        self._batch_rows = batch_rows
        self._portion: dict[int, list[pa.RecordBatch]] = {}
        self._bytes = 0
        self._runs: dict[int, list[list[Spilled]]] = {}  # by number of the file group
        self.counts: dict[int, int] = {}  # records so far, by number of the file group

    def add(self, groups: np.ndarray, keys: pa.Array, values: pa.Array) -> None:
        """Take records: the number of each one's file group, its key (text or bytes), its encoded value."""
        rows = pa.RecordBatch.from_arrays(
            [keys.cast(pa.large_binary()), values.cast(pa.large_binary())], schema=_SCHEMA
        )
        self._bytes += rows.nbytes
        for number in np.unique(groups).tolist():
            at = np.flatnonzero(groups == number)[::-1]  # the last of a key first
            self.counts[number] = self.counts.get(number, 0) + len(at)
            self._portion.setdefault(number, []).append(rows.take(from_numpy(at.copy())))
        if self._bytes >= self._portion_bytes:
            self._write_runs()

    def iterate(self, group: int) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Yield keys and values of a file group, sorted by the keys' bytes, each key once."""
        waiting = _sort(self._portion.get(group, []))
        runs: list[Iterator[pa.RecordBatch]] = [map(self._spill.read_batch, run) for run in self._runs.get(group, [])]
        if waiting.num_rows:
            runs.append(iter(_cut(waiting, self._batch_rows)))
        before: bytes | None = None
        for rows in _merge(runs):
            kept = rows.filter(from_numpy(_find_first(rows.column(_KEY), before)))
            before = rows.column(_KEY)[-1].as_py()
            if kept.num_rows:
                yield kept.column(_KEY), kept.column(_VALUE)

    def close(self) -> None:
        """Remove everything from memory and disk."""
        self._portion.clear()
        self._spill.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_runs(self) -> None:
        for number, batches in self._portion.items():
            writer = self._spill.open_writer(_SCHEMA)
            run = [writer.add(batch) for batch in _cut(_sort(batches), self._batch_rows)]
            writer.close()
            self._runs.setdefault(number, []).append(run)
        self._portion.clear()
        self._bytes = 0


def _sort(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Join batches, sorted by key; of equal keys the one that came last is first."""
    table = pa.Table.from_batches(batches[::-1], _SCHEMA)
    rows = pa.RecordBatch.from_arrays([join_chunks(column) for column in table.columns], schema=_SCHEMA)
    return rows.take(pc.array_sort_indices(rows.column(_KEY))) if rows.num_rows else rows


def _cut(rows: pa.RecordBatch, size: int) -> list[pa.RecordBatch]:
    return [rows.slice(start, size) for start in range(0, rows.num_rows, size)]


def _merge(runs: list[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of sorted runs in order; of equal keys those of later runs come first."""
    heads: list[pa.RecordBatch | None] = [next(run, None) for run in runs]
    while any(head is not None for head in heads):
        bound = min(head.column(_KEY)[-1].as_py() for head in heads if head is not None)
        taken: list[pa.RecordBatch] = []
        for number, head in enumerate(heads):
            if head is None:
                continue
            upto = int(
                to_numbers(pc.less_equal(head.column(_KEY), pa.scalar(bound, pa.large_binary())).cast(pa.int8())).sum()
            )
            if upto:
                taken.append(head.slice(0, upto))
                heads[number] = head.slice(upto) if upto < head.num_rows else next(runs[number], None)
        yield _sort(taken)


def _find_first(keys: pa.Array, before: bytes | None) -> np.ndarray:
    """Return which rows are the first of their key; ``before`` is the last key of the rows before."""
    first = np.ones(len(keys), bool)
    if len(keys) > 1:
        first[1:] = to_numbers(pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1)).cast(pa.int8())) == 1
    if before is not None and len(keys):
        first[0] = keys[0].as_py() != before
    return first


_BATCH_ROWS = 1 << 16
_MOST_BYTES = 1 << 30  # of a run: Arrow's strings have offsets of 32 bits
_SORT_KEY = "\0sort"  # no column of a table has such a name

MakeKeys = Callable[[pa.RecordBatch], Sequence[pa.Array]]


def sort_rows(batches: Iterable[pa.RecordBatch], make_keys: MakeKeys, spill: Spill) -> Iterator[pa.RecordBatch]:
    """Yield rows in ascending order of the columns that ``make_keys`` returns for each batch.

    All batches have one schema. The spill's budget says how many bytes are held.

    Raises:
        StorageError: the disk is full or fails.
    """
    most = min(_MOST_BYTES, max(1, spill.budget.limit // 3))  # the rows, the sorted rows, and what comes out
    runs: list[_Run] = []
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in filter(len, batches):
        if held and size + batch.nbytes > most:
            runs.append(_write_run(_sort_batches(held), spill))
            size = 0
        keyed = _add_keys(batch, make_keys)
        held.append(keyed.take(_find_order(keyed)))  # from sorted batches rows are taken in almost the order they lie
        size += batch.nbytes
    if not held:
        return
    last = _sort_batches(held)
    if not runs:
        yield from (_drop_keys(piece) for piece in last)
        return
    runs.append(_write_run(last, spill))
    width = len(runs[0].read(spill).schema.names) - len(_list_keys(runs[0].read(spill).schema))
    for piece in _merge_runs(runs, spill):
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
    return [name for name in schema.names if name.startswith(_SORT_KEY)]


def _sort_batches(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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


def _add_keys(batch: pa.RecordBatch, make_keys: MakeKeys) -> pa.RecordBatch:
    made = make_keys(batch)
    names = [f"{_SORT_KEY}{number}" for number in range(len(made))]
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


def _merge_runs(runs: list[_Run], spill: Spill) -> Iterator[pa.RecordBatch]:
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
