"""GroupedRows: rows by group, on disk when memory is short, sorted if asked.

Rows come in any order. When they exceed a number of bytes, the rows of every group go to spill files. Rows that are to
be sorted are written as sorted runs, one for each group, and ``sort`` merges the runs of a group: it holds a part of
each run, and sorts all rows up to the least of the parts' last rows together. Only these rows are known to come next.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from threading import Lock
from typing import Generic, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, join_batches, to_booleans, to_numbers
from hoodie_py.errors import StorageError
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill, Spilled, group_to_size
from hoodie_py.reader.read_info import ReadStats

_HELD_BYTES = 64 << 20
_MERGED_BYTES = 16 << 20
_MOST_SORTED_BYTES = 1 << 30  # at once: Arrow's strings have offsets of 32 bits
_BATCH_ROWS = 1 << 16
_RUN_BATCH_ROWS = 1 << 13
_PROBES = 32

Group = TypeVar("Group", bound=Hashable)


class GroupedRows(Generic[Group]):
    """Rows by group. Use it as a context manager, or call ``close``: it removes the files.

    All rows are added first, in one thread; then they are read. ``counts`` has the number of rows of each group.

    Raises:
        StorageError: the disk is full or fails.
    """

    def __init__(self, budget: MemoryBudget, *, held: int | None = None, order: Sequence[str] = ()) -> None:
        """Hold up to ``held`` bytes in memory, by default a portion of the budget. ``order`` names the columns that
        ``sort`` sorts by, the most important first; all rows have one schema then.
        """
        held = min(_HELD_BYTES, budget.portion) if held is None else held
        self._most = min(held, _MOST_SORTED_BYTES) if order else held
        self._order = tuple(order)
        self._spill = Spill(budget, ReadStats())
        self._writer = self._spill.open_writer()
        self._bytes = 0
        self._held: dict[Group, list[pa.RecordBatch]] = {}
        self._runs: dict[Group, list[list[Spilled]]] = {}
        self._is_complete, self._lock = False, Lock()
        self.counts: dict[Group, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove everything from memory and disk."""
        self._held.clear()
        try:
            with suppress(StorageError):  # the files go in any case
                self._writer.close()
        finally:
            self._spill.close()

    def add(self, group: Group, batch: pa.RecordBatch) -> None:
        """Add rows to a group."""
        assert not self._is_complete
        if not batch.num_rows:
            return
        if self._order:  # from sorted batches rows are taken in almost the order they lie
            batch = batch.take(_find_order(batch, self._order))
        if self._held and self._bytes + batch.nbytes > self._most:
            self._write_out()
        self._held.setdefault(group, []).append(batch)
        self._bytes += batch.nbytes
        self.counts[group] = self.counts.get(group, 0) + batch.num_rows
        if self._bytes > self._most:
            self._write_out()

    def read(self, group: Group, start: int = 0, stop: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a group as they came, from number ``start`` up to ``stop``. Several threads may read."""
        assert not self._order
        self._complete()
        stop = self.counts.get(group, 0) if stop is None else stop
        read, first = self._spill.make_reader(), 0
        for each in chain(*self._runs.get(group, []), self._held.get(group, [])):
            count = each.rows if isinstance(each, Spilled) else each.num_rows
            begin, end = max(start, first), min(stop, first + count)
            if begin < end:
                batch = read(each) if isinstance(each, Spilled) else each
                yield batch.slice(begin - first, end - begin)
            first += count

    def sort(self, group: Group) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a group in ascending order, nulls last; rows with equal keys keep the order they came in.

        Sorting gives up the rows in memory, so a group can be sorted once.
        """
        self._complete()
        runs = self._runs.get(group)
        if runs is None:
            yield from _sort(self._held.pop(group, []), self._order, _BATCH_ROWS)
            return
        read, share = self._spill.make_reader(), min(_MERGED_BYTES, self._spill.budget.portion) // len(runs)
        parts = [map(join_batches, group_to_size(map(read, run), share)) for run in runs]
        for window in _merge(parts, self._order):
            yield from _sort(window, self._order, _BATCH_ROWS)

    def _complete(self) -> None:
        with self._lock:
            if self._is_complete:
                return
            if self._order and self._runs:  # merging takes the memory
                self._write_out()
            self._writer.close()
            self._is_complete = True

    def _write_out(self) -> None:
        for group, batches in self._held.items():
            if self._order:
                rows = min(_RUN_BATCH_ROWS, self._count_rows(batches))
                pieces = _sort(batches, self._order, rows)
            else:
                pieces = (each.slice(at, _BATCH_ROWS) for each in batches for at in range(0, len(each), _BATCH_ROWS))
            self._runs.setdefault(group, []).append([self._writer.add(piece) for piece in pieces])
        self._held.clear()
        self._bytes = 0

    def _count_rows(self, batches: Sequence[pa.RecordBatch]) -> int:
        rows = sum(each.num_rows for each in batches)
        return self._spill.budget.count_rows_at_once(sum(each.nbytes for each in batches) // rows)


def divide(rows: pa.RecordBatch, groups: np.ndarray) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield each group's number and its rows, in their order. ``groups`` has the number of each row's group."""
    if (np.diff(groups) < 0).any():
        small = groups.astype(np.min_scalar_type(groups.max()))  # NumPy sorts these by their digits
        at = np.argsort(small, kind="stable")
        rows, groups = rows.take(from_numpy(at)), groups[at]
    bounds = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(groups)]
    for start, stop in pairwise(bounds if len(groups) else ()):
        yield int(groups[start]), rows.slice(start, stop - start)


def keep_last(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the last row of each series of rows that are equal in some columns. The columns have no nulls."""
    for rows, after in pairwise(chain(batches, [None])):
        assert rows is not None
        last = np.zeros(rows.num_rows, bool)
        for name in columns:
            values = rows.column(name)
            last[:-1] |= to_booleans(pc.not_equal(values.slice(1), values.slice(0, len(values) - 1)))
            last[-1] |= after is None or after.column(name)[0] != values[-1]
        if last.any():
            yield rows.filter(from_numpy(last))


def _sort(batches: list[pa.RecordBatch], order: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches in order, up to ``rows`` at once. The list is empty afterwards.

    Columns are joined one by one and rows taken piece by piece: another copy of all rows would cost more than sorting.
    """
    if not batches:
        return
    schema = batches[0].schema
    columns = pa.Table.from_batches(batches).columns
    batches.clear()
    for number in range(len(columns)):
        columns[number] = columns[number].combine_chunks()
    joined = pa.RecordBatch.from_arrays(columns, schema=schema)
    at = _find_order(joined, order)
    for start in range(0, len(at), rows):
        yield joined.take(at.slice(start, rows))


def _find_order(rows: pa.Table | pa.RecordBatch, order: Sequence[str]) -> pa.Array:
    return pc.sort_indices(rows.select(list(order)), sort_keys=[(name, "ascending") for name in order])


def _merge(runs: Sequence[Iterator[pa.RecordBatch]], order: Sequence[str]) -> Iterator[list[pa.RecordBatch]]:
    """Yield the rows of sorted runs window by window. Its batches hold rows that come before all others."""
    ahead = [(next(run), run) for run in runs]
    while ahead:
        counts = _count_rows_of_window([rows for rows, _ in ahead], order)
        yield [rows.slice(0, count) for (rows, _), count in zip(ahead, counts, strict=True) if count]
        rest = [
            (rows.slice(count) if count < rows.num_rows else next(run, None), run)
            for (rows, run), count in zip(ahead, counts, strict=True)
        ]
        ahead = [(rows, run) for rows, run in rest if rows is not None]


def _count_rows_of_window(heads: Sequence[pa.RecordBatch], order: Sequence[str]) -> list[int]:
    """Count the rows of each head up to the least of the heads' last rows. Of equal rows those of earlier heads come
    first.

    All heads are searched at the same time: each step sorts some rows of every head together with the least last row.
    """
    keys = [head.select(list(order)) for head in heads]
    low, high = [0] * len(heads), [head.num_rows for head in heads]
    ends = [each.slice(each.num_rows - 1) for each in keys]
    least = _find_order(pa.Table.from_batches(ends), order)[0].as_py()
    low[least] = high[least]
    while low != high:
        at = [np.arange(a, b, max(1, (b - a) // _PROBES)) for a, b in zip(low, high, strict=True)]
        rows = [each.take(from_numpy(places)) for each, places in zip(keys, at, strict=True)]
        rows[least] = ends[least]
        owners = np.repeat(np.arange(len(rows)), [each.num_rows for each in rows])
        owners = owners[to_numbers(_find_order(pa.Table.from_batches(rows), order)).astype(np.int64)]
        before = np.bincount(owners[: np.flatnonzero(owners == least)[0]], minlength=len(rows)).tolist()
        for number, (places, count) in enumerate(zip(at, before, strict=True)):
            if count:
                low[number] = int(places[count - 1]) + 1
            if count < len(places):
                high[number] = int(places[count])
    return low
