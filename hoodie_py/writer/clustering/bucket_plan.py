"""Choose which buckets of a partition a clustering splits, merges and writes anew, and where their rows go.

``plan_buckets`` makes the groups of a plan, ``find_resize`` reads the ranges of hashes from a plan. Rows go to the
bucket of their keys' hashes, where writers look for them later (Hudi
``SparkConsistentBucketClusteringExecutionStrategy``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hoodie_py.arrow.arrays import from_numpy
from hoodie_py.errors import ConflictError, HoodieError, InvalidTableError
from hoodie_py.formats.config import hashing_metadata
from hoodie_py.formats.config.hashing_metadata import GroupResize, HashingMetadata, RangeChange
from hoodie_py.formats.timeline.replace_plan import ClusteringGroup, RequestedReplace
from hoodie_py.options import clustering as keys
from hoodie_py.options import write as write_keys
from hoodie_py.options.write import BUCKET_HASH_FIELD
from hoodie_py.reader.file_slice import FileSlice
from hoodie_py.reader.record.record_key import RecordKeys
from hoodie_py.table.snapshot import Snapshot
from hoodie_py.table.view.visibility import GroupKey
from hoodie_py.writer.index.bucket import find_hash_ranges
from hoodie_py.writer.transaction.hash_ranges import load_hash_ranges


@dataclass(frozen=True, slots=True)
class BucketTargets:
    """The new file groups of a group of the plan; ``ranges`` are those after the clustering. ``hash_fields`` are those
    of the key that choose the bucket.
    """

    ranges: HashingMetadata
    file_ids: tuple[str, ...]
    hash_fields: tuple[str, ...]
    keys: RecordKeys

    def divide(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Divide rows among the file groups, and keep their order.

        Raises:
            InvalidTableError: a key lies in another bucket than its hash says.
        """
        for batch in batches:
            owners = self._find_owners(batch)
            for number, file_id in enumerate(self.file_ids):
                at = np.flatnonzero(owners == number)
                if len(at):
                    yield file_id, batch if len(at) == batch.num_rows else batch.take(from_numpy(at))

    def _find_owners(self, batch: pa.RecordBatch) -> np.ndarray:
        keys = self.keys.read_keys(batch)
        places = find_hash_ranges(pa.chunked_array([keys]), self.hash_fields, self.ranges.bounds)
        numbers = {file_id: number for number, file_id in enumerate(self.file_ids)}
        by_place = np.array([numbers.get(each, -1) for each in self.ranges.file_ids], np.int64)
        owners: np.ndarray = by_place[places]
        astray = np.flatnonzero(owners < 0)
        if len(astray):
            raise InvalidTableError(
                "A key lies in another bucket than its hash says, so its bucket cannot be split or merged.",
                key=keys[int(astray[0])].as_py()[:200],
                hint=f"Set {BUCKET_HASH_FIELD} to what the table was written with.",
            )
        return owners


_HINT = "Roll the clustering back and schedule a new one."


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

    The rules (Hudi ``BaseConsistentHashingBucketClusteringPlanStrategy``):

    * A bucket whose files are larger than the split size is halved, the largest first, up to the most buckets.
    * Other buckets that follow each other on the ring and are no larger than the merge size become one, until that one
      is larger, down to the least number of buckets. Each group grows to lower hashes first, then to higher ones.
    * The rest is written anew, each bucket into one new file group, unless the options say not to.

    Java takes a limit that is passed already for none; here nothing is split then, or merged.
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
        changes = hashing_metadata.split_range(ranges, places[each.file_id])
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
            found.append(
                _group(ranges, [by_place[each] for each in chosen], hashing_metadata.merge_ranges(ranges, chosen))
            )
    return found


def _replace(ranges: HashingMetadata, at: int) -> tuple[RangeChange, ...]:
    return (RangeChange(ranges.bounds[at], hashing_metadata.make_file_id()),)


def _group(ranges: HashingMetadata, slices: Sequence[FileSlice], changes: tuple[RangeChange, ...]) -> BucketGroup:
    return BucketGroup(tuple(slices), GroupResize(ranges.partition_path, ranges.number, changes))


