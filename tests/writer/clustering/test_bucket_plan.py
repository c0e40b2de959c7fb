"""Which buckets split and merge, by sizes alone: against what Java's loops choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.formats.config.hashing_metadata import HashingMetadata, apply_changes
from hoodie_py.reader.file_slice import BaseFile, FileSlice
from hoodie_py.writer.clustering.bucket_plan import BucketGroup, ResizeSettings, plan_buckets

SETTINGS = ResizeSettings(split_bytes=100, merge_bytes=10, most=99, least=1)


def ring(count: int) -> HashingMetadata:
    return HashingMetadata.make_first("p", count)


def slices(ranges: HashingMetadata, sizes: Sequence[int | None]) -> list[FileSlice]:
    """A slice of each size for each range in turn; none for None."""
    return [
        FileSlice("p", file_id, "1", BaseFile(f"p/{file_id}_x_1.parquet", size, "1", file_id), ())
        for file_id, size in zip(ranges.file_ids, sizes, strict=True)
        if size is not None
    ]


def chosen(sizes: Sequence[int | None], settings: ResizeSettings = SETTINGS) -> list[tuple[list[int], int]]:
    """Places of the buckets of each group, and the number of its new ones."""
    ranges = ring(len(sizes))
    groups = plan_buckets(ranges, slices(ranges, sizes), settings)
    return [([ranges.file_ids.index(one.file_id) for one in each.slices], len(each.resize.file_ids)) for each in groups]


def test_large_buckets_split_and_small_neighbours_merge() -> None:
    assert chosen([500, 5, 5, 50, 101]) == [([0], 2), ([4], 2), ([1, 2], 1), ([3], 1)]


def test_the_ring_has_no_end() -> None:
    assert chosen([5, 50, 50, 5]) == [([3, 0], 1), ([1], 1), ([2], 1)]


def test_a_group_grows_until_it_is_larger_than_the_merge_size() -> None:
    assert chosen([50, 6, 6, 6, 50]) == [([1, 2], 1), ([0], 1), ([3], 1), ([4], 1)]


def test_a_range_without_files_lies_between_its_neighbours() -> None:
    assert chosen([5, None, 5, 50]) == [([0], 1), ([2], 1), ([3], 1)]


def test_numbers_of_buckets_are_kept() -> None:
    assert chosen([500, 600, 700], replace(SETTINGS, most=4)) == [([2], 2), ([0], 1), ([1], 1)]
    assert chosen([1] * 6, replace(SETTINGS, least=4)) == [([4, 5, 0], 1), ([1], 1), ([2], 1), ([3], 1)]
    assert chosen([500, 1, 1, 1], replace(SETTINGS, least=4)) == [([0], 2), ([1, 2], 1), ([3], 1)]


def test_limits_that_are_passed_already_stop_everything() -> None:
    assert [each[1] for each in chosen([500] * 3, replace(SETTINGS, most=2))] == [1] * 3
    assert [len(each[0]) for each in chosen([1] * 3, replace(SETTINGS, least=7))] == [1] * 3
    assert [len(each[0]) for each in chosen([500, 1, 1], replace(SETTINGS, most=None, least=None))] == [1] * 3


@pytest.mark.parametrize(("merges", "sorts", "found"), [(False, False, 1), (True, False, 2), (False, True, 5)])
def test_merging_and_sorting_can_be_left_out(merges: bool, sorts: bool, found: int) -> None:
    assert len(chosen([500, 5, 5, 50, 60], replace(SETTINGS, merges=merges, sorts=sorts))) == found


def _like_java(sizes: Sequence[int | None], most: int, least: int) -> list[list[int]]:
    """The merges that Java's loops make of a ring where nothing splits."""
    there = [place for place, size in enumerate(sizes) if size is not None]
    room, added, found = len(sizes) - least, set[int](), []
    if len(there) <= 1:
        return []
    for at, place in enumerate(there):
        if at in added or (sizes[place] or 0) > most:
            continue
        ends, total = [at, at], sizes[place] or 0
        for end, step, other in ((0, -1, 1), (1, 1, 0)):
            while True:
                beside = (ends[end] + step) % len(there)
                size = sizes[there[beside]] or 0
                near = (there[ends[end]] + step) % len(sizes) == there[beside]
                if not room or beside in added or not near or total > most or size > most or beside == ends[other]:
                    break
                total, room = total + size, room - 1
                ends[end] = beside
                if beside == at:
                    break
        if ends != [at, at]:
            count = (ends[1] - ends[0]) % len(there) + 1
            members = [(ends[0] + step) % len(there) for step in range(count)]
            added.update(members)
            found.append([there[each] for each in members])
    return found


@given(
    sizes=st.lists(st.none() | st.integers(0, 20), min_size=1, max_size=9),
    most=st.integers(0, 25),
    least=st.integers(1, 9),
)
def test_merges_are_those_of_java(sizes: list[int | None], most: int, least: int) -> None:
    if least > len(sizes):
        return  # Java takes it for no limit
    settings = ResizeSettings(split_bytes=1000, merge_bytes=most, most=9, least=least, sorts=False)
    assert [each[0] for each in chosen(sizes, settings)] == _like_java(sizes, most, least)


@pytest.mark.parametrize(("count", "most", "least"), [(4, 6, 2), (8, 8, 2), (1, 6, 1), (None, 6, 2)])
def test_limits_that_exclude_the_number_of_buckets_are_that_number(count: int | None, most: int, least: int) -> None:
    options = {"hoodie.bucket.index.max.num.buckets": "6", "hoodie.bucket.index.min.num.buckets": "2"}
    if count is not None:
        options["hoodie.bucket.index.num.buckets"] = str(count)
    settings = ResizeSettings.from_options(options, 1000, only_splits=False)
    assert (settings.most, settings.least) == (most, least)


@given(sizes=st.lists(st.none() | st.integers(0, 300), min_size=1, max_size=9), least=st.integers(1, 9))
def test_the_changes_make_a_ring_of_allowed_size(sizes: list[int | None], least: int) -> None:
    ranges = ring(len(sizes))
    settings = replace(SETTINGS, most=10, least=least)
    groups: list[BucketGroup] = plan_buckets(ranges, slices(ranges, sizes), settings)
    new = apply_changes(ranges, [one for each in groups for one in each.resize.changes], "2")
    assert min(least, len(sizes)) <= len(new.bounds) <= 10
    taken = [piece.file_id for each in groups for piece in each.slices]
    assert len(taken) == len(set(taken)) == sum(size is not None for size in sizes)
