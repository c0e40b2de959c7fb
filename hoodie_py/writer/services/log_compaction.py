"""Log compaction: join many small log files of a file group into one (Hudi ``RunCompactionActionExecutor``,
``BaseHoodieTableServiceClient.logCompact``, ``HoodieLogCompactionPlanGenerator``).

The completed instant is a delta commit. Writers may append to the slices meanwhile: readers put the new file in the
place of what it joins. A slice is planned if the blocks that count in its log are of enough instants, and if no pending
plan names its file group.

* A block of an earlier log compaction counts as one, so that nothing is folded twice without need.
* Slices with partial updates are left out: their rows have columns that are absent, which no whole row can say.
* Up to table version 6 no plan is made beside a pending write: see ``refusals.check_pending_writes``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import ClassVar, Self
from uuid import uuid4

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import repeat_value
from hoodie_py.errors import ConflictError, HoodieError, InvalidTableError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.encoder import encode_records
from hoodie_py.formats.deletes.encoder import encode_delete_content
from hoodie_py.formats.indexes.measure import RecordRanges
from hoodie_py.formats.indexes.ranges import FileRanges
from hoodie_py.formats.log.framing import BlockType, HeaderKey, encode_block
from hoodie_py.formats.names import COMMIT_TIME_FIELD, FILE_NAME_FIELD, MarkerType, make_log_file_name
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.formats.timeline.instants import INFLIGHT, LOG_COMPACTION, Instant
from hoodie_py.formats.timeline.plans import CompactionPlan
from hoodie_py.formats.timeline.writers import write_compaction_plan
from hoodie_py.options.log_compaction import BLOCKS_THRESHOLD
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.merge.custom import CustomStrategy
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.record import is_delete_code
from hoodie_py.reader.record.row_store import NO_ROW
from hoodie_py.reader.selection import select_strategy
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.handles.data_file import CommitFacts, DataFile, TaskResult, start_measuring
from hoodie_py.writer.handles.markers import Marker, Markers
from hoodie_py.writer.handles.meta_columns import add_empty_columns
from hoodie_py.writer.indexes.index import MetadataCommit
from hoodie_py.writer.indexes.undo import undo_metadata_commit
from hoodie_py.writer.refusals import check_compactable, check_pending_writes
from hoodie_py.writer.rollback.attempt import list_attempt
from hoodie_py.writer.rollback.finish import delete_files
from hoodie_py.writer.rollback.written_files import find_written_files
from hoodie_py.writer.services.compaction import Compaction, make_compaction_content
from hoodie_py.writer.services.compaction_plan import find_planned_slices, make_operation, read_blocks
from hoodie_py.writer.services.compaction_report import CompactionResult
from hoodie_py.writer.services.compaction_task import OnRows
from hoodie_py.writer.services.due_service import DueService
from hoodie_py.writer.services.planned_service import PlannedService
from hoodie_py.writer.services.service_run import (
    Done,
    Opened,
    Saved,
    describe_files,
    make_facts,
    make_read_options,
    with_schema_of,
)
from hoodie_py.writer.timeline.session import PLAN_ID, WriteSession, find_newest_time
from hoodie_py.writer.transaction.commit_protocol import FoundFiles
from hoodie_py.writer.transaction.pending import iterate_planned_slices

_ROWS = 1 << 16


class UnjoinableLogError(UnsupportedFeatureError):
    """What a merger made of a log cannot be said in a log file."""


@dataclass(frozen=True, slots=True)
class LogCompactionTask:
    """Fold the log files of one slice into one (Hudi ``LogCompactionExecutionHelper``, ``HoodieAppendHandle``).

    ``file_slice`` has the planned log files of one operation of a plan; ``instants`` are the instants of their blocks
    that count, oldest first. ``version`` is the table version of the new log file.

    The new file has the state that the log leaves behind for each key: its row, or its delete with the ordering value.
    Its blocks name the instants of the blocks that they stand for (``COMPACTED_BLOCK_TIMES``), so that readers take
    them in their place; what is appended later still comes after. Blocks have no row numbers. Rows get the commit time
    of the log compaction, as in Java Hudi.

    A merger may want the data of a delete, and distinguish an absent column from a null. A delete that its own row
    shows (a flag, an operation, a marker) is written as that row. A log file has no place for other deletes with data,
    nor for whole rows that lack columns: such a log is not joined.

    A task may run more than once: each attempt writes a file with its own name, announced by a marker.
    """

    file_slice: FileSlice
    info: ReadInfo
    facts: CommitFacts
    index: int
    instants: tuple[str, ...]
    version: int = 1
    options: ReadOptions = field(default_factory=ReadOptions)
    merger: Merger | None = None

    @property
    def group(self) -> tuple[str, str]:
        """Partition path and file id."""
        return self.file_slice.partition_path, self.file_slice.file_id

    @property
    def key(self) -> tuple[str, str]:
        """The file group, which no other task of the run has."""
        return self.group

    @property
    def size(self) -> int:
        """Bytes of the log files, a measure of the work."""
        return self.log_bytes

    @property
    def log_bytes(self) -> int:
        """Bytes of the log files, which are held in memory while they merge."""
        return sum(log.size for log in self.file_slice.log_files)

    def with_merger(self, merger: Merger | None) -> Self:
        """Return the task with another merger."""
        return replace(self, merger=merger)

    @watch_calls("compact_log", attrgetter("info.files"))
    def run(self, on_rows: OnRows | None = None) -> TaskResult:
        """Write the new log file. ``on_rows`` gets the number of rows of each written block.

        Raises:
            HoodieError: a file is missing, corrupt or not supported, or the store refuses. Readers do not see what was
                written.
        """
        began = time.monotonic()
        partition, file_id = self.group
        by_commit = self.facts.config.has_logs_named_by_commit
        instant = self.facts.instant if by_commit else self.file_slice.base_instant
        name = make_log_file_name(file_id, instant, self.version, self.facts.make_token(self.index))
        marker = Marker(partition, name, MarkerType.CREATE if by_commit else MarkerType.APPEND)
        stats = ReadStats()
        measured = start_measuring(self.facts.indexed, self.facts.schema.avro)
        alone = replace(self.file_slice, base_file=None)
        names = self.info.schema.names
        counts = [0, 0]
        try:
            with (
                closing(LogReader(alone, self.info, names, self.merger, self.options, stats)) as log,
                DataFile(self.facts, marker) as file,
            ):
                for kind, content, count in self._encode(log, measured):
                    file.sink.write(encode_block(kind, self._make_headers(), content))
                    counts[kind is BlockType.DELETE] += count
                    if on_rows is not None:
                        on_rows(count)
                size = file.publish()
        except HoodieError as error:
            if isinstance(error, UnjoinableLogError):
                error.locate(instant=self.facts.instant)
            raise error.locate(file_group=file_id, partition=partition or None) from error.__cause__
        stat = self._make_stat(marker, size, counts, stats)
        ranges = None if measured is None else FileRanges(measured.finish())
        return TaskResult(stat, self.size, time.monotonic() - began, ranges)

    def _encode(self, log: LogReader, measured: RecordRanges | None) -> Iterator[tuple[BlockType, bytes, int]]:
        """Yield blocks with their numbers of records: rows first, then deletes."""
        folded = log.fold()
        if folded is None:
            return
        keeps = isinstance(log.strategy, CustomStrategy)
        nothing = np.zeros(len(folded), bool)
        at_once = min(_ROWS, log.rows_at_once)
        schema = AvroSchema.parse(self.facts.schema.avro)
        for entries in folded.iterate_chosen(nothing, at_once, value=False):
            with_rows = (entries.rows != NO_ROW) if keeps else ~entries.deletes
            if keeps:
                self._check_rows(log, entries.take(np.flatnonzero(with_rows)))
            rows = log.store.take(entries.rows[with_rows], self.info.schema.names)
            if rows.num_rows:
                stamped = self._stamp(rows)
                if measured is not None:
                    measured.add(stamped)
                content = encode_records(add_empty_columns(stamped, self.facts.schema.empty), schema)
                yield BlockType.AVRO_DATA, content, rows.num_rows
        for entries in folded.iterate_chosen(nothing, at_once, value=False):
            without_rows = (entries.rows == NO_ROW) if keeps else entries.deletes
            dead = entries.take(np.flatnonzero(without_rows))
            if len(dead):
                paths = repeat_value(self.file_slice.partition_path, pa.string(), len(dead))
                content = encode_delete_content(dead.keys.cast(pa.string()), paths, _list_ordering(dead))
                yield BlockType.DELETE, content, len(dead)

    def _check_rows(self, log: LogReader, entries: BufferedBatch) -> None:
        """Refuse what a merger made of rows and a data block cannot say.

        Raises:
            UnjoinableLogError: names the first key.
        """
        told = is_delete_code(log.deletes.read_operations(log.store.take(entries.rows, log.deletes.columns)))
        untold = np.flatnonzero(entries.deletes != told)
        if len(untold):
            raise UnjoinableLogError(
                "Log compaction of a log in which a merger made a delete with data.",
                hint="Compact the table.",
                key=entries.keys[int(untold[0])].as_py(),
            )
        for name, absent in log.store.list_absent(entries.rows).items():
            raise UnjoinableLogError(
                "Log compaction of a log in which a merger made a row that lacks a column.",
                hint="Compact the table.",
                key=entries.keys[int(np.argmax(absent))].as_py(),
                column=name,
            )

    def _stamp(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the meta columns that they have in the new log file."""
        changed = {COMMIT_TIME_FIELD: self.facts.instant, FILE_NAME_FIELD: self.file_slice.file_id}
        columns = [
            repeat_value(changed[name], pa.string(), rows.num_rows) if name in changed else column
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)

    def _make_headers(self) -> dict[HeaderKey, str]:
        return {
            HeaderKey.INSTANT_TIME: self.facts.instant,
            HeaderKey.SCHEMA: self.facts.schema.avro,
            HeaderKey.COMPACTED_BLOCK_TIMES: ",".join(self.instants),
        }

    def _make_stat(self, marker: Marker, size: int, counts: list[int], stats: ReadStats) -> WriteStat:
        base, by_commit = self.file_slice.base_file, self.facts.config.has_logs_named_by_commit
        names = tuple(log.name.name for log in self.file_slice.log_files)
        return WriteStat(
            file_id=self.file_slice.file_id,
            path=marker.path,
            prev_commit=self.file_slice.base_instant,
            num_writes=counts[0],
            num_deletes=counts[1],
            num_update_writes=counts[0],
            total_write_bytes=size,
            partition_path=self.file_slice.partition_path,
            total_log_records=stats.log_records,
            total_updated_records_compacted=sum(counts),
            total_log_blocks=stats.blocks,
            total_corrupt_log_block=stats.corrupt_blocks,
            total_rollback_blocks=stats.rollback_blocks,
            file_size_in_bytes=size,
            total_log_files_compacted=len(names),
            total_log_size_compacted=stats.log_bytes,
            log_version=self.version,
            log_offset=0,
            base_file=None if by_commit or base is None else base.name,
            log_files=(marker.file_name,) if by_commit else (*names, marker.file_name),
        )


