"""A right metadata table verifies clean, Java's and ours; every kind of lie is found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py import HoodieTable, HoodieWarning
from hoodie_py.formats.deletes.encoder import encode_delete_content
from hoodie_py.formats.indexes.bounds import ValueKind, ValueType
from hoodie_py.formats.indexes.ranges import ColumnRange
from hoodie_py.formats.log.framing import BlockType, HeaderKey, encode_block
from hoodie_py.formats.names import make_log_file_name
from hoodie_py.writer.index_jobs import verify
from hoodie_py.writer.indexes.range_checks import holds, holds_shifted, note_wrong_range
from hoodie_py.writer.indexes.verify_report import MOST_FINDINGS, PartReport, VerifyReport
from tests.corpus import unpack
from tests.watched_requests import failing_requests, writes
from tests.writer.compaction_tables import QUICK
from tests.writer.index_jobs.indexed_tables import make_table
from tests.writer.written_tables import Kind, row

FEW = {**QUICK, "hoodie.metadata.global.record.level.index.min.filegroup.count": "2"}


MOR = Kind(9, True)


def make_indexed(base: Path, kind: Kind = MOR) -> HoodieTable:
    table = make_table(kind, base)
    table.index.build("record_index", options=FEW)
    if kind.version > 6:
        table.index.build("by_name", "name", options=FEW)
    return table


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(6, False, False)], ids=str)
def test_a_table_stays_right_through_its_life(kind: Kind, tmp_path: Path) -> None:
    table = make_indexed(tmp_path / "t", kind)
    assert table.verify().is_right
    table.upsert([row(i, 5, "c") for i in (0, 1, 30, 31)], options=QUICK)
    table.delete(["k7"], options=QUICK)
    report = table.verify()
    assert report.is_right, str(report)
    counts = {part.name: part.checked for part in report.parts}
    assert counts["record_index"] == table.scan().count()
    assert counts["data"] == len(table.file_slices())
    assert "nothing is wrong" in str(report)


def change_again(table: HoodieTable, number: int) -> None:
    table.upsert([row(0, 9 + number, "d"), row(50 + number, 9, "d")], options=QUICK)
    table.compact(options=QUICK)
    table.clean(1, options=QUICK)


def test_what_a_writer_changes_meanwhile_is_no_finding(tmp_path: Path) -> None:
    table = make_indexed(tmp_path / "t")
    before = HoodieTable.open(tmp_path / "t")
    change_again(table, 0)
    report = before.verify()
    assert report.is_right, str(report)
    assert report.instant == table.timeline.select_completed().last.request_time


def test_an_index_that_is_dropped_meanwhile_is_no_finding(tmp_path: Path) -> None:
    table = make_indexed(tmp_path / "t")
    before = HoodieTable.open(tmp_path / "t")
    table.index.drop("files", options=QUICK)
    assert before.verify().is_right


def before_each_check(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], object]) -> list[int]:
    """Do something before each check of a table; return the numbers of the checks, from 0."""
    plain, numbers = verify._verify_once, list[int]()

    def check(*arguments: Any) -> VerifyReport:
        numbers.append(len(numbers))
        act(numbers[-1])
        return plain(*arguments)

    monkeypatch.setattr(verify, "_verify_once", check)
    return numbers


def test_a_table_that_changes_each_time_it_is_checked_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_indexed(tmp_path / "t")
    before = HoodieTable.open(tmp_path / "t")
    times = before_each_check(monkeypatch, lambda number: change_again(table, number))
    with pytest.warns(HoodieWarning, match="changed while it was checked"):
        assert not before.verify().is_right
    assert times == [0, 1, 2]


def test_what_is_wrong_is_checked_once_where_nobody_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_indexed(tmp_path / "t")
    lose_a_file(tmp_path / "t")
    times = before_each_check(monkeypatch, lambda _: None)
    assert not table.verify().is_right
    assert times == [0]


@pytest.mark.parametrize("name", ["mdt_files_mor_v9", "old15_metadata_mor", "nometa_mor_v6"])
def test_tables_of_java_are_right(name: str, tmp_path: Path) -> None:
    report = HoodieTable.open(unpack(name, tmp_path)).verify()
    assert report.is_right, str(report)


def test_a_table_without_a_metadata_table_is_read(tmp_path: Path) -> None:
    table = make_table(Kind(9, True), tmp_path / "t")
    assert [part.name for part in table.verify().parts] == ["data"]
    assert table.verify(data=False).parts == ()
    assert HoodieTable.open(Kind(9, True).create(tmp_path / "empty")).verify().is_right


@pytest.mark.parametrize("kind", [Kind(9, True), Kind(6, False, False)], ids=str)
def test_an_unfinished_savepoint_hides_no_file_of_its_commit(kind: Kind, tmp_path: Path) -> None:
    table = make_indexed(tmp_path / "t", kind)
    for commit in table.timeline.select_writes():
        (tmp_path / "t" / table.config.find_timeline_folder() / f"{commit.request_time}.savepoint.inflight").touch()
    report = HoodieTable.open(tmp_path / "t").verify()
    assert report.is_right, str(report)


def lose_a_file(base: Path) -> None:
    next(base.glob("p0/.*.log.*")).unlink()


def add_a_file(base: Path) -> None:
    log = next(base.glob("p0/.*.log.1_*"))
    (log.parent / log.name.replace(".log.1_", ".log.2_")).write_bytes(log.read_bytes())


def cut_a_file(base: Path) -> None:
    log = next(base.glob("p0/.*.log.*"))
    log.write_bytes(log.read_bytes()[:-3])


def damage_the_index(base: Path) -> None:
    file = max((base / ".hoodie/metadata/record_index").glob("*.hfile"))
    file.write_bytes(file.read_bytes()[:-100])


def swap_groups(base: Path) -> None:
    """Entries that lie in another file group than look-ups read."""
    one, two = sorted((base / ".hoodie/metadata/record_index").glob("*.hfile"))
    contents = one.read_bytes(), two.read_bytes()
    one.write_bytes(contents[1])
    two.write_bytes(contents[0])


def add_a_group_of_another_index(base: Path) -> None:
    """What a clean of Java's does with the deletes of an expression index, though in another folder."""
    folder = base / ".hoodie/metadata/secondary_index_by_name"
    instant = next(folder.glob("*.hfile")).stem.rpartition("_")[2]
    nothing = encode_delete_content(pa.array([], pa.string()), pa.array([], pa.string()))
    content = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, nothing)
    (folder / make_log_file_name("expr-index-by-year-0000-0", instant, 1, "0-0-0")).write_bytes(content)


