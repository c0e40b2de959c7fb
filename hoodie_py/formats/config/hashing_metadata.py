"""Metadata of bucket indexes, below ``.hoodie/.bucket_index``, and how ranges of hashes split and merge.

* ``consistent_hashing_metadata/<partition>/<instant>.hashing_meta``: the ranges of hashes of a partition, and the file
  group of each range (Hudi HoodieConsistentHashingMetadata, ConsistentHashingNode). The file of instant 00000000000000
  contains the first ranges of the partition. Clusterings that split or merge ranges write later files; they count once
  the clustering is completed, which an empty ``<instant>.commit`` next to the file confirms.
* ``partition_bucket_index_meta/configs/<instant>.hashing_config``: numbers of buckets that differ between partitions
  (Hudi PartitionBucketIndexHashingConfig).

Ranges lie on a ring: each begins after the previous bound, the first one after the last bound. A resize is a list of
changes, one for each bound that it touches. Agrees with Hudi ``ConsistentBucketIdentifier`` and
``ConsistentHashingNode``; ``BaseConsistentHashingBucketClusteringPlanStrategy`` names the fields of a plan.
"""

from __future__ import annotations

import hashlib
import json
import struct
import uuid
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from hoodie_py.errors import CorruptFileError, InvalidQueryError, UnsupportedFeatureError
from hoodie_py.formats.names import METADATA_FOLDER

BUCKET_FOLDER = f"{METADATA_FOLDER}/.bucket_index"
CONSISTENT_FOLDER = f"{BUCKET_FOLDER}/consistent_hashing_metadata"
RULES_FOLDER = f"{BUCKET_FOLDER}/partition_bucket_index_meta/configs"
HASHING_SUFFIX, COMMIT_SUFFIX, RULES_SUFFIX = ".hashing_meta", ".commit", ".hashing_config"
FIRST_INSTANT = "00000000000000"
LARGEST_HASH = 0x7FFFFFFF
MOST_BUCKETS = 1 << 20
FILE_ID_END = "-0"  # a bucket has one file group
_VERSION = 0


@dataclass(frozen=True, slots=True)
class HashingMetadata:
    """The ranges of hashes of one partition."""

    partition_path: str  # "" in a table without partitions
    instant: str  # of the write that made these ranges
    first_buckets: int  # number of the first ranges
    number: int  # how often the ranges were changed
    bounds: tuple[int, ...]  # the greatest hash of each range, ascending; greater hashes belong to the first range
    file_ids: tuple[str, ...]  # file group of each range

    @classmethod
    def make_first(cls, partition_path: str, buckets: int) -> HashingMetadata:
        """Return the first ranges of a partition, of about equal size, with file ids computed from them."""
        step = (LARGEST_HASH + buckets - 1) // buckets
        bounds = tuple(min(step * number, LARGEST_HASH) for number in range(1, buckets + 1))
        ids = tuple(
            f"{_make_name_uuid(struct.pack('>qq', start, end) + partition_path.encode())}{FILE_ID_END}"
            for start, end in zip((0, *bounds), bounds, strict=False)
        )
        return cls(partition_path, FIRST_INSTANT, buckets, 0, bounds, ids)

    @classmethod
    def from_bytes(cls, data: bytes) -> HashingMetadata:
        """Parse a file.

        Raises:
            CorruptFileError: the file is not hashing metadata, or ranges overlap.
            UnsupportedFeatureError: the file has a later version.
        """
        found = _parse_object(data, "hashing metadata")
        if found.get("version") != _VERSION:
            raise UnsupportedFeatureError(f"Hashing metadata of version {str(found.get('version'))[:20]}.")
        nodes = found.get("nodes")
        if not isinstance(nodes, list) or not 0 < len(nodes) <= MOST_BUCKETS:
            raise CorruptFileError("Hashing metadata does not list the ranges of hashes.")
        ranges = sorted(_read_range(node) for node in nodes)
        bounds, prefixes = tuple(each[0] for each in ranges), [each[1] for each in ranges]
        if len(set(bounds)) < len(bounds) or len(set(prefixes)) < len(prefixes):
            raise CorruptFileError("Hashing metadata has a range or a file group twice.")
        return cls(
            partition_path=_read_field(found, "partitionPath", str),
            instant=_read_field(found, "instant", str),
            first_buckets=_read_field(found, "numBuckets", int),
            number=_read_field(found, "seqNo", int),
            bounds=bounds,
            file_ids=tuple(f"{each}{FILE_ID_END}" for each in prefixes),
        )

    def to_bytes(self) -> bytes:
        """Return the file's content."""
        nodes = [
            {"value": bound, "fileIdPrefix": file_id.removesuffix(FILE_ID_END), "tag": "NORMAL"}
            for bound, file_id in zip(self.bounds, self.file_ids, strict=True)
        ]
        content = {
            "version": _VERSION,
            "partitionPath": self.partition_path,
            "instant": self.instant,
            "numBuckets": self.first_buckets,
            "seqNo": self.number,
            "nodes": nodes,
        }
        return json.dumps(content, indent=2).encode()


