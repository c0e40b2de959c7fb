"""Write a DataFrame with the workers of a Spark session; Spark shuffles, the driver commits.

Java: ``HoodieSparkSqlWriter``, ``HoodieSimpleIndex`` (tagging by a join with the keys in files), ``UpsertPartitioner``.

    rows                  -> rows with keys, divided among shards          DivideRows        (persisted)
    keys of rows          -> a sketch, on the driver                       KeySketch
    keys in files         -> the keys in the sketch, divided among shards  DivideKeys
    both, by shard        -> records, merged, looked up and placed         PlaceRecords      (persisted)
    counts of records     -> the files to write, on the driver             plan_files
    records, by file      -> one Spark task per file                       WriteFiles
    results of the tasks  -> the commit, on the driver

If records depend neither on each other nor on the table, one step writes the files (``WriteNewFiles``). If the
DataFrame only loads Parquet files, the first step reads the files (``parquet_source``).

Only DataFrames are used, so classic and Connect sessions behave alike. Persisted DataFrames are computed once, unless
an executor is lost. Spark may retry a task, or run two copies of it. Each attempt writes a file with its own name and
reports it. The driver commits the reported files and removes the others.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hoodie_py.errors import ConflictError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.merge_creation import resolve_config_for_write
from hoodie_py.options import source as source_keys
from hoodie_py.options.write import CONCURRENCY_MODE, NON_BLOCKING, PARTITIONS_TO_DELETE
from hoodie_py.reader.merge.registry import find_supplied_merger
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.spark.attempts import pack
from hoodie_py.spark.distributed.engine import SparkEngine
from hoodie_py.spark.distributed.files import plan_files
from hoodie_py.spark.distributed.new_files import WriteNewFiles
from hoodie_py.spark.distributed.payloads import PayloadFormat, choose_labels
from hoodie_py.spark.distributed.place import PlaceRecords
from hoodie_py.spark.distributed.shards import DivideKeys, DivideRows, WriteFacts
from hoodie_py.spark.load_options import to_option_texts
from hoodie_py.spark.mergers import find_session_merger, pack_mergers
from hoodie_py.spark.pin import Pin
from hoodie_py.spark.types import as_arrow_schema
from hoodie_py.spark.write_options import WriteOptions
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.commit.commit_records import Write, commit_new_files, commit_records
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.commit.tasks import Tasks
from hoodie_py.writer.index.bucket_locations import check_buckets
from hoodie_py.writer.index.key_spelling import check_spelling
from hoodie_py.writer.index.table_index import resolve_table_index
from hoodie_py.writer.index_jobs.table_indexes import build_wanted
from hoodie_py.writer.input.to_records import choose_operation, make_records
from hoodie_py.writer.output_schema import OutputSchema
from hoodie_py.writer.partitioner.assign import AssignedRecords, FileAssignment
from hoodie_py.writer.partitioner.by_operation import (
    OVERWRITES,
    is_independent,
    list_replaced_groups,
    needs_insert_conflict_check,
    needs_lookup,
)
from hoodie_py.writer.partitioner.chosen_partitions import split_paths
from hoodie_py.writer.partitioner.fill import Fill, choose_fill, is_merging_inserts
from hoodie_py.writer.partitioner.small_files import choose_small_files
from hoodie_py.writer.records import WriteOperation, WriteRecords
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.commit_protocol import turn_missing_into_conflict
from hoodie_py.writer.write_client import Writer

if TYPE_CHECKING:
    from hoodie_py.reader.file_slice import FileSlice
    from hoodie_py.reader.merge.merger import Merger
    from hoodie_py.writer.handles.data_file import CommitFacts, TaskResult
    from hoodie_py.writer.lock.lock import Lock

MODES = ("append", "overwrite", "errorifexists", "error", "ignore")


def write_table(
    df: Any,
    options: Mapping[str, Any],
    session_settings: Mapping[str, str],
    mode: str,
    merger: Merger | None,
    lock: Lock | None,
) -> WriteResult:
    """Write a DataFrame; see ``hoodie_py.spark.write`` for arguments and errors."""
    began = time.monotonic()
    if mode not in MODES:
        raise InvalidQueryError(f"The mode cannot be {mode!r}.", hint=f"Give one of {', '.join(MODES)}.")
    parsed = WriteOptions.parse(to_option_texts(options), session_settings, overwrite=mode == "overwrite")
    if parsed.recreates:
        raise UnsupportedFeatureError(
            "Making a table anew by this function: the rows may be read from the table that is removed.",
            hint='Write with df.write.format("hoodie").mode("overwrite").',
        )
    if mode not in ("append", "overwrite") and parsed.open() is not None:
        if mode == "ignore":
            return WriteResult(parsed.operation)
        raise ConflictError(
            "There is a Hudi table already.", hint='Write with mode="append" or "overwrite".', table=parsed.path
        )
    schema = as_arrow_schema(df.schema)
    with parsed.open_or_create(schema) as snapshot, SparkEngine(df.sparkSession, df) as engine:
        chosen = find_session_merger(df.sparkSession, snapshot.config, parsed.settings, merger)
        session = WriteSession.open(snapshot, options=parsed.settings, lock=lock, merger=chosen)
        done = DistributedWrite(engine, session, parsed.operation, schema, chosen).run()
    return replace(done, seconds=time.monotonic() - began)


@dataclass(slots=True)
class DistributedWrite:
    """One distributed write."""

    engine: SparkEngine
    session: WriteSession
    operation: WriteOperation
    schema: pa.Schema
    merger: Merger | None

    @watch_calls("write", attrgetter("session.files"))
    def run(self) -> WriteResult:
        """Write and commit."""
        if self.session.settings.non_blocking:
            raise UnsupportedFeatureError(
                f"Spark jobs that write with {CONCURRENCY_MODE}={NON_BLOCKING}.",
                hint="Use OPTIMISTIC_CONCURRENCY_CONTROL, or write in process.",
            )
        snapshot = build_wanted(self.session, undo_failed_writes(self.session))
        with turn_missing_into_conflict(self.session, snapshot):
            self.operation = choose_operation(self.operation, snapshot.config, self.schema.names)
            self.session = resolve_table_index(self.session, snapshot, self.operation, self.merger)
            return self._write_and_commit(snapshot)

    def _write_and_commit(self, snapshot: Snapshot) -> WriteResult:
        settings = self.session.settings
        empty, output = make_records(self.schema.empty_table(), snapshot, settings.options, self.operation)
        self._check_spelling(snapshot, empty, [])
        facts = self._make_facts(snapshot, PayloadFormat.from_records(empty))
        packed = pack(facts)
        if is_independent(self.operation, settings) and not is_merging_inserts(snapshot, settings, self.merger):
            return self._write_new_files(snapshot, output, packed)
        by_key = needs_lookup(self.operation, settings) or not facts.payload_format.has_paths
        whole = Writer(self.session, self.merger)
        named = PARTITIONS_TO_DELETE.read(settings.options)
        if self.operation is WriteOperation.DELETE_PARTITION and named is not None:
            return whole.replace_partitions(snapshot, split_paths(named))
        sharded = self.engine.divide_rows(DivideRows(packed, by_key))
        paths = self.engine.find_paths(sharded)
        if self.operation is WriteOperation.DELETE_PARTITION:
            return whole.replace_partitions(snapshot, paths) if paths else WriteResult(self.operation)
        overwritten = whole.choose_overwritten(self.operation, paths or [])
        if paths is None and overwritten == []:
            return WriteResult(self.operation)
        self._check_spelling(snapshot, empty, paths or [])
        check_buckets(snapshot, settings, paths or [], self.merger)
        slices = self._find_slices(snapshot, facts, paths or [])
        if by_key and slices:
            sharded = self.engine.add_keys(sharded, DivideKeys(packed, slices, self.engine.sketch_keys(sharded)))
        placed = self.engine.place_records(sharded, PlaceRecords(packed, slices), self._parallelism)
        pieces = self.engine.count_pieces(placed)
        fill = choose_fill(self.operation, snapshot, settings, self.merger)
        small = [] if fill is Fill.NONE else choose_small_files(snapshot, slices, settings)
        plan = plan_files(pieces, slices, settings.plan.max_file_size, small, fill)
        write = self._make_write(snapshot, output, overwritten)

        def run(tasks: Tasks, routed: AssignedRecords) -> Sequence[TaskResult]:
            return self.engine.write_files(placed, tasks, routed.assignments, plan.file_of, facts)

        return commit_records(write, _make_routed(plan.placements), run, self.engine.services)

    def _write_new_files(self, snapshot: Snapshot, output: OutputSchema, packed: bytes) -> WriteResult:
        def run(commit: CommitFacts) -> Sequence[TaskResult]:
            return self.engine.write_new_files(WriteNewFiles(packed, commit), self._parallelism)

        return commit_new_files(self._make_write(snapshot, output, []), run, self.engine.services)

    def _check_spelling(self, snapshot: Snapshot, empty: WriteRecords, partitions: list[str]) -> None:
        if self.operation is not WriteOperation.INSERT_OVERWRITE_TABLE:
            options = self.session.settings.options
            check_spelling(snapshot, options, empty.made_of, partitions, self.merger)

    def _make_facts(self, snapshot: Snapshot, payload_format: PayloadFormat) -> WriteFacts:
        config = resolve_config_for_write(snapshot.config, self.session.settings.options, batch=False)
        merger = find_supplied_merger(config, self.session.settings.options, self.merger)
        return WriteFacts(
            pin=Pin.from_snapshot(snapshot),
            timezone=snapshot.timezone,
            settings=self.session.settings,
            operation=self.operation,
            payload_format=payload_format,
            packed_merger=pack_mergers([] if merger is None else [merger]),
            shards=tuple(choose_labels(self._parallelism or self.engine.shards)),
            attempts=self.engine.attempts,
        )

    def _find_slices(self, snapshot: Snapshot, facts: WriteFacts, paths: list[str]) -> list[FileSlice]:
        """Return the file slices that the rows' keys may be in."""
        is_global = self.session.settings.index.is_global
        return snapshot.view.list_slices(None, None if is_global or not facts.payload_format.has_paths else paths)

    def _make_write(self, snapshot: Snapshot, output: OutputSchema, overwritten: list[str] | None) -> Write:
        replaced = None
        if self.operation in OVERWRITES:
            replaced = list_replaced_groups(snapshot, overwritten)
        return Write(
            session=self.session,
            snapshot=snapshot,
            operation=self.operation,
            schema=output,
            merger=self.merger,
            replaced=replaced,
            looked_up=needs_insert_conflict_check(self.operation, self.session.settings),
        )

    @property
    def _parallelism(self) -> int | None:
        """Number of shards in the options; None to use Spark's number of shuffle partitions."""
        key = source_keys.PARALLELISM.get(self.operation.value, source_keys.PARALLELISM["insert"])
        text = (self.session.settings.options.get(key) or "").strip()
        return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else None


def _make_routed(placements: tuple[FileAssignment, ...]) -> AssignedRecords:
    """Return placements without their records, which are in Spark."""
    none = WriteRecords(pa.table({}), pa.chunked_array([], pa.string()), pa.chunked_array([], pa.string()))
    return AssignedRecords(none, np.empty(0, np.int64), placements)
