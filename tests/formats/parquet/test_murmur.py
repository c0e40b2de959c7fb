from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError
from hoodie_py.formats.parquet.murmur import hash_chains

MASK = 0xFFFFFFFF
M = 0x5BD1E995


def murmur2(data: bytes, seed: int) -> int:
    """The definition, a byte at a time."""
    h = (seed ^ len(data)) & MASK
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * M & MASK
        k = (k ^ k >> 24) * M & MASK
        h = h * M & MASK ^ k
    if left := len(data) - whole:
        signed = [byte - 256 if byte > 127 else byte for byte in data]
        for i in range(left):
            h ^= signed[-1 - i] << 8 * i & MASK
        h = h * M & MASK
    h = (h ^ h >> 13) * M & MASK
    return h ^ h >> 15


def chains(keys: pa.Array, count: int) -> list[list[int]]:
    found = np.zeros((len(keys), count), np.uint32)
    seen = np.zeros(len(keys), int)
    for places, hashes in hash_chains(keys, count):
        found[places] = np.stack(hashes, axis=1)
        seen[places] += 1
    assert (seen == 1).all()
    return found.tolist()


@given(st.lists(st.text(max_size=40), max_size=30), st.integers(0, 3))
def test_chains_follow_the_definition(keys: list[str], skip: int) -> None:
    array = pa.array(keys, pa.string())[skip:]
    expected = []
    for key in keys[skip:]:
        h, chain = 0, []
        for _ in range(4):
            h = murmur2(key.encode(), h)
            chain.append(h)
        expected.append(chain)
    assert chains(array, 4) == expected
    assert chains(array.cast(pa.large_string()), 4) == expected


def test_many_and_long_keys_are_taken_in_chunks() -> None:
    keys = [f"key-{i}" for i in range(20_000)] + ["x" * 300_000, "y" * 299_999]
    found = chains(pa.array(keys), 1)
    for i in (0, 8191, 8192, 19_999, 20_000, 20_001):
        assert found[i] == [murmur2(keys[i].encode(), 0)]


def test_null_keys_are_refused() -> None:
    with pytest.raises(CorruptFileError):
        chains(pa.array(["a", None]), 1)
