"""Tests of bucket numbers against those that Java Hudi 1.2.0 computes (tests/data/bucket_hashes.json)."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hoodie_py.writer.index.bucket import (
    compute_buckets,
    compute_java_hashes,
    make_bucket_file_id,
    parse_bucket,
    split_key,
)
from tests.corpus import ROOT

JAVA = json.loads((ROOT / "tests" / "data" / "bucket_hashes.json").read_text())


@pytest.mark.parametrize("fields", sorted(JAVA["by_hash_fields"]))
def test_buckets_are_those_of_java(fields: str) -> None:
    keys, expected = zip(*JAVA["by_hash_fields"][fields], strict=True)
    names = [name for name in fields.split(",") if name]
    found = compute_buckets(pa.chunked_array([keys]), names, JAVA["buckets"])
    assert found.tolist() == list(expected)


def _java_hash(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for i in range(0, len(units), 2):
        code = (31 * code + int.from_bytes(units[i : i + 2], "big")) & 0xFFFFFFFF
    return code


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]))), st.integers(0, 3))
def test_hashes_are_those_of_strings_one_by_one(texts: list[str | None], start: int) -> None:
    expected = [0 if text is None else _java_hash(text) for text in texts]
    assert compute_java_hashes(pa.array(texts, pa.string())).tolist() == expected
    assert compute_java_hashes(pa.array(texts, pa.string()).slice(start)).tolist() == expected[start:]


PIECES = st.sampled_from(["id", "ts", ":", ",", "a", "__null__", "__empty__", "é", "\U0001f600"])


@given(st.lists(st.lists(PIECES).map("".join)), st.sampled_from([(), ("id",), ("id", "ts"), ("x",)]))
@example(["id:1,ts:2", "id:1,2,ts:3", "plain", "id:__null__,ts:__empty__"], ("ts",))
def test_many_keys_at_once_have_the_buckets_of_each(keys: list[str], fields: tuple[str, ...]) -> None:
    expected = []
    for key in keys:
        values = split_key(key, fields) if "," in key and ":" in key else [key]
        code = 1
        for value in values:
            code = (31 * code + (0 if value is None else _java_hash(value))) & 0xFFFFFFFF
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
