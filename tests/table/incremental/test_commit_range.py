"""Which commits lie between two times."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.files import TableFiles
from hoodie_py.formats.timeline.instants import Instant
from hoodie_py.formats.timeline.replace_plan import (
    ClusteringGroup,
    ClusteringSlice,
    RequestedReplace,
    write_clustering_plan,
)
from hoodie_py.table.incremental.commit_range import find_first_pending, resolve_range
from hoodie_py.table.timeline.loader import TableTimeline, load_config
from tests.table.archives import add_to_archive
from tests.table.tables import V6, make_table
from tests.watched_requests import Request

DAY = "20261125"


def at(clock: str) -> str:
    return f"{DAY}{clock}000"


# Requested in this order; the second one completed last.
V9_FILES = [f"{at('100000')}_{at('100001')}", f"{at('100002')}_{at('100009')}", f"{at('100004')}_{at('100005')}"]
V9_TIMES = [name.split("_") for name in V9_FILES]
HOLES = "hoodie.read.timeline.holes.resolution.policy"


def open_timeline(root: Path) -> TableTimeline:
    files = TableFiles.open(str(root))
    return TableTimeline.load(files, load_config(files))


@pytest.fixture
def v9(tmp_path: Path) -> TableTimeline:
    names = {f".hoodie/timeline/{name}.deltacommit": b"" for name in V9_FILES}
    names |= {
        f".hoodie/timeline/{times[0]}.deltacommit.{state}": b""
        for times in V9_TIMES
        for state in ("requested", "inflight")
    }
    return open_timeline(make_table(tmp_path, names))


@pytest.fixture
def v6(tmp_path: Path) -> TableTimeline:
    names = {f".hoodie/{times[0]}.deltacommit": b"{}" for times in V9_TIMES}
    return open_timeline(make_table(tmp_path, names, **V6))


def numbers(timeline: TableTimeline, *args: Any, **options: Any) -> list[int]:
    """Which of the three commits lie in a range."""
    requested = [times[0] for times in V9_TIMES]
    return [requested.index(each.request_time) for each in resolve_range(timeline, *args, **options).commits]


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        ("earliest", None, [0, 1, 2]),
        (None, None, [0, 1, 2]),
        ("000", None, [0, 1, 2]),
        (at("100001"), None, [1, 2]),
        (at("100000"), at("100001"), [0]),
        (at("100001"), at("100005"), [2]),
        (at("100005"), None, [1]),
        (at("100009"), None, []),
        ("2099", None, []),
        (at("100005"), at("100005"), []),
        ("2026-11-25 10:00:05", None, [1]),
        ("2026-11-25 10:00:01", "2026-11-25 10:00:05", [2]),
        (datetime.datetime(2026, 11, 25, 10, 0, 1), datetime.datetime(2026, 11, 25, 10, 0, 5), [2]),
        ("2026-11-25", "2026-11-26", [0, 1, 2]),
    ],
)
def test_completion_times_since_version_8(v9: TableTimeline, start: Any, end: Any, found: list[int]) -> None:
    assert numbers(v9, start, end) == found


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        ("000", None, [0, 1, 2]),
        (at("100000"), None, [1, 2]),
        (at("100001"), at("100002"), [1]),
        (at("100004"), None, []),
    ],
)
def test_request_times_up_to_version_6(v6: TableTimeline, start: str, end: str | None, found: list[int]) -> None:
    assert numbers(v6, start, end) == found


def test_the_position_is_where_the_next_range_starts(v9: TableTimeline, v6: TableTimeline) -> None:
    assert resolve_range(v9, at("100001"), at("100005")).position == at("100005")
    assert resolve_range(v9).position == at("100009")
    assert resolve_range(v9, "2099").position == "2099"
    assert resolve_range(v6).position == at("100004")


def test_an_end_before_the_start_names_what_can_be_had(v9: TableTimeline) -> None:
    with pytest.raises(InvalidQueryError, match=f"from {at('100001')} to {at('100009')}"):
        resolve_range(v9, at("100005"), at("100001"))


def test_digits_stay_as_they_are(v9: TableTimeline) -> None:
    for time in ("1", "1" * 32):
        assert resolve_range(v9, time).start == time


@pytest.mark.parametrize("time", ["yesterday", "2026-13-01", "-1", "1" * 33, ""])
def test_what_is_no_time_is_refused(v9: TableTimeline, time: str) -> None:
    with pytest.raises(InvalidQueryError, match="is not an instant"):
        resolve_range(v9, time)


def test_options_choose_the_times(v9: TableTimeline, v6: TableTimeline) -> None:
    key = "hoodie.datasource.read.incr.table.version"
    assert numbers(v9, at("100001"), at("100004"), {key: "6"}) == [1, 2]
    for version in ("8", "9"):
        assert numbers(v9, at("100001"), at("100004"), {key: version}) == []
        with pytest.raises(UnsupportedFeatureError, match="does not store"):
            resolve_range(v6, options={key: version})
    assert numbers(v6, at("100001"), at("100004"), {key: "6"}) == [1, 2]


@pytest.mark.parametrize(("version", "by_request_time"), [("6", True), ("8", False), ("9", False)])
def test_which_times_a_table_compares(tmp_path: Path, version: str, by_request_time: bool) -> None:
    layout = {"hoodie.table.version": version, "hoodie.timeline.layout.version": "1" if version == "6" else "2"}
    assert resolve_range(open_timeline(make_table(tmp_path, **layout))).by_request_time == by_request_time


def test_compactions_are_left_out_on_demand(tmp_path: Path) -> None:
    names = {
        f".hoodie/timeline/{name}.{action}": b""
        for name, action in zip(V9_FILES, ("deltacommit", "commit", "deltacommit"), strict=True)
    }
    timeline = open_timeline(make_table(tmp_path, names))
    assert numbers(timeline) == [0, 1, 2]
    assert numbers(timeline, options={"hoodie.datasource.read.incr.skip_compact": "true"}) == [0, 2]


def test_an_unfinished_commit_before_completed_ones_is_a_hole_of_request_times(tmp_path: Path) -> None:
    first, second, third = (times[0] for times in V9_TIMES)
    names = {f".hoodie/{first}.deltacommit": b"{}", f".hoodie/{third}.deltacommit": b"{}"}
    names |= {f".hoodie/{second}.deltacommit.requested": b"", f".hoodie/{second}.deltacommit.inflight": b""}
    timeline = open_timeline(make_table(tmp_path, names, **V6))
    with pytest.raises(InvalidQueryError, match=f"{second} has not finished"):
        resolve_range(timeline, "000", first)
    blocked = resolve_range(timeline, "000", None, {HOLES: "BLOCK"})
    assert (blocked.hole, blocked.position) == (second, first)
    assert numbers(timeline, "000", None, {HOLES: "USE_TRANSITION_TIME"}) == [0, 2]
    for span in (("000", third), (first, None), (at("100001"), None)):
        with pytest.raises(UnsupportedFeatureError, match="USE_TRANSITION_TIME"):
            resolve_range(timeline, *span, {HOLES: "USE_TRANSITION_TIME"})


@pytest.mark.parametrize("done", [0, 1])
def test_an_unfinished_commit_after_all_completed_ones_is_no_hole(tmp_path: Path, done: int) -> None:
    first, second, _ = (times[0] for times in V9_TIMES)
    names = {f".hoodie/{first}.deltacommit": b"{}"} if done else {}
    timeline = open_timeline(make_table(tmp_path, {**names, f".hoodie/{second}.deltacommit.requested": b""}, **V6))
    found = resolve_range(timeline, "000")
    assert (len(found.commits), found.hole) == (done, None)


def test_which_ends_lie_before_the_active_timeline(v6: TableTimeline) -> None:
    first = V9_TIMES[0][0]
    for start, end, archived in (
        (at("095959"), at("095959"), (True, True)),
        (at("095959"), first, (True, False)),
        (first, None, (False, False)),
    ):
        found = resolve_range(v6, start, end)
        assert (found.starts_archived, found.ends_archived) == archived


def test_a_range_as_text(v6: TableTimeline) -> None:
    assert str(resolve_range(v6)) == "(earliest, now]"
    assert str(resolve_range(v6, "1", "2")) == "(1, 2]"


def test_an_unfinished_commit_is_no_hole_of_completion_times(tmp_path: Path) -> None:
    names = {f".hoodie/timeline/{V9_FILES[0]}.deltacommit": b"", f".hoodie/timeline/{V9_FILES[2]}.deltacommit": b""}
    names |= {f".hoodie/timeline/{V9_TIMES[1][0]}.deltacommit.requested": b""}
    assert numbers(open_timeline(make_table(tmp_path, names))) == [0, 2]


def test_a_table_without_commits_has_empty_ranges(tmp_path: Path) -> None:
    assert resolve_range(open_timeline(make_table(tmp_path))).commits == ()


@pytest.mark.parametrize(
    ("start", "consulted"),
    [
        ("000", True),
        (at("100001"), True),
        ("20261126095959999", True),
        ("20261126100000999", True),
        ("20261126100001000", False),
        ("20261127", False),
    ],
)
def test_the_archive_is_read_where_a_commit_may_have_taken_a_day(
    v9: TableTimeline, start: str, consulted: bool, tmp_path: Path, requests_made: list[Request]
) -> None:
    """An archived commit was requested before the active ones, and may have completed long after them."""
    slow = Instant("20261125095959000", "20261126095958000", "deltacommit", "completed")
    add_to_archive(tmp_path, v9.config, [slow])
    found = resolve_range(v9, start)
    assert any("/history" in each.path for each in requests_made) == consulted
    assert found.has_archived == (start < "20261126095958000")


def test_what_was_archived_since_the_listing_is_not_there_twice(v9: TableTimeline, tmp_path: Path) -> None:
    later = Instant(at("110000"), at("110001"), "deltacommit", "completed")
    both = Instant(V9_TIMES[0][0], V9_TIMES[0][1], "deltacommit", "completed")
    add_to_archive(tmp_path, v9.config, [both, later])
    assert numbers(v9) == [0, 1, 2]
    assert not resolve_range(v9).has_archived


@pytest.mark.parametrize("is_clustering", [True, False])
def test_a_pending_clustering_of_version_6_is_no_hole(tmp_path: Path, is_clustering: bool) -> None:
    """Only its plan tells it from an insert overwrite, whose rows would come into a range that was read."""
    first, second, third = (times[0] for times in V9_TIMES)
    group = ClusteringGroup((ClusteringSlice("f-0", "p", "f-0_0-0-0_1.parquet", ()),), 1)
    plan = write_clustering_plan(RequestedReplace("CLUSTER", (group,)), "file:///t") if is_clustering else b""
    names: dict[str, Any] = {f".hoodie/{first}.deltacommit": b"{}", f".hoodie/{third}.deltacommit": b"{}"}
    names |= {f".hoodie/{second}.replacecommit.requested": plan, f".hoodie/{second}.replacecommit.inflight": b""}
    timeline = open_timeline(make_table(tmp_path, names, **V6))
    assert find_first_pending(timeline) == (None if is_clustering else second)
    if is_clustering:
        assert numbers(timeline, "000") == [0, 2]
    else:
        with pytest.raises(InvalidQueryError, match=f"{second} has not finished"):
            resolve_range(timeline, "000")


def test_a_pending_clustering_of_version_6_hides_no_later_hole(tmp_path: Path) -> None:
    first, second, third = (times[0] for times in V9_TIMES)
    group = ClusteringGroup((ClusteringSlice("f-0", "p", "f-0_0-0-0_1.parquet", ()),), 1)
    plan = write_clustering_plan(RequestedReplace("CLUSTER", (group,)), "file:///t")
    names = {f".hoodie/{first}.replacecommit.requested": plan, f".hoodie/{second}.deltacommit.requested": b""}
    timeline = open_timeline(make_table(tmp_path, {**names, f".hoodie/{third}.deltacommit": b"{}"}, **V6))
    assert find_first_pending(timeline) == second
    with pytest.raises(InvalidQueryError, match=f"{second} has not finished"):
        resolve_range(timeline, "000")


def test_pending_compactions_are_no_holes(tmp_path: Path) -> None:
    first, second, _ = (times[0] for times in V9_TIMES)
    names = {f".hoodie/{first}.compaction.requested": b"", f".hoodie/{second}.deltacommit.requested": b""}
    assert find_first_pending(open_timeline(make_table(tmp_path / "t", names, **V6))) == second
