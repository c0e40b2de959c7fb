"""IncomingReader: merges a writer's rows into a file group instead of log files.

This is Hudi's StreamingFileGroupRecordBufferLoader. The writer may pass operations with the rows, so the operation
column is not read. A row is a delete if the flag column or the table's delete marker says so; the operation -U stays
-U.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie_py.reader.buffer.folded_log import FoldedLog
from hoodie_py.reader.buffer.log_buffer import LogBuffer
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.ordering import OrderingColumn
from hoodie_py.reader.record.record import UPDATE_BEFORE, is_delete_code
from hoodie_py.reader.schema_evolution.by_name import conform_batch


@dataclass(frozen=True, slots=True)
class IncomingRows:
    """Rows to write; meta columns may be missing."""

    rows: pa.RecordBatch
    operations: Sequence[int] | np.ndarray | None = None  # code of each row, -1 for none; None if no row has one


@dataclass(frozen=True, slots=True)
class IncomingDeletes:
    """Records to delete, by key.

    ``ordering``: one value per key (of the field's type, a tuple for several fields, or DEFAULT_ORDERING), or a column
    of such values; empty if no key has one.
    """

    keys: pa.Array
    ordering: OrderingColumn | Sequence[Any]


class IncomingReader(LogReader):
    """Folds the rows and deletes of a write, older ones first, as if they were the log of the file slice."""

    writing = True

    def __init__(
        self,
        incoming: Sequence[IncomingRows | IncomingDeletes],
        file_slice: FileSlice,
        info: ReadInfo,
        read: Sequence[str],
        merger: Merger | None,
        options: ReadOptions,
        stats: ReadStats,
    ) -> None:
        super().__init__(file_slice, info, read, merger, options, stats)
        self._incoming = incoming

    def _fold(self) -> FoldedLog | None:
        buffer = LogBuffer(self.strategy, self.spill)
        for part in self._incoming:
            buffer.add(self._make_entries(part), "")
        self._stats.log_records = buffer.total_log_records
        return buffer.fold()

    def _make_entries(self, part: IncomingRows | IncomingDeletes) -> BufferedBatch:
        if isinstance(part, IncomingDeletes):
            return BufferedBatch.of_deletes(self.context, part.keys, self._get_delete_ordering(part))
        rows = conform_batch(part.rows, self.schema, {**self.info.defaults, **self.info.fallbacks})
        return BufferedBatch.of_rows(self.context, self.store.add(rows), rows, self._find_operations(part, rows))

    def _get_delete_ordering(self, part: IncomingDeletes) -> OrderingColumn | Sequence[Any]:
        if not self.context.ordering_fields:  # those of this write, which may differ from the table's
            return ()
        if len(part.ordering) or not len(part.keys):
            return part.ordering
        none = [pa.nulls(len(part.keys), each) for each in self.context.ordering_types]
        return OrderingColumn.of_deletes(none, len(part.keys))

    def _find_operations(self, part: IncomingRows, rows: pa.RecordBatch) -> np.ndarray:
        marked = replace(self.deletes, operation=False).read_operations(rows)
        if part.operations is None:
            return marked
        said = np.asarray(part.operations, np.int8)
        keeps = ~is_delete_code(marked) | (said == UPDATE_BEFORE)
        return np.where(keeps, said, marked).astype(np.int8)
