"""ScanTask: one file slice to read, small and picklable, so that an engine can send it to its workers.

The modules for reading are imported when a task is read. So planning, for which Spark starts a process, stays fast.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from hoodie_py.arrow.fields import make_nullable
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.read_info import ReadInfo, ReadOptions
from hoodie_py.runtime.telemetry import count, watch_steps
from hoodie_py.runtime.unused_memory import release_after

if TYPE_CHECKING:
    from hoodie_py.files import TableFiles
    from hoodie_py.reader.base.filtered import RowFilter
    from hoodie_py.reader.file_group import FileGroupReader
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.runtime.fold_gate import FoldGate
    from hoodie_py.table.filter.predicate import Predicate


@dataclass(frozen=True, slots=True)
class ScanTask:
    """The wanted rows of one file slice.

    ``columns`` are the columns of the result, ``limit`` is its maximal number of rows, and ``merger`` replaces the
    table's merge mode.

    Examples:
        >>> import pickle
        >>> tasks = [pickle.dumps(task) for task in trips.scan(columns=["id"]).tasks()]
        >>> [batch.num_rows for task in tasks for batch in pickle.loads(task).to_batches()]
        [1, 1, 1]
    """

    file_slice: FileSlice
    info: ReadInfo
    columns: tuple[str, ...]
    predicate: Predicate | None
    options: ReadOptions
    merger: Merger | None = None
    limit: int | None = None

    def __repr__(self) -> str:
        where = "" if self.predicate is None else f", where {self.predicate}"
        return f"{type(self).__name__}({self.file_slice!r}, {len(self.columns)} columns{where})"

    @property
    def size(self) -> int:
        """Bytes of the slice's files, a measure of the work."""
        base = self.file_slice.base_file
        logs = sum(log.size for log in self.file_slice.log_files)
        if base is None:
            return logs
        return base.whole_size + logs

    @property
    def schema(self) -> pa.Schema:
        """Schema of the batches."""
        return make_nullable(self.info.schema.field(name) for name in self.columns)

    def reader(self, gate: FoldGate | None = None) -> FileGroupReader:
        """Return the file group's reader with the columns that the result and the predicate need."""
        from hoodie_py.reader.file_group import FileGroupReader

        extra = () if self.predicate is None else sorted(self.predicate.columns - set(self.columns))
        return FileGroupReader(
            self.file_slice,
            self.info,
            (*self.columns, *extra),
            self.merger,
            self.options,
            self._make_row_filter(),
            gate,
        )

    def to_batches(self, gate: FoldGate | None = None) -> Generator[pa.RecordBatch, None, None]:
        """Yield the task's rows; empty batches are left out.

        Tasks that are read at the same time in one process share ``gate``.

        Raises:
            HoodieError: files are missing, corrupt or not supported, or versions of a record do not merge.
        """
        if self.limit is not None and self.limit <= 0:
            return
        reader = self.reader(gate)

        def tell(rows: int) -> dict[str, int]:
            stats = reader.stats
            count_read(self.info.files, rows, self._count_files(), self.size)
            return {
                "log_records": stats.log_records,
                "rows_inserted": stats.inserts,
                "rows_updated": stats.updates,
                "rows_deleted": stats.deletes,
            }

        yield from watch_steps(
            "merge_slice" if self.file_slice.log_files else "read_slice",
            self.info.files,
            self._read(reader),
            len,
            tell,
            file_id=self.file_slice.file_id,
            instant=self.file_slice.base_instant,
            files=self._count_files(),
            bytes=self.size,
        )

    def _count_files(self) -> int:
        return len(self.file_slice.log_files) + (self.file_slice.base_file is not None)

    def _read(self, reader: FileGroupReader) -> Generator[pa.RecordBatch, None, None]:
        # Unlike a loop's variable, map and filter keep no reference to a batch while the next one is read.
        batches = filter(len, map(self._select, reader.to_batches()))
        if self.limit is None:
            yield from map(self._project, batches)
            release_after(self.size)
            return
        left = self.limit
        for batch in batches:
            yield self._project(batch.slice(0, left))
            left -= min(left, batch.num_rows)
            if not left:
                return
        release_after(self.size)

    def _select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Keep the rows that pass the filter."""
        if self.predicate is None or not self.file_slice.log_files:  # the reader filters, see ``_make_row_filter``
            return batch
        from hoodie_py.table.filter.evaluate import evaluate

        return batch.filter(evaluate(self.predicate, batch))

    def _project(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Drop the columns that only the filter needs."""
        return batch if batch.num_columns == len(self.columns) else batch.select(list(self.columns))

    def _make_row_filter(self) -> RowFilter | None:
        """Return the filter for the reader; None if there are log files, whose rows change values."""
        predicate = self.predicate
        if predicate is None or self.file_slice.log_files:
            return None
        from hoodie_py.reader.base.filtered import RowFilter
        from hoodie_py.table.filter.evaluate import evaluate
        from hoodie_py.table.filter.row_groups import choose_row_groups

        columns = {*self.columns, *predicate.columns}
        unstored = {*self.info.constants, *self.info.fallbacks}
        schema, rows = self.info.schema, self.options.batch_rows
        return RowFilter(
            predicate.columns,
            lambda base: choose_row_groups(base, predicate, schema, columns - unstored, unstored, rows),
            partial(evaluate, predicate),
        )


def count_read(files: TableFiles, rows: int, file_count: int, size: int, slices: int = 1) -> None:
    """Count a task's read for OpenTelemetry: rows returned, files and their bytes, and file slices."""
    for name, amount in (("rows", rows), ("files", file_count), ("bytes", size), ("slices", slices)):
        count(f"read.{name}", amount, files)
