"""How ranges of hashes split, merge and move to new file groups, and how a clustering plan records that.

Ranges lie on a ring: each begins after the previous bound, the first one after the last bound. A resize is a list of
changes, one for each bound that it touches. Agrees with Hudi ``ConsistentBucketIdentifier`` and
``ConsistentHashingNode``; the names in a plan are those of ``BaseConsistentHashingBucketClusteringPlanStrategy``.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.config.hashing_metadata import (
    FILE_ID_END,
    LARGEST_HASH,
    MOST_BUCKETS,
    HashingMetadata,
    is_file_id,
)

_PARTITION, _CHANGES, _NUMBER = (
    f"clustering.group.{name}" for name in ("partition", "child.node", "sequence.no")
)  # in the extra metadata of a group of the plan
_REPLACE, _DELETE = "REPLACE", "DELETE"


@dataclass(frozen=True, slots=True)
class RangeChange:
    """The range that ends at ``bound`` gets a new file group. None removes it: the next range takes its hashes."""

    bound: int
    file_id: str | None


@dataclass(frozen=True, slots=True)
class GroupResize:
    """Changes of a clustering plan's group to the ranges of its partition; ``number`` is the old ranges' number."""

    partition_path: str
    number: int
    changes: tuple[RangeChange, ...]

    @property
    def file_ids(self) -> tuple[str, ...]:
        """The new file groups."""
        return tuple(each.file_id for each in self.changes if each.file_id is not None)

    @classmethod
    def from_extra(cls, extra: Mapping[str, str]) -> GroupResize | None:
        """Read the extra metadata of a group; None if it does not change ranges.

        Raises:
            CorruptFileError: the metadata is malformed.
        """
        if _CHANGES not in extra:
            return None
        number = extra.get(_NUMBER, "")
        if _PARTITION not in extra or not (number.isascii() and number.isdigit() and len(number) < 10):
            raise CorruptFileError("A clustering plan lacks the partition or the number of its ranges of hashes.")
        return cls(extra[_PARTITION], int(number), _read_changes(extra[_CHANGES]))

    def to_extra(self) -> dict[str, str]:
        """Return the extra metadata of a group."""
        nodes = [
            {
                "value": each.bound,
                "fileIdPrefix": None if each.file_id is None else each.file_id.removesuffix(FILE_ID_END),
                "tag": _DELETE if each.file_id is None else _REPLACE,
            }
            for each in self.changes
        ]
        return {_PARTITION: self.partition_path, _CHANGES: json.dumps(nodes), _NUMBER: str(self.number)}


def split_range(ranges: HashingMetadata, at: int) -> tuple[RangeChange, ...]:
    """Split a range in the middle, the lower half first; nothing if it contains one hash only."""
    before, bound = ranges.bounds[at - 1], ranges.bounds[at]
    # The range after the last bound wraps around the ring.
    middle = ((before + bound + (0 if before < bound else LARGEST_HASH + 1)) >> 1) & LARGEST_HASH
    if middle in (before, bound):
        return ()
    return RangeChange(middle, make_file_id()), RangeChange(bound, make_file_id())


def merge_ranges(ranges: HashingMetadata, places: Sequence[int]) -> tuple[RangeChange, ...]:
    """Merge adjacent ranges, given in the order of the ring, into the last one."""
    gone = [RangeChange(ranges.bounds[at], None) for at in places[:-1]]
    return (*gone, RangeChange(ranges.bounds[places[-1]], make_file_id()))


def apply_changes(ranges: HashingMetadata, changes: Sequence[RangeChange], instant: str) -> HashingMetadata:
    """Return the ranges after a resize by the clustering of an instant.

    Raises:
        CorruptFileError: a removed bound does not exist, a file group occurs twice, or no range is left.
    """
    ring = dict(zip(ranges.bounds, ranges.file_ids, strict=True))
    for each in changes:
        if each.file_id is not None:
            ring[each.bound] = each.file_id
        elif ring.pop(each.bound, None) is None:
            raise CorruptFileError("A clustering plan removes a range of hashes that is not there.")
    bounds = tuple(sorted(ring))
    file_ids = tuple(ring[bound] for bound in bounds)
    if not bounds or len(set(file_ids)) < len(file_ids):
        raise CorruptFileError("A clustering plan leaves no ranges of hashes, or names a file group twice.")
    return replace(ranges, instant=instant, number=ranges.number + 1, bounds=bounds, file_ids=file_ids)


def list_owners(old: HashingMetadata, new: HashingMetadata) -> set[tuple[str, str]]:
    """Return the pairs of file ids, before and after a resize, whose ranges have a hash in common."""
    # Owners change only at bounds, so one hash of each stretch between them is enough.
    edges = sorted({*old.bounds, *new.bounds, LARGEST_HASH})
    return {(_find_owner(old, edge), _find_owner(new, edge)) for edge in edges}


def make_file_id() -> str:
    """Make a new id for the file group of a range."""
    return f"{uuid4()}{FILE_ID_END}"


def _find_owner(ranges: HashingMetadata, value: int) -> str:
    return ranges.file_ids[bisect_left(ranges.bounds, value) % len(ranges.bounds)]


def _read_changes(text: str) -> tuple[RangeChange, ...]:
    try:
        nodes = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError("The ranges of hashes in a clustering plan are not JSON.") from error
    if not isinstance(nodes, list) or not 0 < len(nodes) <= MOST_BUCKETS:
        raise CorruptFileError("A clustering plan does not list the ranges of hashes that it changes.")
    return tuple(map(_read_change, nodes))


def _read_change(node: object) -> RangeChange:
    if not isinstance(node, dict):
        raise CorruptFileError("A clustering plan lists a range of hashes that is none.")
    bound, prefix, tag = node.get("value"), node.get("fileIdPrefix"), node.get("tag")
    if not isinstance(bound, int) or isinstance(bound, bool) or not 0 <= bound <= LARGEST_HASH:
        raise CorruptFileError("A clustering plan has a range of hashes without bound.")
    if tag == _DELETE:
        return RangeChange(bound, None)
    if tag != _REPLACE or not is_file_id(prefix):
        raise CorruptFileError("A clustering plan has a range of hashes without new file group.")
    return RangeChange(bound, f"{prefix}{FILE_ID_END}")
