from __future__ import annotations

import pickle
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hoodie_py.formats.config.table_config import TableConfig
from hoodie_py.formats.timeline.instants import ACTIONS, COMPLETED_ACTION, STATES, Instant, parse_instant_file
from hoodie_py.formats.timeline.timeline import Timeline
from tests.corpus import corpus_names, load_case
from tests.formats.zipped_tables import meta_files

T, C = "20260101000000000", "20260101000000123"

# name, layout 1, layout 2
NAMES = [
    (f"{T}.commit.requested", Instant(T, None, "commit", "requested"), Instant(T, None, "commit", "requested")),
    (f"{T}.inflight", Instant(T, None, "commit", "inflight"), Instant(T, None, "commit", "inflight")),
    (f"{T}.commit", Instant(T, T, "commit", "completed"), Instant(T, T, "commit", "completed", True)),
    (f"{T}_{C}.commit", None, Instant(T, C, "commit", "completed")),
    (f"{T}_{C}.deltacommit", None, Instant(T, C, "deltacommit", "completed")),
    (f"{T}.deltacommit.inflight", Instant(T, None, "deltacommit", "inflight"),
     Instant(T, None, "deltacommit", "inflight")),
    (f"{T}.compaction.requested", Instant(T, None, "compaction", "requested"),
     Instant(T, None, "compaction", "requested")),
    (f"{T}.clustering.inflight", Instant(T, None, "clustering", "inflight"),
     Instant(T, None, "clustering", "inflight")),
    (f"{T}.savepoint.inflight", Instant(T, None, "savepoint", "inflight"), Instant(T, None, "savepoint", "inflight")),
    (f"{T}_{C}.restore", None, Instant(T, C, "restore", "completed")),
    ("20180101000000.rollback", Instant("20180101000000", "20180101000000", "rollback", "completed"),
     Instant("20180101000000", "20180101000000", "rollback", "completed", True)),
    (f"{T}010.deltacommit", Instant(T + "010", T + "010", "deltacommit", "completed"),
     Instant(T + "010", T + "010", "deltacommit", "completed", True)),
]  # fmt: skip
NO_INSTANTS = [
    "hoodie.properties", ".aux", "archived", "history", "metadata", f"{T}", f"{T}.", f"{T}.parquet", f"{T}.compaction",
    f"{T}.clustering", f"{T}.logcompaction", f"{T}.inflight.requested", f"{T}.commit.completed", f"{T}.commit.crc",
    f".{T}.commit", f"{T}_{C}.inflight", f"{T}_{C}.commit.requested", f"{T}_.commit", f"_{C}.commit", f"{T}.commit\n",
    f"{'1' * 33}.commit", "٢٠٢٦.commit", "", "." * 1000,
]  # fmt: skip


@pytest.mark.parametrize(("name", "first", "second"), NAMES)
def test_names_are_taken_apart_and_spelled_again(name: str, first: Instant | None, second: Instant | None) -> None:
    for layout, expected in ((1, first), (2, second)):
        found = parse_instant_file(name, layout)
        assert (found.instant if found else None) == expected
        if expected is not None:
            assert expected.file_name(layout) == name


_NAMES = st.builds(
    lambda time, after, action, state, layout: Instant(
        str(time), str(time + after) if state == "completed" else None, action, state
    ).file_name(layout),
    st.integers(1, 6), st.integers(0, 2), st.sampled_from(ACTIONS), st.sampled_from(STATES), st.just(2),
)  # fmt: skip


@given(st.sets(_NAMES, max_size=12), st.sets(_NAMES, max_size=4), st.sets(st.sampled_from(range(7)), max_size=7))
@example(set(), {"1_1.deltacommit", "1_2.deltacommit"}, {4})
@example({"1_2.deltacommit"}, {"1_1.deltacommit"}, {4})
def test_a_timeline_with_more_instants_is_that_of_all(before: set[str], more: set[str], asked: set[int]) -> None:
    old = Timeline.from_file_names(before, 2)
    questions = (
        lambda each: list(each.select_writes()),
        lambda each: list(each.select_pending()),
        lambda each: [each.find_all(str(time)) for time in range(10)],
        lambda each: [each.is_committed(str(time)) for time in range(10)],
        lambda each: each.newest_time,
        lambda each: [list(each.select_actions(action)) for action in ACTIONS],
        lambda each: (each.last_visible, each.first_active_time),
    )
    for number in asked:  # what was asked before is carried over
        questions[number](old)
    added = old.add([each.instant for name in more if (each := parse_instant_file(name, 2)) is not None])
    whole = Timeline.from_file_names(before | more, 2)
    assert added == whole
    for question in questions:
        assert question(added) == question(whole)