@dataclass(frozen=True, slots=True)
class Resize:
    """The ranges of each partition after a clustering, by partition path, and the changes of each group of its plan."""

    ranges: Mapping[str, HashingMetadata]
    groups: tuple[GroupResize, ...]

    def find_heirs(self, plan: RequestedReplace) -> dict[GroupKey, frozenset[str]]:
        """Return the file ids that the rows of each file group go to."""
        return {
            (piece.partition_path, piece.file_id): frozenset(resize.file_ids)
            for group, resize in zip(plan.groups or (), self.groups, strict=True)
            for piece in group.slices
        }

    def make_targets(self, snapshot: Snapshot, options: Mapping[str, str]) -> list[BucketTargets]:
        """Return where the rows of each group go."""
        config = snapshot.config
        keys = RecordKeys.of(config.populate_meta_fields, config.record_key_fields)
        fields = BUCKET_HASH_FIELD.read(options) or config.record_key_fields
        return [
            BucketTargets(self.ranges[each.partition_path], each.file_ids, tuple(fields), keys) for each in self.groups
        ]


def find_resize(snapshot: Snapshot, plan: RequestedReplace, instant: str) -> Resize | None:
    """Return what a plan does to ranges; None if it says nothing of them.

    Each hash of a planned file group must belong to a new file group of the same group of the plan, and no other hash
    may move: else keys would lie where no writer looks for them (Hudi
    ``HoodieSparkConsistentBucketIndex.updateLocation``).

    Raises:
        ConflictError: the ranges have changed since the plan was made.
        InvalidTableError: the plan does not fit them.
        HoodieError: see ``load_hash_ranges``.
    """
    groups = plan.groups or ()
    try:
        found = [GroupResize.from_extra(each.extra) for each in groups]
        changes = [each for each in found if each is not None]
        if not changes:
            return None
        if len(changes) < len(groups):
            raise InvalidTableError("Invalid plan: a group of the clustering plan says nothing of ranges of hashes.")
        ranges = {
            partition: _apply(
                snapshot,
                partition,
                [pair for pair in zip(groups, changes, strict=True) if pair[1].partition_path == partition],
                instant,
            )
            for partition in sorted({each.partition_path for each in changes})
        }
    except HoodieError as error:
        raise error.locate(instant=instant) from error.__cause__
    return Resize(ranges, tuple(changes))


def _apply(
    snapshot: Snapshot, partition: str, groups: Sequence[tuple[ClusteringGroup, GroupResize]], instant: str
) -> HashingMetadata:
    old = load_hash_ranges(snapshot, partition)
    if old is None:
        raise InvalidTableError("Invalid plan: a partition has no ranges of hashes.", partition=partition or None)
    if any(resize.number != old.number for _, resize in groups):
        raise ConflictError(
            "The ranges of hashes of a partition have changed since the clustering was planned.",
            partition=partition or None,
            hint=_HINT,
        )
    new = hashing_metadata.apply_changes(old, [change for _, resize in groups for change in resize.changes], instant)
    _check_owners(old, new, groups, partition)
    return new


def _check_owners(
    old: HashingMetadata,
    new: HashingMetadata,
    groups: Sequence[tuple[ClusteringGroup, GroupResize]],
    partition: str,
) -> None:
    before: dict[str, int] = {}
    after: dict[str, int] = {}
    for number, (group, resize) in enumerate(groups):
        before.update((piece.file_id, number) for piece in group.slices)
        after.update((file_id, number) for file_id in resize.file_ids)
    known = before.keys() <= set(old.file_ids) and after.keys().isdisjoint(old.file_ids)
    fits = all(
        one == other if one not in before else before[one] == after.get(other)
        for one, other in hashing_metadata.list_owners(old, new)
    )
    own = all(piece.partition_path == partition for group, _ in groups for piece in group.slices)
    if not (known and fits and own and after.keys() <= set(new.file_ids)):
        raise InvalidTableError(
            "Invalid plan: hashes of a clustering's file groups would not be those of its new ones.",
            partition=partition or None,
            hint=_HINT,
        )
