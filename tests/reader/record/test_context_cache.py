"""Values read through a context are those of the row, also after the store gave a handle out again."""

from __future__ import annotations

import pyarrow as pa

from hoodie_py.reader.record.arrow_context import Row
from hoodie_py.reader.record.row_store import RowStore
from tests.reader.histories import SCHEMA, context


def rows(value: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"_hoodie_record_key": "a", "ts": 1, "v": value, "s": None}], SCHEMA)


def test_a_released_handle_is_forgotten() -> None:
    store = RowStore(SCHEMA)
    ctx = context(store)
    first = store.add(rows(1))
    assert ctx.get_value(Row(first), "v") == 1
    store.release(0)
    assert store.add(rows(2)) == first
    assert ctx.get_value(Row(first), "v") == 2
