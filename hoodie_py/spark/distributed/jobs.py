"""Runs the steps of a distributed write as Spark jobs over DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import functions as f

from hoodie_py.errors import HoodieError
from hoodie_py.spark.attempts import OUTCOME, count_tries, make_numbers, run_job, unpack_error, unpack_outcome
from hoodie_py.spark.distributed.files import Piece, PieceKey, WriteFiles, WriteNewFiles, to_piece
from hoodie_py.spark.distributed.parquet_source import choose_row_source
from hoodie_py.spark.distributed.payloads import choose_labels
from hoodie_py.spark.distributed.place import PLACED, PlaceRecords
from hoodie_py.spark.distributed.shards import SHARDED, SKETCH, DivideKeys, DivideRows, KeySketch, WriteFacts
from hoodie_py.spark.types import as_spark_schema
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.pipeline.assign import FileAssignment
from hoodie_py.writer.pipeline.tasks import Tasks

_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_DEFAULT_PARTITIONS = 200  # Spark's
_SKETCH_BYTES = 64 << 20  # most bytes of sketches that the driver collects
_SHUFFLED = ("shard", "kind", "at", "payload", "failed")


class FrameJobs:
    """The Spark jobs of one DataFrame's write; ``close`` drops persisted DataFrames.

    ``step``: what writes files on workers.
    """

    step: ClassVar[type[WriteFiles]] = WriteFiles

    def __init__(self, spark: Any, df: Any) -> None:
        self.spark = spark
        self._source = choose_row_source(df)
        self.shards = int(spark.conf.get(_SHUFFLE_PARTITIONS, None) or _DEFAULT_PARTITIONS)
        self.attempts = count_tries(spark)
        self._tag = f"hoodie-write-{uuid4().hex}"
        self._kept: list[Any] = []

    def divide_rows(self, step: DivideRows) -> Any:
        """Return the rows, divided among shards; persisted."""
        return self._keep(self._source.map_batches(step, as_spark_schema(SHARDED)))

    def find_paths(self, sharded: Any) -> list[str] | None:
        """Return the partition paths of rows. Empty: rows have no path yet; None: there are no rows."""
        found = self._collect(sharded.select(f.explode_outer("paths").alias("path"), "failed").distinct())
        _raise_failures(found)
        return sorted({row["path"] for row in found} - {None}) if found else None

    def sketch_keys(self, sharded: Any) -> KeySketch | None:
        """Return the sketch of the rows' keys; None if tasks made no sketches, or sketches of too many bytes."""
        sketches = sharded.where(f.col("kind") == SKETCH)
        [sums] = self._collect(sketches.agg(f.sum("at").alias("bytes")))
        if not 0 < (sums["bytes"] or 0) <= _SKETCH_BYTES:
            return None
        return KeySketch.unite(
            KeySketch.unpack(bytes(row["payload"])) for row in self._collect(sketches.select("payload"))
        )

    def add_keys(self, sharded: Any, step: DivideKeys) -> Any:
        """Return rows by shard together with the keys of file slices; the step must have at least one slice."""
        numbers = make_numbers(self.spark, len(step.slices))
        return sharded.unionByName(numbers.mapInArrow(step, as_spark_schema(SHARDED)))

    def place_records(self, sharded: Any, step: PlaceRecords, parallelism: int | None) -> Any:
        """Return records with the file group that they belong to; persisted."""
        rows = sharded.select(*_SHUFFLED).where(f.col("kind") != SKETCH)
        rows = rows.repartition("shard") if parallelism is None else rows.repartition(parallelism, "shard")
        return self._keep(rows.sortWithinPartitions("shard", "kind", "at").mapInArrow(step, as_spark_schema(PLACED)))

    def count_pieces(self, placed: Any) -> dict[PieceKey, Piece]:
        """Return the counts of records for each partition path, file id and shard."""
        counts = [f.sum(name).alias(name) for name in ("rows", "inserts", "updates", "deletes", "bytes")]
        grouped = placed.groupBy("path", "file_id", "piece", "failed")
        found = self._collect(grouped.agg(*counts, f.bool_and("in_base").alias("in_base")))
        _raise_failures(found)
        return {(row["path"], row["file_id"], row["piece"]): to_piece(row) for row in found}

    def write_files(
        self,
        placed: Any,
        tasks: Tasks,
        placements: Sequence[FileAssignment],
        file_of: Mapping[PieceKey, int],
        facts: WriteFacts,
    ) -> list[TaskResult]:
        """Run the tasks of all files and return their results."""
        if not placements:
            return []
        chosen = choose_labels(len(placements))
        by_number = dict(zip(chosen, zip(tasks.iterate_tasks(placements), placements, strict=True), strict=True))
        step = self.step.from_tasks(by_number, facts.packed_merger, facts.payload_format.as_located(), facts.attempts)
        keys = list(file_of)
        places = pa.table(
            {
                "path": pa.array([key[0] for key in keys], pa.string()),
                "file_id": pa.array([key[1] for key in keys], pa.string()),
                "piece": pa.array([key[2] for key in keys], pa.int32()),
                "label": pa.array([chosen[file_of[key]] for key in keys], pa.int32()),
            }
        )
        files = f.broadcast(self.spark.createDataFrame(places)).alias("f")
        same = [f.col(f"p.{name}").eqNullSafe(f.col(f"f.{name}")) for name in ("path", "file_id", "piece")]
        both = placed.alias("p").join(files, same[0] & same[1] & same[2])
        rows = both.select("label", f.lit(0).alias("kind"), "at", "payload")
        rows = rows.repartition(len(placements), "label").sortWithinPartitions("label", "at")
        found = [unpack_outcome(row) for row in self._collect(rows.mapInArrow(step, as_spark_schema(OUTCOME)))]
        if len(found) != len(placements):
            raise HoodieError(
                f"Spark wrote {len(found)} files of {len(placements)}.", hint="The DataFrame's rows must not change."
            )
        return found

    def write_new_files(self, step: WriteNewFiles, parallelism: int | None) -> list[TaskResult]:
        """Write the rows of each task of the DataFrame to new files and return the results."""
        return [
            unpack_outcome(row)
            for row in self._collect(self._source.map_batches(step, as_spark_schema(OUTCOME), parallelism))
        ]

    def _keep(self, frame: Any) -> Any:
        kept = frame.persist()
        self._kept.append(kept)
        return kept

    def _collect(self, frame: Any) -> list[Any]:
        with run_job(self.spark, self._tag, "write"):
            try:
                return list(frame.collect())
            except Exception:
                raise
            # Spark would run the job to its end although nobody waits for it any more (Ctrl-C).
            except BaseException:
                self.spark.interruptTag(self._tag)
                raise

    def close(self) -> None:
        """Drop the persisted DataFrames."""
        for frame in self._kept:
            frame.unpersist()


def _raise_failures(rows: Sequence[Any]) -> None:
    failed = next((row["failed"] for row in rows if row["failed"] is not None), None)
    if failed is not None:
        raise unpack_error(bytes(failed))
