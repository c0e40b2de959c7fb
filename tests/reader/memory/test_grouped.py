"""Rows by group are those of a plain model in memory, in its order, however little memory there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hoodie_py.errors import StorageError
from hoodie_py.reader.memory import grouped
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.grouped import GroupedRows, divide, keep_last
from hoodie_py.reader.memory.spill import Spill, Spilled

Row = tuple[int | None, str | None, int]  # key columns "a" and "b", and the row's number
SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.string()), ("n", pa.int64())])
KEYS = st.tuples(st.none() | st.integers(0, 4), st.none() | st.sampled_from(["", "x", "é", "a longer text"]))
ADDED = st.lists(st.tuples(st.integers(0, 2), st.lists(KEYS, max_size=9)), max_size=25)
HELD = st.sampled_from([0, 1, 100, 300, 1 << 20])


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "_BATCH_ROWS", 5)
    monkeypatch.setattr(grouped, "_RUN_BATCH_ROWS", 3)


def number_rows(added: list[tuple[int, list[tuple[int | None, str | None]]]]) -> list[tuple[int, list[Row]]]:
    numbers = iter(range(1 << 20))
    return [(group, [(a, b, next(numbers)) for a, b in keys]) for group, keys in added]


def to_batch(rows: list[Row]) -> pa.RecordBatch:
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(SCHEMA)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def to_rows(batches: Iterator[pa.RecordBatch]) -> list[Row]:
    return [row for batch in batches for row in zip(*(each.to_pylist() for each in batch.columns), strict=True)]


def collect(rows: GroupedRows[int], added: list[tuple[int, list[Row]]]) -> dict[int, list[Row]]:
    """Add rows, and return what a model holds."""
    model: dict[int, list[Row]] = {}
    for group, some in added:
        rows.add(group, to_batch(some))
        model.setdefault(group, []).extend(some)
    return model


def order_by(row: Row) -> tuple[bool, int, bool, bytes]:
    """Order as Arrow does: by the bytes of texts, nulls last."""
    return row[0] is None, row[0] or 0, row[1] is None, (row[1] or "").encode()


PATCHED = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])


@PATCHED
@given(ADDED, HELD, st.integers(0, 30), st.integers(0, 30))
def test_rows_of_a_group_come_as_they_were_added(
    added: list[tuple[int, list[tuple[int | None, str | None]]]], held: int, start: int, length: int
) -> None:
    with GroupedRows[int](MemoryBudget(1 << 10), held=held) as rows:
        model = collect(rows, number_rows(added))
        assert rows.counts == {group: len(found) for group, found in model.items() if found}
        for group in range(4):
            found = model.get(group, [])
            assert to_rows(rows.read(group)) == found
            assert to_rows(rows.read(group, start, start + length)) == found[start : start + length]


@PATCHED
@given(ADDED, HELD, st.sampled_from([1 << 4, 1 << 10, 1 << 20]), st.sampled_from([["a"], ["b"], ["a", "b"]]))
def test_rows_are_sorted_and_equal_ones_keep_their_order(
    added: list[tuple[int, list[tuple[int | None, str | None]]]], held: int, limit: int, order: list[str]
) -> None:
    with GroupedRows[int](MemoryBudget(limit), held=held, order=order) as rows:
        model = collect(rows, number_rows(added))
        for group in range(4):
            batches = list(rows.sort(group))
            assert all(0 < batch.num_rows <= 5 for batch in batches)
            found = [(a if "a" in order else None, b if "b" in order else None, n) for a, b, n in model.get(group, [])]
            numbers = [row[2] for row in sorted(found, key=order_by)]
            assert [row[2] for row in to_rows(iter(batches))] == numbers


RECORDS = st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=2), st.booleans()), max_size=60)


@PATCHED
@given(RECORDS, st.integers(1, 7), HELD)
def test_the_last_row_of_a_key_stays(records: list[tuple[int, bytes, bool]], at_once: int, held: int) -> None:
    names = ["key", "side", "n"]
    types = [pa.large_binary(), pa.bool_(), pa.int64()]
    ordered = sorted(records, key=lambda each: each[2])  # sides come one after the other
    expected: dict[int, dict[tuple[bytes, bool], int]] = {}
    with GroupedRows[int](MemoryBudget(1 << 10), held=held, order=["key"]) as rows:
        for start in range(0, len(ordered), at_once):
            some = [(key, side, start + at) for at, (_, key, side) in enumerate(ordered[start : start + at_once])]
            columns = [pa.array(list(each), type_) for each, type_ in zip(zip(*some, strict=True), types, strict=True)]
            groups = np.array([each[0] for each in ordered[start : start + at_once]])
            for group, batch in divide(pa.RecordBatch.from_arrays(columns, names), groups):
                rows.add(group, batch)
            for group, (key, side, number) in zip(groups.tolist(), some, strict=True):
                expected.setdefault(group, {})[key, side] = number
        assert sum(rows.counts.values()) == len(records)
        for group in range(3):
            found = [tuple(row) for row in to_rows(keep_last(rows.sort(group), ["key", "side"]))]
            assert found == [(*key, number) for key, number in sorted(expected.get(group, {}).items())]


@given(st.lists(st.integers(0, 3), max_size=20))
def test_rows_are_divided_in_their_order(groups: list[int]) -> None:
    batch = pa.RecordBatch.from_pydict({"n": pa.array(range(len(groups)), pa.int64())})
    found = {group: some["n"].to_pylist() for group, some in divide(batch, np.array(groups, np.int64))}
    assert found == {each: [at for at, group in enumerate(groups) if group == each] for each in set(groups)}


def fill(rows: GroupedRows[int]) -> None:
    for start in range(20):
        rows.add(0, to_batch([(number % 3, "x" * 20, number) for number in range(start, start + 20)]))


@pytest.mark.parametrize("sorts", [True, False])
def test_no_file_is_left_where_reading_stops_midway(tmp_path: Path, sorts: bool) -> None:
    budget = MemoryBudget(1 << 10, str(tmp_path))
    rows = GroupedRows[int](budget, held=500, order=["a"] if sorts else [])
    fill(rows)
    assert len(list(tmp_path.iterdir())) == 1
    batches = rows.sort(0) if sorts else rows.read(0)
    next(batches)
    rows.close()
    assert not list(tmp_path.iterdir())
    rows.close()


def fill_and_sort(budget: MemoryBudget) -> None:
    with GroupedRows[int](budget, held=500, order=["a"]) as rows:
        fill(rows)
        list(rows.sort(0))


def break_midway(rows: GroupedRows[int]) -> None:
    with suppress(StorageError):
        fill(rows)
    raise RuntimeError("the source broke")


@pytest.mark.parametrize("failing", ["write_batch", "close"])
def test_a_full_disk_is_an_error_and_leaves_no_file(
    tmp_path: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = pa.ipc.new_file

    class Full:
        def __init__(self, sink: pa.NativeFile, schema: pa.Schema) -> None:
            self._writer = opened(sink, schema)

        def write_batch(self, batch: pa.RecordBatch) -> None:
            if failing == "write_batch":
                raise OSError(28, "No space left on device")
            self._writer.write_batch(batch)

        def close(self) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(pa.ipc, "new_file", Full)
    with pytest.raises(StorageError, match="No space left"):
        fill_and_sort(MemoryBudget(1 << 10, str(tmp_path)))
    assert not list(tmp_path.iterdir())
    with (
        pytest.raises(RuntimeError, match="the source broke"),
        GroupedRows[int](MemoryBudget(1 << 10, str(tmp_path))) as rows,
    ):
        break_midway(rows)
    assert not list(tmp_path.iterdir())


def test_a_merge_holds_a_part_of_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read ahead of the rows that come out is bounded, however many runs there are."""
    reads = 0
    make_reader = Spill.make_reader

    def count(spill: Spill) -> Callable[[Spilled], pa.RecordBatch]:
        read = make_reader(spill)

        def count_read(spilled: Spilled) -> pa.RecordBatch:
            nonlocal reads
            batch = read(spilled)
            reads += batch.num_rows
            return batch

        return count_read

    monkeypatch.setattr(Spill, "make_reader", count)
    with GroupedRows[int](MemoryBudget(1 << 10), held=1000, order=["n"]) as rows:
        for start in range(40):  # runs that overlap from end to end
            rows.add(0, to_batch([(0, "x" * 20, 40 * at + start) for at in range(30)]))
        came = ahead = 0
        for batch in rows.sort(0):
            ahead = max(ahead, reads - came)
            came += batch.num_rows
    assert came == 1200
    assert ahead <= 240
