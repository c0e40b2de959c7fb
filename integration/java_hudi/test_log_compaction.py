"""Log compactions by this package and by Java Hudi: the other reads, writes, folds and compacts what either folded.

Rows get the commit time of the log compaction, so only their columns stay. Every step compares all reads of both.
"""

from __future__ import annotations

import pytest

from integration.java_hudi.tables import Kind, Lake, make_row

KINDS = [Kind(9, True, True), Kind(9, False, False), Kind(8, True, True), Kind(6, True, True), Kind(6, True, False)]
FOLD = {"hoodie.log.compaction.blocks.threshold": "2"}
BY_JAVA = {
    **FOLD,
    "hoodie.log.compaction.enable": "true",
    "hoodie.log.compaction.inline": "true",
}
OURS = {"hoodie.parquet.small.file.limit": "0"}
every_kind = pytest.mark.parametrize("lake", KINDS, ids=str, indirect=True)


def fold_here(lake: Lake) -> None:
    """Join log files, and check that the rows stay."""
    logs = lake.log_files()
    result = lake.open().log_compact(options=FOLD)
    assert result.file_groups
    assert lake.log_files() == logs + result.file_groups
    check_all(lake)


def fold_by_java(lake: Lake, ts: int) -> None:
    """Have Java write and join log files after it."""
    rows = [make_row(number, ts, name=f"java {ts}") for number in range(0, 24, 4)]
    before = count_folds(lake)
    lake.write(rows, **{name.replace(".", "__"): value for name, value in BY_JAVA.items()})
    assert count_folds(lake) == before + 1
    check_all(lake)


def count_folds(lake: Lake) -> int:
    """How many log compactions have completed."""
    timeline = lake.open()._snapshot.timeline
    return sum(
        timeline.read_metadata(each).operation_type == "LOG_COMPACT" for each in timeline.list_completed_writes()
    )


def change_here(lake: Lake, ts: int) -> None:
    """Update some rows, some of them too late to count; insert one; delete one."""
    numbers = sorted(int(key[1:]) for key in lake.rows)
    rows = [make_row(each, ts, name=f"ours {ts}") for each in [*numbers[::4], max(numbers) + 1]]
    late = [make_row(each, 0, name="late") for each in numbers[1::4]]
    for some in (rows, late):
        lake.open().upsert(some, OURS)
        lake.note(some, "upsert")
    victim = f"k{numbers[2]:03d}"
    lake.open().delete(f"id = '{victim}'", OURS)
    del lake.rows[victim]


def check_all(lake: Lake) -> None:
    """Compare all rows and the metadata table."""
    lake.check()
    lake.check_metadata()
    report = lake.open().verify()
    assert report.is_right, str(report)


def end(lake: Lake, ts: int, *, ours: bool) -> None:
    """Compact, and go on."""
    if ours:
        assert lake.open().compact().instant is not None
    else:
        lake.run_java()
    assert lake.log_files() == 0
    lake.check()
    lake.java.clean(lake.path, lake.kind.service_options)
    change_here(lake, ts)
    lake.change(ts + 1)
    lake.open().clean(1)
    check_all(lake)


@every_kind
def test_we_fold_and_java_goes_on(lake: Lake) -> None:
    fold_here(lake)
    lake.change(4)
    lake.check()
    fold_by_java(lake, 5)
    change_here(lake, 6)
    fold_here(lake)
    end(lake, 7, ours=False)


@every_kind
def test_java_folds_and_we_go_on(lake: Lake) -> None:
    fold_by_java(lake, 4)
    change_here(lake, 5)
    lake.check()
    fold_here(lake)
    lake.change(6)  # before version 9 Java folds only after two commits of its own count
    fold_by_java(lake, 7)
    end(lake, 8, ours=True)
