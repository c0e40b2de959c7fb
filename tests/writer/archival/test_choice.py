"""Which instants may leave the active timeline, by Java's rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.timeline.plans import CleanMetadata, CleanPlan
from hoodie_py.formats.timeline.timeline import Timeline
from hoodie_py.formats.timeline.writers import write_clean_metadata, write_clean_plan
from hoodie_py.writer.archival.choice import Choice, choose_instants, choose_metadata_instants
from hoodie_py.writer.settings import ArchivalSettings
from tests.writer.clean_tables import Names, at

SETTINGS = ArchivalSettings(min_commits=3, max_commits=5, clean_commits=1, delta_commits=1)


@pytest.fixture(params=[9, 6])
def names(tmp_path: Path, request: pytest.FixtureRequest) -> Names:
    return Names(tmp_path / "t", request.param)


def commits(names: Names, *numbers: int) -> None:
    for number in numbers:
        names.done(number)


def chosen(names: Names, settings: ArchivalSettings = SETTINGS) -> list[int]:
    return [int(each.request_time[8:14]) for each in choose(names, settings).instants]


def choose(names: Names, settings: ArchivalSettings = SETTINGS) -> Choice:
    return choose_instants(names.snapshot(), settings)


def cleaned(names: Names, number: int, earliest: int, saved: str = "") -> None:
    extra = {"savepointed_timestamps": saved} if saved else {}
    plan = CleanPlan(
        earliest_instant_to_retain=at(earliest),
        earliest_action="commit",
        policy="KEEP_LATEST_COMMITS",
        extra_metadata=extra,
    )
    metadata = CleanMetadata(start_clean_time=at(number), earliest_commit_to_retain=at(earliest))
    names.done(number, "clean", write_clean_metadata(metadata))
    names.pending(number, "clean", "requested", write_clean_plan(plan, "file:/t"))


def test_nothing_goes_up_to_the_greatest_number_and_then_the_least_number_stays(names: Names) -> None:
    commits(names, *range(1, 6))
    assert chosen(names) == []
    assert "up to 5 commits stay" in choose(names).why
    commits(names, 6)
    assert chosen(names) == [1, 2, 3]
    assert choose(names).active == 6


def test_commits_that_cleans_retain_stay(names: Names) -> None:
    commits(names, *range(1, 10))
    assert chosen(names, replace(SETTINGS, clean_commits=7)) == []  # 8 stay then, and nothing goes up to 10
    commits(names, *range(10, 12))
    assert chosen(names, replace(SETTINGS, clean_commits=7)) == [1, 2, 3]
    by_versions = replace(SETTINGS, clean_commits=7, clean_policy="KEEP_LATEST_FILE_VERSIONS")
    assert chosen(names, by_versions) == list(range(1, 9))


def test_the_commit_before_a_pending_write_stays_and_all_after_it(names: Names) -> None:
    commits(names, 1, 2, 3, 5, 6, 7, 8)
    names.pending(4)
    assert chosen(names, replace(SETTINGS, clean_policy="KEEP_LATEST_FILE_VERSIONS")) == [1, 2]
    assert chosen(names) == []  # a clean could retain from 3 on, which makes both numbers grow


def test_a_write_that_is_pending_since_the_beginning_keeps_everything(names: Names) -> None:
    names.pending(1)
    commits(names, *range(2, 10))
    assert chosen(names) == []
    assert "is pending" in choose(names).why


def test_commits_that_count_for_the_next_compaction_stay(names: Names) -> None:
    commits(names, *range(1, 10))
    assert chosen(names, replace(SETTINGS, delta_commits=8)) == [1]
    assert chosen(names, replace(SETTINGS, delta_commits=10)) == []
    assert chosen(names, replace(SETTINGS, delta_commits=8, trigger="TIME_ELAPSED")) == [1, 2, 3, 4, 5, 6]
    names.done(10, "commit")
    commits(names, 11)
    assert chosen(names, replace(SETTINGS, delta_commits=8)) == list(range(1, 9))


def test_only_delta_commits_since_the_last_compaction_count_for_the_next_one(names: Names) -> None:
    commits(names, 1, 2, 3)
    names.done(4, "commit")
    commits(names, *range(5, 10))
    assert chosen(names, replace(SETTINGS, delta_commits=4)) == [1, 2, 3, 4, 5]
    assert chosen(names, replace(SETTINGS, delta_commits=5)) == [1, 2, 3, 4]
    assert chosen(names, replace(SETTINGS, delta_commits=6)) == [1, 2, 3]


def test_a_pending_delta_commit_counts_as_well(names: Names) -> None:
    """As in Java (``findInstantsModifiedAfterByCompletionTime``), although it may be rolled back."""
    commits(names, 1, 2, 3)
    names.done(4, "commit")
    commits(names, 5, 6, 7, 9)
    names.pending(8)
    by_versions = replace(SETTINGS, clean_policy="KEEP_LATEST_FILE_VERSIONS")
    assert chosen(names, replace(by_versions, delta_commits=4)) == [1, 2, 3, 4, 5]
    assert chosen(names, replace(by_versions, delta_commits=5)) == [1, 2, 3, 4]


def test_a_delta_commit_that_completed_after_the_compaction_was_planned_counts(tmp_path: Path) -> None:
    names = Names(tmp_path / "t")
    commits(names, 1, 2, 3)
    names.done(4, "commit")
    commits(names, *range(5, 10))
    (names.timeline / f"{at(2)}_{int(at(2)) + 5}.deltacommit").rename(
        names.timeline / f"{at(2)}_{int(at(4)) + 1}.deltacommit"
    )
    assert chosen(names, replace(SETTINGS, delta_commits=6)) == [1]
    assert chosen(names, replace(SETTINGS, delta_commits=5)) == [1, 2, 3, 4]


def test_a_savepoint_stops_archival_unless_it_is_said_otherwise(names: Names) -> None:
    commits(names, *range(1, 10))
    names.saved(3)
    assert chosen(names) == [1, 2]
    assert chosen(names, replace(SETTINGS, beyond_savepoint=True)) == [1, 2, 4, 5, 6, 7]


def test_replaced_files_are_cleaned_first(names: Names) -> None:
    commits(names, 1, 2)
    names.done(3, "replacecommit", b"")
    commits(names, *range(4, 10))
    assert chosen(names) == [1, 2]
    cleaned(names, 10, earliest=3)
    assert chosen(names) == [1, 2]
    cleaned(names, 11, earliest=4)
    assert chosen(names) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("saved", "stays"), [(2, True), (3, True), (4, False), (6, False)])
def test_a_replaced_file_that_a_savepoint_kept_from_a_clean_stays_known(names: Names, saved: int, stays: bool) -> None:
    """The clean passed the replace commit, and left the files that the savepoint names, which is gone by now."""
    commits(names, 1, 2)
    names.done(3, "replacecommit", b"")
    commits(names, *range(4, 10))
    cleaned(names, 11, earliest=4, saved=f"{at(saved)},{at(9)}")
    assert chosen(names) == ([1, 2] if stays else [1, 2, 3, 4, 5, 6])


def test_a_savepoint_after_the_replaced_files_keeps_nothing(names: Names) -> None:
    commits(names, 1, 2)
    names.done(3, "replacecommit", b"")
    commits(names, *range(4, 10))
    cleaned(names, 11, earliest=5, saved=at(4))
    assert chosen(names) == [1, 2, 3, 4, 5, 6]


def test_a_clean_whose_plan_an_archival_that_died_has_removed_tells_nothing(names: Names, tmp_path: Path) -> None:
    commits(names, 1, 2)
    names.done(3, "replacecommit", b"")
    commits(names, *range(4, 10))
    cleaned(names, 11, earliest=4)
    [plan] = tmp_path.rglob("*.clean.requested")
    plan.unlink()
    assert chosen(names) == [1, 2]
    cleaned(names, 12, earliest=4)
    assert chosen(names) == [1, 2, 3, 4, 5, 6]


def test_what_the_last_clean_retained_stays_if_asked_for(names: Names) -> None:
    commits(names, *range(1, 10))
    cleaned(names, 10, earliest=4)
    assert chosen(names, replace(SETTINGS, after_clean=True)) == [1, 2, 3]


def test_cleans_and_rollbacks_go_with_the_commits_around_them(tmp_path: Path) -> None:
    names = Names(tmp_path / "t", 9)
    commits(names, 1, 3, 5, 6, 7, 8)
    cleaned(names, 2, earliest=1)
    names.done(4, "rollback")
    cleaned(names, 9, earliest=1)
    assert chosen(names) == [1, 2, 3, 4, 5]


def test_in_layout_1_cleans_are_counted_by_themselves(tmp_path: Path) -> None:
    names = Names(tmp_path / "t", 6)
    commits(names, *range(1, 5))
    for number in range(10, 17):
        cleaned(names, number, earliest=1)
    assert chosen(names) == [10, 11, 12, 13]
    cleaned(names, 17, earliest=1)
    assert chosen(names) == [10, 11, 12, 13, 14]


@pytest.mark.parametrize("layout", [1, 2])
def test_the_metadata_table_keeps_what_is_active_in_the_table(layout: int) -> None:
    own = timeline(layout, *((number, "deltacommit") for number in range(1, 20)), (20, "commit"))
    data = timeline(layout, *((number, "deltacommit") for number in range(8, 20)))
    found = choose_metadata_instants(own, data, SETTINGS).instants
    assert [int(each.request_time[8:14]) for each in found] == list(range(1, 8))
    pending = timeline(layout, (5, "deltacommit.inflight"), *((number, "deltacommit") for number in range(8, 20)))
    found = choose_metadata_instants(own, pending, SETTINGS).instants
    assert [int(each.request_time[8:14]) for each in found] == list(range(1, 5))


@pytest.mark.parametrize(("beyond", "last"), [(False, 7), (True, 8)])
def test_a_commit_with_a_savepoint_holds_the_metadata_table_back_unless_it_is_said_otherwise(
    beyond: bool, last: int
) -> None:
    own = timeline(2, *((number, "deltacommit") for number in range(1, 20)), (20, "commit"))
    data = timeline(2, (8, "savepoint"), *((number, "deltacommit") for number in range(8, 20)))
    found = choose_metadata_instants(own, data, replace(SETTINGS, beyond_savepoint=beyond)).instants
    assert [int(each.request_time[8:14]) for each in found] == list(range(1, last + 1))


def test_a_damaged_plan_of_a_clean_is_named(names: Names) -> None:
    commits(names, 1, 2)
    names.done(3, "replacecommit", b"")
    commits(names, *range(4, 10))
    cleaned(names, 11, earliest=4)
    names.pending(11, "clean", "requested", b"Obj")
    with pytest.raises(CorruptFileError) as caught:
        choose(names)
    where = caught.value.where
    assert (where["instant"], str(where["path"]).rpartition("/")[2]) == (at(11), f"{at(11)}.clean.requested")


def test_without_a_compaction_of_the_metadata_table_nothing_goes(tmp_path: Path) -> None:
    names = Names(tmp_path / "t", 9, **{"hoodie.table.metadata.partitions": "files"})
    commits(names, *range(1, 10))
    assert chosen(names) == []
    assert "not been compacted" in choose(names).why
    metadata = names.root / ".hoodie/metadata/.hoodie/timeline"
    metadata.mkdir(parents=True)
    (metadata / f"{int(at(4)) + 1}_{int(at(4)) + 7}.commit").write_bytes(b"")
    assert chosen(names) == [1, 2, 3]  # 4 completed after the compaction began


def test_without_a_compaction_of_the_metadata_table_cleans_stay_in_layout_1(tmp_path: Path) -> None:
    names = Names(tmp_path / "t", 6, **{"hoodie.table.metadata.partitions": "files"})
    commits(names, *range(1, 10))
    for number in range(10, 17):
        cleaned(names, number, earliest=1)
    assert chosen(names) == []
    metadata = names.root / ".hoodie/metadata/.hoodie"
    metadata.mkdir(parents=True)
    (metadata / f"{at(4)}001.commit").write_bytes(b"")
    assert chosen(names) == [1, 2, 3, 4]
    (metadata / f"{at(12)}001.commit").write_bytes(b"")
    assert chosen(names) == [1, 2, 3, 4, 5, 6, 10, 11, 12]


def timeline(layout: int, *states: tuple[int, str]) -> Timeline:
    def name(number: int, state: str) -> str:
        done = layout == 2 and "." not in state
        return f"{at(number)}_{at(number)}.{state}" if done else f"{at(number)}.{state}"

    return Timeline.from_file_names([name(*each) for each in states], layout)
