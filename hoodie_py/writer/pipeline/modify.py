"""Run updates and merges: read the rows that may change, compute changes, find places for new rows, commit.

The commit is an upsert's. A changed row goes to the file group that contains it, so only keys of new rows are looked
up. Unless a clause is about rows without a match, only file groups that can contain a match are read.

On merge-on-read tables from version 8 on, log files contain only the columns that are set, and ordering fields, like
the log files of Java's MERGE INTO (``MergeIntoHoodieTableCommand.isPartialUpdateActionForMOR``). Rows are whole if the
option says so, the index is global, a custom merger or a partial update mode decides, or all columns are set. Beyond
Java's rule, rows are also whole where Java refuses (no meta fields, schema-on-read, a bootstrap), if a partition or
delete field is set, and if new rows may go into the same file. By event time they are whole unless the option asks for
partial rows, as late versions would mix with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py.arrow.fields import find_field_type, find_top_level_name
from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.config.merge_config import MergeMode
from hoodie_py.options.write import PARTIAL_UPDATES
from hoodie_py.reader.merge.merger import Merger
from hoodie_py.reader.read_info import ReadInfo
from hoodie_py.reader.record.delete_rules import DeleteRules
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.runtime.telemetry import watch_calls
from hoodie_py.table.filter.predicate import Predicate
from hoodie_py.table.filter.sql_settings import SqlSettings, of_process
from hoodie_py.table.scan.scan import make_scan
from hoodie_py.table.scan.task import ScanTask
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.writer.commit.result import WriteResult
from hoodie_py.writer.dml.bound_clauses import BoundClause, bind_clauses, bind_values, list_assigned
from hoodie_py.writer.dml.changes import RowChanges
from hoodie_py.writer.dml.clauses import Clauses, Delete, Insert, Update
from hoodie_py.writer.dml.names import SOURCE, TARGET, Names, list_columns
from hoodie_py.writer.dml.source_join import JoinCondition, SourceRows, bind_condition
from hoodie_py.writer.handles.append import AppendTask
from hoodie_py.writer.handles.data_file import TaskResult
from hoodie_py.writer.index.misread_partitions import refuse_changes
from hoodie_py.writer.index.table_index import resolve_table_index
from hoodie_py.writer.input.conform import check_names, find_write_schema
from hoodie_py.writer.input.input_data import read_input
from hoodie_py.writer.input.to_records import find_deletes
from hoodie_py.writer.keygen.generator import KeyGenerator
from hoodie_py.writer.output_schema import OutputSchema, select_data_columns, select_output_columns
from hoodie_py.writer.pipeline.assign import AssignedRecords, FileAssignment
from hoodie_py.writer.pipeline.engine import Changes, Engine, Work
from hoodie_py.writer.pipeline.local_engine import LocalEngine
from hoodie_py.writer.pipeline.new_rows import place_new_rows
from hoodie_py.writer.pipeline.small_files import Fill
from hoodie_py.writer.pipeline.tasks import Tasks, WriteTask
from hoodie_py.writer.pipeline.write import Write, open_table
from hoodie_py.writer.precombine.merge_options import check_merge_options
from hoodie_py.writer.records import WriteOperation
from hoodie_py.writer.timeline.session import WriteSession


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """The arguments of a merge; see ``HoodieTable.merge``."""

    on: str | Sequence[str]
    matched: Clauses = None
    not_matched: Clauses = None
    by_source: Clauses = None
    source_alias: str = SOURCE
    target_alias: str = TARGET


class _WholeRowsNeededError(Exception):
    """New rows go into file groups that get partial rows."""


@dataclass(frozen=True, slots=True)
class Modifier:
    """Makes one update or merge.

    ``merger`` replaces the table's merge mode. ``sql``: the settings of the session
    whose SQL the expressions are; None for this process's settings.
    """

    session: WriteSession
    merger: Merger | None = None
    engine: Engine = field(default_factory=LocalEngine)
    sql: SqlSettings | None = None

    @watch_calls("write", attrgetter("session.files"))
    def update(self, set: Mapping[str, Any], where: str | pc.Expression | None) -> WriteResult:  # noqa: A002 - as users know it
        """Set columns of the rows that match a filter.

        Raises:
            HoodieError: see ``HoodieTable.update``.
        """
        with open_table(self.session) as snapshot:
            plan = self._prepare(snapshot)
            names = Names(plan.columns, settings=plan.sql)
            clause = BoundClause(None, bind_values(set, names, plan.columns))
            return plan.run((clause,), (), (), None, None, where)

    @watch_calls("write", attrgetter("session.files"))
    def delete(self, where: str | pc.Expression | None) -> WriteResult:
        """Delete the rows that match a filter.

        Raises:
            HoodieError: see ``HoodieTable.update``.
        """
        with open_table(self.session) as snapshot:
            return self._prepare(snapshot).run((BoundClause(None, {}, deletes=True),), (), (), None, None, where)

    @watch_calls("write", attrgetter("session.files"))
    def merge(self, source: Any, request: MergeRequest) -> WriteResult:
        """Merge rows of a source into the table.

        Raises:
            HoodieError: see ``HoodieTable.merge``.
        """
        with open_table(self.session) as snapshot:
            plan = self._prepare(snapshot)
            rows = _read_source(source, plan.columns)
            names = Names(plan.columns, rows.schema, request.target_alias, request.source_alias, plan.sql)
            condition = bind_condition(request.on, names)
            bind = partial(bind_clauses, columns=plan.columns)
            matched = bind(request.matched, "when_matched", (Update, Delete), names)
            new = bind(request.not_matched, "when_not_matched", (Insert,), replace(names, target=pa.schema([])))
            left = bind(request.by_source, "by_source", (Update, Delete), replace(names, source=None))
            if not (matched or new or left):
                raise InvalidQueryError(
                    "A merge without clauses does nothing.",
                    hint="Give when_matched=, when_not_matched= or by_source=.",
                )
            return plan.run(matched, left, new, rows, condition, None)

    def _prepare(self, snapshot: Snapshot) -> _Plan:
        check_merge_options(snapshot.config, self.session.settings.options)
        # The new values rest on the old ones, so this write is checked for conflicts even if others are non-blocking.
        checked = replace(self.session, settings=replace(self.session.settings, non_blocking=False))
        session = resolve_table_index(checked, snapshot, WriteOperation.UPSERT, self.merger)
        schema = find_write_schema(snapshot)
        if schema is None:
            raise InvalidQueryError("The table has no rows and no schema.", hint="Insert the rows.")
        generator = KeyGenerator.from_snapshot(snapshot, session.settings.options)
        if generator.times:
            raise UnsupportedFeatureError(
                "Updates and merges of a table whose partition paths are formatted times.",
                hint="Scan the rows, change them, and upsert.",
                table=snapshot.config.name,
            )
        sql = self.sql or of_process(snapshot.timezone)
        return _Plan(session, snapshot, schema, generator, self.merger, self.engine, sql)


@dataclass(frozen=True, slots=True)
class _Plan:
    session: WriteSession
    snapshot: Snapshot
    schema: OutputSchema
    generator: KeyGenerator
    merger: Merger | None
    engine: Engine
    sql: SqlSettings

    @property
    def columns(self) -> pa.Schema:
        """The table's columns without meta columns."""
        return select_data_columns(self.schema.arrow)

    def run(
        self,
        matched: tuple[BoundClause, ...],
        by_source: tuple[BoundClause, ...],
        new: tuple[BoundClause, ...],
        rows: pa.Table | None,
        condition: JoinCondition | None,
        where: str | pc.Expression | None,
    ) -> WriteResult:
        some = self._select_partial_columns((*matched, *by_source), new)
        # With partial rows first; whole rows if it turns out that new rows go into the same files.
        for columns in (some, tuple(self.columns.names)) if some else (tuple(self.columns.names),):
            source = None if rows is None or condition is None else SourceRows(rows, condition)
            changes = self._make_changes(matched, by_source, columns, source)
            try:
                return self._carry_out(changes, condition, new, where, is_partial=columns is some)
            except _WholeRowsNeededError:
                continue
        raise AssertionError("whole rows are always enough")

    def _make_changes(
        self,
        matched: tuple[BoundClause, ...],
        by_source: tuple[BoundClause, ...],
        columns: tuple[str, ...],
        source: SourceRows | None,
    ) -> RowChanges:
        config, options, index = self.snapshot.config, self.session.settings.options, self.session.settings.index
        marks = set(self._list_delete_columns()) & list_assigned((*matched, *by_source))
        find = partial(_find_marked, config=config, options=options) if marks else None
        return RowChanges(
            schema=self.schema,
            columns=columns,
            keys=RecordKeys.of(config.populate_meta_fields, config.record_key_fields),
            generator=self.generator,
            moves=bool(config.record_key_fields) and index.is_global and index.update_partition,
            source=source,
            matched=matched,
            by_source=by_source,
            find_deletes=find,
        )

    def _carry_out(
        self,
        changes: RowChanges,
        condition: JoinCondition | None,
        new: tuple[BoundClause, ...],
        where: str | pc.Expression | None,
        *,
        is_partial: bool,
    ) -> WriteResult:
        write = Write(self.session, self.snapshot, WriteOperation.UPSERT, self.merger, self.engine)
        tasks = self._plan_reads(changes, condition, where)
        with closing(self.engine.find_changes(changes, tasks, write)) as found:
            refuse_changes(self.snapshot.config, sorted({key[0] for key, each in found.groups.items() if each.updates}))
            write, routed = place_new_rows(write, self.schema, new, changes.source, condition, found.moved)
            if is_partial and any(_needs_whole_rows(each, found) for each in routed.assignments):
                raise _WholeRowsNeededError
            some = select_output_columns(self.schema, changes.columns) if is_partial else None
            placed = _PlacedChanges(_join_assignments(found, routed), found, routed, some, self._ordering_types)
            return write.commit(placed, self.schema, looked_up=bool(new))

    def _plan_reads(
        self, changes: RowChanges, condition: JoinCondition | None, where: str | pc.Expression | None
    ) -> list[ScanTask]:
        """Return tasks for the file slices whose rows may change, in the types of files."""
        source = changes.source
        wanted: str | pc.Expression | Predicate | None = where
        if self.snapshot.instant is None:
            return []
        if source is not None and not changes.by_source:
            if not source.rows.num_rows:
                return []
            wanted = source.make_filter()
        names = self._list_read_columns(changes, condition)
        options = dict(self.session.settings.options)
        scan = make_scan(self.snapshot, columns=names, filter=wanted, merger=self.merger, options=options, sql=self.sql)
        tasks = [each for each in scan.tasks() if isinstance(each, ScanTask)]
        return [replace(each, info=self._as_stored(each.info)) for each in tasks]

    def _as_stored(self, info: ReadInfo) -> ReadInfo:
        """Return the facts for reading rows in the types of files, with partition columns as a query shows them."""
        fields = self.schema.arrow
        shown = {
            name: value
            for name, value in info.constants.items()
            if name in fields.names and info.schema.field(name).type == fields.field(name).type
        }
        return replace(info.as_stored(fields, self.schema.defaults), constants=shown)

    def _list_read_columns(self, changes: RowChanges, condition: JoinCondition | None) -> list[str]:
        nodes = [node for each in (*changes.matched, *changes.by_source) for node in each.nodes]
        names = list_columns([*nodes, *([] if condition is None else condition.nodes)], TARGET)
        updates = any(not each.deletes for each in (*changes.matched, *changes.by_source))
        names |= set(changes.columns) if updates else set()
        names |= {find_top_level_name(self.schema.arrow, name) for name in changes.keys.columns}
        return [name for name in self.schema.arrow.names if name in names]

    @property
    def _ordering_types(self) -> tuple[pa.DataType, ...]:
        fields = self.snapshot.config.merge_ordering_fields
        return tuple(type_ for name in fields if (type_ := find_field_type(self.schema.arrow, name)) is not None)

    def _list_delete_columns(self) -> tuple[str, ...]:
        config = self.snapshot.config
        return DeleteRules.of(self.schema.arrow, config.merge_properties, self.session.settings.options).columns

    def _select_partial_columns(
        self, clauses: Sequence[BoundClause], new: Sequence[BoundClause]
    ) -> tuple[str, ...] | None:
        """Return the columns of partial log files; None if log files contain all columns."""
        config, settings = self.snapshot.config, self.session.settings
        assigned = list_assigned(clauses)
        possible = (
            self._wants_partial_rows()
            and config.is_merge_on_read
            and config.has_logs_named_by_commit
            and config.populate_meta_fields
            and config.partial_update_mode is None
            and config.bootstrap_base_path is None
            and self.merger is None
            and self.schema.latest is None
            and not settings.index.is_global
            and not (settings.index.is_bucket and new)
        )
        named = (*self.generator.partition_fields, *self._list_delete_columns())
        whole = {find_top_level_name(self.schema.arrow, name) for name in named}
        if not possible or not assigned or assigned & whole:
            return None
        kept = assigned | {find_top_level_name(self.schema.arrow, name) for name in config.merge_ordering_fields}
        names = tuple(name for name in self.columns.names if name in kept)
        return names if len(names) < len(self.columns) else None

    def _wants_partial_rows(self) -> bool:
        """Whether merge mode and options allow log files that contain only the columns that are set."""
        options, mode = self.session.settings.options, self.snapshot.config.merge_mode
        # By event time only on request: versions of one log merge before they meet the base file, so a late version of
        # the log that loses to the base row still gives its values to a partial row.
        if mode is MergeMode.EVENT_TIME_ORDERING:
            return PARTIAL_UPDATES.read_given(options) is True
        return mode is MergeMode.COMMIT_TIME_ORDERING and PARTIAL_UPDATES.read(options)


