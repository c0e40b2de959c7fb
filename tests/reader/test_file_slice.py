"""The commits whose base rows a range takes, as masks."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from hoodie_py.reader.file_slice import InstantRange

TIMES = pa.array(["1", "2", None, "3", "4", "2"], pa.string())


@pytest.mark.parametrize(
    ("instants", "expected"),
    [
        (InstantRange("2", "3"), [False, True, None, True, False, True]),
        (InstantRange("2", "3", is_open=True), [False, False, None, True, False, False]),
        (InstantRange("1", "4", others=("2", "3")), [True, False, None, False, True, False]),
        (InstantRange("1", "4", only=("1", "4")), [True, False, False, False, True, False]),
    ],
)
def test_masks(instants: InstantRange, expected: list[bool | None]) -> None:
    mask = instants.make_mask(TIMES).to_pylist()
    assert [each or False for each in mask] == [each or False for each in expected]
    assert [each is not None and instants.contains(each) for each in TIMES.to_pylist()] == [
        each or False for each in mask
    ]
    assert pickle.loads(pickle.dumps(instants)) == instants
