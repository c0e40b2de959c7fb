"""LocalEngine: writes with the threads of this process, in bounded memory.

Nothing of a write may show before all its rows are known to fit the table, and the number of rows in a partition
decides which file a row goes into. So rows are read to their end first. Rows that the caller holds stay in memory.
Streams of inserts that look at neither the table's keys nor other rows wait on disk, partition by partition: their
files are the same that the rows make in memory (Java spills in its shuffle). Streams of upserts and deletes wait there
by the hash of their keys (``sharded_rows``). So do the changed rows of updates and merges, by file group, if they are
many. Then every file's task reads its own rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.arrays import join_chunks, to_numbers
from hoodie_py.errors import InvalidQueryError
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.grouped import GroupedRows, divide
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.scan.threads import count_threads, read_in_threads
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.create import ExtendTask, InsertTask
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.input.input_data import is_held, read_input, read_pieces
from hoodie_py.writer.input.to_records import find_input_schema, make_records
from hoodie_py.writer.output_schema import OutputSchema
from hoodie_py.writer.pipeline.assign import (
    AssignedRecords,
    FileAssignment,
    estimate_file_bytes,
    split_new_records,
)
from hoodie_py.writer.pipeline.engine import ChangedGroup, Changes, Placed, Rows, Target, Work
from hoodie_py.writer.pipeline.operations import LOOKED_UP, assign_records, is_plain_insert
from hoodie_py.writer.pipeline.sharded_rows import SHARD_BYTES, ShardedRows
from hoodie_py.writer.pipeline.small_files import Fill, SmallFiles, choose_filled, is_merging_inserts
from hoodie_py.writer.pipeline.tasks import Job, Tasks, WriteTask, run_jobs
from hoodie_py.writer.precombine.combine import combine, needs_combining
from hoodie_py.writer.records import WriteRecords
from hoodie_py.writer.services.service_run import Threads

if TYPE_CHECKING:
    from hoodie_py.writer.dml.changes import RowChanges

_PIECE_BYTES = 16 << 20
_KEY, _DELETE = "\0key", "\0delete"  # no column of a table has such a name


class LocalEngine(Threads):
    """Threads of this process (``Engine``); as many as cores allow, or ``workers``."""

    def list_columns(self, data: Any, target: Target) -> tuple[Any, Sequence[str]]:
        """As ``Engine.list_columns``."""
        opened = read_input(data, find_input_schema(target.snapshot), target.settings.options)
        return opened, opened.schema.names

    def key(self, data: Any, target: Target) -> Rows:
        """As ``Engine.key``."""
        if is_held(data):
            return self._hold(data, target)
        plain = is_plain_insert(target.operation, target.settings)
        if plain and not is_merging_inserts(target.snapshot, target.settings, target.merger):
            most = 1  # piece in memory
        elif target.operation in LOOKED_UP and not target.settings.index.consistent:
            most = SHARD_BYTES // _PIECE_BYTES
        else:
            return self._hold(data, target)
        pieces = read_pieces(read_input(data), _PIECE_BYTES)
        begin = list(islice(pieces, most + 1))
        if len(begin) <= most:
            return self._hold(pa.concat_tables(begin), target)
        parts = _make_parts(_take_over(begin, pieces), target)
        budget = MemoryBudget.from_options(ReadOptions(options=target.settings.options))
        if plain:
            return _SpilledRows.read(parts, budget, self)
        return ShardedRows.read(parts, target, budget, self.run_jobs)

    def _hold(self, data: Any, target: Target) -> HeldRows:
        records, schema = make_records(data, target.snapshot, target.settings.options, target.operation)
        return HeldRows(records, schema, self)

    def find_changes(self, changes: RowChanges, tasks: Sequence[ScanTask], target: Target) -> Changes:
        """As ``Engine.find_changes``."""
        options = target.settings.options
        threads = 1 if target.merger is not None else count_threads(options)
        collected = _HeldChanges(MemoryBudget.from_options(ReadOptions(options=options)), self)
        try:
            collected.collect(changes, tasks, threads)
        except BaseException:
            collected.close()
            raise
        return collected

    def run_jobs(self, jobs: Sequence[Job]) -> Sequence[TaskResult]:
        """Write files, and return one result for each; errors as for ``run_jobs``."""
        return run_jobs(jobs, self.workers)


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Rows in memory (``Rows``)."""

    records: WriteRecords
    schema: OutputSchema
    engine: LocalEngine

    @property
    def made_of(self) -> tuple[str, ...]:
        """As ``Rows.made_of``."""
        return self.records.made_of

    @property
    def partitions(self) -> list[str]:
        """As ``Rows.partitions``; none of deletes by bare keys."""
        return [] if self.records.partition_paths is None else self.records.partition_paths.unique().to_pylist()

    @property
    def is_empty(self) -> bool:
        """As ``Rows.is_empty``."""
        return not len(self.records)

    def place(self, target: Target) -> Placed:
        """As ``Rows.place``."""
        records, snapshot, settings = self.records, target.snapshot, target.settings
        if needs_combining(target.operation, settings.options):
            records = combine(records, snapshot, settings, target.merger)
        return PlacedRecords(assign_records(records, snapshot, target.operation, settings, target.merger), self.engine)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


