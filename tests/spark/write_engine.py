"""Run a distributed write without Spark: its steps run in this process on pickled copies."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from hoodie_py.spark.attempts import unpack_error, unpack_outcome
from hoodie_py.spark.distributed.changes import SparkChanges
from hoodie_py.spark.distributed.files import PieceKey, WriteFiles, WriteNewFiles, to_piece
from hoodie_py.spark.distributed.place import PlaceRecords
from hoodie_py.spark.distributed.rows import FrameRows
from hoodie_py.spark.distributed.shards import SKETCH, DivideKeys, DivideRows, KeySketch, WriteFacts
from hoodie_py.spark.engine import SparkEngine
from hoodie_py.spark.write_options import WriteOptions
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.dml.changes import RowChanges
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.pipeline.assign import FileAssignment
from hoodie_py.writer.pipeline.engine import Changes, Rows, Target
from hoodie_py.writer.pipeline.tasks import Tasks
from hoodie_py.writer.pipeline.write import Writer
from hoodie_py.writer.services.compaction_task import OnRows
from hoodie_py.writer.services.service_run import R, Task, Threads
from hoodie_py.writer.timeline.session import WriteSession

Shuffled = list[dict[str, Any]]


class HandJobs:
    """Does the work of Spark for ``FrameRows``.

    Args:
        rows: of the DataFrame, in the parts that tasks get.
        shards: how many.
        step: what writes files.
    """

    def __init__(self, rows: Sequence[pa.Table], shards: int, step: type[WriteFiles]) -> None:
        self._rows = rows
        self.shards = shards
        self.step = step
        self.attempts = 1

    def close(self) -> None:
        """Keep all."""

    def write_new_files(self, step: WriteNewFiles, parallelism: int | None) -> list[TaskResult]:
        parts = self._rows if parallelism is None else [pa.concat_tables(self._rows)]
        written = [row for part in parts for row in run(step, part.to_batches(max_chunksize=7))]
        raise_failed(written)
        return [pickle.loads(row["done"]) for row in written]

    def divide_rows(self, step: DivideRows) -> Shuffled:
        return [row for part in self._rows for row in run(step, part.to_batches(max_chunksize=7))]

    def find_paths(self, sharded: Shuffled) -> list[str] | None:
        raise_failed(sharded)
        return sorted({path for row in sharded for path in row["paths"] or ()}) if sharded else None

    def sketch_keys(self, sharded: Shuffled) -> KeySketch | None:
        return KeySketch.unite(KeySketch.unpack(row["payload"]) for row in sharded if row["kind"] == SKETCH)

    def add_keys(self, sharded: Shuffled, step: DivideKeys) -> Shuffled:
        numbers = [pa.RecordBatch.from_pydict({"id": [at]}) for at in range(len(step.slices))]
        return [*sharded, *(row for each in numbers for row in run(step, [each]))]

    def place_records(self, sharded: Shuffled, step: PlaceRecords, parallelism: int | None) -> Shuffled:
        by_shard = defaultdict(list)
        for row in (each for each in sharded if each["kind"] != SKETCH):
            by_shard[row["shard"] % 2].append(row)  # several shards a task
        found: Shuffled = []
        for rows in by_shard.values():
            rows.sort(key=lambda row: (row["shard"], row["kind"], row["at"]))
            found += run(step, [payload_batch(rows, "shard")])
        return found

    def count_pieces(self, placed: Shuffled) -> dict[PieceKey, Any]:
        raise_failed(placed)
        found: dict[PieceKey, dict[str, Any]] = {}
        for row in placed:
            key = row["path"], row["file_id"], row["piece"]
            sums = found.setdefault(key, {"in_base": True})
            sums["in_base"] = sums["in_base"] and row["in_base"]
            for name in ("rows", "inserts", "updates", "deletes", "bytes"):
                sums[name] = sums.get(name, 0) + row[name]
        return {key: to_piece(sums) for key, sums in found.items()}

    def write_files(
        self,
        placed: Shuffled,
        tasks: Tasks,
        placements: Sequence[FileAssignment],
        file_of: Mapping[PieceKey, int],
        facts: WriteFacts,
    ) -> list[TaskResult]:
        by_number = dict(enumerate(zip(tasks.iterate_tasks(placements), placements, strict=True)))
        step = self.step.from_tasks(by_number, facts.packed_merger, facts.payload_format.as_located(), facts.attempts)
        found = []
        for number in by_number:
            rows = [row for row in placed if file_of[row["path"], row["file_id"], row["piece"]] == number]
            for row in rows:
                row |= {"label": number, "kind": 0}
            rows.sort(key=lambda row: row["at"])
            written = run(step, [payload_batch(rows, "label")])
            raise_failed(written)
            found += [pickle.loads(row["done"]) for row in written]
        return found


class HandEngine(SparkEngine):
    """Works on tables, the parts that tasks get, as Spark does on a DataFrame of them."""

    def __init__(self, shards: int = 3, step: type[WriteFiles] = WriteFiles) -> None:
        spark: Any = SimpleNamespace(conf={"spark.master": "local"})
        super().__init__(spark)
        self._shards = shards
        self._step = step

    def run(self, tasks: Sequence[Task[R]], on_rows: OnRows) -> Iterator[R]:
        return Threads().run(tasks, on_rows)

    def list_columns(self, data: Any, target: Target) -> tuple[Any, Sequence[str]]:
        return data, data[0].schema.names

    def key(self, data: Any, target: Target) -> Rows:
        jobs: Any = HandJobs(data, self._shards, self._step)
        return FrameRows(jobs, data[0].schema, target)

    def find_changes(self, changes: RowChanges, tasks: Sequence[ScanTask], target: Target) -> Changes:
        return HandChanges(self._spark, changes, tasks, target.merger)


class HandChanges(SparkChanges):
    """Runs the steps in this process; a row of numbers for each piece of work, twice, as a repeated task does."""

    def _run(self, step: Any, count: int) -> list[Any]:
        done = []
        for number in range(count):
            batch = pa.RecordBatch.from_pydict({"id": [number]})
            for _ in range(2):
                [outcome] = step(iter([batch]))
            done.append(unpack_outcome(outcome.to_pylist()[0]))
        return done


def payload_batch(rows: Shuffled, label: str) -> pa.RecordBatch:
    columns = {
        label: pa.array([row[label] for row in rows], pa.int32()),
        "kind": pa.array([row["kind"] for row in rows], pa.int32()),
        "at": pa.array([row["at"] for row in rows], pa.int64()),
        "payload": pa.array([row["payload"] for row in rows], pa.binary()),
        "failed": pa.array([row["failed"] for row in rows], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def run(step: Any, batches: Sequence[pa.RecordBatch]) -> Shuffled:
    """Run a pickled copy of a step, as a worker does."""
    there = pickle.loads(pickle.dumps(step))
    return [row for batch in there(iter(batches)) for row in batch.to_pylist()]


def raise_failed(rows: Shuffled) -> None:
    for row in rows:
        if row["failed"] is not None:
            raise unpack_error(row["failed"])


def write_by_hand(
    where: Path,
    rows: Sequence[pa.Table],
    operation: str = "upsert",
    merger: Any = None,
    shards: int = 3,
    **options: str,
) -> WriteResult:
    """Write to an existing table; names of options have ``__`` for dots."""
    given = {"path": str(where), "hoodie.datasource.write.operation": operation}
    given |= {name.replace("__", "."): value for name, value in options.items()}
    parsed = WriteOptions.parse(given, {}, overwrite=False)
    with parsed.open_or_create(rows[0].schema) as snapshot:
        session = WriteSession.open(snapshot, options=parsed.settings)
        return Writer(session, merger, engine=HandEngine(shards)).write(rows, parsed.operation)
