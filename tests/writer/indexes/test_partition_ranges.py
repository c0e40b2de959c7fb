from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hoodie_py import ConflictError, HoodieTable
from hoodie_py.formats.indexes.bounds import NO_VALUES, ValueKind, ValueType
from hoodie_py.formats.indexes.ranges import ColumnRange
from hoodie_py.writer.indexes import partition_ranges
from hoodie_py.writer.indexes.partition_ranges import Overlap, StoredRange
from hoodie_py.writer.pipeline import write
from integration.histories.overlapping import Pause, open_paused
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind, row

BESIDE = {**QUICK, "hoodie.clean.failed.writes.policy": "LAZY", "hoodie.parquet.small.file.limit": "0"}
SKIPPING = {"hoodie.enable.data.skipping": "true"}
INT, LONG = ValueKind(ValueType.INT), ValueKind(ValueType.LONG)
KINDS = [Kind(9, True), Kind(9, False), Kind(8, True)]

Act = Callable[[HoodieTable], object]


def insert_first(table: HoodieTable) -> object:
    return table.insert([row(12, 1, "b")], BESIDE)


def compact(table: HoodieTable) -> object:
    return table.compact(options=BESIDE) if table.config.is_merge_on_read else insert_first(table)


def replace_rows(table: HoodieTable) -> object:
    return table.cluster(options={**BESIDE, "hoodie.clustering.plan.strategy.small.file.limit": "600000000"})


def make(base: Path, kind: Kind) -> HoodieTable:
    """Make a table with values from m to n in each partition, and with statistics."""
    table = HoodieTable.open(kind.create(base))
    table.insert([row(number, 1, "m") for number in range(4)], BESIDE)
    table.upsert([row(number, 2, "n") for number in range(2)], BESIDE)
    for name in ("column_stats", "partition_stats"):
        table.index.build(name, options=QUICK)
    table.index.build("up", "name", function="upper", options=QUICK)
    return HoodieTable.open(base)


