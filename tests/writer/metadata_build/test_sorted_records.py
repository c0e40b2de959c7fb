"""Records come out sorted, each key once, however small the portions are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.writer.metadata_build.sorted_records import SortedRecords

RECORDS = st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=3), st.binary(max_size=2)), max_size=80)


@settings(max_examples=60, deadline=None)
@given(RECORDS, st.integers(1, 7), st.sampled_from([1, 50, 1 << 20]), st.integers(1, 5))
def test_records_are_sorted_and_the_last_of_a_key_stays(
    records: list[tuple[int, bytes, bytes]], at_once: int, portion: int, batch_rows: int
) -> None:
    expected: dict[int, dict[bytes, bytes]] = {}
    with SortedRecords(MemoryBudget(1 << 30), portion_bytes=portion, batch_rows=batch_rows) as sorting:
        for start in range(0, len(records), at_once):
            some = records[start : start + at_once]
            groups = np.array([each[0] for each in some])
            keys = pa.array([each[1] for each in some], pa.binary())
            sorting.add(groups, keys, pa.array([each[2] for each in some], pa.large_binary()))
            for group, key, value in some:
                expected.setdefault(group, {})[key] = value
        assert sum(sorting.counts.values()) == len(records)
        for group in range(3):
            found = [
                (key, value)
                for keys, values in sorting.iterate(group)
                for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True)
            ]
            assert found == sorted(expected.get(group, {}).items())


def test_texts_are_sorted_by_their_bytes() -> None:
    texts = ["é", "z", "a", "\U0001f600", "￿"]
    with SortedRecords(MemoryBudget(1 << 30)) as sorting:
        sorting.add(np.zeros(5, int), pa.array(texts), pa.array([b""] * 5, pa.large_binary()))
        keys = [key for keys, _ in sorting.iterate(0) for key in keys.to_pylist()]
    assert keys == sorted(text.encode() for text in texts)


@pytest.mark.parametrize("group", [0, 5])
def test_a_group_without_records_is_empty(group: int) -> None:
    with SortedRecords(MemoryBudget(1 << 30)) as sorting:
        assert not list(sorting.iterate(group))
