"""Run the two passes of an update or a merge: find what changes in each file group, then write the changed rows.

In this process the first pass keeps the changed rows, and the second writes them. Spark's workers compute them twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, Self

import numpy as np
import pyarrow as pa

from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.scan.threads import count_threads, read_in_threads
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.commit.tasks import Job, WriteTask, run_jobs, run_task
from hoodie_py.writer.dml.changes import ChangedRows, RowChanges
from hoodie_py.writer.dml.collected import ChangedGroup, CollectedChanges, make_changed_records
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.records import WriteRecords

_BATCH_ROWS = 1 << 16
_MOST_BATCH_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """The result of the first pass: the file groups that change, and rows that move to other partitions."""

    groups: Mapping[GroupKey, ChangedGroup]
    moved: list[pa.Table] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Work:
    """One new file: its task, and the new rows that go into it beside the changed rows of its file group, if any.

    ``inserts``: the number of records with new keys. ``ordering``: the types of ordering values.
    """

    task: WriteTask
    rows: int
    inserts: int
    changes: bool
    new: WriteRecords | None = None
    positions: np.ndarray | None = None
    ordering: tuple[pa.DataType, ...] = ()

    def run(self, changed: WriteRecords | None) -> TaskResult:
        """Write the file; errors as for ``run_task``."""
        if changed is None:
            assert self.new is not None
            assert self.positions is not None
            return run_task(self.task, self.new, self.positions, self.inserts)
        records = changed if self.new is None else _concatenate(changed, self.new)
        return run_task(self.task, records, np.full(len(records), -1, np.int64), self.inserts)


class ChangeEngine(Protocol):
    """Runs both passes. It is a context manager."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...

    def find(self, changes: RowChanges, tasks: Sequence[ScanTask]) -> Found:
        """Compute the changes in the slices of tasks; ``changes.source`` remembers which of its rows matched."""
        ...

    def write(self, work: Sequence[Work]) -> Sequence[TaskResult]:
        """Write the files."""
        ...


class LocalEngine:
    """Runs both passes on threads of this process. ``options`` are the writer's."""

    def __init__(self, options: Mapping[str, str], merger: Merger | None) -> None:
        self._options = options
        self._threads = 1 if merger is not None else count_threads(options)
        self._collected = CollectedChanges(MemoryBudget.from_options(ReadOptions(options=options)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._collected.close()

    def find(self, changes: RowChanges, tasks: Sequence[ScanTask]) -> Found:
        """As ``ChangeEngine.find``."""
        moved: list[pa.Table] = []
        waiting: dict[int, list[pa.RecordBatch]] = {}

        def handle(number: int) -> None:
            for found in compute_changes(changes, tasks[number], waiting.pop(number)):
                if len(found.keys):
                    self._collected.add(tasks[number].file_slice, found.rows, found.keys, found.deletes)
                moved.extend([found.moved] if found.moved.num_rows else [])

        least = choose_batch_rows(changes)
        with closing(read_in_threads([each.to_batches for each in tasks], self._threads)) as batches:
            for number, batch in batches:
                held = waiting.setdefault(number, [])
                held.append(batch)
                if sum(each.num_rows for each in held) >= least:
                    handle(number)
        for number in list(waiting):
            handle(number)
        return Found(self._collected.groups, moved)

    def write(self, work: Sequence[Work]) -> Sequence[TaskResult]:
        """As ``ChangeEngine.write``."""
        return run_jobs([Job(partial(self._run, each), each.rows) for each in work])

    def _run(self, work: Work) -> TaskResult:
        return work.run(self._collected.read(work.task.group, work.ordering) if work.changes else None)


def choose_batch_rows(changes: RowChanges) -> int:
    """Return how many rows of the target to look up at once: more for a large source, which is hashed each time."""
    rows = 0 if changes.source is None else changes.source.rows.num_rows
    return max(_BATCH_ROWS, min(_MOST_BATCH_ROWS, rows))


def compute_changes(changes: RowChanges, task: ScanTask, batches: Sequence[pa.RecordBatch]) -> list[ChangedRows]:
    """Compute the changes of some rows of a file group; errors as for ``RowChanges.compute``."""
    rows = pa.Table.from_batches(batches).combine_chunks()
    found = (changes.compute(task.file_slice, batch) for batch in rows.to_batches())
    return [each for each in found if each is not None]


def read_changes(changes: RowChanges, task: ScanTask, ordering: tuple[pa.DataType, ...]) -> WriteRecords:
    """Read a file group again, and return its changed rows; errors as for ``make_changed_records``."""
    least, held, found = choose_batch_rows(changes), list[pa.RecordBatch](), list[ChangedRows]()
    for batch in task.to_batches():
        held.append(batch)
        if sum(each.num_rows for each in held) >= least:
            found += compute_changes(changes, task, held)
            held = []
    found += compute_changes(changes, task, held) if held else []
    return make_changed_records(
        (task.file_slice.partition_path, task.file_slice.file_id),
        pa.concat_tables([each.rows for each in found]),
        pa.chunked_array([each.keys for each in found]),
        pa.chunked_array([each.deletes for each in found]),
        ordering,
    )


def _concatenate(first: WriteRecords, second: WriteRecords) -> WriteRecords:
    ordering = zip(first.ordering, second.ordering, strict=True) if second.ordering else ()
    return WriteRecords(
        pa.concat_tables([first.rows, second.rows.cast(first.rows.schema)]),
        pa.chunked_array([*first.keys.chunks, *second.keys.chunks], pa.string()),
        None,
        pa.chunked_array([pa.array(first.delete_mask), pa.array(second.delete_mask)]),
        tuple(pa.chunked_array([*a.chunks, *b.cast(a.type).chunks], a.type) for a, b in ordering),
    )
