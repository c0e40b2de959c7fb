"""Comparison of two states against a comparison of Python lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie_py.reader.read_info import ReadOptions
from hoodie_py.reader.record.record import DELETE, INSERT, UPDATE
from hoodie_py.table.changes.step_reader import SliceRows, compare_slices, rank_values

FIELDS = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "v"]
SCHEMA = pa.schema([(name, pa.string()) for name in FIELDS])
Rows = list[tuple[str, str, str, str]]


class Slice:
    """Rows in place of those of files."""

    schema = SCHEMA

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def read(self) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        for start in range(0, len(self._rows), 3):
            part = [dict(zip(FIELDS, each, strict=True)) for each in self._rows[start : start + 3]]
            batch = pa.RecordBatch.from_pylist(part, SCHEMA)
            yield batch, batch.column(2)


rows = st.lists(
    st.tuples(st.sampled_from("12"), st.sampled_from("abc"), st.sampled_from(["k1", "k2", "k3"]), st.just("v")),
    max_size=9,
)


@settings(deadline=None)
@given(rows, rows)
def test_changes_lead_from_one_state_to_the_other(old: Rows, new: Rows) -> None:
    slices = [cast("SliceRows", Slice(each)) for each in (old, new)]
    state = Counter(old)
    kinds: Counter[tuple[str, int]] = Counter()
    for changes in compare_slices("9", *slices, FIELDS, ReadOptions(batch_rows=2)):
        assert len(changes.codes) <= 2
        sides = [[tuple(each.values()) for each in side.to_pylist()] for side in (changes.before, changes.after)]
        for code, before, after in zip(changes.codes.tolist(), *sides, strict=True):
            if code != INSERT:
                assert before not in (Counter(old) & Counter(new)) or old.count(before) > new.count(before)
                state[before] -= 1
            if code != DELETE:
                state[after] += 1
            if code == UPDATE:
                assert before[2] == after[2]
            kinds[(before if code != INSERT else after)[2], code] += 1
    assert +state == Counter(new)
    assert not any(kinds[key, INSERT] and kinds[key, DELETE] for key in ("k1", "k2", "k3"))


@given(st.lists(st.integers(0, 4)))
def test_ranks_count_equal_values_before(values: list[int]) -> None:
    ranks: list[Any] = [values[:at].count(value) for at, value in enumerate(values)]
    assert rank_values(np.array(values, np.int64)).tolist() == ranks
