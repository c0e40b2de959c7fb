"""xxHash32 against its published vectors, and a plain reading of its rules."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.writer.index.xxhash import hash_xxhash32

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