@pytest.mark.parametrize("name", NO_INSTANTS)
def test_other_names_are_no_instants(name: str) -> None:
    assert parse_instant_file(name, 1) is None
    assert parse_instant_file(name, 2) is None


times = st.text("0123456789", min_size=1, max_size=20)


@given(times, times, st.sampled_from(ACTIONS), st.sampled_from(STATES), st.sampled_from([1, 2]))
def test_instants_round_trip_through_their_names(time: str, done: str, action: str, state: str, layout: int) -> None:
    completed = state == "completed"
    written = Instant(time, (time if layout == 1 else done) if completed else None, action, state)
    found = parse_instant_file(written.file_name(layout), layout)
    assert found is not None
    assert found.instant.file_name(layout) == written.file_name(layout)
    expected = (time, written.completion_time, written.comparable_action if completed else action, state)
    assert (
        found.instant.request_time,
        found.instant.completion_time,
        found.instant.action,
        found.instant.state,
    ) == expected


@given(st.text(max_size=40), st.sampled_from([1, 2]))
def test_any_name_is_an_instant_or_not(name: str, layout: int) -> None:
    found = parse_instant_file(name, layout)
    assert found is None or found.instant.file_name(layout) == name


def test_the_highest_state_of_each_action_counts() -> None:
    timeline = Timeline.from_file_names(
        [
            "3.deltacommit.requested", "3.deltacommit.inflight", "1.commit.requested", "1.inflight", "1_2.commit",
            "4.compaction.requested", "4.compaction.inflight", "4_5.commit", "6.clustering.requested",
            "7.compaction.requested", "hoodie.properties", "1.savepoint.inflight", "1_8.savepoint",
        ],
        2,
    )  # fmt: skip
    assert [(one.request_time, one.action, one.state) for one in timeline] == [
        ("1", "commit", "completed"), ("1", "savepoint", "completed"), ("3", "deltacommit", "inflight"),
        ("4", "commit", "completed"), ("6", "clustering", "requested"), ("7", "compaction", "requested"),
    ]  # fmt: skip
    assert [one.request_time for one in timeline.select_writes()] == ["1", "4"]
    assert timeline.last_visible == timeline.find("7")
    assert [one.request_time for one in timeline.select_pending()] == ["3", "6", "7"]
    assert [one.request_time for one in timeline.select_pending_compactions()] == ["7"]
    assert [one.request_time for one in timeline.select_pending_replacements()] == ["6"]
    assert [one.request_time for one in timeline.select_after("1")][:1] == ["3"]


def test_two_completed_files_of_one_instant_count_once_as_the_first_to_complete() -> None:
    names = ["1_3.commit", "1_2.commit", "1.commit"]
    for seed in range(6):
        shuffled = random.Random(seed).sample(names, k=3)
        assert [one.completion_time for one in Timeline.from_file_names(shuffled, 2)] == ["2"]


def test_second_granularity_instants_come_before_the_milliseconds_of_that_second() -> None:
    timeline = Timeline.from_file_names(["20260101000000123.commit", "20260101000000.commit"], 1)
    assert [one.request_time for one in timeline] == ["20260101000000", "20260101000000123"]


def test_find_prefers_the_write_to_its_savepoint() -> None:
    timeline = Timeline.from_file_names(["1.savepoint", "1.deltacommit", "2.compaction.requested"], 1)
    assert timeline.find("1") == Instant("1", "1", "deltacommit", "completed")
    assert timeline.find("1", "savepoint") == Instant("1", "1", "savepoint", "completed")
    assert timeline.find("2", "commit") == Instant("2", None, "compaction", "requested")
    assert timeline.find("1", "commit") is None
    assert timeline.find("3") is None