@dataclass(frozen=True, slots=True)
class PlacedRecords:
    """Records in memory, in the order of their files (``Placed``)."""

    routed: AssignedRecords
    engine: LocalEngine

    @property
    def assignments(self) -> tuple[FileAssignment, ...]:
        """As ``Placed.assignments``."""
        return self.routed.assignments

    def write(self, tasks: Tasks) -> Sequence[TaskResult]:
        """As ``Placed.write``."""
        return self.engine.run_jobs(list(tasks.iterate_jobs(self.routed)))


class _SpilledRows:
    """New rows on disk, by partition (``Rows``)."""

    def __init__(self, budget: MemoryBudget, engine: LocalEngine) -> None:
        self._rows = GroupedRows[str](budget, held=0)
        self._bytes = 0
        self._engine = engine
        self.schema: OutputSchema
        self.made_of: tuple[str, ...] = ()

    @classmethod
    def read(
        cls, parts: Iterator[tuple[WriteRecords, OutputSchema]], budget: MemoryBudget, engine: LocalEngine
    ) -> _SpilledRows:
        """Read records to their end.

        Raises:
            StorageError: the disk is full or fails.
            HoodieError: as for ``make_records``.
        """
        spilled = cls(budget, engine)
        try:
            for records, schema in parts:
                spilled.schema = schema
                spilled.add(records)
        except BaseException:
            spilled.close()
            raise
        return spilled

    @property
    def partitions(self) -> list[str]:
        """As ``Rows.partitions``."""
        return sorted(self._rows.counts)

    @property
    def is_empty(self) -> bool:
        """As ``Rows.is_empty``."""
        return not self._rows.counts

    def close(self) -> None:
        """As ``Rows.close``."""
        self._rows.close()

    def add(self, records: WriteRecords) -> None:
        """Write records to disk. Deletes are dropped, as an insert has nothing to delete."""
        self.made_of = records.made_of
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

    def place(self, target: Target) -> Placed:
        """Assign each partition's rows to small base files, then to new ones."""
        file_bytes = target.settings.plan.max_file_size
        slices = partial(target.snapshot.view.list_slices, None, self.partitions)
        small = choose_filled(target.operation, target.snapshot, target.settings, target.merger, slices)
        row_bytes = estimate_file_bytes(self._bytes, sum(self._rows.counts.values()))
        files = (each for path in self.partitions for each in self._assign_rows(path, small, row_bytes, file_bytes))
        return _PlacedOnDisk(tuple(files), self)

    def _assign_rows(self, path: str, small: SmallFiles, row_bytes: float, file_bytes: int) -> Iterator[FileAssignment]:
        """Yield the files of a partition; ``start`` and ``stop`` count its rows."""
        first, end = 0, self._rows.counts[path]
        for old, rows in small.share_out(path, end, row_bytes, file_bytes):
            stop = first + rows
            yield FileAssignment(path, old.file_id, old, first, stop, rows, 0, 0, fill=Fill.EXTEND)
            first = stop
        most = max(1, int(file_bytes / row_bytes))
        yield from split_new_records(path, first, end, most)

    def write(self, tasks: Tasks, assignments: Sequence[FileAssignment]) -> Sequence[TaskResult]:
        """Write the files; errors as for ``Placed.write``."""
        made = zip(assignments, tasks.iterate_tasks(assignments), strict=True)
        parallel = tasks.facts.files.parallel
        return self._engine.run_jobs(
            [Job(partial(self._write_file, task, each), len(each), parallel) for each, task in made]
        )

    def _write_file(self, task: WriteTask, assignment: FileAssignment) -> TaskResult:
        assert isinstance(task, InsertTask | ExtendTask)  # no merger decides about new rows here
        return task.run(self._read(assignment))

    def _read(self, assignment: FileAssignment) -> Iterator[WriteRecords]:
        """Yield the records of a file, batch by batch."""
        for batch in self._rows.read(assignment.partition_path, assignment.start, assignment.stop):
            table = pa.Table.from_batches([batch])
            yield WriteRecords(table.drop_columns([_KEY]), table.column(_KEY), None)


