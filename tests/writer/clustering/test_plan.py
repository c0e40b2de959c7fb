from __future__ import annotations

from pathlib import Path

import pytest

from hoodie_py import HoodieTable
from hoodie_py.errors import InvalidQueryError
from hoodie_py.options.clustering import DAY_ROLLING, NO_FILTER, RECENT_DAYS, SELECTED_PARTITIONS
from hoodie_py.writer.clustering.plan import choose_partitions
from tests.writer.clustering.test_cluster import PLAN, SMALL, filled, rows
from tests.writer.compaction_tables import QUICK
from tests.writer.written_tables import Kind


def test_a_dry_run_says_what_and_why_and_writes_nothing(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    before = sorted((tmp_path / "t").rglob("*"))
    report = table.schedule_clustering(QUICK, dry_run=True)
    assert sorted((tmp_path / "t").rglob("*")) == before
    assert report.not_due is None
    assert {file_id for group in report.groups for file_id in group.file_ids} == {
        each.file_id for each in table.file_slices()
    }
    assert str(report).startswith("Clustering of t would write 6 file slices")
    assert "+ " in repr(report)
    assert report._repr_html_()
    assert table.schedule_clustering(QUICK) is not None
    report = table.schedule_clustering(QUICK, dry_run=True)
    assert report.groups == ()
    assert {reason.split(" 2")[0] for *_, reason in report.left_out} == {"clustering"}
    assert str(report) == "No clustering of t: no file slice is small enough and free."


@pytest.mark.parametrize(
    ("options", "groups", "reason"),
    [
        ({"max.num.groups": "1"}, [3], "the plan has its 1 groups"),
        ({"max.bytes.per.group": "1"}, [1] * 6, None),
        ({"max.bytes.per.group": "1", "single.group.clustering.enabled": "false"}, [1] * 4, "it would be alone"),
        ({"max.bytes.per.group": "1", "single.group.clustering.enabled": "false", "sort.columns": "ts"}, [1] * 6, None),
        ({"small.file.limit": "1"}, [], "its base file has 1 bytes or more"),
        ({"partition.selected": "nowhere"}, [], "its partition is not chosen"),
    ],
)
def test_groups_are_divided_as_java_does(
    options: dict[str, str], groups: list[int], reason: str | None, tmp_path: Path
) -> None:
    table = filled(Kind(9, merge_on_read=False), tmp_path / "t")
    given = {f"{PLAN}.{name}": text for name, text in options.items()}
    report = table.schedule_clustering({**QUICK, **given}, dry_run=True)
    found = [len(each.file_ids) for each in report.groups]
    assert found == groups
    if reason is not None:
        assert any(each[2].startswith(reason) for each in report.left_out)


def test_a_plan_records_the_partitions_that_it_leaves_out(tmp_path: Path) -> None:
    table = filled(Kind(9, merge_on_read=True), tmp_path / "t")
    partitions = sorted({each.partition_path for each in table.file_slices()})
    instant = table.schedule_clustering({**QUICK, f"{PLAN}.partition.selected": partitions[0]})
    [pending] = table.timeline.select_pending()
    plan = table._snapshot.timeline.read_replace_plan(pending)
    assert pending.request_time == instant
    assert plan.missing_partitions == tuple(partitions[1:])
    assert {path for path, _ in plan.iterate_file_groups()} == {partitions[0]}


def test_a_slice_without_base_file_counts_as_a_new_file(tmp_path: Path) -> None:
    table = HoodieTable.open(Kind(9, merge_on_read=True, partitioned=False).create(tmp_path / "t"))
    assert table.schedule_clustering(QUICK) is None
    table.insert(rows(range(3)), SMALL)
    report = table.schedule_clustering({**QUICK, f"{PLAN}.target.file.max.bytes": "1000"}, dry_run=True)
    [group] = report.groups
    assert group.new_files == -(-group.base_bytes // 1000)


PATHS = [f"2026-01-0{day}" for day in (1, 3, 2, 5, 4)]


@pytest.mark.parametrize(
    ("mode", "options", "expected"),
    [
        (NO_FILTER, {}, PATHS),
        (NO_FILTER, {f"{PLAN}.partition.selected": "2026-01-04,2026-01-01,gone"}, ["2026-01-01", "2026-01-04"]),
        (NO_FILTER, {f"{PLAN}.partition.regex.pattern": ".*0[12]"}, ["2026-01-01", "2026-01-02"]),
        (NO_FILTER, {f"{PLAN}.partition.regex.pattern": "2026"}, []),
        (RECENT_DAYS, {}, ["2026-01-05", "2026-01-04"]),
        (RECENT_DAYS, {f"{PLAN}.daybased.skipfromlatest.partitions": "1"}, ["2026-01-04", "2026-01-03"]),
        (RECENT_DAYS, {f"{PLAN}.daybased.lookback.partitions": "1"}, ["2026-01-05"]),
        (SELECTED_PARTITIONS, {f"{PLAN}.cluster.begin.partition": "2026-01-04"}, ["2026-01-05", "2026-01-04"]),
        (
            SELECTED_PARTITIONS,
            {f"{PLAN}.cluster.begin.partition": "2026-01-02", f"{PLAN}.cluster.end.partition": "2026-01-03"},
            ["2026-01-03", "2026-01-02"],
        ),
        (DAY_ROLLING, {}, ["2026-01-03"]),
    ],
)
def test_partitions_are_chosen_as_java_does(mode: str, options: dict[str, str], expected: list[str]) -> None:
    assert choose_partitions(PATHS, mode, options, hour=2) == expected


def test_a_bad_pattern_is_an_error() -> None:
    with pytest.raises(InvalidQueryError, match="pattern"):
        choose_partitions(PATHS, NO_FILTER, {f"{PLAN}.partition.regex.pattern": "("}, hour=0)
