"""What a table keeps about its buckets: files of Flink's and Java's, and damaged ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hoodie_py.errors import CorruptFileError, UnsupportedFeatureError
from hoodie_py.formats.config.hashing_metadata import BucketRules, HashingMetadata, parse_instant
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
