"""Ranges of commits: what the model says of them, and that wrong answers of a table are noticed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hoodie_py.table.incremental import commit_range, query, touched_slices
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import Visibility
from integration.histories.findings import Counts, Difference
from integration.histories.model import Kind, Model, replayed
from integration.histories.operations import (
    Change,
    Clean,
    Compact,
    DeleteKeys,
    During,
    Event,
    Insert,
    Operation,
    Overwrite,
    Plan,
    Run,
    RunPlan,
    Schedule,
    Upsert,
)
from integration.histories.ranges import FROM_THE_BEGINNING, Moment, Way, choose, edges, find_compared, is_in, pick
from integration.histories.rules import COMMIT_TIME, CUSTOM, EVENT_TIME, Row
from integration.histories.table_under_test import TableUnderTest

EVENT = Kind(9, merge_on_read=True, mode=EVENT_TIME)
COW = replace(EVENT, merge_on_read=False)
SIX = replace(EVENT, version=6)


def put(key: str, ts: int, name: str, *, deletes: bool = False, total: int = 1) -> Upsert:
    return Upsert((Change(Row(key, "p0", ts, total, name), deletes),))


def at(number: int) -> str:
    """Return the name of the commit of a model's n-th event."""
    return f"{number:017d}"


def changed(kind: Kind, events: Sequence[Event], *numbers: int) -> dict[str, str]:
    """Return the names by key that an incremental read of these commits gives."""
    found = replayed(kind, events).changed_in([at(number) for number in numbers])
    assert all(commit in map(at, numbers) for _, commit in found)
    return {row.id: row.name for row, _ in found}


OLD, NEW, LATE, OTHER = put("k1", 1, "old"), put("k1", 5, "new"), put("k1", 3, "late"), put("k2", 1, "other")
COMPACTION = (Plan(at(3)), Run(at(3)))

# The model ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [EVENT, SIX])
def test_an_update_that_loses_outside_the_range_is_in_it(kind: Kind) -> None:
    events = [NEW, LATE]
    assert changed(kind, events, 0, 1) == {"k1": "new"}
    assert changed(kind, events, 1) == {"k1": "late"}


def test_a_copy_on_write_table_keeps_the_row_that_won_and_its_commit() -> None:
    assert changed(COW, [NEW, LATE], 1) == {}
    assert changed(COW, [NEW, LATE], 0) == changed(COW, [NEW, LATE], 0, 1) == {"k1": "new"}


def test_log_files_of_the_range_merge() -> None:
    assert changed(EVENT, [OLD, NEW, LATE], 1, 2) == {"k1": "new"}
    assert changed(EVENT, [OLD, NEW, LATE], 2) == {"k1": "late"}


def test_a_deleted_key_is_not_in_the_range() -> None:
    events = [OLD, OTHER, DeleteKeys(("k1",))]
    assert changed(EVENT, events, 0, 1) == {"k1": "old", "k2": "other"}
    assert changed(EVENT, events, 0, 1, 2) == {"k2": "other"}
    assert changed(EVENT, events, 2) == changed(COW, events, 2) == {}


def test_a_compaction_keeps_the_commits_of_its_rows() -> None:
    events = [OLD, NEW, OTHER, *COMPACTION]
    assert changed(EVENT, events, 3) == {}
    assert changed(EVENT, events, 1, 3) == {"k1": "new"}
    assert changed(EVENT, events, 0, 3) == {}, "the base file of the compaction has only the newer row"
    assert changed(EVENT, events, 0) == {"k1": "old"}


def test_base_rows_of_other_commits_do_not_take_part() -> None:
    events = [NEW, OTHER, put("k2", 2, "again"), *COMPACTION, LATE]
    assert replayed(EVENT, events).rows()[0].name == "new"
    assert changed(EVENT, events, 3, 5) == {"k1": "late"}
    assert changed(EVENT, [NEW, LATE, OTHER, *COMPACTION, LATE], 1, 3, 5) == {"k1": "late"}


