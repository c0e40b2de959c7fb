"""The hash equals one that follows xxHash's specification byte by byte, for texts of all lengths."""

from __future__ import annotations

import random

import pyarrow as pa

from hoodie_py.formats.metadata_table.xxhash64 import SEED, hash_xxhash64

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
