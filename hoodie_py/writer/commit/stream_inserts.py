"""Insert the rows of a stream in bounded memory: rows wait on disk until they are placed, unless they are few.

The number of rows in a partition decides which file a row goes into, and nothing of a write may show before all rows
are known to fit the table. So the stream is read to its end first, piece by piece. Each piece is checked, gets its
keys, and is written to spill files, partition by partition. Then every base file is written from its own rows.

This serves inserts that look at neither the table's keys nor other rows. The files are the same that the rows make in
memory: a partition's rows in their original order, in files of the same sizes. (Java spills in its shuffle.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Self

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import join_chunks, to_numbers
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.grouped import GroupedRows, divide
from hoodie_py.writer.commit.commit_records import Write, commit_records
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.commit.tasks import Job, Tasks, run_jobs
from hoodie_py.writer.handles.create import ExtendTask, InsertTask
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.partitioner.assign import AssignedRecords, FileAssignment, estimate_file_bytes, split_new_records
from hoodie_py.writer.partitioner.fill import Fill, choose_fill
from hoodie_py.writer.partitioner.small_files import choose_small_files, compute_free_rows
from hoodie_py.writer.records import WriteRecords

_KEY = "\0key"  # no column of a table has such a name


class SpilledInserts:
    """New rows on disk, by partition. Use it as a context manager: its exit removes the files.

    Raises:
        StorageError: the disk is full or fails.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._rows = GroupedRows[str](budget, held=0)
        self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()

    @property
    def partitions(self) -> list[str]:
        """Paths of the partitions that have rows."""
        return sorted(self._rows.counts)

    def add(self, records: WriteRecords) -> None:
        """Write records to disk. Deletes are dropped, as an insert has nothing to delete."""
        if records.deletes is not None:
            records = records.take(np.flatnonzero(~records.delete_mask))
        assert records.partition_paths is not None
        self._bytes += records.rows.nbytes
        paths = join_chunks(records.partition_paths).dictionary_encode()
        codes = to_numbers(paths.indices).astype(np.int64)
        for rows in records.rows.append_column(_KEY, records.keys).combine_chunks().to_batches():
            for code, some in divide(rows, codes[: rows.num_rows]):
                self._rows.add(paths.dictionary[code].as_py(), some)
            codes = codes[rows.num_rows :]

    def assign(self, file_bytes: int, small: Sequence[FileSlice] = ()) -> tuple[FileAssignment, ...]:
        """Assign each partition's rows to the base files of ``small`` slices, then to new ones.

        ``file_bytes``: the estimated size of a file. ``start`` and ``stop`` of an assignment count the rows of its
        partition.
        """
        row_bytes = estimate_file_bytes(self._bytes, sum(self._rows.counts.values()))
        room = compute_free_rows(small, row_bytes, file_bytes)
        most = max(1, int(file_bytes / row_bytes))
        return tuple(each for path in self.partitions for each in self._assign_rows(path, room.get(path, ()), most))

    def _assign_rows(self, path: str, room: Sequence[tuple[FileSlice, int]], most: int) -> Iterator[FileAssignment]:
        first, end = 0, self._rows.counts[path]
        for old, rows in room:
            stop = min(first + rows, end)
            if first < stop:
                yield FileAssignment(path, old.file_id, old, first, stop, stop - first, 0, 0, fill=Fill.EXTEND)
            first = stop
        yield from split_new_records(path, first, end, most)

    def read(self, assignment: FileAssignment) -> Iterator[WriteRecords]:
        """Yield the records of a file, batch by batch."""
        for batch in self._rows.read(assignment.partition_path, assignment.start, assignment.stop):
            table = pa.Table.from_batches([batch])
            yield WriteRecords(table.drop_columns([_KEY]), table.column(_KEY), None)


def insert_spilled(write: Write, spilled: SpilledInserts) -> WriteResult:
    """Write the rows to small and new files and commit them; errors as for ``commit_records``."""
    none = WriteRecords(pa.table({}), pa.chunked_array([], pa.string()), None)
    snapshot, settings = write.snapshot, write.session.settings
    small: list[FileSlice] = []
    if choose_fill(write.operation, snapshot, settings, write.merger) is Fill.EXTEND:
        small = choose_small_files(snapshot, snapshot.view.list_slices(None, spilled.partitions), settings)
    placed = AssignedRecords(none, np.empty(0, np.int64), spilled.assign(settings.plan.max_file_size, small))

    def run(tasks: Tasks, routed: AssignedRecords) -> Sequence[TaskResult]:
        made = zip(routed.assignments, tasks.iterate_tasks(routed.assignments), strict=True)
        return run_jobs([Job(partial(_write_file, task, spilled, each), len(each)) for each, task in made])

    return commit_records(write, placed, run)


def _write_file(task: object, spilled: SpilledInserts, assignment: FileAssignment) -> TaskResult:
    assert isinstance(task, InsertTask | ExtendTask)  # no merger decides about new rows here
    return task.run(spilled.read(assignment))