@pytest.mark.parametrize(
    ("lie", "part", "problem"),
    [
        (lose_a_file, "files", "extra"),
        (add_a_file, "files", "missing"),
        (cut_a_file, "files", "wrong"),
        (damage_the_index, "record_index", "unreadable"),
        (swap_groups, "record_index", "misplaced"),
        (add_a_group_of_another_index, "secondary_index_by_name", "foreign"),
    ],
)
def test_what_is_wrong_is_found(lie: Callable[[Path], None], part: str, problem: str, tmp_path: Path) -> None:
    make_indexed(tmp_path / "t")
    lie(tmp_path / "t")
    report = HoodieTable.open(tmp_path / "t").verify()
    assert not report.is_right
    assert (part, problem) in {(each.part, each.problem) for each in report.findings}, str(report)


def test_findings_are_bounded() -> None:
    part = PartReport("files")
    for number in range(1000):
        part.note("extra", str(number), "")
    assert (part.wrong, len(part.findings)) == (1000, MOST_FINDINGS)


def test_dates_that_java_stores_late_are_said_apart_from_what_is_wrong() -> None:
    late, data = (ColumnRange("c", ValueKind(ValueType.DATE), day, day, values=1) for day in (-141_418, -141_428))
    report = PartReport("column_stats")
    for version in (1, 2):
        assert not holds(late, data, version)
        note_wrong_range(report, "f.parquet c", "late", is_shifted=holds_shifted(late, data, version))
    assert (report.shifted, [each.problem for each in report.remarks]) == (1, ["shifted"])
    assert (report.wrong, [each.problem for each in report.findings]) == (1, ["wrong"])
    right = VerifyReport("t", "1", (replace(report, wrong=0, findings=[]),))
    assert right.is_right
    assert "1 of the entries have dates" in str(right)
    assert "column_stats: shifted f.parquet c: late" in str(right)


VALUES = st.one_of(st.none(), st.integers(-5, 5))


@given(st.lists(VALUES, max_size=6), st.lists(VALUES, max_size=6))
def test_a_range_of_more_values_holds_for_some_of_them(some: list[int | None], others: list[int | None]) -> None:
    def measure(values: list[int | None]) -> ColumnRange:
        known = [value for value in values if value is not None]
        kind = ValueKind(ValueType.LONG)
        return ColumnRange(
            "c", kind, min(known, default=None), max(known, default=None), len(values) - len(known), len(values)
        )

    whole, part = measure([*some, *others]), measure(some)
    assert holds(whole, part, 2)
    missed = [each for each in others if each is not None and not _is_between(part.least, each, part.greatest)]
    if missed:
        assert not holds(part, whole, 2)


def _is_between(least: object, value: int, greatest: object) -> bool:
    return isinstance(least, int) and isinstance(greatest, int) and least <= value <= greatest


@pytest.mark.parametrize(
    ("old", "new"),
    [(ValueType.INT, ValueType.LONG), (ValueType.LONG, ValueType.DOUBLE), (ValueType.FLOAT, ValueType.DOUBLE)],
)
def test_a_range_from_before_its_column_became_wider_holds(old: ValueType, new: ValueType) -> None:
    found, data = (ColumnRange("c", ValueKind(each), 0, 2, nulls=0, values=3) for each in (old, new))
    assert holds(found, data, 2)
    if new is ValueType.LONG:
        assert not holds(replace(found, greatest=1), data, 2)
    assert not holds(replace(found, kind=ValueKind(ValueType.STRING), least="0", greatest="2"), data, 2)