@dataclass(frozen=True, slots=True)
class BucketRules:
    """Different numbers of buckets for partitions."""

    rules: tuple[tuple[str, int], ...]  # patterns and numbers; the first pattern that matches a partition path decides
    default: int  # number for all other partitions

    @classmethod
    def from_bytes(cls, data: bytes) -> BucketRules:
        """Parse a file.

        Raises:
            CorruptFileError: the file is not a hashing configuration.
            UnsupportedFeatureError: the rules are not regular expressions.
        """
        found = _parse_object(data, "a hashing configuration")
        kind = _read_field(found, "rule", str)
        if kind.lower() != "regex":
            raise UnsupportedFeatureError(f"Numbers of buckets by rules of the kind {kind[:40]!r}.")
        default = _read_field(found, "defaultBucketNumber", int)
        if not 0 < default <= MOST_BUCKETS:
            raise CorruptFileError(f"A hashing configuration names {default} buckets.")
        try:
            return cls.from_expressions(_read_field(found, "expressions", str), default)
        except InvalidQueryError as error:
            raise CorruptFileError("A hashing configuration has rules that are not 'pattern,buckets'.") from error

    @classmethod
    def from_expressions(cls, expressions: str, default: int) -> BucketRules:
        """Parse rules as Hudi writes them: ``pattern,buckets;pattern,buckets``.

        Raises InvalidQueryError if the text has another form.
        """
        rules = [each.strip().split(",") for each in expressions.split(";")]
        if not all(len(rule) == 2 and _is_count(rule[1].strip()) for rule in rules):
            raise InvalidQueryError(
                f"Rules for numbers of buckets cannot be {expressions[:100]!r}.",
                hint="Give them as 'pattern,buckets;pattern,buckets'.",
            )
        return cls(tuple((pattern.strip(), int(count)) for pattern, count in rules), default)


def parse_instant(name: str) -> str:
    """Return the instant in the name of a file below ``.bucket_index``."""
    return name.partition(".")[0]


def _parse_object(data: bytes, what: str) -> Mapping[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"This is not {what}.") from error
    if not isinstance(found, dict):
        raise CorruptFileError(f"This is not {what}.")
    return found


def _read_field(found: Mapping[str, Any], name: str, type_: type[Any]) -> Any:
    value = found.get(name)
    if not isinstance(value, type_) or isinstance(value, bool):
        raise CorruptFileError(f"Metadata of buckets has no {name} of the right type.")
    return value


def _read_range(node: Any) -> tuple[int, str]:
    value = node.get("value") if isinstance(node, dict) else None
    prefix = node.get("fileIdPrefix") if isinstance(node, dict) else None
    if not isinstance(value, int) or not 0 <= value <= LARGEST_HASH or not is_file_id(prefix):
        raise CorruptFileError("Hashing metadata has a range without bound or file group.")
    return value, str(prefix)


def is_file_id(prefix: object) -> bool:
    """Whether a value can be a file id without its last part."""
    return isinstance(prefix, str) and 0 < len(prefix) < 100 and not set(prefix) & set("_./\\")


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 8 and 0 < int(text) <= MOST_BUCKETS


def _make_name_uuid(data: bytes) -> uuid.UUID:
    """Make the same UUID as Java's ``UUID.nameUUIDFromBytes``."""
    return uuid.UUID(bytes=hashlib.md5(data, usedforsecurity=False).digest(), version=3)


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