def test_what_lies_before_the_active_timeline_is_archived_and_completed() -> None:
    timeline = Timeline.from_file_names(["5.clean", "6.deltacommit", "7.deltacommit.inflight", "8.deltacommit"], 1)
    assert timeline.first_active_time == "6"
    assert [time for time in "3456789" if timeline.is_committed(time)] == ["3", "4", "6", "8"]
    assert timeline.is_archived_before("5")
    assert not timeline.is_archived_before("6")


def test_savepoints_hold_instants_back_without_moving_the_beginning() -> None:
    timeline = Timeline.from_file_names(["1.commit", "1.savepoint", "5.commit", "6.commit"], 1)
    assert timeline.first_active_time == "5"
    assert timeline.is_committed("1")
    assert timeline.is_committed("3")
    assert Timeline.from_file_names(["1.commit", "1.savepoint"], 1).first_active_time == "1"


def test_an_unfinished_savepoint_says_nothing_of_its_commit() -> None:
    archived = Timeline.from_file_names(["1.savepoint.inflight", "5.commit", "6.commit"], 1)
    assert archived.is_committed("1")
    failed = Timeline.from_file_names(["1.commit", "1.savepoint.inflight", "5.commit", "6.commit"], 1)
    assert failed.first_active_time == "1"
    assert failed.is_committed("1")
    assert not failed.is_committed("3")
    assert failed.pending_times == set()
    begun = Timeline.from_file_names(["1.commit", "1.savepoint.inflight", "5.commit.requested", "6.clean.inflight"], 1)
    assert begun.pending_times == {"5", "6"}


def test_an_empty_timeline_has_no_beginning() -> None:
    timeline = Timeline()
    assert (timeline.last, timeline.first_active_time, len(timeline)) == (None, None, 0)
    assert not timeline.is_archived_before("1")
    assert not timeline.is_committed("1")


def test_timelines_compare_and_pickle() -> None:
    timeline = Timeline.from_file_names(["1_2.commit", "3.deltacommit.requested"], 2)
    timeline.is_committed("1")
    assert pickle.loads(pickle.dumps(timeline)) == timeline
    assert hash(timeline) == hash(Timeline(timeline, 2))
    assert timeline != Timeline(timeline, 1)
    assert "2 instants" in repr(timeline)


@given(st.lists(st.tuples(st.sampled_from("123"), st.sampled_from(ACTIONS), st.sampled_from(STATES)), max_size=20))
def test_order_of_the_listing_does_not_matter(entries: list[tuple[str, str, str]]) -> None:
    names = [Instant(t, t if s == "completed" else None, a, s).file_name(1) for t, a, s in entries]
    timeline = Timeline.from_file_names(names, 1)
    assert Timeline.from_file_names(reversed(names), 1) == timeline
    keys = [(one.request_time, one.comparable_action) for one in timeline]
    assert keys == sorted(set(keys))
    best = {(t, COMPLETED_ACTION.get(a, a)): 0 for t, a, s in entries}
    for t, a, s in entries:
        key = (t, COMPLETED_ACTION.get(a, a))
        best[key] = max(best[key], STATES.index(s))
    assert {(one.request_time, one.comparable_action): STATES.index(one.state) for one in timeline} == best


@pytest.mark.parametrize("name", corpus_names())
def test_timelines_of_reference_tables_hold_the_commits_known_about_them(name: str) -> None:
    case = load_case(name)
    files = [file for file in meta_files(name) if not file.is_metadata_table]
    config = TableConfig.from_bytes(next(file.data for file in files if file.name == "hoodie.properties"))
    names = [file.name for file in files if file.folder == config.find_timeline_folder()]
    timeline = Timeline.from_file_names(names, config.timeline_layout)
    timed = config.timeline_layout == 2
    found = {(one.request_time, one.action, one.state, one.completion_time if timed else "") for one in timeline}
    known = {
        (one["instant"], one["action"], one["state"], one["completion"] if timed else "")
        for one in case.get("commits", ())
    }
    assert known <= found
    assert {one.file_name(config.timeline_layout) for one in timeline} <= set(names)
    unknown = [one for one in names if parse_instant_file(one, config.timeline_layout) is None]
    assert unknown == ([] if timed else ["hoodie.properties"])
