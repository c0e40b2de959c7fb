"""Records come out sorted, each key once, however small the portions are."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_py.errors import InvalidQueryError, UnsupportedFeatureError
from hoodie_py.reader.memory import grouped
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.grouped import SortedRecords, sort_rows
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.read_info import ReadStats
from hoodie_py.writer.clustering.row_keys import RowKeys, check_layout
from hoodie_py.writer.clustering.settings import HILBERT, LINEAR, Z_ORDER, Layout

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


SCHEMA = pa.schema([("n", pa.int64()), ("a", pa.int32()), ("b", pa.string()), ("s", pa.struct([("x", pa.float64())]))])


def batches(seed: int, count: int = 12) -> list[pa.RecordBatch]:
    chance = random.Random(seed)
    found, first = [], 0
    for _ in range(count):
        size = chance.randint(0, 200)
        rows = {
            "n": range(first, first + size),
            "a": [chance.choice([None, *range(9)]) for _ in range(size)],
            "b": [chance.choice([None, "x", "yy", "a long text of more than eight bytes"]) for _ in range(size)],
            "s": [chance.choice([None, {"x": None}, {"x": chance.random()}]) for _ in range(size)],
        }
        found.append(pa.RecordBatch.from_arrays([pa.array(rows[f.name], f.type) for f in SCHEMA], schema=SCHEMA))
        first += size
    return found


def order(keys: RowKeys, given: list[pa.RecordBatch], limit: int) -> list[int]:
    stats = ReadStats()
    spill = Spill(MemoryBudget(limit), stats)
    try:
        table = pa.Table.from_batches(list(sort_rows(iter(given), keys.make_columns, spill)), SCHEMA)
    finally:
        spill.close()
    assert (stats.spill.files > 0) == (limit < 1 << 20)
    return table["n"].to_pylist()


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(grouped, "_BATCH_ROWS", 50)
    return


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1 << 30), st.sampled_from([LINEAR, Z_ORDER, HILBERT]), st.booleans())
def test_spilled_rows_come_in_the_same_order_as_rows_in_memory(seed: int, curve: str, sampled: bool) -> None:
    given_rows = batches(seed)
    layout = Layout(("a", "b", "s.x"), curve, sampled)
    keys = RowKeys.from_sample(layout, given_rows) if sampled else RowKeys(layout)
    assert order(keys, given_rows, 20_000) == order(keys, given_rows, 1 << 30)


def test_rows_sort_by_one_column_after_the_other_and_equal_ones_keep_their_order() -> None:
    given_rows = batches(7)
    rows = pa.Table.from_batches(given_rows).to_pylist()
    rows.sort(key=lambda row: (row["a"] is None, row["a"] or 0, row["b"] is None, row["b"] or ""))
    assert order(RowKeys(Layout(("a", "b"))), given_rows, 10_000) == [row["n"] for row in rows]


def test_a_sample_spreads_columns_of_unlike_ranges() -> None:
    """With ranks both columns decide; with the values the wide one decides alone."""
    chance = random.Random(3)
    rows = pa.RecordBatch.from_pydict(
        {"a": [chance.randrange(256) for _ in range(4096)], "b": [chance.randrange(1 << 60) for _ in range(4096)]}
    )
    spans = {}
    for sampled in (False, True):
        layout = Layout(("a", "b"), Z_ORDER, sampled)
        keys = RowKeys.from_sample(layout, [rows]) if sampled else RowKeys(layout)
        spill = Spill(MemoryBudget(1 << 30), ReadStats())
        table = pa.Table.from_batches(list(sort_rows([rows], keys.make_columns, spill)))
        parts = [table["a"].slice(start, 256).to_pylist() for start in range(0, 4096, 256)]
        spans[sampled] = sum(max(part) - min(part) for part in parts) / len(parts)
    assert spans[True] < 100 < spans[False]


def test_no_rows_are_no_rows() -> None:
    assert order(RowKeys(Layout(("a",))), [], 1 << 30) == []


def test_columns_that_have_no_order_are_refused() -> None:
    check_layout(Layout(("a", "s.x"), HILBERT), SCHEMA)
    with pytest.raises(InvalidQueryError, match="nope"):
        check_layout(Layout(("nope",)), SCHEMA)
    with pytest.raises(UnsupportedFeatureError, match="struct"):
        check_layout(Layout(("s",)), SCHEMA)
    wide = pa.schema([(f"c{number}", pa.int64()) for number in range(9)])
    with pytest.raises(UnsupportedFeatureError, match="9 columns"):
        check_layout(Layout(tuple(wide.names), Z_ORDER), wide)
