"""The last step of a distributed write: plans the files, and writes each one in a Spark task.

Java: ``UpsertPartitioner`` divides new records among small and new files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from hoodie_py.errors import HoodieError
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.spark.attempts import pack, run_for_outcome, unpack_once
from hoodie_py.spark.distributed.payloads import PayloadFormat, group_by_label
from hoodie_py.spark.mergers import load_mergers
from hoodie_py.spark.process import freeze_imports
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.commit.tasks import WriteTask, run_task
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.handles.merge import RewriteTask
from hoodie_py.writer.partitioner.assign import FileAssignment, make_file_id
from hoodie_py.writer.partitioner.fill import Fill
from hoodie_py.writer.partitioner.small_files import compute_free_rows

FILE_BYTES_A_BYTE = 0.4
"""About how many bytes of a base file a payload byte becomes."""

_COUNTS = ("rows", "inserts", "updates", "deletes", "bytes")

PieceKey = tuple[str, str | None, int]
"""Partition path, file id (None for new records), and the shard's label (``NO_PIECE`` unless the records are new)."""


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
    small: Sequence[FileSlice] = (),
    fill: Fill = Fill.NONE,
) -> FilePlan:
    """Decide which pieces share a file. The new records of a shard are never divided.

    New records first fill the base files of ``small`` slices; ``fill`` says how. New files have about ``file_bytes``.
    """
    members: dict[tuple[str, str], list[PieceKey]] = defaultdict(list)
    new: dict[str, list[PieceKey]] = defaultdict(list)
    for key in sorted(pieces, key=str):
        path, file_id, _ = key
        if file_id is None:
            new[path].append(key)
        else:
            members[path, file_id].append(key)
    room = compute_free_rows(small, FILE_BYTES_A_BYTE, file_bytes)
    filled: set[GroupKey] = set()
    for path, keys in new.items():
        for file_id, some in _share_out(keys, pieces, room.get(path, ()), int(file_bytes / FILE_BYTES_A_BYTE)):
            members[path, file_id].extend(some)
            filled.add((path, file_id))
    there = {(each.partition_path, each.file_id): each for each in slices}
    placements = tuple(
        _make_placement(group, [pieces[key] for key in keys], there, fill if group in filled else Fill.NONE)
        for group, keys in members.items()
    )
    file_of = {key: number for number, keys in enumerate(members.values()) for key in keys}
    return FilePlan(placements, file_of)


def _share_out(
    keys: Sequence[PieceKey], pieces: Mapping[PieceKey, Piece], room: Sequence[tuple[FileSlice, int]], most: int
) -> Iterator[tuple[str, list[PieceKey]]]:
    """Yield file ids with their pieces of new records: first the small files of ``room``, then new files."""
    end = 0  # number of pieces that have a file
    for file_slice, size in room:
        start, taken = end, 0
        while end < len(keys) and taken + pieces[keys[end]].bytes <= size:
            taken += pieces[keys[end]].bytes
            end += 1
        if end > start:
            yield file_slice.file_id, list(keys[start:end])
    left = keys[end:]
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
