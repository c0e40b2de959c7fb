"""KeyedRows: rows of a file slice by record key, held in a row store that may spill.

Of a key that repeats in the slice the first row counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy, to_numbers
from hoodie_py.arrow.compute import index_in, take
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
    """Reads the rows of file slices with their keys."""

    def __init__(
        self,
        info: ReadInfo,
        columns: Sequence[str],
        options: ReadOptions,
        merger: Merger | None,
        gate: FoldGate | None,
    ) -> None:
        self.keys = RecordKeys.of(info.config.populate_meta_fields, info.config.record_key_fields)
        wanted = dict.fromkeys((*columns, *(find_top_level_name(info.schema, name) for name in self.keys.columns)))
        self.schema = pa.schema([info.schema.field(name).with_nullable(True) for name in wanted])
        self._info, self._options, self._merger, self._gate = info, options, merger, gate

    def read(self, file_slice: FileSlice) -> FileGroupReader:
        """Return a reader of the wanted columns and those of the keys."""
        return FileGroupReader(file_slice, self._info, self.schema.names, self._merger, self._options, gate=self._gate)


class KeyedRows:
    """The rows of some distinct keys; ``at`` has for each the handle of its row, -1 for none. To be closed."""

    def __init__(self, rows: SliceRows, options: ReadOptions, keys: pa.Array) -> None:
        self._spill = Spill(MemoryBudget.from_options(options), ReadStats())
        self._store = RowStore(rows.schema, self._spill)
        self._rows = rows
        self._keys = keys
        self.at = np.full(len(keys), NO_ROW, np.int64)

    def load(self, file_slice: FileSlice) -> KeyedRows:
        """Read the rows of a slice."""
        for batch in self._rows.read(file_slice).to_batches():
            numbers = to_numbers(index_in(self._rows.keys.read_keys(batch), self._keys), -1).astype(np.int64)
            rows = np.flatnonzero(numbers >= 0)
            _, first = np.unique(numbers[rows], return_index=True)
            rows = rows[np.sort(first)]
            rows = rows[self.at[numbers[rows]] == NO_ROW]
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