def land_last(base: Path, act: Act, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
    """Begin a write of the greatest value, and have another writer act before it lands."""
    known = frozenset(each.request_time for each in HoodieTable.open(base).timeline)

    def run() -> None:
        if monkeypatch is None:
            act(HoodieTable.open(base))
            return
        with monkeypatch.context() as patch:  # as Java does
            patch.setattr(partition_ranges, "find_overlap", lambda _: Overlap(False, frozenset()))
            act(HoodieTable.open(base))

    pause = Pause(run, known)
    open_paused(str(base), pause).insert([row(10, 1, "z")], BESIDE)
    assert pause.timeline is not None
    assert pause.error is None


def check(base: Path, name: str, keys: list[str]) -> None:
    table = HoodieTable.open(base)
    for where in (f"name = '{name}'", f"upper(name) = '{name.upper()}'"):
        found = table.scan(filter=where, options=SKIPPING).to_arrow()["id"].to_pylist()
        assert sorted(found) == keys, where
    report = table.verify()
    assert report.is_right, str(report)


@pytest.mark.parametrize("act", [insert_first, compact, replace_rows])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_began_first_and_landed_last_is_found(kind: Kind, act: Act, tmp_path: Path) -> None:
    base = tmp_path / "t"
    make(base, kind)
    land_last(base, act)
    check(base, "z", ["k10"])
    HoodieTable.open(base).insert([row(14, 1, "zz")], BESIDE)  # nothing is pending now: a tight record again
    check(base, "zz", ["k14"])
    check(base, "z", ["k10"])


def test_a_record_that_would_hide_a_wider_one_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "t"
    make(base, KINDS[0])
    with pytest.raises(ConflictError, match="of column 'name'"):
        land_last(base, insert_first, monkeypatch)
    assert HoodieTable.open(base).scan(filter="name = 'z'").count() == 0
    HoodieTable.open(base).insert([row(10, 1, "z")], QUICK)
    check(base, "z", ["k10"])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_partition_whose_record_was_deleted_meanwhile_is_a_conflict(kind: Kind, tmp_path: Path) -> None:
    base = tmp_path / "t"
    part = make(base, kind).scan(filter="id = 'k2'").to_arrow()["_hoodie_partition_path"][0].as_py()
    with pytest.raises(ConflictError, match="of column"):
        land_last(base, lambda table: table.delete_partition([part], BESIDE))
    check(base, "z", [])
    HoodieTable.open(base).insert([row(10, 1, "z")], QUICK)
    check(base, "z", ["k10"])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rows_that_came_after_the_look_of_a_partitions_delete_have_a_record(
    kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "t"
    part = make(base, kind).scan(filter="id = 'k2'").to_arrow()["_hoodie_partition_path"][0].as_py()
    choose = write.choose_partitions

    def insert_then_choose(*given: Any, **more: Any) -> Any:
        monkeypatch.undo()
        chosen = choose(*given, **more)
        HoodieTable.open(base).bulk_insert([row(10, 1, "z")], BESIDE)
        return chosen

    monkeypatch.setattr(write, "choose_partitions", insert_then_choose)
    HoodieTable.open(base).delete_partition([part], BESIDE)
    check(base, "z", ["k10"])


def test_a_record_that_hides_what_it_holds_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "t"
    make(base, KINDS[0]).insert([row(20, 1, "zzz")], BESIDE)
    land_last(base, insert_first, monkeypatch)
    check(base, "z", ["k10"])


def make_range(
    kind: ValueKind, least: int | None, greatest: int | None, nulls: int = 0, values: int = 5
) -> ColumnRange:
    return ColumnRange("n", kind, least, greatest, nulls=nulls, values=values)


def test_a_column_whose_type_changed_has_the_widest_range() -> None:
    overlap = Overlap(True, frozenset())
    stored = {"n": StoredRange(make_range(INT, 1, 2), True)}
    [settled] = overlap.settle("p", {"n": make_range(LONG, 1, 2)}, stored).values()
    assert settled == StoredRange(make_range(LONG, -(1 << 63), (1 << 63) - 1, 1, 2), True)
    [settled] = overlap.settle("p", {"n": make_range(INT, 3, 4)}, stored).values()
    assert settled == StoredRange(make_range(INT, 3, 4), False)


@pytest.mark.parametrize(
    ("there", "found", "holds"),
    [
        (make_range(INT, 1, 9), make_range(INT, 1, 9), True),
        (make_range(INT, 1, 9), make_range(INT, 2, 8), True),
        (make_range(INT, 1, 9), make_range(INT, 0, 8), False),
        (make_range(INT, 1, 9), make_range(INT, 2, 10), False),
        (make_range(INT, 1, 9), make_range(INT, 2, 8, nulls=1), False),
        (make_range(INT, 1, 9, nulls=1), make_range(INT, 2, 8, nulls=3), True),
        (make_range(INT, 1, 9), make_range(LONG, 2, 8), False),
        (make_range(INT, 1, 9), make_range(NO_VALUES, None, None, 5, 5), False),
        (make_range(INT, 1, 9, nulls=1), make_range(NO_VALUES, None, None, 5, 5), True),
        (make_range(NO_VALUES, None, None, 5, 5), make_range(INT, 1, 9), False),
    ],
)
def test_which_ranges_hold_others(there: ColumnRange, found: ColumnRange, holds: bool) -> None:
    overlap = Overlap(False, frozenset({"p"}))
    stored = {"n": StoredRange(there, True)}
    if holds:
        assert overlap.settle("p", {"n": found}, stored) == {"n": StoredRange(found, True)}
        return
    with pytest.raises(ConflictError, match="partition=p"):
        overlap.settle("p", {"n": found}, stored)
    assert overlap.settle("q", {"n": found}, stored)
    assert overlap.settle("p", {"n": found}, {"n": StoredRange(there, False)})
