"""Tests of bucket numbers against those that Java Hudi 1.2.0 computes (tests/data/bucket_hashes.json)."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hoodie_py.arrow.hashes import compute_java_hashes
from hoodie_py.writer.index.bucket import compute_buckets, make_bucket_file_id, parse_bucket, split_key
from tests.corpus import ROOT

JAVA = json.loads((ROOT / "tests" / "data" / "bucket_hashes.json").read_text())


@pytest.mark.parametrize("fields", sorted(JAVA["by_hash_fields"]))
def test_buckets_are_those_of_java(fields: str) -> None:
    keys, expected = zip(*JAVA["by_hash_fields"][fields], strict=True)
    names = [name for name in fields.split(",") if name]
    found = compute_buckets(pa.chunked_array([keys]), names, JAVA["buckets"])
    assert found.tolist() == list(expected)


PIECES = st.sampled_from(["id", "ts", ":", ",", "a", "__null__", "__empty__", "é", "\U0001f600"])


@given(st.lists(st.lists(PIECES).map("".join)), st.sampled_from([(), ("id",), ("id", "ts"), ("x",)]))
@example(["id:1,ts:2", "id:1,2,ts:3", "plain", "id:__null__,ts:__empty__"], ("ts",))
def test_many_keys_at_once_have_the_buckets_of_each(keys: list[str], fields: tuple[str, ...]) -> None:
    expected = []
    for key in keys:
        values = split_key(key, fields) if "," in key and ":" in key else [key]
        code = 1
        for value in values:
            code = (31 * code + int(compute_java_hashes(pa.array([value], pa.string()))[0])) & 0xFFFFFFFF
        expected.append((code & 0x7FFFFFFF) % 97)
    chunks = [pa.array(keys[:2], pa.string()), pa.array(keys[2:], pa.string())]
    assert compute_buckets(pa.chunked_array(chunks), fields, 97).tolist() == expected


def test_file_ids_name_their_bucket() -> None:
    made = make_bucket_file_id(37)
    assert made[:9] == "00000037-"
    assert made.endswith("-0")
    assert parse_bucket(made) == 37
    assert make_bucket_file_id(37) != made


@pytest.mark.parametrize("file_id", ["", "1234567", "6bb03770-f23b-4c8b-b3bd-fe816a0d5823-0", "１２３４５６７８-a"])
def test_other_file_ids_name_none(file_id: str) -> None:
    assert parse_bucket(file_id) is None
