"""xxHash equals one that follows its specification byte by byte, and its published vectors, for texts of all lengths.

Java's hash codes of strings equal their definition written out.
"""

from __future__ import annotations

import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.arrow.hashes import SEED, compute_java_hashes, hash_xxhash32, hash_xxhash64

P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
MASK = (1 << 64) - 1


def rotate(value: int, bits: int) -> int:
    value &= MASK
    return (value << bits | value >> (64 - bits)) & MASK


def mix(lane: int) -> int:
    return rotate(lane * P2, 31) * P1 & MASK


def reference(data: bytes, seed: int) -> int:
    rest = data
    if len(data) >= 32:
        sums = [seed + P1 + P2, seed + P2, seed, seed - P1]
        while len(rest) >= 32:
            for i in range(4):
                lane = int.from_bytes(rest[8 * i : 8 * i + 8], "little")
                sums[i] = rotate(sums[i] + lane * P2, 31) * P1 & MASK
            rest = rest[32:]
        result = sum(rotate(each, bits) for each, bits in zip(sums, (1, 7, 12, 18), strict=True))
        for each in sums:
            result = ((result ^ mix(each)) * P1 + P4) & MASK
    else:
        result = seed + P5
    result += len(data)
    while len(rest) >= 8:
        result = rotate(result ^ mix(int.from_bytes(rest[:8], "little")), 27) * P1 + P4
        rest = rest[8:]
    if len(rest) >= 4:
        result = rotate(result ^ int.from_bytes(rest[:4], "little") * P1, 23) * P2 + P3
        rest = rest[4:]
    for octet in rest:
        result = rotate(result ^ octet * P5, 11) * P1
    result &= MASK
    for shift, factor in ((33, P2), (29, P3)):
        result = (result ^ result >> shift) * factor & MASK
    return result ^ result >> 32


def test_hashes_texts_of_all_lengths_together() -> None:
    choose = random.Random(1).choice
    texts = ["".join(choose("aé漢_/x") for _ in range(length)) for length in [*range(80), *range(0, 80, 3)]]
    found = hash_xxhash64(pa.array([None, *texts]).slice(1))
    assert found.tolist() == [reference(text.encode(), SEED) for text in texts]


def test_a_null_counts_as_an_empty_text() -> None:
    assert hash_xxhash64(pa.array([None, ""])).tolist() == [reference(b"", SEED)] * 2


_P1, _P2, _P3, _P4, _P5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
_MASK = 0xFFFFFFFF


def _turned(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK


def _plain(data: bytes) -> int:
    at, result = 0, _P5
    if len(data) >= 16:
        sums = [_P1 + _P2, _P2, 0, -_P1]
        while at + 16 <= len(data):
            for i in range(4):
                word = int.from_bytes(data[at + 4 * i : at + 4 * i + 4], "little")
                sums[i] = _turned(sums[i] + word * _P2, 13) * _P1 & _MASK
            at += 16
        result = sum(_turned(each, bits) for each, bits in zip(sums, (1, 7, 12, 18), strict=True))
    result = (result + len(data)) & _MASK
    while at + 4 <= len(data):
        result = _turned(result + int.from_bytes(data[at : at + 4], "little") * _P3, 17) * _P4 & _MASK
        at += 4
    for octet in data[at:]:
        result = _turned(result + octet * _P5, 11) * _P1 & _MASK
    result ^= result >> 15
    result = result * _P2 & _MASK
    result ^= result >> 13
    result = result * _P3 & _MASK
    return result ^ result >> 16


def test_published_vectors() -> None:
    known = {
        "": 0x02CC5D05,
        "a": 0x550D7456,
        "abc": 0x32D153FF,
        "Nobody inspects the spammish repetition": 0xE2293B2F,
    }
    assert hash_xxhash32(pa.array([*known])).tolist() == [*known.values()]


@given(st.lists(st.one_of(st.none(), st.text(max_size=70)), max_size=30), st.integers(0, 3))
def test_many_strings_are_hashed_as_one_by_one(texts: list[str | None], skipped: int) -> None:
    found = hash_xxhash32(pa.array(texts, pa.string()).slice(skipped)).tolist()
    assert found == [_plain((text or "").encode()) for text in texts[skipped:]]


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