@dataclass(frozen=True, slots=True)
class _PlacedOnDisk:
    """Rows on disk whose files are known (``Placed``)."""

    assignments: tuple[FileAssignment, ...]
    rows: _SpilledRows

    def write(self, tasks: Tasks) -> Sequence[TaskResult]:
        """As ``Placed.write``."""
        return self.rows.write(tasks, self.assignments)


class _HeldChanges:
    """Changed rows by file group, in memory or on disk (``Changes``)."""

    def __init__(self, budget: MemoryBudget, engine: LocalEngine) -> None:
        self._rows = GroupedRows[GroupKey](budget, held=budget.rows_most)
        self._engine = engine
        self.groups: dict[GroupKey, ChangedGroup] = {}
        self.moved: list[pa.Table] = []

    def close(self) -> None:
        """As ``Changes.close``."""
        self._rows.close()

    def collect(self, changes: RowChanges, tasks: Sequence[ScanTask], threads: int) -> None:
        """Read slices, and keep the rows that change; errors as for ``Engine.find_changes``."""
        # Here, as few writes need the modules of filters.
        from hoodie_py.writer.dml.changes import choose_batch_rows, compute_changes

        waiting: dict[int, list[pa.RecordBatch]] = {}

        def handle(number: int) -> None:
            for found in compute_changes(changes, tasks[number], waiting.pop(number)):
                if len(found.keys):
                    self._add(tasks[number].file_slice, found.rows, found.keys, found.deletes)
                self.moved.extend([found.moved] if found.moved.num_rows else [])

        least = choose_batch_rows(changes)
        with closing(read_in_threads([each.to_batches for each in tasks], threads)) as batches:
            for number, batch in batches:
                held = waiting.setdefault(number, [])
                held.append(batch)
                if sum(each.num_rows for each in held) >= least:
                    handle(number)
        for number in list(waiting):
            handle(number)

    def _add(self, file_slice: FileSlice, rows: pa.Table, keys: pa.Array, deletes: pa.Array) -> None:
        key = file_slice.partition_path, file_slice.file_id
        group = self.groups.setdefault(key, ChangedGroup(file_slice))
        dead = pc.sum(deletes).as_py() or 0
        group.deletes += dead
        group.updates += len(keys) - dead
        for batch in rows.append_column(_KEY, keys).append_column(_DELETE, deletes).combine_chunks().to_batches():
            self._rows.add(key, batch)

    def write(self, work: Sequence[Work]) -> Sequence[TaskResult]:
        """As ``Changes.write``."""
        return self._engine.run_jobs(
            [Job(partial(self._run, each), each.rows, each.task.facts.files.parallel) for each in work]
        )

    def _run(self, work: Work) -> TaskResult:
        return work.run(self._read(work.task.group, work.ordering) if work.changes else None)

    def _read(self, key: GroupKey, ordering: tuple[pa.DataType, ...]) -> WriteRecords:
        from hoodie_py.writer.dml.changes import make_changed_records

        table = pa.Table.from_batches(self._rows.read(key))
        rows = table.drop_columns([_KEY, _DELETE])
        return make_changed_records(key, rows, table.column(_KEY), table.column(_DELETE), ordering)


def _take_over(begin: list[pa.Table], rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the pieces without keeping them in memory."""
    while begin:
        yield begin.pop(0)
    yield from rest


def _make_parts(pieces: Iterator[pa.Table], target: Target) -> Iterator[tuple[WriteRecords, OutputSchema]]:
    """Yield the records of each piece, and the schema of the files; errors as for ``make_records``."""
    first = 0
    for piece in pieces:
        with _count_rows_from(first):
            made = make_records(piece, target.snapshot, target.settings.options, target.operation)
        first += piece.num_rows
        yield made


@contextmanager
def _count_rows_from(first: int) -> Iterator[None]:
    """Make errors about rows of a piece give the rows' numbers in the whole input."""
    try:
        yield
    except InvalidQueryError as error:
        if "rows" in error.where:
            error.where["rows"] = [first + each for each in error.where["rows"]]
        raise
