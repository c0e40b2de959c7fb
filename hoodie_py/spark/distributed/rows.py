"""The rows of a DataFrame as a write's rows: Spark shuffles them, the driver decides.

Java: ``HoodieSimpleIndex`` (tagging by a join with the keys in files), ``UpsertPartitioner``.

    rows                  -> rows with keys, divided among shards          DivideRows        (persisted)
    keys of rows          -> a sketch, on the driver                       KeySketch
    keys in files         -> the keys in the sketch, divided among shards  DivideKeys
    both, by shard        -> records, merged, looked up and placed         PlaceRecords      (persisted)
    counts of records     -> the files to write, on the driver             plan_files
    records, by file      -> one Spark task per file                       WriteFiles
    results of the tasks  -> the commit, on the driver

If records depend neither on each other nor on the table, one step writes the files (``WriteNewFiles``). If the
DataFrame only loads Parquet files, the first step reads the files (``parquet_source``).

Persisted DataFrames are computed once, unless an executor is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from hoodie_py.errors import UnsupportedFeatureError
from hoodie_py.formats.config.merge_creation import resolve_config_for_write
from hoodie_py.options import source as source_keys
from hoodie_py.options.write import CONCURRENCY_MODE, NON_BLOCKING
from hoodie_py.reader.merge.registry import find_supplied_merger
from hoodie_py.spark.attempts import pack
from hoodie_py.spark.distributed.files import PieceKey, WriteNewFiles, plan_files
from hoodie_py.spark.distributed.jobs import FrameJobs
from hoodie_py.spark.distributed.payloads import PayloadFormat, choose_labels
from hoodie_py.spark.distributed.place import PlaceRecords
from hoodie_py.spark.distributed.shards import DivideKeys, DivideRows, WriteFacts
from hoodie_py.spark.mergers import pack_mergers
from hoodie_py.spark.pin import Pin
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.index.key_spelling import check_spelling
from hoodie_py.writer.input.to_records import make_records
from hoodie_py.writer.pipeline.assign import FileAssignment
from hoodie_py.writer.pipeline.engine import Placed, Target
from hoodie_py.writer.pipeline.operations import is_independent, needs_lookup
from hoodie_py.writer.pipeline.small_files import choose_filled, is_merging_inserts
from hoodie_py.writer.pipeline.tasks import Tasks
from hoodie_py.writer.records import WriteOperation


class FrameRows:
    """The rows of a DataFrame (``Rows``).

    Raises:
        UnsupportedFeatureError: the options ask for a non-blocking write.
        HoodieError: the DataFrame's columns do not fit the table.
    """

    def __init__(self, jobs: FrameJobs, schema: pa.Schema, target: Target) -> None:
        settings = target.settings
        if settings.non_blocking:
            raise UnsupportedFeatureError(
                f"Spark jobs that write with {CONCURRENCY_MODE}={NON_BLOCKING}.",
                hint="Use OPTIMISTIC_CONCURRENCY_CONTROL, or write in process.",
            )
        self._jobs = jobs
        self._target = target
        empty, self.schema = make_records(schema.empty_table(), target.snapshot, settings.options, target.operation)
        self.made_of = empty.made_of
        self._format = PayloadFormat.from_records(empty)
        self._independent = is_independent(target.operation, settings) and not is_merging_inserts(
            target.snapshot, settings, target.merger
        )
        self._facts = self._make_facts(target)
        self._packed = pack(self._facts)
        if not self._independent and target.operation is not WriteOperation.INSERT_OVERWRITE_TABLE:
            # Also before the rows are computed, which may last for hours.
            check_spelling(target.snapshot, settings.options, self.made_of, [], target.merger)

    @property
    def partitions(self) -> list[str]:
        """As ``Rows.partitions``."""
        return self._paths or []

    @property
    def is_empty(self) -> bool:
        """As ``Rows.is_empty``."""
        return self._paths is None

    @cached_property
    def _paths(self) -> list[str] | None:
        """The partition paths of the rows; None if there are no rows, empty if rows have no path yet."""
        return [] if self._independent else self._jobs.find_paths(self._sharded)

    @cached_property
    def _sharded(self) -> Any:
        return self._jobs.divide_rows(DivideRows(self._packed, self._by_key))

    @property
    def _by_key(self) -> bool:
        """Whether the table's keys are needed to place the rows."""
        return needs_lookup(self._target.operation, self._target.settings) or not self._format.has_paths

    def place(self, target: Target) -> Placed:
        """As ``Rows.place``."""
        if self._independent:
            return _NewFiles(self._jobs, self._packed, self._parallelism)
        if target.snapshot is not self._target.snapshot:
            self._facts = replace(self._facts, pin=Pin.from_snapshot(target.snapshot))
            self._packed = pack(self._facts)
        settings, snapshot, jobs, sharded = target.settings, target.snapshot, self._jobs, self._sharded
        everywhere = settings.index.is_global or not self._format.has_paths
        slices = snapshot.view.list_slices(None, None if everywhere else self.partitions)
        if self._by_key and slices:
            sharded = jobs.add_keys(sharded, DivideKeys(self._packed, slices, jobs.sketch_keys(sharded)))
        placed = jobs.place_records(sharded, PlaceRecords(self._packed, slices), self._parallelism)
        pieces = jobs.count_pieces(placed)
        small = choose_filled(target.operation, snapshot, settings, target.merger, lambda: slices)
        plan = plan_files(pieces, slices, settings.plan.max_file_size, small)
        return _PlacedFrame(plan.placements, jobs, placed, plan.file_of, self._facts)

    def close(self) -> None:
        """As ``Rows.close``."""
        self._jobs.close()

    def _make_facts(self, target: Target) -> WriteFacts:
        config = resolve_config_for_write(target.snapshot.config, target.settings.options, batch=False)
        merger = find_supplied_merger(config, target.settings.options, target.merger)
        return WriteFacts(
            pin=Pin.from_snapshot(target.snapshot),
            timezone=target.snapshot.timezone,
            settings=target.settings,
            operation=target.operation,
            payload_format=self._format,
            packed_merger=pack_mergers([] if merger is None else [merger]),
            shards=tuple(choose_labels(self._parallelism or self._jobs.shards)),
            attempts=self._jobs.attempts,
        )

    @property
    def _parallelism(self) -> int | None:
        """Number of shards in the options; None to use Spark's number of shuffle partitions."""
        key = source_keys.PARALLELISM.get(self._target.operation.value, source_keys.PARALLELISM["insert"])
        text = (self._target.settings.options.get(key) or "").strip()
        return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else None


@dataclass(frozen=True, slots=True)
class _PlacedFrame:
    """Records in Spark whose files are known (``Placed``)."""

    assignments: tuple[FileAssignment, ...]
    jobs: FrameJobs
    placed: Any
    file_of: Mapping[PieceKey, int]
    facts: WriteFacts

    def write(self, tasks: Tasks) -> Sequence[TaskResult]:
        """As ``Placed.write``."""
        return self.jobs.write_files(self.placed, tasks, self.assignments, self.file_of, self.facts)


@dataclass(frozen=True, slots=True)
class _NewFiles:
    """Rows of which every Spark task writes its own to new files (``Placed``)."""

    jobs: FrameJobs
    packed: bytes
    parallelism: int | None
    assignments: None = None

    def write(self, tasks: Tasks) -> Sequence[TaskResult]:
        """As ``Placed.write``."""
        return self.jobs.write_new_files(WriteNewFiles(self.packed, tasks.facts), self.parallelism)
