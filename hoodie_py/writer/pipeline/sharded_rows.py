"""ShardedRows: the rows of an upsert or delete on disk, so that a stream of them takes bounded memory.

Rows are divided by the hash of their keys while the stream is read. Then some shards at a time are combined, looked up
and placed as all rows of a write in memory are, and go to disk again, by file. What is true of a key within its shard
is true within the whole write, so the same versions win. Each file's task reads its own rows. Only the files of new
rows, and the order of rows in a file, may differ from what the rows make in memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.grouped import GroupedRows, divide
from hoodie_py.reader.memory.spill import group_to_size
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.append import AppendTask
from hoodie_py.writer.handles.create import ExtendTask, InsertTask
from hoodie_py.writer.index.shards import find_shards
from hoodie_py.writer.pipeline.assign import (
    AssignedRecords,
    FileAssignment,
    estimate_file_bytes,
    split_new_records,
)
from hoodie_py.writer.pipeline.operations import assign_records
from hoodie_py.writer.pipeline.small_files import Fill, choose_filled
from hoodie_py.writer.pipeline.tasks import Job, WriteTask, estimate_work, run_task
from hoodie_py.writer.precombine.combine import combine, needs_combining
from hoodie_py.writer.records import RecordFormat, WriteRecords

if TYPE_CHECKING:
    from hoodie_py.writer.handles.data_file import TaskResult
    from hoodie_py.writer.output_schema import OutputSchema
    from hoodie_py.writer.pipeline.engine import Placed, Target
    from hoodie_py.writer.pipeline.tasks import Tasks

SHARD_BYTES = 64 << 20  # most bytes of rows that are placed at once; a shard is never divided
_SHARD_ROWS = 1 << 20  # most rows that are placed at once
PART_BYTES = 16 << 20  # about the most bytes of rows that are encoded at once
_SHARDS = 256

_Place = tuple[str, str | None]
"""Partition path and file id; None for new records, whose files are chosen once all are known."""
_RunJobs = Callable[[Sequence[Job]], "Sequence[TaskResult]"]


@dataclass(slots=True)
class _Group:
    """The records of one place, counted over all shards. ``positions_of`` as in ``FileAssignment``."""

    file_slice: FileSlice | None
    positions_of: str | None
    rows: int = 0
    inserts: int = 0
    deletes: int = 0

    def add(self, placed: FileAssignment) -> None:
        """Count the records of a shard."""
        self.rows += len(placed)
        self.inserts += placed.inserts
        self.deletes += placed.deletes
        if placed.positions_of is None:
            self.positions_of = None

    @property
    def updates(self) -> int:
        """Number of records with known keys that are no deletes."""
        return max(0, self.rows - self.inserts - self.deletes)


class ShardedRows:
    """Rows on disk, by shard (``Rows``)."""

    def __init__(self, budget: MemoryBudget, run_jobs: _RunJobs) -> None:
        self._budget = budget
        self._run_jobs = run_jobs
        self._rows = GroupedRows[int](budget)
        self._sizes = np.zeros(_SHARDS, np.int64)
        self._paths: set[str] = set()
        self._placed: GroupedRows[_Place] | None = None
        self.schema: OutputSchema
        self.made_of: tuple[str, ...] = ()
        self.format: RecordFormat
        self.is_combined = False  # whether each key has one record in its file group

    @classmethod
    def read(
        cls,
        parts: Iterator[tuple[WriteRecords, OutputSchema]],
        target: Target,
        budget: MemoryBudget,
        run_jobs: _RunJobs,
    ) -> ShardedRows:
        """Read records to their end; there is at least one part.

        Raises:
            StorageError: the disk is full or fails.
            HoodieError: as for ``make_records``.
        """
        sharded = cls(budget, run_jobs)
        sharded.is_combined = needs_combining(target.operation, target.settings.options)
        try:
            for number, (records, schema) in enumerate(parts):
                if not number:
                    sharded.schema, sharded.made_of = schema, records.made_of
                    sharded.format = RecordFormat.from_records(records)
                sharded._add(records, target)
        except BaseException:
            sharded.close()
            raise
        return sharded

    @property
    def partitions(self) -> list[str]:
        """As ``Rows.partitions``; none of deletes by bare keys."""
        return sorted(self._paths)

    @property
    def is_empty(self) -> bool:
        """As ``Rows.is_empty``."""
        return not self._rows.counts

    def close(self) -> None:
        """As ``Rows.close``."""
        self._rows.close()
        if self._placed is not None:
            self._placed.close()

    def _add(self, records: WriteRecords, target: Target) -> None:
        if records.partition_paths is not None:
            self._paths.update(records.partition_paths.unique().to_pylist())
        shards = find_shards(records, target.snapshot, target.settings.index, _SHARDS)
        for shard, rows in divide(self.format.to_batch(records), shards):
            self._rows.add(shard, rows)
            self._sizes[shard] += rows.nbytes

    def place(self, target: Target) -> Placed:
        """As ``Rows.place``."""
        if self._placed is not None:  # a clustering was rolled back, so all rows are placed again
            self._placed.close()
        self._placed = GroupedRows[_Place](self._budget)
        groups: dict[_Place, _Group] = {}
        row_bytes = 0
        for shards in self._list_portions():
            batches = chain.from_iterable(map(self._rows.read, shards))
            routed = _assign_portion(self.format.from_batches(list(batches))[0], target)
            row_bytes += routed.records.rows.nbytes
            self._keep(routed, groups, target)
        files = _assign_files(groups, row_bytes, target)
        return _PlacedShards(tuple(each.assignment for each in files), files, self)

    def _list_portions(self) -> Iterator[list[int]]:
        """Yield the numbers of shards that are placed at the same time."""
        counts, most = self._rows.counts, min(SHARD_BYTES, self._budget.rows_most)
        portion: list[int] = []
        size = rows = 0
        for shard in sorted(counts):
            size, rows = size + int(self._sizes[shard]), rows + counts[shard]
            if portion and (size > most or rows > _SHARD_ROWS):
                yield portion
                portion, size, rows = [], int(self._sizes[shard]), counts[shard]
            portion.append(shard)
        if portion:
            yield portion

    def _keep(self, routed: AssignedRecords, groups: dict[_Place, _Group], target: Target) -> None:
        """Write placed records to disk, and count them."""
        assert self._placed is not None
        located = self.format.as_located()
        for each in routed.assignments:
            # A new bucket has its file id, and all of its records are in one shard.
            is_new = each.file_slice is None and not target.settings.index.is_bucket
            place = each.partition_path, None if is_new else each.file_id
            groups.setdefault(place, _Group(each.file_slice, each.positions_of)).add(each)
            self._placed.add(place, located.to_batch(routed.get_records(each), routed.get_positions(each)))

    def write(self, tasks: Tasks, files: Sequence[_File]) -> Sequence[TaskResult]:
        """Write the files; errors as for ``Placed.write``."""
        made = zip(files, tasks.iterate_tasks([each.assignment for each in files]), strict=True)
        parallel = tasks.facts.files.parallel
        return self._run_jobs(
            [
                Job(partial(self._write_file, task, each), estimate_work(task, each.assignment), parallel)
                for each, task in made
            ]
        )

    def _write_file(self, task: WriteTask, file: _File) -> TaskResult:
        located = self.format.as_located()
        if isinstance(task, InsertTask | ExtendTask):
            return task.run(located.from_batches([batch])[0] for batch in self._read(file))
        inserts = file.assignment.inserts
        if isinstance(task, AppendTask) and self.is_combined:
            return task.run_parts(map(located.from_batches, group_to_size(self._read(file), PART_BYTES)), inserts)
        records, positions = located.from_batches(list(self._read(file)))
        return run_task(task, records, positions, inserts)

    def _read(self, file: _File) -> Iterator[pa.RecordBatch]:
        assert self._placed is not None
        if file.known is not None:
            yield from self._placed.read(file.known)
        yield from self._placed.read((file.assignment.partition_path, None), file.start, file.stop)


@dataclass(frozen=True, slots=True)
class _File:
    """A new file: all records of the file group ``known``, if any, and a range of the new records of its partition."""

    assignment: FileAssignment
    known: GroupKey | None = None
    start: int = 0
    stop: int = 0


@dataclass(frozen=True, slots=True)
class _PlacedShards:
    """Rows on disk whose files are known (``Placed``)."""

    assignments: tuple[FileAssignment, ...]
    files: Sequence[_File]
    rows: ShardedRows

    def write(self, tasks: Tasks) -> Sequence[TaskResult]:
        """As ``Placed.write``."""
        return self.rows.write(tasks, self.files)


def _assign_portion(records: WriteRecords, target: Target) -> AssignedRecords:
    """Combine records and find their places; all new records of a partition have one place."""
    settings = target.settings
    if needs_combining(target.operation, settings.options):
        records = combine(records, target.snapshot, settings, target.merger)
    plan = replace(settings.plan, max_file_size=sys.maxsize)  # files are cut and filled once all shards are known
    settings = replace(settings, plan=plan, small_file_bytes=0)
    return assign_records(records, target.snapshot, target.operation, settings, target.merger)


def _assign_files(groups: dict[_Place, _Group], row_bytes: int, target: Target) -> list[_File]:
    """Choose the files of all records: new records go to small base files first, then to new ones."""
    settings = target.settings
    new = {path: group.rows for (path, file_id), group in groups.items() if file_id is None}
    slices = partial(target.snapshot.view.list_slices, None, sorted(new)) if new else list
    small = choose_filled(target.operation, target.snapshot, settings, target.merger, slices)
    size = estimate_file_bytes(row_bytes, sum(each.rows for each in groups.values()))
    most = max(1, int(settings.plan.max_file_size / size))
    files: dict[GroupKey, _File] = {}
    for (path, file_id), group in groups.items():
        if file_id is not None:
            key, counts = (path, file_id), (group.inserts, group.updates, group.deletes)
            assignment = FileAssignment(*key, group.file_slice, 0, group.rows, *counts, group.positions_of)
            files[key] = _File(assignment, key)
    small = small.beside_updates(list(files))
    for path, rows in new.items():
        first = 0
        for old, taken in small.share_out(path, rows, size, settings.plan.max_file_size):
            filled, stop = (path, old.file_id), first + taken
            files[filled] = _fill(files.get(filled), old, small.fill, first, stop)
            first = stop
        for each in split_new_records(path, first, rows, most):
            files[each.group] = _File(each, None, each.start, each.stop)
    return list(files.values())


def _fill(file: _File | None, old: FileSlice, fill: Fill, start: int, stop: int) -> _File:
    """Add new records to the file of an old slice, which may have records of known keys."""
    count = stop - start
    if file is None:
        group = old.partition_path, old.file_id
        return _File(FileAssignment(*group, old, 0, count, count, 0, 0, fill=fill), None, start, stop)
    known = file.assignment
    joined = replace(known, stop=len(known) + count, inserts=known.inserts + count, positions_of=None, fill=fill)
    return replace(file, assignment=joined, start=start, stop=stop)
