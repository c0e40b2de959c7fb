"""Random histories: a hypothesis state machine that draws a kind of table and operations on it."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field

import hypothesis.strategies as st
from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from integration.histories.acting import without_extra
from integration.histories.findings import Counts
from integration.histories.model import Kind
from integration.histories.moved import Moved, moved
from integration.histories.operations import (
    Alter,
    Archive,
    Change,
    Clean,
    Cluster,
    Compact,
    DeleteKeys,
    DeletePartition,
    DeleteRows,
    DeleteWhere,
    During,
    Index,
    Insert,
    LogCompact,
    Merge,
    Operation,
    Overwrite,
    Restore,
    Rollback,
    RunClustering,
    RunPlan,
    Savepoint,
    Schedule,
    ScheduleClustering,
    Update,
    Upsert,
)
from integration.histories.ranges import BATCH_ROWS, CHANGE_DATA, COLUMNS, FALLBACKS, FILTERS, Way
from integration.histories.rules import COMMIT_TIME, CUSTOM, EVENT_TIME, Row
from integration.histories.table_under_test import INDEXES, Fault, TableUnderTest

FAULTS = ("kill before", "kill after", "refuse", "lose answer")
LONGEST_TRACE = 70

_KINDS = [
    Kind(version, merge_on_read, mode, wide, buckets, partitioned, change_data, virtual, *more)
    for version, merge_on_read, mode, wide, buckets, partitioned, change_data, virtual, more in itertools.product(
        (9, 8, 6), (True, True, True, False), (EVENT_TIME, EVENT_TIME, CUSTOM, COMMIT_TIME), (False, True),
        (0, 0, 2), (True, False), ("", "", "", *CHANGE_DATA), (False, False, True),
        ((False, False), (True, False), (False, True)),  # grows, indexed
    )
    if not (more[1] and virtual)
]  # fmt: skip
_IDS = st.sampled_from([f"k{number}" for number in range(4)])
_PARTS = st.sampled_from(["p0", "p1"])
_TS = st.integers(0, 5)
_EXTRA = st.sampled_from([-1, -1, -1, 0, 1])
_ROWS = st.builds(Row, _IDS, _PARTS, _TS, st.integers(0, 9), st.sampled_from("abcde"), _EXTRA)
_CHANGES = st.builds(Change, _ROWS, st.sampled_from([False, False, False, True]))
_SOME = st.lists(_CHANGES, min_size=1, max_size=6).map(tuple)
_ONE_IN_THREE = st.sampled_from([False, False, True])
_DISTINCT = st.lists(_CHANGES, min_size=1, max_size=4, unique_by=lambda each: each.row.id).map(tuple)
_ONE = _CHANGES.map(lambda each: (each,))
_PLANS = st.sampled_from([Schedule(), RunPlan(), Compact()])
_LAYOUTS = st.sampled_from([ScheduleClustering(), RunClustering(), Cluster(), Cluster(), LogCompact(), LogCompact()])
_ALTERATIONS = st.sampled_from([Alter("add"), Alter("drop"), Alter("widen")])
_KEPT = st.sampled_from([Savepoint(), Savepoint(), Restore()])
_INDEXES = st.sampled_from([Index(name) for name in INDEXES])
_ONE_WRITE = st.one_of(st.builds(Upsert, _ONE), st.builds(Upsert, _SOME), _IDS.map(lambda each: DeleteKeys((each,))))
_ANY = st.integers(0, 200)
_WAYS = st.builds(
    Way,
    st.integers(0, len(COLUMNS) - 1),
    st.integers(0, len(FILTERS) - 1),
    st.integers(0, len(BATCH_ROWS) - 1),
    st.integers(0, len(FALLBACKS) - 1),
)
_FAULT = st.one_of(
    *[st.none()] * 5,
    st.builds(Fault, st.integers(0, LONGEST_TRACE), st.sampled_from(FAULTS)),
)


@dataclass
class Findings:
    """What a run came to: what it has seen, what moving compactions did, and what went wrong."""

    counts: Counts = field(default_factory=Counts)
    moved: list[Moved] = field(default_factory=list)

    @property
    def histories_with_other_answers(self) -> int:
        """Histories whose rows would be others, had one of their compactions come at another time."""
        return sum(each.other_answers > 0 for each in self.moved)

    @property
    def histories_with_forgotten_deletes(self) -> int:
        """Those where that is because a delete without ordering value was forgotten."""
        return sum(each.forgotten > 0 for each in self.moved)


class Histories(RuleBasedStateMachine):
    """One history; ``of`` makes the class of a run."""

    findings: Findings
    base: str
    kinds: Sequence[Kind] = _KINDS
    ranges: int = 25
    numbers = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self.table: TableUnderTest | None = None

    @initialize(data=st.data())
    def create(self, data: st.DataObject) -> None:
        kind = data.draw(st.sampled_from(list(self.kinds)))
        self.uri = f"{self.base}/h{next(self.numbers)}"
        self.table = TableUnderTest(self.uri, kind, self.findings.counts)

    def _do(self, operation: Operation, fault: Fault | None) -> None:
        assert self.table is not None
        self.table.do(operation if self.table.kind.grows else without_extra(operation), fault)

    @rule(changes=_SOME, fault=_FAULT)
    def upsert(self, changes: tuple[Change, ...], fault: Fault | None) -> None:
        self._do(Upsert(changes), fault)

    @rule(changes=_SOME, fault=_FAULT)
    def upsert_too(self, changes: tuple[Change, ...], fault: Fault | None) -> None:
        self._do(Upsert(changes), fault)

    @rule(changes=_DISTINCT, bulk=st.booleans(), fault=_FAULT)
    def insert(self, changes: tuple[Change, ...], bulk: bool, fault: Fault | None) -> None:
        assert self.table is not None
        kind, alive = self.table.kind, self.table.model.alive()
        # A bulk insert stores rows that are flagged as deleted, and shows them: the model has no such rows.
        wanted = [each for each in changes if not (bulk and each.deletes)]
        new = tuple(each for each in wanted if (kind.path(each.row.part), each.row.id) not in alive)
        self._do(Insert(new, bulk) if new else Upsert(changes), fault)

    @rule(changes=_DISTINCT, whole=_ONE_IN_THREE, overwrites=_ONE_IN_THREE, fault=_FAULT)
    def overwrite(self, changes: tuple[Change, ...], whole: bool, overwrites: bool, fault: Fault | None) -> None:
        self._do(Overwrite(changes, whole) if overwrites else Upsert(changes), fault)

    @rule(ids=st.lists(_IDS, min_size=1, max_size=3, unique=True).map(tuple), fault=_FAULT)
    def delete_keys(self, ids: tuple[str, ...], fault: Fault | None) -> None:
        self._do(DeleteKeys(ids), fault)

    @rule(
        rows=st.lists(st.tuples(_IDS, _PARTS, _TS), min_size=1, max_size=3, unique_by=lambda each: each[0]).map(tuple),
        fault=_FAULT,
    )
    def delete_rows(self, rows: tuple[tuple[str, str, int], ...], fault: Fault | None) -> None:
        self._do(DeleteRows(rows), fault)

    @rule(most=st.integers(0, 3), fault=_FAULT)
    def delete_where(self, most: int, fault: Fault | None) -> None:
        self._do(DeleteWhere(most), fault)

    @rule(operation=_PLANS, fault=_FAULT)
    def compaction(self, operation: Operation, fault: Fault | None) -> None:
        self._do(operation, fault)

    @rule(operation=_PLANS, fault=_FAULT)
    def compaction_too(self, operation: Operation, fault: Fault | None) -> None:
        self._do(operation, fault)

    @rule(operation=_LAYOUTS, fault=_FAULT)
    def layout(self, operation: Operation, fault: Fault | None) -> None:
        self._do(operation, fault)

    @rule(changes=_DISTINCT, least=_TS, merges=st.booleans(), fault=_FAULT)
    def change(self, changes: tuple[Change, ...], least: int, merges: bool, fault: Fault | None) -> None:
        rows = tuple(each for each in changes if not each.deletes)
        self._do(Merge(rows) if merges and rows else Update(least), fault)

    @rule(part=_PARTS, deletes=_ONE_IN_THREE, changes=_SOME, fault=_FAULT)
    def delete_partition(self, part: str, deletes: bool, changes: tuple[Change, ...], fault: Fault | None) -> None:
        self._do(DeletePartition(part) if deletes else Upsert(changes), fault)

    @rule(operation=_ALTERATIONS, fault=_FAULT)
    def alter(self, operation: Operation, fault: Fault | None) -> None:
        self._do(operation, fault)

    @rule(operation=_KEPT, fault=_FAULT)
    def keep(self, operation: Operation, fault: Fault | None) -> None:
        self._do(operation, fault)

    @rule(operation=_INDEXES, fault=_FAULT)
    def index(self, operation: Operation, fault: Fault | None) -> None:
        self._do(operation, fault)

    @rule(keep=st.integers(1, 4), fault=_FAULT)
    def archive(self, keep: int, fault: Fault | None) -> None:
        self._do(Archive(keep), fault)

    @rule(retain=st.integers(1, 3), by_versions=st.booleans(), fault=_FAULT)
    def clean(self, retain: int, by_versions: bool, fault: Fault | None) -> None:
        self._do(Clean(retain, by_versions), fault)

    @rule(fault=_FAULT)
    def rollback(self, fault: Fault | None) -> None:
        self._do(Rollback(), fault)

    @rule(write=_ONE_WRITE, other=st.one_of(_ONE_WRITE, _PLANS, st.builds(Overwrite, _ONE)))
    def during(self, write: Upsert | DeleteKeys, other: Upsert | DeleteKeys | Schedule | RunPlan | Compact) -> None:
        self._do(During(without_extra(write), without_extra(other)), None)

    @rule(choice=_ANY)
    def look_back(self, choice: int) -> None:
        assert self.table is not None
        self.table.look_back(choice)

    @rule(first=_ANY, last=_ANY, way=_WAYS)
    def look_at_range(self, first: int, last: int, way: Way) -> None:
        assert self.table is not None
        self.table.look_at_range(first, last, way)

    def teardown(self) -> None:
        if self.table is not None:
            try:
                self.table.verify()
                self.table.look_at_ranges(self.ranges)
            finally:
                self.findings.moved.append(moved(self.table.kind, self.table.events))
                shutil.rmtree(self.uri, ignore_errors=True)


def run(
    base: str,
    findings: Findings,
    *,
    histories: int,
    steps: int,
    seed_: int,
    kinds: Sequence[Kind] = _KINDS,
    ranges: int = 25,
    shrink: bool = True,
) -> None:
    """Draw histories and compare each table with its model after every step.

    Args:
        base: folder for the tables.
        findings: are added to.
        histories: how many.
        steps: of each, at most.
        seed_: of the draw.
        kinds: of tables.
        ranges: most of a history that are read once it has ended.
        shrink: whether to look for a shorter history once one has failed.

    Raises:
        Difference: a table was not what its model says; hypothesis prints the history.
    """
    chosen = {"findings": findings, "base": base, "kinds": list(kinds), "ranges": ranges}
    machine = seed(seed_)(type("RandomHistories", (Histories,), chosen))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=histories,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            print_blob=False,
            report_multiple_bugs=False,
            verbosity=Verbosity.normal,
            phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