def test_a_log_file_that_a_compaction_took_is_not_read_again() -> None:
    events = [OLD, NEW, DeleteKeys(("k1",)), Plan(at(3)), put("k1", 0, "late"), Run(at(3))]
    assert changed(EVENT, events, 1, 3, 4) == {"k1": "late"}
    assert changed(EVENT, events, 1, 4) == {"k1": "new"}, "without the compaction both log files merge"
    assert changed(EVENT, events, 1, 2, 4) == {"k1": "late"}, "a delete without ordering value is forgotten"


def test_replaced_file_groups_are_gone_from_the_commit_on_that_replaced_them() -> None:
    events = [OLD, NEW, Overwrite(OTHER.changes), put("k2", 2, "again")]
    assert changed(EVENT, events, 0, 1) == {"k1": "new"}
    assert changed(EVENT, events, 1, 2) == changed(EVENT, events, 0, 1, 2) == {"k2": "other"}
    assert changed(EVENT, events, 1, 3) == {"k2": "again"}


def test_the_rows_of_all_commits_are_those_of_the_table() -> None:
    kind = replace(EVENT, mode=CUSTOM)
    events = [NEW, put("k1", 1, "heavy", total=3), put("k1", 2, "light", total=0), OTHER, Plan("9"), Run("9")]
    model = replayed(kind, events)
    assert [row for row, _ in model.rows_of([*map(at, range(4)), "9"])] == model.rows()
    assert model.changed_in([at(1)], files_of=[at(0), at(1)]) == [(Row("k1", "p0", 1, 3, "heavy"), at(1))]


def test_a_merger_that_keeps_the_older_row_makes_a_new_one_on_copy_on_write() -> None:
    heavy, light = put("k1", 1, "h", total=3), put("k1", 2, "l", total=0)
    assert changed(replace(COW, mode=CUSTOM), [heavy, light], 1) == {"k1": "hl"}
    assert changed(replace(EVENT, mode=CUSTOM), [heavy, light], 1) == {"k1": "l"}


# Which commits a range has -----------------------------------------------------------------------------------------


def test_a_range_begins_after_its_start_and_has_its_end() -> None:
    moment = Moment("20260101000000000", "20260101000000500")
    assert is_in(moment, "20260101000000000", "20260101000000500", by_request=False)
    assert not is_in(moment, "20260101000000000", None, by_request=True)
    assert is_in(moment, "earliest", "20260101000000000", by_request=True)
    assert not is_in(moment, "earliest", "20260101000000499", by_request=False)
    assert edges([moment])[0] == "20251231235959999"
    assert len(edges([moment])) == 4


def test_the_request_time_of_a_commit_means_that_commit() -> None:
    first = Moment("20260101000000000", "20260101000000500")
    second = Moment("20260101000000500", "20260101000000900")
    assert find_compared([first], first.request) == first.completion
    assert find_compared([first, second], second.request) == first.completion
    assert find_compared([first], "000") == "000"


def test_numbers_choose_every_range() -> None:
    moments = [Moment(f"2026010100000{n}000", f"2026010100000{n}500") for n in range(2)]
    found = {pick(moments, first, last) for first in range(40) for last in range(40)}
    assert all(end is None or start == "earliest" or start <= end for start, end in found)
    assert {start for start, _ in found} == {*FROM_THE_BEGINNING, *edges(moments)}
    assert choose(["1", "2", "3"], 3) == [("000", "1"), ("1", "2"), ("2", "3")]
    assert len(choose(["1", "2", "3"], 9)) == 6
    assert {len({getattr(Way.number(n), name) for n in range(60)}) for name in ("columns", "rows")} == {5}


# What is noticed ---------------------------------------------------------------------------------------------------

HISTORY: tuple[Operation, ...] = (
    NEW, LATE, OTHER, put("k1", 6, "more"), DeleteKeys(("k2",)), Compact(), put("k1", 4, "again"), Schedule(),
    put("k1", 9, "most"), RunPlan(), Insert((Change(Row("k3", "p1", 1, 1, "c")),)),
    Overwrite(put("k4", 1, "only").changes), put("k4", 0, "before"),
)  # fmt: skip
"""Every range of it is right; each of the faults below makes one wrong."""