def test_what_a_range_says_of_nulls_must_hold() -> None:
    kind = ValueKind(ValueType.LONG)
    assert not holds(ColumnRange("c", kind, 1, 2, nulls=0, values=3), ColumnRange("c", kind, 1, 2, 1, 3), 2)
    assert not holds(ColumnRange("c", kind, None, None, nulls=3, values=3), ColumnRange("c", kind, 1, 2, 1, 3), 2)
    assert holds(ColumnRange("c", kind, 0, 5, nulls=9, values=20), ColumnRange("c", kind, 1, 2, 1, 3), 2)


@pytest.mark.parametrize("kind", [Kind(6, True), Kind(9, False)], ids=str)
def test_files_that_a_clean_at_work_has_removed_are_no_finding(kind: Kind, tmp_path: Path) -> None:
    table = make_indexed(tmp_path / "t", kind)
    for ordering in range(5, 8):
        table.upsert([row(2, ordering, f"n{ordering}")], QUICK)
        if kind.merge_on_read:
            table.compact(options=QUICK)
    assert table.verify().is_right
    assert table.clean(1, QUICK, dry_run=True).slices
    completed = writes(r"/t/\.hoodie/(timeline/)?[\d_]+\.clean$")
    with failing_requests(completed, SystemExit), pytest.raises(SystemExit):
        table.clean(1, QUICK)
    report = HoodieTable.open(tmp_path / "t").verify()
    assert report.is_right, str(report)
    HoodieTable.open(tmp_path / "t").clean(1, QUICK)
    assert HoodieTable.open(tmp_path / "t").verify().is_right


@pytest.mark.parametrize("version", [9, 6])
def test_a_table_beside_a_planned_compaction_is_right(version: int, tmp_path: Path) -> None:
    table = make_table(Kind(version, True), tmp_path / "t")
    table.index.build("record_index", options=FEW)
    assert table.schedule_compaction(options=QUICK) is not None
    table.upsert([row(i, 7, "after") for i in (0, 1)], options=QUICK)
    report = table.verify()
    assert report.is_right, str(report)


@pytest.mark.parametrize(("pending", "problems"), [(True, []), (False, ["missing"])])
def test_what_a_failed_write_left_is_no_finding_until_its_rollback(
    pending: bool, problems: list[str], tmp_path: Path
) -> None:
    """Up to version 6 the name of a log file does not say whose it is."""
    make_table(Kind(6, True), tmp_path / "t").index.build("record_index", options=FEW)
    log = next((tmp_path / "t" / "p0").glob(".*.log.1_*"))
    instant = "29990101000000000"
    nothing = encode_delete_content(pa.array([], pa.string()), pa.array([], pa.string()))
    content = encode_block(BlockType.DELETE, {HeaderKey.INSTANT_TIME: instant}, nothing)
    (log.parent / log.name.replace(".log.1_", ".log.7_")).write_bytes(content)
    for state in ("requested", "inflight") if pending else ():
        (tmp_path / "t" / ".hoodie" / f"{instant}.deltacommit.{state}").touch()
    findings = HoodieTable.open(tmp_path / "t").verify(data=False).findings
    assert [(each.part, each.problem) for each in findings] == [("files", each) for each in problems]


@pytest.mark.parametrize("left", ["9f1b-0_0-1-1_{}.parquet", ".9f1b-0_{}.log.1_0-1-1", ".9f1b-0_{}.log.1_0-1-1.cdc"])
def test_what_a_rollback_left_is_no_finding_and_no_file_of_the_table(left: str, tmp_path: Path) -> None:
    """Java's rollback leaves change-data files; readers pass files of instants that never completed."""
    table = HoodieTable.create(tmp_path, pa.schema([("id", pa.string())]), record_key="id")
    table.upsert([{"id": "a"}], QUICK)
    own = next(path for path in tmp_path.glob("*.parquet"))
    first = table.timeline.instants[0].request_time
    table.refresh().upsert([{"id": "b"}], QUICK)
    shutil.copy(own, tmp_path / left.format(int(first) + 1))
    for name in ("files", "column_stats", "bloom_filters"):
        table.refresh().index.build(name, options=QUICK)
    report = HoodieTable.open(tmp_path).verify(data=False)
    assert report.is_right, report.findings
    assert table.refresh().scan(["id"]).count() == 2


def test_the_folder_of_a_partition_that_a_failed_write_left_is_no_finding(tmp_path: Path) -> None:
    table = make_table(Kind(9, True), tmp_path / "t")
    table.index.build("record_index", options=FEW)
    folder = tmp_path / "t" / "p7"
    folder.mkdir()
    (folder / ".hoodie_partition_metadata").write_bytes(
        (tmp_path / "t" / "p0" / ".hoodie_partition_metadata").read_bytes()
    )
    report = HoodieTable.open(tmp_path / "t").verify(data=False)
    assert report.is_right, str(report)
    HoodieTable.open(tmp_path / "t").index.drop("files", options=QUICK)
    HoodieTable.open(tmp_path / "t").index.build("record_index", options=FEW)  # lists the folder
    report = HoodieTable.open(tmp_path / "t").verify(data=False)
    assert report.is_right, str(report)
