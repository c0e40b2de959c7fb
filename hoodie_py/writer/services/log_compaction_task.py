"""Fold the log files of one slice into one log file (Hudi ``LogCompactionExecutionHelper``, ``HoodieAppendHandle``).

The new file has the state that the log leaves behind for each key: its row, or its delete with the ordering value. Its
blocks name the instants of the blocks that they stand for (``COMPACTED_BLOCK_TIMES``), so that readers take them in
their place; what is appended later still comes after. Blocks have no row numbers. Rows get the commit time of the
log compaction, as in Java Hudi.

A merger may want the data of a delete, and tell an absent column from a null. A delete that its own row tells (a flag,
an operation, a marker) is written as that row. A log file has no place for other deletes with data, nor for whole rows
that lack columns: such a log is not joined.

A task may run more than once: each attempt writes a file with its own name, announced by a marker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Self

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import repeat_value
from hoodie_py.errors import HoodieError, UnsupportedFeatureError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.encoder import encode_records
from hoodie_py.formats.deletes.encoder import encode_delete_content
from hoodie_py.formats.indexes.measure import RecordRanges
from hoodie_py.formats.indexes.ranges import FileRanges
from hoodie_py.formats.log.framing import BlockType, HeaderKey, encode_block
from hoodie_py.formats.names import COMMIT_TIME_FIELD, FILE_NAME_FIELD, MarkerType, make_log_file_name
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.log.log_reader import LogReader
from hoodie_py.reader.merge.custom import CustomStrategy
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo, ReadOptions, ReadStats
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.record import is_delete_code
from hoodie_py.reader.record.row_store import NO_ROW
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.writer.handles.data_file import CommitFacts, DataFile, TaskResult
from hoodie_py.writer.handles.markers import Marker
from hoodie_py.writer.handles.measure import start_measuring
from hoodie_py.writer.handles.meta_columns import add_empty_columns
from hoodie_py.writer.services.compaction_task import OnRows

_ROWS = 1 << 16


class UnjoinableLogError(UnsupportedFeatureError):
    """What a merger made of a log cannot be said in a log file."""


@dataclass(frozen=True, slots=True)
class LogCompactionTask:
    """One operation of a plan. ``file_slice`` has the planned log files; ``instants`` are those of their blocks that
    count, oldest first. ``version`` is that of the new log file.
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
