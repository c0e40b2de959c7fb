"""Tests of Java's hash codes of strings, against the definition written out."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.arrow.java_hash import compute_java_hashes


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
