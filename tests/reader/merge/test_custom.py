"""What a batch form returns is checked, and a failure names the record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hoodie_py import BufferedBatch, MergeError, RecordMerger, UnsupportedFeatureError
from hoodie_py.reader.buffer.log_buffer import LogBuffer
from hoodie_py.reader.merge.custom import CustomStrategy
from hoodie_py.reader.record.arrow_context import ArrowRecordContext
from hoodie_py.reader.record.ordering import OrderingColumn
from hoodie_py.reader.record.row_store import RowStore
from tests.reader.histories import SCHEMA, Tangled, Version, context, entries

Batches = tuple[BufferedBatch, BufferedBatch, ArrowRecordContext]


class Mine(RecordMerger):
    """A merger made of functions."""

    strategy_id = "c2000000-0000-4000-8000-000000000000"

    def __init__(self, batch: Callable[..., Any], row: Callable[..., Any] | None = None) -> None:
        self.batch, self.row = batch, row or (lambda older, newer, context: newer)

    def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return self.row(older, newer, context)

    def merge_batch(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
        return self.batch(older, newer, context)

    def insert_batch(self, newer: Any, context: Any, props: Any) -> Any:
        return self.batch(newer, newer, context)


@pytest.fixture
def batches() -> Batches:
    ctx = context(RowStore(SCHEMA))
    older = entries(ctx, [Version(key, "row", 1, i) for i, key in enumerate("abc")])
    newer = entries(ctx, [Version(key, "row", 2, i + 10) for i, key in enumerate("abc")])
    assert older is not None
    assert newer is not None
    return older, newer, ctx


def merge(batches: Batches, batch: Callable[..., Any], row: Callable[..., Any] | None = None) -> BufferedBatch:
    return CustomStrategy(Mine(batch, row), {}).delta_merge(batches[0], batches[1])


def rebuilt(batch: BufferedBatch, **parts: Any) -> BufferedBatch:
    given = {name: parts.get(name, getattr(batch, name)) for name in ("context", "keys", "rows", "order", "codes")}
    return BufferedBatch(*given.values())


@pytest.mark.parametrize(
    ("batch", "complaint"),
    [
        (lambda a, b, c: None, "returned NoneType, not a BufferedBatch"),
        (lambda a, b, c: b.column("v"), "not a BufferedBatch"),
        (lambda a, b, c: b.take([0, 1]), "returned 2 records for 3"),
        (lambda a, b, c: rebuilt(b, codes=b.codes[:2]), "columns have different lengths"),
        (lambda a, b, c: b.take([0, 2, 1]), "of another key, 'c'.*key=b"),
        (lambda a, b, c: rebuilt(b, keys=pa.array(["a", "x", "c"])), "of another key, 'x'.*key=b"),
        (lambda a, b, c: rebuilt(b, order=OrderingColumn.from_columns([pa.array(["x"] * 3)], 3)), "of another type"),
        (lambda a, b, c: rebuilt(b, rows=np.array([0, 99, 1])), "does not exist.*key=b"),
        (lambda a, b, c: rebuilt(b, codes=np.array([-1, -1, 9], np.int8)), "does not exist.*key=c"),
        (lambda a, b, c: rebuilt(b, rows=np.array([0, -1, 1])), "live record without data.*key=b"),
        (lambda a, b, c: rebuilt(b, context=context(RowStore(SCHEMA))), "of another context"),
        (lambda a, b, c: b.with_columns(v=[1, 2]), "2 values on 3 records.*column=v"),
        (lambda a, b, c: b.with_columns(v=["x", "y", "z"]), "does not fit its column.*column=v"),
        (lambda a, b, c: b.with_columns(v=pa.array(["x", "y", "z"])), "does not fit its column.*column=v"),
        (lambda a, b, c: b.with_columns(nowhere=[1, 2, 3]), "column=nowhere"),
        (lambda a, b, c: b.with_columns(_hoodie_record_key=["a", "x", "c"]), "key is 'x'.*key=b"),
        (lambda a, b, c: b.column("nowhere"), "the table does not have.*column=nowhere"),
        (lambda a, b, c: b.where(np.array([True]), a), "A mask must be 3 booleans"),
    ],
)
def test_unusable_results_are_errors(batches: Batches, batch: Any, complaint: str) -> None:
    with pytest.raises(MergeError, match=complaint) as caught:
        merge(batches, batch)
    assert caught.value.where["merger"] == "Mine"
    if "key" not in caught.value.where:
        assert caught.value.hint is not None
        assert "the batch form is at fault" in caught.value.hint


def change(name: str, value: Any) -> Callable[..., Any]:
    return lambda older, newer, context: setattr(older, name, value)


@pytest.mark.parametrize(
    "batch",
    [
        change("keys", None),
        change("rows", None),
        lambda a, b, c: a.rows.__setitem__(0, 5),
        lambda a, b, c: b.codes.__setitem__(0, 3),
    ],
)
def test_batches_cannot_be_changed(batches: Batches, batch: Any) -> None:
    before = batches[0].to_records()
    with pytest.raises(MergeError, match=r"read-only|does not change"):
        merge(batches, batch)
    assert batches[0].to_records() == before


def test_properties_cannot_be_changed(batches: Batches) -> None:
    class Writes(Tangled):
        def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
            props["x"] = "1"
            return newer

    with pytest.raises(MergeError, match="does not support item assignment"):
        CustomStrategy(Writes(), {"x": "0"}).delta_merge(batches[0], batches[1])


# ------------------------------------------------------------------------------------- a failed batch names its record


def fails(older: Any, newer: Any, context: Any) -> Any:
    raise RuntimeError("vectors!")


def test_the_row_form_finds_the_record(batches: Batches) -> None:
    def row(older: Any, newer: Any, context: Any) -> Any:
        return 1 // 0 if context.get_value(newer, "v") == 11 else newer

    with pytest.raises(MergeError, match="ZeroDivisionError") as caught:
        merge(batches, fails, row)
    assert caught.value.where["key"] == "b"
    assert "vectors!" in str(caught.value.__cause__)


def test_where_no_row_fails_the_batch_form_is_at_fault(batches: Batches) -> None:
    with pytest.raises(MergeError, match=r"Mine\.merge_batch failed: RuntimeError: vectors! .*batch form is at fault"):
        merge(batches, fails)


def test_values_that_fit_no_column_name_their_record(batches: Batches) -> None:
    class Late(Tangled):
        def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
            return context.replace(newer, v="x" if newer.record_key == "c" else 1)

    with pytest.raises(MergeError, match=r"does not fit its column.*column=v, merger=Late, key=c|key=c"):
        CustomStrategy(Late(), {}).delta_merge(batches[0], batches[1])


def test_ordering_values_that_fit_no_field_name_their_record(batches: Batches) -> None:
    import dataclasses

    class Orders(Tangled):
        def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
            return dataclasses.replace(newer, ordering_value="x") if newer.record_key == "b" else newer

    with pytest.raises(MergeError, match="does not fit the ordering fields") as caught:
        CustomStrategy(Orders(), {}).delta_merge(batches[0], batches[1])
    assert caught.value.where["key"] == "b"


def test_inserts_are_checked_as_well(batches: Batches) -> None:
    strategy = CustomStrategy(Mine(lambda a, b, c: b.take([0])), {})
    with pytest.raises(MergeError, match=r"Mine\.insert_batch returned 1 records for 3"):
        strategy.convert_inserts(batches[1])


def test_the_buffer_adds_the_instants() -> None:
    class Picky(Tangled):
        def merge(self, older: Any, newer: Any, context: Any, props: Any) -> Any:
            raise ValueError("no")

    buffer, ctx = LogBuffer(CustomStrategy(Picky(), {})), context(RowStore(SCHEMA))
    for instant, keys in (("001", "ab"), ("002", "c"), ("003", "cb")):
        batch = entries(ctx, [Version(key, "row", 1, 1) for key in keys])
        assert batch is not None
        buffer.add(batch, instant)
    with pytest.raises(MergeError) as caught:
        buffer.fold()
    wrote = {"b": "001 003", "c": "002 003"}
    assert caught.value.where["instants"] == wrote[caught.value.where["key"]]


# -------------------------------------------------------------------------------------------------------- partial rows


def test_partial_rows_without_partial_merge_name_the_class_and_the_key(batches: Batches) -> None:
    strategy = CustomStrategy(Tangled(), {}).switch_to_partial()
    with pytest.raises(UnsupportedFeatureError, match="Tangled does not merge partial updates") as caught:
        strategy.delta_merge(batches[0], batches[1])
    assert caught.value.where["key"] == "a"


def test_partial_rows_go_through_partial_merge() -> None:
    class Fills(Tangled):
        def partial_merge(self, older: Any, newer: Any, reader_schema: Any, context: Any, props: Any) -> Any:
            lacking = [name for name in reader_schema.names if not context.has_value(newer, name)]
            return context.replace(newer, **{name: context.get_value(older, name) for name in lacking})

    ctx = context(RowStore(SCHEMA))
    older = entries(ctx, [Version("a", "row", 1, 7), Version("b", "row", 1, 8)])
    assert older is not None
    rows = pa.RecordBatch.from_pydict(
        {"_hoodie_record_key": ["a", "b"], "ts": [2, 2], "v": [None, None], "s": ["x", None]}, SCHEMA
    )
    newer = BufferedBatch.of_rows(ctx, ctx.store.add(rows, {"v": np.array([True, False])}), rows, None)
    merged = CustomStrategy(Fills(), {}).switch_to_partial().delta_merge(older, newer)
    assert merged.column("v").to_pylist() == [7, None]
    assert merged.column("s").to_pylist() == ["x", None]
