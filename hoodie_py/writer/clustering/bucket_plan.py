"""Choose which buckets of a partition a clustering splits, merges and writes anew (Hudi
``BaseConsistentHashingBucketClusteringPlanStrategy``).

* A bucket whose files are larger than the split size is halved, the largest first, up to the most buckets.
* Of the others, those that follow each other on the ring and are no larger than the merge size become one, until that
  one is larger, down to the least number of buckets. Each group grows to lower hashes first, then to higher ones.
* The rest is written anew, each bucket into one new file group, unless the options say not to.

Java takes a limit that is passed already for none; here nothing is split then, or merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hoodie_py.formats.config.hashing_metadata import (
    GroupResize,
    HashingMetadata,
    RangeChange,
    make_file_id,
    merge_ranges,
    split_range,
)
from hoodie_py.options import clustering as keys
from hoodie_py.options import write as write_keys
from hoodie_py.reader.file_slice import FileSlice


@dataclass(frozen=True, slots=True)
class ResizeSettings:
    """Hold when buckets split and merge; sizes are in bytes of all files of a slice. ``most`` and ``least`` numbers of
    buckets, None: the number of the partition's first ones. ``merges`` and ``sorts``: whether buckets are merged, and
    whether the rest is written anew.
    """

    split_bytes: int
    merge_bytes: int
    most: int | None
    least: int | None
    merges: bool = True
    sorts: bool = True

    @classmethod
    def from_options(cls, options: Mapping[str, str], file_bytes: int, *, only_splits: bool) -> ResizeSettings:
        """Resolve the options. ``file_bytes`` is the largest size of a base file.

        Raises:
            InvalidQueryError: a value is out of range.
        """
        count = write_keys.BUCKET_COUNT.read_given(options)
        single = keys.SINGLE_GROUPS.read(options) or bool(keys.SORT_COLUMNS.read(options))
        most, least = write_keys.BUCKET_MOST.read_given(options), write_keys.BUCKET_LEAST.read_given(options)
        return cls(
            split_bytes=int(file_bytes * write_keys.BUCKET_SPLIT.read(options)),
            merge_bytes=int(file_bytes * write_keys.BUCKET_MERGE.read(options)),
            # Java takes limits that exclude the number of buckets for that number (HoodieIndexConfig).
            most=count if most is None else max(most, count or most),
            least=count if least is None else min(least, count or least),
            merges=not only_splits,
            sorts=single and not only_splits,
        )


@dataclass(frozen=True, slots=True)
class BucketGroup:
    """Buckets that a group of the plan takes, and what becomes of them."""

    slices: tuple[FileSlice, ...]
    resize: GroupResize


def plan_buckets(ranges: HashingMetadata, slices: Sequence[FileSlice], settings: ResizeSettings) -> list[BucketGroup]:
    """Return the groups of a partition: splits, then merges, then buckets that are only written anew. Each slice is of
    one of the ranges.
    """
    places = {file_id: at for at, file_id in enumerate(ranges.file_ids)}
    ring = sorted(slices, key=lambda each: places[each.file_id])
    splits = _choose_splits(ranges, places, ring, settings)
    taken = {each.slices[0].file_id for each in splits}
    merges = _choose_merges(ranges, places, taken, ring, len(splits), settings) if settings.merges else []
    taken |= {piece.file_id for each in merges for piece in each.slices}
    rest = [each for each in ring if each.file_id not in taken] if settings.sorts else []
    return [*splits, *merges, *(_group(ranges, [each], _replace(ranges, places[each.file_id])) for each in rest)]


def measure_slice(file_slice: FileSlice) -> int:
    """Return the bytes of all files of a slice (Hudi ``FileSlice.getTotalFileSize``)."""
    base = 0 if file_slice.base_file is None else file_slice.base_file.size
    return base + sum(each.size for each in file_slice.log_files)


def _choose_splits(
    ranges: HashingMetadata, places: Mapping[str, int], ring: Sequence[FileSlice], settings: ResizeSettings
) -> list[BucketGroup]:
    most = ranges.first_buckets if settings.most is None else settings.most
    room = max(0, most - len(ranges.bounds))
    found: list[BucketGroup] = []
    for each in sorted(ring, key=measure_slice, reverse=True):
        changes = split_range(ranges, places[each.file_id])
        if len(found) < room and changes and measure_slice(each) > settings.split_bytes:
            found.append(_group(ranges, [each], changes))
    return found


def _choose_merges(
    ranges: HashingMetadata,
    places: Mapping[str, int],
    taken: set[str],
    ring: Sequence[FileSlice],
    added: int,
    settings: ResizeSettings,
) -> list[BucketGroup]:
    """Merge small neighbours. ``taken`` are buckets that split, which add ``added`` ones."""
    least = ranges.first_buckets if settings.least is None else settings.least
    room = max(0, len(ranges.bounds) + added - least)
    count, most = len(ranges.bounds), settings.merge_bytes
    sizes = {places[each.file_id]: measure_slice(each) for each in ring if each.file_id not in taken}
    by_place = {places[each.file_id]: each for each in ring}
    free = {place for place, size in sizes.items() if size <= most}
    found: list[BucketGroup] = []
    for place in sorted(free):
        if place not in free:
            continue
        chosen, total = [place], sizes[place]
        free.remove(place)
        for step in (-1, 1):
            while room and total <= most:
                neighbour = (chosen[0 if step < 0 else -1] + step) % count
                if neighbour not in free:
                    break
                free.remove(neighbour)
                chosen.insert(0 if step < 0 else len(chosen), neighbour)
                total += sizes[neighbour]
                room -= 1
        if len(chosen) > 1:
            found.append(_group(ranges, [by_place[each] for each in chosen], merge_ranges(ranges, chosen)))
    return found


def _replace(ranges: HashingMetadata, at: int) -> tuple[RangeChange, ...]:
    return (RangeChange(ranges.bounds[at], make_file_id()),)


def _group(ranges: HashingMetadata, slices: Sequence[FileSlice], changes: tuple[RangeChange, ...]) -> BucketGroup:
    return BucketGroup(tuple(slices), GroupResize(ranges.partition_path, ranges.number, changes))
