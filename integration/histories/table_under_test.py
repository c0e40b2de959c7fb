"""A table and its model side by side: each operation is done to the table, perhaps on a store that fails, and then both
are compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hoodie_py import (
    ConflictError,
    HoodieError,
    HoodieTable,
    Instant,
    InvalidQueryError,
    TableFiles,
    UnsupportedFeatureError,
)
from hoodie_py.table.snapshot import open_snapshot
from integration.histories.acting import COLUMNS, EXTRA, FLAG, Actor, without_extra
from integration.histories.findings import Counts, Difference, tell_apart
from integration.histories.model import Kind, Model
from integration.histories.operations import (
    Alter,
    Archive,
    Clean,
    Cluster,
    ClusterRun,
    DeletePartition,
    During,
    Event,
    FoldRun,
    Index,
    LogCompact,
    Merge,
    Operation,
    Restore,
    Run,
    RunClustering,
    Savepoint,
    ScheduleClustering,
    Unplan,
    Update,
)
from integration.histories.outcome import Outcome
from integration.histories.overlapping import BESIDE_OTHERS, Pause, open_paused
from integration.histories.past import Past, make_properties
from integration.histories.ranges import Moment, Way, choose, pick
from integration.histories.rules import COMMIT_TIME, Row
from integration.histories.streams import check_stream
from tests.writer import faulty_files
from tests.writer.faulty_files import FaultyFiles, Killed

_COMMIT = "_hoodie_commit_time"
_BY_KEY = (Update, Merge, ScheduleClustering, RunClustering, Cluster)
_WITH_PARTITION_STATS = 8  # the first table version that has them
_FILE_INDEXES = ("column_stats", "bloom_filters")
INDEXES = (*_FILE_INDEXES, "record_index")
"""Those that are built and dropped on the way."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What there was at a savepoint."""

    commit: str
    model: Model
    events: tuple[Event, ...]
    moments: tuple[Moment, ...]
    columns: tuple[str, ...]


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
        self._cleaned = self._archived = False
        self._wrote_partial = self._had_double_keys = False
        self._dropped = ""  # the newest commit that dropped a column
        self._saved: Saved | None = None
        self.actor = Actor(kind)
        self.merger, self.options = self.actor.merger, self.actor.options
        HoodieTable.create(
            uri,
            self.actor.schema,
            record_key="id",
            ordering="ts",
            partition_by=["part"] if kind.partitioned else (),
            table_type="MERGE_ON_READ" if kind.merge_on_read else "COPY_ON_WRITE",
            table_version=kind.version,
            merge_mode=kind.mode,
            properties=make_properties(kind),
            **self.merger,
        )
        if kind.indexed:
            # a global record index wants keys that are unique in the whole table
            more = () if kind.version < _WITH_PARTITION_STATS else ("partition_stats",)
            for name in (*_FILE_INDEXES, *(more if kind.partitioned else ("record_index",))):
                self.opened().index.build(name, options=self.options)
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
        if isinstance(operation, Restore):
            self._restore(fault)
            return
        if self._is_left_out(operation):
            return
        if isinstance(operation, Merge) and EXTRA not in self.opened().schema.names:  # merges add no columns
            operation = without_extra(operation)
        self.script.append((operation, fault))
        self.counts.steps += 1
        self.counts.operations[type(operation).__name__] += 1
        before = self.opened().timeline
        plan = faulty_files.Plan(None if fault is None else fault.at, "refuse" if fault is None else fault.what)
        error = self._attempt(operation, plan)
        reached = fault is not None and len(plan.trace) > fault.at
        if reached and fault is not None:
            self.counts.faults[fault.what] += 1
        table = self.opened()
        events = self._events(operation, list(before), list(table.timeline), error, reached=reached)
        self._land(events, list(before), list(table.timeline))
        if reached and error is not None:
            self.counts.cut_short += 1
            self.counts.landed += bool(events)
        if isinstance(operation, Clean):
            self._cleaned = True
        if isinstance(operation, Archive):
            self._archived = True
        if isinstance(operation, Savepoint):
            self._note_savepoint(table)
        if isinstance(operation, Update | Merge):
            self._wrote_partial = True
        if isinstance(operation, Alter) and operation.what == "drop" and events:
            self._dropped = self.moments[-1].request
        self.check(table)

    def _is_left_out(self, operation: Operation) -> bool:
        """Whether an operation does not go with the table as it is."""
        if isinstance(operation, _BY_KEY) and self.model.has_double_keys():
            return True  # either copy may be changed
        if isinstance(operation, LogCompact) and self._wrote_partial and self.kind.mode == COMMIT_TIME:
            return True  # which slices have partial rows the model does not know
        if isinstance(operation, Index):
            # a global record index wants keys that are unique in the whole table
            fits = operation.name in _FILE_INDEXES or not (self.kind.partitioned or self.model.has_double_keys())
            return not self.kind.indexed or not fits
        if isinstance(operation, DeletePartition) and not self.kind.partitioned:
            return True
        if isinstance(operation, Alter):
            has = EXTRA in self.opened().schema.names
            narrow = self.opened().schema.field("total").type == pa.int32()
            fits = {"add": not has, "drop": has}.get(operation.what, narrow)
            return not self.kind.grows or not self.moments or not fits
        return isinstance(operation, Savepoint) and not self._can_save()

    def _do_during(self, operation: During) -> None:
        """Do an operation while another is at work, and take the model along: the one in the middle ends first."""
        self.counts.steps += 1
        self.counts.operations["During"] += 1
        seen, before = self.model, list(self.opened().timeline)
        known = frozenset(each.request_time for each in before)
        pause = Pause(lambda: self._act(self.opened(), operation.other, BESIDE_OTHERS), known)
        error: HoodieError | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self._act(open_paused(self.uri, pause), operation.write, BESIDE_OTHERS)
            except HoodieError as failed:
                error = failed
        table = self.opened()
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
            commit = Outcome(self.model, self.opened(), self.counts).find_commit(event, before, after)
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
        self.actor.act(table, operation, "" if self._saved is None else self._saved.commit, more)

    def _events(
        self, operation: Operation, before: list[Instant], after: list[Instant], error: Any, *, reached: bool
    ) -> list[Event]:
        outcome = Outcome(self.model, self.opened(), self.counts)
        return outcome.find_events(operation, before, after, error, reached=reached)

    def _can_save(self) -> bool:
        """Whether the newest commit by request is the newest one to have ended, compactions aside."""
        writes = [each for each in self.moments if each.request not in self.model.compacted]
        return (
            not self._cleaned
            and bool(writes)
            and (
                max(writes, key=lambda each: each.request)
                == max(writes, key=lambda each: each.completion)
                == max(self.moments, key=lambda each: each.request)
            )
        )

    def _note_savepoint(self, table: HoodieTable) -> None:
        kept = [each.instant for each in table.savepoints()]
        if not kept:
            self._saved = None
        elif self._saved is None or self._saved.commit != kept[-1]:
            columns = tuple(table.schema.names)
            self._saved = Saved(kept[-1], self.model, tuple(self.events), tuple(self.moments), columns)

    def _restore(self, fault: Fault | None) -> None:
        """Go back to the savepoint, and take the model back; a restore that is cut short is finished."""
        saved = self._saved
        if saved is None:
            return
        self.script.append((Restore(), fault))
        self.counts.steps += 1
        self.counts.operations["Restore"] += 1
        plan = faulty_files.Plan(None if fault is None else fault.at, "refuse" if fault is None else fault.what)
        error = self._attempt(Restore(), plan)
        reached = fault is not None and len(plan.trace) > fault.at
        if error is not None and not reached:
            text = f"{type(error).__name__}: {error}"
            if not isinstance(error, UnsupportedFeatureError | ConflictError):
                raise Difference(f"the restore failed: {text}")
            self.counts.refusals[f"Restore: {type(error).__name__}"] += 1
            self.check(self.opened())
            return
        if error is not None:
            self.counts.faults[fault.what if fault else ""] += 1
            self.counts.cut_short += 1
            error = self._attempt(Restore(), faulty_files.Plan(None, "refuse"))
            if error is not None:
                raise Difference(f"the restore cannot be finished: {type(error).__name__}: {error}")
        table = self.opened()
        # a savepoint has the time of its commit
        there = {each.request_time: each for each in table.timeline if each.action != "savepoint"}
        self.model, self.events, self.moments = saved.model, list(saved.events), list(saved.moments)
        lost = [each.request for each in self.moments if each.request not in there and each.request >= _first(there)]
        if lost:
            raise Difference(f"the restore lost {lost}")
        events: list[Event] = []
        for name in [*saved.model.plans, *saved.model.more_plans.clusterings, *saved.model.more_plans.foldings]:
            if name not in there:
                events.append(Unplan(name))
            elif there[name].is_completed:
                kind = Run if name in saved.model.plans else ClusterRun
                events.append((FoldRun if name in saved.model.more_plans.foldings else kind)(name))
                done = there[name]
                self.moments.append(Moment(name, done.completion_time or name))
        for event in events:
            self.model = self.model.after(event, getattr(event, "name"))  # noqa: B009
        self.events += events
        known = {each.request for each in self.moments}
        stray = [
            each for each in there.values() if each.is_completed and each.is_write and each.request_time not in known
        ]
        if stray:
            raise Difference(f"the restore left {stray}")
        self.check(table)

    # Comparing -----------------------------------------------------------------------------------------------------

    def check(self, table: HoodieTable) -> None:
        """Compare the whole table with the model."""
        rows = self.model.rows_of({each.request for each in self.moments})
        if [row for row, _ in rows] != self.model.rows():
            raise Difference("the model contradicts itself")
        self._compare("a snapshot read", table, rows)
        self._compare("a read of base files", table, self.model.base_rows(), query_type="read_optimized")
        self._had_double_keys |= self.model.has_double_keys()
        if self.kind.indexed and not self._had_double_keys:
            self._check_filters(table, rows)

    def _check_filters(self, table: HoodieTable, rows: list[tuple[Row, str]]) -> None:
        """Read by filters, which ask the metadata table's indexes."""
        key = f"k{self.counts.steps % 4}"
        some = [each for each in rows if each[0].id == key]
        self._compare(f"a read of {key}", table, some, filter=f"id = '{key}'")
        least = self.counts.steps % 6
        some = [each for each in rows if each[0].ts >= least and each[0].name < "c"]
        self._compare("a read by a filter", table, some, filter=f"ts >= {least} and name < 'c'")

    def verify(self) -> None:
        """Check the metadata table."""
        may_look = self.kind.indexed and not self._had_double_keys
        if may_look and any(each.action == "clean" for each in self.opened().timeline.select_pending()):
            self.opened().clean(100, self.options)  # it learns what a clean removed once that is complete
        found = list(self.opened().verify(data=False).findings) if may_look else []
        if found:
            raise Difference(f"wrong in the metadata table: {list(map(str, found))}")

    def look_back(self, choice: int) -> None:
        """Read the table as it was at an earlier commit: as it would be with the commits requested until then.

        Left out where a compaction was planned after that, but before one of them completed: the slice that had its log
        files then is not the one that has them now.
        """
        if not self.moments:
            return
        chosen = self.moments[choice % len(self.moments)].request
        plans = {*self.model.plans, *self.model.rearranged, *self.model.more_plans.clusterings}
        if any(each.request <= chosen < plan < each.completion for each in self.moments for plan in plans):
            return
        rows = self.model.rows_of({each.request for each in self.moments if each.request <= chosen})
        self.counts.looks_back += 1
        try:
            self._compare(f"a read as of {chosen}", self.opened(), rows, as_of=chosen)
        except InvalidQueryError:
            pending = [each.request_time for each in self.opened().timeline.select_pending() if each.is_write]
            if not self._cleaned and all(each > chosen for each in pending):
                raise

    def look_at_range(self, first: int, last: int, way: Way) -> None:
        """Read what changed between two times, which need not be those of commits."""
        start, end = pick(self.moments, first, last)
        past, table = self.past(), self.opened()
        past.check_range(table, start, end, way)
        past.check_changes(table, start, end, way)

    def look_at_ranges(self, most: int) -> None:
        """Read what every single commit changed, and what other ranges of commits did: at most so many in all."""
        past, table = self.past(), self.opened()
        for number, (start, end) in enumerate(choose(past.times(), most)):
            past.check_range(table, start, end, Way.number(number))
            past.check_changes(table, start, end, Way.number(number))
        check_stream(past, table, 1 + len(self.moments) % 3)

    def past(self) -> Past:
        return Past(
            self.kind, self.model, self.moments, self.merger, self.counts, self._cleaned, self._archived, self.uri
        )

    def _compare(self, what: str, table: HoodieTable, want: list[tuple[Row, str]], **scan: Any) -> None:
        self.counts.reads += 1
        meta = [] if self.kind.virtual else [_COMMIT]
        as_of = scan.get("as_of")
        has_extra = EXTRA in table.schema.names
        columns_read = None if as_of else [*COLUMNS, *([EXTRA] if has_extra else []), FLAG, *meta]
        found = table.scan(columns=columns_read, **self.merger, **scan).to_arrow()
        if EXTRA not in found.schema.names or (as_of and as_of <= self._dropped):
            found = found.drop_columns([name for name in (EXTRA,) if name in found.schema.names])
            found = found.append_column(EXTRA, pa.nulls(len(found), pa.int32()))
            want = [(replace(row, extra=-1), commit) for row, commit in want] if as_of else want
        if pc.any(found.column(FLAG)).as_py():
            raise Difference(f"{what} gives rows that are marked as deleted")
        found = found.set_column(found.schema.get_field_index(EXTRA), EXTRA, pc.fill_null(found.column(EXTRA), -1))
        columns = (found.column(name).to_pylist() for name in (*COLUMNS, EXTRA))
        rows = list(map(Row, *columns))
        if self.kind.virtual:
            tell_apart(what, sorted(rows), sorted(row for row, _ in want))
        else:
            tell_apart(what, sorted(zip(rows, found.column(_COMMIT).to_pylist(), strict=True)), want)

    def opened(self) -> HoodieTable:
        return HoodieTable.open(self.uri)


def _first(there: Mapping[str, Instant]) -> str:
    return min((each.request_time for each in there.values() if each.is_completed and each.is_write), default="")
