"""Tests of the index that a writer's options name."""

from __future__ import annotations

import pytest

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.writer.index_settings import IndexSettings, IndexType


def test_defaults_are_those_of_hudi() -> None:
    assert IndexSettings.from_options({}) == IndexSettings(
        IndexType.SIMPLE, update_partition=True, buckets=256, hash_fields=()
    )


@pytest.mark.parametrize(
    ("type_", "key"),
    [
        ("global_simple", "hoodie.simple.index.update.partition.path"),
        ("GLOBAL_BLOOM", "hoodie.bloom.index.update.partition.path"),
    ],
)
def test_global_indexes_may_leave_records_where_they_are(type_: str, key: str) -> None:
    found = IndexSettings.from_options({"hoodie.index.type": type_, key: "false"})
    assert (found.is_global, found.update_partition) == (True, False)
    assert IndexSettings.from_options({"hoodie.index.type": type_}).update_partition


def test_a_bucket_index_has_buckets_and_hash_fields() -> None:
    options = {
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "8",
        "hoodie.bucket.index.hash.field": "id, ts",
    }
    found = IndexSettings.from_options(options)
    assert (found.is_bucket, found.buckets, found.hash_fields) == (True, 8, ("id", "ts"))


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.index.type": "BUCKET", "hoodie.index.bucket.engine": "EXTENSIBLE"},
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.partition.expressions": "x,4"},
    ],
)
def test_other_indexes_are_refused_by_name(options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"EXTENSIBLE|expressions"):
        IndexSettings.from_options(options)


@pytest.mark.parametrize("count", ["0", "-1", "many", "9999999999", "４"])
def test_a_number_of_buckets_that_is_none_is_refused(count: str) -> None:
    with pytest.raises(InvalidQueryError, match=r"num\.buckets"):
        IndexSettings.from_options({"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": count})
