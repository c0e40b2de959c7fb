"""File lists of the metadata table merge as Hudi's do, by example and against a model in plain Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.errors import CorruptFileError
from hoodie_py.reader.payloads.file_lists import merge_file_lists

INFO = pa.struct([pa.field("size", pa.int64(), False), pa.field("isDeleted", pa.bool_(), False)])
LIST = pa.map_(pa.string(), pa.field("value", INFO, nullable=False))
Files = dict[str, tuple[int, bool]]

lists = st.none() | st.dictionaries(
    st.sampled_from(["a", "b", "c", "é"]), st.tuples(st.integers(0, 9), st.booleans()), max_size=4
)


def to_array(given: list[Files | None]) -> pa.Array:
    rows = [
        None if each is None else [(name, {"size": size, "isDeleted": gone}) for name, (size, gone) in each.items()]
        for each in given
    ]
    return pa.array(rows, LIST)


def to_dicts(merged: pa.Array) -> list[Files]:
    return [{name: (info["size"], info["isDeleted"]) for name, info in row} for row in merged.to_pylist()]


def model(older: Files | None, newer: Files | None) -> Files:
    combined = dict(older or {})
    for name, (size, gone) in (newer or {}).items():
        if name not in combined:
            combined[name] = (size, gone)
        elif not gone:
            combined[name] = (max(size, combined[name][0]), False)
        elif combined[name][1]:
            combined[name] = (size, gone)
        else:
            del combined[name]
    return combined


def test_lists_are_joined_and_sizes_only_grow() -> None:
    older = to_array([{"x": (5, False), "y": (9, False)}])
    assert to_dicts(merge_file_lists(older, to_array([{"x": (3, False), "z": (1, False)}]))) == [
        {"x": (5, False), "y": (9, False), "z": (1, False)}
    ]


def test_a_deleted_name_goes_and_one_that_is_not_known_stays_deleted() -> None:
    older = to_array([{"x": (5, False), "z": (0, True)}])
    merged = merge_file_lists(older, to_array([{"x": (0, True), "y": (0, True), "z": (0, True)}]))
    assert to_dicts(merged) == [{"y": (0, True), "z": (0, True)}]
    assert to_dicts(merge_file_lists(to_array([{"x": (0, True)}]), to_array([{"x": (7, False)}]))) == [
        {"x": (7, False)}
    ]


@given(st.lists(st.tuples(lists, lists), max_size=8), st.integers(0, 3))
def test_pairs_merge_as_the_model_does(pairs: list[tuple[Files | None, Files | None]], skipped: int) -> None:
    older, newer = (to_array([pair[side] for pair in pairs])[skipped:] for side in (0, 1))
    merged = merge_file_lists(older, newer)
    assert merged.type == LIST
    merged.validate(full=True)
    assert to_dicts(merged) == [model(*pair) for pair in pairs[skipped:]]


def test_maps_of_something_else_are_an_error() -> None:
    wrong: Any = pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))
    with pytest.raises(CorruptFileError, match="sizes"):
        merge_file_lists(wrong, wrong)
