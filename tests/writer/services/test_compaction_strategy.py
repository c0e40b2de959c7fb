from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from hoodie_py.errors import InvalidQueryError
from hoodie_py.formats.timeline.plans import CompactionOperation
from hoodie_py.writer.services.compaction_strategy import (
    STRATEGIES,
    Candidates,
    Choice,
    choose_operations,
    measure_operation,
)
from hoodie_py.writer.settings import PlanSettings

MB = 1 << 20
TODAY = date(2026, 3, 10)


def operation(
    file_id: str, partition: str = "", *, logs: tuple[int, ...] = (1,), base: int | None = 1
) -> CompactionOperation:
    names = tuple(f".{file_id}_20260101000000000.log.{index}_0-0-0" for index, _ in enumerate(logs, 1))
    return CompactionOperation(
        "20260101000000000", file_id, partition, None, names, measure_operation(base, list(logs), 120 * MB)
    )


def choice(
    strategy: str, *operations: CompactionOperation, partitions: tuple[str, ...] = (), **settings: Any
) -> Choice:
    every = partitions or tuple({each.partition_path for each in operations})
    return choose_operations(
        Candidates(operations, every, TODAY), PlanSettings(strategies=tuple(strategy.split(",")), **settings)
    )


def ids(found: Choice) -> list[str]:
    return [each.file_id for each in found.taken]


def test_metrics_are_those_that_java_records() -> None:
    assert measure_operation(5 * MB + 1, [MB, MB, 7], 120 * MB) == {
        "TOTAL_LOG_FILES": 3.0, "TOTAL_LOG_FILES_SIZE": 2.0 * MB + 7, "TOTAL_IO_READ_MB": 7.0,
        "TOTAL_IO_WRITE_MB": 5.0, "TOTAL_IO_MB": 12.0,
    }  # fmt: skip
    assert measure_operation(None, [10], 120 * MB)["TOTAL_IO_WRITE_MB"] == 120.0


def test_most_log_bytes_first_within_the_io() -> None:
    operations = [operation("a", logs=(5 * MB,)), operation("b", logs=(9 * MB,)), operation("c", logs=(7 * MB,))]
    assert ids(choice("LogFileSizeBasedCompactionStrategy", *operations)) == ["b", "c", "a"]
    bounded = choice("LogFileSizeBasedCompactionStrategy", *operations, target_io_mb=10)
    assert ids(bounded) == ["b", "c"]
    assert bounded.left_out == {("", "a"): "the plan's 10 MB of IO are used up"}
    threshold = choice("LogFileSizeBasedCompactionStrategy", *operations, log_size_threshold=7 * MB)
    assert ids(threshold) == ["b", "c"]
    assert "less than" in threshold.left_out["", "a"]


def test_most_log_files_first() -> None:
    operations = [operation("a", logs=(1,)), operation("b", logs=(1, 1, 1)), operation("c", logs=(1, 1))]
    assert ids(choice("LogFileNumBasedCompactionStrategy", *operations)) == ["b", "c", "a"]
    assert ids(choice("LogFileNumBasedCompactionStrategy", *operations, log_number_threshold=2)) == ["b", "c"]


def test_bounded_io_keeps_the_order() -> None:
    operations = [operation("a", logs=(5 * MB,)), operation("b", logs=(9 * MB,))]
    assert ids(choice("BoundedIOCompactionStrategy", *operations, target_io_mb=5)) == ["a"]
    assert ids(choice("BoundedIOCompactionStrategy", *operations, target_io_mb=0)) == []
    assert ids(choice("UnBoundedCompactionStrategy", *operations, target_io_mb=0)) == ["a", "b"]


DAYS = [
    operation(day, day) for day in ("2026/03/11", "2026/03/09", "2026/03/01", "2026/02/27", "year=2025/month=1/day=1")
]


def test_the_newest_days() -> None:
    found = choice("DayBasedCompactionStrategy", *DAYS[::-1], target_partitions=2)
    assert ids(found) == ["2026/03/11", "2026/03/09"]
    assert len(found.left_out) == 3
    partitions = ("2026/03/20", "2026/03/11", "2026/03/09")
    assert ids(choice("DayBasedCompactionStrategy", *DAYS[:2], partitions=partitions, target_partitions=2)) == [
        "2026/03/11"
    ]


def test_days_from_some_days_ago_on_and_the_others() -> None:
    recent = choice("BoundedPartitionAwareCompactionStrategy", *DAYS, target_partitions=9)
    older = choice("UnBoundedPartitionAwareCompactionStrategy", *DAYS, target_partitions=9)
    assert ids(recent) == ["2026/03/11", "2026/03/09", "2026/03/01"]
    assert sorted(ids(older)) == ["2026/02/27", "year=2025/month=1/day=1"]


@pytest.mark.parametrize("partition", ["", "p0", "2026/13/01", "2026/03"])
def test_partitions_that_are_no_days_are_refused(partition: str) -> None:
    with pytest.raises(InvalidQueryError, match="is no day"):
        choice("DayBasedCompactionStrategy", operation("a", partition))


def test_partitions_that_match() -> None:
    operations = [operation("a", "city=a/x"), operation("b", "city=b/x")]
    found = choice("PartitionRegexBasedCompactionStrategy", *operations, partition_regex="=b")
    assert ids(found) == ["b"]
    assert found.left_out == {("city=a/x", "a"): "its partition does not match '=b'"}
    for pattern in (None, "("):
        with pytest.raises(InvalidQueryError, match="pattern"):
            choice("PartitionRegexBasedCompactionStrategy", *operations, partition_regex=pattern)


def test_strategies_apply_in_turn() -> None:
    both = "PartitionRegexBasedCompactionStrategy,LogFileNumBasedCompactionStrategy"
    operations = [operation("a", "x"), operation("b", "x", logs=(1, 1)), operation("c", "y", logs=(1, 1, 1))]
    assert ids(choice(both, *operations, partition_regex="x")) == ["b", "a"]


@pytest.mark.parametrize("strategy", ["", "Nope", "org.apache.hudi.Other"])
def test_unknown_strategies_are_refused(strategy: str) -> None:
    with pytest.raises(InvalidQueryError, match="strategy") as caught:
        choice(strategy, operation("a"))
    assert all(name in str(caught.value) for name in STRATEGIES)
