"""Write the updates and deletes of one file group as one new log file (Hudi ``HoodieAppendHandle``).

For each part of the records the file has data blocks, then a delete block. Large parts make several data blocks. From
table version 8 on, blocks carry the row numbers of the base rows that they change, if all of these are known. Such a
file may be partial: its rows contain only the columns that an update set, and the other columns keep their values
(Hudi's MERGE INTO). From version 8 on, the file's name contains the commit's instant. Before, it contains the instant
of the group's newest slice, and the next log version.

A delete that comes with a row goes into the data block if a custom merger decides: the merger may look at the row.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import join_chunks, repeat_value
from hoodie_py.errors import HoodieError
from hoodie_py.formats.avro.data_blocks import AvroSchema
from hoodie_py.formats.avro.encoder import encode_records
from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.deletes.encoder import encode_delete_content
from hoodie_py.formats.indexes.measure import RecordRanges
from hoodie_py.formats.indexes.ranges import FileRanges
from hoodie_py.formats.log.blocks import encode_positions
from hoodie_py.formats.log.framing import BlockType, HeaderKey, encode_block
from hoodie_py.formats.names import MarkerType, make_log_file_name
from hoodie_py.formats.timeline.commit_metadata import WriteStat
from hoodie_py.options.write import RECORD_POSITIONS
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record import is_delete_code
from hoodie_py.writer.handles.data_file import CommitFacts, DataFile, TaskResult, start_measuring
from hoodie_py.writer.handles.markers import Marker
from hoodie_py.writer.handles.meta_columns import RowStamp, add_empty_columns, find_missing_columns, make_file_batches
from hoodie_py.writer.output_schema import OutputSchema
from hoodie_py.writer.records import WriteRecords


def writes_positions(config: TableConfig, options: Mapping[str, str]) -> bool:
    """Whether log files carry the row numbers of the base rows that they change."""
    return config.is_merge_on_read and config.has_logs_named_by_commit and RECORD_POSITIONS.read(options)


@dataclass(frozen=True, slots=True)
class AppendTask:
    """Write one new log file.

    Attributes:
        facts: facts of the commit.
        index: number of the task.
        partition_path, file_id: the file group.
        base_instant: instant of the slice that the file belongs to, or of its pending compaction if there is one.
        version: version of the log file.
        base_file: name of the slice's base file.
        log_files: names of the slice's log files, for the statistics.
        positions_of: instant of the base file that row numbers count in; None: no row numbers are written.
        delete_rules: find the rows that their own columns mark as deletes. These are written as rows. None: all deletes
            go into the delete block.
        partial: schema of a log file that contains only some of the table's columns; None: it contains all.
    """

    facts: CommitFacts
    index: int
    partition_path: str
    file_id: str
    base_instant: str
    version: int = 1
    base_file: str | None = None
    log_files: tuple[str, ...] = ()
    positions_of: str | None = None
    delete_rules: DeleteRules | None = None
    partial: OutputSchema | None = None

    @property
    def schema(self) -> OutputSchema:
        """The schema of the rows."""
        return self.partial or self.facts.schema

    @property
    def group(self) -> tuple[str, str]:
        """Partition path and file id."""
        return self.partition_path, self.file_id

    @property
    def is_named_by_commit(self) -> bool:
        """Whether the log file carries the commit's instant in its name."""
        return self.facts.config.has_logs_named_by_commit

    @property
    def names_slice(self) -> bool:
        """Whether the statistics name the whole slice. A reader of changes compares it with the new log file."""
        return not self.is_named_by_commit or self.facts.config.cdc_enabled

    def run(self, records: WriteRecords, positions: np.ndarray | None = None, inserts: int = 0) -> TaskResult:
        """Write the log file; arguments and errors as for ``run_parts``."""
        return self.run_parts([(records, positions)], inserts)

    def run_parts(self, parts: Iterable[tuple[WriteRecords, np.ndarray | None]], inserts: int) -> TaskResult:
        """Write the log file, with blocks of its own for each part.

        A part is not used any more once the next one is requested. No two parts have different records of one key.

        Args:
            parts: records, and their row numbers in the base file, -1 if unknown.
            inserts: the number of records with new keys.

        Raises:
            HoodieError: a value cannot be written, or the store refuses. Readers do not see what was written.
        """
        began = time.monotonic()
        instant = self.facts.instant if self.is_named_by_commit else self.base_instant
        name = make_log_file_name(self.file_id, instant, self.version, self.facts.make_token(self.index))
        marker = Marker(self.partition_path, name, MarkerType.CREATE if self.is_named_by_commit else MarkerType.APPEND)
        measured = start_measuring(self.facts.indexed, self.schema.avro)
        live = dead = rows = 0  # ``dead`` includes deletes that are written as rows
        try:
            with DataFile(self.facts, marker) as file:
                for records, positions in parts:
                    order, known = self._sort_by_position(positions)
                    ordered = records if order is None else records.take(order)
                    deleted = ordered.delete_mask
                    as_rows = ~deleted | self._find_self_marked_deletes(ordered)
                    for block in self._encode_blocks(ordered, as_rows, known, measured, rows):
                        file.sink.write(block)
                    rows += int(as_rows.sum())
                    dead += int(deleted.sum())
                    live += len(ordered) - int(deleted.sum())
                size = file.publish()
        except HoodieError as error:
            raise error.locate(file_group=self.file_id, partition=self.partition_path or None) from error.__cause__
        stat = self._make_stat(marker, size, live, min(inserts, live), dead)
        ranges = None if measured is None else FileRanges(measured.finish())
        return TaskResult(stat, 0, time.monotonic() - began, ranges)

    def _sort_by_position(self, positions: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the order of the rows to write, and their row numbers in that order.

        Both are None if the row numbers cannot be written: some are unknown, or one occurs twice.
        """
        if positions is None or self.positions_of is None or not self.is_named_by_commit or (positions < 0).any():
            return None, None
        # The positions block is a bitmap, so readers pair its numbers with the rows in rising order.
        order = np.argsort(positions, kind="stable")
        sorted_ = positions[order]
        if (sorted_[1:] == sorted_[:-1]).any():
            return None, None
        return order, sorted_

    def _find_self_marked_deletes(self, records: WriteRecords) -> np.ndarray:
        """Return a mask of the rows whose own columns mark them as deletes."""
        rules = self.delete_rules
        if rules is None or find_missing_columns(records, self.facts.schema.arrow):
            return np.zeros(len(records), bool)
        told = records.rows.select([name for name in rules.columns if name in records.rows.schema.names])
        codes = [rules.read_operations(batch) for batch in told.to_batches()] if told.num_columns else []
        return is_delete_code(np.concatenate(codes)) if codes else np.zeros(len(records), bool)

    def _encode_blocks(
        self,
        records: WriteRecords,
        as_rows: np.ndarray,
        positions: np.ndarray | None,
        measured: RecordRanges | None,
        first: int,
    ) -> Iterator[bytes]:
        """Yield the encoded blocks: first the rows, whose column ranges are measured, then the deletes by key.

        ``first``: the number of rows that the file has already.
        """
        schema = AvroSchema.parse(self.schema.avro)
        stamp = RowStamp(self.facts.instant, self.index, self.partition_path, self.file_id)
        places = np.flatnonzero(as_rows)
        rows = records if len(places) == len(records) else records.take(places)
        done = 0
        most = self.facts.file.log_block_bytes
        for batch in make_file_batches(rows, self.schema.arrow, stamp, first, most) if len(rows) else ():
            here = None if positions is None else positions[places[done : done + batch.num_rows]]
            done += batch.num_rows
            if measured is not None:
                measured.add(batch)
            content = encode_records(add_empty_columns(batch, self.schema.empty), schema)
            headers = self._make_headers(here)
            if self.partial is not None:
                headers |= {HeaderKey.SCHEMA: self.partial.avro, HeaderKey.IS_PARTIAL: "true"}
            yield encode_block(BlockType.AVRO_DATA, headers, content)
        places = np.flatnonzero(~as_rows)
        if len(places):
            deletes = records.take(places)
            paths = repeat_value(self.partition_path, pa.string(), len(deletes))
            ordering: list[pa.Array] = [join_chunks(each) for each in deletes.ordering]
            here = None if positions is None else positions[places]
            content = encode_delete_content(join_chunks(deletes.keys), paths, ordering)
            yield encode_block(BlockType.DELETE, self._make_headers(here), content)

    def _make_headers(self, positions: np.ndarray | None) -> dict[HeaderKey, str]:
        headers = {HeaderKey.INSTANT_TIME: self.facts.instant, HeaderKey.SCHEMA: self.facts.schema.avro}
        if positions is not None and self.positions_of is not None:
            headers[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] = self.positions_of
            headers[HeaderKey.RECORD_POSITIONS] = encode_positions(positions)
        return headers

    def _make_stat(self, marker: Marker, size: int, rows: int, inserts: int, deletes: int) -> WriteStat:
        return WriteStat(
            file_id=self.file_id,
            path=marker.path,
            prev_commit=self.base_instant if self.names_slice else self.facts.instant,
            num_writes=rows,
            num_deletes=deletes,
            num_update_writes=rows - inserts,
            num_inserts=inserts,
            total_write_bytes=size,
            partition_path=self.partition_path,
            file_size_in_bytes=size,
            log_version=self.version,
            log_offset=0,
            base_file=self.base_file if self.names_slice else None,
            log_files=(*self.log_files, marker.file_name) if self.names_slice else (marker.file_name,),
        )
