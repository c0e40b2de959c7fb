"""Rows come back by handle: any order, repeats, -1 as null, with and without columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_py.reader.record.row_store import RowStore

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.string()))])


def filled(sizes: list[int]) -> tuple[RowStore, list[dict[str, object]]]:
    store, rows = RowStore(SCHEMA), []
    for size in sizes:
        chunk: list[dict[str, object]] = [{"a": len(rows) + i, "b": [str(i)] if i % 2 else None} for i in range(size)]
        assert store.add(pa.RecordBatch.from_pylist(chunk, SCHEMA)) == len(rows)
        rows += chunk
    return store, rows


@given(st.lists(st.integers(0, 5), max_size=5), st.data())
def test_take_gathers_rows_by_handle(sizes: list[int], data: st.DataObject) -> None:
    store, rows = filled(sizes)
    handles = data.draw(st.lists(st.integers(-1, len(rows) - 1), max_size=20))
    want = [{"a": None, "b": None} if h < 0 else rows[h] for h in handles]
    assert store.take(np.array(handles, np.int64)).to_pylist() == want
    assert store.take(np.array(handles, np.int64), ["b"]).to_pylist() == [{"b": row["b"]} for row in want]
    assert store.take(np.array(handles, np.int64), []).num_rows == len(handles)
    rising = sorted(set(handles))
    want = [{"a": None, "b": None} if h < 0 else rows[h] for h in rising]
    assert store.take(np.array(rising, np.int64)).to_pylist() == want


@pytest.mark.parametrize("handles", [[5], [0, 5], [5, 0], [4, 9, 1], [1, 6, 7]])
def test_handles_that_no_row_has_are_refused(handles: list[int]) -> None:
    store, _ = filled([3, 2])
    with pytest.raises(IndexError):
        store.take(np.array(handles, np.int64))


def test_release_drops_what_came_later() -> None:
    store, _ = filled([3, 2])
    mark = len(store)
    store.add(pa.RecordBatch.from_pylist([{"a": 9, "b": None}], SCHEMA))
    store.release(mark)
    assert len(store) == mark
    assert store.add(pa.RecordBatch.from_pylist([{"a": 7, "b": None}], SCHEMA)) == mark


def test_reserved_handles_count_until_they_are_released() -> None:
    store, rows = filled([3, 2])
    mark, nbytes, row_bytes = len(store), store.nbytes, store.row_bytes
    assert store.reserve(4) == mark
    assert (len(store), store.nbytes, store.row_bytes) == (mark + 4, nbytes, row_bytes)
    assert store.take(np.array([4, 0])).to_pylist() == [rows[4], rows[0]]
    store.release(mark)
    assert len(store) == mark
    assert store.add(pa.RecordBatch.from_pylist([{"a": 7, "b": None}], SCHEMA)) == mark
