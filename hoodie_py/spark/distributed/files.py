"""The last step of a distributed write: plans the files, and writes each one in a Spark task.

Java: ``UpsertPartitioner`` divides new records among small and new files.

Records that depend neither on each other nor on the table are written in one step, and nothing is shuffled: each task
of the DataFrame writes its rows to new base files, one after another, in the order of the rows. So a partition gets
about one file from each task that has rows of it. This is Java's bulk insert with sort mode NONE
(``NonSortPartitionerWithRows``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from hoodie_py.errors import HoodieError
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.spark.attempts import pack, pack_failure, pack_result, run_for_outcome, run_step, unpack_once
from hoodie_py.spark.distributed.payloads import PayloadFormat, group_by_label
from hoodie_py.spark.distributed.shards import OpenedFacts, gather_batches, open_facts
from hoodie_py.spark.mergers import load_mergers
from hoodie_py.spark.process import freeze_imports
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.create import InsertTask
from hoodie_py.writer.handles.data_file import CommitFacts, TaskResult
from hoodie_py.writer.handles.merge import RewriteTask
from hoodie_py.writer.input.to_records import make_records
from hoodie_py.writer.pipeline.assign import (
    FileAssignment,
    assign_new_files,
    estimate_row_bytes,
    make_file_id,
)
from hoodie_py.writer.pipeline.small_files import Fill, SmallFiles
from hoodie_py.writer.pipeline.tasks import WriteTask, run_task
from hoodie_py.writer.records import WriteRecords

FILE_BYTES_A_BYTE = 0.4
"""About how many bytes of a base file a payload byte becomes."""

_COUNTS = ("rows", "inserts", "updates", "deletes", "bytes")

PieceKey = tuple[str, str | None, int]
"""Partition path, file id (None for new records), and the shard's label (``NO_PIECE`` unless the records are new)."""

_BYTES_AT_ONCE = 16 << 20
_BYTES_OF_PARTITIONS = 128 << 20  # rows of different partitions alternate: more rows at a time give larger files
_FILES_OF_A_TASK = 10_000  # makes the sequence numbers of different tasks differ


@dataclass(frozen=True, slots=True)
class Piece:
    """Counts of the records of a piece: the new records of one shard for a partition, or all records of a file group.

    ``bytes``: size of the payloads. ``in_base``: all update rows of the base file whose positions are known.
    """

    rows: int
    inserts: int
    updates: int
    deletes: int
    bytes: int
    in_base: bool


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The files of a write.

    ``placements``: one for each file, with counts but without records, which are in Spark.
    """

    placements: tuple[FileAssignment, ...]
    file_of: Mapping[PieceKey, int]


def plan_files(
    pieces: Mapping[PieceKey, Piece],
    slices: Sequence[FileSlice],
    file_bytes: int,
    small: SmallFiles,
) -> FilePlan:
    """Decide which pieces share a file. The new records of a shard are never divided.

    New records first fill ``small`` base files. New files have about ``file_bytes``.
    """
    members: dict[tuple[str, str], list[PieceKey]] = defaultdict(list)
    new: dict[str, list[PieceKey]] = defaultdict(list)
    for key in sorted(pieces, key=str):
        path, file_id, _ = key
        if file_id is None:
            new[path].append(key)
        else:
            members[path, file_id].append(key)
    small, filled = small.beside_updates(members), set[GroupKey]()
    for path, keys in new.items():
        shared = list(_fill_small_files(path, keys, pieces, small, file_bytes))
        left = keys[sum(len(some) for _, some in shared) :]
        shared += _share_out(left, pieces, int(file_bytes / FILE_BYTES_A_BYTE))
        for file_id, some in shared:
            members[path, file_id].extend(some)
            filled.add((path, file_id))
    there = {(each.partition_path, each.file_id): each for each in slices}
    placements = tuple(
        _make_placement(group, [pieces[key] for key in keys], there, small.fill if group in filled else Fill.NONE)
        for group, keys in members.items()
    )
    file_of = {key: number for number, keys in enumerate(members.values()) for key in keys}
    return FilePlan(placements, file_of)


@dataclass(frozen=True, slots=True, repr=False)
class WriteFiles:
    """Writes the records of a file on a worker.

    ``packed``: tasks by label, with their numbers of records.
    """

    packed: bytes
    packed_merger: bytes
    payload_format: PayloadFormat
    attempts: int

    @classmethod
    def from_tasks(
        cls,
        tasks: Mapping[int, tuple[WriteTask, FileAssignment]],
        packed_merger: bytes,
        payload_format: PayloadFormat,
        attempts: int,
    ) -> WriteFiles:
        """Pack tasks by label into one pickle, in which they share common objects."""
        bare = {
            label: (replace(task, merger=None) if isinstance(task, RewriteTask) else task, len(of), of.inserts)
            for label, (task, of) in tasks.items()
        }
        return cls(pack(bare), packed_merger, payload_format, attempts)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pa.set_cpu_count(1)  # Spark gives a task one core
        for one in group_by_label(batches):
            yield self._run_task(one.label, [each for kind in sorted(one.payloads) for each in one.payloads[kind]])
        freeze_imports()

    def _run_task(self, label: int, payloads: Sequence[pa.Buffer]) -> pa.RecordBatch:
        return run_for_outcome(partial(self._write, label, payloads), self.attempts)

    def _write(self, label: int, payloads: Sequence[pa.Buffer]) -> TaskResult:
        task, count, inserts = unpack_once(self.packed)[label]
        if isinstance(task, RewriteTask):
            task = replace(task, merger=next(iter(load_mergers(self.packed_merger)), None))
        records, positions = self.payload_format.read(payloads)
        if len(records) != count:
            raise HoodieError(
                f"The DataFrame gave {len(records)} rows for a file where it had given {count} before.",
                hint="Its rows must not change: cache or save what rand(), uuid() and the like made.",
                file_group=task.group[1],
            )
        return run_task(task, records, positions, inserts)


def to_piece(row: Any) -> Piece:
    """Return the counts of a piece from a row of sums."""
    rows, inserts, updates, deletes, size = (int(row[name] or 0) for name in _COUNTS)
    return Piece(rows, inserts, updates, deletes, size, bool(row["in_base"]))


@dataclass(frozen=True, slots=True)
class _NewRows:
    """Records of one partition; ``bytes`` is about their size in a base file."""

    path: str
    records: WriteRecords
    bytes: float


@dataclass(frozen=True, slots=True, repr=False)
class WriteNewFiles:
    """Writes rows of the DataFrame to new files on a worker.

    ``packed``: the ``WriteFacts``.
    """

    packed: bytes
    commit: CommitFacts

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        there = open_facts(self.packed)
        outcomes = map(pack_result, self._write_files(there, batches))
        yield from run_step(outcomes, there.facts.attempts, pack_failure)

    def _write_files(self, there: OpenedFacts, batches: Iterator[pa.RecordBatch]) -> Iterator[TaskResult]:
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        first = task * _FILES_OF_A_TASK
        most = there.facts.settings.plan.max_file_size
        numbered = _number_files(_iterate_pieces(there, batches, task), most)
        for (number, path), members in groupby(numbered, key=itemgetter(0)):
            file = InsertTask(self.commit, first + number, path, make_file_id())
            yield file.run(records for _, records in members)


def _fill_small_files(
    path: str,
    keys: Sequence[PieceKey],
    pieces: Mapping[PieceKey, Piece],
    small: SmallFiles,
    file_bytes: int,
) -> Iterator[tuple[str, Sequence[PieceKey]]]:
    """Yield the ids of a partition's small files with the pieces that fill each, from the first piece on."""
    end = 0  # number of pieces that have a file
    for file_slice, room in small.list_free_rows(path, FILE_BYTES_A_BYTE, file_bytes):
        start, taken = end, 0
        while end < len(keys) and taken + pieces[keys[end]].bytes <= room:
            taken += pieces[keys[end]].bytes
            end += 1
        if end == start:
            continue
        if not small.is_worth(file_slice, taken * FILE_BYTES_A_BYTE):
            return
        yield file_slice.file_id, keys[start:end]