@dataclass(frozen=True, slots=True)
class _PlacedChanges:
    """Changed rows, and the new rows of this process (``Placed``).

    ``partial``: the columns of log files of changed rows; None for all.
    """

    assignments: tuple[FileAssignment, ...]
    found: Changes
    routed: AssignedRecords
    partial: OutputSchema | None
    ordering: tuple[pa.DataType, ...]

    def write(self, tasks: Tasks) -> Sequence[TaskResult]:
        """As ``Placed.write``."""
        made = zip(tasks.iterate_tasks(self.assignments), self.assignments, strict=True)
        return self.found.write([self._make_work(task, each) for task, each in made])

    def _make_work(self, task: WriteTask, placement: FileAssignment) -> Work:
        also = next((each for each in self.routed.assignments if each.group == placement.group), None)
        changes = placement.group in self.found.groups
        if self.partial is not None and changes and isinstance(task, AppendTask):
            task = replace(task, partial=self.partial)
        return Work(
            task,
            len(placement),
            placement.inserts,
            changes,
            None if also is None else self.routed.get_records(also),
            None if also is None else self.routed.get_positions(also),
            self.ordering,
        )


def _needs_whole_rows(new: FileAssignment, found: Changes) -> bool:
    """Whether new rows go into a log file, or into a base file that is rewritten with the changed rows."""
    return new.file_slice is not None and (new.fill is Fill.NONE or new.group in found.groups)


def _find_marked(rows: pa.Table, *, config: Any, options: Mapping[str, str]) -> pa.ChunkedArray | None:
    return find_deletes(rows, rows, config, options, WriteOperation.UPSERT)


def _read_source(source: Any, columns: pa.Schema) -> pa.Table:
    rows = read_input(source, columns).read_all()
    check_names(rows.schema)
    return rows


def _join_assignments(found: Changes, routed: AssignedRecords) -> tuple[FileAssignment, ...]:
    """Return one assignment for each file group, for its changed rows, new rows or both."""
    new = {each.group: each for each in routed.assignments}
    placed = []
    for key, group in found.groups.items():
        also = new.pop(key, None)
        count = group.updates + group.deletes + (0 if also is None else len(also))
        more = (0, 0, 0) if also is None else (also.inserts, also.updates, also.deletes)
        counts = (more[0], group.updates + more[1], group.deletes + more[2])
        fill = Fill.NONE if also is None or also.fill is Fill.NONE else Fill.MERGE
        placed.append(FileAssignment(*key, group.file_slice, 0, count, *counts, fill=fill))
    return (*placed, *new.values())
