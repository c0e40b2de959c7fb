"""A table and its model side by side: each operation is done to the table, perhaps on a store that fails, and then both
are compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py import (
    CommitStateUnknownError,
    ConflictError,
    HoodieError,
    HoodieTable,
    Instant,
    InvalidQueryError,
    InvalidTableError,
    TableFiles,
)
from hoodie_py.table.snapshot import open_snapshot
from integration.histories.expected import COMMITS, expect, find_first_pending, has_failed_writes
from integration.histories.findings import Counts, Difference, tell_apart
from integration.histories.mergers import Weighted
from integration.histories.model import Kind, Model
from integration.histories.operations import (
    Change,
    Clean,
    Compact,
    DeleteKeys,
    DeleteRows,
    DeleteWhere,
    During,
    Event,
    Insert,
    Operation,
    Overwrite,
    Plan,
    Rollback,
    Run,
    RunPlan,
    Schedule,
    Unplan,
    Upsert,
)
from integration.histories.overlapping import BESIDE_OTHERS, Pause, open_paused
from integration.histories.past import Past, make_properties
from integration.histories.ranges import Moment, Way, choose, pick
from integration.histories.rules import CUSTOM, Row
from tests.writer import faulty_files
from tests.writer.faulty_files import FaultyFiles, Killed

FLAG = "_hoodie_is_deleted"
_COLUMNS = ("id", "part", "ts", "total", "name")
_COMMIT = "_hoodie_commit_time"
_WRITES = (Upsert, Insert, Overwrite, DeleteKeys, DeleteRows, DeleteWhere)


@dataclass(frozen=True, slots=True)
class Fault:
    """The call of an operation that goes wrong, counted from 0, and how."""

    at: int
    what: str


class TableUnderTest:
    """A new table, and its model.

    Args:
        uri: where.
        kind: of the table.
        counts: are added to.
    """

    def __init__(self, uri: str, kind: Kind, counts: Counts) -> None:
        self.uri, self.kind, self.counts = uri, kind, counts
        self.model = Model(kind)
        self.events: list[Event] = []
        self.script: list[tuple[Operation, Fault | None]] = []
        self.moments: list[Moment] = []
        self._cleaned = False
        self.schema = pa.schema(
            [
                ("id", pa.string()), ("part", pa.string()), ("ts", pa.int64() if kind.wide else pa.int32()),
                ("total", pa.int32()), ("name", pa.string()), (FLAG, pa.bool_()),
            ]
        )  # fmt: skip
        self.merger: dict[str, Any] = {"merger": Weighted} if kind.mode == CUSTOM else {}
        self.options = {"hoodie.time.generator.max_expected_clock_skew_ms": "0"}
        if kind.buckets:
            self.options |= {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": str(kind.buckets)}
        HoodieTable.create(
            uri,
            self.schema,
            record_key="id",
            ordering="ts",
            partition_by=["part"] if kind.partitioned else (),
            table_type="MERGE_ON_READ" if kind.merge_on_read else "COPY_ON_WRITE",
            table_version=kind.version,
            merge_mode=kind.mode,
            properties=make_properties(kind),
            **self.merger,
        )
        counts.histories += 1
        counts.kinds[str(kind)] += 1

    # What is done --------------------------------------------------------------------------------------------------

    def do(self, operation: Operation, fault: Fault | None = None) -> None:
        """Do an operation to the table and take the model along.

        Raises:
            Difference: what came of it is not what the model says.
        """
        if isinstance(operation, During):
            self._do_during(operation)
            return
        self.script.append((operation, fault))
        self.counts.steps += 1
        self.counts.operations[type(operation).__name__] += 1
        before = self._opened().timeline
        plan = faulty_files.Plan(None if fault is None else fault.at, "refuse" if fault is None else fault.what)
        error = self._attempt(operation, plan)
        reached = fault is not None and len(plan.trace) > fault.at
        if reached and fault is not None:
            self.counts.faults[fault.what] += 1
        table = self._opened()
        events = self._events(operation, list(before), list(table.timeline), error, reached=reached)
        self._land(events, list(before), list(table.timeline))
        if reached and error is not None:
            self.counts.cut_short += 1
            self.counts.landed += bool(events)
        if isinstance(operation, Clean):
            self._cleaned = True
        self.check(table)

    def _do_during(self, operation: During) -> None:
        """Do an operation while another is at work, and take the model along: the one in the middle ends first."""
        self.counts.steps += 1
        self.counts.operations["During"] += 1
        seen, before = self.model, list(self._opened().timeline)
        known = frozenset(each.request_time for each in before)
        pause = Pause(lambda: self._act(self._opened(), operation.other, BESIDE_OTHERS), known)
        error: HoodieError | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self._act(open_paused(self.uri, pause), operation.write, BESIDE_OTHERS)
            except HoodieError as failed:
                error = failed
        table = self._opened()
        after, begun = list(table.timeline), pause.begun
        landed: list[Event] = []
        if pause.timeline is not None:
            others = [each for each in after if each.request_time != begun]
            landed = self._events(operation.other, pause.timeline, others, pause.error, reached=False)
            self._land(landed, before, others)
            self.counts.overlaps["in the middle"] += bool(landed)
        if isinstance(error, ConflictError) and landed:
            self.counts.overlaps["in conflict"] += 1
        else:
            ours = [each for each in after if each.request_time == begun] if pause.timeline is not None else after
            events = self._events(operation.write, before, ours, error, reached=False)
            self._land(events, before, ours, seen)
            self.counts.overlaps["around it"] += bool(events and landed)
        self.check(table)

    def _land(
        self, events: list[Event], before: list[Instant], after: list[Instant], seen: Model | None = None
    ) -> None:
        """Take the model along."""
        for event in events:
            commit = self._commit_of(event, before, after)
            self.model = self.model.after(event, None if commit is None else commit.request_time, seen)
            if commit is not None:
                self.moments.append(Moment(commit.request_time, commit.completion_time or commit.request_time))
        self.events += events

    def _attempt(self, operation: Operation, plan: faulty_files.Plan) -> BaseException | None:
        """Do it, and return how it failed."""
        files = TableFiles.open(self.uri)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                table = HoodieTable(open_snapshot(FaultyFiles(files, plan) if plan.at is not None else files))
                self._act(table, operation)
        except (HoodieError, Killed) as error:
            return error
        return None

    def _act(self, table: HoodieTable, operation: Operation, more: Mapping[str, str] | None = None) -> None:
        options, merger = {**self.options, **(more or {})}, self.merger
        match operation:
            case Upsert(changes):
                table.upsert(self._rows(changes), options, **merger)
            case Insert(changes, bulk):
                (table.bulk_insert if bulk else table.insert)(self._rows(changes), options, **merger)
            case Overwrite(changes, whole):
                write = table.insert_overwrite_table if whole else table.insert_overwrite
                write(self._rows(changes), options, **merger)
            case DeleteKeys(ids):
                table.delete(list(ids), options, **merger)
            case DeleteRows(rows):
                keys = [dict(zip(_COLUMNS, row, strict=False)) for row in rows]
                schema = pa.schema([self.schema.field(name) for name in _COLUMNS[:3]])
                table.delete(pa.Table.from_pylist(keys, schema), options, **merger)
            case DeleteWhere(most):
                table.delete(f"ts <= {most} and total % 2 = 0", options, **merger)
            case Schedule():
                table.schedule_compaction(options=options)
            case RunPlan():
                table.run_compaction(None, None, options, **merger)
            case Compact():
                table.compact(options=options, **merger)
            case Clean(retain):
                table.clean(retain, options)
            case Rollback():
                table.rollback(find_first_pending(table.timeline).request_time, options)

    def _rows(self, changes: Sequence[Change]) -> pa.Table:
        rows = [{**{name: getattr(each.row, name) for name in _COLUMNS}, FLAG: each.deletes} for each in changes]
        return pa.Table.from_pylist(rows, self.schema)

    # What came of it -----------------------------------------------------------------------------------------------

    def _events(
        self,
        operation: Operation,
        before: list[Instant],
        after: list[Instant],
        error: BaseException | None,
        *,
        reached: bool,
    ) -> list[Event]:
        """Tell from the timeline what has happened, and check that it is what should have."""
        new = {each.request_time for each in after if each.is_completed} - _completed(before)
        error_text = "" if error is None else f"{type(error).__name__}: {error}"
        if isinstance(operation, _WRITES):
            landed = [each for each in after if each.request_time in new]
            may = (
                (ConflictError,) if has_failed_writes(before) else ()
            )  # whether its writer is at work may be uncertain
            return self._of_write(operation, landed, error, may, reached=reached)
        events = self._of_plans(after, new)
        if reached and error is not None:
            return events
        expected = expect(self.model, operation, before)
        done = {type(event) for event in events}
        if error is not None:
            if not isinstance(error, expected.errors):
                raise Difference(f"{operation} failed: {error_text}")
            self.counts.refusals[f"{type(operation).__name__}: {type(error).__name__}"] += 1
        elif done != expected.events:
            raise Difference(f"{operation} came to {done}, not to {expected.events}")
        return events

    def _of_write(
        self,
        operation: Any,
        new: list[Instant],
        error: BaseException | None,
        may: tuple[type[HoodieError], ...],
        *,
        reached: bool,
    ) -> list[Event]:
        writes = [each for each in new if each.action in COMMITS]
        if len(writes) > 1:
            raise Difference(f"{operation} made {len(writes)} commits")
        if error is None:
            changed = self.model.after(operation)
            if not writes and changed.rows() != self.model.rows():
                raise Difference(f"{operation} returned and committed nothing")
            return [operation] if writes else []
        if not reached:
            double = isinstance(error, InvalidTableError) and self.model.has_double_keys()
            planned = isinstance(error, ConflictError) and self.model.replaces_planned(operation)
            if not double and not planned and not isinstance(error, may):
                raise Difference(f"{operation} failed: {type(error).__name__}: {error}")
            self.counts.refusals[f"{type(operation).__name__}: {type(error).__name__}"] += 1
        if writes and isinstance(error, HoodieError) and not isinstance(error, CommitStateUnknownError):
            raise Difference(f"{operation} failed with {type(error).__name__}: {error}, and is committed")
        return [operation] if writes else []

    def _commit_of(self, event: Event, before: list[Instant], after: list[Instant]) -> Instant | None:
        """Return the instant of an event; plans have none that is completed."""
        if isinstance(event, Plan | Unplan):
            return None
        new = [each for each in after if each.is_completed and each.request_time not in _completed(before)]
        plans = {*self.model.plans}
        for each in new:
            is_run = each.request_time in plans
            if is_run if isinstance(event, Run) else not is_run and each.action in COMMITS:
                return each
        raise Difference(f"{event} has no instant")

    def _of_plans(self, after: list[Instant], new: set[str]) -> list[Event]:
        """Return what the timeline says of plans: made, carried out, taken back."""
        if not self.kind.merge_on_read:
            return []
        pending = {each.request_time for each in after if each.action == "compaction" and not each.is_completed}
        compacted = {each.request_time for each in after if each.is_completed and each.action == "commit"}
        known = set(self.model.plans)
        made = sorted((pending | (compacted & new)) - known)
        events: list[Event] = [Plan(name) for name in made]
        for name in [*self.model.plans, *made]:
            if name in compacted:
                events.append(Run(name))
            elif name not in pending:
                events.append(Unplan(name))
        return events

    # Comparing -----------------------------------------------------------------------------------------------------

    def check(self, table: HoodieTable) -> None:
        """Compare the whole table with the model."""
        rows = self.model.rows_of({each.request for each in self.moments})
        if [row for row, _ in rows] != self.model.rows():
            raise Difference("the model contradicts itself")
        self._compare("a snapshot read", table, rows)
        self._compare("a read of base files", table, self.model.base_rows(), query_type="read_optimized")

    def look_back(self, choice: int) -> None:
        """Read the table as it was at an earlier commit: as it would be with the commits requested until then.

        Left out where a compaction was planned after that, but before one of them completed: the slice that had its log
        files then is not the one that has them now.
        """
        if not self.moments:
            return
        chosen = self.moments[choice % len(self.moments)].request
        plans = {*self.model.plans, *self.model.compacted}
        if any(each.request <= chosen < plan < each.completion for each in self.moments for plan in plans):
            return
        rows = self.model.rows_of({each.request for each in self.moments if each.request <= chosen})
        self.counts.looks_back += 1
        try:
            self._compare(f"a read as of {chosen}", self._opened(), rows, as_of=chosen)
        except InvalidQueryError:
            if not self._cleaned:
                raise

    def look_at_range(self, first: int, last: int, way: Way) -> None:
        """Read what changed between two times, which need not be those of commits."""
        start, end = pick(self.moments, first, last)
        past, table = self._past(), self._opened()
        past.check_range(table, start, end, way)
        past.check_changes(table, start, end, way)

    def look_at_ranges(self, most: int) -> None:
        """Read what every single commit changed, and what other ranges of commits did: at most so many in all."""
        past, table = self._past(), self._opened()
        for number, (start, end) in enumerate(choose(past.times(), most)):
            past.check_range(table, start, end, Way.number(number))
            past.check_changes(table, start, end, Way.number(number))

    def _past(self) -> Past:
        return Past(self.kind, self.model, self.moments, self.merger, self.counts, self._cleaned, self.uri)

    def _compare(self, what: str, table: HoodieTable, want: list[tuple[Row, str]], **scan: Any) -> None:
        self.counts.reads += 1
        meta = [] if self.kind.virtual else [_COMMIT]
        found = table.scan(columns=[*_COLUMNS, FLAG, *meta], **self.merger, **scan).to_arrow()
        if pc.any(found.column(FLAG)).as_py():
            raise Difference(f"{what} gives rows that are marked as deleted")
        columns = (found.column(name).to_pylist() for name in _COLUMNS)
        rows = list(map(Row, *columns))
        if self.kind.virtual:
            tell_apart(what, sorted(rows), sorted(row for row, _ in want))
        else:
            tell_apart(what, sorted(zip(rows, found.column(_COMMIT).to_pylist(), strict=True)), want)

    def _opened(self) -> HoodieTable:
        return HoodieTable.open(self.uri)


def _completed(timeline: list[Instant]) -> set[str]:
    return {each.request_time for each in timeline if each.is_completed}
