"""The rows of a file slice with their record keys (``SliceRows``), and the rows of some keys (``KeyedRows``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, index_in, take, to_numbers
from hoodie_py.arrow.fields import find_top_level_name
from hoodie_py.reader.file_group import FileGroupReader
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.reader.record.row_store import NO_ROW, RowStore
from hoodie_py.runtime.fold_gate import FoldGate


class SliceRows:
    """Reads some columns of a file slice, and the columns of its keys."""

    def __init__(
        self,
        file_slice: FileSlice,
        info: ReadInfo,
        columns: Sequence[str],
        options: ReadOptions,
        merger: Merger | None,
        gate: FoldGate | None,
    ) -> None:
        self._slice, self._info, self._options, self._merger, self._gate = file_slice, info, options, merger, gate
        self._keys = RecordKeys.of(info.config.populate_meta_fields, info.config.record_key_fields)
        wanted = dict.fromkeys((*columns, *(find_top_level_name(info.schema, name) for name in self._keys.columns)))
        self.schema = pa.schema([info.schema.field(name).with_nullable(True) for name in wanted])

    def read(self) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Yield the rows batch by batch, with their keys."""
        reader = FileGroupReader(
            self._slice, self._info, self.schema.names, self._merger, self._options, gate=self._gate
        )
        for batch in reader.to_batches():
            yield batch, self._keys.read_keys(batch)


class KeyedRows:
    """The rows of some distinct keys; they may spill, so close it.

    ``at`` has the row handle of each key, -1 for none. If a key repeats in the slice, its first row counts.
    """

    def __init__(self, rows: SliceRows, options: ReadOptions, keys: pa.Array) -> None:
        self._spill = Spill(MemoryBudget.from_options(options), ReadStats())
        self._store = RowStore(rows.schema, self._spill)
        self._rows = rows
        self._keys = keys
        self.at = np.full(len(keys), NO_ROW, np.int64)

    def load(self) -> KeyedRows:
        """Read the rows."""
        for batch, keys in self._rows.read():
            numbers = to_numbers(index_in(keys, self._keys), -1).astype(np.int64)
            rows = np.flatnonzero(numbers >= 0)
            rows = rows[self.at[numbers[rows]] == NO_ROW]
            _, first = np.unique(numbers[rows], return_index=True)
            rows = rows[np.sort(first)]
            if len(rows):
                handle = self._store.add(take(batch, from_numpy(rows)))
                self.at[numbers[rows]] = handle + np.arange(len(rows))
        return self

    def take(self, handles: np.ndarray, columns: Sequence[str]) -> pa.RecordBatch:
        """Return rows by their handles; null in every column for -1."""
        return self._store.take(handles, columns)

    def close(self) -> None:
        """Remove the spill files."""
        self._spill.close()