def look(
    base: Path, kind: Kind, operations: Sequence[Operation] = HISTORY, *, other_times: bool = True
) -> TableUnderTest:
    """Do operations to a new table and look at every range of commits, and at ranges of other times."""
    table = TableUnderTest(str(base), kind, Counts())
    for each in operations:
        table.do(each)
    table.look_at_ranges(1000)
    for first in range(0, 60 * other_times, 4):
        for last in range(0, 60, 11):
            table.look_at_range(first, last, Way())
    return table


@pytest.mark.parametrize("kind", [EVENT, SIX, COW, replace(EVENT, version=8, mode=COMMIT_TIME)], ids=str)
def test_every_range_of_a_history(tmp_path: Path, kind: Kind) -> None:
    history = HISTORY if kind.merge_on_read else [each for each in HISTORY if not isinstance(each, PLANS)]
    seen = look(tmp_path / "t", kind, history).counts.ranges
    assert seen["compared"] > 130
    assert not seen["refused"]
    assert not seen["of the latest rows"]
    assert not seen["of what is left"]


PLANS = (Compact, Schedule, RunPlan)


@pytest.mark.parametrize("kind", [EVENT, SIX], ids=str)
def test_ranges_whose_files_are_gone(tmp_path: Path, kind: Kind) -> None:
    seen = look(tmp_path / "t", kind, [*HISTORY, Compact(), put("k4", 9, "last"), Compact(), Clean(1)]).counts.ranges
    assert seen["of what is left"] if kind.version > 6 else seen["refused"]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("other", [Schedule(), Compact()], ids=str)
def test_a_commit_that_ended_after_a_compaction_was_planned(tmp_path: Path, other: Any, version: int) -> None:
    """Its log file belongs to a slice that is later than the range: its rows were left out."""
    seen = look(tmp_path / "t", replace(EVENT, version=version), [OLD, NEW, During(LATE, other), OTHER]).counts
    assert seen.overlaps["around it"] == (version > 6), "up to version 6 such a compaction is refused"


def without_row_filter(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(query.RangeSnapshot, "row_filter", None)


def with_base_rows_of_other_commits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(query.RangeSnapshot, "read_info", Snapshot.read_info)


def with_files_outside_the_range(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(query.RangeSnapshot, "_find_slices", lambda self, *_: query.RangeSlices(Snapshot.file_slices(self)))


def with_request_times(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit_range, "compares_request_times", lambda *_: True)


def with_a_start_that_counts(patch: pytest.MonkeyPatch) -> None:
    def is_inside(start: str, end: str | None, by_request_time: bool, commit: Any) -> bool:
        time = commit_range.get_time(commit.instant, by_request_time)
        return time >= start and (end is None or time <= end)

    patch.setattr(commit_range, "_is_inside", is_inside)


def with_an_end_that_does_not_count(patch: pytest.MonkeyPatch) -> None:
    def is_inside(start: str, end: str | None, by_request_time: bool, commit: Any) -> bool:
        time = commit_range.get_time(commit.instant, by_request_time)
        return time > start and (end is None or time < end)

    patch.setattr(commit_range, "_is_inside", is_inside)


def with_replaced_groups(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Visibility, "is_replaced", lambda *_: False)
    patch.setattr(TableUnderTest, "check", lambda *_: None)  # a snapshot read has them, too


def without_log_files(patch: pytest.MonkeyPatch) -> None:
    plain = touched_slices.make_touched_slices
    patch.setattr(query, "make_touched_slices", lambda *args, **more: plain(*args, **{**more, "merge_on_read": False}))


FAULTS = [
    without_row_filter, with_base_rows_of_other_commits, with_files_outside_the_range, with_request_times,
    with_a_start_that_counts, with_an_end_that_does_not_count, with_replaced_groups, without_log_files,
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_ranges_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Any) -> None:
    fault(monkeypatch)
    with pytest.raises(Difference, match=r"(a range|changes) from"):
        look(tmp_path / "t", EVENT)


def test_a_model_is_never_changed() -> None:
    model = Model(EVENT).after(NEW)
    assert model.after(LATE).written[:1] == model.written
    assert len(model.written) == 1
