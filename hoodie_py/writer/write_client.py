"""Write a caller's data: read it, make keys, combine rows of one key, look keys up, place records, commit (Hudi
``BaseHoodieWriteClient``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import InvalidQueryError
from hoodie_py.options.write import PARTITIONS_TO_DELETE, STATIC_PARTITIONS
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.clustering.updates import roll_back_for_update
from hoodie_py.writer.commit.commit_records import Write, commit_records
from hoodie_py.writer.commit.non_blocking import check_non_blocking
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.commit.stream_inserts import SpilledInserts, insert_spilled
from hoodie_py.writer.index.bucket_locations import check_buckets
from hoodie_py.writer.index.delete_filter import make_deletes_by_filter
from hoodie_py.writer.index.key_spelling import check_spelling
from hoodie_py.writer.index.table_index import resolve_table_index
from hoodie_py.writer.index.tagging import PlannedForClusteringError
from hoodie_py.writer.index_jobs.table_indexes import build_wanted
from hoodie_py.writer.input.input_data import is_held, read_input, read_pieces
from hoodie_py.writer.input.to_records import choose_operation, find_input_schema, make_records
from hoodie_py.writer.output_schema import OutputSchema, load_output_schema
from hoodie_py.writer.partitioner.assign import AssignedRecords, assign_files, list_slices_of
from hoodie_py.writer.partitioner.by_operation import (
    OVERWRITES,
    assign_records,
    check_replaceable,
    is_non_blocking,
    is_plain_insert,
    list_replaced_groups,
    needs_insert_conflict_check,
)
from hoodie_py.writer.partitioner.chosen_partitions import (
    check_rows_inside,
    choose_partitions,
    make_missing_error,
    split_paths,
)
from hoodie_py.writer.partitioner.fill import is_merging_inserts
from hoodie_py.writer.precombine.combine import combine, needs_combining
from hoodie_py.writer.records import WriteOperation, WriteRecords
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.commit_protocol import turn_missing_into_conflict

_PIECE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Writer:
    """Makes one write.

    ``merger`` replaces the table's merge mode. ``partitions``: the partitions that an insert overwrite replaces; None:
    the partitions of its rows.
    """

    session: WriteSession
    merger: Merger | None = None
    extra_metadata: Mapping[str, str] | None = None
    partitions: tuple[str, ...] | None = None

    @watch_calls("write", attrgetter("session.files"))
    def write(self, data: Any, operation: WriteOperation) -> WriteResult:
        """Write rows, or delete the records of rows or keys.

        ``data`` is anything with an Arrow stream, pandas, polars, or a list of dicts; for deletes also a list of keys.

        Raises:
            HoodieError: see ``HoodieTable.upsert``.
        """
        snapshot = build_wanted(self.session, undo_failed_writes(self.session))
        with turn_missing_into_conflict(self.session, snapshot):
            if not snapshot.config.record_key_fields and operation is WriteOperation.UPSERT:
                data = read_input(data, find_input_schema(snapshot), self.session.settings.options)
                operation = choose_operation(operation, snapshot.config, data.schema.names)
            session = resolve_table_index(self.session, snapshot, operation, self.merger)
            return replace(self, session=session).carry_out(data, snapshot, operation)

    def carry_out(self, data: Any, snapshot: Snapshot, operation: WriteOperation) -> WriteResult:
        """Write with the index in the session's settings; arguments and errors as for ``write``.

        Failed writes must have been undone in the snapshot.
        """
        settings = self.session.settings
        check_non_blocking(snapshot, settings)
        plain = is_plain_insert(operation, settings) and not is_held(data)
        if plain and not is_merging_inserts(snapshot, settings, self.merger):
            pieces = read_pieces(read_input(data), _PIECE_BYTES)
            begin = [next(pieces), *islice(pieces, 1)]
            if len(begin) > 1:
                return self._insert_stream(_take_over(begin, pieces), snapshot, operation)
            [data] = begin
        records, schema = make_records(data, snapshot, settings.options, operation)
        write = self._make_write(snapshot, operation, schema)
        touched = _list_partitions(records)
        if operation is WriteOperation.DELETE_PARTITION:
            named = PARTITIONS_TO_DELETE.read(settings.options)
            paths = touched if named is None else split_paths(named)
            return self.replace_partitions(snapshot, paths) if paths else WriteResult(operation)
        overwritten = self.choose_overwritten(operation, touched)
        if not len(records) and overwritten == []:
            return WriteResult(operation)
        check_buckets(snapshot, settings, touched, self.merger)
        if operation is not WriteOperation.INSERT_OVERWRITE_TABLE:  # which keeps none of the table's keys
            check_spelling(snapshot, settings.options, records.made_of, touched, self.merger)
        if needs_combining(operation, settings.options):
            records = combine(records, snapshot, settings, self.merger)
        if operation in OVERWRITES:
            write = replace(write, replaced=list_replaced_groups(snapshot, overwritten))
        try:
            routed = assign_records(records, snapshot, operation, settings, self.merger)
        except PlannedForClusteringError as error:
            # Without the clustering the file groups may be written, so the records are placed again.
            snapshot = roll_back_for_update(self.session, error)
            write = replace(write, snapshot=snapshot)
            routed = assign_records(records, snapshot, operation, settings, self.merger)
        return commit_records(replace(write, non_blocking=is_non_blocking(operation, settings)), routed)

    def choose_overwritten(self, operation: WriteOperation, touched: list[str]) -> list[str] | None:
        """Return the partitions that an overwrite replaces, None for all; for other operations the rows' partitions.

        Raises:
            InvalidQueryError: rows lie outside the partitions that the options or the caller named.
        """
        if operation is WriteOperation.INSERT_OVERWRITE_TABLE:
            return None
        given = STATIC_PARTITIONS.read(self.session.settings.options)
        named = self.partitions if self.partitions is not None else None if given is None else split_paths(given)
        if operation is not WriteOperation.INSERT_OVERWRITE or named is None:
            return touched
        return check_rows_inside(named, touched)

    @watch_calls("write", attrgetter("session.files"))
    def delete_partition(self, paths: Sequence[str], *, missing_ok: bool = True) -> WriteResult:
        """Delete the rows of partitions; ``*`` in a path stands for any characters.

        Raises:
            HoodieError: see ``HoodieTable.delete_partition``.
        """
        snapshot = undo_failed_writes(self.session)
        if snapshot.instant is None and missing_ok:
            return WriteResult(WriteOperation.DELETE_PARTITION)
        if snapshot.instant is None:
            raise make_missing_error((), ", ".join(paths))
        with turn_missing_into_conflict(self.session, snapshot):
            session = resolve_table_index(self.session, snapshot, WriteOperation.DELETE_PARTITION, self.merger)
            return replace(self, session=session).replace_partitions(snapshot, paths, missing_ok=missing_ok)

    def replace_partitions(self, snapshot: Snapshot, paths: Sequence[str], *, missing_ok: bool = True) -> WriteResult:
        """Commit that partitions have no file groups any more.

        The session knows the table's index; errors as for ``delete_partition``.
        """
        operation = WriteOperation.DELETE_PARTITION
        check_replaceable(operation, self.session.settings)
        replaced = list_replaced_groups(snapshot, choose_partitions(snapshot, paths, missing_ok=missing_ok))
        if not replaced and not missing_ok:  # their rows were deleted before
            there = {each.partition_path for each in snapshot.view.list_slices()}
            raise make_missing_error(there, ", ".join(paths))
        write = self._make_write(snapshot, operation, load_output_schema(snapshot))
        none = WriteRecords(pa.table({}), pa.chunked_array([], pa.string()), pa.chunked_array([], pa.string()))
        nothing = AssignedRecords(none, np.empty(0, np.int64), ())
        return commit_records(replace(write, replaced=replaced, looked_up=False), nothing)

    def _insert_stream(self, pieces: Iterator[pa.Table], snapshot: Snapshot, operation: WriteOperation) -> WriteResult:
        """Insert rows that come in pieces, using the memory of a few pieces."""
        settings = self.session.settings
        budget = MemoryBudget.from_options(ReadOptions(options=settings.options))
        with SpilledInserts(budget) as spilled:
            first = 0
            for piece in pieces:
                with _count_rows_from(first):
                    records, schema = make_records(piece, snapshot, settings.options, operation)
                spilled.add(records)
                first += piece.num_rows
            check_buckets(snapshot, settings, spilled.partitions, self.merger)
            check_spelling(snapshot, settings.options, records.made_of, spilled.partitions, self.merger)
            return insert_spilled(self._make_write(snapshot, operation, schema), spilled)

    @watch_calls("write", attrgetter("session.files"))
    def delete_where(self, chosen: str | pc.Expression) -> WriteResult:
        """Delete the rows that match a filter. The filter is Spark SQL text or a pyarrow expression.

        Raises:
            HoodieError: see ``HoodieTable.delete``.
        """
        snapshot = undo_failed_writes(self.session)
        if snapshot.instant is None:
            return WriteResult(WriteOperation.DELETE)
        with turn_missing_into_conflict(self.session, snapshot):
            tagged = make_deletes_by_filter(snapshot, chosen, self.session.settings.options, self.merger)
            write = self._make_write(snapshot, WriteOperation.DELETE, load_output_schema(snapshot))
            file_bytes = self.session.settings.plan.max_file_size
            slices = list_slices_of(tagged.records, snapshot)
            return commit_records(write, assign_files(tagged, slices, file_bytes))

    def _make_write(self, snapshot: Snapshot, operation: WriteOperation, schema: OutputSchema) -> Write:
        return Write(
            session=self.session,
            snapshot=snapshot,
            operation=operation,
            schema=schema,
            merger=self.merger,
            looked_up=needs_insert_conflict_check(operation, self.session.settings),
            extra_metadata=self.extra_metadata or {},
        )


def _take_over(begin: list[pa.Table], rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the pieces without keeping them in memory."""
    while begin:
        yield begin.pop(0)
    yield from rest


@contextmanager
def _count_rows_from(first: int) -> Iterator[None]:
    """Make errors about rows of a piece give the rows' numbers in the whole input."""
    try:
        yield
    except InvalidQueryError as error:
        if "rows" in error.where:
            error.where["rows"] = [first + each for each in error.where["rows"]]
        raise


def _list_partitions(records: WriteRecords) -> list[str]:
    return [] if records.partition_paths is None else records.partition_paths.unique().to_pylist()
