"""Tests of Arrow's layouts: each becomes the plain one, with the same values, at every depth and offset."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from hoodie_py.arrow.layouts import make_plain_array, make_plain_reader, make_plain_scalar, make_plain_schema
from tests.arrow.array_layouts import LAYOUTS, NESTED, TEXTS


@pytest.mark.parametrize("name", LAYOUTS)
def test_values_stay_in_every_layout_and_slice(name: str) -> None:
    array, plain = LAYOUTS[name]
    for part in (array, array.slice(1), array.slice(1, 2), array.slice(0, 0)):
        made = make_plain_array(part)
        made.validate(full=True)
        assert made.type.equals(plain)
        assert made.to_pylist() == (part.storage if isinstance(part, pa.ExtensionArray) else part).to_pylist()


@pytest.mark.parametrize("name", NESTED)
def test_nested_values_stay_too(name: str) -> None:
    test_values_stay_in_every_layout_and_slice(name)


def test_a_plain_array_stays_the_same_object() -> None:
    array = pa.array(TEXTS)
    assert make_plain_array(array) is array
    schema = pa.schema([("a", pa.list_(pa.struct([("x", pa.string())])))])
    assert make_plain_schema(schema) is schema


def test_eight_bit_booleans_are_booleans() -> None:
    stored = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0], pa.int8()))
    assert make_plain_array(stored).equals(pa.array([True, None, False]))


def test_fields_keep_metadata_and_whether_they_may_be_null() -> None:
    field = pa.field("a", pa.string_view(), nullable=False, metadata={"k": "v"})
    made = make_plain_schema(pa.schema([field], {"s": "m"}))
    assert made.field("a").equals(field.with_type(pa.string()), check_metadata=True)
    assert made.metadata == {b"s": b"m"}


def test_streams_come_batch_by_batch_also_without_any() -> None:
    schema = pa.schema([("a", pa.string_view()), ("n", pa.int32())])
    batches = [
        pa.record_batch([pa.array([text], pa.string_view()), pa.array([at], pa.int32())], schema=schema)
        for at, text in enumerate(TEXTS)
    ]
    made = make_plain_reader(pa.RecordBatchReader.from_batches(schema, iter(batches)))
    assert [batch.num_rows for batch in made] == [1] * len(TEXTS)
    empty = make_plain_reader(pa.RecordBatchReader.from_batches(schema, iter([])))
    assert empty.read_all().schema.field("a").type == pa.string()


def test_bytes_beyond_small_offsets_come_in_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hoodie_py.arrow.layouts._MOST_ELEMENTS", 3)
    table = pa.table({"a": pa.array([[1, 2], [3], [4, 5, 6], []], pa.large_list(pa.int64()))})
    made = make_plain_reader(table.to_reader())
    assert [batch.column("a").to_pylist() for batch in made] == [[[1, 2], [3]], [[4, 5, 6], []]]


def test_scalars_are_plain() -> None:
    assert make_plain_scalar(pa.scalar("x", pa.string_view())).equals(pa.scalar("x"))
    assert make_plain_scalar(pa.scalar(Decimal("1.5"), pa.decimal128(5, 1))).type == pa.decimal128(5, 1)