def _share_out(
    left: Sequence[PieceKey], pieces: Mapping[PieceKey, Piece], most: int
) -> Iterator[tuple[str, Sequence[PieceKey]]]:
    """Yield the ids of new files with their pieces of new records."""
    total = sum(pieces[key].bytes for key in left)
    count = min(len(left), -(-total // most)) if left else 0
    shares: list[list[PieceKey]] = [[] for _ in range(count)]
    filled = [0] * count
    for key in sorted(left, key=lambda each: -pieces[each].bytes):
        share = filled.index(min(filled))
        shares[share].append(key)
        filled[share] += pieces[key].bytes
    for share_ in shares:
        yield make_file_id(), share_


def _make_placement(
    group: GroupKey, pieces: Sequence[Piece], there: Mapping[GroupKey, FileSlice], fill: Fill
) -> FileAssignment:
    file_slice = there.get(group)
    base = None if file_slice is None or file_slice.base_file is None else file_slice.base_file.instant
    rows = sum(each.rows for each in pieces)
    return FileAssignment(
        *group,
        file_slice,
        0,
        rows,
        sum(each.inserts for each in pieces),
        sum(each.updates for each in pieces),
        sum(each.deletes for each in pieces),
        base if all(each.in_base for each in pieces) else None,
        Fill.NONE if file_slice is None else fill,
    )


def _number_files(pieces: Iterator[_NewRows], most: int) -> Iterator[tuple[tuple[int, str], WriteRecords]]:
    """Yield the records of each piece with the number and partition path of their file.

    A file gets at most ``most`` bytes.

    A larger piece has a file to itself. Only one piece is in memory at a time.
    """
    number, path, size = -1, None, 0.0
    for piece in pieces:
        if piece.path != path or size + piece.bytes > most:
            number, path, size = number + 1, piece.path, 0.0
        size += piece.bytes
        yield (number, piece.path), piece.records


def _iterate_pieces(there: OpenedFacts, batches: Iterator[pa.RecordBatch], task: int) -> Iterator[_NewRows]:
    facts, options = there.facts, there.facts.settings.options
    limit = _BYTES_OF_PARTITIONS if there.snapshot.config.is_partitioned else _BYTES_AT_ONCE
    rows = 0
    for table in gather_batches(batches, limit):
        generated = facts.keys.for_task(task, rows)
        rows += table.num_rows
        records, _ = make_records(table, there.snapshot, options, facts.operation, generated)
        routed = assign_new_files(records, facts.settings.plan.max_file_size)
        for placement in routed.assignments:
            of_place = routed.get_records(placement)
            yield _NewRows(placement.partition_path, of_place, estimate_row_bytes(of_place) * len(of_place))
