"""Write: one write from rows to the commit, whatever engine has the rows (Hudi ``BaseHoodieWriteClient``).

The steps are: conform the rows to the table, make their keys, combine rows of one key, locate keys in the table, assign
rows to files, write the files, commit. An engine does the work on rows; what is decided about them stands here, once.
``Writer`` makes writes of a caller's data, ``modify`` those of updates and merges.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.errors import ConflictError, HoodieWarning
from hoodie_py.files import ask_together
from hoodie_py.options.write import PARTITIONS_TO_DELETE, SCHEMA_CHANGES, STATIC_PARTITIONS
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.commit.conflicts import Claims
from hoodie_py.writer.commit.first_look import Intent, check_non_blocking
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.commit.write_commit import open_commit
from hoodie_py.writer.index.bucket_locations import check_buckets
from hoodie_py.writer.index.delete_filter import make_deletes_by_filter
from hoodie_py.writer.index.key_spelling import check_spelling
from hoodie_py.writer.index.table_index import resolve_table_index
from hoodie_py.writer.index.tagging import PlannedForClusteringError
from hoodie_py.writer.index_jobs.services import run_metadata_services
from hoodie_py.writer.index_jobs.table_indexes import build_wanted
from hoodie_py.writer.input.to_records import choose_operation
from hoodie_py.writer.output_schema import OutputSchema, load_output_schema
from hoodie_py.writer.pipeline.afterwards import check_catalogs, run_inline_services, sync_catalogs
from hoodie_py.writer.pipeline.assign import AssignedRecords, assign_files, list_slices_of
from hoodie_py.writer.pipeline.engine import Engine, Placed, Rows, Target
from hoodie_py.writer.pipeline.local_engine import LocalEngine, PlacedRecords
from hoodie_py.writer.pipeline.operations import (
    OVERWRITES,
    check_replaceable,
    check_rows_inside,
    choose_partitions,
    is_non_blocking,
    list_replaced_groups,
    make_missing_error,
    needs_insert_conflict_check,
    split_paths,
)
from hoodie_py.writer.pipeline.small_files import Fill
from hoodie_py.writer.pipeline.tasks import Tasks, make_workload
from hoodie_py.writer.precombine.merge_options import keep_if_own
from hoodie_py.writer.records import TaggedRecords, WriteOperation, WriteRecords
from hoodie_py.writer.rollback.recovery import undo_failed_writes
from hoodie_py.writer.schema_changes import describe_changes
from hoodie_py.writer.timeline.session import WriteSession
from hoodie_py.writer.transaction.commit_protocol import turn_missing_into_conflict


@dataclass(frozen=True, slots=True)
class Write(Target):
    """One write of one call, to a table whose failed writes have been undone and whose index the session knows.

    Attributes:
        engine: does the work on rows.
        extra_metadata: the caller's entries in the commit's metadata.
        partitions: the partitions that an insert overwrite replaces; None: the partitions of its rows.
    """

    engine: Engine = field(default_factory=LocalEngine)
    extra_metadata: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] | None = None

    def run(self, data: Any) -> WriteResult:
        """Write a caller's rows, or delete the records of rows or keys.

        Raises:
            HoodieError: see ``HoodieTable.upsert``.
        """
        check_non_blocking(self.snapshot, self.settings)
        with closing(self.engine.key(data, self)) as rows:
            if self.operation is WriteOperation.DELETE_PARTITION:
                named = PARTITIONS_TO_DELETE.read(self.settings.options)
                paths = rows.partitions if named is None else split_paths(named)
                return self.replace_partitions(paths) if paths else WriteResult(self.operation)
            overwritten = self._choose_overwritten(rows)
            if rows.is_empty and overwritten == []:
                return WriteResult(self.operation)
            self.check(rows)
            write, placed = self.place(rows)
            replaced = None
            if self.operation in OVERWRITES:
                replaced = list_replaced_groups(write.snapshot, overwritten)
            return write.commit(placed, rows.schema, replaced=replaced)

    def check(self, rows: Rows) -> None:
        """Check that the table has the buckets and the spelling of keys that the rows have.

        Raises:
            HoodieError: as for ``check_buckets`` and ``check_spelling``.
        """
        check_buckets(self.snapshot, self.settings, rows.partitions, self.merger)
        if self.operation is WriteOperation.INSERT_OVERWRITE_TABLE:  # which keeps none of the table's keys
            return
        check = partial(
            check_spelling, self.snapshot, self.settings.options, rows.made_of, rows.partitions, self.merger
        )
        is_looked_at = self.snapshot.instant is not None and self.operation is not WriteOperation.BULK_INSERT
        listed = rows.partitions if is_looked_at else ()
        # The view keeps the listings of the rows' partitions, which the steps after this one need.
        ask_together(self.snapshot.files, check, partial(self.snapshot.view.list_file_groups, listed))

    def place(self, rows: Rows) -> tuple[Write, Placed]:
        """Combine, locate and assign rows; roll back clusterings of their file groups if the options say so.

        Returns:
            The write, with the table after the rollbacks, and the placed rows.

        Raises:
            ConflictError: a clustering stands in the way, or another writer committed while it was rolled back.
            HoodieError: as for ``Rows.place``.
        """
        try:
            return self, rows.place(self)
        except PlannedForClusteringError as error:
            from hoodie_py.writer.clustering.updates import roll_back_for_update  # few writes need clustering

            # Without the clustering the file groups may be written, so the rows are placed again.
            write = replace(self, snapshot=roll_back_for_update(self.session, error))
        before, now = (each.snapshot.timeline.list_completed_writes() for each in (self, write))
        if list(before) != list(now):  # the rows, and what the caller knows, rest on the first look
            raise ConflictError(
                "Another writer committed while a clustering was rolled back for this write.", hint="Run it again."
            )
        return write, rows.place(write)

    def commit(
        self,
        placed: Placed,
        schema: OutputSchema,
        *,
        replaced: Mapping[str, tuple[str, ...]] | None = None,
        looked_up: bool | None = None,
    ) -> WriteResult:
        """Write and commit placed rows, then run the table services that are due.

        Args:
            placed: the rows.
            schema: the schema of the new files.
            replaced: file ids of the groups that the write replaces, by partition path; None: it is no replace commit.
            looked_up: whether the write searched for its keys, so that no other write may insert the new ones; None:
                as the operation does.

        Raises:
            ConflictError: another writer changed the table, or is at work.
            UnsupportedFeatureError: the table has a feature that is not handled.
            MergeError: the table needs a merger that was not supplied, or versions do not merge.
            CommitStateUnknownError: the store did not say whether the commit landed; nothing was taken back.
            StorageError: the store refused; the table is unchanged.
        """
        if placed.assignments == () and not replaced:
            return WriteResult(self.operation)
        began = time.monotonic()
        intent = self._make_intent(placed, schema, replaced, looked_up)
        catalogs = check_catalogs(self.session)
        _warn_of_changes(schema)
        # At the start of a write, not after a commit: until then Java can roll the last commit back.
        run_metadata_services(self.session, self.snapshot)
        with open_commit(self.session, intent) as begun:
            results = placed.write(Tasks(self.snapshot, begun.facts, self.settings, self.merger))
            if not results and replaced is None:
                return WriteResult(self.operation)  # there were no records: the block's end takes the write back
            completion_time = begun.commit(results)
        done = WriteResult.of(
            self.operation,
            begun.instant,
            completion_time,
            results,
            replaced=sum(map(len, (replaced or {}).values())),
            seconds=time.monotonic() - began,
        )
        done = run_inline_services(self, replace(done, schema_changes=schema.changes), self.engine)
        return replace(done, synced=sync_catalogs(self.session, catalogs), seconds=time.monotonic() - began)

    def commit_tagged(self, tagged: TaggedRecords, schema: OutputSchema, looked_up: bool | None = None) -> WriteResult:
        """Write and commit records whose file groups are known; arguments and errors as for ``commit``."""
        slices = list_slices_of(tagged.records, self.snapshot)
        placed = PlacedRecords(assign_files(tagged, slices, self.settings.plan.max_file_size), LocalEngine())
        # The records were chosen by rows of the table, so conflicts count even if the options say that they do not.
        session = replace(self.session, settings=replace(self.settings, non_blocking=False))
        return replace(self, session=session).commit(placed, schema, looked_up=looked_up)

    def replace_partitions(self, paths: Sequence[str], *, missing_ok: bool = True) -> WriteResult:
        """Commit that partitions have no file groups any more; errors as for ``Writer.delete_partition``."""
        check_replaceable(self.operation, self.settings)
        snapshot = self.snapshot
        replaced = list_replaced_groups(snapshot, choose_partitions(snapshot, paths, missing_ok=missing_ok))
        if not replaced and not missing_ok:  # their rows were deleted before
            there = {each.partition_path for each in snapshot.view.list_slices()}
            raise make_missing_error(there, ", ".join(paths))
        none = WriteRecords(pa.table({}), pa.chunked_array([], pa.string()), pa.chunked_array([], pa.string()))
        nothing = PlacedRecords(AssignedRecords(none, np.empty(0, np.int64), ()), LocalEngine())
        return self.commit(nothing, load_output_schema(snapshot), replaced=replaced, looked_up=False)

    def _choose_overwritten(self, rows: Rows) -> list[str] | None:
        """Return the partitions that an overwrite replaces, None for all; for other operations the rows' partitions.

        Raises:
            InvalidQueryError: rows lie outside the partitions that the options or the caller named.
        """
        if self.operation is WriteOperation.INSERT_OVERWRITE_TABLE:
            return None
        given = STATIC_PARTITIONS.read(self.settings.options)
        named = self.partitions if self.partitions is not None else None if given is None else split_paths(given)
        if self.operation is not WriteOperation.INSERT_OVERWRITE or named is None:
            return rows.partitions
        return check_rows_inside(named, rows.partitions)

    def _make_intent(
        self,
        placed: Placed,
        schema: OutputSchema,
        replaced: Mapping[str, tuple[str, ...]] | None,
        looked_up: bool | None,
    ) -> Intent:
        files = placed.assignments
        if looked_up is None:
            looked_up = needs_insert_conflict_check(self.operation, self.settings)
        claims = Claims(
            touched=frozenset(each.group for each in files or ()),
            rewritten=frozenset(each.group for each in files or () if each.fill is not Fill.NONE),
            replaced=replaced,
            new_keys_in=None if files is None else frozenset(each.partition_path for each in files if each.inserts),
            looked_up=looked_up,
            non_blocking=is_non_blocking(self.operation, self.settings),
        )
        return Intent(
            operation=self.operation,
            snapshot=self.snapshot,
            schema=schema,
            claims=claims,
            workload=make_workload(files or ()),
            extra_metadata=self.extra_metadata,
            merger=keep_if_own(self.snapshot.config, self.merger),
        )


@dataclass(frozen=True, slots=True)
class Writer:
    """Makes one write of a caller's data.

    ``merger`` replaces the table's merge mode. Other arguments as for ``Write``.
    """

    session: WriteSession
    merger: Merger | None = None
    extra_metadata: Mapping[str, str] | None = None
    partitions: tuple[str, ...] | None = None
    engine: Engine = field(default_factory=LocalEngine)

    @watch_calls("write", attrgetter("session.files"))
    def write(self, data: Any, operation: WriteOperation) -> WriteResult:
        """Write rows, or delete the records of rows or keys.

        ``data`` is anything with an Arrow stream, pandas, polars, or a list of dicts; for deletes also a list of keys.
        Spark's engine takes a DataFrame.

        Raises:
            HoodieError: see ``HoodieTable.upsert``.
        """
        with open_table(self.session) as snapshot:
            write = self._make_write(snapshot, operation)
            if not snapshot.config.record_key_fields and operation is WriteOperation.UPSERT:
                data, names = self.engine.list_columns(data, write)
                write = replace(write, operation=choose_operation(operation, snapshot.config, names))
            return self._resolve_index(write).run(data)

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
            write = self._resolve_index(self._make_write(snapshot, WriteOperation.DELETE_PARTITION))
            return write.replace_partitions(paths, missing_ok=missing_ok)

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
            write = self._make_write(snapshot, WriteOperation.DELETE)
            return write.commit_tagged(tagged, load_output_schema(snapshot))

    def _make_write(self, snapshot: Snapshot, operation: WriteOperation) -> Write:
        extra = self.extra_metadata or {}
        return Write(self.session, snapshot, operation, self.merger, self.engine, extra, self.partitions)

    def _resolve_index(self, write: Write) -> Write:
        session = resolve_table_index(self.session, write.snapshot, write.operation, self.merger)
        return replace(write, session=session)


@contextmanager
def open_table(session: WriteSession) -> Iterator[Snapshot]:
    """Undo failed writes, build the indexes that the options ask for, and yield the table for a write."""
    snapshot = build_wanted(session, undo_failed_writes(session))
    with turn_missing_into_conflict(session, snapshot):
        yield snapshot


def _warn_of_changes(schema: OutputSchema) -> None:
    """Warn before anything is written: if warnings are errors, the table stays as it is."""
    if schema.changes:
        text = (
            f"The write changes the table's schema: {describe_changes(schema.changes)}. With "
            f"{SCHEMA_CHANGES}=NONE it would be refused."
        )
        warnings.warn(HoodieWarning(text), stacklevel=4)
