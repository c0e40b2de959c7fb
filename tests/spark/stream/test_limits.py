"""Limits of a batch: whole commits, at least one, and services that count nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="NOT TESTED: pyspark is not installed")

from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.formats.timeline.commit_metadata import CommitMetadata, WriteStat
from hoodie_py.formats.timeline.instants import COMPLETED, Instant
from hoodie_py.spark.stream import limits
from hoodie_py.spark.stream.limits import Limits, Load, choose_end
from hoodie_py.table.incremental.commit_range import CommitRange, RangeCommit

COMMITS = st.lists(
    st.tuples(st.integers(1, 30), st.integers(0, 4), st.integers(0, 50), st.booleans()), max_size=40
)  # completion time, files, bytes of each, whether it is a service
MOST = st.none() | st.integers(1, 60)
TIMELINE: Any = SimpleNamespace(config=SimpleNamespace(is_merge_on_read=True))


def describe(files: int, size: int, service: bool) -> CommitMetadata:
    stats = tuple(WriteStat(None, f"f{number}", total_write_bytes=size) for number in range(files))
    return CommitMetadata(operation_type="COMPACT" if service else "UPSERT", write_stats={"": stats})


@given(COMMITS, MOST, MOST, MOST)
def test_batches_are_as_large_as_the_limits_allow(
    commits: list[tuple[int, int, int, bool]], most: int | None, files: int | None, size: int | None
) -> None:
    asked = Limits(most, files, size)
    found = {f"{n:03}": describe(*commit[1:]) for n, commit in enumerate(commits)}
    instants = tuple(
        RangeCommit(Instant(f"{n:03}", f"{commit[0]:03}", "deltacommit", COMPLETED)) for n, commit in enumerate(commits)
    )

    def read(_: Any, span: CommitRange) -> list[CommitMetadata]:
        return [found[each.request_time] for each in span.commits]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "read_range_metadata", read)
        position, ends = "", []
        while left := tuple(each for each in instants if (each.instant.completion_time or "") > position):
            end = choose_end(TIMELINE, CommitRange(position, None, left, False), asked)
            assert end > position
            inside = [each for each in left if (each.instant.completion_time or "") <= end]
            loads = [(each.instant.completion_time, Load.of(found[each.request_time])) for each in inside]
            total = sum((load for _, load in loads), Load())
            first = next((time for time, load in sorted(loads, key=lambda pair: pair[0] or "") if load.commits), None)
            assert asked.admits(total) or all(load.commits == 0 or time == first for time, load in loads)
            position = end
            ends.append(end)
        assert len(ends) == len(set(ends))


def test_a_batch_ends_with_a_log_compaction_unless_it_is_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: Any, span: CommitRange) -> list[CommitMetadata]:
        return [CommitMetadata("LOG_COMPACT" if each.request_time == "2" else "UPSERT") for each in span.commits]

    monkeypatch.setattr(limits, "read_range_metadata", read)
    commits = tuple(RangeCommit(Instant(time, time, "deltacommit", COMPLETED)) for time in "1234")
    span = CommitRange("", None, commits, False)
    assert choose_end(TIMELINE, span, Limits()) == "2"
    assert choose_end(TIMELINE, span, Limits(9)) == "2"
    assert choose_end(TIMELINE, span, Limits(9), least="1") == "4"
    assert choose_end(TIMELINE, span, Limits(), least="1") == "4"
    assert choose_end(TIMELINE, span, Limits(1), least="3") == "3"


def test_a_limit_is_a_number() -> None:
    assert not Limits.parse({})
    assert Limits.parse({"maxcommitspertrigger": "2"}) == Limits(2)
    assert Limits.parse({"maxfilespertrigger": "2", "maxbytespertrigger": "7"}) == Limits(None, 2, 7)