def _list_ordering(dead: BufferedBatch) -> list[pa.Array]:
    """Return the ordering values of deletes, a column for each field; none where commit time decides."""
    values = dead.ordering
    if values.null_count == len(values):
        return []
    return list(values.flatten()) if pa.types.is_struct(values.type) else [values]


EXECUTOR = "org.apache.hudi.table.action.compact.LogCompactionExecutionHelper"
_OPERATION = "LOG_COMPACT"

_Opened = Opened[CompactionPlan, list[FileSlice], LogCompactionTask]


@dataclass(frozen=True)
class LogCompaction(PlannedService[CompactionPlan, list[FileSlice], LogCompactionTask, CompactionResult]):
    """Join many small log files of a file group into one."""

    name: ClassVar[str] = "log compaction"
    may_run_beside_writes: ClassVar[bool] = True

    def judge(self, session: WriteSession, snapshot: Snapshot, judged: Mapping[str, DueService]) -> DueService:
        """Judge by what a plan would take, which reads the headers of blocks; without that if a compaction is due."""
        if not snapshot.config.is_merge_on_read:
            return DueService(self.name, "not due", "a copy-on-write table has no log files")
        self.check_table(session, snapshot)
        compaction = judged.get(Compaction.name)
        if compaction is not None and compaction.is_due:
            return DueService(self.name, "not due", "the compaction takes all log files")
        least = BLOCKS_THRESHOLD.read(session.settings.options)
        instant = session.clock.peek(find_newest_time(snapshot.timeline))
        taken = _plan(session, snapshot, instant).operations
        files = sum(len(each.delta_files) for each in taken)
        figures = {"file slices": len(taken), "log files": files, "threshold": least}
        if not taken:
            return DueService(self.name, "not due", f"no log has blocks of {least} commits", figures)
        why = f"{len(taken):,} file slices have log blocks of {least} or more commits, in {files:,} log files"
        return DueService(self.name, "due", why, figures)

    def check_table(self, session: WriteSession, snapshot: Snapshot) -> None:
        """Refuse a table whose log files cannot be joined here."""
        check_compactable(snapshot)
        config = snapshot.config
        if config.cdc_enabled:
            raise UnsupportedFeatureError("Log compaction of a table with change data capture.", table=config.name)
        select_strategy(config, session.settings.options, session.find_own_merger(config))

    def make_plan(self, session: WriteSession, snapshot: Snapshot, instant: str) -> tuple[str, bytes] | None:
        """Plan the slices that have enough log blocks."""
        self.check_table(session, snapshot)
        plan = _plan(session, snapshot, instant)
        return (LOG_COMPACTION, write_compaction_plan(plan)) if plan.operations else None

    def list_pending(self, snapshot: Snapshot) -> Sequence[Instant]:
        """Return the pending log compactions, oldest first."""
        return snapshot.timeline.select_pending_log_compactions().instants

    def read_plan(self, snapshot: Snapshot, instant: Instant) -> CompactionPlan:
        """Return a pending plan; an empty one if it was rolled back since the listing."""
        return snapshot.timeline.read_pending_plan(instant)

    def find(self, saved: Saved[CompactionPlan], earlier: list[FileSlice] | None = None) -> list[FileSlice]:
        """Return the slices with the log files that the plan names."""
        return find_planned_slices(saved.snapshot, saved.plan, saved.time, takes_all_logs=False)

    def open(self, saved: Saved[CompactionPlan], found: list[FileSlice], merger: Merger | None) -> _Opened:
        """Make a task for each slice. The merger is the session's, if it is the table's own."""
        saved = with_schema_of(saved)
        snapshot, facts, read = saved.snapshot, make_facts(saved, None), make_read_options(saved.session)
        own = saved.session.find_own_merger(snapshot.config)
        tasks = tuple(_make_task(snapshot, facts, read, index, each, own) for index, each in enumerate(found))
        places = tuple(task.group for task in tasks)
        return Opened(saved.session, snapshot, saved.instant, saved.plan, found, tasks, places, facts)

    def settle(
        self,
        opened: _Opened,
        results: Sequence[TaskResult],
        found: FoundFiles | None,
        ensure_own: Callable[[], None],
    ) -> None:
        """Check the files of the results and remove those of other attempts."""
        files = opened.session.files
        found = list_attempt(files, opened.time, opened.places) if found is None else found
        written = {path: size for result in results for path, size in result.sizes.items()}
        listed = {info.path: info.size for listing in found.listings.values() for info in listing}
        for path, size in written.items():
            if listed.get(path) != size:
                raise ConflictError(
                    "A file of the log compaction was removed or changed.", instant=opened.time, path=path
                )
        announced = {marker.path for marker in Markers(files, opened.time).parse_announced(found.markers)}
        others = sorted(announced.difference(written))
        if others:
            ensure_own()
        for path in others:
            files.delete_with_checksum(path)

    def undo(
        self,
        session: WriteSession,
        snapshot: Snapshot,
        pending: Instant,
        places: Sequence[GroupKey],
        check: Callable[[], object],
    ) -> None:
        """Take an attempt back to requested: its files, its entries in the metadata table, its markers."""
        instant = pending.request_time
        undo_metadata_commit(session.files, instant, check)
        files = find_written_files(snapshot, instant)
        check()
        delete_files(session.files, files)
        Markers(session.files, instant).remove_all()
        if pending.state == INFLIGHT:
            session.open_timeline(snapshot).remove(pending)

    def is_hopeless(self, error: HoodieError) -> bool:
        """Say whether a log has what no log block can say."""
        return isinstance(error, UnjoinableLogError) and "instant" in error.where

    def describe(self, opened: _Opened, results: Sequence[TaskResult]) -> MetadataCommit:
        """Return the new log files, which change no key and no location."""
        files = describe_files(opened, results, "compaction", _OPERATION)
        return replace(files, merger=opened.session.find_own_merger(opened.snapshot.config))

    def make_content(self, opened: _Opened, results: Sequence[TaskResult], now: Snapshot) -> bytes:
        """Return the commit metadata."""
        return make_compaction_content(opened, results, now, _OPERATION)

    def check_overlap(self, opened: _Opened, before: Snapshot, after: Snapshot) -> None:
        """Check the plan's file groups again."""
        find_planned_slices(after, opened.plan, opened.time, takes_all_logs=False)

    def sum_up(self, done: Done[CompactionPlan, list[FileSlice], LogCompactionTask] | None) -> CompactionResult:
        """Return what was done."""
        if done is None:
            return CompactionResult()
        return CompactionResult.of(done.opened.time, done.completion_time, done.results, done.seconds)


