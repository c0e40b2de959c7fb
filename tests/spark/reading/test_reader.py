"""Large slices have a partition each; small slices share partitions."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from hoodie_py.reader.file_slice import BaseFile, FileSlice, LogFile
from hoodie_py.spark.reading.reader import FULL, MOST, TINY, estimate_work, pack
from hoodie_py.table.scan.task import ScanTask


def task(base: int, *logs: int) -> Any:
    unknown: Any = None
    log_files = tuple(LogFile("log", size, unknown) for size in logs)
    file_slice = FileSlice("", "group", "1", BaseFile("base", base, "1", "group"), log_files)
    return ScanTask(file_slice, unknown, (), None, unknown)


SIZES = some.one_of(some.integers(0, 2 * TINY), some.integers(0, 100))
TASKS = some.lists(some.lists(SIZES, min_size=1, max_size=4).map(lambda sizes: task(*sizes)), max_size=200)


@given(TASKS)
def test_every_slice_is_read_once_and_large_ones_alone(tasks: list[Any]) -> None:
    packed = pack(tasks)
    assert Counter(map(id, tasks)) == Counter(id(each) for group in packed for each in group)
    assert all(len(group) == 1 for group in packed for each in group if each.size >= TINY)


@given(TASKS)
def test_groups_are_bounded_and_the_heaviest_come_first(tasks: list[Any]) -> None:
    packed = pack(tasks)
    weights = [sum(map(estimate_work, group)) for group in packed]
    assert weights == sorted(weights, reverse=True)
    assert all(group for group in packed)
    assert all(len(group) <= MOST for group in packed)
    assert all(total <= FULL or len(group) == 1 for group, total in zip(packed, weights, strict=True))


def test_a_thousand_tiny_slices_take_few_tasks() -> None:
    assert len(pack([task(4_000, 2_000)] * 1000)) == -(-1000 // MOST)


def test_log_bytes_weigh_more_than_base_bytes() -> None:
    assert estimate_work(task(0, 10)) == 3 * estimate_work(task(10))


def test_tasks_of_other_kinds_weigh_as_logs() -> None:
    changes: Any = SimpleNamespace(size=10)
    assert estimate_work(changes) == estimate_work(task(0, 10))


def test_no_slices_no_partitions() -> None:
    assert pack([]) == []
