"""Compares the rows of a file group before and after a commit, if no file records what it changed.

Copy-on-write files that Java writes while change data is enabled need this in one case: a commit that deletes all old
rows of a file and inserts others logs nothing, and Java's query shows only the inserts. The comparison also covers
commits from before change data was enabled, and logs on a base file that repeats a key.

A row that stays has the same key and meta columns, which name the commit that wrote it and the row's number there;
without meta columns all columns are the same. The other rows pair by key, in their order: they are updates. Rows
without a pair are deletes and inserts. A state may have a key several times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import from_numpy, index_in, join_chunks, take, to_numbers
from hoodie_py.formats.names import COMMIT_SEQNO_FIELD, COMMIT_TIME_FIELD
from hoodie_py.reader.changes.row_changes import RowChanges
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.record.record import DELETE, INSERT, UPDATE
from hoodie_py.reader.record.row_store import NO_ROW, RowStore
from hoodie_py.table.changes.json_text import AVRO, write_json
from hoodie_py.table.changes.keyed_rows import SliceRows

_META = (COMMIT_TIME_FIELD, COMMIT_SEQNO_FIELD)


def list_compared_columns(info: ReadInfo, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that a comparison reads to find changes of ``columns``."""
    return tuple(dict.fromkeys((*columns, *(_META if info.config.populate_meta_fields else info.schema.names))))


def compare_slices(
    instant: str, old: SliceRows, new: SliceRows, columns: Sequence[str], options: ReadOptions
) -> Iterator[RowChanges]:
    """Yield the rows that differ between two states, which have the columns of ``list_compared_columns``.

    Raises:
        HoodieError: files that are missing, corrupt or not supported, or versions that do not merge.
    """
    with closing(Spill(MemoryBudget.from_options(options), ReadStats())) as spill:
        store = RowStore(old.schema, spill)
        before, after = _Rows(), _Rows()
        for batch, keys in old.read():
            before.add(store.add(batch), keys, _identify(batch, keys))
        left = before.count_identities()
        for batch, keys in new.read():
            changed = left.take_away(_identify(batch, keys))
            if len(changed):
                rows = from_numpy(changed)
                after.add(store.add(take(batch, rows)), take(keys, rows), None)
        before.keep(left.find_left())
        for codes, gone, come in _pair(before, after):
            for start in range(0, len(gone), options.batch_rows):
                part = slice(start, start + options.batch_rows)
                sides = (store.take(handles[part], columns) for handles in (gone, come))
                yield RowChanges(instant, codes[part], *sides)


def _identify(batch: pa.RecordBatch, keys: pa.Array) -> pa.Array:
    """Return a text for each row, which is equal in both states if the row stayed."""
    if COMMIT_TIME_FIELD in batch.schema.names:
        parts = [batch.column(name).fill_null("") for name in _META]
    else:
        fields = [field.with_nullable(True) for field in batch.schema]
        parts = [write_json(pa.StructArray.from_arrays(batch.columns, fields=fields), AVRO)]
    return pc.binary_join_element_wise(*parts, keys, "\x00")


class _Rows:
    """Handles and keys of rows, in their order."""

    def __init__(self) -> None:
        self._handles: list[np.ndarray] = []
        self._keys: list[pa.Array] = []
        self._identities: list[pa.Array] = []

    def add(self, first: int, keys: pa.Array, identities: pa.Array | None) -> None:
        self._handles.append(np.arange(first, first + len(keys)))
        self._keys.append(keys)
        if identities is not None:
            self._identities.append(identities)

    def count_identities(self) -> _Left:
        found = _Left(join_chunks(pa.chunked_array(self._identities or [pa.array([], pa.string())])))
        self._identities = []
        return found

    def keep(self, rows: np.ndarray) -> None:
        self._handles = [self.handles[rows]]
        self._keys = [take(self.keys, from_numpy(rows))]

    @property
    def handles(self) -> np.ndarray:
        return np.concatenate([np.empty(0, np.int64), *self._handles])

    @property
    def keys(self) -> pa.Array:
        return join_chunks(pa.chunked_array(self._keys or [pa.array([], pa.string())]))


class _Left:
    """The old rows that no new row has matched yet, by their identities."""

    def __init__(self, identities: pa.Array) -> None:
        encoded = identities.dictionary_encode()
        self._codes = to_numbers(encoded.indices).astype(np.int64)
        self._values = encoded.dictionary
        self._counts = np.bincount(self._codes, minlength=len(self._values))

    def take_away(self, identities: pa.Array) -> np.ndarray:
        """Remove one old row for each new row of the same identity.

        Returns the indices of new rows without an old row.
        """
        codes = to_numbers(index_in(identities, self._values), -1).astype(np.int64)
        known = np.flatnonzero(codes >= 0)
        stays = known[rank_values(codes[known]) < self._counts[codes[known]]]
        np.subtract.at(self._counts, codes[stays], 1)
        changed = np.ones(len(codes), bool)
        changed[stays] = False
        return np.flatnonzero(changed)

    def find_left(self) -> np.ndarray:
        """Return the numbers of the rows that are left."""
        return np.flatnonzero(rank_values(self._codes) < self._counts[self._codes])


def rank_values(codes: np.ndarray) -> np.ndarray:
    """Return for each value how many equal values come before it."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(codes) else ordered
    sizes = np.diff(np.concatenate([starts, [len(codes)]]))
    ranks = np.empty(len(codes), np.int64)
    ranks[order] = np.arange(len(codes)) - np.repeat(starts, sizes)
    return ranks


def _pair(before: _Rows, after: _Rows) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield operations, handles of old rows and handles of new rows; -1 stands for no row."""
    old, new = before.handles, after.handles
    both = pa.concat_arrays([before.keys, after.keys]).dictionary_encode()
    codes = to_numbers(both.indices).astype(np.int64)
    mine, theirs = codes[: len(old)], codes[len(old) :]
    span = len(codes) + 1
    places, wanted = mine * span + rank_values(mine), theirs * span + rank_values(theirs)
    _, at, into = np.intersect1d(places, wanted, assume_unique=True, return_indices=True)
    gone, come = np.ones(len(old), bool), np.ones(len(new), bool)
    gone[at], come[into] = False, False
    for code, first, last in (
        (UPDATE, old[at], new[into]),
        (DELETE, old[gone], np.full(np.count_nonzero(gone), NO_ROW, np.int64)),
        (INSERT, np.full(np.count_nonzero(come), NO_ROW, np.int64), new[come]),
    ):
        yield np.full(len(first), code, np.int8), first, last
