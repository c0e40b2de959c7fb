"""A distributed write in one step, for records that depend neither on each other nor on the table.

Nothing is shuffled. Each task of the DataFrame writes its rows to new base files, one after the other, in the order of
the rows. So a partition gets about one file from each task that has rows of it. This is Java's bulk insert with sort
mode NONE (``NonSortPartitionerWithRows``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from hoodie_py.errors import HoodieError
from hoodie_py.spark.attempts import can_retry, pack_failure, pack_result
from hoodie_py.spark.python_process import freeze_imports
from hoodie_py.spark.write_shards import OpenedFacts, gather_batches, open_facts
from hoodie_py.writer.compaction_task import TaskResult
from hoodie_py.writer.incoming_records import make_records
from hoodie_py.writer.insert_task import InsertTask
from hoodie_py.writer.routing import assign_new_files, estimate_row_bytes, make_file_id
from hoodie_py.writer.write_records import WriteRecords

if TYPE_CHECKING:
    from hoodie_py.writer.data_file import CommitFacts

_BYTES_AT_ONCE = 16 << 20
_BYTES_OF_PARTITIONS = 128 << 20  # rows of partitions alternate: more rows at a time give larger files
_FILES_OF_A_TASK = 10_000  # makes the sequence numbers of different tasks differ


@dataclass(frozen=True, slots=True)
class _Piece:
    """Records of one partition; ``bytes`` is about their size in a base file."""

    path: str
    records: WriteRecords
    bytes: float


@dataclass(frozen=True, slots=True, repr=False)
class WriteNewFiles:
    """Write rows of the DataFrame to new files on a worker.

    Attributes:
        packed: the ``WriteFacts``, pickled.
        commit: facts of the commit.
    """

    packed: bytes
    commit: CommitFacts

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pa.set_cpu_count(1)  # Spark gives a task one core
        there = open_facts(self.packed)
        try:
            for result in self._write_files(there, batches):
                yield pack_result(result)
        except HoodieError as error:
            if can_retry(error, there.facts.attempts):
                raise
            yield pack_failure(error)
        freeze_imports()

    def _write_files(self, there: OpenedFacts, batches: Iterator[pa.RecordBatch]) -> Iterator[TaskResult]:
        context = TaskContext.get()
        index = (0 if context is None else context.partitionId()) * _FILES_OF_A_TASK
        pieces = _PieceQueue(_iterate_pieces(there, batches))
        most = there.facts.settings.plan.max_file_size
        while pieces.next is not None:
            task = InsertTask(self.commit, index, pieces.next.path, make_file_id())
            yield task.run(pieces.take_one_file(most))
            index += 1


class _PieceQueue:
    """Pieces in order; ``next`` is the next one, None at the end."""

    def __init__(self, pieces: Iterator[_Piece]) -> None:
        self._pieces = pieces
        self.next = next(pieces, None)

    def take_one_file(self, most: int) -> Iterator[WriteRecords]:
        """Yield the records of the next piece and of those after it that fit into the same file of ``most`` bytes."""
        path, size = None if self.next is None else self.next.path, 0.0
        while self.next is not None and self.next.path == path and (not size or size + self.next.bytes <= most):
            size += self.next.bytes
            yield self.next.records
            self.next = next(self._pieces, None)


def _iterate_pieces(there: OpenedFacts, batches: Iterator[pa.RecordBatch]) -> Iterator[_Piece]:
    facts, options = there.facts, there.facts.settings.options
    limit = _BYTES_OF_PARTITIONS if there.snapshot.config.is_partitioned else _BYTES_AT_ONCE
    for table in gather_batches(batches, limit):
        records, _ = make_records(table, there.snapshot, options, facts.operation)
        routed = assign_new_files(records, facts.settings.plan.max_file_size)
        for placement in routed.assignments:
            of_place = routed.get_records(placement)
            yield _Piece(placement.partition_path, of_place, estimate_row_bytes(of_place) * len(of_place))
