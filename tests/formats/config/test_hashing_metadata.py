"""What a table keeps about its buckets: files of Flink's and Java's, and damaged ones.

Ranges of hashes that split and merge, against a model that knows the owner of every hash it is asked for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.config.hashing_metadata import (
    LARGEST_HASH,
    BucketRules,
    GroupResize,
    HashingMetadata,
    RangeChange,
    apply_changes,
    list_owners,
    merge_ranges,
    parse_instant,
    split_range,
)
from tests.corpus import unpack


def test_first_ranges_are_those_that_flink_wrote(tmp_path: Path) -> None:
    base = unpack("flink_mor_bucket_consistent", tmp_path)
    files = sorted((base / ".hoodie" / ".bucket_index").rglob("*.hashing_meta"))
    assert [each.parent.name for each in files] == ["p1", "p2"]
    for file in files:
        found = HashingMetadata.from_bytes(file.read_bytes())
        assert found == HashingMetadata.make_first(file.parent.name, 2)
        assert json.loads(found.to_bytes()) == json.loads(file.read_bytes())
        assert parse_instant(file.name) == found.instant


@pytest.mark.parametrize("buckets", [1, 2, 3, 7, 256])
def test_first_ranges_end_at_the_greatest_hash(buckets: int) -> None:
    found = HashingMetadata.make_first("a/b", buckets)
    assert found.bounds[-1] == 0x7FFFFFFF
    assert list(found.bounds) == sorted(set(found.bounds))
    assert len(set(found.file_ids)) == buckets
    assert HashingMetadata.from_bytes(found.to_bytes()) == found


def _changed(**changes: Any) -> bytes:
    return json.dumps({**json.loads(HashingMetadata.make_first("p", 2).to_bytes()), **changes}).encode()


_NODE = {"value": 1, "fileIdPrefix": "x", "tag": "NORMAL"}


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"{", b"\xff", b"[" * 100_000, _changed(nodes=[]), _changed(nodes=None), _changed(nodes=[1]),
        _changed(nodes=[_NODE, _NODE]), _changed(nodes=[{**_NODE, "value": -1}]),
        _changed(nodes=[{**_NODE, "value": 1 << 31}]), _changed(nodes=[{**_NODE, "fileIdPrefix": "../x"}]),
        _changed(nodes=[{**_NODE, "fileIdPrefix": ""}]), _changed(nodes=[_NODE, {**_NODE, "value": 2}]),
        _changed(partitionPath=1), _changed(instant=None), _changed(numBuckets="2"), _changed(seqNo=True),
    ],
)  # fmt: skip
def test_damaged_ranges_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        HashingMetadata.from_bytes(data)


def test_ranges_of_a_later_version_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="version 1"):
        HashingMetadata.from_bytes(_changed(version=1))


def _rules(**changes: Any) -> bytes:
    plain = {"expressions": "p1$,5; ^f,2", "defaultBucketNumber": 3, "rule": "regex", "version": 1, "instant": "0"}
    return json.dumps({**plain, **changes}).encode()


def test_rules_are_patterns_with_numbers() -> None:
    assert BucketRules.from_bytes(_rules()) == BucketRules((("p1$", 5), ("^f", 2)), 3)


@pytest.mark.parametrize(
    "data",
    [
        b"", _rules(expressions="p1"), _rules(expressions="p1,0"), _rules(expressions="p1,x"), _rules(expressions=None),
        _rules(expressions="a,b,3"), _rules(defaultBucketNumber=0), _rules(defaultBucketNumber="3"), _rules(rule=None),
    ],
)  # fmt: skip
def test_damaged_rules_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        BucketRules.from_bytes(data)


def test_rules_of_another_kind_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="hash"):
        BucketRules.from_bytes(_rules(rule="hash"))


MIDDLE = "20260101000000000"
rings = st.sets(st.integers(0, LARGEST_HASH), min_size=1, max_size=9).map(
    lambda bounds: HashingMetadata(
        "p", "00000000000000", 4, 3, tuple(sorted(bounds)), tuple(f"f{n}-0" for n in range(len(bounds)))
    )
)
hashes = st.integers(0, LARGEST_HASH)


def owner(ranges: HashingMetadata, value: int) -> str:
    """The range whose bound comes next on the ring."""
    there = zip(ranges.bounds, ranges.file_ids, strict=True)
    return min(((bound - value) % (LARGEST_HASH + 1), name) for bound, name in there)[1]


@given(ranges=rings, at=st.integers(0, 8), value=hashes)
def test_a_split_halves_one_range_and_leaves_the_others(ranges: HashingMetadata, at: int, value: int) -> None:
    at %= len(ranges.bounds)
    changes = split_range(ranges, at)
    if not changes:
        assert (ranges.bounds[at] - ranges.bounds[at - 1]) % (LARGEST_HASH + 1) == 1
        return
    new = apply_changes(ranges, changes, MIDDLE)
    assert (new.number, new.instant, len(new.bounds)) == (ranges.number + 1, MIDDLE, len(ranges.bounds) + 1)
    children = {each.file_id for each in changes}
    before, after = owner(ranges, value), owner(new, value)
    assert (after in children) == (before == ranges.file_ids[at])
    assert after in children or after == before
    lower, upper = changes
    width = (ranges.bounds[at] - ranges.bounds[at - 1] - 1) % (LARGEST_HASH + 1) + 1
    assert abs(2 * ((upper.bound - lower.bound) % (LARGEST_HASH + 1)) - width) <= 1


@given(ranges=rings, first=st.integers(0, 8), count=st.integers(1, 9), value=hashes)
def test_a_merge_gives_all_its_hashes_to_one_file_group(
    ranges: HashingMetadata, first: int, count: int, value: int
) -> None:
    size = len(ranges.bounds)
    places = [(first + step) % size for step in range(min(count, size))]
    changes = merge_ranges(ranges, places)
    new = apply_changes(ranges, changes, MIDDLE)
    assert len(new.bounds) == size - len(places) + 1
    [merged] = [each.file_id for each in changes if each.file_id is not None]
    before = owner(ranges, value)
    assert owner(new, value) == (merged if before in {ranges.file_ids[each] for each in places} else before)


@given(old=rings, new=rings, value=hashes)
def test_the_pairs_of_owners_are_those_of_all_hashes(old: HashingMetadata, new: HashingMetadata, value: int) -> None:
    pairs = list_owners(old, new)
    assert (owner(old, value), owner(new, value)) in pairs
    edges = [*old.bounds, *new.bounds, LARGEST_HASH]
    assert pairs == {(owner(old, edge), owner(new, edge)) for edge in edges}


@given(ranges=rings, at=st.integers(0, 8))
def test_changes_are_read_back_from_a_plan(ranges: HashingMetadata, at: int) -> None:
    changes = split_range(ranges, at % len(ranges.bounds)) or merge_ranges(ranges, [0])
    resize = GroupResize("a/b", 7, (*changes, RangeChange(5, None)))
    assert GroupResize.from_extra(resize.to_extra()) == resize
    assert GroupResize.from_extra({}) is None


def test_a_plan_of_java_is_read() -> None:
    nodes = '[{"value":12,"fileIdPrefix":null,"tag":"DELETE"},{"value":99,"fileIdPrefix":"ab-cd","tag":"REPLACE"}]'
    extra = {
        "clustering.group.partition": "p",
        "clustering.group.child.node": nodes,
        "clustering.group.sequence.no": "2",
    }
    found = GroupResize.from_extra(extra)
    assert found == GroupResize("p", 2, (RangeChange(12, None), RangeChange(99, "ab-cd-0")))
    assert json.loads(found.to_extra()["clustering.group.child.node"]) == json.loads(nodes)


def _extra(**changes: Any) -> dict[str, str]:
    node = {"value": 1, "fileIdPrefix": "x", "tag": "REPLACE", **changes}
    return {
        "clustering.group.partition": "p",
        "clustering.group.child.node": json.dumps([node]),
        "clustering.group.sequence.no": "0",
    }


@pytest.mark.parametrize(
    "extra",
    [
        {**_extra(), "clustering.group.child.node": "["}, {**_extra(), "clustering.group.child.node": "[" * 100_000},
        {**_extra(), "clustering.group.child.node": "[]"}, {**_extra(), "clustering.group.child.node": "[1]"},
        {**_extra(), "clustering.group.sequence.no": "-1"}, {"clustering.group.child.node": "[]"},
        _extra(value=-1), _extra(value=True), _extra(value=1 << 31), _extra(tag="NORMAL"), _extra(tag=None),
        _extra(fileIdPrefix="../x"), _extra(fileIdPrefix=None),
    ],
)  # fmt: skip
def test_damaged_changes_are_refused(extra: dict[str, str]) -> None:
    with pytest.raises(CorruptFileError, match="clustering plan"):
        GroupResize.from_extra(extra)


def test_changes_that_leave_no_ring_are_refused() -> None:
    ranges = HashingMetadata.make_first("p", 2)
    for changes in (
        [RangeChange(5, None)],
        [RangeChange(bound, None) for bound in ranges.bounds],
        [RangeChange(5, "new-0"), RangeChange(6, "new-0")],
    ):
        with pytest.raises(CorruptFileError):
            apply_changes(ranges, changes, MIDDLE)
