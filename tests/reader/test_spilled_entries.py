"""Log entries, rows and ordering values come back from disk as they went there; keys split evenly."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.reader.base.match import match_base_rows
from hoodie_py.reader.buffer.folded_log import FoldedLog, KeyHash
from hoodie_py.reader.buffer.log_buffer import LogBuffer
from hoodie_py.reader.buffer.spilled_log import (
    decode_foreign,
    encode_foreign,
    from_entry_batch,
    get_extra,
    to_entry_batch,
)
from hoodie_py.reader.memory.budget import MemoryBudget
from hoodie_py.reader.memory.spill import Spill
from hoodie_py.reader.merge.strategies import CommitTimeStrategy, EventTimeStrategy, MergeStrategy
from hoodie_py.reader.read_info import ReadStats
from hoodie_py.reader.record.batch import BufferedBatch
from hoodie_py.reader.record.ordering import ForeignValue, OrderingColumn
from hoodie_py.reader.record.record import DEFAULT_ORDERING
from hoodie_py.reader.record.row_store import RowStore
from tests.reader.histories import SCHEMA, Version, context, entries, outcome, versions


@pytest.fixture
def spill(tmp_path: Path) -> Iterator[Spill]:
    made = Spill(MemoryBudget(2000, str(tmp_path)), ReadStats())
    yield made
    made.close()
    assert list(tmp_path.iterdir()) == []


VALUES = st.one_of(
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.datetimes(timezones=st.none() | st.just(datetime.UTC)).map(lambda moment: moment.replace(fold=0)),
    st.none(),
    st.just(DEFAULT_ORDERING),
)
STRATEGIES = st.sampled_from([CommitTimeStrategy, EventTimeStrategy])
FOREIGN = st.builds(ForeignValue, st.text(), st.recursive(VALUES, lambda inner: st.tuples(inner, inner)))


@given(st.lists(st.none() | FOREIGN, max_size=5))
def test_foreign_values_keep_value_and_type(values: list[ForeignValue | None]) -> None:
    objects = np.full(len(values), None, dtype=object)
    objects[:] = values
    back = decode_foreign(encode_foreign(objects, len(values)))
    assert repr([None] * len(values) if back is None else back.tolist()) == repr(values)
    assert decode_foreign(encode_foreign(None, 3)) is None


def test_a_decimal_keeps_its_digits() -> None:
    objects = np.array([ForeignValue("decimal", Decimal("1.50"))], dtype=object)
    back = decode_foreign(encode_foreign(objects, 1))
    assert back is not None
    assert str(back[0].value) == "1.50"


@given(versions(foreign=True))
def test_entries_come_back(history: list[Version]) -> None:
    made = entries(context(RowStore(SCHEMA)), history)
    if made is None:
        return
    batch = to_entry_batch(made, {"number": np.arange(len(made))})
    back = from_entry_batch(made.context, batch)
    assert outcome(back) == outcome(made)
    assert back.order.to_pylist() == made.order.to_pylist()
    assert back.codes.tolist() == made.codes.tolist()
    assert get_extra(batch, "number").tolist() == list(range(len(made)))


def test_several_ordering_fields_come_back() -> None:
    types = [pa.int32(), pa.string()]
    column = OrderingColumn.from_values([(1, "a"), (0, DEFAULT_ORDERING), DEFAULT_ORDERING], types)
    back = OrderingColumn.from_stored_columns(column.to_stored_columns(), None)
    assert back.to_pylist() == column.to_pylist()


@given(st.lists(st.text(max_size=100), max_size=30), st.integers(1, 9))
def test_equal_keys_are_in_one_part(keys: list[str], parts: int) -> None:
    split = KeyHash()
    array = pa.array(keys, pa.string())
    numbers = split.assign_keys(array, parts)
    again = split.assign_keys(array.take(pa.array(np.arange(len(keys))[::-1])), parts)
    assert numbers.tolist() == again[::-1].tolist()
    assert split.assign_keys(array.slice(1), parts).tolist() == numbers[1:].tolist()
    assert ((numbers >= 0) & (numbers < parts)).all()


def test_parts_are_of_like_size_and_differ_from_read_to_read() -> None:
    keys = pa.array([f"key-{number:08}" for number in range(20_000)])
    splits = [KeyHash().assign_keys(keys, 16) for _ in range(200)]
    splits += [KeyHash().assign_numbers(np.arange(20_000) * 16, 16) for _ in range(200)]
    for numbers in splits:  # which have 1,250 on average, and a standard deviation of 34
        sizes = np.bincount(numbers, minlength=16)
        assert sizes.min() > 950
        assert sizes.max() < 1550
    assert (splits[0] != splits[1]).any()


def test_rows_keep_their_handles_when_spilled(spill: Spill) -> None:
    store = RowStore(SCHEMA, spill)
    rows = [{"_hoodie_record_key": str(i), "ts": i, "v": None, "s": "x" * i} for i in range(60)]
    for start in range(0, 60, 5):
        mask = {"v": np.arange(5) % 2 == 1} if start % 10 else None
        store.add(pa.RecordBatch.from_pylist(rows[start : start + 5], SCHEMA), mask)
    assert spill._stats.files > 0
    store.spill_rows()
    assert store.nbytes == 0
    handles = np.array([59, -1, 3, 30, 3])
    assert store.take(handles, ["ts"]).column(0).to_pylist() == [59, None, 3, 30, 3]
    assert store.find_absent(np.arange(60), "v").tolist() == [i % 10 >= 5 and i % 5 % 2 == 1 for i in range(60)]
    store.release(33)
    assert len(store) == 33
    assert store.add(pa.RecordBatch.from_pylist(rows[:2], SCHEMA)) == 33
    assert store.take(np.array([32, 33, 34])).column("ts").to_pylist() == [32, 0, 1]
    fresh = store.compact(np.array([34, -1, 8, 34]), at_once=1)
    assert store.take(fresh).column("ts").to_pylist() == [1, None, 8, 1]
    assert store.find_absent(fresh, "v").tolist() == [False, True, True, False]
    assert len(store) == 2


def test_arrays_on_disk_can_be_set(spill: Spill) -> None:
    array = spill.make_array(100_000, np.int64, -1)
    assert isinstance(array, np.memmap)
    array[5] = 7
    assert array.sum() == 7 - 99_999
    assert not isinstance(spill.make_array(10, bool, False), np.memmap)


def folded(strategy: MergeStrategy, history: list[Version], spill: Spill | None) -> FoldedLog | None:
    store = RowStore(SCHEMA, spill)
    buffer = LogBuffer(strategy, spill)
    ctx = context(store)
    for start in range(0, len(history), 7):
        batch = entries(ctx, history[start : start + 7])
        assert batch is not None
        buffer.add(batch, f"{start:03}")
    return buffer.fold()


@given(
    versions(foreign=True), st.sampled_from([1, 500, 3000]), st.sampled_from([CommitTimeStrategy, EventTimeStrategy])
)
def test_any_budget_folds_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, history: list[Version], limit: int, strategy: type[MergeStrategy]
) -> None:
    if any(isinstance(version.ordering, ForeignValue) for version in history):
        history = [version for version in history if version.kind == "block"]
    spill = Spill(MemoryBudget(limit, str(tmp_path_factory.getbasetemp())), ReadStats())
    free, bound = folded(strategy(), history, None), folded(strategy(), history, spill)
    assert (free is None) == (bound is None)
    if free is not None and bound is not None:
        assert outcome(bound.take(np.arange(len(bound)))) == outcome(free.take(np.arange(len(free))))
    spill.close()


@pytest.mark.parametrize("limit", [1, 2000, 1 << 20])
@pytest.mark.parametrize("again", [False, True])
def test_base_rows_meet_their_log_records(tmp_path: Path, limit: int, again: bool) -> None:
    spill = Spill(MemoryBudget(limit, str(tmp_path)), ReadStats())
    log = folded(CommitTimeStrategy(), [Version(str(n), "row", 1, n) for n in range(0, 300, 3)], spill)
    assert log is not None
    keys = [str(n % 200) for n in range(400)]
    at = match_base_rows(log, (pa.array(keys[i : i + 30]) for i in range(0, 400, 30)), 400, spill, again=again)
    meets = np.flatnonzero(at >= 0)
    assert log.take(at[meets]).keys.to_pylist() == [keys[row] for row in meets]
    assert meets.tolist() == [row for row in range(400) if row % 200 % 3 == 0 and (again or row < 200)]
    unmet = np.isin(np.arange(len(log)), at[meets])
    left = [key for batch in log.iterate_chosen(unmet, 4, value=False) for key in batch.keys.to_pylist()]
    assert sorted(left) == sorted(str(n) for n in range(201, 300, 3))
    assert len(log.parts) == (1 if limit > 2000 else len(log.parts))
    spill.close()


def test_many_parts_take_in_any_order(spill: Spill) -> None:
    log = folded(CommitTimeStrategy(), [Version(str(n), "row", 1, n) for n in range(200)], spill)
    assert log is not None
    assert len(log.parts) > 3
    numbers = np.random.default_rng(0).permutation(200)
    want = {
        key: index
        for part, start in zip(log.parts, log.starts, strict=False)
        for index, key in enumerate(part.keys.to_pylist(), start)
    }
    assert [want[key] for key in log.take(numbers).keys.to_pylist()] == numbers.tolist()
    assert len(log.take(np.empty(0, np.int64))) == 0
    assert isinstance(log.take(np.array([0])), BufferedBatch)