def _plan(session: WriteSession, snapshot: Snapshot, instant: str) -> CompactionPlan:
    """Return the plan for an instant; it may have no operations."""
    check_pending_writes(snapshot, instant)
    held = {(each.partition_path, each.file_id) for each in iterate_planned_slices(snapshot)}
    least = BLOCKS_THRESHOLD.read(session.settings.options)
    by_file = snapshot.config.has_logs_named_by_commit
    options = ReadOptions(options=session.settings.options)
    operations = []
    for each in snapshot.view.list_slices():
        if (each.partition_path, each.file_id) in held or len(each.log_files) < (least if by_file else 1):
            continue
        blocks = read_blocks(each, snapshot.read_info(each), options)
        if len({block.instant for block in blocks}) >= least and not any(block.block.is_partial for block in blocks):
            operations.append(make_operation(each, session.settings.plan.max_file_size))
    return CompactionPlan(
        operations=tuple(operations),
        extra_metadata={PLAN_ID: uuid4().hex},
        strategy=EXECUTOR,
        preserve_hoodie_metadata=True,
    )


def _make_task(
    snapshot: Snapshot, facts: CommitFacts, read: ReadOptions, index: int, file_slice: FileSlice, merger: Merger | None
) -> LogCompactionTask:
    info = snapshot.read_info(file_slice).as_stored(facts.schema.arrow, facts.schema.defaults)
    blocks = read_blocks(file_slice, info, read)
    if any(each.block.is_partial for each in blocks):
        raise InvalidTableError(
            "Invalid plan: a log compaction takes a slice with partial updates.",
            hint="Roll the plan back, and compact the table.",
            instant=facts.instant,
            file_group=file_slice.file_id,
        )
    version = 1
    if not facts.config.has_logs_named_by_commit:
        groups = {group.key: group for group in snapshot.view.list_file_groups([file_slice.partition_path])}
        logs = groups[file_slice.partition_path, file_slice.file_id].log_files
        version += max((log.name.version for log in logs if log.name.instant == file_slice.base_instant), default=0)
    instants = tuple(dict.fromkeys(each.instant for each in blocks))
    return LogCompactionTask(file_slice, info, facts, index, instants, version, read, merger)
