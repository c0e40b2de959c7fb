"""A distributed write in one step, for records that depend neither on each other nor on the table.

Nothing is shuffled. Each task of the DataFrame writes its rows to new base files, one after another, in the order of
the rows. So a partition gets about one file from each task that has rows of it. This is Java's bulk insert with sort
mode NONE (``NonSortPartitionerWithRows``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from hoodie_py.spark.attempts import pack_failure, pack_result, run_step
from hoodie_py.spark.distributed.shards import OpenedFacts, gather_batches, open_facts
from hoodie_py.writer.handles.create import InsertTask
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.input.to_records import make_records
from hoodie_py.writer.partitioner.assign import assign_new_files, estimate_row_bytes, make_file_id
from hoodie_py.writer.records import WriteRecords

if TYPE_CHECKING:
    from hoodie_py.writer.handles.data_file import CommitFacts

_BYTES_AT_ONCE = 16 << 20
_BYTES_OF_PARTITIONS = 128 << 20  # rows of different partitions alternate: more rows at a time give larger files
_FILES_OF_A_TASK = 10_000  # makes the sequence numbers of different tasks differ


@dataclass(frozen=True, slots=True)
class _Piece:
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


def _number_files(pieces: Iterator[_Piece], most: int) -> Iterator[tuple[tuple[int, str], WriteRecords]]:
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


def _iterate_pieces(there: OpenedFacts, batches: Iterator[pa.RecordBatch], task: int) -> Iterator[_Piece]:
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
            yield _Piece(placement.partition_path, of_place, estimate_row_bytes(of_place) * len(of_place))
